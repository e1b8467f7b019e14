"""A ledger of the real binary: simulated engine, gateway, tenants with odd names, what they used, and its corrections."""

import contextlib
import datetime
import hashlib
import json
import os
import pathlib
import subprocess
import urllib.request

import libfaketime

from programs import running

BINARY = os.environ["TAXIMETER_BINARY"]
SECONDS_MAX = 60
FAKETIME = str(next(pathlib.Path(libfaketime.__file__).parent.rglob("libfaketime.so*")))
# Records with so many labels of the place that a file of them is larger than a part of an upload.
LABELS = {f"label-{number}": "x" * 250 for number in range(1000)}
KEYS = {"sk-acme": ("acme", {"team": "search", "env": "prod, old"}), "sk-odd": ("Zürich 50%", {})}
GPUS = {"type": "H100", "count": 2, "hourly": "2.50 USD"}
ALLOWANCES = {"acme": {"tokens": {"output": 50}}, "Zürich 50%": {"money": "0.00001 USD"}}
# A model whose list prices are in another currency than the bills.
ABROAD = {"model": "abroad", "rates": {"input": 1.1, "output": 3.3, "reasoning": 3.3}}
EXCHANGE = {"from": "EUR", "rate": "1.09"}
# What acme should have had, as it is found later; the second time the month is over.
DISCOUNTS = (("25 %", None), ("40 %", "+40d"))


def taximeter(*words, environment=None):
    """What a command prints; it must end well."""
    done = subprocess.run([BINARY, *words], check=False, capture_output=True, timeout=SECONDS_MAX,
                          env={**os.environ, **(environment or {})})
    assert done.returncode == 0, f"taximeter {words}: {done.stderr.decode()}"
    return done.stdout


def configuration(folder, engine, discount):
    return {
        "listen": "127.0.0.1:0", "admin": "127.0.0.1:0", "data_dir": str(folder / "data"),
        "upstreams": [
            {"name": "gpus", "url": engine, "dialect": "vllm", "models": ["own-*"], "gpu": GPUS},
            {"name": "local", "url": engine, "dialect": "openai"},
        ],
        "resource": LABELS,
        "prices": {"exchange": [EXCHANGE], "overrides": "abroad.yaml"},
        "tenants": {"keys": [{"id": tenant[:4], "tenant": tenant, "labels": labels,
                              "sha256": hashlib.sha256(key.encode()).hexdigest()}
                             for key, (tenant, labels) in KEYS.items()],
                    "list": [{"name": tenant, "allowance": allowance,
                              **({"discount": discount} if tenant == "acme" else {})}
                             for tenant, allowance in ALLOWANCES.items()]},
    }


@contextlib.contextmanager
def gateway(folder, engine):
    file = folder / "taximeter.yaml"
    prices = {"version": "2026-11-01", "currency": EXCHANGE["from"], "cache_without_rate": "input", "models": [ABROAD]}
    (folder / "abroad.yaml").write_text(json.dumps(prices))
    file.write_text(json.dumps(configuration(folder, engine, "10 %")))
    with running("stderr", BINARY, "serve", "--config", str(file)) as log:
        for line in log:
            if json.loads(line).get("event") == "listening":
                yield json.loads(line)
                return
        raise AssertionError("the gateway did not start")


def ask(address, key, path, body):
    request = urllib.request.Request(f"http://{address}{path}", json.dumps(body).encode(),
                                     {"authorization": f"Bearer {key}", "content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=SECONDS_MAX) as answer:
        answer.read()


def chat(model, tokens):
    return "/v1/chat/completions", {"model": model, "max_tokens": tokens,
                                    "messages": [{"role": "user", "content": "Where to? " * tokens}]}


@contextlib.contextmanager
def ledger(folder):
    """Two tenants' requests, some of them at no known price, some on GPUs; the gateway goes on meanwhile."""
    folder = pathlib.Path(folder)
    with running("stdout", BINARY, "simulate", "--listen", "127.0.0.1:0", "--prefill-ms", "0", "--gap-ms", "0",
                 "--reasoning-tokens", "2", "--prefix-cache") as said:
        engine = next(word for word in said.readline().split() if word.startswith("http://"))
        with gateway(folder, engine.rstrip("/.,")) as told:
            models = ["gpt-5.4-mini", "o4-mini", "home-grown", "own-llm", "abroad"]
            for number in range(60):
                key = list(KEYS)[number % 3 == 0]
                model = models[number % len(models)]
                ask(told["listen"], key, *chat(model, 8 + number % 5))
            embeddings = {"model": "text-embedding-3-small", "input": ["To the station"]}
            ask(told["listen"], "sk-acme", "/v1/embeddings", embeddings)
            yield folder / "data"


def correct(folder, period):
    """Prices the period again: while its month goes on, and, by a clock that is ahead, when it is over."""
    for discount, ahead in DISCOUNTS:
        file = folder / f"later-{discount[:2]}.yaml"
        file.write_text(json.dumps(configuration(folder, "http://127.0.0.1:1", discount)))
        clock = {"LD_PRELOAD": FAKETIME, "FAKETIME": ahead} if ahead else {}
        taximeter("rerate", "--data-dir", str(folder / "data"), "--config", str(file), *period, "--reason", "late",
                  environment=clock)


def until_now():
    """A period that is over: since a whole hour, until now."""
    now = datetime.datetime.now(datetime.timezone.utc)
    since = now.replace(minute=0, second=0, microsecond=0) - datetime.timedelta(hours=1)
    return "--from", since.strftime("%Y-%m-%dT%H:%M:%SZ"), "--to", now.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
