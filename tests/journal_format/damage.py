"""Reads a journal file again and again, each time with one other byte changed.

    damage.py FILE LEDGER < CHANGES

A line of CHANGES is the place of a byte and the number that it is changed by, with exclusive or. For each, a line of
JSON says which entries are lost, and which are not as they were.
"""

import contextlib
import functools
import io
import json
import pathlib
import sys
import uuid

import reader

# Nearly all frames are the same each time.
reader.crc32c = functools.lru_cache(1 << 16)(reader.crc32c)
reader.entry_of = functools.lru_cache(1 << 14)(reader.entry_of)


def entries(data):
    """The entries by their number."""
    ledger = uuid.UUID(sys.argv[2]).bytes
    with contextlib.redirect_stderr(io.StringIO()):
        return {entry["seq"]: entry for entry in reader.entries(data, ledger, 0)}


data = pathlib.Path(sys.argv[1]).read_bytes()
whole = entries(data)
for line in sys.stdin:
    at, by = map(int, line.split())
    left = entries(data[:at] + bytes([data[at] ^ by]) + data[at + 1 :])
    lost = [seq for seq in whole if seq not in left]
    changed = [seq for seq, entry in left.items() if entry != whole.get(seq)]
    print(json.dumps({"lost": lost, "changed": changed}))
