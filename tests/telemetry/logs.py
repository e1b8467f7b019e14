"""What log records must be to follow OpenTelemetry's conventions and to lead to their spans."""

from opentelemetry.semconv._incubating.attributes import client_attributes
from opentelemetry.semconv.attributes import exception_attributes

import conventions
import spans

# Events of the conventions, and what they must have.
EVENTS = {"gen_ai.client.operation.exception": {"exception.type", "gen_ai.operation.name", "gen_ai.provider.name"}}
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
    requests = [record for record in records if record.event_name == "taximeter.request"]
    for record in records:
        name = record.event_name
        expect(name.startswith("taximeter.") or name in EVENTS, f"{genai}: a record is named {name}")
        if name in EVENTS:
            keys = {pair.key for pair in record.attributes}
            expect(EVENTS[name] <= keys and record.severity_number == 13, f"{genai}: {name} has {sorted(keys)}")
        expect(SEVERITIES.get(record.severity_number) == record.severity_text, f"{genai}: {name} has another severity")
        expect(record.body.string_value and record.observed_time_unix_nano, f"{genai}: {name} lacks body or time")
        for pair in record.attributes:
            key, kind = pair.key, pair.value.WhichOneof("value")
            expect(key in may or key.startswith("taximeter."), f"{genai}: {name} has {key}")
            if not key.startswith("taximeter.log."):
                expect(kind == TYPES.get(key, "string_value"), f"{genai}: {key} of {name} is a {kind}")
            if key in conventions.ENUMS:
                expect(pair.value.string_value in conventions.ENUMS[key], f"{genai}: {key} is {pair.value}")
    for record in requests:
        span = facing.pop((record.trace_id, record.span_id), None)
        expect(span is not None, f"{genai}: a request's record leads to no span")
        if span is not None:
            status = [number(of.attributes, "http.response.status_code") for of in (record, span)]
            expect(status[0] == status[1], f"{genai}: a record and its span have the statuses {status}")
    failed = [record for record in records if record.event_name in EVENTS]
    expect(failed, f"{genai}: no call has failed")
    expect(requests and not facing, f"{genai}: {len(facing)} requests have no record")
    return f"{len(records)} log records, {len(requests)} of requests"


def number(attributes, key):
    return next((pair.value.int_value for pair in attributes if pair.key == key), None)
