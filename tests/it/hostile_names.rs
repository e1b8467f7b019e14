//! Names from outside that are made to do harm, and what becomes of them in lines, labels and
//! attributes.

use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use prost::Message as _;
use serde_json::{Value, json};

use crate::client::{Client, ask};
use crate::collector::attributes;
use crate::engine::Engine;
use crate::fixtures::{CHAT, CHAT_ANSWER, HELLO, STREAM_CHAT};
use crate::gateway::{Gateway, Setup};
use crate::http::{json_answer, post, stream_answer};

/// The longest text that is shown of one name, in bytes.
const SHOWN_BYTES_MAX: usize = 256;
/// Ends lines, moves terminals, closes a label's quotes and an object's braces, turns round what is
/// read.
const HOSTILE: &str = "\u{1b}[2J\r\n\"},{\\\0\u{9b}31m\u{202e}";
/// Whatever quotes names has to quote this one too.
const QUOTED: &str = r#"a"b\c{d="e"}"#;
const TAKEN: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";

/// A gateway that tells a collector and its log of every request.
fn telling(engine: &Engine, collector: &Engine) -> Gateway {
    let endpoint = format!("endpoint: 'http://{}', compression: none", collector.address());
    let otlp = format!("otlp: {{{endpoint}, interval_seconds: 3600, logs: on}}");
    let telemetry = format!("telemetry: {{{otlp}, traces: {{}}, access_log: all}}");
    Setup::before(engine).upstream("dialect: openai, recount: off").with(&telemetry).start()
}

/// `document` with `name` wherever an engine may choose one.
fn named(document: &str, name: &str) -> String {
    let mut answer: Value = serde_json::from_str(document).expect("JSON");
    for member in ["id", "model", "service_tier", "system_fingerprint"] {
        answer[member] = name.into();
    }
    answer["choices"][0]["finish_reason"] = name.into();
    answer.to_string()
}

/// Asks for a chat with this model, and as much of `name` as a request may have; what is answered
/// has `name` everywhere.
fn exchange(gateway: &Gateway, engine: &Engine, model: &str, name: &str) {
    let mut body: Value = serde_json::from_str(CHAT).expect("JSON");
    body["model"] = model.into();
    body["stop"] = json!([name]);
    body["conversation"] = name.into();
    let mut client = gateway.chat("Connection: close\r\n", body.to_string());
    engine.answer_once(&json_answer(named(CHAT_ANSWER, name)));
    assert_eq!(client.answer().status(), 200);
}

/// Takes pushes until so many requests are told in both; every text in them, with its key.
fn pushed(collector: &Engine, requests: usize) -> Vec<(String, String)> {
    let (mut texts, mut servers, mut lines) = (Vec::new(), 0, 0);
    let mut read = |pairs: &[KeyValue]| texts.extend(attributes(pairs));
    while servers < requests || lines < requests {
        let (mut connection, request) = collector.request();
        connection.send(TAKEN);
        match request.first_line.as_str() {
            "POST /v1/traces HTTP/1.1" => {
                let pushed = ExportTraceServiceRequest::decode(&*request.body).expect("OTLP");
                let scopes = pushed.resource_spans.into_iter().flat_map(|from| from.scope_spans);
                for span in scopes.flat_map(|scope| scope.spans) {
                    servers += usize::from(span.kind == SpanKind::Server as i32);
                    read(&span.attributes);
                    assert!(!span.name.contains(moves), "{:?}", span.name);
                }
            }
            "POST /v1/logs HTTP/1.1" => {
                let pushed = ExportLogsServiceRequest::decode(&*request.body).expect("OTLP");
                let scopes = pushed.resource_logs.into_iter().flat_map(|from| from.scope_logs);
                for record in scopes.flat_map(|scope| scope.log_records) {
                    lines += usize::from(record.event_name == "taximeter.request");
                    read(&record.attributes);
                }
            }
            other => panic!("{other}"),
        }
    }
    texts
}

/// Whether a character controls or reorders what is shown.
fn moves(character: char) -> bool {
    character.is_control() || character == '\u{202e}'
}

/// Every text in a line.
fn texts(value: &Value) -> Vec<&str> {
    match value {
        Value::String(text) => vec![text],
        Value::Array(values) => values.iter().flat_map(texts).collect(),
        Value::Object(members) => members.values().flat_map(texts).collect(),
        _ => Vec::new(),
    }
}

#[test]
fn names_made_to_do_harm_do_none_in_lines_labels_and_attributes() {
    let (engine, collector) = (Engine::start(), Engine::start());
    let mut gateway = telling(&engine, &collector);
    let long = "é".repeat(SHOWN_BYTES_MAX);
    exchange(&gateway, &engine, "gpt-4o-mini", HOSTILE);
    exchange(&gateway, &engine, QUOTED, QUOTED);
    exchange(&gateway, &engine, &"x".repeat(SHOWN_BYTES_MAX), &long);
    let code = json!({"error": {"message": HOSTILE, "code": HOSTILE}});
    let mut client = gateway.chat("Connection: close\r\n", STREAM_CHAT);
    engine.answer_once(&stream_answer(&[HELLO, &format!("data: {code}\n\n")]));
    client.answer();
    for refused in [HOSTILE, &"x".repeat(1 << 20)] {
        let body = json!({"model": refused, "messages": []}).to_string();
        assert_eq!(gateway.chat("Connection: close\r\n", body).answer().status(), 400);
    }

    let told = pushed(&collector, 6);
    assert!(told.iter().any(|(_, text)| text.len() > SHOWN_BYTES_MAX / 2), "none was long");
    for (key, text) in &told {
        let fits = text.len() <= SHOWN_BYTES_MAX && !text.contains(moves);
        // The ends of lines in what ends an answer are what it ends by.
        let fits = fits || key == "gen_ai.request.stop_sequences" && !text.contains('\u{1b}');
        assert!(fits, "{key}: {text:?}");
    }
    let metrics = gateway.metrics();
    let label = r#"gen_ai_request_model="a\"b\\c{d=\"e\"}""#;
    assert!(metrics.contains(label), "{metrics}");
    for line in metrics.lines() {
        assert!(!line.contains(moves), "{line:?}");
        let value = line.rsplit(' ').next().and_then(|value| value.parse::<f64>().ok());
        assert!(line.starts_with('#') || value.is_some(), "{line:?}");
        assert!(line.split('"').all(|part| part.len() <= SHOWN_BYTES_MAX), "{line:?}");
    }
    drop(collector);
    gateway.terminate();
    assert_lines_are_objects(&gateway.exit().1, 6);
}

/// Holds that each line is one object, with short texts and nothing that moves a terminal, and that
/// so many tell of requests.
fn assert_lines_are_objects(lines: &[String], requests: usize) {
    let mut told = 0;
    for line in lines {
        assert!(!line.contains(moves), "{line:?}");
        let object: Value = serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line:?}"));
        told += usize::from(object["event"] == "request");
        for text in texts(&object) {
            assert!(text.len() <= SHOWN_BYTES_MAX, "{line}");
        }
    }
    assert_eq!(told, requests, "{lines:#?}");
}

#[test]
fn bytes_that_are_no_text_become_no_part_of_a_line() {
    let engine = Engine::start();
    let telemetry = "telemetry: {access_log: all}";
    let mut gateway = Setup::before(&engine).upstream("dialect: openai").with(telemetry).start();
    let ask_bytes = |bytes: &[u8]| ask(gateway.address(), bytes).status();

    // In a field of the head, in the target, in the body, in the answer.
    let head = post("/v1/chat/completions", "X-Request-Id: a@@\r\nConnection: close\r\n", CHAT);
    let mut client = Client::saying(gateway.address(), &spoilt(&head));
    let answered = spoilt(CHAT_ANSWER.replace("gpt-4o-mini-2024-07-18", "gpt@@").as_bytes());
    engine.answer_once(&json_answer(answered));
    assert_eq!(client.answer().status(), 200);
    let target = b"GET /v1/@@ HTTP/1.1\r\nHost: g\r\nConnection: close\r\n\r\n";
    assert!([400, 404].contains(&ask_bytes(&spoilt(target))));
    let body = post("/v1/chat/completions", "Connection: close\r\n", CHAT.replace("Where", "@@"));
    assert_eq!(ask_bytes(&spoilt(&body)), 400);

    gateway.terminate();
    let (status, lines) = gateway.exit();
    assert!(status.success());
    let told = lines.iter().filter(|line| line.contains(r#""event":"request""#)).count();
    assert_lines_are_objects(&lines, told);
    assert!(told >= 2, "{lines:#?}");
}

/// `bytes` with two that begin no character of UTF-8 in place of each `@@`.
fn spoilt(bytes: &[u8]) -> Vec<u8> {
    bytes.iter().map(|byte| if *byte == b'@' { 0xff } else { *byte }).collect()
}
