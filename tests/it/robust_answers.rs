//! Answers whose heads say more than one thing, or promise what cannot come.

use crate::client::Client;
use crate::engine::Engine;
use crate::fixtures::{CHAT, CHAT_ANSWER, DONE, HELLO, STOP, STREAM_CHAT, USAGE};
use crate::gateway::{Gateway, Setup};
use crate::http::{bare, json_answer, post};
use crate::unused::assert_unused;

#[test]
fn an_answer_with_two_ends_is_a_502_and_the_next_one_begins_where_it_should() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    for framing in [
        "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
        "Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}",
    ] {
        let mut client = gateway.chat("", CHAT);
        let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n";
        engine.answer_once(format!("{head}{framing}").as_bytes());
        let answer = client.answer();
        assert_eq!(answer.status(), 502, "{framing}");
        assert_eq!(answer.json()["error"]["code"], "upstream_protocol");
        client.send(&post("/v1/chat/completions", "", CHAT));
        engine.answer_once(&json_answer(CHAT_ANSWER));
        assert_eq!(client.answer().text(), CHAT_ANSWER);
    }
}

#[test]
fn the_version_of_the_engine_is_not_the_clients_business() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    let mut client = gateway.chat("", CHAT);
    for _ in 0..2 {
        let answer =
            format!("HTTP/1.0 200 OK\r\nContent-Type: application/json\r\n\r\n{CHAT_ANSWER}");
        engine.answer_once(answer.as_bytes());
        let answer = client.answer();
        assert!(answer.first_line.starts_with("HTTP/1.1 200"), "{answer:?}");
        assert_eq!(answer.text(), CHAT_ANSWER);
        client.send(&post("/v1/chat/completions", "", CHAT));
    }
}

#[test]
fn a_stream_of_known_length_may_lose_the_usage_that_only_we_asked_for() {
    let engine = Engine::start();
    let gateway = Setup::before(&engine).upstream("dialect: vllm").start();
    let events = [HELLO, STOP, USAGE, DONE].concat();
    for content_type in ["text/event-stream", "application/json"] {
        let mut client = gateway.chat("", STREAM_CHAT);
        engine.answer_once(&crate::http::answer("200 OK", content_type, &events));
        assert_eq!(client.answer().text(), [HELLO, STOP, DONE].concat(), "{content_type}");
    }
}

#[test]
fn an_answer_that_cannot_have_a_body_is_settled_all_the_same() {
    let engine = Engine::start();
    let gateway =
        Setup::before(&engine).upstream("dialect: openai").with("passthrough: true").start();
    let mut client = Client::saying(gateway.address(), &bare("HEAD", "/anything", ""));
    engine.answer_once(b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n");
    assert_eq!(client.head().header("content-length"), Some("50"));
    assert_eq!(gateway.await_records(1)[0]["end"], "complete");
}

#[test]
fn what_was_redirected_used_nothing() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    for status in ["302 Found", "304 Not Modified"] {
        let mut client = gateway.chat("", CHAT);
        engine.answer_once(format!("HTTP/1.1 {status}\r\nLocation: /x\r\n\r\n").as_bytes());
        assert_eq!(client.head().first_line, format!("HTTP/1.1 {status}"));
    }
    let mut client = gateway.chat("", CHAT);
    engine.answer_once(&json_answer(CHAT_ANSWER));
    client.answer();
    let records = gateway.await_records(3);
    let statuses: Vec<_> = records.iter().map(|record| record["status"].as_u64()).collect();
    assert_eq!(statuses, [Some(302), Some(304), Some(200)]);
    records.iter().take(2).for_each(assert_unused);
}
