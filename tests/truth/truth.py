"""Is the record what happened? A real engine, the real gateway, requests of many shapes, one after another.

For each request three parties speak: the record, the usage that the client saw, and the engine's own counters
before and after. Prints where they differ (and ends with 1), then what times differ by. Then prompts alone: what
`taximeter count` makes of a chat, and what the engine's own /tokenize does.

usage: truth.py ENGINE [--requests N] [--seed N]        ENGINE: llama_cpp, vllm
"""

import argparse
import collections
import http.client
import json
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.parse

import tokenizers

from engines import ENGINES
from shapes import Shape, shape, turns

BINARY = os.environ["TAXIMETER_BINARY"]
REQUEST_SECONDS_MAX = 120


class Gateway:
    """The real binary before the engine, its ledger in `folder`."""

    def __init__(self, engine, model: pathlib.Path, folder: pathlib.Path):
        def upstream(name):
            running = name.endswith("-running")
            return {
                "name": name,
                "url": engine.url,
                "dialect": engine.dialect,
                "models": [name],
                "usage": "continuous" if running else "final",
            }

        self.data_dir = folder / "data"
        config = {
            "listen": "127.0.0.1:0",
            "admin": "127.0.0.1:0",
            "data_dir": str(self.data_dir),
            "upstreams": [upstream(name) for name in engine.models],
            "tokenizers": [{"models": engine.models, "path": str(model)}],
        }
        file = folder / "taximeter.yaml"
        file.write_text(json.dumps(config))  # JSON is YAML
        self.log = open(folder / "taximeter.log", "w+")
        self.child = subprocess.Popen([BINARY, "serve", "--config", str(file)], stderr=self.log)
        self.host = self.listening()

    def listening(self) -> str:
        """Where it listens, once it says so."""
        while self.child.poll() is None:
            for line in pathlib.Path(self.log.name).read_text().split("\n")[:-1]:
                event = json.loads(line) if line.startswith("{") else {}
                if event.get("event") == "listening":
                    return event["listen"]
            time.sleep(0.05)
        sys.exit(f"the gateway ended before it listened:\n{pathlib.Path(self.log.name).read_text()}")

    def records(self) -> dict[str, dict]:
        command = [BINARY, "records", "--data-dir", str(self.data_dir)]
        printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        return {record["id"]: record for record in map(json.loads, printed.splitlines())}

    def stop(self) -> None:
        self.child.terminate()
        self.child.wait(60)


class Seen:
    """What the client saw of one answer."""

    def __init__(self):
        self.id = None
        self.usage = None
        self.timings = None
        self.text = ""
        self.contents = 0

    def event(self, event: dict) -> None:
        if error := event.get("error"):
            raise RuntimeError(f"the engine failed: {error}")
        before = self.text
        body = event.get("response") or event.get("message") or event
        usage = event.get("usage") or body.get("usage")
        if usage:
            # Messages report their usage in parts.
            self.usage = (self.usage or {}) | {k: v for k, v in usage.items() if v is not None}
        self.timings = event.get("timings") or self.timings
        for choice in event.get("choices", []):
            said = choice.get("delta") or choice.get("message") or {}
            self.text += choice.get("text") or said.get("content") or ""
            self.text += said.get("reasoning") or said.get("reasoning_content") or ""
        delta = event.get("delta")
        if isinstance(delta, str) and event["type"].endswith(".delta"):
            self.text += delta
        elif isinstance(delta, dict):
            self.text += delta.get("text") or delta.get("thinking") or ""
        self.contents += self.text != before

    def tokens(self) -> tuple[int | None, int | None]:
        """Input and output, whatever the shape."""
        usage = self.usage or {}
        beside = usage.get("cache_read_input_tokens", 0) + usage.get("cache_creation_input_tokens", 0)
        input_tokens = usage.get("prompt_tokens", usage.get("input_tokens"))
        output_tokens = usage.get("completion_tokens", usage.get("output_tokens"))
        return (None if input_tokens is None else input_tokens + beside, output_tokens)


def ask(host: str, shape: Shape) -> Seen:
    """One request on a connection of its own."""
    seen = Seen()
    connection = http.client.HTTPConnection(host, timeout=REQUEST_SECONDS_MAX)
    headers = {"content-type": "application/json", "anthropic-version": "2023-06-01"}
    connection.request("POST", shape.path, json.dumps(shape.body), headers)
    answer = connection.getresponse()
    seen.id = answer.getheader("x-taximeter-request-id")
    if answer.status != 200:
        raise RuntimeError(f"{answer.status} to {shape.name}: {answer.read()[:500]!r}")
    if not shape.stream:
        seen.event(json.loads(answer.read()))
        connection.close()
        return seen
    events = 0
    for line in answer:
        if line.startswith(b"data:") and not line.startswith(b"data: [DONE]"):
            seen.event(json.loads(line[5:]))
            events += 1
            if events == shape.leaves_after:
                break
    # The socket lives as long as anything that reads from it.
    answer.close()
    connection.close()
    return seen


class Judge:
    """Holds what the three parties say against each other."""

    def __init__(self, tokenizer: tokenizers.Tokenizer):
        self.tokenizer = tokenizer
        self.contradictions = 0
        self.engine_contradicts_itself = 0
        self.kinds: dict[str, int] = {}
        self.sources: dict[str, int] = {}
        self.first_tokens: list[float] = []
        self.gaps: list[float] = []
        self.aborts_counted: list[int] = []
        self.aborts_reported: list[int] = []

    def hear(self, shape: Shape, seen: Seen, counted, record: dict) -> None:
        usage = record["usage"]
        recorded = (usage["input_tokens"], usage["output_tokens"])
        self.kinds[shape.name] = self.kinds.get(shape.name, 0) + 1
        self.sources[usage["source"]] = self.sources.get(usage["source"], 0) + 1

        def must(holds: bool, what: str) -> None:
            if not holds:
                self.contradictions += 1
                told = f"record {recorded} {usage['source']}, client {seen.tokens()}, "
                print(f"{shape.name} ({seen.id}): {what}: {told}engine {counted}", flush=True)

        if shape.leaves_after is not None:
            return self.hear_abort(shape, seen, counted, record, must)
        must(record["end"] == "complete", f"end is {record['end']}")
        # llama.cpp leaves the event out that tells a message's input when the whole answer is no text.
        told = seen.tokens()
        is_partial = shape.stream and shape.kind == "messages" and told[0] is None
        must(usage["source"] == "reported" or is_partial, "usage was not reported")
        same = all(mine in (None, its) for mine, its in zip(told, recorded, strict=True))
        must(same, "the client saw other numbers")
        # vLLM's counter has the prompt once a choice, its usage once.
        once_or_each = (recorded[0], recorded[0] * shape.body.get("n", 1))
        must(counted.input in once_or_each, "the engine counted another input")
        if shape.body.get("n", 1) > 1 and counted.output != recorded[1]:
            # llama.cpp reports the tokens of one choice only, and counts those of all.
            self.engine_contradicts_itself += 1
        elif shape.kind != "embeddings":
            must(counted.output == recorded[1], "the engine counted another output")
        self.time(shape, seen, counted, record)

    def hear_abort(self, shape, seen, counted, record, must) -> None:
        usage = record["usage"]
        if record["end"] == "complete":
            # The answer was shorter than the client's patience.
            return must(usage["output_tokens"] == counted.output, "the engine counted another output")
        must(record["end"] == "client_left", f"end is {record['end']}")
        must(usage["input_tokens"] == counted.input, "the engine counted another input")
        must("estimated" not in usage["flags"], "estimated, with the model's own vocabulary at hand")
        # The gateway may have handed over a few events that the client never took, and noise is written
        # with other tokens than a tokenizer would choose: at least what was taken, and something like it.
        if usage["source"] == "counted":
            sent = len(self.tokenizer.encode(seen.text, add_special_tokens=False).ids)
            must(usage["output_tokens"] >= sent, f"the client was sent {sent} tokens")
            self.aborts_counted.append(usage["output_tokens"] - counted.output)
        else:
            must(usage["output_tokens"] >= seen.contents, f"the client was sent {seen.contents} tokens")
            self.aborts_reported.append(usage["output_tokens"] - counted.output)

    def time(self, shape: Shape, seen: Seen, counted, record: dict) -> None:
        timing = record["timing"]
        if not shape.stream or shape.body.get("n", 1) > 1:
            return
        ours, gap = timing["time_to_first_token"], timing["time_per_output_token"]
        first, gaps = counted.first_token, counted.gaps
        if seen.timings and seen.timings["predicted_n"]:
            token = seen.timings["predicted_per_token_ms"] / 1e3
            first = (seen.timings["prompt_ms"] / 1e3 + token, 1)
            gaps = (token, 1)
        if ours and first[1] == 1:
            self.first_tokens.append(ours - first[0])
        if gap and gaps[1]:
            self.gaps.append(gap - gaps[0] / gaps[1])


def spread(name: str, differences: list[float]) -> str:
    if not differences:
        return f"{name}: nothing to compare"
    differences = sorted(differences)
    nth = lambda share: differences[int(share * (len(differences) - 1))] * 1e3
    median = statistics.median(differences) * 1e3
    return (
        f"{name}: ours less the engine's, over {len(differences)} streams: median {median:+.2f} ms, "
        f"p10 {nth(0.1):+.2f}, p90 {nth(0.9):+.2f}, extremes {nth(0):+.2f} {nth(1):+.2f}"
    )


def differing_prompts(engine, model: pathlib.Path, rolled: random.Random, count: int) -> int:
    """How many of `count` chats `taximeter count --against` finds to differ from the engine's own /tokenize."""
    command = [BINARY, "count", "--model", engine.models[0]]
    command += ["--tokenizer", str(model), "--against", engine.url]
    differing = 0
    for _ in range(count):
        body = json.dumps({"model": engine.models[0], "messages": turns(rolled)})
        told = subprocess.run(command, input=body, capture_output=True, text=True, timeout=60)
        if told.returncode:
            differing += 1
            print(f"prompt counted otherwise than by the engine: {told.stdout}{told.stderr}{body}")
    return differing


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    options.add_argument("engine", choices=ENGINES)
    options.add_argument("--requests", type=int, default=200)
    options.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    options.add_argument("--model", type=pathlib.Path, required=True, help="folder of model_folder.py")
    told = options.parse_args()
    told.model = told.model.resolve()
    print(f"{told.engine}, {told.requests} requests, seed {told.seed}", flush=True)

    rolled = random.Random(told.seed)
    judge = Judge(tokenizers.Tokenizer.from_file(str(told.model / "tokenizer.json")))
    folder = pathlib.Path(tempfile.mkdtemp(prefix="truth-"))
    engine = ENGINES[told.engine](told.model, folder)
    try:
        gateway = Gateway(engine, told.model, folder)
        try:
            heard, before = [], engine.settled()
            for _ in range(told.requests):
                asked = shape(rolled, engine.kinds, engine.models)
                seen = ask(gateway.host, asked)
                after = engine.settled()
                heard.append((asked, seen, after - before))
                before = after
        finally:
            gateway.stop()
        records = gateway.records()
        prompts = differing_prompts(engine, told.model, rolled, told.requests // 10)
    finally:
        engine.stop()

    for asked, seen, counted in heard:
        judge.hear(asked, seen, counted, records.pop(seen.id))
    for record in records:
        judge.contradictions += 1
        print(f"a record that nobody asked for: {record}")
    print(", ".join(f"{name} {n}" for name, n in sorted(judge.kinds.items())))
    print(", ".join(f"{name} {n}" for name, n in sorted(judge.sources.items())))
    print(spread("time to first token", judge.first_tokens))
    print(spread("time per output token", judge.gaps))
    print(f"usage that the engine's own counters contradict: {judge.engine_contradicts_itself}")
    for source, differences in (("counted", judge.aborts_counted), ("reported", judge.aborts_reported)):
        told_of = collections.Counter(differences)
        print(f"aborts, {source}: tokens less the engine's: {dict(sorted(told_of.items()))}")
    print(f"prompts asked of the engine's /tokenize: {told.requests // 10}, differing: {prompts}")
    judge.contradictions += prompts
    print(f"{told.requests} requests, {judge.contradictions} contradictions (logs in {folder})")
    return 1 if judge.contradictions else 0


if __name__ == "__main__":
    sys.exit(main())
