//! A gateway that has little memory left.

use crate::client::Client;
use crate::engine::Engine;
use crate::fixtures::{CHAT, CHAT_ANSWER, DONE, HELLO, STOP, STREAM_CHAT, USAGE};
use crate::gateway::{Gateway, Setup};
use crate::http::{LAST_CHUNK, chunk, json_answer, post};
use crate::patience::patiently;

#[test]
fn requests_are_refused_while_memory_is_short_and_streams_go_on() {
    let engine = Engine::start();
    let setup = || Setup::before(&engine).upstream("dialect: openai");
    let gateway = setup().start();
    let (mut running, mut connection) = gateway.streaming(&engine, STREAM_CHAT, &[HELLO]);
    // Less than it takes already.
    gateway.rewrite(&setup().with("limits: {memory_bytes_max: 4000000}"));
    gateway.await_event("config_reloaded");
    let status = gateway.admin("/api/v1/status").json();
    assert_eq!(status["limits"]["memory_bytes_max"], 4_000_000);
    assert_eq!(status["limits"]["bodies_total_bytes_max"], 1_000_000);
    await_short(&gateway, true);
    let answer = gateway.chat("", CHAT).answer();
    assert_eq!(answer.status(), 503);
    assert_eq!(answer.json()["error"]["code"], "overloaded");
    connection.send(&[chunk(STOP), chunk(USAGE), chunk(DONE), LAST_CHUNK.to_vec()].concat());
    for event in [STOP, DONE] {
        running.expect(event);
    }
    assert_eq!(gateway.await_records(1)[0]["end"], "complete");
    engine.assert_untouched();
    gateway.rewrite(&setup());
    gateway.await_event("config_reloaded");
    await_short(&gateway, false);
    let mut client = gateway.chat("", CHAT);
    engine.answer_once(&json_answer(CHAT_ANSWER));
    assert_eq!(client.answer().status(), 200);
}

#[test]
fn bodies_that_are_together_more_than_may_be_held_are_refused_while_the_others_come() {
    let engine = Engine::start();
    let gateway = Setup::before(&engine)
        .upstream("dialect: openai")
        .with("limits: {body_bytes_max: 600000, bodies_total_bytes_max: 1000000}")
        .start();
    let long = CHAT.replace("Where to?", &"a".repeat(600_000 + 9 - CHAT.len()));
    let whole = post("/v1/chat/completions", "", &long);
    let (most, last) = whole.split_at(whole.len() - 1);
    // Each alone is no more than may be, and any two of them are.
    let mut clients: Vec<_> = (0..4).map(|_| Client::saying(gateway.address(), most)).collect();
    let alone = patiently(|| {
        let waiting: Vec<_> = (0..4).filter(|nth| !clients[*nth].has_answer()).collect();
        Some(waiting).filter(|waiting| waiting.len() == 1)
    });
    let mut held = clients.remove(alone.expect("one that is not refused")[0]);
    for mut refused in clients {
        let answer = refused.answer();
        let error = &answer.json()["error"];
        assert_eq!((answer.status(), &error["code"]), (503, &"overloaded".into()));
        assert_eq!(answer.header("retry-after"), Some("1"));
    }
    engine.assert_untouched();
    held.send(last);
    let taken = engine.answer_once(&json_answer(CHAT_ANSWER));
    assert_eq!(taken.body.len(), 600_000);
    assert_eq!(held.answer().status(), 200);
    // What was held is free again.
    let mut next = Client::saying(gateway.address(), &whole);
    engine.answer_once(&json_answer(CHAT_ANSWER));
    assert_eq!(next.answer().status(), 200);
    assert_eq!(gateway.records().len(), 2);
}

/// Waits until it says that memory is short, or that it is not.
fn await_short(gateway: &Gateway, short: bool) {
    let says = || gateway.admin("/api/v1/status").json()["short_of_memory"] == short;
    assert!(patiently(|| says().then_some(())).is_some(), "it never was {short}");
}
