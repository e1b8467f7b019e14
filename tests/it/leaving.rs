//! The client leaves: the engine's work is cancelled, and one record says what was used until then.

use crate::client::Client;
use crate::engine::Engine;
use crate::fixtures::{CHAT, CHAT_ANSWER, DONE, HELLO, ROLE, STOP, STREAM_CHAT, USAGE, WORLD};
use crate::gateway::{Gateway, Setup};
use crate::http::{LAST_CHUNK, bare, chunk, chunks, json_answer, post};
use crate::unused::await_unused;

#[test]
fn a_client_that_leaves_within_its_request_leaves_no_record_and_reaches_no_engine() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    let whole = post("/v1/chat/completions", "", CHAT);
    drop(Client::saying(gateway.address(), &whole[..whole.len() - 10]));
    // The next request is served, alone.
    let mut client = gateway.chat("", CHAT);
    engine.answer_once(&json_answer(CHAT_ANSWER));
    assert_eq!(client.answer().status(), 200);
    engine.assert_untouched();
    assert_eq!(gateway.record()["end"], "complete");
}

#[test]
fn a_client_that_leaves_while_the_engine_is_being_reached_owes_nothing() {
    let engine = Engine::start();
    let url = format!("https://{}", engine.address());
    let gateway =
        Setup::with_upstream(&format!("name: e, url: \"{url}\", dialect: openai")).start();
    let client = gateway.chat("", CHAT);
    // It has been greeted, and says nothing.
    let connection = engine.accept();
    drop(client);
    gateway.await_metric("taximeter_void_reason=\"client_left\"} 1");
    drop(connection);
    let record = &await_unused(&gateway, 1, "client_left", "client_disconnect")[0];
    assert_eq!(record["status"], serde_json::Value::Null, "{record}");
}

#[test]
fn a_client_that_leaves_before_the_answer_begins_cancels_the_engines_work() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    for body in [CHAT, STREAM_CHAT] {
        let client = gateway.chat("", body);
        let (connection, _) = engine.request();
        drop(client);
        connection.assert_closed_by_gateway();
    }
    for record in gateway.await_records(2) {
        assert_eq!(record["end"], "client_left", "{record}");
        assert_eq!(record["status"], serde_json::Value::Null, "{record}");
        assert_eq!(record["usage"]["source"], "counted", "{record}");
        assert!(record["usage"]["input_tokens"].as_u64() > Some(0), "{record}");
        assert_eq!(record["usage"]["output_tokens"], 0, "{record}");
    }
}

#[test]
fn a_client_that_leaves_during_prefill_cancels_the_engines_work() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    let (client, connection) = gateway.streaming(&engine, STREAM_CHAT, &[ROLE]);
    drop(client);
    connection.assert_closed_by_gateway();
    let record = &gateway.await_records(1)[0];
    assert_eq!(record["end"], "client_left");
    assert_eq!(record["usage"]["source"], "counted");
    assert_eq!(record["usage"]["output_tokens"], 0);
    assert_eq!(record["timing"]["time_to_first_token"], serde_json::Value::Null);
}

#[test]
fn a_client_that_closes_its_half_is_told_what_we_know_and_else_has_left() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    let mut client = Client::saying(gateway.address(), &bare("GET", "/nowhere", ""));
    client.close_half();
    assert_eq!(client.answer().status(), 404);
    // Nobody can tell who reads on from who is gone before something is written, and an engine that
    // works for nobody costs more.
    let client = gateway.chat("", STREAM_CHAT);
    let (connection, _) = engine.request();
    client.close_half();
    connection.assert_closed_by_gateway();
    assert_eq!(gateway.await_records(1)[0]["end"], "client_left");
}

#[test]
fn a_client_that_leaves_mid_stream_owes_what_it_was_sent() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    let (client, connection) = gateway.streaming(&engine, STREAM_CHAT, &[ROLE, HELLO, WORLD]);
    drop(client);
    connection.assert_closed_by_gateway();
    let record = &gateway.await_records(1)[0];
    assert_eq!(record["end"], "client_left");
    assert_eq!(record["status"], 200);
    assert_eq!(record["usage"]["source"], "counted");
    // "To the station": three words, three tokens of o200k.
    assert_eq!(record["usage"]["output_tokens"], 3);
    assert_eq!(record["timing"]["output_chunks"], 2);
}

#[test]
fn a_client_that_leaves_mid_answer_cancels_the_engines_work() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    let client = gateway.chat("", CHAT);
    let (mut connection, _) = engine.request();
    let answer = json_answer(CHAT_ANSWER);
    // The gateway keeps the head back for the receipt: the client has seen nothing yet.
    connection.send(&answer[..answer.len() - 200]);
    drop(client);
    connection.assert_closed_by_gateway();
    assert_eq!(gateway.await_records(1)[0]["end"], "client_left");
}

#[test]
fn a_client_that_leaves_when_the_usage_was_seen_owes_what_the_engine_reported() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    let (mut client, mut connection) = gateway.streaming(&engine, STREAM_CHAT, &[]);
    connection.send(&chunks(&[HELLO, STOP, USAGE, ": wait\n\n"]));
    client.expect(&[HELLO, STOP, ": wait\n\n"].concat());
    drop(client);
    connection.assert_closed_by_gateway();
    let record = &gateway.await_records(1)[0];
    assert_eq!(record["usage"]["source"], "reported");
    assert_eq!(record["usage"]["output_tokens"], 100);
}

#[test]
fn a_client_that_leaves_after_the_end_mark_has_had_it_all() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    let (mut client, mut connection) = gateway.streaming(&engine, STREAM_CHAT, &[]);
    connection.send(&chunks(&[HELLO, STOP, USAGE, DONE]));
    client.expect(&[HELLO, STOP, DONE].concat());
    drop(client);
    let _ = connection.try_send(LAST_CHUNK);
    assert_eq!(gateway.record()["end"], "complete");
}

#[test]
fn clients_that_leave_in_a_crowd_leave_one_record_each() {
    const CLIENTS: usize = 40;
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    let clients: Vec<_> = (0..CLIENTS).map(|_| gateway.chat("", STREAM_CHAT)).collect();
    let mut connections: Vec<_> = (0..CLIENTS).map(|_| engine.begin_stream()).collect();
    for connection in &mut connections {
        connection.send(&chunk(HELLO));
    }
    drop(clients);
    for connection in connections {
        connection.assert_closed_by_gateway();
    }
    let records = gateway.await_records(CLIENTS);
    let ids: std::collections::BTreeSet<_> = records.iter().map(|r| r["id"].to_string()).collect();
    assert_eq!(ids.len(), CLIENTS);
    assert!(records.iter().all(|record| record["end"] == "client_left"), "{records:#?}");
}

#[test]
fn a_client_that_does_not_read_slows_the_engine_and_is_cut_in_the_end() {
    let engine = Engine::start();
    let gateway = Setup::before(&engine)
        .upstream("dialect: openai")
        .with("limits: {client_write_timeout_seconds: 0.5}")
        .start();
    let client = gateway.chat("", STREAM_CHAT);
    let mut connection = engine.begin_stream();
    let event = chunk(HELLO.repeat(100));
    // Far more than all buffers on the way hold: sending ends only because the gateway gives up.
    let sent = (0..100_000).take_while(|_| connection.try_send(&event).is_ok()).count();
    assert!(sent < 100_000, "the gateway took it all");
    let record = &gateway.await_records(1)[0];
    assert_eq!(record["end"], "client_stalled");
    assert_eq!(record["usage"]["source"], "counted");
    drop(client);
}
