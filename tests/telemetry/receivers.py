"""Who receives telemetry: a collector of our own that keeps what it gets, and real ones."""

import contextlib
import gzip
import http.server
import pathlib
import tempfile
import threading

import rotel
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

import stage


class Collector:
    """Takes pushes by HTTP; the newest of each metric by its name, all spans and log records."""

    def __init__(self):
        collector = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["content-length"]))
                if self.headers.get("content-encoding") == "gzip":
                    body = gzip.decompress(body)
                if self.path == "/v1/traces":
                    collector.keep_spans(ExportTraceServiceRequest.FromString(body))
                elif self.path == "/v1/logs":
                    collector.keep_records(ExportLogsServiceRequest.FromString(body))
                else:
                    collector.keep(ExportMetricsServiceRequest.FromString(body))
                self.send_response(200)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        self.metrics, self.resource, self.spans, self.records = {}, {}, [], []
        # Of each signal's resources and scopes.
        self.schemas = set()
        self.handler, self.port = Handler, 0
        self.open()

    def open(self):
        """Listens, each time on the same port."""
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", self.port), self.handler)
        self.port = self.server.server_port
        self.url = f"http://127.0.0.1:{self.port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def keep(self, request):
        for resource in request.resource_metrics:
            self.resource = {pair.key: pair.value.string_value for pair in resource.resource.attributes}
            for scope in resource.scope_metrics:
                self.schemas.add(("metrics", resource.schema_url, scope.schema_url))
                self.metrics |= {metric.name: metric for metric in scope.metrics}

    def keep_spans(self, request):
        for resource in request.resource_spans:
            for scope in resource.scope_spans:
                self.schemas.add(("traces", resource.schema_url, scope.schema_url))
                self.spans += scope.spans

    def keep_records(self, request):
        for resource in request.resource_logs:
            for scope in resource.scope_logs:
                self.schemas.add(("logs", resource.schema_url, scope.schema_url))
                self.records += scope.log_records

    def close(self):
        self.server.shutdown()
        self.server.server_close()


@contextlib.contextmanager
def rotel_agent(folder):
    """A collector in Rust that prints what it gets: its addresses for gRPC and HTTP, and where it prints."""
    agent = pathlib.Path(rotel.__file__).parent / "rotel-agent"
    grpc, by_http = f"127.0.0.1:{stage.free_port()}", f"127.0.0.1:{stage.free_port()}"
    log = folder / "rotel.log"
    words = [agent, "start", "--otlp-grpc-endpoint", grpc, "--otlp-http-endpoint", by_http, "--exporter", "blackhole",
             "--debug-log", "metrics", "--debug-log", "traces", "--debug-log", "logs", "--debug-log-verbosity", "detailed"]
    with stage.running(words, log, cwd=folder):
        yield f"http://{grpc}", f"http://{by_http}", log


@contextlib.contextmanager
def victoria_metrics(folder):
    """A store that takes OTLP: its address."""
    address = f"127.0.0.1:{stage.free_port()}"
    words = ["victoria-metrics", f"-httpListenAddr={address}", f"-storageDataPath={folder / 'victoria'}",
             "-search.latencyOffset=0s"]
    with stage.running(words, folder / "victoria.log"):
        url = f"http://{address}"
        stage.patiently(lambda: stage.get(f"{url}/health")[0] == 200, "VictoriaMetrics")
        yield url


@contextlib.contextmanager
def prometheus(folder, target, *features):
    """One with these flags that scrapes `target` each second, with exemplars kept: its address."""
    address = f"127.0.0.1:{stage.free_port()}"
    data = tempfile.mkdtemp(dir=folder)
    config = folder / "prometheus.yml"
    config.write_text("{global: {scrape_interval: 1s}, scrape_configs: [{job_name: taximeter, static_configs: "
                      f"[{{targets: ['{target.removeprefix('http://')}']}}]}}]}}\n")
    words = ["prometheus", f"--config.file={config}", f"--storage.tsdb.path={data}",
             f"--web.listen-address={address}", "--enable-feature=exemplar-storage", *features]
    with stage.running(words, folder / "prometheus.log"):
        yield f"http://{address}"
