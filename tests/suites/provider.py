"""A pytest plugin for the tests of openai-python and anthropic: plays the API that they ask.

Their generated tests want a server that answers any request with an example of its description of the API, which is not
published on PyPI. Here the client says which type it expects, and the server answers with an example of that type. The
server also compares each request with what the client sent, and refuses one that has changed on the way.

SUITE_PACKAGE   the client library
SUITE_PREFIX    what stands before the paths of the API
SUITE_WAY       `through`: the gateway stands between the client and the server
"""

import contextlib
import contextvars
import functools
import http.server
import importlib
import inspect
import itertools
import json
import os
import pathlib
import sys
import tempfile
import threading
import urllib.parse

import pytest

import results
from examples import example_of
from gateway import gateway

# The header that tells the server which call of the client this is.
CALL = "x-suite-call"
CREDENTIALS = ["authorization", "x-api-key"]

expected = contextvars.ContextVar("expected")
numbers = itertools.count()
calls = {}
base = None
stack = contextlib.ExitStack()


class Call:
    """What the client sent, and the answer that it expects."""

    def __init__(self, request, kind, events):
        self.sent = [request.method, unquoted(request.url.raw_path.decode())]
        self.sent += [request.headers.get(name) for name in CREDENTIALS]
        try:
            self.body = request.read()
        except Exception:  # made while it is sent
            self.body = None
        self.kind, self.events = kind, events

    def changed(self, server, body):
        """What differs from what the client sent."""
        came = [server.command, unquoted(server.path)] + [server.headers[name] for name in CREDENTIALS]
        if came != self.sent:
            return f"sent {self.sent}, came {came}"
        if self.body is None or body == self.body:
            return None
        return f"sent {self.body!r}, came {body!r}"

    def answer(self):
        """Status, content type and body."""
        if self.events is not None:
            return 200, "text/event-stream", sse(self.events)
        if self.kind is type(None):
            return 204, None, b""
        if self.kind in (str, bytes):
            return 200, "text/plain", b"text"
        try:
            return 200, "application/json", json.dumps(example_of(self.kind)).encode()
        except TypeError:  # no JSON: what the client reads as a file
            return 200, "application/octet-stream", b"bytes"


def unquoted(target):
    """Clients encode the same target in several ways, after it was noted."""
    return urllib.parse.unquote(target)


def sse(kind):
    example = example_of(kind)
    name = example.get("type") if isinstance(example, dict) else None
    event = f"event: {name}\n" if name else ""
    return f"{event}data: {json.dumps(example)}\n\n".encode() * 3


class Server(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 60

    def serve(self):
        body = self.body()
        call = calls.pop(int(self.headers.get(CALL, -1)), None)
        if call is None:
            return self.say(400, "text/plain", b"no call of a test")
        results.note_request()
        changed = call.changed(self, body)
        if changed:
            return self.say(400, "text/plain", f"the request has changed: {changed}".encode())
        self.say(*call.answer())

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = serve

    def body(self):
        if self.headers.get("transfer-encoding", "") == "chunked":
            parts = []
            while size := int(self.rfile.readline(), 16):
                parts.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            return b"".join(parts)
        return self.rfile.read(int(self.headers.get("content-length", 0)))

    def say(self, status, kind, body):
        self.send_response(status)
        if kind:
            self.send_header("content-type", kind)
        if status != 204:
            self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class Provider(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        """Clients that hang up in the middle of a stream are part of the tests."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


def watch(client, event_of):
    """Makes the clients say what they expect, and number what they send."""

    def remembering(request):
        signature = inspect.signature(request)

        def remember(args, options):
            said = signature.bind(*args, **options).arguments
            streams = said.get("stream") and said.get("stream_cls")
            expected.set((said["cast_to"], event_of(said["stream_cls"]) if streams else None))

        @functools.wraps(request)
        def whole(*args, **options):
            remember(args, options)
            return request(*args, **options)

        @functools.wraps(request)
        async def later(*args, **options):
            remember(args, options)
            return await request(*args, **options)

        return later if inspect.iscoroutinefunction(request) else whole

    build = client.BaseClient._build_request

    @functools.wraps(build)
    def numbered(*args, **options):
        request = build(*args, **options)
        if str(request.url).startswith(base) and expected.get(None):
            number = next(numbers)
            request.headers[CALL] = str(number)
            calls[number] = Call(request, *expected.get())
        return request

    for kind in (client.SyncAPIClient, client.AsyncAPIClient):
        kind.request = remembering(kind.request)
    client.BaseClient._build_request = numbered


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config):
    """Before their conftest, which reads the address from the environment."""
    global base
    folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
    server = stack.enter_context(Provider(("127.0.0.1", 0), Server))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    stack.callback(server.shutdown)
    address = f"http://127.0.0.1:{server.server_port}"
    if os.environ["SUITE_WAY"] == "through":
        address = stack.enter_context(gateway(folder, address))
    base = os.environ["TEST_API_BASE_URL"] = address + os.environ["SUITE_PREFIX"]
    package = os.environ["SUITE_PACKAGE"]
    streaming = importlib.import_module(f"{package}._streaming")
    watch(importlib.import_module(f"{package}._base_client"), streaming.extract_stream_chunk_type)


def pytest_unconfigure():
    stack.close()
