//! Log lines pushed by OTLP: as records, in their traces, and never about the pushing itself.

use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::logs::v1::{LogRecord, SeverityNumber};
use prost::Message as _;

use crate::collector::{Collector, attributes};
use crate::engine::Engine;
use crate::fixtures::{CHAT, CHAT_ANSWER};
use crate::gateway::{Gateway, Setup};
use crate::http::{answer, bare, json_answer};

const TAKEN: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
const REFUSED: &[u8] = b"HTTP/1.1 400 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";

/// A gateway that pushes lines, and nothing else soon.
fn gateway(engine: &Engine, endpoint: &str, more: &str) -> Gateway {
    let otlp = format!("{endpoint}, compression: none, interval_seconds: 3600, logs: on");
    let telemetry = format!("telemetry: {{otlp: {{{otlp}}}, access_log: all{more}}}");
    Setup::before(engine).upstream("dialect: openai").with(&telemetry).start()
}

fn exchange(gateway: &Gateway, engine: &Engine) -> String {
    let headers = format!("traceparent: 00-{TRACE}-b7ad6b7169203331-01\r\nConnection: close\r\n");
    let mut client = gateway.chat(&headers, CHAT);
    engine.answer_once(&json_answer(CHAT_ANSWER));
    let answer = client.answer();
    assert_eq!(answer.status(), 200);
    answer.header("x-taximeter-request-id").expect("an id").to_owned()
}

fn records(message: &[u8]) -> Vec<LogRecord> {
    let pushed = ExportLogsServiceRequest::decode(message).expect("OTLP");
    let [resource] = &pushed.resource_logs[..] else { panic!("one resource") };
    let of = attributes(&resource.resource.as_ref().expect("a resource").attributes);
    assert_eq!(of["service.name"], "taximeter");
    let [scope] = &resource.scope_logs[..] else { panic!("one scope") };
    assert_eq!(scope.scope.as_ref().expect("a scope").name, "taximeter");
    scope.log_records.clone()
}

/// The next push of lines by HTTP, answered like this; others are taken.
fn push(collector: &Engine, answer: &[u8]) -> Vec<LogRecord> {
    loop {
        let (mut connection, request) = collector.request();
        if request.first_line == "POST /v1/logs HTTP/1.1" {
            connection.send(answer);
            return records(&request.body);
        }
        connection.send(TAKEN);
    }
}

/// Takes pushes until one has a line of this event.
fn await_record(collector: &Engine, event: &str) -> LogRecord {
    loop {
        let found = push(collector, TAKEN).into_iter().find(|record| record.event_name == event);
        if let Some(record) = found {
            return record;
        }
    }
}

fn int(record: &LogRecord, key: &str) -> Option<i64> {
    let pair = record.attributes.iter().find(|pair| pair.key == key)?;
    match pair.value.as_ref()?.value {
        Some(Value::IntValue(number)) => Some(number),
        _ => None,
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn a_call_that_fails_is_an_event_of_the_conventions_for_collectors_alone() {
    let (engine, collector) = (Engine::start(), Engine::start());
    let endpoint = format!("endpoint: 'http://{}'", collector.address());
    let mut gateway = gateway(&engine, &endpoint, "");
    exchange(&gateway, &engine);
    for (answer, error) in [
        (answer("429 Busy", "application/json", "{}"), "429"),
        (
            b"HTTP/1.1 200 OK\r\nContent-Length: 900\r\nConnection: close\r\n\r\n{".to_vec(),
            "upstream_reset",
        ),
    ] {
        let headers =
            format!("traceparent: 00-{TRACE}-b7ad6b7169203331-01\r\nConnection: close\r\n");
        let mut client = gateway.chat(&headers, CHAT);
        engine.answer_once(&answer);
        // The second one breaks off.
        let _ = client.try_answer();
        let event = await_record(&collector, "gen_ai.client.operation.exception");
        assert_eq!(event.severity_number, SeverityNumber::Warn as i32);
        assert_eq!(hex(&event.trace_id), TRACE);
        let told = attributes(&event.attributes);
        assert_eq!(told["exception.type"], error, "{told:?}");
        assert_eq!(told["error.type"], error, "{told:?}");
        assert_eq!(told["gen_ai.operation.name"], "chat");
        assert_eq!(told["gen_ai.provider.name"], "openai");
        assert_eq!(told["gen_ai.request.model"], "gpt-4o-mini");
        assert!(!told.contains_key("exception.message"), "it may quote the prompt: {told:?}");
    }
    drop(collector);
    gateway.terminate();
    let (_, lines) = gateway.exit();
    assert!(!lines.iter().any(|line| line.contains("operation_failed")), "{lines:?}");
}

#[test]
fn a_line_is_pushed_as_a_record_that_leads_to_its_span() {
    let (engine, collector) = (Engine::start(), Engine::start());
    let endpoint = format!("endpoint: 'http://{}'", collector.address());
    let gateway = gateway(&engine, &endpoint, ", traces: {}");
    let listening = await_record(&collector, "taximeter.listening");
    assert_eq!(listening.severity_number, SeverityNumber::Info as i32);
    assert!(listening.trace_id.is_empty() && listening.time_unix_nano > 0);
    let id = exchange(&gateway, &engine);
    let record = await_record(&collector, "taximeter.request");
    let line = gateway.await_event("request");
    assert_eq!(hex(&record.trace_id), TRACE);
    assert_eq!(
        (&line["trace_id"], &line["span_id"]),
        (&TRACE.into(), &hex(&record.span_id).into())
    );
    assert_eq!(int(&record, "http.response.status_code"), Some(200));
    assert_eq!(int(&record, "gen_ai.usage.input_tokens"), Some(1000));
    let told = attributes(&record.attributes);
    for (key, value) in [
        ("taximeter.request.id", id.as_str()),
        ("taximeter.tenant", "default"),
        ("gen_ai.request.model", "gpt-4o-mini"),
        ("http.route", "/v1/chat/completions"),
        ("taximeter.usage.source", "reported"),
        ("taximeter.end", "complete"),
    ] {
        assert_eq!(told.get(key).map(String::as_str), Some(value), "{key}: {told:?}");
    }
    gateway.await_metric("{taximeter_otlp_signal=\"logs\",taximeter_outcome=\"sent\"} ");
}

#[test]
fn lines_are_pushed_by_grpc_and_the_last_ones_at_the_end() {
    let (engine, collector) = (Engine::start(), Collector::start(false));
    let endpoint = format!("endpoint: 'http://{}', protocol: grpc", collector.address);
    let mut gateway = gateway(&engine, &endpoint, "");
    exchange(&gateway, &engine);
    gateway.terminate();
    let mut events = Vec::new();
    while !events.iter().any(|event| event == "taximeter.draining") {
        let call = collector.call();
        if call.path == "/opentelemetry.proto.collector.logs.v1.LogsService/Export" {
            events.extend(records(&call.message).into_iter().map(|record| record.event_name));
        }
    }
    assert_eq!(
        events.iter().filter(|event| *event == "taximeter.request").count(),
        1,
        "{events:?}"
    );
    assert!(gateway.exit().0.success());
}

#[test]
fn what_a_collector_does_not_take_is_counted_and_makes_no_further_lines_for_it() {
    let (engine, collector) = (Engine::start(), Engine::start());
    let endpoint = format!("endpoint: 'http://{}'", collector.address());
    let gateway = gateway(&engine, &endpoint, "");
    assert!(!push(&collector, REFUSED).is_empty());
    gateway.await_metric("{taximeter_otlp_signal=\"logs\",taximeter_outcome=\"dropped\"} ");
    assert_eq!(gateway.await_event("otlp_dropped")["signal"], "logs");
    assert_eq!(gateway.ask(&bare("GET", "/nowhere", "")).status(), 404);
    let mut events = Vec::new();
    while !events.iter().any(|event| event == "taximeter.request") {
        events.extend(push(&collector, TAKEN).into_iter().map(|record| record.event_name));
    }
    assert!(events.iter().all(|event| !event.starts_with("taximeter.otlp_")), "{events:?}");
}
