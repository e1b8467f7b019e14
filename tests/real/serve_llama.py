"""Serve a GGUF file with llama.cpp's own HTTP server, on a free loopback port, until killed.

usage: serve_llama.py FILE.gguf

Prints the address on one line once it listens.
"""

import signal
import sys

import xllamacpp

parameters = xllamacpp.CommonParams()
parameters.model.path = sys.argv[1]
parameters.model_alias = {"tiny"}
parameters.hostnames = ["127.0.0.1"]
parameters.port = 0
parameters.n_ctx = 4096
parameters.n_parallel = 2
parameters.cpuparams.n_threads = 1
parameters.endpoint_metrics = True
# Random weights draw the end token now and then: how long an answer is, is for max_tokens to decide.
parameters.sampling.ignore_eos = True
parameters.warmup = False
# Embeddings beside generation: one engine, one set of counters to compare the ledger with.
parameters.embedding = True
parameters.pooling_type = xllamacpp.llama_pooling_type.LLAMA_POOLING_TYPE_MEAN

server = xllamacpp.Server(parameters)
print(server.listening_address, flush=True)
signal.pause()
