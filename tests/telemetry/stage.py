"""The simulated engine, gateways before it, and traffic through them; each program is ended by its own id."""

import contextlib
import http.client
import json
import os
import socket
import subprocess
import time
import urllib.error
import urllib.request

BINARY = os.environ["TAXIMETER_BINARY"]
SECONDS_MAX = 60
PATIENCE_SECONDS = 120
TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
TOOLS = [{"type": "function", "function": {"name": "map", "parameters": {"type": "object"}}}]
STATED = {"temperature": 0.5, "top_p": 1, "top_k": 40, "seed": 7, "stop": ["end"], "max_tokens": 8, "n": 2,
          "frequency_penalty": 0.1, "presence_penalty": -1, "reasoning_effort": "low",
          "response_format": {"type": "json_object"}}
CHAT = {"model": "gpt-4o-mini", "messages": [{"role": "user", "content": "Where to? " * 20}]}


def free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


def patiently(look, what):
    """What `look` finds, once it does."""
    end = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < end:
        # Nobody listens yet.
        with contextlib.suppress(OSError, AssertionError):
            if found := look():
                return found
        time.sleep(0.1)
    raise AssertionError(f"{what} did not come within {PATIENCE_SECONDS} s")


@contextlib.contextmanager
def running(words, log, **options):
    """A program whose words go to the file `log`."""
    with open(log, "wb") as said:
        child = subprocess.Popen(words, stdout=said, stderr=subprocess.STDOUT, **options)
    try:
        yield child
    finally:
        child.terminate()
        try:
            child.wait(SECONDS_MAX)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()


def get(url, headers=None, body=None):
    """Status, headers and body."""
    request = urllib.request.Request(url, body, headers or {})
    try:
        with urllib.request.urlopen(request, timeout=SECONDS_MAX) as answer:
            try:
                return answer.status, answer.headers, answer.read().decode()
            except http.client.IncompleteRead as cut:
                return answer.status, answer.headers, cut.partial.decode()
    except urllib.error.HTTPError as refused:
        with refused:
            return refused.code, refused.headers, refused.read().decode()


def json_of(url):
    status, _, body = get(url)
    assert status == 200, f"{url}: {status} {body}"
    return json.loads(body)


@contextlib.contextmanager
def engine(folder):
    address = f"127.0.0.1:{free_port()}"
    words = [BINARY, "simulate", "--listen", address, "--prefill-ms", "2", "--gap-ms", "1", "--output-tokens", "8",
             "--reasoning-tokens", "3", "--prefix-cache"]
    with running(words, folder / "engine.log"):
        yield address


class Gateway:
    """A gateway that has begun to serve."""

    def __init__(self, listening, child):
        self.url, self.admin = f"http://{listening['listen']}", f"http://{listening['admin']}"
        self.child = child

    def ask(self, path, body, **headers):
        return self.answer(path, body, **headers)[0]

    def answer(self, path, body, **headers):
        """Status and body."""
        sent = {"content-type": "application/json", "traceparent": TRACE}
        sent |= {name.replace("_", "-"): text for name, text in headers.items()}
        status, _, text = get(self.url + path, sent, json.dumps(body).encode())
        return status, text

    def leave(self, body, simulate, seconds, **headers):
        """Asks, and closes the connection after this time."""
        sent = {"content-type": "application/json", "x-simulate": simulate}
        sent |= {name.replace("_", "-"): text for name, text in headers.items()}
        asking = urllib.request.Request(self.url + "/v1/chat/completions", json.dumps(body).encode(), sent)
        with (contextlib.suppress(OSError, http.client.HTTPException),
              urllib.request.urlopen(asking, timeout=seconds) as answer):
            answer.read()

    def ride(self):
        """Every kind of request that has metrics of its own; how many chats of them were answered well."""
        for _ in range(2):
            assert self.ask("/v1/chat/completions", CHAT) == 200
            assert self.ask("/v1/chat/completions", {**CHAT, "stream": True}) == 200
        # Counted as the model itself does: an engine has no model of OpenAI's but its open ones.
        assert self.ask("/v1/completions", {"model": "gpt-oss-20b", "prompt": "Where to? " * 20}) == 200
        assert self.ask("/v1/completions", {"model": "gpt-4o-mini", "prompt": "Where to?"}) == 200
        assert self.ask("/v1/chat/completions", {**CHAT, **STATED, "tools": TOOLS}) == 200
        asked = {"model": "gpt-4o-mini", "input": "Where to?", "conversation": {"id": "conv_1"},
                 "prompt": {"id": "pmpt_1", "version": "2"}}
        assert self.ask("/v1/responses", asked) == 200
        # No engine has seen it before.
        text = f"{os.urandom(8).hex()}: be short. " * 20
        system = [{"type": "text", "text": text, "cache_control": {"type": "ephemeral"}}]
        message = {"model": "claude-sonnet-4-5", "max_tokens": 8, "system": system, "messages": CHAT["messages"]}
        # Written to the cache, and then read from it.
        for _ in range(2):
            assert self.ask("/v1/messages", message) == 200
        assert self.ask("/v1/embeddings", {"model": "text-embedding-3-small", "input": "Where to?"}) == 200
        assert self.ask("/v1/chat/completions", CHAT, x_simulate="status=503") == 503
        assert self.ask("/v1/rerank", {"model": "r", "query": "q", "documents": ["d"]}) != 500
        self.ask("/v1/chat/completions", {**CHAT, "stream": True}, x_simulate="die_after=3")
        assert self.ask("/v1/nowhere", {}) == 404
        get(self.url + "/v1/models", {"traceparent": TRACE})
        return 7

    def metrics(self, accept=""):
        status, headers, text = get(f"{self.admin}/metrics", {"accept": accept})
        assert status == 200, status
        return headers["content-type"], text


@contextlib.contextmanager
def gateway(folder, name, engine_at, telemetry, more=None):
    """One with these settings under `telemetry`, and more of them."""
    config = {
        "listen": "127.0.0.1:0", "admin": "127.0.0.1:0", "data_dir": str(folder / name),
        "upstreams": [{"name": "local", "url": f"http://{engine_at}", "dialect": "vllm"}],
        "telemetry": telemetry,
        **(more or {}),
    }
    file = folder / f"{name}.yaml"
    file.write_text(json.dumps(config))
    environment = {key: value for key, value in os.environ.items() if not key.startswith("OTEL_")}
    log = folder / f"{name}.stderr"
    begin = log.stat().st_size if log.exists() else 0
    with log.open("ab") as said:
        child = subprocess.Popen([BINARY, "serve", "--config", str(file)], stderr=said, env=environment)

    def listening():
        told = log.read_bytes()[begin:]
        if child.poll() is not None:
            raise RuntimeError(f"the gateway did not start: {told.decode()}")
        lines = told.splitlines(keepends=True)
        events = (json.loads(line) for line in lines if line.endswith(b"\n"))
        return next((event for event in events if event.get("event") == "listening"), None)

    try:
        yield Gateway(patiently(listening, "a gateway that listens"), child)
    finally:
        child.terminate()
        child.wait(SECONDS_MAX)
