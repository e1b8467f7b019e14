"""Real engines, and what they themselves say that they did."""

import dataclasses
import json
import os
import pathlib
import subprocess
import sys
import time
import urllib.request

HERE = pathlib.Path(__file__).parent
START_SECONDS_MAX = 600
SETTLE_SECONDS_MAX = 20


@dataclasses.dataclass
class Counters:
    """Totals since the engine's start: tokens, seconds."""

    input: int = 0
    output: int = 0
    # vLLM's histograms: sums in seconds, and how many were added up.
    first_token: tuple[float, int] = (0.0, 0)
    gaps: tuple[float, int] = (0.0, 0)

    def __sub__(self, earlier):
        def less(now, before):
            return (now[0] - before[0], now[1] - before[1])

        return Counters(
            self.input - earlier.input,
            self.output - earlier.output,
            less(self.first_token, earlier.first_token),
            less(self.gaps, earlier.gaps),
        )


class Engine:
    dialect: str
    kinds: list[str]
    models: list[str]

    def counters(self) -> Counters:
        raise NotImplementedError

    def is_idle(self) -> bool:
        raise NotImplementedError

    def settled(self) -> Counters:
        """The counters once the engine does nothing any more, and has written so."""
        before, deadline = None, time.monotonic() + SETTLE_SECONDS_MAX
        while time.monotonic() < deadline:
            now = self.counters() if self.is_idle() else None
            if now is not None and now == before:
                return now
            before = now
            time.sleep(0.05)
        raise TimeoutError("the engine does not come to rest")

    def samples(self) -> dict[str, float]:
        """The engine's own metrics, summed over their labels."""
        with urllib.request.urlopen(f"{self.url}/metrics", timeout=10) as answer:
            lines = answer.read().decode().splitlines()
        samples: dict[str, float] = {}
        for line in lines:
            if line and not line.startswith("#"):
                name, value = line.rsplit(" ", 1)
                name = name.split("{")[0]
                samples[name] = samples.get(name, 0.0) + float(value)
        return samples

    def stop(self) -> None:
        self.child.terminate()
        try:
            self.child.wait(30)
        except subprocess.TimeoutExpired:
            self.child.kill()
            self.child.wait()


class LlamaCpp(Engine):
    dialect = "llama_cpp"
    kinds = ["chat", "chat", "completions", "messages", "responses", "embeddings"]
    models = ["tiny"]

    def __init__(self, model: pathlib.Path, folder: pathlib.Path):
        serve = HERE.parent / "real" / "serve_llama.py"
        with open(folder / "llama.log", "w") as log:
            self.child = subprocess.Popen(
                [sys.executable, serve, model / "tiny.gguf"],
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        self.url = self.child.stdout.readline().strip()

    def counters(self) -> Counters:
        samples = self.samples()
        # Evaluated and cached prompt tokens are counted apart.
        cached = samples["llamacpp:prompt_tokens_cached_total"]
        return Counters(
            int(samples["llamacpp:prompt_tokens_total"] + cached),
            int(samples["llamacpp:tokens_predicted_total"]),
        )

    def is_idle(self) -> bool:
        return self.samples()["llamacpp:requests_processing"] == 0


class Vllm(Engine):
    dialect = "vllm"
    kinds = ["chat", "chat", "completions", "messages", "responses"]
    # One engine under two names, so that the gateway can ask for usage in two ways.
    models = ["tiny", "tiny-running"]

    def __init__(self, model: pathlib.Path, folder: pathlib.Path):
        port = 18084
        environment = os.environ | {
            "VLLM_CPU_KVCACHE_SPACE": "1",
            "HF_HUB_OFFLINE": "1",
            "TRANSFORMERS_OFFLINE": "1",
            "VLLM_NO_USAGE_STATS": "1",
            "VLLM_CPU_OMP_THREADS_BIND": "nobind",
            "OMP_NUM_THREADS": "1",
        }
        command = [
            *(os.environ["TRUTH_VLLM"], "serve", str(model)),
            *("--served-model-name", *self.models),
            *("--host", "127.0.0.1", "--port", str(port)),
            *("--dtype", "float32", "--enforce-eager", "--max-model-len", "2048"),
            "--enable-prompt-tokens-details",
        ]
        with open(folder / "vllm.log", "w") as log:
            self.child = subprocess.Popen(command, stdout=log, stderr=log, env=environment)
        self.url = f"http://127.0.0.1:{port}"
        self.wait(folder / "vllm.log")

    def wait(self, log: pathlib.Path) -> None:
        deadline = time.monotonic() + START_SECONDS_MAX
        while time.monotonic() < deadline and self.child.poll() is None:
            try:
                with urllib.request.urlopen(f"{self.url}/health", timeout=5):
                    return
            except OSError:
                time.sleep(1)
        raise RuntimeError(f"vLLM did not start; see {log}")

    def counters(self) -> Counters:
        samples = self.samples()

        def histogram(name):
            return (samples.get(f"{name}_sum", 0.0), int(samples.get(f"{name}_count", 0)))

        return Counters(
            int(samples.get("vllm:prompt_tokens_total", 0)),
            int(samples.get("vllm:generation_tokens_total", 0)),
            histogram("vllm:time_to_first_token_seconds"),
            histogram("vllm:inter_token_latency_seconds"),
        )

    def is_idle(self) -> bool:
        samples = self.samples()
        return samples["vllm:num_requests_running"] + samples["vllm:num_requests_waiting"] == 0


ENGINES = {"llama_cpp": LlamaCpp, "vllm": Vllm}
