"""Crowds before the gateway: what each takes of it, and whether others are served meanwhile.

Numbers are printed and none is a condition; what must hold is that nobody who is refused is refused without a
word, that the gateway lives, and that everybody else is served.
"""

import asyncio
import contextlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

BINARY = os.environ["TAXIMETER_BINARY"]
HOST = "127.0.0.1"
ENGINE, LISTEN, ADMIN = 18600, 18601, 18602
CHAT = {"model": "m", "messages": [{"role": "user", "content": "Where to?"}]}
IDLE, STREAMS, BODIES, BODY_BYTES = 10_000, 2_000, 100, 32 << 20
MEMORY_BYTES_MAX = 512 << 20
HOG_MAX, HOG_WANTS = 50, 500
STREAMING = ("--gap-ms", "1000", "--prefill-ms", "100", "--output-tokens", "100000")
SLOW_SECONDS, SLOW_CONNECTIONS = 20, 1_000
COLOURS = re.compile(r"\x1b\[[0-9;]*m")


def request(body: bytes, headers: str = "", length: int | None = None) -> bytes:
    length = len(body) if length is None else length
    head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: {HOST}\r\nContent-Type: application/json\r\n{headers}"
    return f"{head}Content-Length: {length}\r\n\r\n".encode() + body


def chat(**members) -> bytes:
    return json.dumps(CHAT | members).encode()


class Gateway:
    """The gateway and the engine behind it, for as long as the block lasts."""

    def __init__(self, limits: str = "", tenants: str = "", engine: tuple[str, ...] = ()):
        self.folder = tempfile.TemporaryDirectory(prefix="taximeter-load-")
        self.file = Path(self.folder.name, "taximeter.yaml")
        self.file.write_text(
            f"listen: {HOST}:{LISTEN}\nadmin: {HOST}:{ADMIN}\ndata_dir: {self.folder.name}/data\n"
            f'upstreams: [{{name: e, url: "http://{HOST}:{ENGINE}", dialect: vllm}}]\n'
            f"limits: {{connections_max: 20000, {limits}}}\n{tenants}\n"
        )
        self.engine_options = engine

    async def __aenter__(self):
        self.engine = self.start("simulate", "--listen", f"{HOST}:{ENGINE}", *self.engine_options)
        self.process = self.start("serve", "--config", str(self.file))
        try:
            for port in (ENGINE, LISTEN, ADMIN):
                await connectable(port)
            # Its first answers load a vocabulary and open the store.
            first = await status(request(chat(max_tokens=1)))
            assert first == 200, f"{first} at once: {Path(self.folder.name, 'serve.log').read_text()}"
        except BaseException:
            self.end()
            raise
        return self

    def start(self, *words: str) -> subprocess.Popen:
        log = open(Path(self.folder.name, f"{words[0]}.log"), "wb")
        return subprocess.Popen([BINARY, *words], stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    async def __aexit__(self, *fault):
        lived = self.process.poll() is None
        self.end()
        assert lived, f"the gateway has ended with {self.process.returncode}"

    def end(self):
        for process in (self.process, self.engine):
            process.terminate()
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()
        self.folder.cleanup()

    def memory(self, name: str = "VmRSS") -> int:
        """Bytes that it holds now, or at most (`VmHWM`)."""
        for line in Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith(f"{name}:"):
                return int(line.split()[1]) << 10
        raise ValueError(name)

    async def metric(self, name: str) -> float:
        reader, writer = await asyncio.open_connection(HOST, ADMIN)
        writer.write(f"GET /metrics?name[]={name} HTTP/1.1\r\nHost: {HOST}\r\nConnection: close\r\n\r\n".encode())
        text = (await reader.read()).decode()
        writer.close()
        return sum(float(line.rsplit(" ", 1)[1]) for line in text.splitlines() if line.startswith(name))


async def connectable(port: int):
    for _ in range(600):
        with contextlib.suppress(OSError):
            _, writer = await asyncio.open_connection(HOST, port)
            return writer.close()
        await asyncio.sleep(0.05)
    raise TimeoutError(f"nobody listens on {port}")


async def head(reader: asyncio.StreamReader) -> int:
    """Status of the answer that comes; 0 where the connection ends without one."""
    try:
        text = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 120)
    except (asyncio.IncompleteReadError, ConnectionError, TimeoutError):
        return 0
    return int(text.split(b" ", 2)[1])


async def status(message: bytes) -> int:
    try:
        reader, writer = await asyncio.open_connection(HOST, LISTEN)
    except OSError:
        return 0
    # Read meanwhile: a refusal comes before the body is whole, and what is written behind it is lost.
    answered = asyncio.create_task(head(reader))
    try:
        writer.write(message)
        with contextlib.suppress(ConnectionError):
            await writer.drain()
        return await answered
    finally:
        writer.close()


async def in_groups(size: int, work):
    """Not all at once: the kernel's queue of those who wait to be accepted is short."""
    done = []
    for begin in range(0, len(work), size):
        done += await asyncio.gather(*work[begin : begin + size])
    return done


class Others:
    """A client that asks all the while, one request behind the other."""

    async def __aenter__(self):
        self.statuses, self.times = Counter(), []
        self.task = asyncio.create_task(self.ask())
        return self

    async def ask(self):
        while True:
            begun = time.monotonic()
            self.statuses[await status(request(chat(max_tokens=2), "X-Tenant: other\r\nX-Simulate: gap_ms=1,prefill_ms=1\r\n"))] += 1
            self.times.append(time.monotonic() - begun)
            await asyncio.sleep(0.02)

    async def __aexit__(self, *fault):
        self.task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self.task

    def said(self) -> str:
        times = sorted(self.times)
        middle, worst = times[len(times) // 2], times[-1]
        return f"others: {dict(self.statuses)}, {middle * 1e3:.0f} ms each, {worst * 1e3:.0f} ms at worst"


def kib(size: float) -> str:
    return f"{size / 1024:.1f} KiB"


def mib(size: float) -> str:
    return f"{size / (1 << 20):.0f} MiB"


async def idle():
    ask = f"GET /nowhere HTTP/1.1\r\nHost: {HOST}\r\n\r\n".encode()

    async def once(reader, writer):
        writer.write(ask)
        return await head(reader)

    for asked in (False, True):
        async with Gateway("idle_timeout_seconds: 600, header_read_timeout_seconds: 600") as gateway:
            before = gateway.memory()
            held = await in_groups(200, [asyncio.open_connection(HOST, LISTEN) for _ in range(IDLE)])
            if asked:
                statuses = Counter(await in_groups(200, [once(*pair) for pair in held]))
                assert statuses == {404: IDLE}, statuses
            async with Others() as others:
                await asyncio.sleep(3)
            each = (gateway.memory() - before) / IDLE
            what = "that have asked once" if asked else "that have said nothing"
            print(f"idle: {IDLE} connections {what}: {kib(each)} each; {others.said()}")
            for _, writer in held:
                writer.close()


async def streams():
    async with Gateway(engine=STREAMING) as gateway:
        before = gateway.memory()
        body = request(chat(stream=True, max_tokens=100_000))

        async def open_one():
            reader, writer = await asyncio.open_connection(HOST, LISTEN, limit=1 << 12)
            writer.write(body)
            return await head(reader), reader, writer

        held = await in_groups(100, [open_one() for _ in range(STREAMS)])
        statuses = Counter(code for code, *_ in held)
        async with Others() as others:
            # All of them are read, each as it comes.
            reading = [asyncio.create_task(reader.read(1 << 30)) for _, reader, _ in held]
            await asyncio.sleep(10)
        each = (gateway.memory() - before) / STREAMS
        running = await gateway.metric("taximeter_requests_open")
        print(f"streams: {dict(statuses)}, {running:.0f} open: {kib(each)} each; {others.said()}")
        for task, (_, _, writer) in zip(reading, held):
            task.cancel()
            writer.close()
        await asyncio.sleep(3)
        print(f"streams: {await gateway.metric('taximeter_requests_open'):.0f} open once their clients have left")


async def bodies():
    limits = f"memory_bytes_max: {MEMORY_BYTES_MAX}"
    async with Gateway(limits) as gateway:
        message = request(chat(max_tokens=2, user="u").replace(b"Where to?", b"a " * ((BODY_BYTES - 200) // 2)))
        async with Others() as others:
            statuses = Counter(await asyncio.gather(*(status(message) for _ in range(BODIES))))
            await asyncio.sleep(1)
        peak = gateway.memory("VmHWM")
        print(
            f"bodies: {BODIES} × {mib(len(message))} at once: {dict(statuses)}; at most {mib(peak)} of"
            f" {mib(MEMORY_BYTES_MAX)}; {others.said()}"
        )
        assert set(statuses) <= {200, 503, 0} and statuses[503], statuses
        assert await status(request(chat(max_tokens=1))) == 200, "it serves again"


async def slow():
    url = f"http://{HOST}:{LISTEN}/v1/chat/completions"
    ways = {
        "heads that dribble in": ["-H", "-i", "5"],
        "bodies that dribble in": ["-B", "-i", "5", "-s", "8192"],
        "answers that are hardly read": ["-X", "-w", "8", "-y", "16", "-n", "5", "-z", "8", "-k", "3"],
    }
    for way, options in ways.items():
        async with Gateway("header_read_timeout_seconds: 5, body_read_timeout_seconds: 5") as gateway:
            load = [*options, "-c", str(SLOW_CONNECTIONS), "-r", "500", "-l", str(SLOW_SECONDS), "-p", "3", "-u", url]
            async with Others() as others:
                process = await asyncio.create_subprocess_exec(
                    "timeout", str(SLOW_SECONDS * 3), "slowhttptest", *load,
                    stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                )
                said = COLOURS.sub("", (await process.communicate())[0].decode(errors="replace"))
            available = re.findall(r"service available:\s+(\w+)", said)
            ended = re.findall(r"Exit status:\s+(.*\S)", said)
            print(
                f"slow: {SLOW_CONNECTIONS} {way}: available: {(available or ['?'])[-1]}, {(ended or ['?'])[-1]};"
                f" {mib(gateway.memory('VmHWM'))} at most; {others.said()}"
            )
            assert set(others.statuses) == {200} and "NO" not in available, (others.statuses, said)


async def hog():
    tenants = 'tenants: {unknown: guest, header: {name: x-tenant, trusted_peers: ["127.0.0.1"]}}'
    async with Gateway(f"requests_per_tenant_max: {HOG_MAX}", tenants, STREAMING) as gateway:
        body = request(chat(stream=True, max_tokens=100_000), "X-Tenant: hog\r\n")

        async def want():
            reader, writer = await asyncio.open_connection(HOST, LISTEN)
            writer.write(body)
            return await head(reader), writer

        async with Others() as others:
            held = await in_groups(100, [want() for _ in range(HOG_WANTS)])
            await asyncio.sleep(3)
        statuses = Counter(code for code, _ in held)
        refused = await gateway.metric("taximeter_limits_refusals_total")
        print(f"hog: wants {HOG_WANTS}, may have {HOG_MAX}: {dict(statuses)}, {refused:.0f} counted; {others.said()}")
        assert statuses == {200: HOG_MAX, 429: HOG_WANTS - HOG_MAX}, statuses
        assert set(others.statuses) == {200}, others.statuses
        for _, writer in held:
            writer.close()


CROWDS = {crowd.__name__: crowd for crowd in (idle, streams, bodies, slow, hog)}


async def main():
    names = sys.argv[1:] or list(CROWDS)
    unknown = [name for name in names if name not in CROWDS]
    if unknown:
        sys.exit(f"no crowd {', '.join(unknown)}; there are {', '.join(CROWDS)}")
    for name in names:
        await CROWDS[name]()


asyncio.run(main())
