"""Prints the entries of a file of the journal, each as an object of JSON in a line: reader.py [--open] FILE [LEDGER]

With --open it prints what was open at the last checkpoint that says so, in place of the entries. LEDGER is the id of the ledger. It is needed if the header is damaged. Standard error says what cannot be read. Members
without a value are left out. Only files that end in .zst need the package zstandard.
This is written from docs/reference/journal-format.md alone, and shows that the page is exact.
"""

import functools
import json
import re
import sys
from datetime import datetime, timedelta
from decimal import Context, Decimal, setcontext
from uuid import UUID

setcontext(Context(prec=100))

# What numbers stand for, from 1.
WORDS = {
    "end": "complete client_left client_stalled truncated upstream_error upstream_stalled upstream_refused deadline"
    " budget_cut shutdown gateway_died refused",
    "source": "reported counted unknown none",
    "tokens": "input_tokens cache_read_input_tokens cache_write_input_tokens output_tokens reasoning_output_tokens",
    "flag": "estimated inconsistent hidden total_mismatch changed invalid zero missing context token_ids differs"
    " pending clock maybe_unsent",
    "condition": "inference_geo speed search_context_size region",
    "unknown": "no_price ended not_begun no_rate no_tier no_condition no_quantity too_large",
    "void": "not_sent upstream_refused upstream_auth client_left",
    "identity": "api_key header unknown",
}
# The members of lists, in order.
LISTS = {
    "usage": "input_tokens output_tokens cache_read_input_tokens reasoning_output_tokens cache_write_input_tokens"
    " cache_write_long_input_tokens",
    "counts": "input_tokens output_tokens",
    "times": "time_to_first_chunk time_to_first_token time_per_output_token longest_stall gateway output_chunks stages"
    " identify body route admit connect prefill stream answer settle",
}
# The members of groups: a key, and where the value belongs. `a*` is a list, and `a=` an object with a name for each
# value. Behind the colon it stands what the value is. A group, a list or a function that has no name adds its members.
GROUPS = {
    "string": """1 tenant, 2 :caller, 3 :call, 4 request_model, 5 response_model, 6 service_tier, 7 :origin, 8 :outcome,
        9 usage:sources, 10 cost:price, 11 cost.lines*:rate, 12 cost_unknown*:unpriced, 13 before:price,
        14 before.lines*:rate, 15 reason, 16 gateway""",
    "caller": "1 key_id, 2 identity:identity, 3 labels=",
    "call": "1 operation, 2 route, 3 stream:bool, 4 upstream, 5 provider, 6 context:bool, 7 background:bool",
    "origin": "1 gateway, 2 resource=",
    "outcome": """1 status:int, 2 end:end, 3 error_type, 4 error.status, 5 error.type, 6 error.code, 7 finish_reasons*,
        8 error:nothing""",
    "sources": "1 source:source, 2 :source_of_each, 3 :flagged, 4 flags:flags, 5 :conditions, 6 counted:bool",
    "price": "1 currency, 2 price_id, 3 price_match, 4 at_least:bool",
    "rate": "1 meter, 2 model, 3 price_match, 4 unit, 5 unit_price:decimal, 6 list_unit_price:decimal",
    "unpriced": "1 reason:unknown, 2 of, 3 price_id, 4 day, 5 combination",
    "member": """1 started_at:time, 2 timing.duration:int, 3 ended_at:time, 4 request_id, 5 request_id:uuid,
        6 response_id, 7 attempt:int, 8 usage:usage, 9 usage.counted:counts, 10 usage:modality, 11 usage.units=:decimal,
        12 usage.passes*:run, 13 timing:timing, 14 timing.gaps:numbers, 15 cost:lines, 16 cost.amount:decimal,
        17 cost.list_amount:decimal, 18 reported_cost, 19 at:time, 20 reason:void, 21 usage.passes:empty,
        22 before:lines, 23 before.amount:decimal, 24 before.list_amount:decimal, 25 corrects:uuid,
        26 completion:completion, 27 completed:completed, 28 posts:int, 29 voids:int, 30 corrections:int,
        31 costs=:decimal, 32 unknown_cost:int, 33 oldest_open:int, 34 pending*:pending, 35 minute:time,
        36 counts*:count""",
    "run": "1 model, 2 usage:modality_of_run, 3 usage:conditions, 8 usage:usage, 11 usage.units=:decimal",
    "completion": """8 usage:usage, 9 usage.counted:counts, 10 usage:modality, 11 usage.units=:decimal,
        12 usage.passes*:run, 21 usage.passes:empty, 40 response_id, 41 response_model, 42 service_tier,
        43 finish_reasons*, 44 error:error, 45 requests:int, 46 models*:run, 47 reported_cost""",
    "error": "1 status, 2 type, 3 code",
    "completed": "1 response_model, 2 source:source",
    "pending": """1 id:uuid, 2 started_at:time, 3 tenant, 4 upstream, 5 response_id, 6 operation, 7 route, 8 provider,
        9 request_model, 10 response_model, 11 service_tier, 12 :conditions""",
    "count": "1 tenant, 2 others:bool, 3 reason, 4 status:int, 5 admitted:bool, 6 count:int",
}
WORDS = {name: [None, *words.split()] for name, words in WORDS.items()}
LISTS = {name: words.split() for name, words in LISTS.items()}
ROW = re.compile(r"(\d+) ([\w.]*)([*=]?):?(\w*)")
GROUPS = {name: {int(row[0]): row[1:] for row in ROW.findall(rows)} for name, rows in GROUPS.items()}
# What the JSON of an entry has without a value too.
DEFAULTS = {
    "reserve": {"stream": False},
    "post": {"stream": False, "attempt": 1, "labels": {}, "finish_reasons": [], "resource": {}},
    "checkpoint": {"posts": 0, "voids": 0, "corrections": 0, "unknown_cost": 0},
}
KINDS = [None, "reserve", "post", "void", "progress", "correction", "checkpoint", "refusals"]


class Bytes:
    """Bytes that are read from the front."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def __bool__(self):
        return self.at < len(self.data)

    def take(self, length):
        self.at += length
        if self.at > len(self.data):
            raise ValueError("it ends too early")
        return self.data[self.at - length : self.at]

    def rest(self):
        return self.take(len(self.data) - self.at)

    def number(self):
        number = shift = 0
        while (byte := self.take(1)[0]) & 0x80:
            number, shift = number | (byte & 0x7F) << shift, shift + 7
        return number | byte << shift

    def numbers(self):
        return [self.number() for _ in iter(self.__bool__, False)]

    def decimal(self):
        form, digits = self.number(), Decimal(self.number())
        return (-digits if form & 1 else digits).scaleb(-(form >> 1))

    def members(self):
        while self:
            key = self.number()
            yield key >> 1, self.take(self.number()) if key & 1 else self.number()


def word(kind, number):
    return WORDS[kind][number] if number < len(WORDS[kind]) else None


def flags(data):
    return [flag for number in Bytes(data).numbers() if (flag := word("flag", number))]


VALUES = {
    "": bytes.decode,
    "int": int,
    "bool": bool,
    "uuid": lambda data: str(UUID(bytes=data)),
    "time": lambda number: ~(number >> 1) if number & 1 else number >> 1,
    "decimal": lambda data: Bytes(data).decimal(),
    "numbers": lambda data: Bytes(data).numbers(),
    "flags": flags,
    "empty": lambda _: [],
    "run": lambda data: {"usage": {}} | add({}, "run", data),
} | {kind: functools.partial(word, kind) for kind in WORDS}


def value_of(meaning, value):
    return VALUES[meaning](value) if meaning in VALUES else add({}, meaning, value)


def add(to, meaning, value):
    """Adds members to an object: of a group, of a list, or what a function makes of the value."""
    if meaning in GROUPS:
        for key, value in Bytes(value).members():
            if row := GROUPS[meaning].get(key):
                put(to, *row, value)
    elif meaning in LISTS:
        to |= {name: number - 1 for name, number in zip(LISTS[meaning], Bytes(value).numbers()) if number}
    else:
        FUNCTIONS[meaning](to, value)
    return to


def put(to, path, form, meaning, value):
    """Puts a value where the row of its key says."""
    *outer, name = path.split(".")
    for part in outer:
        to = to.setdefault(part, {})
    if form == "*":
        to.setdefault(name, []).append(value_of(meaning, value))
    elif form == "=":
        pair = dict(Bytes(value).members())
        to.setdefault(name, {})[pair[1].decode()] = value_of(meaning, pair[2])
    elif meaning in VALUES:
        to[name] = VALUES[meaning](value)
    else:
        add(to.setdefault(name, {}) if name else to, meaning, value)


def conditions(to, value):
    value = Bytes(value)
    if name := word("condition", value.number()):
        to.setdefault("conditions", {})[name] = value.rest().decode()


def flagged(to, value):
    value = Bytes(value)
    if name := word("tokens", value.number()):
        to.setdefault("flagged", {})[name] = flags(value.rest())


def source_of_each(to, value):
    numbers = Bytes(value).numbers()
    names = [word("tokens", number) for number in numbers[::2]]
    to["sources"] = {name: word("source", number) for name, number in zip(names, numbers[1::2]) if name}


def modality(to, value):
    to.setdefault("modalities", {})
    if value:
        put(to, "modalities", "=", "int", value)


def modality_of_run(to, value):
    modality(flat := {}, value)
    to = to.setdefault("modalities", {})
    for name, count in flat["modalities"].items():
        name, side = re.fullmatch("(.*?)_(cache_read|cache_write|input|output)(?:_input)?_tokens", name).groups()
        to.setdefault(side, {})[name] = count


def timing(to, value):
    times = add({}, "times", value)
    stages = {name: times.pop(name) / 1e6 for name in LISTS["times"][7:] if name in times}
    to |= times | ({"stages": stages} if "stages" in times else {})


def lines(to, value):
    value = Bytes(value)
    for line in to["lines"]:
        form = value.number()
        line |= {"tokens": value.number()} if form & 1 else {}
        line |= {"quantity": value.decimal()} if form & 2 else {}
        product = line.get("tokens", line.get("quantity", 0)) * line["unit_price"] or Decimal(0)
        line["amount"] = value.decimal() if form & 4 else product


FUNCTIONS = {it.__name__: it for it in (conditions, flagged, source_of_each, modality, modality_of_run, timing, lines)}
FUNCTIONS["nothing"] = lambda to, value: None


def cost(made):
    made = {"lines": []} | made
    made.setdefault("amount", sum((line["amount"] for line in made["lines"]), Decimal(0)))
    return {"list_amount": made["amount"]} | made


def usage(made):
    if made.get("counted") is True:
        made["counted"] = {name: made[name] for name in LISTS["counts"] if name in made}
    return {"sources": {}, "flagged": {}, "flags": []} | made


def time(microseconds):
    text = (datetime(1970, 1, 1) + timedelta(microseconds=microseconds)).isoformat()
    return (text.rstrip("0") if "." in text else text) + "Z"


def time_in(id):
    id = UUID(id)
    return (id.int >> 80) * 1000 if id.version == 7 else 0


@functools.lru_cache(1 << 14)
def decode(kind, id, strings, members):
    """An entry, of its kind, its id, its strings and the bytes of its members."""
    kind, id = KINDS[kind], str(UUID(bytes=id))
    entry = {"entry": kind} | ({} if kind == "checkpoint" else {"id": id})
    for key, string in strings:
        if row := GROUPS["string"].get(key):
            put(entry, *row, string)
    add(entry, "member", members)
    used, paid = entry.pop("usage", {}), entry.pop("cost", None)
    entry = DEFAULTS.get(kind, {}) | entry
    if kind in ("reserve", "post"):
        entry.setdefault("request_id", id)
    if kind in ("void", "correction"):
        entry["ended_at" if kind == "void" else "made_at"] = entry.pop("at")
    if kind in ("post", "progress"):
        entry["usage"] = usage(used)
    if kind == "reserve":
        entry |= used | (paid or {})
    elif kind == "post":
        timing = entry["timing"]
        entry["ended_at"] = entry["started_at"] + timing["duration"] + entry.get("ended_at", 0)
        timing |= {name: timing[name] / 1e6 for name in [*LISTS["times"][:5], "duration"] if name in timing}
        if paid:
            entry["cost_known" if "at_least" in paid else "cost"] = cost(paid)
    elif kind == "correction":
        entry |= {name: cost(it) for name, it in (("before", entry.get("before")), ("after", paid)) if it}
        if completion := entry.get("completion"):
            completion["usage"] = usage(completion.get("usage", {}) | used)
            completion.setdefault("finish_reasons", [])
    elif kind == "checkpoint":
        for pending in entry.get("pending", []):
            pending["started_at"] = time(time_in(pending["id"]) + pending["started_at"])
    times = [name for name in ("started_at", "ended_at", "at", "made_at", "minute") if name in entry]
    return entry | {name: time(time_in(entry.get("corrects", id)) + entry[name]) for name in times}


CRC = []
for byte in range(256):
    for _ in range(8):
        byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
    CRC.append(byte)


@functools.lru_cache(1 << 16)
def crc32c(data, seed=0):
    crc = ~seed & 0xFFFFFFFF
    for byte in data:
        crc = CRC[(crc ^ byte) & 0xFF] ^ crc >> 8
    return ~crc & 0xFFFFFFFF


def little(data):
    return int.from_bytes(data, "little")


class File:
    """A file of the journal: its bytes and, if the header is damaged, the id of its ledger."""

    def __init__(self, data, ledger=None, tell=lambda what: None):
        self.data, self.tell, self.seq, self.chain = data, tell, 0, None
        self.open = []  # at the last checkpoint that says so
        if data[:8] == b"taxi-tlj" and crc32c(data[:508]) == little(data[508:512]):
            if little(data[8:10]) != 5:
                raise ValueError("this is not format 5")
            self.seq, self.chain, ledger = little(data[12:20]) - 1, little(data[20:24]), data[451:467]
        self.seed = crc32c(ledger)

    def payload(self, at):
        """The payload of the frame here, if its checksum is right."""
        payload = self.data[at + 16 : at + 16 + little(self.data[at : at + 3])]
        right = crc32c(payload, self.seed) == little(self.data[at + 8 : at + 12])
        return payload if right and payload[-1:] == b"." and len(payload) <= 1 << 20 else None

    def follows(self, at, before):
        """Whether the frame here follows a frame with this chain value."""
        return crc32c(self.data[at : at + 12], before) == little(self.data[at + 12 : at + 16])

    def next_after(self, at):
        """The place of the frame to go on with behind damage, or None."""
        head = self.data[at : at + 16]
        ends = [] if self.chain is None else [self.chain, little(head[12:]), crc32c(head[:12], self.chain)]
        for place in range(at + 1, len(self.data) - 16):
            behind = place + 16 + little(self.data[place : place + 3])
            candidates = [(place, end) for end in ends] + [(behind, little(self.data[place + 12 : place + 16]))]
            for candidate, end in candidates:
                if self.follows(candidate, end) and self.payload(candidate):
                    return candidate
        return None

    def frames(self):
        """The kind and the payload of each frame that counts. `seq` is the number of the entry."""
        at, resumed = (512, False) if self.chain is not None else (self.next_after(0), True)
        while at is not None and at < len(self.data):
            payload, head = self.payload(at), self.data[at : at + 16].ljust(16, b"\0")
            kind, low = head[3], little(head[4:8])
            step = (low - self.seq + (1 << 31)) % (1 << 32) - (1 << 31)
            if kind >= 0x80:
                mark = little(payload[:4]) if payload and kind == 0x81 else 0
                counts = payload and low == mark and self.follows(at, self.seed)
            else:
                counts = payload and (resumed or step == (kind < 0x40) and self.follows(at, self.chain))
            if not counts:
                self.tell(f"the frame at byte {at} is damaged")
                at, resumed = self.next_after(at), True
                continue
            if kind < 0x80:
                self.seq, self.chain, resumed = self.seq + step, little(head[12:]), False
            yield kind, payload[:-1]
            at += 16 + len(payload)

    def entries(self):
        """Each entry with its number."""
        strings, carried, count = {}, [], 0
        for kind, payload in self.frames():
            if kind in (0x83, 0x84):
                seq, index, count = (little(payload[a:b]) for a, b in ((0, 8), (8, 12), (12, 16)))
                carried = carried if index > 1 else []
                if index == len(carried) + 1:
                    carried.append(self.entry(seq, 1 if kind == 0x83 else 4, payload[16:], {}))
            if kind in (6, 0x41):
                strings = {}
            if kind == 6:
                self.open = carried if len(carried) == count else []
            table = Bytes(payload)
            while kind == 0x82 and table:
                number = table.number()
                strings[number] = table.take(table.number())
            if kind < 0x40:
                carried = []
                if entry := self.entry(self.seq, kind, payload, strings):
                    yield self.seq, entry

    def entry(self, seq, kind, payload, strings):
        """An entry, or None. `strings` learns its strings."""
        payload, used = Bytes(payload), []
        id = payload.take(16)
        while key := payload.number():
            number = payload.number()
            string = payload.take(payload.number()) if key & 1 else strings.get(number)
            used.append((key >> 1, string))
            strings |= {number: string} if key & 1 and number else {}
        if None in (string for _, string in used):
            self.tell(f"a string of entry {seq} is missing")
        elif kind < len(KINDS):
            return {"seq": seq} | decode(kind, id, tuple(used), payload.rest())


def read(path):
    """The bytes of a plain file, or of a compressed one as if it were plain."""
    with open(path, "rb") as file:
        if not path.endswith(".zst"):
            return file.read()
        import zstandard

        return zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True).read()


if __name__ == "__main__":
    asks_open = sys.argv[1] == "--open"
    path, *ledger = sys.argv[2:] if asks_open else sys.argv[1:]
    file = File(read(path), *(UUID(id).bytes for id in ledger), tell=lambda what: print(what, file=sys.stderr))
    entries = [entry for _, entry in file.entries()]
    for entry in file.open if asks_open else entries:
        print(json.dumps(entry, default=lambda decimal: f"{decimal:f}"))
