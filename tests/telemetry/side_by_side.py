"""The same figures from records, from Prometheus and by OTLP, side by side, after a run in which much goes wrong.

Tenants ask for chats, streams and messages of several models. Some leave, some engines fail, refuse or are not there, and
the gateway refuses some callers itself. The collector is away for a time (240 seconds, or as many as the argument says). Then
the gateway is restarted, and then it is killed while streams run and others have just ended. Prometheus scrapes the gateway;
the collector keeps spans and log records, and passes metrics on to a VictoriaMetrics. At the end each figure is computed
from the ledger's records alone, and compared with what both stores have. It is compared for each life of the process.

The ledger loses nothing. A counter of a process that was killed ends with its last scrape or push, so what ended after that is
in no store: exactly these records are missing, and no others. The requests that were open when it was killed are told by the
next start. The ledger's counts of refusals are written once a minute, so a killed gateway loses those of its last minute. Ends with
1 where anything differs.
"""

import concurrent.futures
import contextlib
import json
import pathlib
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections import Counter
from datetime import datetime

import stage
from figures import FIGURES, REFUSALS, died
from findings import expect, wrong
from receivers import Collector
from spans import SERVER
from stores import Store

AWAY_SECONDS = float(sys.argv[1]) if len(sys.argv) > 1 else 240
# Between two scrapes, and between two pushes. Twice this less `LAST_SECONDS` is more than this, so in each interval there is a
# moment that has both behind it and neither next one near, however far apart they are.
INTERVAL_SECONDS = 4
# A series is told 0 at its first scrape, and its number at the next one.
REST_SECONDS = 3.5 * INTERVAL_SECONDS
# What happens before the kill must not last longer, so that nothing is told meanwhile.
LAST_SECONDS = 1.5
# Sums of seconds and money are floating point numbers in metrics.
APART_MAX = 1e-9
TENANTS = ["acme", "beta", "gamma"]
# The model of an engine that is not there.
GONE = "gone-1"
QUESTION = [{"role": "user", "content": "Where to? " * 20}]


class Passing(Collector):
    """A collector that keeps spans and log records, and passes metrics on."""

    def __init__(self, store):
        self.store, self.last = store, 0
        super().__init__()

    def keep(self, request):
        body = request.SerializeToString()
        passed = urllib.request.Request(f"{self.store.url}/opentelemetry/v1/metrics", body,
                                        {"content-type": "application/x-protobuf"})
        with urllib.request.urlopen(passed, timeout=stage.SECONDS_MAX) as answer:
            assert answer.status in (200, 204), answer.status
        self.last = time.time()

    def told(self):
        """How many log records, and how many spans, it has of each request."""
        records = [record for record in self.records if record.event_name == "taximeter.request"]
        spans = [span for span in self.spans if span.kind == SERVER]
        return [Counter(pair.value.string_value for one in kept for pair in one.attributes
                        if pair.key == "taximeter.request.id") for kept in (records, spans)]


class Life:
    """One life of the gateway's process."""

    def __init__(self, is_killed):
        self.is_killed, self.begun, self.ended = is_killed, time.time(), None

    def has(self, at):
        return self.begun <= at < self.ended


def kinds(number):
    """Requests of every kind: their path and body, what the engine is to do, and after which time the client leaves."""
    chat = {"model": ["gpt-4o-mini", "gpt-4o"][number % 2], "messages": QUESTION}
    stream = {**chat, "stream": True}
    message = {"model": "claude-sonnet-4-5", "max_tokens": 8, "messages": QUESTION}
    return [
        ("/v1/chat/completions", chat, "", None),
        ("/v1/chat/completions", stream, "", None),
        ("/v1/chat/completions", {**chat, "model": "gpt-4o-mini", "max_tokens": 4}, "cached_tokens=20", None),
        ("/v1/messages", message, "", None),
        ("/v1/messages", {**message, "stream": True}, "", None),
        ("/v1/embeddings", {"model": "text-embedding-3-small", "input": "Where to?"}, "", None),
        # It has no price, and the engine says nothing of its usage.
        ("/v1/chat/completions", {**stream, "model": "llama-9"}, "no_usage", None),
        ("/v1/chat/completions", stream, "die_after=3", None),
        ("/v1/chat/completions", stream, "error_event_after=2", None),
        ("/v1/chat/completions", chat, "status=503", None),
        ("/v1/chat/completions", stream, "status=429", None),
        ("/v1/chat/completions", chat, "status=400", None),
        ("/v1/chat/completions", {**chat, "model": GONE}, "", None),
        # One leaves before the first token, one behind it.
        ("/v1/chat/completions", stream, "prefill_ms=5000", 0.3),
        ("/v1/chat/completions", stream, "gap_ms=200,output_tokens=50", 0.5),
    ]


def ride(gateway, number):
    """One request of each kind, of one tenant; the codes of the gateway that it is answered with."""
    tenant, codes = TENANTS[number % len(TENANTS)], Counter()
    for path, body, simulate, leaves in kinds(number):
        if leaves:
            gateway.leave(body, simulate, leaves, x_tenant_id=tenant)
            continue
        _, text = gateway.answer(path, body, x_tenant_id=tenant, x_simulate=simulate)
        if body["model"] == GONE:
            codes[code(text)] += 1
    return codes


def rides(gateway, count):
    with concurrent.futures.ThreadPoolExecutor(len(TENANTS)) as pool:
        return sum(pool.map(lambda number: ride(gateway, number), range(count)), Counter())


def code(text):
    return json.loads(text)["error"]["code"]


def run_on(gateway, simulate, count, tenant):
    """Streams that are read by threads of their own."""
    body = {"model": "gpt-4o-mini", "stream": True, "messages": QUESTION}
    read = lambda: gateway.leave(body, simulate, stage.PATIENCE_SECONDS, x_tenant_id=tenant)
    threads = [threading.Thread(target=read, daemon=True) for _ in range(count)]
    for thread in threads:
        thread.start()
    return threads


def refused(gateway):
    """How often the gateway refused a caller itself, by code."""
    codes = Counter()

    def ask(path, body, **headers):
        codes[code(gateway.answer(path, body, **headers)[1])] += 1

    chat = {"model": "gpt-4o-mini", "messages": QUESTION}
    running = run_on(gateway, "prefill_ms=1500", 1, "greedy")
    time.sleep(0.5)
    ask("/v1/chat/completions", chat, x_tenant_id="greedy")
    for tenant in TENANTS:
        ask("/v1/nowhere", {}, x_tenant_id=tenant)
        ask("/v1/chat/completions", {**chat, "model": "unheard-of"}, x_tenant_id=tenant)
    for thread in running:
        thread.join(stage.SECONDS_MAX)
    return codes


def just_told(store, collector):
    """Waits for a moment with the last scrape and the last push just behind, and both next ones not near."""
    def is_now():
        found = store.asked('timestamp(up{job="taximeter"})')
        times = [float(found[0]["value"][1]), collector.last]
        return all(0.1 < time.time() - at < INTERVAL_SECONDS - LAST_SECONDS for at in times)

    stage.patiently(is_now, "a moment between two scrapes")


def life_with_collector_away(gateway, collector):
    """How many requests were asked while it was away, and the codes of all."""
    codes = rides(gateway, 3)
    time.sleep(REST_SECONDS)
    before = collector.told()
    collector.close()
    asked, end = 0, time.monotonic() + AWAY_SECONDS
    while time.monotonic() < end:
        codes += ride(gateway, asked)
        asked += 1
        time.sleep(1)
    expect(collector.told() == before, "a collector that is away was told something")
    collector.open()
    waiting = before[0].total() + asked * len(kinds(0))
    stage.patiently(lambda: all(told.total() >= waiting for told in collector.told()), "what waited for the collector")
    codes += refused(gateway)
    time.sleep(REST_SECONDS)
    return asked * len(kinds(0)), codes


def life_that_is_killed(gateway, store, collector):
    """Its codes."""
    codes = rides(gateway, 3) + refused(gateway)
    run_on(gateway, "gap_ms=300,output_tokens=1000", 2, "beta")
    run_on(gateway, "prefill_ms=600000", 1, "gamma")
    time.sleep(REST_SECONDS)
    just_told(store, collector)
    for number in range(5):
        gateway.ask("/v1/chat/completions", {**stage.CHAT, "stream": number % 2 == 0}, x_tenant_id="acme")
    gateway.child.kill()
    gateway.child.wait()
    return codes


def records_of(folder, *words):
    told = [stage.BINARY, *words, "--store", "sqlite", "--data-dir", str(folder / "side")]
    return subprocess.run(told, capture_output=True, check=True, text=True).stdout


def seconds(text):
    return datetime.fromisoformat(text).timestamp()


def of_life(lives, record, while_it_runs):
    """The life of the process that tells of a record, and when it does so."""
    at = seconds(record["ended_at"])
    if died(record) and while_it_runs:
        # Long before the kill.
        at = seconds(record["started_at"])
    elif died(record):
        life = next(life for life in lives if life.begun > seconds(record["started_at"]))
        return life, life.begun
    return next(life for life in lives if life.has(at)), at


class Told:
    """What a store has of one metric: of each series the last number of each life, and when it was told last."""

    def __init__(self, store, name, lives):
        self.series = [(labels, [self.of(samples, life) for life in lives]) for labels, samples in store.raw(name)]

    @staticmethod
    def of(samples, life):
        inside = [at for at in samples if life.has(at)]
        return (max(inside), samples[max(inside)]) if inside else (0, 0)

    def last(self, number):
        return max((values[number][0] for _, values in self.series), default=0)

    def sums(self, number, key):
        sums = Counter()
        for labels, values in self.series:
            sums[key(labels)] += values[number][1]
        return {labels: amount for labels, amount in sums.items() if amount}


def same(one, other, apart=0):
    return abs(float(one) - float(other)) <= float(apart) + APART_MAX * max(1, abs(float(one)))


def compare(stores, lives, records):
    """A row of each figure. Says where a store has another number than the records of which it could be told, and how many
    figures of each store lack some."""
    lacking, rows = [0, 0], []
    # The counter of requests is in every scrape and push, so it says when the last one was.
    lasts = [[Told(store, FIGURES[0].names[at], lives).last(number) for number in range(len(lives))]
             for at, store in enumerate(stores)]

    def heard(figure, at, number):
        of_lives = [of_life(lives, record, figure.while_it_runs) for record in records]
        of_this = [(record, when) for record, (life, when) in zip(records, of_lives) if life is lives[number]]
        told = [record for record, when in of_this if when < lasts[at][number]]
        untold = len(of_this) - len(told)
        expect(lives[number].is_killed or not untold, f"{stores[at].name}, life {number + 1}: {untold} requests came too late")
        return told

    for figure in FIGURES:
        (whole, _), notes, stored = figure.sums(records), {}, [Counter(), Counter()]
        for at, store in enumerate(stores):
            told, could = Told(store, figure.names[at], lives), Counter()
            for number in range(len(lives)):
                true, apart = figure.sums(heard(figure, at, number))
                has = {labels: sum_ for labels, sum_ in told.sums(number, figure.key).items() if figure.told(labels)}
                for labels in sorted(set(true) | set(has)):
                    if not same(true.get(labels, 0), has.get(labels, 0), apart[labels]):
                        notes.setdefault(labels, []).append(f"{store.name} DIFFERS")
                        expect(False, f"{store.name}, life {number + 1}: {figure.title} {labels} is {has.get(labels, 0)} and "
                                      f"not {true.get(labels, 0)}")
                stored[at].update(has)
                could.update(true)
            for labels in whole:
                if not same(lacks := whole[labels] - could[labels], 0):
                    lacking[at] += 1
                    notes.setdefault(labels, []).append(f"{store.name} was not told of {lacks:.6g} before the kill")
        for labels in sorted(set(whole) | set(stored[0]) | set(stored[1])):
            note = "; ".join(notes.get(labels, ["equal"]))
            rows.append((figure.title, "/".join(labels), whole.get(labels, 0), stored[0][labels], stored[1][labels], note))
    return rows, lacking


def compare_refusals(stores, lives, folder, asked, records):
    """The same of the codes that the gateway answered with itself; `asked` has the clients' own counts of each life."""
    ledger, clients = Counter(record.get("error_type") for record in records), sum(asked, Counter())
    for row in json.loads(records_of(folder, "refusals", "--json"))["rows"]:
        ledger[row["reason"]] += row["requests"]
    sides = []
    for at, store in enumerate(stores):
        told = Told(store, REFUSALS.names[at], lives)
        side = sum((Counter(told.sums(number, REFUSALS.key)) for number in range(len(lives))), Counter())
        sides.append({labels[0]: count for labels, count in side.items()})
    rows = []
    for name in sorted({*clients, *sides[0], *sides[1]}):
        has, numbers = clients[name], [side.get(name, 0) for side in sides]
        for store, number in zip(stores, numbers):
            expect(number == has, f"{store.name}: {number} refusals {name}, clients had {has}")
        # Those that are on record are never lost.
        may_lose = asked[1][name] if name not in {record.get("error_type") for record in records} else 0
        kept = has - may_lose <= ledger[name] <= has
        expect(kept, f"the ledger has {ledger[name]} refusals {name} of {has}, of which it may have lost {may_lose}")
        note = "equal" if ledger[name] == has else f"the kill lost {has - ledger[name]} of the ledger's last minute"
        rows.append((REFUSALS.title, name, ledger[name], *numbers, note))
    return rows


def compare_each(collector, lives, records):
    """Log records and spans: each request is told of once, and none that is neither on record nor refused."""
    known = {record["id"] for record in records}
    # What ended shortly before the kill may have been told or not; what it cut off has no end that was seen.
    told_late = lives[1].ended - LAST_SECONDS - INTERVAL_SECONDS
    may_lack = {record["id"] for record in records
                if died(record) or told_late < seconds(record["ended_at"]) < lives[1].ended}
    for what, told in zip(("log records", "spans"), collector.told()):
        twice = [name for name, count in told.items() if count > 1]
        expect(not twice, f"{what}: {len(twice)} requests are told of twice")
        lost = known - set(told) - may_lack
        expect(not lost, f"{what}: {len(lost)} of {len(known)} requests are lost")
        of_records = len(known & set(told))
        print(f"{what}: {of_records} of {len(known)} requests on record, and the kill lost {len(known) - of_records}; "
              f"{len(set(told) - known)} others")


def main():
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as ends:
        folder = pathlib.Path(name)
        engine = ends.enter_context(stage.engine(folder))
        admin, nobody = f"127.0.0.1:{stage.free_port()}", f"127.0.0.1:{stage.free_port()}"
        stores = [Store(folder, "Prometheus", admin, INTERVAL_SECONDS), Store(folder, "VictoriaMetrics", None, 60)]
        for store in stores:
            store.start()
            ends.callback(store.stop)
        collector = Passing(stores[1])
        otlp = {"endpoint": collector.url, "interval_seconds": INTERVAL_SECONDS, "logs": "on"}
        telemetry = {"otlp": otlp, "traces": {}, "access_log": "all"}
        upstream = lambda name, dialect, models, at=engine: {
            "name": name, "url": f"http://{at}", "dialect": dialect, "models": models}
        more = {
            "admin": admin,
            "upstreams": [upstream("openai", "openai", ["gpt-*", "text-*"]), upstream("anthropic", "anthropic", ["claude-*"]),
                          upstream("local", "vllm", ["llama-*"]), upstream("gone", "openai", [GONE], nobody)],
            "tenants": {"header": {"name": "x-tenant-id", "trusted_peers": ["127.0.0.1"]},
                        "list": [{"name": "greedy", "concurrency": 1}]},
        }
        lives, asked = [], []

        @contextlib.contextmanager
        def life(is_killed=False):
            with stage.gateway(folder, "side", engine, telemetry, more) as gateway:
                lives.append(Life(is_killed))
                yield gateway
            lives[-1].ended = time.time()

        with life() as gateway:
            away, codes = life_with_collector_away(gateway, collector)
            asked.append(codes)
        with life(is_killed=True) as gateway:
            asked.append(life_that_is_killed(gateway, stores[0], collector))
        with life() as gateway:
            asked.append(rides(gateway, 3) + refused(gateway))
            time.sleep(REST_SECONDS)
        collector.close()
        stage.get(f"{stores[1].url}/internal/force_flush")
        records = [json.loads(line) for line in records_of(folder, "records").splitlines()]
        rows, lacking = compare(stores, lives, records)
        rows += compare_refusals(stores, lives, folder, asked, records)
        print(f"{'figure':33} {'of':60} {'records':>12} {'Prometheus':>12} {'OTLP':>12}")
        for title, of, *numbers, note in rows:
            print(f"{title:33} {of:60} " + " ".join(f"{float(number):12.6g}" for number in numbers) + f"  {note}")
        compare_each(collector, lives, records)
        dead = sum(map(died, records))
        expect(dead == 3, f"{dead} requests were open at the kill")
        expect(all(lacking), "nothing ended between the last scrape or push and the kill")
        print(f"{len(records)} requests, {away} while the collector was away for {AWAY_SECONDS:.0f} s, {dead} open at the kill")
    print(f"{len(wrong)} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
