//! The first token of a stream on its timeline: where prefill ends, and the stream begins.

use std::time::Duration;

use opentelemetry_proto::tonic::trace::v1::Span;
use serde_json::Value;

use crate::client::Client;
use crate::engine::Engine;
use crate::fixtures::{
    DONE, HELLO, MESSAGE_EVENTS, MESSAGE_STREAM, ROLE, STOP, STREAM_CHAT_WITH_USAGE, USAGE, WORLD,
};
use crate::gateway::Gateway;
use crate::http::{LAST_CHUNK, chunk, post};
use crate::traces::{gateway, spans};

fn seconds(timing: &Value, member: &str) -> f64 {
    timing[member].as_f64().unwrap_or_else(|| panic!("{member}: {timing}"))
}

/// The end of a stage, from the request's start.
fn end_of(stages: &Value, last: &str) -> f64 {
    let order = ["identify", "body", "route", "admit", "connect", "prefill", "stream", "answer"];
    let through = order.iter().position(|stage| *stage == last).expect("a stage");
    order[..=through].iter().filter_map(|stage| stages[stage].as_f64()).sum()
}

/// Sends the events one by one, each when the client has had the one before, and ends the stream.
fn stream(gateway: &Gateway, engine: &Engine, request: &[u8], events: &[&str]) {
    let mut client = Client::saying(gateway.address(), request);
    let mut connection = engine.begin_stream();
    client.head();
    for event in events {
        connection.send(&chunk(event));
        client.expect(event);
    }
    connection.send(LAST_CHUNK);
    assert_eq!(client.next_chunk().as_deref(), Some(&[][..]), "the last chunk");
}

#[test]
fn prefill_ends_at_the_first_token_and_not_at_the_first_event() {
    let (engine, collector) = (Engine::start(), Engine::start());
    let gateway = gateway(&engine, &collector, "{}");
    for (request, events) in [
        (post("/v1/messages", "", MESSAGE_STREAM), &MESSAGE_EVENTS[..]),
        (
            post("/v1/chat/completions", "", STREAM_CHAT_WITH_USAGE),
            &[ROLE, HELLO, WORLD, STOP, USAGE, DONE],
        ),
    ] {
        stream(&gateway, &engine, &request, events);
        let spans = spans(&collector);
        let record = gateway.records().pop().expect("its record");
        let timing = &record["timing"];
        let first_token = seconds(timing, "time_to_first_token");
        assert!(first_token > seconds(timing, "time_to_first_chunk"), "{timing}");
        let (stages, prefill) = (&timing["stages"], end_of(&timing["stages"], "prefill"));
        assert!((prefill - first_token).abs() < 2e-6, "{timing}");
        assert!((end_of(stages, "stream") - seconds(timing, "duration")).abs() < 2e-6, "{timing}");
        assert!(stages["answer"].is_null(), "{timing}");
        for stage in ["prefill", "stream"] {
            let span: &Span = &spans[stage];
            let took = Duration::from_nanos(span.end_time_unix_nano - span.start_time_unix_nano);
            let told = Duration::from_secs_f64(seconds(stages, stage));
            assert!(took.abs_diff(told) <= Duration::from_micros(1), "{stage}: {took:?} {told:?}");
        }
        let id = record["id"].as_str().expect("an id");
        let page = gateway.admin(&format!("/requests/{id}"));
        let (_, row) = page.text().split_once("<tr data-stage=\"prefill\">").expect("its row");
        let (head, _) = row.split_once("</th>").expect("its head");
        assert!(head.contains("up to the first token"), "{head}");
    }
}

#[test]
fn a_stream_without_a_token_is_one_answer_from_the_engine() {
    let (engine, collector) = (Engine::start(), Engine::start());
    let gateway = gateway(&engine, &collector, "{}");
    let failed = r#"data: {"error":{"message":"overloaded","code":"overloaded"}}

"#;
    let request = post("/v1/chat/completions", "", STREAM_CHAT_WITH_USAGE);
    stream(&gateway, &engine, &request, &[ROLE, failed, DONE]);
    let timing = &gateway.record()["timing"];
    assert!(timing["time_to_first_chunk"].is_f64() && timing["time_to_first_token"].is_null());
    let stages = &timing["stages"];
    assert!(stages["prefill"].is_null() && stages["stream"].is_null(), "{timing}");
    assert!((end_of(stages, "answer") - seconds(timing, "duration")).abs() < 2e-6, "{timing}");
    let spans = spans(&collector);
    assert!(spans.contains_key("answer") && !spans.contains_key("prefill"), "{spans:?}");
}
