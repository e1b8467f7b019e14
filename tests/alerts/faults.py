"""What goes wrong outside of a gateway: a slow disk, an engine that does not speak HTTP, a receiver that takes nothing, a GPU that is
too hot."""

import contextlib
import http.server
import socket
import subprocess
import threading

SLOW = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <time.h>
static void wait_first(void) {
    struct timespec delay = {DELAY_MS / 1000, (DELAY_MS % 1000) * 1000000L};
    nanosleep(&delay, 0);
}
int fdatasync(int file) { wait_first(); return ((int (*)(int))dlsym(RTLD_NEXT, "fdatasync"))(file); }
"""
BAD_HTTP = b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n{}"
# A coding that nobody knows: what it says cannot be read, so what it used is unknown.
ODD_STREAM = (b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Encoding: odd\r\nConnection: close\r\n\r\n"
              b"data: {}\n\ndata: [DONE]\n\n")


def slow_disk(folder, delay_ms):
    """The environment of a program for which each sync of a file takes so long."""
    library = folder / f"slow-{delay_ms}.so"
    source = library.with_suffix(".c")
    source.write_text(SLOW)
    subprocess.run(["cc", "-shared", "-fPIC", f"-DDELAY_MS={delay_ms}", "-o", library, source, "-ldl"], check=True)
    return {"LD_PRELOAD": str(library)}


def strange_engine():
    """One that does not speak HTTP, or sends a stream that nobody can read: its address."""
    listener = socket.create_server(("127.0.0.1", 0))

    def answer():
        while True:
            with contextlib.suppress(OSError), listener.accept()[0] as client:
                client.sendall(ODD_STREAM if b'"odd"' in client.recv(65536) else BAD_HTTP)

    threading.Thread(target=answer, daemon=True).start()
    return f"127.0.0.1:{listener.getsockname()[1]}"


def receiver(status):
    """One of events that answers this: its address."""
    class Answer(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            self.rfile.read(int(self.headers.get("content-length", 0)))
            self.send_response(status)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"127.0.0.1:{server.server_address[1]}"


class Source:
    """An engine or an exporter that tells `text` as its metrics. An engine's requests run until it ends."""

    def __init__(self, text, status=200):
        over = self.over = threading.Event()
        source = self
        self.text = text

        class Answer(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                body = source.text.encode()
                self.send_response(status)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def do_POST(self):
                over.wait()

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answer)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"

    def end(self):
        self.over.set()
        self.server.shutdown()
        self.server.server_close()
