"""The condition of each alert, made for real. See run.

A case is a function that gets a `Case`, makes the condition, and says what the text must be: words with numbers in between, which it
checks. Cases of one round run at the same time. Ends with 1 where an alert does not come, or where its text is not true.
"""

import concurrent.futures
import contextlib
import json
import os
import pathlib
import re
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse

import stage
from faults import Source, slow_disk, strange_engine, receiver
from setting import DEPLOY, FASTER, Gateway, fast_rules, in_background, watching

# Cases at the same time: a machine of two cores has the programs of so many.
AT_ONCE = 6
# Longest wait for an alert. The slowest waits for an hour, divided.
SECONDS_MAX = 240
# What only a fault of our own code raises: a rule test shows it.
OWN_FAULTS = {"TaximeterPanics", "TaximeterSenderRestarts", "TaximeterEntriesRejected"}
CASES = {}


def case(*alerts):
    def keep(make):
        for alert in alerts:
            CASES[alert] = make
        return make
    return keep


class Case:
    """One alert, and what is there for it."""

    def __init__(self, alert, folder, engine, watching):
        self.alert, self.folder, self.engine, self.watching = alert, folder, engine, watching
        self.job = f"taximeter-{alert.removeprefix('Taximeter').lower()}"
        self.over = threading.Event()
        self.gateways, self.since = [], time.monotonic()

    def gateway(self, more=None, name=""):
        gateway = Gateway(self.folder, self.job + name, self.engine, more or {})
        self.gateways.append(gateway)
        return gateway

    def started(self, more=None, **how):
        """A gateway that is watched, and was scraped before anything goes wrong."""
        gateway = self.gateway(more).start(**how)
        self.watch(gateway)
        return gateway

    def watch(self, gateway):
        self.watching.watch(self.job, gateway.admin_at)
        query = urllib.parse.quote(f'up{{job="{self.job}"}} == 1')
        look = lambda: stage.json_of(f"{self.watching.prometheus}/api/v1/query?query={query}")["data"]["result"]
        stage.patiently(look, f"a scrape of {self.job}")
        # Two more, so that an increase from nothing is seen.
        time.sleep(2)
        self.since = time.monotonic()

    def again(self, work):
        return in_background(work, self.over)

    def end(self):
        self.over.set()
        for gateway in self.gateways:
            gateway.stop()


FAKETIME = os.environ["FAKETIME_LIB"]


def at(time_of):
    """The environment of a program that runs at another time."""
    return {"LD_PRELOAD": FAKETIME, "FAKETIME": time_of, "FAKETIME_DONT_FAKE_MONOTONIC": "1"}


def whole(at_least=1, at_most=10**9):
    return lambda number: at_least <= float(number) <= at_most


def percent(at_least, at_most=100):
    return lambda number: at_least <= float(number) <= at_most


ANY = whole(0)


@case("TaximeterBudgetBurnsFast", "TaximeterBudgetBurns")
def burns(it):
    gateway = it.started()
    it.again(lambda: gateway.chat("status=503"))
    return r"availability: ([\d.]+)% of requests were bad in the last (?:hour|6 hours); an error budget of 30 days lasts (\d+)m .* at this rate", percent(95), whole(43, 46)


@case("TaximeterBudgetBurnsSlowly")
def burns_slowly(it):
    gateway = it.started()
    it.again(lambda: gateway.chat("status=503"))
    return r"availability: an error budget of 30 days lasts (\d+)m .* at the rate of the last one or three days", whole(43, 46)


@case("TaximeterDown")
def down(it):
    gateway = it.started()
    gateway.kill()
    return rf"Prometheus gets no metrics from {gateway.admin_at}",


@case("TaximeterAbsent")
def absent(it):
    it.started()
    it.watching.forget(it.job)
    return rf"Prometheus has no gateway of {it.job} to watch",


@case("TaximeterRestarts")
def restarts(it):
    gateway = it.started()
    for _ in range(3):
        gateway.kill()
        gateway.start()
        time.sleep(2.5)
    return rf"{gateway.admin_at} has started (\d+) times in 30 minutes", whole(3, 3)


@case("TaximeterDied")
def died(it):
    gateway = it.started()
    for _ in range(2):
        it.again(lambda: gateway.chat("gap_ms=20000", stream=True))
    stage.patiently(lambda: len(stage.json_of(f"{gateway.admin}/api/v1/live")["requests"]) == 2, "two open requests")
    it.over.set()
    gateway.kill()
    gateway.start()
    return rf"{gateway.admin_at} has died: (\d+) requests were open when it started anew", whole(2, 2)


@case("TaximeterLedgerUnwritable")
def unwritable(it):
    gateway = it.started({"ledger": {"dir_bytes_max": 64 << 20}})
    (gateway.data / "filler").write_bytes(b"x" * (64 << 20))
    return rf"The ledger of {gateway.admin_at} cannot be written, or has no room",


@case("TaximeterEntriesLost")
def entries_lost(it):
    gateway = it.gateway({"ledger": {"recovery": "salvage", "durability": "sync"}}).start()
    for _ in range(30):
        gateway.chat()
    gateway.kill()
    for left in gateway.data.glob("store.sqlite*"):
        left.unlink()
    segment = sorted(gateway.data.rglob("*.tlj"))[-1]
    changed = bytearray(segment.read_bytes())
    # More than a mark of 25 bytes, so that an entry is hit.
    for at in range(len(changed) // 2, len(changed) // 2 + 32):
        changed[at] ^= 1
    segment.write_bytes(changed)
    gateway.start()
    it.watch(gateway)
    _, text = gateway.metrics()
    lost = float(re.search(r"(?m)^taximeter_ledger_entries_lost_total (\S+)", text)[1])
    return rf"{gateway.admin_at} has lost (\d+) entries of its ledger", whole(max(1, lost), lost)


@case("TaximeterLedgerRoomEnds")
def room_ends(it):
    gateway = it.started({"ledger": {"dir_bytes_max": 1 << 30}})
    filler = gateway.data / "filler"

    def grow():
        with filler.open("ab") as file:
            file.write(b"x" * (4 << 20))
        time.sleep(0.99)

    it.again(grow)
    return (rf"At the rate of the last hour, {gateway.admin_at} has no room for new requests within 4 hours, whatever it removes; "
            r"(\d+) MiB are left"), whole(1, 970)


@case("TaximeterHistoryRemovedForOthers")
def removed_for_others(it):
    place = it.folder / f"{it.job}.volume"
    place.mkdir()
    gateway = it.gateway({"limits": {"ledger_segment_bytes": 4096}, "data_dir": str(place / "data")})
    # A small volume that nobody else sees.
    gateway.inside = ["unshare", "--mount", *([] if os.geteuid() == 0 else ["--map-root-user"]), "sh", "-c",
                      'mount -t tmpfs -o size=64m none "$0" && exec "$@"', str(place)]
    gateway.start()
    it.watch(gateway)
    for _ in range(400):
        gateway.chat()
    volume = pathlib.Path(f"/proc/{gateway.child.pid}/root{place}")
    own = float(re.search(r"(?m)^taximeter_ledger_size_bytes (\S+)", gateway.metrics()[1])[1])
    free = os.statvfs(volume).f_bavail * os.statvfs(volume).f_frsize
    it.since = time.monotonic()
    (volume / "filler").write_bytes(bytes(int(free - 0.15 * own)))
    return rf"Other files fill the volume of {gateway.admin_at}: Taximeter has removed (\d+) files of its history", whole(1, 50)


@case("TaximeterClockAhead")
def clock_ahead(it):
    gateway = it.gateway()
    gateway.start(at("-20d"))
    gateway.chat()
    gateway.stop()
    gateway.start()
    it.watch(gateway)
    return rf"The clock of {gateway.admin_at} is more than a day ahead of its ledger, and nothing is removed by age",


@case("TaximeterDetailsShort")
def details_short(it):
    gateway = it.gateway({"ledger": {"dir_bytes_max": 64 << 20}})
    # Never a day ahead of the entries before, so that the days are over for the gateway too.
    for time_of in ("-72h", "-53h", "-34h", "-15h", "-0h"):
        gateway.start(at(time_of))
        for _ in range(20):
            gateway.chat()
        gateway.stop()
    gateway.start()
    gateway.chat()
    it.watch(gateway)
    # What is left of the room, until history goes, is less than records take in 400 days.
    own = float(re.search(r"(?m)^taximeter_ledger_size_bytes (\S+)", gateway.metrics()[1])[1])
    (gateway.data / "filler").write_bytes(bytes(int(0.8 * (64 << 20) - own - (1 << 20))))
    return rf"{gateway.admin_at} has room for (\d+) days of records, fewer than it is to keep", whole(3, 399)


@case("TaximeterLedgerSlow", "TaximeterGatewaySlow")
def slow(it):
    delay = 1200 if it.alert == "TaximeterLedgerSlow" else 120
    gateway = it.started({"ledger": {"durability": "sync"}}, environment=slow_disk(it.folder, delay))
    it.again(gateway.chat)
    if it.alert == "TaximeterLedgerSlow":
        return rf"The disk of {gateway.admin_at} was slow (\d+) times in 15 minutes", whole(4, 60)
    return rf"{gateway.admin_at} itself added (\d+)(?:\.\d+)?m?s or more to one request in a hundred in the last 5 minutes", whole(50)


@case("TaximeterStoreBehind")
def store_behind(it):
    gateway = it.started()
    gateway.chat()
    held = sqlite3.connect(gateway.data / "store.sqlite", isolation_level=None, timeout=60, check_same_thread=False)
    held.execute("BEGIN IMMEDIATE")
    it.held = held
    it.again(gateway.chat)
    return rf"The store of {gateway.admin_at} does not get all entries of the journal: bills are late, nothing is lost",


@case("TaximeterPushBehind", "TaximeterPushAtRisk")
def push_behind(it):
    more = {"export": {"push": {"url": f"http://127.0.0.1:{stage.free_port()}/events"}}, "ledger": {"records_keep_days": 3}}
    gateway = it.started(more)
    it.again(lambda: (gateway.chat(), time.sleep(0.2)))
    if it.alert == "TaximeterPushAtRisk":
        return rf"Requests that the receiver of events lacks go within a week on {gateway.admin_at}",
    return rf"{gateway.admin_at} has failed (\d+) times in 10 minutes to send events, and has sent none", whole(1, 60)


@case("TaximeterEventsRejected")
def events_rejected(it):
    address = receiver(400)
    gateway = it.started({"export": {"push": {"url": f"http://{address}/events"}}})
    gateway.chat()
    return rf"The receiver has rejected (\d+) events of {gateway.admin_at}", whole(1, 3)


@case("TaximeterUnpriced")
def unpriced(it):
    gateway = it.started()
    it.again(lambda: [gateway.chat(model="nobody-s-price") for _ in range(2)])
    return r"A price is missing for ([\d.]+)% of the requests for nobody-s-price in the last hour", percent(100)


@case("TaximeterUncounted")
def uncounted(it):
    gateway = it.started({"upstreams": [{"name": "strange", "url": f"http://{strange_engine()}", "dialect": "openai"}]})
    it.again(lambda: gateway.chat(stream=True, model="odd"))
    return r"It is unknown what ([\d.]+)% of the requests for odd in the last hour have used", percent(100)


@case("TaximeterEstimated")
def estimated(it):
    gateway = it.started()
    it.again(lambda: gateway.chat("no_usage", stream=True, model="nobody-s-words"))
    return r"What ([\d.]+)% of the requests for nobody-s-words in the last hour have used is an estimate", percent(100)


@case("TaximeterCountsDiffer")
def counts_differ(it):
    gateway = it.started({"upstreams": [{"name": "local", "url": f"http://{it.engine}", "dialect": "openai"}]})
    it.again(lambda: gateway.chat("input_tokens=9000"))
    return r"gpt-4o-mini: ([\d.]+)% of the token counts that were reported in the last hour differ from Taximeter's own count", percent(40)


@case("TaximeterUpstreamUnreachable")
def unreachable(it):
    nobody = f"http://127.0.0.1:{stage.free_port()}"
    gateway = it.started({"upstreams": [{"name": "gone", "url": nobody, "dialect": "vllm"}]})
    it.again(gateway.chat)
    return r"gone could not be reached (\d+) times in 5 minutes", whole(6)


@case("TaximeterUpstreamUnhealthy")
def unhealthy(it):
    gateway = it.started()
    it.again(lambda: gateway.chat("status=429"))
    return rf"local has failed (\d+) requests of {gateway.admin_at} in 5 minutes, and has answered none to its end", whole(1)


@case("TaximeterCredentialRefused")
def credential_refused(it):
    gateway = it.started({"upstreams": [{"name": "local", "url": f"http://{it.engine}", "dialect": "vllm", "credential": "sk-ours"}]})
    gateway.chat("status=401")
    return r"local has refused the gateway's own credential",


@case("TaximeterStreamsStall")
def stall(it):
    gateway = it.started({"limits": {"upstream_idle_timeout_seconds": 1}})
    for _ in range(3):
        it.again(lambda: gateway.chat("stall_after=2", stream=True))
    return r"127.0.0.1 has fallen silent in ([\d.]+)% of its answers in 5 minutes", percent(90)


@case("TaximeterEngineRefuses")
def engine_refuses(it):
    gateway = it.started()
    it.again(lambda: [gateway.chat("status=429"), gateway.chat(), gateway.chat(), gateway.chat()])
    host, port = it.engine.split(":")
    return rf"{host}:{port} has refused ([\d.]+)% of the requests in 15 minutes, although their clients did nothing wrong", percent(18, 32)


@case("TaximeterClientsLeave")
def clients_leave(it):
    gateway = it.started()
    leave = lambda: gateway.leave({**stage.CHAT, "stream": True}, "prefill_ms=30000", 3)
    for _ in range(3):
        it.again(leave)
    return r"([\d.]+)% of the streams of gpt-4o-mini in 15 minutes were left after 2.5 s without a first token", percent(95)


@case("TaximeterRequestsNeverEnd")
def never_end(it):
    gateway = it.started({"limits": {"request_timeout_seconds": 30}})
    it.again(lambda: gateway.chat("gap_ms=500,output_tokens=500", stream=True))
    return rf"A request of {gateway.admin_at} has run for (\d+)(?:\.\d+)?s and has not ended", whole(27, 32)


@case("TaximeterEngineSpeaksBadHttp")
def bad_http(it):
    gateway = it.started({"upstreams": [{"name": "strange", "url": f"http://{strange_engine()}", "dialect": "openai"}]})
    gateway.chat(model="no-http")
    return r"strange has sent invalid HTTP: [a-z_]+",


@case("TaximeterAuthRefusals")
def auth(it):
    gateway = it.started({"tenants": {"keys": [{"id": "one", "tenant": "acme", "sha256": "00" * 32}]}})
    it.again(lambda: gateway.chat(headers={"authorization": "Bearer sk-wrong"}))
    return r"([\d.]+) requests a second came without a valid key in the last 5 minutes", whole(1.1)


@case("TaximeterSpoofedIdentity")
def spoofed(it):
    gateway = it.started({"tenants": {"header": {"name": "x-tenant-id", "trusted_peers": ["10.0.0.0/8"]}, "unknown": "guest"}})
    gateway.chat(headers={"x-tenant-id": "acme"})
    return rf"Clients of {gateway.admin_at} have sent identity headers that Taximeter does not trust, (\d+) times in 15 minutes", whole(1, 2)


@case("TaximeterOverloaded")
def overloaded(it):
    gateway = it.started({"limits": {"connections_max": 1}})
    taken = socket.create_connection(gateway.listen.split(":"))
    it.held = taken
    it.again(gateway.chat)
    return rf"{gateway.admin_at} has refused (\d+) requests or connections in 5 minutes, because of the limit connections_max", whole(1)


@case("TaximeterTenantLimited")
def tenant_limited(it):
    gateway = it.started({"limits": {"requests_per_tenant_max": 1}})
    for _ in range(2):
        it.again(lambda: gateway.chat("prefill_ms=100"))
    return r"([\d.]+)% of the requests of default in 15 minutes were above its limit of concurrent requests", percent(11, 99.9)


@case("TaximeterTelemetryLost")
def telemetry_lost(it):
    nobody = f"http://127.0.0.1:{stage.free_port()}"
    gateway = it.started({"telemetry": {"otlp": {"endpoint": nobody, "protocol": "http/protobuf"}, "traces": {}}})
    # 40 MiB wait before anything is dropped.
    for _ in range(30):
        it.again(gateway.chat)
    return rf"{gateway.admin_at} has dropped (\d+) (?:traces|metrics) in 15 minutes that the collector has not taken", whole(1)


@case("TaximeterLogLinesLost")
def lines_lost(it):
    gateway = it.started({"telemetry": {"access_log": "all"}}, reads=False)
    for _ in range(6):
        it.again(gateway.chat)
    return rf"{gateway.admin_at} has lost (\d+) lines of its log in 15 minutes", whole(1)


@case("TaximeterConfigRejected")
def config_rejected(it):
    gateway = it.started()
    gateway.file.write_text(json.dumps({**gateway.config, "nonsense": 1}))
    return rf"{gateway.admin_at} uses an older configuration because its file has mistakes",


@case("TaximeterCertificateEnds")
def certificate_ends(it):
    cert, key = it.folder / f"{it.job}.crt", it.folder / f"{it.job}.key"
    words = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", key, "-out", cert,
             "-days", "21", "-subj", "/CN=localhost"]
    environment = {**os.environ, **at("-20d")}
    subprocess.run(words, check=True, capture_output=True, env=environment)
    gateway = it.started({"tls": {"cert": str(cert), "key": str(key)}})
    return rf"The certificate listen of {gateway.admin_at} ends in (?:1d 0h|23h) .*",


@case("TaximeterPricesOld")
def prices_old(it):
    gateway = it.started()
    _, text = gateway.metrics()
    date = float(re.search(r'(?m)^taximeter_prices_date_seconds\{.*"builtin".*\} (\S+)', text)[1])
    days = (time.time() - date) / 86400
    return rf"The newest price book of {gateway.admin_at} is (\d+) days old", whole(days - 0.6, days + 0.6)


@case("TaximeterLabelsShared")
def labels_shared(it):
    more = {"tenants": {"header": {"name": "x-tenant-id", "trusted_peers": ["127.0.0.0/8"]}}, "telemetry": {"tenants_max": 1}}
    gateway = it.started(more)
    gateway.chat(headers={"x-tenant-id": "first"})
    it.again(lambda: (gateway.chat(headers={"x-tenant-id": "second"}), time.sleep(0.5)))
    return rf"(\d+) requests of {gateway.admin_at} in the last hour have a tenant or a model without a label of its own", whole(1, 130)


def vllm(usage=0.5, preemptions=0):
    """What an engine tells."""
    return (f'vllm:num_requests_running{{model_name="m"}} 1\nvllm:kv_cache_usage_perc{{model_name="m"}} {usage}\n'
            f'vllm:num_preemptions_total{{model_name="m"}} {preemptions}\n')


def dcgm(xid=0, reasons=0):
    """What an exporter tells of a GPU."""
    gpu = 'gpu="0",UUID="GPU-1",Hostname="n",modelName="H100"'
    return (f"DCGM_FI_DEV_XID_ERRORS{{{gpu}}} {xid}\nDCGM_FI_DEV_CLOCKS_EVENT_REASONS{{{gpu}}} {reasons}\n"
            f"DCGM_FI_DEV_POWER_USAGE{{{gpu}}} 300\n")


def before(it, source):
    """A gateway before an engine that is asked each second, because a request runs there."""
    upstream = {"name": "local", "url": source.url, "dialect": "vllm"}
    gateway = it.started({"upstreams": [upstream], "fleet": {"hosts": {"local": False}}})
    it.again(gateway.chat)
    return gateway


def beside(it, source):
    """A gateway that asks an exporter of GPUs."""
    return it.started({"fleet": {"engines": False, "hosts": {"local": False}, "gpus": {"scrape": [source.url]}}})


def await_metric(gateway, begin):
    stage.patiently(lambda: any(line.startswith(begin) for line in gateway.metrics()[1].splitlines()), begin)


@case("TaximeterEngineDown")
def engine_down(it):
    source = Source(vllm())
    gateway = before(it, source)
    await_metric(gateway, "taximeter_fleet_source_up")
    source.end()
    return rf"The engine at {source.url}/metrics tells no metrics any more",


@case("TaximeterSourceStale")
def source_stale(it):
    source = Source("not here", 404)
    beside(it, source)
    return rf"Nothing is known of what {source.url}/metrics measures",


@case("TaximeterKvCacheFull")
def kv_cache_full(it):
    source = Source(vllm(usage=0.99))
    before(it, source)
    return rf"The KV cache of m at {source.url}/metrics is (\d+)% full", percent(99)


@case("TaximeterEnginePreempts")
def preempts(it):
    source = Source(vllm())
    gateway = before(it, source)
    await_metric(gateway, "taximeter_fleet_engine_preemptions")
    begin = time.monotonic()

    def preempt():
        source.text = vllm(preemptions=int(10 * (time.monotonic() - begin)))
        time.sleep(0.2)

    it.again(preempt)
    return rf"m at {source.url}/metrics has taken the place of (\d+) requests in 15 minutes", whole(20, 250)


@case("TaximeterGpuThrottled")
def throttled(it):
    # A hardware slowdown because of heat.
    source = Source(dcgm(reasons=0x40))
    beside(it, source)
    return r"Clocks of the GPU GPU-1 of n are held down for (\d+)% of the time: hw_thermal", percent(100)


@case("TaximeterGpuXid")
def xid(it):
    source = Source(dcgm())
    gateway = beside(it, source)
    await_metric(gateway, "taximeter_fleet_gpu_xid_last")
    time.sleep(3)
    source.text = dcgm(xid=79)
    return r"The driver of the GPU GPU-1 of n has told XID 79",


def opens(url):
    """Whether the address of a runbook opens, and it is one."""
    status, _, body = stage.get(url)
    return status == 200 and "**Means.**" in body


def tried(alert, folder, engine, watching):
    """One line about an alert, and whether all of it is true."""
    it = Case(alert, folder, engine, watching)
    try:
        pattern, *numbers = CASES[alert](it)
        end = it.since + SECONDS_MAX
        while not (fired := it.watching.fired(alert, it.job)):
            if time.monotonic() > end:
                return f"{alert}: NEVER CAME within {SECONDS_MAX} s", False
            time.sleep(0.5)
        took = time.monotonic() - it.since
        text = fired["annotations"]["summary"]
        found = re.fullmatch(pattern, text)
        is_true = bool(found) and all(is_right(number) for is_right, number in zip(numbers, found.groups(), strict=True))
        url = fired["annotations"]["runbook_url"]
        page = "its page opens" if opens(url) else f"ITS PAGE DOES NOT OPEN: {url}"
        return f"{alert}: {took:.0f} s: {text}: {'true' if is_true else 'NOT TRUE'}; {page}", is_true and "NOT" not in page
    except Exception as fault:
        return f"{alert}: COULD NOT BE MADE: {fault!r}", False
    finally:
        it.end()


def main(asked):
    alerts = [rule["alert"] for group in fast_rules()["groups"] for rule in group["rules"] if "alert" in rule]
    unmade = [alert for alert in alerts if alert not in CASES and alert not in OWN_FAULTS]
    wrong = 0
    for alert in [*unmade, *(alert for alert in CASES if alert not in alerts)]:
        print(f"{alert}: has no case, or is no alert")
        wrong += 1
    chosen = [alert for alert in alerts if alert in CASES and (not asked or alert in asked)]
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        with stage.engine(folder) as engine, watching(folder) as watchers, concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
            jobs = [pool.submit(tried, alert, folder, engine, watchers) for alert in chosen]
            for job in concurrent.futures.as_completed(jobs):
                line, is_good = job.result()
                print(line, flush=True)
                wrong += not is_good
    for alert in sorted(OWN_FAULTS):
        print(f"{alert}: only a fault of our own code raises it; {DEPLOY.name}/prometheus/taximeter.test.yaml shows it")
    print(f"{len(chosen)} alerts made for real, {len(OWN_FAULTS)} by a rule test alone, windows divided by {FASTER}: {wrong} wrong")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
