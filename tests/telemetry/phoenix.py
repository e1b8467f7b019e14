"""Spans of the real binary in Phoenix: the model calls that it shows are those that were made, with their tokens.

Runs in a network of its own, since Phoenix opens a port on every address. Ends with 1 where anything differs.
"""

import contextlib
import os
import pathlib
import sys
import tempfile

import stage

SPANS = "/v1/projects/default/spans?limit=1000"


@contextlib.contextmanager
def phoenix(folder):
    """A store and viewer of spans: its address."""
    port, grpc, metrics = (str(stage.free_port()) for _ in range(3))
    environment = {
        **os.environ, "PHOENIX_HOST": "127.0.0.1", "PHOENIX_PORT": port, "PHOENIX_GRPC_PORT": grpc,
        "PHOENIX_PROMETHEUS_PORT": metrics, "PHOENIX_WORKING_DIR": str(folder / "phoenix"),
        "PHOENIX_TELEMETRY_ENABLED": "false"}
    program = pathlib.Path(sys.executable).parent / "phoenix"
    with stage.running([program, "serve"], folder / "phoenix.log", env=environment, cwd=folder):
        url = f"http://127.0.0.1:{port}"
        stage.patiently(lambda: stage.get(f"{url}/healthz")[0] == 200, "Phoenix")
        yield url


def shown(url):
    """What it shows of each request: its spans by their names."""
    requests = {}
    for span in stage.json_of(url + SPANS)["data"]:
        requests.setdefault(span["context"]["trace_id"], []).append(span)
    return requests


def faults(spans, record):
    """What it shows otherwise than the ledger has it, of one chat."""
    calls = [span for span in spans if span["span_kind"] == "LLM"]
    if len(calls) != 1:
        return [f"{len(calls)} model calls in one request: {[span['name'] for span in spans]}"]
    call, usage = calls[0], record["usage"]
    facing = [span for span in spans if span["context"]["span_id"] == call["parent_id"]]
    found = {
        "name": call["name"],
        "parent": [span["name"] for span in facing],
        "model": call["attributes"].get("llm.model_name"),
        "input": call["attributes"].get("llm.token_count.prompt"),
        "output": call["attributes"].get("llm.token_count.completion"),
        "status": call["status_code"],
    }
    wanted = {
        "name": f"chat {record['request_model']}",
        "parent": ["POST /v1/chat/completions"],
        "model": record["response_model"],
        "input": usage["input_tokens"],
        "output": usage["output_tokens"],
        "status": "UNSET",
    }
    stages = {span["name"] for span in spans}
    lacking = {"identify", "body", "route", "admit", "settle"} - stages
    return [f"{key} is {found[key]!r}, not {wanted[key]!r}" for key in wanted if found[key] != wanted[key]] + [
        f"no stage {name}" for name in sorted(lacking)]


def main():
    wrong = []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        with stage.engine(folder) as engine, phoenix(folder) as url:
            telemetry = {"otlp": {"endpoint": url, "protocol": "http/protobuf", "interval_seconds": 0.2}, "traces": {}}
            with stage.gateway(folder, "seen", engine, telemetry) as gateway:
                for stream in (False, True):
                    body = {**stage.CHAT, "stream": stream}
                    assert gateway.ask("/v1/chat/completions", body, traceparent="") == 200
                records = stage.patiently(
                    lambda: len(found := stage.json_of(f"{gateway.admin}/api/v1/records")["records"]) == 2 and found,
                    "records")
            # Ours is the trace of a request whose caller has none: its number is the record's.
            for record in records:
                trace = record["id"].replace("-", "")
                found = lambda: faults(shown(url).get(trace, []), record)
                # Spans of one request come to be shown one by one.
                with contextlib.suppress(AssertionError):
                    stage.patiently(lambda: not found(), f"{trace} at Phoenix")
                wrong += found()
    for fault in wrong:
        print(f"WRONG: Phoenix: {fault}")
    print(f"Phoenix: {len(records)} requests shown as model calls with their tokens, {len(wrong)} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
