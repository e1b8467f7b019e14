"""Dashboards, alerts and runbooks of deploy/, with a real Prometheus that watches gateways in all kinds of trouble.

Each panel's query must answer for a gateway of each generation of the GenAI conventions, each alert must have fired and been silent in deploy/prometheus/taximeter.test.yaml, and
have a page that says what to do. Ends with 1 where anything is wrong.
"""

import contextlib
import json
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import urllib.parse

import stage
import yaml
from findings import expect, wrong

DEPLOY = pathlib.Path(__file__).parents[2] / "deploy"
RULES = DEPLOY / "prometheus" / "taximeter.rules.yaml"
RUNBOOKS = DEPLOY / "prometheus" / "runbooks"
MODELS = ["gpt-4o-mini", "claude-sonnet-4-5"]
# What Grafana puts in place of its own words.
MACROS = {"$__rate_interval": "30s", "$__range": "1h", "$instance": ".*", "$tenant": ".*", "$model": ".*", "$currency": "USD"}
# Of requests that are all refused by their engine, this much is broken; the first seconds of a series show nothing.
BROKEN_MIN = 0.9


def tool(*words):
    done = subprocess.run(words, capture_output=True, text=True)
    expect(done.returncode == 0, f"{' '.join(map(str, words))}:\n{done.stdout}{done.stderr}")


def dashboards(folder):
    """Those that build.py makes; the ones beside it must be the same."""
    made = folder / "grafana"
    made.mkdir()
    shutil.copy(DEPLOY / "grafana" / "build.py", made)
    subprocess.run([sys.executable, made / "build.py"], check=True)
    found = {}
    for file in sorted(made.glob("*.json")):
        beside = DEPLOY / "grafana" / file.name
        expect(beside.read_text() == file.read_text(), f"{beside} is not what build.py makes")
        found[file.stem] = json.loads(file.read_text())
    return found


def alerts():
    """By their names: where each one's page is."""
    groups = yaml.safe_load(RULES.read_text())["groups"]
    return {rule["alert"]: rule["annotations"]["runbook"] for group in groups for rule in group["rules"] if "alert" in rule}


def fires(test):
    return any(case.get("exp_alerts") for case in test.get("alert_rule_test", []))


def recovered_in(test):
    """The alerts that fire in a test and are silent later in it."""
    states = {}
    for case in test.get("alert_rule_test", []):
        states.setdefault(case["alertname"], []).append(bool(case.get("exp_alerts")))
    return [alert for alert, fired in states.items() if any(fired) and not fired[-1]]


def check_alerts():
    tests = yaml.safe_load((DEPLOY / "prometheus" / "taximeter.test.yaml").read_text())["tests"]
    cases = [case for test in tests for case in test.get("alert_rule_test", [])]
    fired = {case["alertname"] for case in cases if case.get("exp_alerts")}
    recovered = {alert for test in tests for alert in recovered_in(test)}
    quiet = [{case["alertname"] for case in test.get("alert_rule_test", [])} for test in tests if not fires(test)]
    for alert, page in alerts().items():
        expect(alert in fired and alert in recovered, f"{alert} is not seen firing, and silent after that")
        expect(sum(alert in names for names in quiet) > 1, f"{alert} is not seen silent where all is well and where nobody asks")
        page = DEPLOY.parent / page
        expect(page.exists() and alert in page.read_text(), f"{alert} has no page {page}")
    known = {pathlib.Path(page).name for page in alerts().values()}
    expect({page.name for page in RUNBOOKS.iterdir()} == known, "runbooks/ has other pages than there are alerts")
    tool("promtool", "check", "rules", RULES)
    tool("promtool", "check", "config", DEPLOY / "prometheus" / "prometheus.yaml")
    tool("promtool", "test", "rules", DEPLOY / "prometheus" / "taximeter.test.yaml")
    tool("amtool", "check-config", DEPLOY / "prometheus" / "alertmanager.yaml")
    return f"{len(alerts())} alerts, each seen firing, silent again, and silent where nobody asks, each with a page"


BAD_HTTP = b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n{}"
ODD_EVENT = b"data: {\"choices\n\ndata: [DONE]\n\n"
ODD_STREAM = (b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n" + ODD_EVENT)


@contextlib.contextmanager
def strange_engine():
    """One that does not speak HTTP, or sends events that are no JSON: its address."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        def answer():
            with contextlib.suppress(OSError):
                while True:
                    with listener.accept()[0] as client:
                        client.sendall(ODD_STREAM if b'"odd"' in client.recv(65536) else BAD_HTTP)
        threading.Thread(target=answer, daemon=True).start()
        yield f"127.0.0.1:{listener.getsockname()[1]}"


def trouble(gateway):
    """One round of everything that a panel shows."""
    chat, stream = stage.CHAT, {**stage.CHAT, "stream": True}
    gateway.ride()
    for settings in ["stall_after=2", "die_after=3", "input_tokens=9000", "cached_tokens=50,reasoning_tokens=3", "wrong_length=40"]:
        gateway.ask("/v1/chat/completions", stream, x_simulate=settings)
    gateway.ask("/v1/chat/completions", {**chat, "model": "gone"})
    gateway.ask("/v1/chat/completions", {**chat, "model": "no-http"})
    gateway.ask("/v1/chat/completions", {**stream, "model": "odd"})
    gateway.ask("/v1/chat/completions", {**chat, "model": "without-a-price"})
    with socket.create_connection(gateway.url.removeprefix("http://").split(":")) as client:
        body = json.dumps(stream).encode()
        client.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nHost: t\r\nContent-Type: application/json\r\nx-simulate: gap_ms=200\r\n"
                       + f"Content-Length: {len(body)}\r\n\r\n".encode() + body)
        client.recv(1)


def setting(folder, nobody, strange):
    upstream = {"dialect": "vllm"}
    rates = {"input": 0.15, "output": 0.60}
    book = {"version": "2026-11-22", "cache_without_rate": "input", "models": [{"model": model, "rates": rates} for model in MODELS]}
    (folder / "prices.yaml").write_text(json.dumps(book))
    return {
        "limits": {"upstream_idle_timeout_seconds": 1},
        "prices": {"overrides": str(folder / "prices.yaml")},
        "upstreams": [
            {"name": "gone", "url": f"http://{nobody}", "models": ["gone"], **upstream},
            {"name": "strange", "url": f"http://{strange}", "models": ["no-http", "odd"], **upstream},
        ],
    }


@contextlib.contextmanager
def prometheus(folder, gateways):
    """It scrapes these by the names of their jobs each second, and evaluates our rules as often; its address."""
    address = f"127.0.0.1:{stage.free_port()}"
    rules = yaml.safe_load(RULES.read_text())
    for group in rules["groups"]:
        group["interval"] = "1s"
    (folder / "rules.yaml").write_text(json.dumps(rules))
    config = {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"}, "rule_files": [str(folder / "rules.yaml")],
        "scrape_configs": [{"job_name": job, "static_configs": [{"targets": [gateway.admin.removeprefix("http://")]}]}
                           for job, gateway in gateways.items()],
    }
    (folder / "prometheus.json").write_text(json.dumps(config))
    words = ["prometheus", f"--config.file={folder / 'prometheus.json'}", f"--storage.tsdb.path={folder / 'data'}",
             f"--web.listen-address={address}"]
    with stage.running(words, folder / "prometheus.log"):
        url = f"http://{address}"
        stage.patiently(lambda: stage.get(f"{url}/-/ready")[0] == 200, "Prometheus")
        yield url


def ask(prometheus, query):
    """The numbers that Prometheus has for an answer, those left out that are none.

    Errors: a query that it does not understand.
    """
    status, _, body = stage.get(f"{prometheus}/api/v1/query?query={urllib.parse.quote(query)}")
    answer = json.loads(body)
    if status != 200 or answer["status"] != "success":
        raise ValueError(answer.get("error", body))
    found = answer["data"]["result"]
    values = [sample["value"] if isinstance(sample, dict) else sample for sample in
              (found if answer["data"]["resultType"] == "vector" else [found])]
    return [float(value) for _, value in values if value != "NaN"]


def queries(made, job):
    for name, dashboard in made.items():
        for panel in dashboard["panels"]:
            for target in panel.get("targets", []):
                query = target["expr"]
                for word, value in {**MACROS, "$job": job}.items():
                    query = query.replace(word, value)
                yield f"{job}: {name}: {panel['title']}: {target['legendFormat']}", query


def queries_of_pages():
    for page in sorted(RUNBOOKS.iterdir()):
        for block in re.findall(r"```promql\n(.*?)```", page.read_text(), re.DOTALL):
            yield from ((page.name, line) for line in block.strip().splitlines())


def queries_of_keda(job):
    """Those of the example, of the gateways of a job."""
    scaled = yaml.safe_load((DEPLOY / "examples" / "kubernetes" / "keda.yaml").read_text())
    for trigger in scaled["spec"]["triggers"]:
        query = trigger["metadata"]["query"].replace('job="taximeter", namespace="models", pod=~"vllm-.*"', f'job="{job}"')
        yield query, float(trigger["metadata"]["threshold"])


def check_impatience(prometheus, watched):
    """Where each client leaves before its first token, the objective is missed, and KEDA is asked for more engines."""
    job = "impatient"
    *_, scaling = queries_of_keda(job)
    for query, most in ((f'taximeter:slo_bad:ratio5m{{job="{job}", slo="first_token"}}', BROKEN_MIN), scaling):
        def is_bad():
            watched[job].leave({**stage.CHAT, "stream": True}, "prefill_ms=20000", seconds=0.8)
            return any(value > most for value in ask(prometheus, query))

        with contextlib.suppress(AssertionError):
            stage.patiently(is_bad, query)
            continue
        expect(False, f"nobody gets a token, and {query} is {ask(prometheus, query)}")


def check_queries(folder, made):
    generations = ("v1_41", "latest")
    asked = {title: query for genai in generations for title, query in queries(made, genai)}
    with stage.engine(folder) as engine, strange_engine() as strange, contextlib.ExitStack() as gateways:
        more = setting(folder, f"127.0.0.1:{stage.free_port()}", strange)
        more["upstreams"].append({"name": "local", "url": f"http://{engine}", "dialect": "vllm"})
        watched = {job: gateways.enter_context(stage.gateway(folder, job, engine, telemetry, more)) for job, telemetry in
                   [*((genai, {"genai": genai}) for genai in generations), *((job, {}) for job in ("refused", "busy", "impatient"))]}
        url = gateways.enter_context(prometheus(folder, watched))
        waiting = set(asked)

        def all_answer():
            for genai in generations:
                trouble(watched[genai])
            for title in sorted(waiting):
                try:
                    if ask(url, asked[title]):
                        waiting.discard(title)
                except ValueError as fault:
                    expect(False, f"{title}: {fault}")
                    waiting.discard(title)
            return not waiting

        with contextlib.suppress(AssertionError):
            stage.patiently(all_answer, "an answer to every query")
        for title in sorted(waiting):
            expect(False, f"{title}: no answer to {asked[title]}")
        check_headline(url, made, watched, ("refused", 503))
        check_headline(url, made, watched, ("busy", 429))
        check_impatience(url, watched)
        # What they ask for may not have happened here.
        for page, query in queries_of_pages():
            try:
                ask(url, query)
            except ValueError as fault:
                expect(False, f"{page}: {query}: {fault}")
    panels = sum("targets" in panel for dashboard in made.values() for panel in dashboard["panels"])
    return f"{len(made)} dashboards, {panels} panels, {len(asked)} queries, each answered by Prometheus"


def check_headline(prometheus, made, watched, refusing):
    """An engine that refuses everything is what the operations dashboard shows first, and the objective of availability."""
    job, status = refusing
    headline = dict(queries({"operations": made["operations"]}, job))[f"{job}: operations: Broken answers: "]
    for query in (headline, f'taximeter:slo_bad:ratio5m{{job="{job}", slo="availability"}}'):
        def most_is_broken():
            assert watched[job].ask("/v1/chat/completions", stage.CHAT, x_simulate=f"status={status}") == status
            return any(value > BROKEN_MIN for value in ask(prometheus, query))

        with contextlib.suppress(AssertionError):
            stage.patiently(most_is_broken, query)
            continue
        expect(False, f"all is refused, and {query} is {ask(prometheus, query)}")


with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    made = dashboards(folder)
    said = [check_alerts(), check_queries(folder, made)]
for line in said:
    print(line)
print(f"{len(wrong)} wrong")
sys.exit(bool(wrong))
