"""OpenTelemetry's conventions, as far as a gateway's metrics go: a table of ours from its documents, held against PyPI's
package and, where they are there, against the registries; and what a metric must be to follow them."""

import inspect
import os
import pathlib
from dataclasses import dataclass

import yaml
from opentelemetry.semconv._incubating.attributes import gen_ai_attributes
from opentelemetry.semconv._incubating.metrics import gen_ai_metrics, http_metrics as http_incubating, process_metrics
from opentelemetry.semconv.metrics import http_metrics

TOKENS = tuple(4.0 ** power for power in range(14))
DURATIONS = tuple(round(0.01 * 2 ** power, 2) for power in range(14))
PER_TOKEN = (0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5)
FIRST_TOKEN = (0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0)
HTTP = (0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0)

GENAI = frozenset({"gen_ai.operation.name", "gen_ai.provider.name"})
GENAI_MAY = GENAI | {"gen_ai.request.model", "gen_ai.response.model", "server.address", "server.port"}
# Ours, beside the conventions' own.
OURS = frozenset({"taximeter.tenant"})


@dataclass(frozen=True)
class Metric:
    kind: str
    unit: str
    required: frozenset
    may: frozenset
    bounds: tuple = ()


def genai(bounds, unit="s", more=frozenset(), error=False):
    may = GENAI_MAY | more | ({"error.type"} if error else set())
    return Metric("histogram" if bounds else "counter", unit, GENAI | more, frozenset(may), bounds)


TYPE, MODALITY = frozenset({"gen_ai.token.type"}), frozenset({"gen_ai.token.modality"})
USAGE = "gen_ai.client.inference.usage."
SERVER = {
    "gen_ai.server.request.duration": genai(DURATIONS, error=True),
    "gen_ai.server.time_to_first_token": genai(FIRST_TOKEN),
    "gen_ai.server.time_per_output_token": genai(PER_TOKEN),
    "http.server.request.duration": Metric(
        "histogram", "s", frozenset({"http.request.method", "url.scheme"}),
        frozenset({"http.request.method", "url.scheme", "http.route", "http.response.status_code", "error.type",
                   "network.protocol.version"}), HTTP),
    "http.client.request.duration": Metric(
        "histogram", "s", frozenset({"http.request.method", "server.address", "server.port"}),
        frozenset({"http.request.method", "server.address", "server.port", "http.response.status_code", "error.type",
                   "network.protocol.version"}), HTTP),
}
SERVER["http.server.active_requests"] = Metric(
    "updowncounter", "{request}", frozenset({"http.request.method", "url.scheme"}),
    frozenset({"http.request.method", "url.scheme"}))
MODE = frozenset({"cpu.mode"})
PROCESS = {
    "process.cpu.time": Metric("counter", "s", MODE, MODE),
    **{name: Metric(kind, unit, frozenset(), frozenset()) for name, kind, unit in (
        ("process.memory.usage", "updowncounter", "By"),
        ("process.unix.file_descriptor.count", "updowncounter", "{file_descriptor}"))},
}
OPERATION = {"gen_ai.client.operation.duration": genai(DURATIONS, error=True)}
GENERATIONS = {
    "v1_41": {
        **SERVER, **OPERATION, **PROCESS,
        "gen_ai.client.token.usage": genai(TOKENS, "{token}", TYPE),
        "gen_ai.client.operation.time_to_first_chunk": genai(DURATIONS),
        "gen_ai.client.operation.time_per_output_chunk": genai(DURATIONS),
    },
    "latest": {
        **SERVER, **OPERATION, **PROCESS,
        "gen_ai.client.inference.duration": genai(DURATIONS, error=True),
        "gen_ai.client.inference.time_to_first_chunk": genai(DURATIONS),
        "gen_ai.client.inference.time_per_output_chunk": genai(DURATIONS),
        **{USAGE + part: genai((), "{token}", MODALITY)
           for part in ("input_tokens", "output_tokens", "cache_read.input_tokens", "cache_write.input_tokens",
                        "reasoning.output_tokens")},
        "gen_ai.client.inference.operation.input_tokens": genai(TOKENS, "{token}", error=True),
        "gen_ai.client.inference.operation.output_tokens": genai(TOKENS, "{token}", error=True),
        "gen_ai.client.embeddings.duration": genai(DURATIONS, error=True),
        "gen_ai.client.embeddings.operation.input_tokens": genai(TOKENS, "{token}", error=True),
    },
}
GENERATIONS["both"] = GENERATIONS["v1_41"] | GENERATIONS["latest"]
# What follows two generations at once names neither.
SCHEMAS = {"v1_41": "https://opentelemetry.io/schemas/1.41.1", "both": "",
           "latest": "https://opentelemetry.io/schemas/gen-ai-dev/1.42.0-dev"}
RESOURCE_SCHEMA = "https://opentelemetry.io/schemas/1.44.0"
# On the newest pages of the conventions, and not in any registry that was kept.
PAGES = {"gen_ai.client.embeddings.duration", "gen_ai.client.embeddings.operation.input_tokens"}
INTEGERS = {"server.port", "http.response.status_code", "http.request.resend_count"}
# Values for what the registry has no word for, which it allows; all of them are the gateway's own.
OPERATIONS = {value.value for value in gen_ai_attributes.GenAiOperationNameValues} | {
    "fetch_response", "rerank", "count_tokens", "moderation", "image_generation", "speech", "transcription", "other"}
PROVIDERS = {value.value for value in gen_ai_attributes.GenAiProviderNameValues} | {"vllm", "unknown"}
ENUMS = {
    "gen_ai.operation.name": OPERATIONS,
    "gen_ai.provider.name": PROVIDERS,
    "gen_ai.token.type": {value.value for value in gen_ai_attributes.GenAiTokenTypeValues},
    "gen_ai.token.modality": {"text", "image", "audio", "unknown"},
    "http.request.method": {"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "CONNECT", "TRACE", "_OTHER"},
    "url.scheme": {"http", "https"},
    "cpu.mode": {"user", "system"},
}


class Asked:
    """Notes which instrument a function of PyPI's package asks a meter for."""

    def __getattr__(self, method):
        kind = method.removeprefix("create_").replace("_", "")
        return lambda name, unit="", **_: (name, kind, unit)


def packaged():
    """Name → kind and unit, by PyPI's package."""
    found = {}
    for module in (gen_ai_metrics, http_incubating, process_metrics):
        for name, make in inspect.getmembers(module, inspect.isfunction):
            if name.startswith("create_"):
                # Observable ones want to know whom they ask.
                others = len(inspect.signature(make).parameters) - 1
                name, kind, unit = make(Asked(), *[None] * others)
                found[name] = (kind, unit)
    # The stable ones are names alone.
    for name in (http_metrics.HTTP_SERVER_REQUEST_DURATION, http_metrics.HTTP_CLIENT_REQUEST_DURATION):
        found.setdefault(name, ("histogram", "s"))
    return found


def attributes_of(node, groups, seen=()):
    """Keys with their requirement levels, of a metric or group of a registry in either of its forms."""
    keys = {}
    if "extends" in node:
        keys |= attributes_of(groups.get(node["extends"], {}), groups)
    for attribute in node.get("attributes", []):
        if group := attribute.get("ref_group"):
            if group in groups and group not in seen:
                keys |= attributes_of(groups[group], groups, (*seen, group))
        elif key := attribute.get("ref") or attribute.get("key") or attribute.get("id"):
            keys[key] = attribute.get("requirement_level")
    return keys


def registry(*folders):
    """Name → kind, unit and attributes, by the YAML in these folders; the later ones win."""
    groups, metrics = {}, {}
    for folder in folders:
        for file in sorted(pathlib.Path(folder).rglob("*.yaml")):
            text = yaml.safe_load(file.read_text()) or {}
            entries = text.get("groups", []) if isinstance(text, dict) else []
            groups |= {entry["id"]: entry for entry in entries}
            metrics |= {entry["metric_name"]: entry for entry in entries if entry.get("type") == "metric"}
            if isinstance(text, dict):
                groups |= {entry["id"]: entry for entry in text.get("attribute_groups", [])}
                metrics |= {entry["name"]: entry for entry in text.get("metrics", [])}
    return {name: (entry["instrument"].replace("_", ""), entry["unit"], attributes_of(entry, groups))
            for name, entry in metrics.items() if "instrument" in entry}


def registries():
    """By generation; none where the folder is not there."""
    data = pathlib.Path(os.environ["SEMCONV"])
    genai = data / "semconv-genai"
    if not genai.is_dir():
        return {}
    core = data / "semconv-core-v1.44.0" / "model"
    shared = [core / part for part in ("http", "network", "url", "server", "error", "process")]
    return {
        "v1_41": registry(*shared, genai / "registry-core-v1.41.1"),
        "latest": registry(*shared, genai / "registry-2026-05-11", genai / "newest-main-2026-09"),
    }


def table_faults(expect):
    """Holds our table against the package and the registries; how many metrics each of them has."""
    package, known = packaged(), registries()
    held = {"package": 0, "registry": 0}
    for generation in ("v1_41", "latest"):
        for name, metric in GENERATIONS[generation].items():
            if name in package:
                held["package"] += 1
                expect(package[name] == (metric.kind, metric.unit), f"{name}: PyPI has {package[name]}")
            else:
                expect(generation == "latest", f"{name}: PyPI has no such metric")
            if generation not in known:
                continue
            expect(name in known[generation] or name in PAGES,
                   f"{name}: the registry has no such metric ({generation})")
            if name in known[generation]:
                kind, unit, attributes = known[generation][name]
                held["registry"] += 1
                expect((kind, unit) == (metric.kind, metric.unit), f"{name}: the registry has {kind} {unit}")
                required = {key for key, level in attributes.items() if level == "required"}
                expect(required <= metric.required, f"{name}: required are {sorted(required)}")
    return held


def metric_faults(name, metric, expect):
    """Holds one metric as it came against the table."""
    rule = GENERATIONS["both"][name]
    data = metric.WhichOneof("data")
    sum_kind = "counter" if metric.sum.is_monotonic else "updowncounter"
    kind = sum_kind if data == "sum" else data
    expect(kind == rule.kind, f"{name}: is a {kind}, not a {rule.kind}")
    expect(metric.unit == rule.unit, f"{name}: has the unit {metric.unit}")
    for point in getattr(metric, data).data_points:
        values = {pair.key: pair.value for pair in point.attributes}
        keys = set(values)
        expect(rule.required <= keys, f"{name}: lacks {sorted(rule.required - keys)}")
        expect(keys <= rule.may | OURS, f"{name}: has {sorted(keys - rule.may - OURS)} too")
        expect("server.address" not in keys or "server.port" in keys, f"{name}: an address without a port")
        for key, value in values.items():
            kind = value.WhichOneof("value")
            expect(kind == ("int_value" if key in INTEGERS else "string_value"), f"{name}: {key} is a {kind}")
            text = str(getattr(value, kind))
            expect(text not in ("", "None"), f"{name}: {key} is empty")
            expect(text in ENUMS.get(key, {text}), f"{name}: {key} is {text}")
        if rule.bounds:
            expect(tuple(point.explicit_bounds) == rule.bounds, f"{name}: bounds {list(point.explicit_bounds)}")
            expect(len(point.bucket_counts) == len(rule.bounds) + 1, f"{name}: {len(point.bucket_counts)} buckets")
            expect(sum(point.bucket_counts) == point.count, f"{name}: buckets do not add up")
        elif rule.unit == "{token}":
            expect(point.WhichOneof("value") == "as_int", f"{name}: is no whole number")
