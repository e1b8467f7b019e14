//! What is said in prompts and answers: on spans and events where that is asked for, and nowhere else.

use std::collections::BTreeMap;

use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{KeyValue, any_value};
use opentelemetry_proto::tonic::logs::v1::LogRecord;
use opentelemetry_proto::tonic::trace::v1::Span;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use prost::Message as _;
use serde_json::{Value, json};

use crate::client::Client;
use crate::collector::attributes;
use crate::engine::Engine;
use crate::fixtures::{
    CHAT, CHAT_ANSWER, DONE, EMBEDDINGS, EMBEDDINGS_ANSWER, HELLO, MESSAGE_EVENTS, MESSAGE_STREAM,
    STREAM_CHAT,
};
use crate::gateway::Setup;
use crate::http::{answer, bare, json_answer, post, stream_answer};
use crate::traces::{gateway, spans};

const CAPTURED: &str = "{}, content: {capture: spans}";
const SECRET: &str = "the-cat-is-in-the-attic";

fn event(delta: &Value, reason: Option<&str>) -> String {
    let event = json!({"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1,
        "model": "gpt-4o-mini", "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]});
    format!("data: {event}\n\n")
}

/// The attributes of the engine's span.
fn call(spans: &BTreeMap<String, Span>) -> BTreeMap<String, String> {
    let call = spans.values().find(|span| span.name.starts_with("chat ")).expect("a call");
    attributes(&call.attributes)
}

fn json_of(attributes: &BTreeMap<String, String>, key: &str) -> Value {
    let text = attributes.get(key).unwrap_or_else(|| panic!("no {key}: {attributes:?}"));
    serde_json::from_str(text).unwrap_or_else(|fault| panic!("{key}: {fault}: {text}"))
}

fn text(content: &str) -> Value {
    json!({"type": "text", "content": content})
}

#[test]
fn nothing_of_what_is_said_is_told_unless_that_is_asked_for() {
    let chat = CHAT.replace("Where to?", SECRET);
    let said = json!({"id": "c", "model": "gpt-4o-mini", "choices": [{"index": 0,
        "message": {"role": "assistant", "content": SECRET}, "finish_reason": "stop"}]});
    for (traces, answered) in [
        ("{}", json_answer(said.to_string())),
        ("{}, content: {capture: off}", json_answer(said.to_string())),
        ("{}, content: {capture: spans, tenants: [acme]}", json_answer(said.to_string())),
        // Kept for its failure alone, so that nothing was gathered.
        ("{ratio: 0}, content: {capture: spans}", answer("503 Busy", "text/plain", SECRET)),
    ] {
        let (engine, collector) = (Engine::start(), Engine::start());
        let mut gateway = gateway(&engine, &collector, &format!("{traces}, access_log: all"));
        let mut client = gateway.chat("Connection: close\r\n", &chat);
        engine.answer_once(&answered);
        assert!(client.answer().text().contains(SECRET));
        let spans = spans(&collector);
        assert!(spans.len() > 2 && !format!("{spans:?}").contains(SECRET), "{traces}: {spans:?}");
        assert!(!gateway.metrics().contains(SECRET));
        gateway.terminate();
        let (_, lines) = gateway.exit();
        assert!(lines.len() > 2 && !lines.concat().contains(SECRET), "{lines:?}");
    }
}

#[test]
fn a_chat_s_messages_are_told_with_its_calls_as_they_were_streamed() {
    let (engine, collector) = (Engine::start(), Engine::start());
    let gateway = gateway(&engine, &collector, &format!("{CAPTURED}, access_log: all"));
    let chat = json!({"model": "gpt-4o-mini", "stream": true,
        "stream_options": {"include_usage": true},
        "messages": [
            {"role": "system", "content": "Say \"where\"\n\u{1b}[2J."},
            {"role": "user", "content": [{"type": "text", "text": SECRET},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}]}],
        "tools": [{"type": "function",
            "function": {"name": "map", "description": "long", "parameters": {}}}]});
    let mut client = gateway.chat("Connection: close\r\n", chat.to_string());
    let call_of = |call: Value| event(&json!({"tool_calls": [call]}), None);
    engine.answer_once(&stream_answer(&[
        event(&json!({"role": "assistant", "content": "", "reasoning_content": "Hm."}), None),
        HELLO.to_owned(),
        call_of(json!({"index": 0, "id": "c1", "type": "function",
            "function": {"name": "map", "arguments": ""}})),
        call_of(json!({"index": 0, "function": {"arguments": "{\"of\": "}})),
        call_of(json!({"index": 0, "function": {"arguments": "\"Rome\"}"}})),
        event(&json!({}), Some("tool_calls")),
        DONE.to_owned(),
    ]));
    assert_eq!(client.answer().status(), 200);
    let told = call(&spans(&collector));
    assert_eq!(
        json_of(&told, "gen_ai.input.messages"),
        json!([
            {"role": "system", "parts": [text("Say \"where\"\n\u{1b}[2J.")]},
            {"role": "user", "parts": [text(SECRET),
                {"type": "image", "mime_type": "image/png", "bytes": 4}]},
        ])
    );
    assert_eq!(
        json_of(&told, "gen_ai.output.messages"),
        json!([{"role": "assistant", "finish_reason": "tool_call", "parts": [
            {"type": "reasoning", "content": "Hm."},
            text("To the"),
            {"type": "tool_call", "id": "c1", "name": "map", "arguments": {"of": "Rome"}},
        ]}])
    );
    assert_eq!(
        json_of(&told, "gen_ai.tool.definitions"),
        json!([{"type": "function", "name": "map"}])
    );
    assert!(!told.contains_key("gen_ai.system_instructions"), "{told:?}");
    assert!(!told.contains_key("taximeter.content.cut"), "{told:?}");
    // On the span alone.
    assert!(!gateway.metrics().contains(SECRET));
}

/// A gateway that pushes spans and lines to `collector`; `more` is what else its file says of
/// telemetry.
fn telling(engine: &Engine, collector: &Engine, more: &str) -> Setup {
    let otlp = format!("endpoint: 'http://{}', compression: none", collector.address());
    let otlp = format!("otlp: {{{otlp}, interval_seconds: 3600, logs: on}}, traces: {{}}");
    Setup::before(engine).upstream("dialect: openai").with(&format!("telemetry: {{{otlp}{more}}}"))
}

/// Takes pushes until there is the event of a call, and a call; the first of each.
fn event_and_call(collector: &Engine) -> (LogRecord, Span) {
    let (mut event, mut call) = (None, None);
    while event.is_none() || call.is_none() {
        let (mut connection, request) = collector.request();
        connection.send(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        if request.first_line.contains("/v1/logs") {
            let pushed = ExportLogsServiceRequest::decode(&*request.body).expect("OTLP");
            let scopes = pushed.resource_logs.into_iter().flat_map(|logs| logs.scope_logs);
            let mut records = scopes.flat_map(|scope| scope.log_records);
            let name = "gen_ai.client.inference.operation.details";
            event = event.or_else(|| records.find(|record| record.event_name == name));
        } else if request.first_line.contains("/v1/traces") {
            let pushed = ExportTraceServiceRequest::decode(&*request.body).expect("OTLP");
            let scopes = pushed.resource_spans.into_iter().flat_map(|spans| spans.scope_spans);
            let mut spans = scopes.flat_map(|scope| scope.spans);
            call = call.or_else(|| spans.find(|span| span.kind == SpanKind::Client as i32));
        }
    }
    (event.expect("an event"), call.expect("a call"))
}

fn has(pairs: &[KeyValue], key: &str) -> bool {
    pairs.iter().any(|pair| pair.key == key)
}

#[test]
fn a_call_is_an_event_without_what_is_said_where_the_environment_asks_for_no_more() {
    let (engine, collector) = (Engine::start(), Engine::start());
    let asks = [("OTEL_INSTRUMENTATION_GENAI_EMIT_EVENT", "true")];
    let gateway = telling(&engine, &collector, ", genai: latest").start_with(&asks);
    // Neither of these is an inference.
    for request in [
        bare("GET", "/v1/models", "Connection: close\r\n"),
        post("/v1/embeddings", "Connection: close\r\n", EMBEDDINGS),
    ] {
        let mut client = Client::saying(gateway.address(), &request);
        engine.answer_once(&json_answer(EMBEDDINGS_ANSWER));
        assert_eq!(client.answer().status(), 200);
    }
    let mut client = gateway.chat("Connection: close\r\n", CHAT);
    engine.answer_once(&json_answer(CHAT_ANSWER));
    assert_eq!(client.answer().status(), 200);
    let (event, _) = event_and_call(&collector);
    let said = attributes(&event.attributes);
    assert_eq!(said["gen_ai.operation.name"], "chat", "{said:?}");
    assert_eq!(said["gen_ai.usage.output_tokens"], "100", "{said:?}");
    assert!(!said.keys().any(|key| key.ends_with(".messages")), "{said:?}");
}

#[test]
fn what_is_said_is_an_event_of_its_own_with_structure_where_that_is_asked_for() {
    for (capture, is_on_span) in [("events", false), ("both", true)] {
        let (engine, collector) = (Engine::start(), Engine::start());
        let content = format!(", content: {{capture: {capture}}}");
        let gateway = telling(&engine, &collector, &content).start();
        let mut client = gateway.chat("Connection: close\r\n", CHAT);
        engine.answer_once(&json_answer(CHAT_ANSWER));
        assert_eq!(client.answer().status(), 200);
        let (event, call) = event_and_call(&collector);
        assert_eq!((&event.trace_id, &event.span_id), (&call.trace_id, &call.span_id));
        assert_eq!(has(&call.attributes, "gen_ai.output.messages"), is_on_span, "{call:?}");
        assert!(has(&event.attributes, "gen_ai.usage.output_tokens"), "{event:?}");
        let output = event.attributes.iter().find(|pair| pair.key == "gen_ai.output.messages");
        let output = output.and_then(|pair| pair.value.clone()?.value).expect("messages");
        let any_value::Value::ArrayValue(messages) = output else { panic!("{output:?}") };
        let Some(any_value::Value::KvlistValue(message)) = &messages.values[0].value else {
            panic!("{messages:?}")
        };
        assert!(has(&message.values, "role") && has(&message.values, "parts"), "{message:?}");
    }
}

#[test]
fn messages_and_responses_are_told_with_their_instructions_apart() {
    let (engine, collector) = (Engine::start(), Engine::start());
    let gateway = gateway(&engine, &collector, CAPTURED);
    let message = MESSAGE_STREAM.replacen('{', r#"{"system":"Be short.","#, 1);
    let response = json!({"model": "gpt-4o-mini", "instructions": "Be short.",
        "input": [{"role": "user", "content": [{"type": "input_text", "text": "Where to?"}]}]});
    let answered = json!({"id": "resp_1", "object": "response", "status": "completed",
        "model": "gpt-4o-mini", "output": [
            {"type": "reasoning", "summary": [{"type": "summary_text", "text": "Hm."}]},
            {"type": "message", "role": "assistant",
             "content": [{"type": "output_text", "text": "To the station"}]}]});
    for (path, body, sent, parts) in [
        ("/v1/messages", message, stream_answer(&MESSAGE_EVENTS), json!([text("Station")])),
        (
            "/v1/responses",
            response.to_string(),
            json_answer(answered.to_string()),
            json!([{"type": "reasoning", "content": "Hm."}, text("To the station")]),
        ),
    ] {
        let request = post(path, "Connection: close\r\n", &body);
        let mut client = Client::saying(gateway.address(), &request);
        engine.answer_once(&sent);
        assert_eq!(client.answer().status(), 200, "{path}");
        let told = call(&spans(&collector));
        assert_eq!(
            json_of(&told, "gen_ai.system_instructions"),
            json!([text("Be short.")]),
            "{path}"
        );
        assert_eq!(
            json_of(&told, "gen_ai.input.messages"),
            json!([{"role": "user", "parts": [text("Where to?")]}]),
            "{path}"
        );
        assert_eq!(
            json_of(&told, "gen_ai.output.messages"),
            json!([{"role": "assistant", "finish_reason": "stop", "parts": parts}]),
            "{path}"
        );
    }
}

#[test]
fn secrets_are_taken_out_and_long_texts_cut() {
    let (engine, collector) = (Engine::start(), Engine::start());
    let content = "{}, content: {capture: spans, bytes_max: 2000, redact: ['attic [0-9]+']}";
    let gateway = gateway(&engine, &collector, content);
    let key = format!("sk-proj-{}", "Ab1".repeat(12));
    let said =
        format!("My key is {key}, my mail ada@mail.example, attic 17. {}", "é ".repeat(5_000));
    let chat = json!({"model": "gpt-4o-mini", "messages": [{"role": "user", "content": said}]});
    let mut client = gateway.chat("Connection: close\r\n", chat.to_string());
    let answered = json!({"id": "c", "model": "gpt-4o-mini", "choices": [{"index": 0,
        "message": {"role": "assistant", "content": said}, "finish_reason": "stop"}]});
    engine.answer_once(&json_answer(answered.to_string()));
    assert!(client.answer().text().contains(&key), "the client's bytes are untouched");
    let told = call(&spans(&collector));
    for list in ["gen_ai.input.messages", "gen_ai.output.messages"] {
        assert!(told[list].len() <= 2_000, "{list}: {} bytes", told[list].len());
        let content = json_of(&told, list)[0]["parts"][0]["content"].clone();
        let begins = "My key is [redacted], my mail [redacted], [redacted]. é é";
        assert!(content.as_str().is_some_and(|text| text.starts_with(begins)), "{content}");
    }
    assert_eq!(told["taximeter.content.cut"], "true");
}

#[test]
fn a_client_that_leaves_has_what_it_was_sent_on_its_span() {
    let (engine, collector) = (Engine::start(), Engine::start());
    let gateway = gateway(&engine, &collector, CAPTURED);
    let (client, connection) = gateway.streaming(&engine, STREAM_CHAT, &[HELLO]);
    drop(client);
    connection.assert_closed_by_gateway();
    let told = call(&spans(&collector));
    assert_eq!(told["error.type"], "client_disconnect");
    assert_eq!(
        json_of(&told, "gen_ai.output.messages"),
        json!([{"role": "assistant", "finish_reason": "error", "parts": [text("To the")]}])
    );
}

#[test]
fn what_is_captured_changes_while_the_gateway_runs() {
    let (engine, collector) = (Engine::start(), Engine::start());
    let started = gateway(&engine, &collector, CAPTURED);
    let file = started.config_file();
    let before = std::fs::read_to_string(&file).expect("its file");
    std::fs::write(&file, before.replace("capture: spans", "capture: off")).expect("its file");
    started.hang_up();
    started.await_event("config_reloaded");
    let mut client = started.chat("Connection: close\r\n", CHAT);
    engine.answer_once(&json_answer(CHAT_ANSWER));
    assert_eq!(client.answer().status(), 200);
    let told = call(&spans(&collector));
    assert!(!told.keys().any(|key| key.ends_with(".messages")), "{told:?}");
}
