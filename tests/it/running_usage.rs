//! `usage: continuous` and `usage: token_ids`: an abort is exact, and clients see none of it.

use serde_json::Value;

use crate::engine::Engine;
use crate::fixtures::{DONE, HELLO, ROLE, STOP, STREAM_CHAT, STREAM_CHAT_WITH_USAGE, USAGE, WORLD};
use crate::gateway::{Gateway, Setup};
use crate::http::{LAST_CHUNK, chunk, stream_answer};

/// The prompt has 1,000 tokens, as in [`USAGE`].
const INPUT: u64 = 1000;

/// An event, and how many tokens have been generated up to it.
const EVENTS: [(&str, u64); 4] = [(ROLE, 0), (HELLO, 3), (WORLD, 7), (STOP, 8)];

/// The event with running totals.
fn running(event: &str, output: u64) -> String {
    let total = INPUT + output;
    let usage = format!(
        r#","usage":{{"prompt_tokens":{INPUT},"total_tokens":{total},"completion_tokens":{output}}}"#
    );
    event.replacen("}\n\n", &format!("{usage}}}\n\n"), 1)
}

/// The event with the ids of its tokens, or with null in their place.
fn with_ids(event: &str, output: std::ops::Range<u64>, asked: bool) -> String {
    let list = |ids: std::ops::Range<u64>| {
        if asked { format!("{:?}", ids.collect::<Vec<_>>()) } else { "null".to_owned() }
    };
    if event == ROLE {
        let prompt = format!("],\"prompt_token_ids\":{}}}\n\n", list(0..INPUT));
        return event.replacen("]}\n\n", &prompt, 1);
    }
    event.replacen("}]}", &format!(",\"token_ids\":{}}}]}}", list(output)), 1)
}

fn gateway(engine: &Engine, usage: &str) -> Gateway {
    Setup::before(engine).upstream(&format!("dialect: vllm, usage: {usage}, recount: off")).start()
}

/// The record of a stream that its client left behind the first `events` events.
fn left_behind(engine: &Engine, gateway: &Gateway, events: &[(String, &str)]) -> Value {
    let before = gateway.records().len();
    let mut client = gateway.chat("", STREAM_CHAT);
    let mut connection = engine.begin_stream();
    client.head();
    for (sent, seen) in events {
        connection.send(&chunk(sent));
        assert_eq!(String::from_utf8(client.next_chunk().expect("an event")).unwrap(), *seen);
    }
    drop(client);
    connection.assert_closed_by_gateway();
    gateway.await_records(before + 1).pop().expect("a record")
}

#[test]
fn a_stream_that_is_left_is_reported_up_to_its_last_event() {
    let engine = Engine::start();
    let gateway = gateway(&engine, "continuous");
    let events: Vec<_> =
        EVENTS.iter().map(|(event, output)| (running(event, *output), *event)).collect();
    for (at, (_, output)) in EVENTS.iter().enumerate().take(3) {
        let record = left_behind(&engine, &gateway, &events[..=at]);
        assert_eq!(record["end"], "client_left", "{record}");
        assert_eq!(record["usage"]["source"], "reported", "{record}");
        assert_eq!(record["usage"]["input_tokens"], INPUT, "{record}");
        assert_eq!(record["usage"]["output_tokens"], *output, "{record}");
        assert_eq!(record["usage"]["flags"], serde_json::json!([]), "{record}");
        assert_eq!(record["timing"]["output_chunks"], at as u64, "{record}");
    }
}

#[test]
fn the_engines_token_ids_are_counted_when_a_stream_is_left() {
    let engine = Engine::start();
    let gateway = gateway(&engine, "token_ids");
    let mut before = 0;
    let mut events = Vec::new();
    let plain: Vec<String> =
        EVENTS.iter().map(|(event, output)| with_ids(event, 0..*output, false)).collect();
    for (at, (event, output)) in EVENTS.iter().enumerate().take(3) {
        events.push((with_ids(event, before..*output, true), plain[at].as_str()));
        before = *output;
        let record = left_behind(&engine, &gateway, &events);
        assert_eq!(record["usage"]["source"], "reported", "{record}");
        assert_eq!(record["usage"]["input_tokens"], INPUT, "{record}");
        assert_eq!(record["usage"]["output_tokens"], *output, "{record}");
        assert_eq!(record["usage"]["flags"], serde_json::json!(["token_ids"]), "{record}");
    }
}

#[test]
fn a_client_sees_the_stream_that_it_asked_for() {
    let engine = Engine::start();
    let gateway = gateway(&engine, "continuous");
    let mut sent: Vec<String> =
        EVENTS.iter().map(|(event, output)| running(event, *output)).collect();
    sent.extend([USAGE.to_owned(), DONE.to_owned()]);
    let sent: Vec<&str> = sent.iter().map(String::as_str).collect();
    let both = STREAM_CHAT_WITH_USAGE.replace("true}", r#"true,"continuous_usage_stats":true}"#);
    for (body, seen) in [
        (STREAM_CHAT, [ROLE, HELLO, WORLD, STOP, DONE].concat()),
        (STREAM_CHAT_WITH_USAGE, [ROLE, HELLO, WORLD, STOP, USAGE, DONE].concat()),
        (both.as_str(), sent.concat()),
    ] {
        let mut client = gateway.chat("Connection: close\r\n", body);
        let request = engine.answer_once(&stream_answer(&sent));
        let asked: Value = request.json();
        assert_eq!(asked["stream_options"]["include_usage"], true, "{asked}");
        assert_eq!(asked["stream_options"]["continuous_usage_stats"], true, "{asked}");
        assert_eq!(client.answer().text(), seen, "{body}");
    }
    for record in gateway.await_records(3) {
        assert_eq!(record["usage"]["output_tokens"], 100, "{record}");
        assert_eq!(record["usage"]["cache_read_input_tokens"], 400, "{record}");
        assert_eq!(record["end"], "complete", "{record}");
    }
}

#[test]
fn a_hidden_total_may_come_in_pieces() {
    let engine = Engine::start();
    let gateway = gateway(&engine, "continuous");
    let event = running(HELLO, 3);
    for at in [1, event.len() / 2, event.len() - 30, event.len() - 1] {
        let mut client = gateway.chat("Connection: close\r\n", STREAM_CHAT);
        let mut connection = engine.begin_stream();
        let (first, second) = event.split_at(at);
        for piece in [ROLE, first, second, STOP, USAGE, DONE] {
            connection.send(&chunk(piece));
        }
        connection.send(LAST_CHUNK);
        drop(connection);
        assert_eq!(client.answer().text(), [ROLE, HELLO, STOP, DONE].concat(), "split at {at}");
    }
}

#[test]
fn a_drained_stream_that_breaks_is_reported_up_to_its_last_running_total() {
    let engine = Engine::start();
    let upstream = "dialect: vllm, usage: continuous, on_client_left: drain";
    let gateway = Setup::before(&engine).upstream(upstream).start();
    let mut client = gateway.chat("", STREAM_CHAT);
    let mut connection = engine.begin_stream();
    client.head();
    connection.send(&chunk(running(HELLO, 3)));
    assert_eq!(client.next_chunk().as_deref(), Some(HELLO.as_bytes()));
    drop(client);
    gateway.await_metric("taximeter_answers_left_total{taximeter_kind=\"drained\"} 1");
    // A whole event, the half of another, and no more.
    let next = running(STOP, 8);
    connection.send(&[chunk(running(WORLD, 7)), chunk(&next[..next.len() / 2])].concat());
    drop(connection);
    let record = &gateway.await_records(1)[0];
    assert_eq!(record["end"], "client_left", "{record}");
    assert_eq!(record["usage"]["source"], "reported", "{record}");
    assert_eq!(record["usage"]["output_tokens"], 7, "{record}");
    assert_eq!(record["timing"]["output_chunks"], 1, "what the client was sent: {record}");
}
