"""Are our counts those of the vocabularies' own programs? Prints a line a vocabulary; ends with 1 at a mismatch.

usage: exact.py --cache FOLDER --counts PROGRAM [--openai N] [--open N] [--streams N] [--seed N]

FOLDER holds what tests/exact/run fetched: `openai` (tiktoken's files), `open` (a tokenizer.json a model).
Oracles: Python tiktoken, Hugging Face tokenizers, mistral-common. Marks of special tokens are ordinary text.
"""

import argparse
import hashlib
import os
import pathlib
import random
import resource
import struct
import subprocess
import sys
import time

from texts import texts

BATCH = 20_000
MISMATCHES_SHOWN_MAX = 5

# By a model that has it.
OPENAI = {
    "cl100k_base": "gpt-4",
    "o200k_base": "gpt-4o",
    "p50k_base": "text-davinci-003",
    "r50k_base": "davinci",
}
TIKTOKEN_URL = "https://openaipublic.blob.core.windows.net/encodings/{}.tiktoken"


def openai_oracle(name: str, cache: pathlib.Path):
    import tiktoken

    # tiktoken looks for a file named by the hash of where it would have it from.
    folder = cache / "tiktoken"
    folder.mkdir(exist_ok=True)
    link = folder / hashlib.sha1(TIKTOKEN_URL.format(name).encode()).hexdigest()
    if not link.exists():
        link.write_bytes((cache / "openai" / f"{name}.tiktoken").read_bytes())
    os.environ["TIKTOKEN_CACHE_DIR"] = str(folder)
    encoding = tiktoken.get_encoding(name)
    return lambda batch: [len(ids) for ids in encoding.encode_ordinary_batch(batch, num_threads=2)]


def hugging_face_oracle(file: pathlib.Path):
    import tokenizers

    tokenizer = tokenizers.Tokenizer.from_file(str(file))
    tokenizer.encode_special_tokens = True

    def count(batch):
        return [len(e.ids) for e in tokenizer.encode_batch_fast(batch, add_special_tokens=False)]

    return count


def tekken_oracle(file: pathlib.Path):
    from mistral_common.tokens.tokenizers.tekken import Tekkenizer

    tokenizer = Tekkenizer.from_file(str(file))
    return lambda batch: [len(tokenizer.encode(text, bos=False, eos=False)) for text in batch]


def ours(program: str, manner: str, vocabulary: str, batch: list[str]) -> list[int]:
    frames = b"".join(struct.pack("<I", len(raw)) + raw for raw in (t.encode() for t in batch))
    told = subprocess.run([program, manner, vocabulary], input=frames, stdout=subprocess.PIPE, check=True)
    return list(struct.unpack(f"<{len(batch)}I", told.stdout))


def load_millis(program: str, vocabulary: str) -> float:
    """Time of the CPU to read a vocabulary, on all threads; with the program's start, about a millisecond."""

    def spent():
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return usage.ru_utime + usage.ru_stime

    before = spent()
    ours(program, "whole", vocabulary, [""])
    return 1000 * (spent() - before)


def compare(program: str, name: str, vocabulary: str, oracle, count: int, seed: int) -> int:
    """Mismatches between ours and the oracle's over so many texts."""
    began, mismatches, tokens, size = time.monotonic(), 0, 0, 0
    for first in range(0, count, BATCH):
        batch = texts(seed + first, min(BATCH, count - first))
        expected = oracle(batch)
        for text, mine, its in zip(batch, ours(program, "whole", vocabulary, batch), expected, strict=True):
            if mine != its:
                mismatches += 1
                if mismatches <= MISMATCHES_SHOWN_MAX:
                    print(f"  {name}: {mine}, the oracle has {its}: {text!r}")
        tokens += sum(expected)
        size += sum(len(text.encode()) for text in batch)
    took = time.monotonic() - began
    print(
        f"{name:16} {count:>9,} texts {size:>13,} bytes {tokens:>12,} tokens "
        f"{mismatches} mismatches  ({took:.0f} s; loads in {load_millis(program, vocabulary):.0f} ms)",
        flush=True,
    )
    return mismatches


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    options.add_argument("--cache", type=pathlib.Path, required=True)
    options.add_argument("--counts", required=True)
    options.add_argument("--openai", type=int, default=1_000_000)
    options.add_argument("--open", type=int, default=100_000)
    options.add_argument("--streams", type=int, default=200_000)
    options.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    told = options.parse_args()
    print(f"seed {told.seed}", flush=True)

    mismatches = 0
    for name, model in OPENAI.items():
        oracle = openai_oracle(name, told.cache)
        mismatches += compare(told.counts, name, model, oracle, told.openai, told.seed)
    files = sorted((told.cache / "open").iterdir())
    for file in files:
        is_tekken = file.name.startswith("tekken")
        oracle = tekken_oracle(file) if is_tekken else hugging_face_oracle(file)
        mismatches += compare(told.counts, file.stem, str(file), oracle, told.open, told.seed)

    # Every vocabulary gets its share of the streams.
    vocabularies = [*OPENAI.values(), *map(str, files)]
    share = -(-told.streams // len(vocabularies))
    for at, vocabulary in enumerate(vocabularies):
        ours(told.counts, "split", vocabulary, texts(told.seed - 1 - at, share))
    print(f"streams: {share * len(vocabularies):,} in random deltas, each counted as its whole")
    print(f"seed {told.seed}: {mismatches} mismatches")
    return 1 if mismatches else 0


if __name__ == "__main__":
    sys.exit(main())
