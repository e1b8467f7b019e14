"""Metrics, spans and log lines of the real binary: against the conventions, in each generation, and in the hands of real receivers.

Ends with 1 where anything differs.
"""

import pathlib
import subprocess
import sys
import tempfile
import time
import urllib.parse
from collections import Counter

import conventions
import logs
import spans
import stage
from findings import expect, wrong
from receivers import Collector, prometheus, rotel_agent, victoria_metrics

TENANTS, SERIES = 500, 100_000
# Spans have whole nanoseconds.
SECONDS_APART_MAX = 1e-6
MANY = {"tenants": {"header": {"name": "x-tenant-id", "trusted_peers": ["127.0.0.1"]}}}
OPENMETRICS = "application/openmetrics-text;version=1.0.0"


def conforms(folder, engine, genai):
    """Everything that a gateway of this generation pushes; what a summary says of it."""
    collector = Collector()
    otlp = {"endpoint": collector.url, "interval_seconds": 0.2, "logs": "on"}
    telemetry = {"genai": genai, "otlp": otlp, "traces": {}, "access_log": "all",
                 "content": {"capture": "both"}}
    wanted = conventions.GENERATIONS[genai]
    with stage.gateway(folder, genai, engine, telemetry) as gateway:
        gateway.ride()
        _, text = gateway.metrics()
    # Its last push was at its end.
    collector.close()
    ours = {name for name in collector.metrics if name.startswith("taximeter.")}
    seen = set(collector.metrics) - ours
    expect(seen <= set(wanted), f"{genai}: emits {sorted(seen - set(wanted))} too")
    expect(set(wanted) <= seen, f"{genai}: never emits {sorted(set(wanted) - seen)}")
    writes = "taximeter.cache_write.input_tokens"
    expect(sum(point.as_int for point in points(collector.metrics[writes])) > 0 if writes in collector.metrics else False,
           f"{genai}: nothing was written to a cache")
    for name in seen & set(wanted):
        conventions.metric_faults(name, collector.metrics[name], expect)
    for name in ours:
        keys = {pair.key for point in points(collector.metrics[name]) for pair in point.attributes}
        known = conventions.GENAI_MAY | conventions.TYPE
        expect(all(key in known or key.startswith("taximeter.") for key in keys), f"{name}: {sorted(keys)}")
    for key in ("service.name", "service.instance.id", "service.version"):
        expect(collector.resource.get(key), f"{genai}: the resource has no {key}")
    schemas = {(signal, conventions.RESOURCE_SCHEMA, conventions.SCHEMAS[genai]) for signal in ("metrics", "traces", "logs")}
    expect(collector.schemas == schemas, f"{genai}: the schemas are {sorted(collector.schemas)}")
    calls_last_as_long(genai, collector)
    promtool(text, genai)
    kinds = spans.faults(genai, collector.spans, expect)
    records = logs.faults(genai, collector.records, collector.spans, expect)
    number = sum(len(points(metric)) for metric in collector.metrics.values())
    return f"{genai:7} {len(seen)} of {len(wanted)} metrics of the conventions, {len(ours)} of ours, {number} data points, {kinds}, {records}"


def calls_last_as_long(genai, collector):
    """By their metrics as by their spans, of each operation."""
    names = ["gen_ai.client.operation.duration"]
    if genai == "latest":
        names += ["gen_ai.client.inference.duration", "gen_ai.client.embeddings.duration"]
    told, seen = Counter(), Counter()
    for point in (point for name in names if name in collector.metrics for point in points(collector.metrics[name])):
        told[operation(point)] += point.sum
    for span in (span for span in collector.spans if span.kind == spans.CLIENT and operation(span)):
        seen[operation(span)] += (span.end_time_unix_nano - span.start_time_unix_nano) / 1e9
    same = set(told) == set(seen) and all(abs(told[name] - seen[name]) < SECONDS_APART_MAX for name in told)
    expect(same and told, f"{genai}: calls last {dict(told)} by metrics, {dict(seen)} by spans")


def operation(of):
    return next((pair.value.string_value for pair in of.attributes if pair.key == "gen_ai.operation.name"), None)


def points(metric):
    return getattr(metric, metric.WhichOneof("data")).data_points


def promtool(text, what):
    """Prometheus' own checker has nothing to say."""
    checked = subprocess.run(["promtool", "check", "metrics"], input=text.encode(), capture_output=True, check=False)
    said = (checked.stdout + checked.stderr).decode().splitlines()
    expect(checked.returncode == 0 and not said, f"promtool, {what}: {said}")


def pushed_to_rotel(folder, engine):
    with rotel_agent(folder) as (grpc, by_http, log):
        for name, endpoint, protocol, gzip in (("grpc", grpc, "grpc", "gzip"), ("http", by_http, "http/protobuf", "none")):
            otlp = {"endpoint": endpoint, "protocol": protocol, "compression": gzip, "interval_seconds": 0.2, "logs": "on"}
            telemetry = {"otlp": otlp, "traces": {}, "access_log": "all"}
            with stage.gateway(folder, f"rotel-{name}", engine, telemetry) as gateway:
                gateway.ride()
                stage.patiently(lambda: sent(gateway) > 0, f"a push to rotel ({name})")
                said = stage.patiently(lambda: found(log, "gen_ai.client.token.usage"), f"rotel ({name})")
                expect("service.instance.id" in said, f"rotel ({name}) saw no resource")
                said = stage.patiently(lambda: found(log, "chat gpt-4o-mini"), f"spans at rotel ({name})")
                expect("taximeter.usage.source" in said, f"rotel ({name}) saw spans without usage")
                said = stage.patiently(lambda: found(log, "taximeter.request.duration"), f"log records at rotel ({name})")
                expect("A request ended." in said, f"rotel ({name}) saw log records without a body")
            log.write_text("")
    print("rotel: metrics, spans and log records by gRPC with gzip and by HTTP without arrived")


def found(log, text):
    said = log.read_text(errors="replace")
    return said if text in said else None


def sent(gateway):
    _, text = gateway.metrics()
    lines = [line for line in text.splitlines()
             if line.startswith("taximeter_otlp_items_total{") and '"sent"' in line]
    return sum(int(line.rsplit(" ", 1)[1]) for line in lines)


def pushed_to_victoria_metrics(folder, engine):
    with victoria_metrics(folder) as store:
        otlp = {"endpoint": f"{store}/opentelemetry", "protocol": "http/protobuf", "interval_seconds": 0.2}
        with stage.gateway(folder, "victoria", engine, {"genai": "both", "otlp": otlp}) as gateway:
            chats = gateway.ride()
        stage.get(f"{store}/internal/force_flush")

        query = urllib.parse.quote('{__name__="gen_ai.client.operation.duration_count"}')

        def asked():
            counts = Counter()
            for series in stage.json_of(f"{store}/api/v1/query?query={query}")["data"]["result"]:
                if "error.type" not in series["metric"]:
                    counts[series["metric"]["gen_ai.operation.name"]] += int(series["value"][1])
            # What was pushed last is there when this is.
            return dict(counts) if "embeddings" in counts else None

        counts = stage.patiently(asked, "VictoriaMetrics' answer")
        expect(counts.get("embeddings") == 1 and counts.get("chat", 0) >= chats, f"VictoriaMetrics has {counts}")
    print(f"VictoriaMetrics: answers for what was pushed: {counts}")


def scraped_by_prometheus(folder, engine):
    with stage.gateway(folder, "scraped", engine, {"genai": "both"}) as gateway:
        chats = gateway.ride()
        content_type, text = gateway.metrics(OPENMETRICS)
        expect(content_type.startswith(OPENMETRICS.split(";")[0]), f"OpenMetrics is {content_type}")
        expect(text.endswith("# EOF\n") and "trace_id=" in text, "OpenMetrics lacks its end or exemplars")
        with prometheus(folder, gateway.admin) as server:
            query = 'gen_ai_client_operation_duration_seconds_count{gen_ai_operation_name="chat",error_type=""}'
            # The first scrape is told 0.
            ask = f"{server}/api/v1/query?query={urllib.parse.quote(f'sum({query}) > 0')}"
            result = stage.patiently(lambda: stage.json_of(ask)["data"]["result"], "two scrapes")
            expect(float(result[0]["value"][1]) >= chats, f"Prometheus has {result}")
            targets = stage.json_of(f"{server}/api/v1/targets")["data"]["activeTargets"]
            expect(all(not target["lastError"] for target in targets), f"Prometheus: {targets}")
            bucket = "gen_ai_client_operation_duration_seconds_bucket"
            ask = f"{server}/api/v1/query_exemplars?query={bucket}&start=0&end=9999999999"
            exemplars = stage.patiently(lambda: stage.json_of(ask)["data"], "exemplars")
            labels = [one["labels"] for series in exemplars for one in series["exemplars"]]
            expect(any("trace_id" in one for one in labels), f"exemplars have {labels}")
            expect(all("request_id" in one for one in labels), f"exemplars have {labels}")
    print(f"Prometheus: scraped in OpenMetrics, {len(labels)} exemplars of operation durations kept")


def scraped_with_native_histograms(folder, engine):
    """Prometheus' native histograms, beside the conventions' buckets, and quantiles from them."""
    with stage.gateway(folder, "native", engine, {"genai": "both", "native_histograms": "on"}) as gateway:
        chats = gateway.ride()
        with prometheus(folder, gateway.admin, "--enable-feature=native-histograms") as server:
            def asked(query):
                return stage.json_of(f"{server}/api/v1/query?query={urllib.parse.quote(query)}")["data"]["result"]

            ride = '{gen_ai_operation_name="chat",error_type=""}'
            name = "gen_ai_client_operation_duration_seconds"
            count = stage.patiently(lambda: asked(f"histogram_count(sum({name}{ride})) > 0"), "two scrapes in protobuf")
            expect(float(count[0]["value"][1]) >= chats, f"native histograms: {count}")
            mean = asked(f"histogram_sum(sum({name}{ride})) / histogram_count(sum({name}{ride}))")
            quantiles = [asked(f"histogram_quantile({q}, sum({name}{ride}))") for q in (0, 0.5, 1)]
            low, median, high = [float(found[0]["value"][1]) for found in quantiles]
            expect(0 < low <= median <= high < 60 and low <= float(mean[0]["value"][1]) <= high,
                   f"native histograms: {quantiles} around {mean}")
            name = "gen_ai_client_operation_time_per_output_chunk_seconds"
            told = [line for line in gateway.metrics()[1].splitlines() if line.startswith(f"{name}_count")]
            told = sum(int(line.rsplit(" ", 1)[1]) for line in told)
            gaps = asked(f"histogram_count(sum({name}))")
            expect(told > 0 and float(gaps[0]["value"][1]) == told, f"native histograms have {gaps} of {told} gaps")
            targets = stage.json_of(f"{server}/api/v1/targets")["data"]["activeTargets"]
            expect(all(not target["lastError"] for target in targets), f"Prometheus: {targets}")
    print(f"Prometheus: scraped native histograms; half of {count[0]['value'][1]} chats within {median * 1e3:.1f} ms")


def scraped_with_many_series(folder, engine):
    """A hundred thousand series, as tenants and routes make them, in one scrape."""
    with stage.gateway(folder, "many", engine, {"genai": "both", "tenants_max": TENANTS}, MANY) as gateway:
        for tenant in range(TENANTS):
            for body in (stage.CHAT, {**stage.CHAT, "stream": True, "max_tokens": 3}):
                assert gateway.ask("/v1/chat/completions", body, x_tenant_id=f"t{tenant}") == 200
        begun = time.monotonic()
        _, text = gateway.metrics(OPENMETRICS)
        took = time.monotonic() - begun
    series = [line.split(" # ")[0].rsplit(" ", 1)[0] for line in text.splitlines() if not line.startswith("#")]
    expect(len(series) >= SERIES and len(series) == len(set(series)), f"{len(series)} series, {len(set(series))} told apart")
    print(f"a scrape of {len(series)} series, {len(text) >> 20} MiB: {took:.2f} s")


def main():
    held = conventions.table_faults(expect)
    print(f"conventions: {held['package']} metrics held against PyPI's package, {held['registry']} against the registries")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        with stage.engine(folder) as engine:
            for genai in ("v1_41", "latest", "both"):
                print(conforms(folder, engine, genai))
            pushed_to_rotel(folder, engine)
            pushed_to_victoria_metrics(folder, engine)
            scraped_by_prometheus(folder, engine)
            scraped_with_native_histograms(folder, engine)
            scraped_with_many_series(folder, engine)
    print(f"{len(wrong)} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
