"""Prints the entries of a file of the journal, a line of JSON for each: reader.py FILE [LEDGER]

It follows the page on the format, and takes kinds, members and words from the tables there.
LEDGER is the id of the ledger, which is needed only if the header is damaged.
"""

import json
import re
import sys
from decimal import Context, Decimal, setcontext
from functools import partial
from itertools import islice, takewhile
from pathlib import Path
from uuid import UUID

setcontext(Context(prec=100))
little = partial(int.from_bytes, byteorder="little")
PAGE = (Path(__file__).parents[2] / "docs/reference/journal-format.md").read_text()
ROW = r"(?m)^\| ([\w ]+) \| `?([\w.]*)`? *\| (.*?) \|"
LIST = r"(?m)^- (\w+): (`.*(?:\n  .*)*)"
PARTS = {part.split()[0]: part for part in PAGE.split("\n### ")}
TABLES = {name: {key: row for key, *row in re.findall(ROW, part)} for name, part in PARTS.items()}
WORDS = {name: re.findall(r"`(\w+)`", words) for name, words in re.findall(LIST, PAGE)}
SHARED = {key for table in TABLES.values() for key, (_, type) in table.items() if type[:6] == "shared"}
DEFAULTS = json.loads(PAGE.split("```json")[1].split("```")[0])
CRC_OF_BYTE = range(256)
for _ in range(8):
    CRC_OF_BYTE = [crc >> 1 ^ (crc & 1) * 0x82F63B78 for crc in CRC_OF_BYTE]

def crc32c(data, seed=0):
    """The CRC32C of bytes that follow others with the CRC32C `seed`."""
    crc = ~seed & 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ CRC_OF_BYTE[(crc ^ byte) & 0xFF]
    return ~crc & 0xFFFFFFFF

def numbers(data):
    """Takes numbers off an iterator of bytes."""
    for byte in data:
        yield byte if byte < 0x80 else byte - 0x80 + 0x80 * number(data)

def number(data):
    """Takes one number."""
    return next(numbers(data))

def take(data):
    """Takes a length, and so many bytes."""
    return bytes(islice(data, number(data)))

def members(data):
    """Takes members: their keys, and a number or an iterator of bytes for each."""
    for key in numbers(data):
        yield str(key >> 1), iter(take(data)) if key & 1 else number(data)

def word(words, number):
    """The word that a number stands for, or None."""
    return WORDS[words][number - 1] if 0 < number <= len(WORDS[words]) else None

def decimal(data):
    """Takes a decimal."""
    form, digits = number(data), Decimal(number(data))
    return (-digits if form & 1 else digits).scaleb(-(form >> 1))

VALUES = {
    "number": int, "boolean": bool, "signed": lambda it: ~(it >> 1) if it & 1 else it >> 1,
    "text": lambda data: bytes(data).decode(), "decimal": decimal, "bytes": iter,
    "numbers": lambda data: list(numbers(data)), "list": lambda _: [], "object": lambda _: {},
    "id": lambda data: str(UUID(bytes=bytes(data))),
}

def value_of(type, value, base):
    """What a number or an iterator of bytes means. Times are relative to `base`."""
    match type.split():
        case ["time"]:
            return base + VALUES["signed"](value)
        case ["shared", kind]:
            return value_of(kind, value, base)
        case [kind, "repeated"]:
            return [value_of(kind, value, base)]
        case [kind, "by", "name"]:
            pair = dict(members(value))
            return {VALUES["text"](pair["1"]): value_of(kind, pair["2"], base)} if pair else {}
        case [*kind, "by", words]:
            return {word(words, number(value)): value_of(" ".join(kind), value, base)}
        case [words, "of", "each", keys]:
            return {word(keys, it): word(words, number(value)) for it in numbers(value)}
        case [words, "in", "order"]:
            return {name: it - 1 for name, it in zip(WORDS[words], numbers(value)) if it}
        case [words, "list"]:
            return [known for it in numbers(value) if (known := word(words, it))]
        case [kind] if kind in TABLES:
            return add(DEFAULTS.get(kind, {}), kind, members(value), base)
        case [kind]:
            return word(kind, value) if kind in WORDS else VALUES[kind](value)

def merge(old, new):
    """Adds to objects and lists, and puts other values in their place."""
    if isinstance(new, dict):
        old, new = old or {}, {name: it for name, it in new.items() if name is not None}
        return old | {name: merge(old.get(name), it) for name, it in new.items()}
    return (old or []) + new if isinstance(new, list) else new

def add(to, table, members, base=0):
    """Adds members to an object. An id is the base of the times behind it."""
    for key, value in members:
        path, type = TABLES[table].get(key, ("", "object"))  # nothing to add
        value = value_of(type, value, base)
        if type == "id":
            base = (UUID(value).int >> 80) * 1000 if UUID(value).version == 7 else 0
        for name in reversed(re.findall(r"\w+", path)):
            value = {name: value}
        to = merge(to, value)
    return to

def whole(cost):
    """A cost with the numbers of its lines, and with the amounts that follow from them."""
    data, lines = cost.pop("numbers", None), cost.get("lines", [])
    for line in lines:
        form = number(data)
        line |= {"tokens": number(data)} if form & 1 else {}
        line |= {"quantity": decimal(data)} if form & 2 else {}
        product = line.get("tokens", line.get("quantity", 0)) * line["unit_price"]
        line["amount"] = decimal(data) if form & 4 else product or Decimal(0)
    amount = cost.get("amount", sum((line["amount"] for line in lines), Decimal(0)))
    return {"amount": amount, "list_amount": amount, "lines": lines} | cost

def entry_of(kind, strings, data):
    """An entry, of its kind, its id and its strings, and the bytes of its other members."""
    pairs = [*((key, iter(string)) for key, string in strings), *members(iter(data))]
    entry = add({"entry": kind} | DEFAULTS.get(kind, {}), kind, pairs)
    if timing := entry.get("timing"):
        entry["ended_at"] = entry["started_at"] + timing["duration"] + entry.get("ended_at", 0)
        if "stages" in timing:
            timing["stages"] = {it: timing.pop(it) for it in WORDS["timing"][7:] if it in timing}
    usage = entry.get("completion", entry).get("usage", {})
    if usage.get("counted") is True:
        usage["counted"] = {name: usage[name] for name in WORDS["counted"] if name in usage}
    return entry | {it: whole(entry[it]) for it in ("cost", "before", "after") if it in entry}

def frames(data, ledger, seq):
    """The kind, the number and the payload of each frame that counts."""
    at, chains, ends = 512, {0}, {}
    if data[:10] == b"taxi-tlj\5\0" and crc32c(data[:508]) == little(data[508:512]):
        chains, ledger = {little(data[20:24])}, data[451:467]
    else:
        print("the header is damaged", file=sys.stderr)
    seed = crc32c(ledger)
    while at < len(data):
        head = data[at : at + 16].ljust(16)
        payload = data[at + 16 : at + 16 + little(head[:3])]
        kind, low, check, chain = head[3], *(little(head[it : it + 4]) for it in (4, 8, 12))
        before = {seed} if kind >= 0x80 else chains | ends.get(at, set())
        follows = {crc32c(head[:12], it) for it in before}
        if chain in follows and crc32c(payload, seed) == check:
            if kind < 0x80:
                seq += (low - seq + 2**31) % 2**32 - 2**31
                chains, ends = {chain}, {}
            yield kind, seq, payload[:-1]
            at += 16 + len(payload)
        else:
            if len(chains) == 1:
                print(f"the frame at byte {at} is damaged", file=sys.stderr)
                chains |= follows | {chain}
            ends.setdefault(at + 16 + len(payload), set()).add(chain)
            at += 1

def entries(data, ledger, before):
    """Each entry behind that number. Carried ones have the index of their frame and the count."""
    known = {}
    for byte, seq, payload in frames(data, ledger, before):
        kind, _ = TABLES["kinds"].get(f"0x{byte:02x}", ("", ""))
        data, place = iter(payload), {"seq": seq}
        known = {} if kind in ("checkpoint", "forget") else known
        known |= {string: take(data) for string in numbers(data)} if kind == "table" else {}
        if byte in (0x83, 0x84):
            parts = zip(("seq", "index", "count"), (8, 4, 4))
            place = {name: little(islice(data, length)) for name, length in parts}
        if byte < 0x40 or "index" in place:
            strings = [("id", bytes(islice(data, 16)))]
            for key in takewhile(int, numbers(data)):
                string = number(data)
                known |= {string: take(data)} if key & 1 else {}
                strings.append((f"string {key >> 1}", known.get(string)))
            body = bytes(data)
            if body and str(body[0] >> 1) in SHARED:
                data = iter(body)
                key, value = next(members(data))
                group, given, body = number(value), bytes(value), bytes(data)
                known |= {group: given} if given else {}
                strings.append((key, known.get(group)))
            if any(string is None for _, string in strings):
                print(f"a string of entry {place['seq']} is missing", file=sys.stderr)
            elif kind:
                yield place | entry_of(kind, tuple(strings), body)

if __name__ == "__main__":
    path, ledger = sys.argv[1], UUID(sys.argv[2]).bytes if sys.argv[2:] else b""
    before = int(re.search(r"\d{20}", path)[0]) - 1
    for entry in entries(Path(path).read_bytes(), ledger, before):
        print(json.dumps(entry, default="{:f}".format))
