"""Servers that keep series, and what each has kept."""

import json
import subprocess
import urllib.parse

import stage

# Longer than any run.
WINDOW = "3h"


class Store:
    """A server that scrapes, on one address and one folder however often it is started."""

    def __init__(self, folder, name, target, interval, more=None):
        self.name, self.folder = name, folder
        self.address = f"127.0.0.1:{stage.free_port()}"
        self.url = f"http://{self.address}"
        job = {"job_name": "taximeter", "static_configs": [{"targets": [target] if target else []}], **(more or {})}
        file, data = folder / f"{name}.yml", folder / name
        times = {"scrape_interval": f"{interval}s", "scrape_timeout": f"{interval}s"}
        file.write_text(json.dumps({"global": times, "scrape_configs": [job]}))
        if name.startswith("Prometheus"):
            self.words = ["prometheus", f"--config.file={file}", f"--storage.tsdb.path={data}",
                          f"--web.listen-address={self.address}"]
        else:
            self.words = ["victoria-metrics", f"-httpListenAddr={self.address}", f"-storageDataPath={data}",
                          f"-promscrape.config={file}", "-search.latencyOffset=0s", "-search.disableCache"]

    def start(self):
        log = (self.folder / f"{self.name}.log").open("ab")
        self.child = subprocess.Popen(self.words, stdout=log, stderr=log)
        path = "/-/ready" if self.name.startswith("Prometheus") else "/health"
        stage.patiently(lambda: stage.get(self.url + path)[0] == 200, self.name)

    def stop(self):
        self.child.terminate()
        self.child.wait(stage.SECONDS_MAX)

    def asked(self, query):
        found = stage.json_of(f"{self.url}/api/v1/query?query={urllib.parse.quote(query)}")
        return found["data"]["result"]

    def raw(self, name):
        """Of each series its labels, and its samples by their times."""
        if self.name.startswith("Prometheus"):
            found = self.asked(f'{{__name__="{name}"}}[{WINDOW}]')
            return [(one["metric"], {time: float(value) for time, value in one["values"]}) for one in found]
        match = urllib.parse.quote(f'{{__name__="{name}"}}')
        _, _, lines = stage.get(f"{self.url}/api/v1/export?match[]={match}")
        found = [json.loads(line) for line in lines.splitlines()]
        return [(one["metric"], {time / 1e3: value for time, value in zip(one["timestamps"], one["values"])
                                 if value is not None}) for one in found]

    def slowest(self):
        """Seconds of its slowest scrape."""
        found = self.asked(f"max_over_time(scrape_duration_seconds[{WINDOW}])")
        return float(found[0]["value"][1])

    def increase(self, name):
        found = self.asked(f'sum(increase({{__name__="{name}"}}[{WINDOW}]))')
        return float(found[0]["value"][1]) if found else 0
