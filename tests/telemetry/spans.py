"""OpenTelemetry's conventions for spans, and what a request's spans must be to follow them."""

import json
import os
import pathlib
from collections import Counter, defaultdict

import jsonschema
from opentelemetry.semconv._incubating.attributes import gen_ai_attributes, openai_attributes
from opentelemetry.semconv.attributes import (
    error_attributes, http_attributes, network_attributes, server_attributes, url_attributes)

import conventions

SERVER, CLIENT, INTERNAL = 2, 3, 1
OK, ERROR = 1, 2
FACING = {"identify", "body", "route", "admit", "settle"}
CALLING = {"connect", "prefill", "stream", "answer"}
HTTP_MUST = {"http.request.method", "url.path", "url.scheme", "network.protocol.version"}
ONWARD_MUST = {"http.request.method", "url.full", "server.address", "server.port", "network.protocol.version"}
CALL_MUST = {"gen_ai.operation.name", "gen_ai.provider.name", "server.address", "server.port"}
MODALITIES = {f"gen_ai.usage.{modality}.{part}_tokens" for modality in ("text", "image", "audio")
              for part in ("input", "output", "cache_read.input")}
# Of the newest documents; the package has the name of before.
NEWER = {"gen_ai.usage.cache_write.input_tokens", "gen_ai.request.reasoning.level",
         "gen_ai.request.previous_response.id", "gen_ai.prompt.version"} | MODALITIES
OLDER = {"gen_ai.usage.cache_creation.input_tokens"}
TOKENS = {f"gen_ai.usage.{part}" for part in (
    "input_tokens", "output_tokens", "cache_read.input_tokens", "cache_write.input_tokens",
    "cache_creation.input_tokens", "reasoning.output_tokens")}
TYPES = {
    **{key: "int_value" for key in TOKENS | MODALITIES | conventions.INTEGERS | {
        "gen_ai.request.choice.count", "gen_ai.request.max_tokens", "gen_ai.request.seed",
        "gen_ai.embeddings.dimension.count"}},
    **{f"gen_ai.request.{part}": "double_value" for part in (
        "temperature", "top_p", "frequency_penalty", "presence_penalty")},
    "gen_ai.request.stop_sequences": "array_value", "gen_ai.request.encoding_formats": "array_value",
    "taximeter.content.cut": "bool_value",
    "gen_ai.request.stream": "bool_value", "gen_ai.response.time_to_first_chunk": "double_value",
    "gen_ai.response.finish_reasons": "array_value", "taximeter.usage.flags": "array_value",
}

# Required where there is something to say, and there was for each of them.
CONDITIONAL = {
    SERVER: {"http.route", "http.response.status_code", "error.type"},
    CLIENT: {"gen_ai.request.model", "gen_ai.request.choice.count", "gen_ai.request.seed", "gen_ai.request.stream",
             "gen_ai.request.top_k", "gen_ai.output.type", "gen_ai.conversation.id", "error.type",
             "http.response.status_code"},
}


CONTENT = {"gen_ai.input.messages": "input-messages", "gen_ai.output.messages": "output-messages",
           "gen_ai.system_instructions": "system-instructions", "gen_ai.tool.definitions": "tool-definitions"}


def schemas():
    """OpenTelemetry's schemas of content by the keys that have it, where the folder is there."""
    folder = pathlib.Path(os.environ["SEMCONV"]) / "semconv-genai" / "content-json-schemas-2026-05-11"
    if not folder.is_dir():
        return {}
    read = {key: json.loads((folder / f"gen-ai-{name}.json").read_text()) for key, name in CONTENT.items()}
    return {key: jsonschema.Draft202012Validator(schema) for key, schema in read.items()}


def known(genai):
    """Every key that spans of this generation may have."""
    keys = set()
    for module in (gen_ai_attributes, openai_attributes, error_attributes, http_attributes, network_attributes,
                   server_attributes, url_attributes):
        keys |= {value for name, value in vars(module).items() if name.isupper() and isinstance(value, str)}
    if genai != "v1_41":
        keys |= NEWER
    return keys - OLDER if genai == "latest" else keys


def faults(genai, spans, expect):
    """Holds all spans against the conventions; how many there are of each kind."""
    children, may, forms, said = defaultdict(list), known(genai), schemas(), Counter()
    for span in spans:
        children[span.trace_id, span.parent_span_id].append(span)
    for span in spans:
        values = {pair.key: pair.value for pair in span.attributes}
        for key, value in values.items():
            expect(key in may or key.startswith("taximeter."), f"{genai}: a span has {key}")
            top_k = "int_value" if genai == "latest" else "double_value"
            kind = top_k if key == "gen_ai.request.top_k" else TYPES.get(key, "string_value")
            expect(value.WhichOneof("value") == kind, f"{genai}: {key} is {value}")
            if key in CONTENT:
                content = json.loads(value.string_value)
                said[key] += bool(content)
                for fault in forms[key].iter_errors(content) if key in forms else ():
                    expect(False, f"{genai}: {key}: {fault.message}")
            if key in conventions.ENUMS:
                expect(value.string_value in conventions.ENUMS[key], f"{genai}: {key} is {value}")
        failed = span.status.code == ERROR
        expect(span.status.code != OK, f"{genai}: {span.name} has the status OK")
        expect(failed == ("error.type" in values), f"{genai}: {span.name} has an error on one side only")
        expect(span.end_time_unix_nano >= span.start_time_unix_nano > 0, f"{genai}: {span.name} ends before it begins")
        if span.kind == SERVER:
            named(genai, span, values, "http.request.method", "http.route", HTTP_MUST, expect)
        elif span.kind == CLIENT and "gen_ai.operation.name" not in values:
            named(genai, span, values, "http.request.method", None, ONWARD_MUST, expect)
        elif span.kind == CLIENT:
            named(genai, span, values, "gen_ai.operation.name", "gen_ai.request.model", CALL_MUST, expect)
        else:
            expect(span.kind == INTERNAL and span.name in FACING | CALLING, f"{genai}: {span.name} is a {span.kind}")
        below = children[span.trace_id, span.span_id]
        if below:
            took = sum(child.end_time_unix_nano - child.start_time_unix_nano for child in below)
            expect(took == span.end_time_unix_nano - span.start_time_unix_nano,
                   f"{genai}: the stages of {span.name} do not add up")
    for kind, keys in CONDITIONAL.items():
        told = {pair.key for span in spans if span.kind == kind for pair in span.attributes}
        expect(keys <= told, f"{genai}: no span of kind {kind} has {sorted(keys - told)}")
    kinds = Counter(span.kind for span in spans)
    expect(kinds[SERVER] > kinds[CLIENT] > 0, f"{genai}: spans {dict(kinds)}")
    expect(set(said) == set(CONTENT), f"{genai}: of content there is only {dict(said)}")
    return f"{kinds[SERVER]} spans of requests, {kinds[CLIENT]} of engines, {kinds[INTERNAL]} of stages"


def named(genai, span, values, first, second, required, expect):
    words = [values[key].string_value for key in (first, second) if key in values]
    expect(span.name == " ".join(words), f"{genai}: {span.name} should be {words}")
    expect(required <= set(values), f"{genai}: {span.name} lacks {sorted(required - set(values))}")
