//! The line of each request: what it says, who has one, and that nobody waits for it.

use serde_json::Value;

use crate::client::Client;
use crate::engine::Engine;
use crate::fixtures::{CHAT, CHAT_ANSWER, DONE, HELLO, STOP, STREAM_CHAT, USAGE, WORLD};
use crate::gateway::{Gateway, Setup};
use crate::http::{bare, json_answer, stream_answer};

/// Written down with what they mean, by a test of their own.
const DOCUMENTED: &str = include_str!("../../docs/reference/logs.md");
const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";

fn gateway(engine: &Engine, access_log: &str) -> Gateway {
    let setup = Setup::before(engine).upstream("dialect: openai");
    setup.with(&format!("telemetry: {{access_log: {access_log}}}")).start()
}

/// Asks for a chat with these headers, which the engine answers.
fn chat(gateway: &Gateway, engine: &Engine, headers: &str) {
    let mut client = gateway.chat(&format!("{headers}Connection: close\r\n"), CHAT);
    engine.answer_once(&json_answer(CHAT_ANSWER));
    assert_eq!(client.answer().status(), 200);
}

/// The next line of a request, which must be the one of this id.
fn line(gateway: &Gateway, request_id: &str) -> Value {
    let line = gateway.await_event("request");
    assert_eq!(line["request_id"], request_id, "{line}");
    for field in line.as_object().expect("an object").keys() {
        assert!(DOCUMENTED.contains(&format!("`{field}`")), "{field}");
    }
    line
}

#[test]
fn a_line_says_what_the_record_says() {
    let engine = Engine::start();
    let gateway = gateway(&engine, "all");
    let headers = format!("traceparent: 00-{TRACE}-b7ad6b7169203331-01\r\nx-request-id: mine\r\n");
    chat(&gateway, &engine, &headers);
    let (line, record) = (line(&gateway, "mine"), gateway.record());
    for field in ["id", "tenant", "route", "status", "end", "operation", "upstream", "stream"] {
        assert_eq!(line[field], record[field], "{field}");
    }
    for field in ["input_tokens", "output_tokens", "cache_read_input_tokens", "source", "flags"] {
        let said = if record["usage"][field] == Value::Array(vec![]) {
            &Value::Null
        } else {
            &record["usage"][field]
        };
        assert_eq!(&line[field], said, "{field}");
    }
    assert_eq!(line["model"], record["request_model"]);
    assert_eq!(line["response_model"], record["response_model"]);
    assert_eq!(line["currency"], record["cost"]["currency"]);
    assert_eq!(line["cost"], record["cost"]["amount"]);
    assert_eq!(line["duration_seconds"], record["timing"]["duration"]);
    assert_eq!((&line["level"], &line["method"]), (&"info".into(), &"POST".into()));
    assert_eq!((&line["peer"], &line["trace_id"]), (&"127.0.0.1".into(), &TRACE.into()));
    assert!(!line.to_string().contains("Where to?"), "{line}");
}

#[test]
fn who_asks_behind_a_trusted_peer_is_whom_it_names_and_decides_nothing() {
    let engine = Engine::start();
    let gateway = Setup::before(&engine)
        .upstream("dialect: openai")
        .with("telemetry: {access_log: all}")
        .with("tenants: {unknown: default, header: {name: x-tenant-id, trusted_peers: [127.0.0.0/8]}}")
        .start();
    let told = "x-tenant-id: acme\r\nX-Forwarded-For: 198.51.100.7, 192.0.2.1\r\n";
    chat(&gateway, &engine, &format!("x-request-id: one\r\n{told}"));
    let line = line(&gateway, "one");
    assert_eq!((&line["peer"], &line["tenant"]), (&"192.0.2.1".into(), &"acme".into()));
    // A refusal has a line too.
    let refused = gateway.chat("x-request-id: two\r\nX-Forwarded-For: 192.0.2.9\r\n", "{").answer();
    assert_eq!(refused.status(), 400);
    let line = gateway.await_event("request");
    assert_eq!((&line["request_id"], &line["peer"]), (&"two".into(), &"192.0.2.9".into()));
}

#[test]
fn every_request_has_one_line_however_it_ends() {
    let engine = Engine::start();
    let gateway = gateway(&engine, "all");
    let mut client = gateway.chat("x-request-id: stream\r\nConnection: close\r\n", STREAM_CHAT);
    engine.answer_once(&stream_answer(&[HELLO, WORLD, STOP, USAGE, DONE]));
    assert_eq!(client.answer().status(), 200);
    let stream = line(&gateway, "stream");
    assert!(stream["time_to_first_token_seconds"].is_f64(), "{stream}");

    let left = "x-request-id: left\r\n";
    let mut client = gateway.chat(left, STREAM_CHAT);
    let mut connection = engine.begin_stream();
    client.head();
    connection.send(&crate::http::chunk(HELLO));
    client.expect(HELLO);
    drop(client);
    let left = line(&gateway, "left");
    assert_eq!(
        (&left["end"], &left["error_type"]),
        (&"client_left".into(), &"client_disconnect".into())
    );

    let unknown = bare("GET", "/v1/nowhere?key=sk-secret", "x-request-id: unknown\r\n");
    assert_eq!(gateway.ask(&unknown).status(), 404);
    let unknown = line(&gateway, "unknown");
    assert_eq!((&unknown["status"], &unknown["path"]), (&404.into(), &"/v1/nowhere".into()));
    assert!(unknown["code"].is_string() && unknown["route"].is_null(), "{unknown}");
    assert!(!unknown.to_string().contains("sk-secret"), "{unknown}");

    let mut client = Client::saying(
        gateway.address(),
        &bare("GET", "/v1/models", "x-request-id: models\r\nConnection: close\r\n"),
    );
    engine.answer_once(&json_answer("{}"));
    assert_eq!(client.answer().status(), 200);
    let models = line(&gateway, "models");
    assert_eq!((&models["status"], &models["route"]), (&200.into(), &"/v1/models".into()));

    drop(engine);
    let mut client = gateway.chat("x-request-id: gone\r\nConnection: close\r\n", CHAT);
    assert_eq!(client.answer().status(), 502);
    let gone = line(&gateway, "gone");
    assert_eq!((&gone["status"], &gone["upstream"]), (&502.into(), &"engine".into()));
    assert_eq!(gone["code"], gone["error_type"]);
    assert_eq!(gateway.ask(&bare("GET", "/last", "x-request-id: last\r\n")).status(), 404);
    line(&gateway, "last");
}

#[test]
fn of_errors_only_those_have_a_line_and_without_it_nobody() {
    for (access_log, has_line) in [("errors", true), ("off", false)] {
        let engine = Engine::start();
        let mut gateway = gateway(&engine, access_log);
        chat(&gateway, &engine, "x-request-id: well\r\n");
        assert_eq!(gateway.ask(&bare("GET", "/bad", "x-request-id: bad\r\n")).status(), 404);
        gateway.terminate();
        let (status, said) = gateway.exit();
        assert!(status.success());
        let lines: Vec<_> =
            said.iter().filter(|line| line.contains(r#""event":"request""#)).collect();
        assert_eq!(lines.len(), usize::from(has_line), "{said:#?}");
        assert!(lines.iter().all(|line| line.contains(r#""request_id":"bad""#)), "{lines:?}");
    }
}

#[test]
fn a_log_that_nobody_reads_holds_up_no_request_and_leaves_out_no_line() {
    /// Far more lines than a pipe holds.
    const REQUESTS: usize = 600;
    let engine = Engine::start();
    let gateway = gateway(&engine, "all");
    let unread = gateway.unread();
    let mut client = Client::connect(gateway.address());
    let path = format!("/{}", "x".repeat(300));
    for _ in 0..REQUESTS {
        client.send(&bare("GET", &path, ""));
        assert_eq!(client.answer().status(), 404);
    }
    drop(unread);
    (0..REQUESTS).for_each(|_| {
        gateway.await_event("request");
    });
    gateway.await_metric("taximeter_log_lines_lost_total 0");
}
