"""Rare callers, each with one request between two scrapes: what queries of real stores make of them.

Two servers of Prometheus and VictoriaMetrics scrape one gateway every two seconds. Callers come that each ask once; one
scraper is away for a time and comes back; the gateway is restarted. What counters have increased by must be what was
asked: exactly by the samples that each store has, exactly by VictoriaMetrics' `increase`, and by Prometheus' within the
half scrape that it extrapolates at each end. Ends with 1 where anything differs.

usage: rare.py [CALLERS [SECONDS]]    callers of each phase; how long the one scraper is away
"""

import contextlib
import json
import pathlib
import subprocess
import sys
import tempfile
import time

import stage
from findings import expect, wrong
from stores import Store

# Callers of each phase.
CALLERS = int(sys.argv[1]) if len(sys.argv) > 1 else 40
# An unoptimised gateway needs a while for the series of these.
SCRAPE_SECONDS = 2
# Long enough for all to have scraped twice and more.
REST_SECONDS = 7 * SCRAPE_SECONDS
AWAY_SECONDS = int(sys.argv[2]) if len(sys.argv) > 2 else REST_SECONDS
TENANTS = {"tenants": {"header": {"name": "x-tenant-id", "trusted_peers": ["127.0.0.1"]}},
           "limits": {"series_per_metric_max": 20_000}}
NAMES = ["taximeter_requests_total", "taximeter_tokens_total", "taximeter_cost_total",
         "gen_ai_server_request_duration_seconds_count"]


def increased(values):
    """What a counter has gained from its first sample on; where it falls it began anew at 0."""
    return sum(after - before if after >= before else after for before, after in zip(values, values[1:]))


def ask_once(gateway, callers):
    """One chat of each of these."""
    for caller in callers:
        assert gateway.ask("/v1/chat/completions", {**stage.CHAT, "max_tokens": 3}, x_tenant_id=f"rare-{caller}") == 200


def truth(folder):
    """What the ledger's records say, by the names of metrics."""
    words = [stage.BINARY, "records", "--store", "sqlite", "--data-dir", str(folder / "rare")]
    printed = subprocess.run(words, capture_output=True, check=True, text=True).stdout
    records = [json.loads(line) for line in printed.splitlines() if line]
    usage = [record["usage"] for record in records]
    return {
        "taximeter_requests_total": len(records),
        "gen_ai_server_request_duration_seconds_count": len(records),
        "taximeter_tokens_total": sum(one["input_tokens"] + one["output_tokens"] for one in usage),
        "taximeter_cost_total": sum(float(record["cost"]["amount"]) for record in records if record.get("cost")),
    }


def compare(stores, true):
    for store in stores:
        slowest = store.slowest()
        expect(slowest < SCRAPE_SECONDS, f"{store.name}: a scrape took {slowest:.2f} s, which is too long: use fewer callers")
        for name in NAMES:
            stored = sum(increased(list(values.values())) for _, values in store.raw(name))
            told = store.increase(name)
            if store.name.startswith("Prometheus"):
                # It goes on behind the last sample of each series, for at most 1.1 scrapes.
                most = 1 + 1.1 * SCRAPE_SECONDS / (REST_SECONDS - 2 * SCRAPE_SECONDS)
                fits = 1 - 1e-9 <= told / true[name] <= most
            else:
                fits = abs(told - true[name]) <= 1e-9 * true[name]
            exact = abs(stored - true[name]) <= 1e-9 * true[name]
            expect(exact, f"{store.name}: {name} has {stored} by its samples, true are {true[name]}")
            expect(fits, f"{store.name}: sum(increase({name})) is {told}, true are {true[name]}")
            print(f"{store.name:20} {name:46} true {true[name]:>12.6g} samples {stored:>12.6g} increase {told:>12.6g}")


def main():
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as ends:
        folder = pathlib.Path(name)
        engine = ends.enter_context(stage.engine(folder))
        admin = f"127.0.0.1:{stage.free_port()}"
        telemetry = {"tenants_max": 20_000}
        # With a price for the model.
        upstream = {"name": "local", "url": f"http://{engine}", "dialect": "openai"}
        more = {"admin": admin, "upstreams": [upstream], **TENANTS}
        stores = [
            Store(folder, "Prometheus", admin, SCRAPE_SECONDS),
            # On the same address and of the same version: its query tells it apart.
            Store(folder, "Prometheus-second", admin, SCRAPE_SECONDS, {"params": {"scraper": ["second"]}}),
            Store(folder, "VictoriaMetrics", admin, SCRAPE_SECONDS),
        ]
        for store in stores:
            store.start()
            ends.callback(store.stop)
        with stage.gateway(folder, "rare", engine, telemetry, more) as gateway:
            stage.patiently(lambda: all(store.raw("taximeter_ledger_entries_total") for store in stores), "scrapes")
            ask_once(gateway, range(CALLERS))
            time.sleep(REST_SECONDS)
            # Some come again, others for the first time, while one scraper is away.
            stores[1].stop()
            ask_once(gateway, range(CALLERS // 2, CALLERS + CALLERS // 2))
            time.sleep(AWAY_SECONDS)
            stores[1].start()
            time.sleep(REST_SECONDS)
        with stage.gateway(folder, "rare", engine, telemetry, more) as gateway:
            ask_once(gateway, range(CALLERS, 2 * CALLERS))
            ask_once(gateway, range(CALLERS, CALLERS + 9))
            time.sleep(REST_SECONDS)
            stage.get(f"{stores[2].url}/internal/force_flush")
        compare(stores, truth(folder))
    print(f"{len(wrong)} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
