//! A stream that is cut at every tenth of its length: one record each, and its tokens are those of
//! the text that the client was sent, by OpenAI's own vocabulary.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::client::Client;
use crate::engine::{Connection, Engine};
use crate::fixtures::{STREAM_CHAT, STREAM_CHAT_WITH_USAGE};
use crate::gateway::{Gateway, Setup};
use crate::http::{LAST_CHUNK, chunk};

const CUTS: usize = 9;

/// A stream that thinks, talks, and calls a tool: 36 events.
fn stream() -> String {
    let reasoning =
        ["The user", " wants", " the night", " train;", " Zürich", " →", " 東京", " no"];
    let content =
        ["To", " the", " sta", "tion", ",", " platform", " 12", "b", "!\n\n", "**Mind", " the gap"];
    let arguments = ["{\"ci", "ty\": ", "\"Z\\u00fc", "rich\"", ", \"at\"", ": 23.59}"];
    let deltas = [json!({"role": "assistant", "content": ""})]
        .into_iter()
        .chain(reasoning.map(|text| json!({"reasoning_content": text})))
        .chain(content.map(|text| json!({"content": text})))
        .chain([json!({"tool_calls": [{"index": 0, "id": "call_1", "type": "function",
            "function": {"name": "timetable", "arguments": ""}}]})])
        .chain(
            arguments
                .map(|text| json!({"tool_calls": [{"index": 0, "function": {"arguments": text}}]})),
        );
    deltas
        .map(|delta| {
            let event = json!({"id": "chatcmpl-1", "object": "chat.completion.chunk",
                "model": "gpt-4o-mini-2024-07-18",
                "choices": [{"index": 0, "delta": delta, "finish_reason": null}]});
            format!("data: {event}\n\n")
        })
        .collect()
}

/// All that a client can read as generated: reasoning, text, names and arguments of calls.
fn generated(stream: &str) -> String {
    let mut text = String::new();
    for line in stream.lines() {
        let data = line.strip_prefix("data: ").unwrap_or_default();
        let Ok(event) = serde_json::from_str::<Value>(data) else { continue };
        let delta = &event["choices"][0]["delta"];
        let call = &delta["tool_calls"][0]["function"];
        let parts =
            [&delta["reasoning_content"], &delta["content"], &call["name"], &call["arguments"]];
        for part in parts {
            text.push_str(part.as_str().unwrap_or_default());
        }
    }
    text
}

fn tokens(text: &str) -> usize {
    tiktoken_rs::o200k_base_singleton().encode_ordinary(text).len()
}

/// What becomes of the stream behind the cut.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Then {
    ClientLeaves,
    Ends,
    Breaks,
    FallsSilent,
    Fails,
}

const ERROR: &str = "\n\ndata: {\"error\":{\"message\":\"out of memory\",\"code\":500}}\n\n";

/// Sends the stream up to its nth tenth, and then what is to be. The request's id, and all that the
/// client was sent.
fn cut(gateway: &Gateway, engine: &Engine, body: &str, nth: usize, then: Then) -> (String, String) {
    let mut client = gateway.chat("", body);
    let mut connection = engine.begin_stream();
    let id = client.head().header("x-taximeter-request-id").expect("an id").to_owned();
    let stream = stream();
    let sent = stream.floor_char_boundary(stream.len() * nth / (CUTS + 1));
    let sent = &stream[..sent];
    connection.send(&chunk(sent));
    // Half an event that may be the one to take out is held back until it is whole.
    let withheld = body == STREAM_CHAT;
    let passes = if withheld { sent.rfind("\n\n").map_or(0, |at| at + 2) } else { sent.len() };
    let mut came = Vec::new();
    while came.len() < passes {
        came.extend(client.next_chunk().expect("a chunk"));
    }
    end(client, connection, then, &mut came);
    let came = String::from_utf8(came).expect("text");
    assert!(came.starts_with(&sent[..passes]), "{came}");
    (id, came)
}

fn end(mut client: Client, mut connection: Connection, then: Then, came: &mut Vec<u8>) {
    match then {
        Then::ClientLeaves => {
            drop(client);
            connection.assert_closed_by_gateway();
            return;
        }
        Then::Ends => connection.send(LAST_CHUNK),
        Then::Breaks => connection.reset(),
        Then::FallsSilent => {}
        Then::Fails => connection.send(&[chunk(ERROR).as_slice(), LAST_CHUNK].concat()),
    }
    while let Some(more) = client.next_chunk().filter(|more| !more.is_empty()) {
        came.extend(more);
    }
}

/// Cuts at every tenth, and compares each record with what its client was sent.
fn assert_counted(gateway: &Gateway, engine: &Engine, body: &str, then: Then, end: &str) {
    let sent: BTreeMap<String, String> =
        (1..=CUTS).map(|nth| cut(gateway, engine, body, nth, then)).collect();
    assert_eq!(sent.len(), CUTS);
    let mut counts = Vec::new();
    for record in gateway.await_records(CUTS) {
        let came = &sent[record["id"].as_str().expect("an id")];
        let text = generated(came);
        assert_eq!(record["end"], end, "{record}");
        assert_eq!(record["usage"]["source"], "counted", "{record}");
        assert_eq!(record["usage"]["output_tokens"], tokens(&text), "{text:?} {record}");
        counts.push(tokens(&text));
    }
    assert!(counts.is_sorted(), "later cuts have more: {counts:?}");
    assert!(counts[0] > 0 && counts[0] < counts[CUTS - 1], "{counts:?}");
}

#[test]
fn a_stream_left_at_every_tenth_is_counted_as_what_was_sent() {
    for body in [STREAM_CHAT, STREAM_CHAT_WITH_USAGE] {
        let engine = Engine::start();
        let gateway = Gateway::before(&engine);
        assert_counted(&gateway, &engine, body, Then::ClientLeaves, "client_left");
    }
}

#[test]
fn a_stream_truncated_at_every_tenth_is_counted_as_what_was_sent() {
    for body in [STREAM_CHAT, STREAM_CHAT_WITH_USAGE] {
        let engine = Engine::start();
        let gateway = Gateway::before(&engine);
        assert_counted(&gateway, &engine, body, Then::Ends, "truncated");
    }
}

#[test]
fn a_stream_broken_at_every_tenth_is_counted_as_what_was_sent() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    assert_counted(&gateway, &engine, STREAM_CHAT, Then::Breaks, "upstream_error");
}

#[test]
fn a_stream_silent_at_every_tenth_is_counted_as_what_was_sent() {
    let engine = Engine::start();
    let gateway = Setup::before(&engine)
        .upstream("dialect: openai")
        .with("limits: {upstream_idle_timeout_seconds: 0.3}")
        .start();
    assert_counted(&gateway, &engine, STREAM_CHAT, Then::FallsSilent, "upstream_stalled");
}

#[test]
fn a_stream_that_fails_at_every_tenth_is_counted_as_what_was_sent() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    assert_counted(&gateway, &engine, STREAM_CHAT_WITH_USAGE, Then::Fails, "upstream_error");
}

#[test]
fn streams_that_outlive_the_gateway_leave_one_record_each() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    let stream = stream();
    let mut running = Vec::new();
    for nth in 1..=CUTS {
        let mut client = gateway.chat("", STREAM_CHAT_WITH_USAGE);
        let mut connection = engine.begin_stream();
        let id = client.head().header("x-taximeter-request-id").expect("an id").to_owned();
        let sent = stream.floor_char_boundary(stream.len() * nth / (CUTS + 1));
        connection.send(&chunk(&stream[..sent]));
        client.next_chunk().expect("a chunk");
        running.push((id, client, connection));
    }
    let folder = gateway.kill();
    let gateway = Setup::before(&engine).upstream("dialect: openai").start_in(folder);
    let records = gateway.records();
    assert_eq!(records.len(), CUTS, "{records:#?}");
    for (id, ..) in &running {
        let record = records.iter().find(|record| record["id"] == id.as_str());
        assert_eq!(record.expect("a record")["end"], "gateway_died");
    }
}
