//! `dialect: auto`: an engine is known by its answers.

use crate::engine::Engine;
use crate::fixtures::{DONE, HELLO, ROLE, STOP, STREAM_CHAT, USAGE};
use crate::gateway::{Gateway, Setup};
use crate::http::{Message, json_answer, stream_answer};

/// A gateway that does not know its engine, and has been told nothing by its list of models.
fn unknowing(engine: &Engine) -> Gateway {
    let gateway = Setup::before(engine).start();
    let question = engine.answer_once(&json_answer(r#"{"data":[{"id":"m","owned_by":"me"}]}"#));
    assert_eq!(question.first_line, "GET /v1/models HTTP/1.1");
    gateway
}

/// One stream: what the engine was sent, and what the client got.
fn stream(engine: &Engine, gateway: &Gateway, events: &[&str]) -> (Message, Message) {
    let mut client = gateway.chat("Connection: close\r\n", STREAM_CHAT);
    let request = engine.answer_once(&stream_answer(events));
    (request, client.answer())
}

#[test]
fn an_engine_that_has_shown_what_it_is_is_asked_for_usage_from_then_on() {
    let engine = Engine::start();
    let gateway = unknowing(&engine);
    let shown = STOP.replacen("{", r#"{"system_fingerprint":"fp_ollama","#, 1);
    let (request, _) = stream(&engine, &gateway, &[ROLE, HELLO, &shown, DONE]);
    assert_eq!(request.text(), STREAM_CHAT);
    let record = gateway.record();
    assert_eq!(record["provider"], "ollama", "{record}");
    let (request, answer) = stream(&engine, &gateway, &[ROLE, HELLO, STOP, USAGE, DONE]);
    assert_eq!(request.json()["stream_options"]["include_usage"], true);
    assert_eq!(answer.text(), [ROLE, HELLO, STOP, DONE].concat());
}

#[test]
fn an_engine_that_shows_nothing_certain_is_asked_for_nothing() {
    let engine = Engine::start();
    let gateway = unknowing(&engine);
    let weak = STOP.replacen("{", r#"{"system_fingerprint":"fp_44709d6fcb","#, 1);
    for _ in 0..2 {
        let (request, _) = stream(&engine, &gateway, &[ROLE, HELLO, &weak, DONE]);
        assert_eq!(request.text(), STREAM_CHAT);
    }
}

#[test]
fn reasoning_beside_the_output_is_added_by_the_answer_that_shows_whose_it_is() {
    let engine = Engine::start();
    let gateway = unknowing(&engine);
    let usage = USAGE
        .replace(r#""total_tokens":1100,"#, "")
        .replace(r#""usage":{"#, r#""usage":{"num_sources_used":0,"reasoning_tokens":7,"#);
    stream(&engine, &gateway, &[ROLE, HELLO, STOP, &usage, DONE]);
    let record = gateway.record();
    assert_eq!(record["usage"]["output_tokens"], 107, "{record}");
    assert_eq!(record["provider"], "x_ai");
}

#[test]
fn what_a_provider_asks_for_stands_beside_our_price() {
    let engine = Engine::start();
    let gateway = unknowing(&engine);
    let usage = USAGE.replace(r#""usage":{"#, r#""usage":{"cost":0.000850,"is_byok":false,"#);
    stream(&engine, &gateway, &[ROLE, HELLO, STOP, &usage, DONE]);
    let record = gateway.record();
    assert_eq!(record["reported_cost"], "0.000850", "{record}");
}
