#!/usr/bin/env python3
"""Stands where llama.cpp's tests look for llama-server: starts the real one, and the gateway before it where they ask.

SUITE_LLAMA   the real llama-server
SUITE_MODEL   a model in the place of those that the tests would download
SUITE_WAY     `through`: the gateway listens where the tests say, and the real server behind it
"""

import contextlib
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile

from gateway import ENDS_WITH_US, gateway

BEHIND = "127.0.0.1"
# Options of a model that would be downloaded: each has a value.
DOWNLOADS = ["--hf-repo", "--model-url"]


def of_real_server(words, replaced):
    """The same words, with the model on this machine and these values of options."""
    kept = []
    words = iter(words)
    for word in words:
        if word in DOWNLOADS:
            next(words)
            kept += ["--model", os.environ["SUITE_MODEL"]]
        elif word == "--hf-file":  # a file of --hf-repo
            next(words)
        elif word in replaced:
            next(words)
            kept += [word, replaced[word]]
        else:
            kept.append(word)
    return kept


def free_port():
    with socket.socket() as listener:
        listener.bind((BEHIND, 0))
        return str(listener.getsockname()[1])


def addresses(hosts, port):
    return [f"[{host}]:{port}" if ":" in host else f"{host}:{port}" for host in hosts.split(",")]


def main(words):
    real = os.environ["SUITE_LLAMA"]
    if os.environ["SUITE_WAY"] != "through":
        os.execv(real, [real, *of_real_server(words, {})])
    hosts, port = (words[words.index(option) + 1] for option in ("--host", "--port"))
    behind = free_port()
    if "AIP_HTTP_PORT" in os.environ:
        os.environ["AIP_HTTP_PORT"] = behind
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with contextlib.ExitStack() as stack:
        folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
        stack.enter_context(gateway(folder, f"http://{BEHIND}:{behind}", addresses(hosts, port)))
        # The server ends first: the tests measure how long it takes, and the gateway waits for its answers.
        command = [*ENDS_WITH_US, real, *of_real_server(words, {"--host": BEHIND, "--port": behind})]
        server = subprocess.Popen(command)
        stack.callback(server.wait)
        stack.callback(server.terminate)
        return server.wait()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
