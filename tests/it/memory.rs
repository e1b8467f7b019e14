//! A gateway that has little memory left.

use crate::engine::Engine;
use crate::fixtures::{CHAT, CHAT_ANSWER, DONE, HELLO, STOP, STREAM_CHAT, USAGE};
use crate::gateway::{Gateway, Setup};
use crate::http::{LAST_CHUNK, chunk, json_answer};
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

/// Waits until it says that memory is short, or that it is not.
fn await_short(gateway: &Gateway, short: bool) {
    let says = || gateway.admin("/api/v1/status").json()["short_of_memory"] == short;
    assert!(patiently(|| says().then_some(())).is_some(), "it never was {short}");
}
