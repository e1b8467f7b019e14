"""The stage: llama.cpp with a tiny random model, the gateway before it, and a key for each client."""

import contextlib
import hashlib
import json
import os
import pathlib
import subprocess
import sys
import urllib.request

import pytest

HERE = pathlib.Path(__file__).parent
BINARY = os.environ["TAXIMETER_BINARY"]
START_SECONDS_MAX = 60

# One tenant a client library: what each used can then be told apart on the ledger.
TENANTS = ["openai-python", "openai-node", "anthropic", "langchain", "keep-alive"]


def key_of(tenant: str) -> str:
    return f"sk-real-{tenant}"


class Process:
    """A child that says where it listens on its first useful line; dies with the tests."""

    def __init__(self, command, pipe, **options):
        self.child = subprocess.Popen(command, **{pipe: subprocess.PIPE}, text=True, **options)
        self.lines = getattr(self.child, pipe)

    def stop(self) -> int:
        self.child.terminate()
        return self.child.wait(START_SECONDS_MAX)


@pytest.fixture(scope="session")
def model(tmp_path_factory):
    """The folder of the model that the engine serves."""
    folder = tmp_path_factory.mktemp("model")
    subprocess.run([sys.executable, HERE / "tiny_model.py", folder], check=True)
    return folder


@pytest.fixture(scope="session")
def engine(model, tmp_path_factory):
    """llama.cpp's address."""
    file = model / "tiny.gguf"
    with open(tmp_path_factory.mktemp("engine") / "llama.log", "w") as log:
        process = Process([sys.executable, HERE / "serve_llama.py", file], "stdout", stderr=log)
        yield process.lines.readline().strip()
        process.child.kill()
        process.child.wait()


class Gateway:
    def __init__(self, listen: str, admin: str, data_dir: pathlib.Path):
        self.url = f"http://{listen}"
        self.admin = f"http://{admin}"
        self.data_dir = data_dir

    def command(self, *words: str) -> str:
        """What a command of the binary prints about this gateway's ledger."""
        command = [BINARY, *words, "--data-dir", str(self.data_dir)]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    def records(self) -> list[dict]:
        return [json.loads(line) for line in self.command("records").splitlines()]


@contextlib.contextmanager
def serving(folder: pathlib.Path, upstreams: list[dict], tenants: list[str], **more):
    """The real binary before these upstreams, with a key for each tenant, and what more it is told."""
    keys = [
        {
            "id": tenant,
            "tenant": tenant,
            "sha256": hashlib.sha256(key_of(tenant).encode()).hexdigest(),
        }
        for tenant in tenants
    ]
    config = {
        "listen": "127.0.0.1:0",
        "admin": "127.0.0.1:0",
        "data_dir": str(folder / "data"),
        "upstreams": upstreams,
        "tenants": {"unknown": "refuse", "keys": keys},
        **more,
    }
    file = folder / "taximeter.yaml"
    file.write_text(json.dumps(config))  # JSON is YAML
    with running(["--config", str(file)], folder / "data") as gateway:
        yield gateway


@contextlib.contextmanager
def running(words: list[str], data_dir: pathlib.Path):
    """The real binary, served with these words."""
    process = Process([BINARY, "serve", *words], "stderr")
    for line in process.lines:
        event = json.loads(line)
        if event.get("event") == "listening":
            break
    else:
        pytest.fail(f"the gateway ended before it listened: {process.child.wait()}")
    # Read on, or the gateway blocks on a full pipe.
    drain = subprocess.Popen(["cat"], stdin=process.lines, stdout=subprocess.DEVNULL)
    yield Gateway(event["listen"], event["admin"], data_dir)
    code = process.stop()
    drain.wait()
    assert code == 0, "the gateway did not end cleanly on SIGTERM"


@pytest.fixture(scope="session")
def gateway(engine, tmp_path_factory):
    """The real binary, before the real engine."""
    upstreams = [{"name": "llama", "url": engine, "dialect": "llama_cpp", "models": ["tiny"]}]
    with serving(tmp_path_factory.mktemp("gateway"), upstreams, TENANTS) as gateway:
        yield gateway


def scrape(url: str) -> str:
    with urllib.request.urlopen(f"{url}/metrics", timeout=10) as answer:
        return answer.read().decode()


def counter(text: str, name: str) -> int:
    """The value of a counter that has no labels."""
    [value] = [line.split()[1] for line in text.splitlines() if line.startswith(f"{name} ")]
    return int(value)
