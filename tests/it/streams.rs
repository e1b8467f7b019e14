//! Streams of events: at once, unchanged, and metered on the way.

use crate::client::Client;
use crate::engine::Engine;
use crate::fixtures::{
    DONE, HELLO, MESSAGE_EVENTS, MESSAGE_STREAM, ROLE, STOP, STREAM_CHAT, STREAM_CHAT_WITH_USAGE,
    USAGE, WORLD,
};
use crate::gateway::{Gateway, Setup};
use crate::http::{LAST_CHUNK, chunk, chunks, post, stream_answer};

#[test]
fn each_event_reaches_the_client_before_the_engine_sends_the_next() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    let mut client = gateway.chat("", STREAM_CHAT_WITH_USAGE);
    let mut connection = engine.begin_stream();
    assert_eq!(client.head().status(), 200);
    for event in [ROLE, HELLO, WORLD, STOP, USAGE] {
        connection.send(&chunk(event));
        client.expect(event);
    }
    connection.send(&chunk(DONE));
    client.expect(DONE);
    connection.send(LAST_CHUNK);
    assert_eq!(client.next_chunk(), Some(Vec::new()));
}

#[test]
fn half_an_event_reaches_the_client_too() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    let mut client = gateway.chat("", STREAM_CHAT_WITH_USAGE);
    let mut connection = engine.begin_stream();
    client.head();
    let (first, second) = HELLO.split_at(40);
    connection.send(&chunk(first));
    client.expect(first);
    connection.send(&chunk(second));
    client.expect(second);
}

#[test]
fn usage_is_asked_for_by_a_splice_and_its_event_is_hidden() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    let mut client = gateway.chat("", STREAM_CHAT);
    let request = engine.answer_once(&stream_answer(&[ROLE, HELLO, WORLD, STOP, USAGE, DONE]));

    let sent = request.text();
    let asked = r#""stream_options":{"include_usage":true}"#;
    assert_eq!(sent.matches(asked).count(), 1, "{sent}");
    let without = sent.replacen(&format!(",{asked}"), "", 1).replacen(&format!("{asked},"), "", 1);
    assert_eq!(without, STREAM_CHAT);

    let answer = client.answer();
    assert_eq!(answer.text(), [ROLE, HELLO, WORLD, STOP, DONE].concat());
    assert!(answer.complete);
    let record = gateway.record();
    assert_eq!(record["usage"]["source"], "reported");
    assert_eq!(record["usage"]["input_tokens"], 1000);
    assert_eq!(record["usage"]["cache_read_input_tokens"], 400);
    assert_eq!(record["usage"]["output_tokens"], 100);
}

#[test]
fn the_hidden_event_may_come_in_pieces() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    for at in [1, 6, USAGE.len() / 2, USAGE.len() - 1] {
        let mut client = gateway.chat("Connection: close\r\n", STREAM_CHAT);
        let mut connection = engine.begin_stream();
        let (first, second) = USAGE.split_at(at);
        for piece in [HELLO, STOP, first, second, DONE] {
            connection.send(&chunk(piece));
        }
        connection.send(LAST_CHUNK);
        drop(connection);
        assert_eq!(client.answer().text(), [HELLO, STOP, DONE].concat(), "split at {at}");
    }
}

#[test]
fn a_client_that_asked_for_usage_keeps_its_event() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    let events = [ROLE, HELLO, WORLD, STOP, USAGE, DONE];
    let mut client = gateway.chat("", STREAM_CHAT_WITH_USAGE);
    let request = engine.answer_once(&stream_answer(&events));
    assert_eq!(request.text(), STREAM_CHAT_WITH_USAGE);
    assert_eq!(client.answer().text(), events.concat());
    assert_eq!(gateway.record()["usage"]["output_tokens"], 100);
}

#[test]
fn stream_options_without_the_flag_get_it_and_false_is_turned() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    for options in ["{}", r#"{"include_obfuscation":false}"#] {
        let body = format!(
            r#"{{"model":"gpt-4o-mini","stream":true,"stream_options":{options},"messages":[]}}"#
        );
        let mut client = gateway.chat("Connection: close\r\n", &body);
        let request = engine.answer_once(&stream_answer(&[HELLO, STOP, USAGE, DONE]));
        let sent: serde_json::Value = request.json();
        assert_eq!(sent["stream_options"]["include_usage"], true, "{sent}");
        assert_eq!(client.answer().text(), [HELLO, STOP, DONE].concat());
    }
}

#[test]
fn nothing_is_spliced_for_an_engine_that_refuses_what_it_does_not_know() {
    let engine = Engine::start();
    let gateway = Setup::before(&engine).upstream("dialect: tensorrt_llm").start();
    let mut client = gateway.chat("", STREAM_CHAT);
    let request = engine.answer_once(&stream_answer(&[ROLE, HELLO, WORLD, STOP, DONE]));
    assert_eq!(request.text(), STREAM_CHAT);
    assert_eq!(client.answer().text(), [ROLE, HELLO, WORLD, STOP, DONE].concat());
    let record = gateway.record();
    assert_eq!(record["usage"]["source"], "counted");
    assert_eq!(record["end"], "complete");
    assert!(record["usage"]["output_tokens"].as_u64() > Some(0), "{record}");
}

#[test]
fn the_end_reaches_the_client_only_when_the_record_can_be_read() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    let mut client = gateway.chat("", STREAM_CHAT);
    let mut connection = engine.begin_stream();
    connection.send(&chunks(&[HELLO, STOP, USAGE, DONE]));
    connection.send(LAST_CHUNK);
    client.head();
    client.expect(&[HELLO, STOP, DONE].concat());
    // Not the last chunk, not the close: the event after which a client stops reading.
    let record = gateway.record();
    assert_eq!(record["end"], "complete");
    assert_eq!(record["stream"], true);
    assert_eq!(record["finish_reasons"], serde_json::json!(["stop"]));
}

#[test]
fn comments_pings_and_line_ends_pass_as_they_are() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    let odd = [
        "\u{feff}: OPENROUTER PROCESSING\r\n\r\n",
        "retry: 3000\nid: 7\nunknown: x\n\n",
        &HELLO.replace('\n', "\r"),
        &WORLD.replace('\n', "\r\n"),
        "data: this is not JSON\n\n",
        "event: ping\ndata:\n\n",
        STOP,
        USAGE,
        DONE,
        ": behind the end\n\n",
    ];
    let mut client = gateway.chat("", STREAM_CHAT_WITH_USAGE);
    engine.answer_once(&stream_answer(&odd));
    assert_eq!(client.answer().text(), odd.concat());
    let record = gateway.record();
    assert_eq!(record["timing"]["output_chunks"], 2);
    assert_eq!(record["usage"]["output_tokens"], 100);
}

#[test]
fn times_of_a_stream_are_in_order() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    let mut client = gateway.chat("", STREAM_CHAT);
    let mut connection = engine.begin_stream();
    connection.send(&chunk(ROLE));
    client.head();
    client.expect(ROLE);
    connection.send(&chunks(&[HELLO, WORLD, STOP, USAGE, DONE]));
    connection.send(LAST_CHUNK);
    assert_eq!(client.next_chunk().map(|c| c.is_empty()), Some(false));
    while client.next_chunk().is_some_and(|c| !c.is_empty()) {}
    let timing = &gateway.record()["timing"];
    let time = |name: &str| timing[name].as_f64().unwrap_or_else(|| panic!("{name} in {timing}"));
    assert!(time("time_to_first_chunk") < time("time_to_first_token"), "{timing}");
    assert!(time("time_to_first_token") <= time("duration"), "{timing}");
    assert!(time("gateway") <= time("duration"), "{timing}");
    assert_eq!(timing["output_chunks"], 2);
}

#[test]
fn messages_of_anthropic_stream_and_their_parts_add_up() {
    let engine = Engine::start();
    let gateway = Setup::before(&engine).upstream("dialect: anthropic").start();
    let mut client = Client::saying(gateway.address(), &post("/v1/messages", "", MESSAGE_STREAM));
    let request = engine.answer_once(&stream_answer(&MESSAGE_EVENTS));
    assert_eq!(request.text(), MESSAGE_STREAM);
    assert_eq!(client.answer().text(), MESSAGE_EVENTS.concat());
    let record = gateway.record();
    assert_eq!(record["usage"]["source"], "reported");
    assert_eq!(record["usage"]["input_tokens"], 1000);
    assert_eq!(record["usage"]["cache_read_input_tokens"], 400);
    assert_eq!(record["usage"]["output_tokens"], 100);
    assert_eq!(record["response_model"], "claude-sonnet-4-5-20250929");
    assert_eq!(record["end"], "complete");
}

#[test]
fn a_receipt_that_was_asked_for_is_a_comment_before_the_end() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    let mut client = gateway.chat("X-Taximeter-Receipt: 1\r\n", STREAM_CHAT);
    engine.answer_once(&stream_answer(&[HELLO, STOP, USAGE, DONE]));
    let answer = client.answer();
    let text = answer.text();
    let (before, receipt) = text.split_once(": taximeter ").expect("a receipt");
    let (receipt, after) = receipt.split_once('\n').expect("one line");
    assert_eq!(before, [HELLO, STOP].concat());
    assert_eq!(after.trim_start_matches('\n'), DONE);
    let receipt: serde_json::Value = serde_json::from_str(receipt).expect("JSON");
    assert_eq!(receipt["id"].as_str(), answer.header("x-taximeter-request-id"));
}
