"""The admin address as strangers ask it: no answer is 5xx, and each is as /openapi.json describes it.

Starts a simulated engine and a gateway, has requests settled and one running, and lets schemathesis ask for so many
seconds: examples, the edges of every parameter, then whatever it can think of. Ends with 1 where anything differs.
"""

import contextlib
import hashlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import urllib.request

from programs import running

BINARY = os.environ["TAXIMETER_BINARY"]
TOKEN = "correct-horse-battery"
# A method that is not described is 405 only for who may change things.
TOKEN_ENTRY = {"id": "check", "sha256": hashlib.sha256(TOKEN.encode()).hexdigest(), "may": ["read", "change"]}
KEYS = {"sk-acme": "acme", "sk-odd": "Zürich 50%"}
SECONDS_MAX = 60
CHECKS = ("not_a_server_error", "status_code_conformance", "content_type_conformance", "response_headers_conformance",
          "response_schema_conformance", "unsupported_method", "allow_header_conformance", "ignored_auth")
# A stream of events does not end; tests/it/api/live.rs reads it.
ENDLESS = "/api/v1/live/events"


def configuration(folder, engine):
    return {
        "listen": "127.0.0.1:0", "admin": "127.0.0.1:0", "admin_tokens": [TOKEN_ENTRY], "data_dir": str(folder / "data"),
        "billing": {"zone": "Asia/Kolkata"},
        "upstreams": [{"name": "local", "url": engine, "dialect": "openai"}],
        "tenants": {"keys": [{"id": tenant[:4], "tenant": tenant, "sha256": hashlib.sha256(key.encode()).hexdigest()}
                             for key, tenant in KEYS.items()],
                    "list": [{"name": "acme", "discount": "10 %", "allowance": {"money": "0.00001 USD"}}]},
    }


@contextlib.contextmanager
def gateway(folder):
    """Its addresses, before an engine that takes its time."""
    with running("stdout", BINARY, "simulate", "--listen", "127.0.0.1:0", "--prefill-ms", "0", "--gap-ms", "5") as said:
        engine = next(word for word in said.readline().split() if word.startswith("http://")).rstrip("/.,")
        file = folder / "taximeter.yaml"
        file.write_text(json.dumps(configuration(folder, engine)))
        with running("stderr", BINARY, "serve", "--config", str(file)) as log:
            told = next((json.loads(line) for line in log if json.loads(line).get("event") == "listening"), None)
            assert told, "the gateway did not start"
            yield told["listen"], told["admin"]


def ask(address, path, key, body=None):
    request = urllib.request.Request(f"http://{address}{path}", body and json.dumps(body).encode(),
                                     {"authorization": f"Bearer {key}", "content-type": "application/json"})
    return urllib.request.urlopen(request, timeout=SECONDS_MAX)


def chat(model, tokens, stream=False):
    return {"model": model, "max_tokens": tokens, "stream": stream,
            "messages": [{"role": "user", "content": "Where to?"}]}


def settled(listen, admin):
    """Requests of two tenants, some of them at no known price, until the store has them."""
    for number in range(24):
        key, model = list(KEYS)[number % 3 == 0], ["gpt-5.4-mini", "home-grown"][number % 2]
        with ask(listen, "/v1/chat/completions", key, chat(model, 4 + number % 5, stream=number % 4 == 0)) as answer:
            answer.read()
    until = time.monotonic() + SECONDS_MAX
    while json.load(ask(admin, "/api/v1/status", TOKEN))["store"]["pending_entries"] != 0:
        assert time.monotonic() < until, "the store is not fed"
        time.sleep(0.2)
    found = json.load(ask(admin, "/api/v1/usage", TOKEN))["total"]["requests"]["count"]
    assert found == 24, f"24 requests were settled, and {found} are there"


def main(seconds):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        with gateway(folder) as (listen, admin):
            settled(listen, admin)
            # It runs while the others are asked about.
            with ask(listen, "/v1/chat/completions", "sk-acme", chat("gpt-5.4-mini", 100_000, stream=True)):
                words = [pathlib.Path(sys.executable).with_name("schemathesis"), "run",
                         f"http://{admin}/openapi.json", "-H", f"Authorization: Bearer {TOKEN}",
                         "--checks", ",".join(CHECKS), "--phases", "examples,coverage,fuzzing",
                         "--exclude-path", ENDLESS, "--max-time", str(seconds), "--seed", "1",
                         # How many of its own ideas it throws away says nothing of the gateway.
                         "--suppress-health-check", "filter_too_much",
                         "--continue-on-failure", "--request-timeout", "15", "--no-color"]
                # What it notes of its work belongs to nobody.
                done = subprocess.run(words, cwd=folder, check=False, timeout=seconds + 2 * SECONDS_MAX)
            with ask(admin, "/api/v1/status", TOKEN) as status:
                status.read()
    return done.returncode


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
