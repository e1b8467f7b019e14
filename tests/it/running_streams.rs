//! Metrics of a stream while it runs: its first token when that comes, and its output each second.

use std::collections::BTreeMap;

use crate::engine::Engine;
use crate::fixtures::{DONE, HELLO, ROLE, STOP, STREAM_CHAT, USAGE, WORLD};
use crate::gateway::{Gateway, Setup};
use crate::http::{LAST_CHUNK, chunk};
use crate::patience::patiently;
use crate::unserved::{by, expected};

/// Waits of streams, by what ended them.
fn waits(gateway: &Gateway) -> BTreeMap<[String; 2], f64> {
    let keys = ["taximeter_outcome", "gen_ai_response_model"];
    by(&gateway.metrics(), "taximeter_first_token_wait_seconds_count", keys)
}

/// Output tokens of running streams, by model, upstream and tenant.
fn running(gateway: &Gateway) -> BTreeMap<[String; 3], f64> {
    let keys = ["gen_ai_request_model", "taximeter_upstream", "taximeter_tenant"];
    by(&gateway.metrics(), "taximeter_output_running_total", keys)
}

fn sum(gateway: &Gateway) -> f64 {
    running(gateway).values().sum()
}

#[test]
fn a_first_token_is_told_when_it_comes_and_output_while_it_is_generated() {
    let engine = Engine::start();
    let gateway = Setup::before(&engine).upstream("dialect: openai").start();
    let (mut client, mut connection) = gateway.streaming(&engine, STREAM_CHAT, &[ROLE]);
    assert_eq!(waits(&gateway), expected(&[]), "nothing was generated yet");
    connection.send(&chunk(HELLO));
    client.expect(HELLO);
    let told = expected(&[(["token", "gpt-4o-mini-2024-07-18"], 1.0)]);
    assert_eq!(waits(&gateway), told, "{}", gateway.metrics());
    let running_now = || patiently(|| Some(sum(&gateway)).filter(|tokens| *tokens > 0.0));
    let before = running_now().expect("output of a running stream");
    connection.send(&chunk(WORLD));
    client.expect(WORLD);
    let more = patiently(|| (sum(&gateway) > before).then_some(()));
    assert!(more.is_some(), "{}", gateway.metrics());
    // Nothing that is told at the end is told yet.
    assert_eq!(gateway.records().len(), 0);
    for name in ["taximeter_tokens_total", "gen_ai_server_time_to_first_token_seconds_count"] {
        assert_eq!(by(&gateway.metrics(), name, []), expected(&[]), "{name}");
    }
    for event in [STOP, USAGE, DONE] {
        connection.send(&chunk(event));
    }
    connection.send(LAST_CHUNK);
    gateway.await_records(1);
    let record = gateway.record();
    // It was told once, and the rest of what was settled at the end.
    assert_eq!(waits(&gateway), told);
    let settled = record["usage"]["output_tokens"].as_f64().expect("a number");
    let tenant = record["tenant"].as_str().expect("a tenant");
    let upstream = record["upstream"].as_str().expect("a name");
    let model = record["request_model"].as_str().expect("a model");
    assert_eq!(running(&gateway), expected(&[([model, upstream, tenant], settled)]));
    let metrics = gateway.metrics();
    let first = by(&metrics, "gen_ai_server_time_to_first_token_seconds_count", []);
    assert_eq!(first, expected(&[([], 1.0)]));
}

#[test]
fn what_no_engine_serves_is_no_running_stream() {
    let engine = Engine::start();
    let gateway = Setup::before(&engine).upstream("dialect: openai").start();
    // An engine that generates under a status of an error.
    let mut client = gateway.chat("Connection: close\r\n", STREAM_CHAT);
    let body = [HELLO, WORLD, DONE].concat();
    engine.answer_once(&crate::http::answer("429 Busy", "text/event-stream", &body));
    assert_eq!(client.head().status(), 429);
    gateway.await_records(1);
    assert_eq!(running(&gateway), expected(&[]));
    let outcomes =
        by(&gateway.metrics(), "taximeter_first_token_wait_seconds_count", ["taximeter_outcome"]);
    assert_eq!(outcomes, expected(&[(["failed"], 1.0)]));
}
