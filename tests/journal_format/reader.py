"""Prints the entries of journal files, each as a line of JSON; and what is damaged, on stderr.

    reader.py FILE…        FILE.zst needs the package zstandard
    reader.py --open FILE… what was open at the last checkpoint that says so, in place of the entries

It is written from docs/reference/journal-format.md alone. It shows that the page is exact.
"""

import json
import sys
import uuid
from datetime import datetime, timedelta, timezone
from decimal import Context, Decimal
from functools import lru_cache

EXACT = Context(prec=200)
CRC = []
for byte in range(256):
    for _ in range(8):
        byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
    CRC.append(byte)

ENDS = ("complete client_left client_stalled truncated upstream_error upstream_stalled upstream_refused deadline"
        " budget_cut shutdown gateway_died refused").split()
SOURCES = "reported counted unknown none".split()
NUMBERS = "input_tokens cache_read_input_tokens cache_write_input_tokens output_tokens reasoning_output_tokens".split()
FLAGS = ("estimated inconsistent hidden total_mismatch changed invalid zero missing context token_ids differs pending clock"
         " maybe_unsent").split()
CONDITIONS = "inference_geo speed search_context_size region".split()
UNKNOWN = "no_price ended not_begun no_rate no_tier no_condition no_quantity too_large".split()
VOIDS = "not_sent upstream_refused upstream_auth client_left".split()
STAGES = "identify body route admit connect prefill stream answer settle".split()
KINDS = {1: "reserve", 2: "post", 3: "void", 4: "progress", 5: "correction", 6: "checkpoint", 7: "refusals"}


@lru_cache(1 << 16)
def crc32c(data, seed=0):
    value = ~seed & 0xFFFFFFFF
    for byte in data:
        value = value >> 8 ^ CRC[(value ^ byte) & 0xFF]
    return ~value & 0xFFFFFFFF


class Bytes:
    """Takes values off the front of bytes."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def __bool__(self):
        return self.at < len(self.data)

    def number(self):
        value = shift = 0
        while True:
            byte = self.data[self.at]
            self.at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    def bytes(self):
        length = self.number()
        self.at += length
        if self.at > len(self.data):
            raise IndexError
        return self.data[self.at - length:self.at]

    def rest(self):
        at, self.at = self.at, len(self.data)
        return self.data[at:]

    def decimal(self):
        form = self.number()
        return Decimal((form & 1, tuple(map(int, str(self.number()))), -(form >> 1)))

    def list(self, length):
        numbers = [self.number() for _ in range(length) if self]
        return [number - 1 if number else None for number in numbers] + [None] * (length - len(numbers))

    def members(self):
        while self:
            key = self.number()
            yield key >> 1, self.bytes() if key & 1 else self.number()


def members(data):
    return Bytes(data).members()


def text(value):
    return value.decode()


def words(names, value):
    """The words of numbers. Words of a newer version are left out."""
    data = Bytes(value)
    numbers = [data.number() for _ in iter(lambda: bool(data), False)]
    return [names[number - 1] for number in numbers if 0 < number <= len(names)]


def plain(decimal):
    return format(decimal, "f")


def group(data, names, many={}):
    """An object of the members whose key has a name, each made by its function."""
    found = {}
    for key, value in members(data):
        if key in many:
            found.setdefault(many[key][0], []).append(many[key][1](value))
        elif key in names:
            found[names[key][0]] = names[key][1](value)
    return found


def time(micros):
    at = datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(microseconds=micros)
    return at.strftime("%Y-%m-%dT%H:%M:%S.%f").rstrip("0").rstrip(".") + "Z"


def signed(number):
    return -(number + 1 >> 1) if number & 1 else number >> 1


def millis(identity):
    """The time in an id, in microseconds since 1970."""
    return int.from_bytes(identity[:6]) * 1000 if identity[6] >> 4 == 7 and identity[8] >> 6 == 2 else 0


def pair(value):
    found = dict(members(value))
    return text(found[1]), text(found[2])


def condition(value):
    data = Bytes(value)
    number = data.number()
    return (CONDITIONS[number - 1] if 0 < number <= len(CONDITIONS) else None), text(data.rest())


def quantities(found, usage):
    """The numbers of a usage, of all members of an entry."""
    for key, value in found:
        if key == 8:
            numbers = Bytes(value).list(6)
            names = ["input_tokens", "output_tokens", "cache_read_input_tokens", "reasoning_output_tokens",
                     "cache_write_input_tokens", "cache_write_long_input_tokens"]
            usage |= dict(zip(names, numbers))
            if usage.get("counted") is not None:
                usage["counted"] = dict(zip(("input_tokens", "output_tokens"), numbers))
        elif key == 9:
            usage["counted"] = dict(zip(("input_tokens", "output_tokens"), Bytes(value).list(2)))
        elif key == 10:
            usage["modalities"] = usage["modalities"] or {}
            if value:
                named = dict(members(value))
                usage["modalities"][text(named[1])] = named[2]
        elif key == 11:
            named = dict(members(value))
            usage.setdefault("units", {})[text(named[1])] = plain(Bytes(named[2]).decimal())
        elif key in (12, 21):
            usage["passes"] = usage["passes"] or []
            usage["passes"] += [model_run(value)] if key == 12 else []
    if usage.get("cache_write_long_input_tokens", 0) is None:
        del usage["cache_write_long_input_tokens"]
    return usage


def model_run(value):
    """A further model run."""
    found = list(members(value))
    names = "input_tokens cache_read_input_tokens cache_write_input_tokens output_tokens reasoning_output_tokens"
    usage = quantities([each for each in found if each[0] in (8, 11)], dict.fromkeys(names.split()))
    modalities = None
    for key, value in found:
        if key == 2:
            modalities = modalities or {"input": {}, "output": {}}
            for side, modality, number in [(*modality_of(value),)] if value else []:
                modalities.setdefault(side, {})[modality] = number
        elif key == 3:
            name, words = condition(value)
            usage.setdefault("conditions", {}).update({name: words} if name else {})
    if modalities is not None:
        usage["modalities"] = modalities
    return {"model": next((text(value) for key, value in found if key == 1), None), "usage": usage}


def modality_of(value):
    named = dict(members(value))
    modality, side = text(named[1]).removesuffix("_tokens").split("_", 1)
    return {"cache_read_input": "cache_read"}.get(side, side), modality, named[2]


def sources(value, usage):
    for key, value in members(value):
        if key == 1:
            usage["source"] = SOURCES[value - 1]
        elif key == 2:
            data = Bytes(value)
            while data:
                member, source = data.number(), data.number()
                if 0 < member <= len(NUMBERS):
                    usage["sources"][NUMBERS[member - 1]] = SOURCES[source - 1]
        elif key == 3:
            data = Bytes(value)
            member = data.number()
            if 0 < member <= len(NUMBERS):
                usage["flagged"][NUMBERS[member - 1]] = words(FLAGS, data.rest())
        elif key == 4:
            usage["flags"] = words(FLAGS, value)
        elif key == 5:
            name, words_ = condition(value)
            usage.setdefault("conditions", {}).update({name: words_} if name else {})
        elif key == 6:
            usage["counted"] = {"input_tokens": None, "output_tokens": None}


def no_usage():
    empty = dict.fromkeys([*NUMBERS, "modalities", "passes", "counted"])
    return {"source": "unknown", "sources": {}, "flagged": {}, "flags": [], **empty}


def cost(strings, found, price_key, rate_key, lines_key, amount_key, list_key):
    prices = [value for key, value in strings if key == price_key]
    if not prices:
        return None
    price = group(prices[-1], {1: ("currency", text), 2: ("price_id", text), 3: ("price_match", text),
                               4: ("at_least", bool)})
    decimal = lambda value: Bytes(value).decimal()
    names = {1: ("meter", text), 2: ("model", text), 3: ("price_match", text), 4: ("unit", text),
             5: ("unit_price", decimal), 6: ("list_unit_price", decimal)}
    lines = [group(value, names) for key, value in strings if key == rate_key]
    found = dict(found)
    data, total = Bytes(found.get(lines_key, b"")), None
    for line in lines:
        form = data.number()
        if form & 1:
            line["tokens"] = data.number()
        if form & 2:
            line["quantity"] = data.decimal()
        count = Decimal(line.get("tokens", line.get("quantity", 0)))
        product = EXACT.multiply(count, line["unit_price"])
        line["amount"] = data.decimal() if form & 4 else product or Decimal(0)
        total = line["amount"] if total is None else EXACT.add(total, line["amount"])
    amount = Bytes(found[amount_key]).decimal() if amount_key in found else total
    listed = Bytes(found[list_key]).decimal() if list_key in found else amount
    for line in lines:
        line |= {name: plain(line[name]) for name in ("quantity", "unit_price", "list_unit_price", "amount") if name in line}
    return price | {"lines": lines, "amount": plain(amount), "list_amount": plain(listed)}


COST, BEFORE = (10, 11, 15, 16, 17), (13, 14, 22, 23, 24)


def timing(found):
    times = {"time_to_first_chunk": None, "time_to_first_token": None, "time_per_output_token": None,
             "longest_stall": None, "gateway": 0.0, "output_chunks": 0, "duration": found.get(2, 0) / 1e6}
    data = Bytes(found.get(13, b""))
    numbers = data.list(7)
    for name, micros in zip(times, numbers[:5]):
        times[name] = micros / 1e6 if micros is not None else times[name]
    times["output_chunks"] = numbers[5] or 0
    if numbers[6] is not None:
        stages = zip(STAGES, data.list(9))
        times["stages"] = {stage: micros / 1e6 for stage, micros in stages if micros is not None}
    if 14 in found:
        data = Bytes(found[14])
        times["gaps"] = [data.number() for _ in range(15) if data]
    return times


def error(value):
    return group(value, {1: ("status", text), 2: ("type", text), 3: ("code", text)})


def completion(value, usage):
    texts = {40: ("response_id", text), 41: ("response_model", text), 42: ("service_tier", text), 44: ("error", error),
             45: ("requests", int), 47: ("reported_cost", text)}
    found = group(value, texts, {43: ("finish_reasons", text), 46: ("models", model_run)})
    return found | {"usage": quantities(members(value), usage)}


def pending(value):
    names = ("id started_at tenant upstream response_id operation route provider request_model response_model"
             " service_tier").split()
    found = {}
    for key, value in members(value):
        if key == 12:
            name, words = condition(value)
            found.setdefault("conditions", {}).update({name: words} if name else {})
        elif key <= len(names):
            found[names[key - 1]] = value
    base = millis(found["id"])
    return {name: str(uuid.UUID(bytes=value)) if name == "id" else time(base + signed(value)) if name == "started_at"
            else value if name == "conditions" else text(value) for name, value in found.items()}


def request(identity, strings, found):
    """What a reservation and a record have in common."""
    call = {"stream": False}
    request_id = text(found[4]) if 4 in found else str(uuid.UUID(bytes=found.get(5, identity)))
    call |= {"id": str(uuid.UUID(bytes=identity)), "request_id": request_id,
             "started_at": time(millis(identity) + signed(found[1])), "key_id": None, "request_model": None}
    for key, value in strings:
        if key == 1:
            call["tenant"] = text(value)
        elif key == 2:
            caller = group(value, {1: ("key_id", text), 2: ("identity", lambda n: ["api_key", "header", "unknown"][n - 1])},
                           {3: ("labels", pair)})
            call |= caller | ({"labels": dict(caller["labels"])} if "labels" in caller else {})
        elif key == 3:
            call |= group(value, {1: ("operation", text), 2: ("route", text), 3: ("stream", bool), 4: ("upstream", text),
                                  5: ("provider", text), 6: ("context", bool), 7: ("background", bool)})
        elif key in (4, 6):
            call[{4: "request_model", 6: "service_tier"}[key]] = text(value)
    return call


def reserve(identity, strings, found, _):
    tokens = Bytes(found.get(8, b"")).list(2)
    tokens = {name: number for name, number in zip(("input_tokens", "output_tokens"), tokens) if number is not None}
    amount = plain(Bytes(found[16]).decimal()) if 16 in found else None
    return request(identity, strings, found) | tokens | {"amount": amount}


def post(identity, strings, found, every):
    record = {"attempt": found.get(7, 1), "gateway": "", "resource": {}, "labels": {}, "response_model": None,
              "response_id": text(found[6]) if 6 in found else None, "service_tier": None, "status": None,
              "error_type": None, "finish_reasons": [], "usage": no_usage(), "cost": None}
    record |= request(identity, strings, found)
    end = millis(identity) + signed(found[1]) + found.get(2, 0) + signed(found.get(3, 0))
    record |= {"ended_at": time(end), "timing": timing(found)}
    for key, value in strings:
        if key == 5:
            record["response_model"] = text(value)
        elif key == 7:
            origin = group(value, {1: ("gateway", text)}, {2: ("resource", pair)})
            record |= {"gateway": origin["gateway"], "resource": dict(origin.get("resource", []))}
        elif key == 8:
            names = {1: ("status", int), 2: ("end", lambda number: ENDS[number - 1]), 3: ("error_type", text)}
            record |= group(value, names, {7: ("finish_reasons", text)})
            provider = group(value, {4: ("status", text), 5: ("type", text), 6: ("code", text), 8: ("error", bool)})
            if provider.pop("error", False):
                record["error"] = provider
        elif key == 9:
            sources(value, record["usage"])
        elif key == 12:
            names = {1: ("reason", lambda number: UNKNOWN[number - 1]), 2: ("of", text), 3: ("price_id", text),
                     4: ("day", text), 5: ("combination", text)}
            record.setdefault("cost_unknown", []).append(group(value, names))
    quantities(every, record["usage"])
    owed = cost(strings, every, *COST)
    record["cost_known" if owed and owed.get("at_least") else "cost"] = owed
    return record | ({"reported_cost": text(found[18])} if 18 in found else {})


def progress(identity, strings, found, every):
    usage = no_usage()
    names = {5: "response_model", 6: "service_tier"}
    entry = dict.fromkeys(names.values()) | {names[key]: text(value) for key, value in strings if key in names}
    for value in (value for key, value in strings if key == 9):
        sources(value, usage)
    entry |= {"response_id": text(found[6])} if 6 in found else {}
    return entry | {"at": time(millis(identity) + signed(found[19])), "usage": quantities(every, usage)}


def void(identity, strings, found, _):
    return {"ended_at": time(millis(identity) + signed(found[19])), "reason": VOIDS[found[20] - 1]}


def correction(identity, strings, found, every):
    names = {1: "tenant", 15: "reason"}
    entry = {"reason": ""} | {names[key]: text(value) for key, value in strings if key in names}
    base = millis(found[25])
    entry |= {"corrects": str(uuid.UUID(bytes=found[25])), "started_at": time(base + signed(found[1])),
              "made_at": time(base + signed(found[19]))}
    entry |= {name: known for name, known in (("before", cost(strings, every, *BEFORE)),
                                              ("after", cost(strings, every, *COST))) if known}
    if 26 in found:
        usage = no_usage()
        for value in (value for key, value in strings if key == 9):
            sources(value, usage)
        entry["completion"] = completion(found[26], usage)
    if 27 in found:
        entry["completed"] = group(found[27], {1: ("response_model", text), 2: ("source", lambda n: SOURCES[n - 1])})
    return entry


def checkpoint(identity, strings, found, every):
    sums = [dict(members(value)) for key, value in every if key == 31]
    entry = {"at": time(signed(found[19])), "posts": found.get(28, 0), "voids": found.get(29, 0),
             "corrections": found.get(30, 0), "unknown_cost": found.get(32, 0)}
    entry |= {"costs": {text(one[1]): plain(Bytes(one[2]).decimal()) for one in sums}} if sums else {}
    entry |= {"oldest_open": found[33]} if 33 in found else {}
    requests = [pending(value) for key, value in every if key == 34]
    return entry | ({"pending": requests} if requests else {})


def refusals(identity, strings, found, every):
    base = millis(identity)
    names = {1: ("tenant", text), 2: ("others", bool), 3: ("reason", text), 4: ("status", int), 5: ("admitted", bool),
             6: ("count", int)}
    gateway = next((text(value) for key, value in strings if key == 16), "")
    counts = [group(value, names) for key, value in every if key == 36]
    return {"gateway": gateway, "at": time(base + signed(found[19])), "minute": time(base + signed(found[35])),
            "counts": counts}


def entry(seq, kind, payload, known):
    """An entry as an object. `known` are the strings so far, and learns those of this entry."""
    if payload[-1:] != b".":
        raise ValueError("its end is missing")
    data, strings, missing = Bytes(payload[:-1]), [], None
    identity = data.data[:16]
    data.at = 16
    while key := data.number():
        number = data.number()
        if key & 1:
            known[number] = data.bytes()
        if number not in known:
            missing = number
        strings.append((key >> 1, known.get(number)))
        known.pop(0, None)
    if kind not in KINDS:
        return None
    if missing is not None:
        raise KeyError(f"string {missing} is lost")
    return made(seq, kind, identity, tuple(strings), data.rest())


@lru_cache(1 << 12)
def made(seq, kind, identity, strings, rest):
    every = list(members(rest))
    of_kind = globals()[KINDS[kind]](identity, strings, dict(every), every)
    named = {} if kind == 6 else {"id": str(uuid.UUID(bytes=identity))}
    return {"entry": KINDS[kind]} | named | of_kind | ({"seq": seq} if kind == 2 else {})


class File:
    """The frames of a file. Damage is left out and told."""

    def __init__(self, data, ledger=None):
        header = data[:512]
        self.is_whole = len(header) == 512 and crc32c(header[:508]) == int.from_bytes(header[508:], "little")
        if self.is_whole:
            if header[:8] != b"taxi-tlj" or int.from_bytes(header[8:10], "little") != 5:
                raise ValueError("another format")
            ledger = header[451:467]
        self.data, self.seed, self.told = data, crc32c(ledger), []
        self.seq = int.from_bytes(header[12:20], "little") - 1 if self.is_whole else 0
        self.chain = int.from_bytes(header[20:24], "little")
        self.at = 512
        self.open = []

    def frame(self, at, chains):
        """The kind, the number and the payload of the frame that begins here, and its chain value; or None."""
        head = self.data[at:at + 16]
        length, kind = int.from_bytes(head[:3], "little"), head[3] if len(head) == 16 else 0
        if len(head) < 16 or length > 1 << 20:
            return None
        chain = int.from_bytes(head[12:], "little")
        chains = chains if kind < 0x80 else [self.seed]
        if not any(crc32c(head[:12], before) == chain for before in chains):
            return None
        payload = self.data[at + 16:at + 16 + length]
        if len(payload) < length or crc32c(payload, self.seed) != int.from_bytes(head[8:12], "little"):
            return None
        return kind, int.from_bytes(head[4:8], "little"), payload, chain

    def resume(self):
        """The first frame behind damage that is surely as it was written."""
        head = self.data[self.at:self.at + 16]
        chains = [self.chain] if self.is_whole or self.at > 512 else []
        if chains and len(head) == 16:
            chains += [int.from_bytes(head[12:], "little"), crc32c(head[:12], self.chain)]
        for at in range(self.at, len(self.data) - 16):
            if at > self.at and chains:
                frame = self.frame(at, chains)
                if frame and frame[0] < 0x80:
                    return at, frame
            head = self.data[at:at + 16]
            after = at + 16 + int.from_bytes(head[:3], "little")
            frame = self.frame(after, [int.from_bytes(head[12:], "little")])
            if frame and frame[0] < 0x80:
                return after, frame
        return None

    def entries(self):
        known, carried, carries = {}, [], 0
        if not self.is_whole:
            self.told.append("the header is damaged")
        while self.at < len(self.data):
            frame, at = self.frame(self.at, [self.chain]), self.at
            seq = self.seq + 1 if frame and frame[0] < 0x40 else self.seq
            if not frame or frame[0] < 0x80 and frame[1] != seq & 0xFFFFFFFF:
                found = self.resume()
                self.told.append(f"damaged at byte {self.at}")
                if not found:
                    return
                at, frame = found
                near = self.seq + (frame[1] - self.seq + (1 << 31)) % (1 << 32) - (1 << 31)
                seq = near
            kind, _, payload, chain = frame
            self.at = at + 16 + len(payload)
            if kind < 0x80:
                self.chain, self.seq = chain, seq
            if kind in (6, 0x41):
                known.clear()
            if kind == 0x82:
                table = Bytes(payload[:-1])
                while table:
                    number = table.number()
                    known[number] = table.bytes()
            if kind in (0x83, 0x84):
                number, index, carries = (int.from_bytes(payload[a:b], "little") for a, b in ((0, 8), (8, 12), (12, 16)))
                carried = carried if index > 1 else []
                if index == len(carried) + 1:
                    carried.append(entry(number, 1 if kind == 0x83 else 4, payload[16:], {}))
            if kind < 0x40:
                if kind == 6 and carried and len(carried) == carries:
                    self.open = carried
                carried = []
                try:
                    read = entry(seq, kind, payload, known)
                except (ValueError, LookupError) as error:
                    self.told.append(f"entry {seq} cannot be read: {error}")
                else:
                    if read:
                        yield seq, read


def read(path):
    data = open(path, "rb").read()
    if path.endswith(".zst"):
        import zstandard
        data = zstandard.ZstdDecompressor().stream_reader(data, read_across_frames=True).read()
    return data


if __name__ == "__main__":
    for path in sys.argv[2:] if sys.argv[1:2] == ["--open"] else sys.argv[1:]:
        file = File(read(path))
        entries = [read_entry for _, read_entry in file.entries()]
        for read_entry in file.open if sys.argv[1] == "--open" else entries:
            print(json.dumps(read_entry, ensure_ascii=False))
        for told in file.told:
            print(f"{path}: {told}", file=sys.stderr)
