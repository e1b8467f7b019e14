"""Writes what is in a compressed file of the journal: plain.py COMPRESSED PLAIN"""

import sys

import zstandard

with open(sys.argv[1], "rb") as compressed, open(sys.argv[2], "wb") as plain:
    plain.write(zstandard.ZstdDecompressor().stream_reader(compressed, read_across_frames=True).read())
