"""Runs the image's program under buildah and prints what was seen. Ends with 1 when something is not as it must be;
sizes and times stand beside their goals and fail nothing.

usage: check.py ROOT CONTAINER STORAGE    deploy/image/test starts it, in a network namespace and with ROOT read-only
"""

import json
import os
import shutil
import signal
import socket
import statistics
import struct
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

# What OpenShift gives: a user that no image knows, of group 0.
USER, GROUP = 1234567, 0
ENGINE = "127.0.0.2"
# `deploy/image/test` has told the container of it.
RESOLVER = "10.96.0.10"
DNS_NAME = "engine.default.svc.cluster.local"
CONFIG = """
data_dir: /var/lib/taximeter
upstreams:
  - {name: by-dns, url: "http://engine.default.svc:8000", models: [by-dns]}
  - {name: by-hosts, url: "http://beside:8000", models: [by-hosts]}
"""
ADMIN = "http://127.0.0.1:9464"
IDLE_SECONDS = 5
# The store of a gateway that has just started may still be fed.
RECORDS_SECONDS_MAX = 10
STARTS = 11

rows, failed = [], []


def row(what, value, goal="", good=True):
    """A line of the table; without `good` the program ends with 1."""
    rows.append(f"{what:<52}{value:>14}   {goal}".rstrip())
    if not good:
        failed.append(what)


class Dns(threading.Thread):
    """Knows one name, denies all others, and remembers what it was asked."""

    def __init__(self):
        super().__init__(daemon=True)
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind((RESOLVER, 53))
        self.asked = []

    def run(self):
        while True:
            query, client = self.socket.recvfrom(512)
            labels, at = [], 12
            while query[at]:
                labels.append(query[at + 1:at + 1 + query[at]].decode())
                at += 1 + query[at]
            kind = struct.unpack("!H", query[at + 1:at + 3])[0]
            name = ".".join(labels)
            self.asked.append(name)
            known, question, address = name == DNS_NAME, query[12:at + 5], b""
            if known and kind == 1:
                address = struct.pack("!HHHIH", 0xC00C, 1, 1, 5, 4) + socket.inet_aton(ENGINE)
            head = query[:2] + struct.pack("!HHHHH", 0x8580 if known else 0x8583, 1, 1 if address else 0, 0, 0)
            self.socket.sendto(head + question + address, client)


def get(url):
    with urllib.request.urlopen(url, timeout=5) as answer:
        return answer.read()


def is_healthy():
    try:
        return bool(get(f"{ADMIN}/healthz"))
    except (OSError, urllib.error.URLError):
        return False


def program():
    """The process of the gateway: nothing else of this network namespace runs as that user."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if folder.stat().st_uid == USER and (folder / "cmdline").read_bytes().startswith(b"/taximeter\0serve\0"):
                return int(folder.name)
        except OSError:
            continue
    raise SystemExit("check.py: the gateway answers, but is no process")


class Image:
    """The image's container, and the folders that are mounted into it."""

    def __init__(self, container, storage):
        self.container, self.storage = container, storage
        (storage / "taximeter.yaml").write_text(CONFIG)

    def command(self, *arguments):
        of = lambda name, place, mode: ["--volume", f"{self.storage / name}:{place}:{mode}"]
        return ["buildah", "--root", f"{self.storage}/root", "--runroot", f"{self.storage}/run", "run",
                "--user", f"{USER}:{GROUP}", *of("data", "/var/lib/taximeter", "rw"),
                *of("taximeter.yaml", "/etc/taximeter/taximeter.yaml", "ro"), self.container, "--", "/taximeter",
                *arguments]

    def serve(self):
        """The gateway, once it answers: what runs it, and its own process."""
        runner = subprocess.Popen(self.command("serve", "--config", "/etc/taximeter/taximeter.yaml"))
        for _ in range(2000):
            if is_healthy():
                return runner, program()
            if runner.poll() is not None:
                raise SystemExit(f"check.py: the gateway ended with {runner.returncode} before it answered")
            time.sleep(0.01)
        raise SystemExit("check.py: the gateway does not answer")

    def output(self, *arguments):
        return subprocess.run(self.command(*arguments), check=True, capture_output=True, text=True).stdout


def ended(runner, pid):
    """How a gateway ends that is told to."""
    os.kill(pid, signal.SIGTERM)
    return runner.wait(30)


def chat(model):
    body = json.dumps({"model": model, "messages": [{"role": "user", "content": "hi"}]}).encode()
    request = urllib.request.Request("http://127.0.0.1:8080/v1/chat/completions", body,
                                     {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=20) as answer:
        return json.load(answer)


def memory(pid):
    """Resident MiB of a process: all, what is only its own, what is the file's."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]
    kib = {line.split(":")[0]: int(line.split()[1]) for line in lines}
    return kib["Rss"] / 1024, kib["Anonymous"] / 1024, (kib["Rss"] - kib["Anonymous"]) / 1024


def start_seconds(root, storage):
    """From the program's first instruction to its first answer, without what runs a container."""
    data = storage / "started"
    shutil.rmtree(data, ignore_errors=True)
    data.mkdir()
    since = time.monotonic()
    started = subprocess.Popen([root / "taximeter", "serve", "--upstream", f"http://{ENGINE}:8000",
                                "--data-dir", data], stderr=subprocess.DEVNULL)
    while True:
        with socket.socket() as asking:
            if asking.connect_ex(("127.0.0.1", 9464)) == 0:
                asking.sendall(b"GET /healthz HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n")
                if asking.recv(64).startswith(b"HTTP/1.1 200"):
                    break
        time.sleep(0.0005)
    seconds = time.monotonic() - since
    started.terminate()
    started.wait(10)
    return seconds


def check(root, container, storage):
    config = json.loads((storage / "config.json").read_text())["OCIv1"]["config"]
    row("entrypoint", " ".join(config["Entrypoint"]), "/taximeter", config["Entrypoint"] == ["/taximeter"])
    row("user", config["User"], "65532:65532", config["User"] == "65532:65532")
    ports = sorted(config["ExposedPorts"])
    row("ports", " ".join(ports), "8080 9464", ports == ["8080/tcp", "9464/tcp"])
    volumes = list(config["Volumes"])
    row("volume", " ".join(volumes), "/var/lib/taximeter", volumes == ["/var/lib/taximeter"])
    bytes_ = (root / "taximeter").stat().st_size
    row("program, bytes", f"{bytes_:,}", "goal ≤ 30,000,000")
    bom = json.loads((root / "licenses/sbom.cdx.json").read_text())
    row("components in the SBOM", len(bom["components"]), "> 200", len(bom["components"]) > 200)
    beside = sorted(entry.name for entry in root.iterdir())
    row("no /tmp in the image", "tmp" not in beside, "True", "tmp" not in beside)

    dns = Dns()
    dns.start()
    # As the image has it: what a kubelet mounts there is its own folder, with the same rights.
    shutil.copytree(root / "var/lib/taximeter", storage / "data")
    of = (root / "var/lib/taximeter").stat()
    os.chown(storage / "data", of.st_uid, of.st_gid)
    row("ledger's folder", f"{of.st_uid}:{of.st_gid} {of.st_mode & 0o777:o}", "65532:0 770",
        (of.st_uid, of.st_gid, of.st_mode & 0o777) == (65532, 0, 0o770))
    engine = subprocess.Popen([root / "taximeter", "simulate", "--listen", f"{ENGINE}:8000"], stdout=subprocess.DEVNULL)
    try:
        within(Image(container, storage), dns)
        starts = [start_seconds(root, storage) for _ in range(STARTS)]
        median = statistics.median(starts)
        row(f"start to first /healthz, ms, median of {STARTS}", f"{1000 * median:.1f}", "goal ≤ 100")
        row("  slowest", f"{1000 * max(starts):.1f}")
    finally:
        engine.terminate()
        engine.wait(10)


def within(image, dns):
    runner, pid = image.serve()
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    status = dict(line.split(":\t", 1) for line in lines if ":\t" in line)
    user, group = status["Uid"].split()[0], status["Gid"].split()[0]
    row("runs as", f"{user}:{group}", f"{USER}:{GROUP}", (user, group) == (str(USER), str(GROUP)))
    mounts = [line.split() for line in Path(f"/proc/{pid}/mountinfo").read_text().splitlines()]
    options = [mount[5].split(",")[0] for mount in mounts if mount[4] == "/"]
    row("root is mounted", " ".join(options), "ro", options[-1:] == ["ro"])
    time.sleep(IDLE_SECONDS)
    resident, anonymous, of_file = memory(pid)
    row(f"idle after {IDLE_SECONDS} s, MiB", f"{resident:.1f}", "goal ≤ 12")
    row("  its own", f"{anonymous:.1f}")
    row("  of the program's file", f"{of_file:.1f}")
    for model in ("by-dns", "by-hosts"):
        answer = chat(model)
        row(f"a request {model}: output tokens", answer["usage"]["completion_tokens"], "> 0",
            answer["usage"]["completion_tokens"] > 0)
    row("asked of DNS", dns.asked.count(DNS_NAME), "> 0", DNS_NAME in dns.asked)
    code = ended(runner, pid)
    row("SIGTERM ends it with", code, "0", code == 0)

    runner, pid = image.serve()
    expected, found = [(model, "reported", "complete") for model in ("by-dns", "by-hosts")], []
    until = time.monotonic() + RECORDS_SECONDS_MAX
    while found != expected and time.monotonic() < until:
        lines = image.output("records", "--data-dir", "/var/lib/taximeter").splitlines()
        records = [json.loads(line) for line in lines]
        found = [(record["request_model"], record["usage"]["source"], record["end"]) for record in records]
    row("records after a restart", len(found), "2", found == expected)
    code = ended(runner, pid)
    row("SIGTERM ends it with", code, "0", code == 0)
    whole = subprocess.run(image.command("verify", "--data-dir", "/var/lib/taximeter"), stdout=subprocess.DEVNULL)
    row("verify ends with", whole.returncode, "0", whole.returncode == 0)


if __name__ == "__main__":
    if len(sys.argv) != 4:
        raise SystemExit(__doc__)
    try:
        check(Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3]))
    finally:
        print("\n".join(rows))
    if failed:
        raise SystemExit("not as it must be: " + ", ".join(failed))
