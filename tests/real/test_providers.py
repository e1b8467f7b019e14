"""Clients of providers that speak like nobody else, with nothing but their address and key changed.

The providers are played from tests/fixtures, so what their clients make of each byte is known.
"""

import http.server
import pathlib
import subprocess
import threading

import boto3
import botocore.exceptions
import cohere
import pytest
from google import genai

from conftest import key_of, serving

FIXTURES = pathlib.Path(__file__).parent.parent / "fixtures"
TENANTS = ["google-genai", "boto3", "cohere"]
TYPES = {".sse": "text/event-stream", ".json": "application/json", ".eventstream": "application/vnd.amazon.eventstream"}

GEMINI = "gemini-2.5-flash"
CLAUDE = "anthropic.claude-haiku-4-5-20251001-v1:0"
# Begins to answer and then says nothing more.
SILENT = "anthropic.silent"
# What answers which path.
ANSWERS = {
    f"/v1/models/{GEMINI}:generateContent": "gemini/content_whole.json",
    f"/v1/models/{GEMINI}:streamGenerateContent?alt=sse": "gemini/content_thinking_tools.sse",
    f"/model/{CLAUDE.replace(':', '%3A')}/converse": "bedrock/converse_whole.json",
    f"/model/{CLAUDE.replace(':', '%3A')}/converse-stream": "bedrock/converse_stream.eventstream",
    f"/model/{SILENT}/converse-stream": "bedrock/converse_stream.eventstream",
    "/v2/chat": "cohere/chat_tool_use.sse",
    "/v2/rerank": "cohere/rerank.json",
}


class Provider(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # The credentials that were shown, by their header.
    shown = []
    over = threading.Event()

    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        named = ("authorization", "x-goog-api-key", "x-api-key", "api-key")
        self.shown.append({name: self.headers[name] for name in named if name in self.headers})
        file = FIXTURES / ANSWERS[self.path]
        body = file.read_bytes()
        self.send_response(200)
        self.send_header("content-type", TYPES[file.suffix])
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        if SILENT in self.path:
            first = int.from_bytes(body[:4])
            self.say(body[:first])
            self.over.wait()
        else:
            self.say(body)
            self.say(b"")

    def say(self, chunk):
        self.wfile.write(b"%x\r\n%b\r\n" % (len(chunk), chunk))

    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def provider():
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Provider) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        Provider.over.set()
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """AWS's client shows a key over TLS only. All three trust what these variables name."""
    folder = tmp_path_factory.mktemp("tls")
    cert, key = folder / "tls.crt", folder / "tls.key"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=a",
         "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", cert],
        check=True, capture_output=True,
    )  # fmt: skip
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SSL_CERT_FILE", str(cert))
        patch.setenv("AWS_CA_BUNDLE", str(cert))
        yield {"cert": str(cert), "key": str(key)}


@pytest.fixture(scope="module")
def gateway(provider, certificate, tmp_path_factory):
    upstreams = [
        {"name": dialect, "url": provider, "dialect": dialect, "models": models, "credential": f"sk-{dialect}"}
        for dialect, models in [
            ("gemini", ["gemini-*"]),
            ("bedrock", ["anthropic.*"]),
            ("cohere", ["command-*", "rerank-*"]),
        ]
    ]
    limits = {"upstream_idle_timeout_seconds": 0.5}
    folder = tmp_path_factory.mktemp("providers")
    with serving(folder, upstreams, TENANTS, tls=certificate, limits=limits) as gateway:
        gateway.url = gateway.url.replace("http://", "https://")
        yield gateway


def tokens_of(gateway, tenant: str) -> list[tuple[int, int]]:
    records = [record for record in gateway.records() if record["tenant"] == tenant]
    assert all(record["end"] == "complete" for record in records), records
    return [(record["usage"]["input_tokens"], record["usage"]["output_tokens"]) for record in records]


def test_googles_client_asks_and_streams(gateway):
    client = genai.Client(api_key=key_of("google-genai"), http_options={"base_url": gateway.url})
    answer = client.models.generate_content(model=GEMINI, contents="Where to?")
    assert answer.candidates[0].content.parts[0].text == "A taxi."
    told = answer.usage_metadata
    seen = [(told.prompt_token_count, told.candidates_token_count)]
    told = list(client.models.generate_content_stream(model=GEMINI, contents="Where to?"))[-1].usage_metadata
    seen.append(
        (
            told.prompt_token_count + told.tool_use_prompt_token_count,
            told.candidates_token_count + told.thoughts_token_count,
        )
    )
    assert tokens_of(gateway, "google-genai") == seen
    assert Provider.shown[-1] == {"x-goog-api-key": "sk-gemini"}


def test_awss_client_asks_and_streams_and_finds_its_checksums_right(gateway, monkeypatch):
    monkeypatch.setenv("AWS_BEARER_TOKEN_BEDROCK", key_of("boto3"))
    client = boto3.client("bedrock-runtime", endpoint_url=gateway.url, region_name="us-east-1")
    asked = {"modelId": CLAUDE, "messages": [{"role": "user", "content": [{"text": "Where to?"}]}]}
    usage = client.converse(**asked)["usage"]
    seen = [(usage["inputTokens"], usage["outputTokens"])]
    usage = list(client.converse_stream(**asked)["stream"])[-1]["metadata"]["usage"]
    cached = usage["cacheReadInputTokens"] + usage["cacheWriteInputTokens"]
    seen.append((usage["inputTokens"] + cached, usage["outputTokens"]))
    assert tokens_of(gateway, "boto3") == seen
    assert Provider.shown[-1] == {"authorization": "Bearer sk-bedrock"}
    assert {record["request_model"] for record in gateway.records() if record["tenant"] == "boto3"} == {CLAUDE}


def test_awss_client_is_told_of_a_stream_that_fell_silent(gateway, monkeypatch):
    monkeypatch.setenv("AWS_BEARER_TOKEN_BEDROCK", key_of("boto3"))
    client = boto3.client("bedrock-runtime", endpoint_url=gateway.url, region_name="us-east-1")
    ask = [{"role": "user", "content": [{"text": "Where to?"}]}]
    events = iter(client.converse_stream(modelId=SILENT, messages=ask)["stream"])
    assert next(events) == {"messageStart": {"role": "assistant"}}
    with pytest.raises(botocore.exceptions.EventStreamError, match="modelStreamErrorException"):
        next(events)


def test_coheres_client_streams_and_ranks(gateway):
    client = cohere.ClientV2(api_key=key_of("cohere"), base_url=gateway.url)
    ask = [{"role": "user", "content": "Where to?"}]
    events = list(client.chat_stream(model="command-a-03-2025", messages=ask))
    billed = events[-1].delta.usage.billed_units
    assert tokens_of(gateway, "cohere") == [(billed.input_tokens, billed.output_tokens)]
    ranked = client.rerank(model="rerank-v3.5", query="taxi", documents=["cab", "car"])
    assert ranked.meta.billed_units.search_units == 1
    [record] = [record for record in gateway.records() if record["operation"] == "rerank"]
    assert record["usage"]["units"] == {"search_units": "1"}
    assert Provider.shown[-1] == {"authorization": "Bearer sk-cohere"}
