"""What log records must be to follow OpenTelemetry's conventions and to lead to their spans."""

from collections import Counter

from opentelemetry.semconv._incubating.attributes import client_attributes
from opentelemetry.semconv.attributes import exception_attributes

import conventions
import spans

# Events of the conventions, and what they must have.
CALL = {"gen_ai.operation.name", "gen_ai.provider.name"}
FAILED, DETAILS = "gen_ai.client.operation.exception", "gen_ai.client.inference.operation.details"
EVENTS = {FAILED: (13, CALL | {"exception.type"}), DETAILS: (9, CALL)}
SEVERITIES = {9: "info", 13: "warn", 18: "critical"}
TYPES = {
    **spans.TYPES,
    "taximeter.request.duration": "double_value", "taximeter.gateway.duration": "double_value",
    "taximeter.response.time_to_first_token": "double_value",
}


def faults(genai, records, all_spans, expect):
    """Holds all records against the conventions and the spans; how many there are."""
    may = spans.known(genai) | {client_attributes.CLIENT_ADDRESS, exception_attributes.EXCEPTION_TYPE}
    facing = {(span.trace_id, span.span_id): span for span in all_spans if span.kind == spans.SERVER}
    forms, said = spans.schemas(), Counter()
    requests = [record for record in records if record.event_name == "taximeter.request"]
    for record in records:
        name = record.event_name
        expect(name.startswith("taximeter.") or name in EVENTS, f"{genai}: a record is named {name}")
        if name in EVENTS:
            keys = {pair.key for pair in record.attributes}
            severity, must = EVENTS[name]
            expect(must <= keys and record.severity_number == severity, f"{genai}: {name} has {sorted(keys)}")
        expect(SEVERITIES.get(record.severity_number) == record.severity_text, f"{genai}: {name} has another severity")
        expect(record.body.string_value and record.observed_time_unix_nano, f"{genai}: {name} lacks body or time")
        for pair in record.attributes:
            key, kind = pair.key, pair.value.WhichOneof("value")
            expect(key in may or key.startswith("taximeter."), f"{genai}: {name} has {key}")
            if key in spans.CONTENT:
                content = plain(pair.value)
                said[key] += bool(content)
                for fault in forms[key].iter_errors(content) if key in forms else ():
                    expect(False, f"{genai}: {key} of {name}: {fault.message}")
            elif not key.startswith("taximeter.log."):
                top_k = "int_value" if genai == "latest" else "double_value"
                wanted = top_k if key == "gen_ai.request.top_k" else TYPES.get(key, "string_value")
                expect(kind == wanted, f"{genai}: {key} of {name} is a {kind}")
            if key in conventions.ENUMS:
                expect(pair.value.string_value in conventions.ENUMS[key], f"{genai}: {key} is {pair.value}")
    for record in requests:
        span = facing.pop((record.trace_id, record.span_id), None)
        expect(span is not None, f"{genai}: a request's record leads to no span")
        if span is not None:
            status = [number(of.attributes, "http.response.status_code") for of in (record, span)]
            expect(status[0] == status[1], f"{genai}: a record and its span have the statuses {status}")
    missing = set(EVENTS) - {record.event_name for record in records}
    expect(not missing, f"{genai}: never tells of {sorted(missing)}")
    expect(set(said) == set(spans.CONTENT), f"{genai}: of content events have only {dict(said)}")
    expect(requests and not facing, f"{genai}: {len(facing)} requests have no record")
    return f"{len(records)} log records, {len(requests)} of requests"


def plain(value):
    """What a structured value says, as JSON has it."""
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [plain(one) for one in value.array_value.values]
    if kind == "kvlist_value":
        return {pair.key: plain(pair.value) for pair in value.kvlist_value.values}
    return getattr(value, kind) if kind else None


def number(attributes, key):
    return next((pair.value.int_value for pair in attributes if pair.key == key), None)
