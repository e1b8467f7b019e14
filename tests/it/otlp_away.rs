//! Spans and log records wait for a collector that is away, busy or silent, and come once.

use std::collections::BTreeMap;

use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use prost::Message as _;

use crate::collector::{Collector, attributes, unpacked};
use crate::engine::Engine;
use crate::fixtures::{CHAT, CHAT_ANSWER};
use crate::gateway::{Gateway, Setup};
use crate::http::json_answer;

const TAKEN: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
/// Batches are made more often than a collector may take to answer.
const OFTEN: [(&str, &str); 3] = [
    ("OTEL_BSP_SCHEDULE_DELAY", "50"),
    ("OTEL_BLRP_SCHEDULE_DELAY", "50"),
    ("OTEL_EXPORTER_OTLP_TIMEOUT", "200"),
];

fn setup(engine: &Engine) -> Setup {
    Setup::before(engine).upstream("dialect: openai").with("telemetry: {access_log: all}")
}

fn gateway(engine: &Engine, environment: &[(&str, &str)]) -> Gateway {
    setup(engine).start_with(&[&OFTEN, environment].concat())
}

/// One request; its id.
fn exchange(gateway: &Gateway, engine: &Engine) -> String {
    let mut client = gateway.chat("Connection: close\r\n", CHAT);
    engine.answer_once(&json_answer(CHAT_ANSWER));
    let answer = client.answer();
    assert_eq!(answer.status(), 200);
    answer.header("x-taximeter-request-id").expect("an id").to_owned()
}

/// How often a collector was told something: spans by their ids, and requests of log records.
#[derive(Default)]
struct Heard {
    spans: BTreeMap<Vec<u8>, usize>,
    /// Of the spans that stand for a whole request.
    requests: BTreeMap<Vec<u8>, usize>,
    records: BTreeMap<String, usize>,
}

impl Heard {
    fn of(&mut self, path: &str, message: &[u8]) {
        match path.rsplit_once('/').expect("a path").1 {
            "traces" => {
                let pushed = ExportTraceServiceRequest::decode(message).expect("OTLP");
                let resources = pushed.resource_spans.into_iter();
                for span in resources.flat_map(|of| of.scope_spans).flat_map(|of| of.spans) {
                    if span.parent_span_id.is_empty() {
                        *self.requests.entry(span.trace_id).or_default() += 1;
                    }
                    *self.spans.entry(span.span_id).or_default() += 1;
                }
            }
            "logs" => {
                let pushed = ExportLogsServiceRequest::decode(message).expect("OTLP");
                let resources = pushed.resource_logs.into_iter();
                for record in resources.flat_map(|of| of.scope_logs).flat_map(|of| of.log_records) {
                    if record.event_name == "taximeter.request" {
                        let id = attributes(&record.attributes)["taximeter.request.id"].clone();
                        *self.records.entry(id).or_default() += 1;
                    }
                }
            }
            _ => {}
        }
    }

    /// Takes the next push, or answers it like this without hearing it.
    fn next(&mut self, collector: &Engine, refusal: Option<&str>) {
        let (mut connection, request) = collector.request();
        if let Some(refusal) = refusal {
            let head =
                format!("HTTP/1.1 {refusal}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
            return connection.send(head.as_bytes());
        }
        let gzip = request.header("content-encoding") == Some("gzip");
        let path = request.first_line.split(' ').nth(1).expect("a path").to_owned();
        self.of(&path, &unpacked(&request.body, gzip));
        connection.send(TAKEN);
    }
}

#[test]
fn what_comes_while_a_collector_is_away_or_busy_waits_and_comes_once() {
    let (engine, away) = (Engine::start(), Engine::start());
    let address = away.address();
    drop(away);
    let endpoint = format!("http://{address}");
    let gateway = gateway(&engine, &[("OTEL_EXPORTER_OTLP_ENDPOINT", &endpoint)]);
    let mut ids = vec![exchange(&gateway, &engine)];
    for signal in ["traces", "logs"] {
        gateway.await_metric(&format!("otlp_faults_total{{taximeter_otlp_signal=\"{signal}\"}} "));
        ids.push(exchange(&gateway, &engine));
    }
    let collector = Engine::at(address);
    let mut heard = Heard::default();
    for refusal in ["503 Busy", "429 Slower\r\nRetry-After: 0", "502 Away", "504 Late"] {
        heard.next(&collector, Some(refusal));
    }
    ids.push(exchange(&gateway, &engine));
    while heard.requests.len() < ids.len() || heard.records.len() < ids.len() {
        heard.next(&collector, None);
    }
    for id in &ids {
        assert_eq!(heard.records[id], 1, "{:?}", heard.records);
    }
    let once = |counts: &BTreeMap<Vec<u8>, usize>| counts.values().all(|count| *count == 1);
    assert!(once(&heard.spans) && once(&heard.requests), "{:?}", heard.spans);
    let sent = format!("signal=\"traces\",taximeter_outcome=\"sent\"}} {}\n", heard.spans.len());
    gateway.await_metric(&sent);
    let text = gateway.metrics();
    let dropped = |line: &&str| line.contains("outcome=\"dropped\"") && !line.contains("metrics");
    assert_eq!(text.lines().find(dropped), None);
}

#[test]
fn what_a_collector_takes_while_the_gateway_ends_is_not_sent_again() {
    let (engine, collector) = (Engine::start(), Engine::start());
    let endpoint = format!("http://{}/v1/traces", collector.address());
    let environment = [
        ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", endpoint.as_str()),
        ("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "60000"),
    ];
    let mut gateway = gateway(&engine, &environment);
    exchange(&gateway, &engine);
    let (mut connection, request) = collector.request();
    let mut heard = Heard::default();
    heard.of("/v1/traces", &unpacked(&request.body, request.header("content-encoding").is_some()));
    exchange(&gateway, &engine);
    gateway.terminate();
    gateway.await_event("draining");
    // It is about to end, or ends already: either is fine.
    gateway.await_refusal();
    connection.send(TAKEN);
    heard.next(&collector, None);
    assert!(gateway.exit().0.success());
    assert!(collector.try_accept().is_none(), "it has all");
    assert_eq!(heard.requests.len(), 2, "{:?}", heard.requests);
    assert!(heard.spans.values().all(|count| *count == 1), "{:?}", heard.spans);
}

#[test]
fn a_collector_says_by_grpc_that_it_will_take_a_batch_later_or_never() {
    let (engine, collector) = (Engine::start(), Collector::start(false));
    let endpoint = format!("http://{}", collector.address);
    let environment = [
        ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", endpoint.as_str()),
        ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "grpc"),
    ];
    let gateway = gateway(&engine, &environment);
    let spans = |message: &[u8]| {
        let mut heard = Heard::default();
        heard.of("/v1/traces", message);
        heard.spans.into_keys().collect::<Vec<_>>()
    };
    collector.answer(&[("grpc-status", "14")]);
    exchange(&gateway, &engine);
    let first = spans(&collector.call().message);
    assert_eq!(spans(&collector.call().message), first);
    let of =
        |outcome| format!("signal=\"traces\",taximeter_outcome=\"{outcome}\"}} {}", first.len());
    gateway.await_metric(&of("sent"));
    // Without a time to come back, an exhausted collector will not take it.
    collector.answer(&[("grpc-status", "8")]);
    exchange(&gateway, &engine);
    assert_ne!(spans(&collector.call().message), first);
    gateway.await_metric(&of("dropped"));
}
