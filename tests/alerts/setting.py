"""Prometheus and Alertmanager with our rules, 60 times as fast, and gateways that end and come back."""

import contextlib
import json
import os
import pathlib
import re
import subprocess
import threading
import time

import stage
import yaml

DEPLOY = pathlib.Path(__file__).parents[2] / "deploy"
# Windows and waits are divided by this.
FASTER = 60
UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
# Times that stand in rules as numbers of seconds or days.
NUMBERS = {"< 900)": "< 15)", "4 * 3600": "4 * 60", "> 90": "> 1.5"}


def seconds(time_of):
    return int(time_of[:-1]) * UNITS[time_of[-1]]


def faster(expression):
    """The expression with windows and offsets of a sixtieth; Prometheus needs two samples in each."""
    def shorter(found):
        return f"{found[1]}{max(3, seconds(found[2]) // FASTER)}s{found[3]}"

    expression = re.sub(r"(\[)(\d+[smhd])(\])", shorter, expression)
    expression = re.sub(r"(offset )(\d+[smhd])(\b)", shorter, expression)
    for before, after in NUMBERS.items():
        expression = expression.replace(before, after)
    return expression


def fast_rules():
    rules = yaml.safe_load((DEPLOY / "prometheus" / "taximeter.rules.yaml").read_text())
    for group in rules["groups"]:
        group["interval"] = "1s"
        for rule in group["rules"]:
            rule["expr"] = faster(rule["expr"])
            if "for" in rule:
                rule["for"] = f"{max(1, seconds(rule['for']) // FASTER)}s"
    return rules


class Watching:
    """Who watches: targets come and go, and alerts arrive."""

    def __init__(self, folder, alertmanager, prometheus):
        self.folder, self.alertmanager, self.prometheus = folder, alertmanager, prometheus

    def watch(self, job, address):
        beside = self.folder / f"{job}.tmp"
        beside.write_text(json.dumps([{"targets": [address], "labels": {"job": job}}]))
        beside.rename(self.folder / f"{job}.json")

    def forget(self, job):
        (self.folder / f"{job}.json").unlink()

    def fired(self, alert, job):
        """The alert of a job, once Alertmanager has it."""
        found = stage.json_of(f"{self.alertmanager}/api/v2/alerts?filter=alertname%3D{alert}")
        return next((one for one in found if one["labels"].get("job") == job), None)


@contextlib.contextmanager
def watching(folder):
    targets = folder / "targets"
    targets.mkdir()
    (folder / "rules.yaml").write_text(json.dumps(fast_rules()))
    manager, prometheus = (f"127.0.0.1:{stage.free_port()}" for _ in range(2))
    (folder / "alertmanager.yaml").write_text(json.dumps({"route": {"receiver": "nobody"}, "receivers": [{"name": "nobody"}]}))
    (folder / "prometheus.json").write_text(json.dumps({
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"}, "rule_files": [str(folder / "rules.yaml")],
        "scrape_configs": [{"job_name": "taximeter", "scrape_timeout": "1s",
                            "file_sd_configs": [{"files": [str(targets / "*.json")], "refresh_interval": "1s"}]}],
        "alerting": {"alertmanagers": [{"static_configs": [{"targets": [manager]}]}]},
    }))
    words = ["prometheus-alertmanager", f"--config.file={folder / 'alertmanager.yaml'}", f"--storage.path={folder / 'manager'}",
             f"--web.listen-address={manager}", "--cluster.listen-address="]
    watcher = ["prometheus", f"--config.file={folder / 'prometheus.json'}", f"--storage.tsdb.path={folder / 'data'}",
               f"--web.listen-address={prometheus}", f"--web.console.templates={DEPLOY / 'prometheus' / 'runbooks'}",
               f"--web.external-url=http://{prometheus}"]
    with stage.running(words, folder / "manager.log"), stage.running(watcher, folder / "prometheus.log"):
        for address in (manager, prometheus):
            stage.patiently(lambda: stage.get(f"http://{address}/-/ready")[0] == 200, address)
        yield Watching(targets, f"http://{manager}", f"http://{prometheus}")


class Gateway(stage.Gateway):
    """One of a case. It keeps its addresses and its data directory over restarts."""

    def __init__(self, folder, job, engine, more):
        self.folder, self.job, self.child = folder, job, None
        self.listen, self.admin_at = (f"127.0.0.1:{stage.free_port()}" for _ in range(2))
        self.url, self.admin = f"http://{self.listen}", f"http://{self.admin_at}"
        self.data = folder / f"{job}.data"
        upstream = {"name": "local", "url": f"http://{engine}", "dialect": "vllm"}
        self.config = {"listen": self.listen, "admin": self.admin_at, "data_dir": str(self.data), "upstreams": [upstream], **more}
        self.file = folder / f"{job}.yaml"
        # What it runs inside of.
        self.inside = []

    def start(self, environment=None, reads=True):
        self.file.write_text(json.dumps(self.config))
        clean = {key: value for key, value in os.environ.items() if not key.startswith("OTEL_")}
        self.child = subprocess.Popen([*self.inside, stage.BINARY, "serve", "--config", str(self.file)], stderr=subprocess.PIPE, text=True,
                                      env={**clean, **(environment or {})})
        said = []
        for line in self.child.stderr:
            said.append(line)
            if '"listening"' in line:
                break
        else:
            raise AssertionError(f"{self.job} did not start: {''.join(said)}")
        if reads:
            threading.Thread(target=lambda: [None for _ in self.child.stderr], daemon=True).start()
        return self

    def kill(self):
        self.child.kill()
        self.child.wait()

    def stop(self):
        if self.child and self.child.poll() is None:
            self.child.terminate()
            try:
                self.child.wait(stage.SECONDS_MAX)
            except subprocess.TimeoutExpired:
                self.kill()

    def chat(self, simulate="", stream=False, **more):
        """Asks; the status, or None if there was none."""
        headers = {"x_simulate": simulate} if simulate else {}
        headers |= more.pop("headers", {})
        with contextlib.suppress(OSError):
            return self.ask("/v1/chat/completions", {**stage.CHAT, "stream": stream, **more}, **headers)


def in_background(work, until):
    """Does it again and again, until told to stop."""
    def loop():
        while not until.is_set():
            with contextlib.suppress(Exception):
                work()
            time.sleep(0.01)

    thread = threading.Thread(target=loop, daemon=True)
    thread.start()
    return thread
