"""Reads a journal file again and again, each time with one other byte changed.

    damage.py FILE LEDGER < CHANGES

A line of CHANGES is the place of a byte and the number that it is changed by, with exclusive or. For each, a line of
JSON says which entries are lost, and which are not as they were.
"""

import json
import sys
import uuid

from reader import File, read

data, ledger = read(sys.argv[1]), uuid.UUID(sys.argv[2]).bytes
whole = dict(File(data, ledger).entries())
for line in sys.stdin:
    at, by = map(int, line.split())
    damaged = bytearray(data)
    damaged[at] ^= by
    left = dict(File(bytes(damaged), ledger).entries())
    lost = [seq for seq in whole if seq not in left]
    changed = [seq for seq, entry in left.items() if entry != whole.get(seq)]
    print(json.dumps({"lost": lost, "changed": changed}))
