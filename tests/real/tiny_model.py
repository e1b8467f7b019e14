"""Make a tiny Llama with random weights as one GGUF file that llama.cpp serves, and its vocabulary and
chat template beside it, as model folders have them.

usage: tiny_model.py FOLDER    (tiny.gguf, tokenizer.json, tokenizer_config.json)

The text that it writes is noise; its tokens are counted like those of any other model, which is what the
tests are about. The same seed makes the same weights.
"""

import argparse
import inspect
import json
import pathlib
import pydoc_data.topics
import sys

import gguf
import numpy
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

SEED = 7
VOCABULARY = 2048
HIDDEN, LAYERS, FEED_FORWARD = 128, 2, 256
HEADS, KEY_VALUE_HEADS = 4, 2
HEAD = HIDDEN // HEADS
CONTEXT = 4096
END_OF_TEXT, TURN_BEGIN, TURN_END = range(3)
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
CHAT_TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def train_tokenizer() -> Tokenizer:
    """A byte-level BPE vocabulary, from whatever text Python itself carries."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    corpus = [inspect.getsource(module) for module in (pydoc_data.topics, argparse, inspect)]
    tokenizer.train_from_iterator(
        corpus,
        trainers.BpeTrainer(
            vocab_size=VOCABULARY,
            special_tokens=SPECIAL,
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        ),
    )
    return tokenizer


def weights(vocabulary: int) -> dict[str, numpy.ndarray]:
    """Random tensors under llama.cpp's names."""
    random = numpy.random.default_rng(SEED)

    def normal(rows: int, columns: int, deviation: float) -> numpy.ndarray:
        return (random.standard_normal((rows, columns)) * deviation).astype(numpy.float32)

    tensors = {
        "token_embd.weight": normal(vocabulary, HIDDEN, 1.0),
        "output_norm.weight": numpy.ones(HIDDEN, numpy.float32),
        "output.weight": normal(vocabulary, HIDDEN, 0.35),
    }
    # The end token stays rare, so that max_tokens decides how long an answer is.
    tensors["output.weight"][TURN_END] *= 0.3
    for layer in range(LAYERS):
        tensors |= {
            f"blk.{layer}.attn_norm.weight": numpy.ones(HIDDEN, numpy.float32),
            f"blk.{layer}.attn_q.weight": normal(HEADS * HEAD, HIDDEN, 0.2),
            f"blk.{layer}.attn_k.weight": normal(KEY_VALUE_HEADS * HEAD, HIDDEN, 0.2),
            f"blk.{layer}.attn_v.weight": normal(KEY_VALUE_HEADS * HEAD, HIDDEN, 0.2),
            f"blk.{layer}.attn_output.weight": normal(HIDDEN, HEADS * HEAD, 0.2),
            f"blk.{layer}.ffn_norm.weight": numpy.ones(HIDDEN, numpy.float32),
            f"blk.{layer}.ffn_gate.weight": normal(FEED_FORWARD, HIDDEN, 0.2),
            f"blk.{layer}.ffn_up.weight": normal(FEED_FORWARD, HIDDEN, 0.2),
            f"blk.{layer}.ffn_down.weight": normal(HIDDEN, FEED_FORWARD, 0.2),
        }
    return tensors


def write(path: str, tokenizer: Tokenizer) -> None:
    """The whole model, vocabulary and chat template included."""
    by_id = {index: text for text, index in tokenizer.get_vocab().items()}
    merges = json.loads(tokenizer.to_str())["model"]["merges"]

    file = gguf.GGUFWriter(path, "llama")
    file.add_name("tiny-random")
    file.add_context_length(CONTEXT)
    file.add_embedding_length(HIDDEN)
    file.add_block_count(LAYERS)
    file.add_feed_forward_length(FEED_FORWARD)
    file.add_head_count(HEADS)
    file.add_head_count_kv(KEY_VALUE_HEADS)
    file.add_layer_norm_rms_eps(1e-5)
    file.add_rope_dimension_count(HEAD)
    file.add_rope_freq_base(10000.0)
    file.add_vocab_size(len(by_id))
    file.add_file_type(gguf.LlamaFileType.ALL_F32)

    file.add_tokenizer_model("gpt2")
    file.add_tokenizer_pre("gpt-2")
    file.add_token_list([by_id[index] for index in range(len(by_id))])
    file.add_token_types(
        [
            gguf.TokenType.CONTROL if by_id[index] in SPECIAL else gguf.TokenType.NORMAL
            for index in range(len(by_id))
        ]
    )
    file.add_token_merges([m if isinstance(m, str) else " ".join(m) for m in merges])
    file.add_bos_token_id(END_OF_TEXT)
    file.add_eos_token_id(TURN_END)
    file.add_pad_token_id(END_OF_TEXT)
    file.add_add_bos_token(False)
    file.add_chat_template(CHAT_TEMPLATE)

    for name, tensor in weights(len(by_id)).items():
        file.add_tensor(name, tensor)
    file.write_header_to_file()
    file.write_kv_data_to_file()
    file.write_tensors_to_file()
    file.close()


if __name__ == "__main__":
    folder = pathlib.Path(sys.argv[1])
    trained = train_tokenizer()
    trained.save(str(folder / "tokenizer.json"))
    config = {"chat_template": CHAT_TEMPLATE, "bos_token": None, "eos_token": SPECIAL[TURN_END]}
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    write(str(folder / "tiny.gguf"), trained)
