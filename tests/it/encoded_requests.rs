//! Requests that come compressed: they are read, and reach the engine as they came.

use crate::encoded::{CODINGS, whole};
use crate::engine::Engine;
use crate::fixtures::{CHAT, CHAT_ANSWER, DONE, HELLO, STOP, STREAM_CHAT, WORLD};
use crate::gateway::{Gateway, Setup};
use crate::http::{Message, json_answer, stream_answer};

/// Sends `body` as what it is not, or is too much of: refused, and nothing else happens.
#[track_caller]
fn assert_refused(gateway: &Gateway, coding: &str, body: &[u8], status: u16, code: &str) {
    let headers = format!("Content-Encoding: {coding}\r\nConnection: close\r\n");
    let answer: Message = gateway.chat(&headers, body).answer();
    assert_eq!(answer.status(), status, "{coding}: {answer:?}");
    assert_eq!(answer.json()["error"]["code"], code, "{coding}");
}

#[test]
fn an_encoded_request_is_read_and_reaches_the_engine_as_it_came() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    let twice = ("gzip, br", whole("br", whole("gzip", CHAT)));
    let plain = ("identity", CHAT.as_bytes().to_vec());
    let once = CODINGS.map(|coding| (coding, whole(coding, CHAT)));
    for (coding, body) in once.into_iter().chain([twice, plain]) {
        let mut client = gateway.chat(&format!("Content-Encoding: {coding}\r\n"), &body);
        let request = engine.answer_once(&json_answer(CHAT_ANSWER));
        assert_eq!(request.header("content-encoding"), Some(coding));
        assert_eq!(request.body, body, "{coding}");
        assert_eq!(client.answer().text(), CHAT_ANSWER, "{coding}");
    }
    let records = gateway.await_records(CODINGS.len() + 2);
    for record in records {
        assert_eq!(record["request_model"], "gpt-4o-mini", "{record}");
        assert_eq!(record["usage"]["source"], "reported", "{record}");
    }
}

#[test]
fn nothing_is_put_into_an_encoded_request_and_its_tokens_are_counted_from_what_it_says() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    let sent = whole("zstd", STREAM_CHAT);
    for (headers, body, as_it_came) in
        [("", STREAM_CHAT.as_bytes(), false), ("Content-Encoding: zstd\r\n", sent.as_slice(), true)]
    {
        let mut client = gateway.chat(&format!("{headers}Connection: close\r\n"), body);
        let request = engine.answer_once(&stream_answer(&[HELLO, WORLD, STOP, DONE]));
        assert_eq!(request.body == body, as_it_came, "{headers:?}");
        assert_eq!(client.answer().text(), [HELLO, WORLD, STOP, DONE].concat());
    }
    let records = gateway.await_records(2);
    assert_eq!(records[1]["usage"]["source"], "counted", "{}", records[1]);
    assert_eq!(records[0]["usage"], records[1]["usage"]);
}

#[test]
fn a_request_that_is_not_what_its_coding_says_is_refused() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    for coding in CODINGS {
        let body = whole(coding, CHAT);
        let cut = &body[..body.len() - 1];
        let followed = [body.as_slice(), b"\0"].concat();
        for damaged in [CHAT.as_bytes(), cut, &followed, b""] {
            assert_refused(&gateway, coding, damaged, 400, "invalid_value");
        }
        assert_refused(&gateway, coding, &whole(coding, "not JSON"), 400, "invalid_json");
    }
    for unknown in ["compress", "gzip, aws-chunked", "gzip, gzip, gzip", "caf\u{e9}"] {
        assert_refused(&gateway, unknown, CHAT.as_bytes(), 415, "unsupported_encoding");
    }
    engine.assert_untouched();
    assert!(gateway.records().is_empty(), "a refusal is no entry of the ledger");
}

#[test]
fn a_request_that_swells_beyond_the_limits_is_refused() {
    let engine = Engine::start();
    let gateway = Setup::before(&engine)
        .upstream("dialect: openai")
        .with("limits: {decode_bytes_max: 1100000, decode_ratio_max: 100}")
        .start();
    let swollen = |blanks: usize| format!("{}{CHAT}", " ".repeat(blanks));
    for (coding, blanks) in [("gzip", 1_060_000), ("br", 1_100_000), ("zstd", 1_100_000)] {
        let body = whole(coding, swollen(blanks));
        assert_refused(&gateway, coding, &body, 413, "request_too_large");
    }
    engine.assert_untouched();
    let body = whole("gzip", swollen(500_000));
    let mut client = gateway.chat("Content-Encoding: gzip\r\n", &body);
    assert_eq!(engine.answer_once(&json_answer(CHAT_ANSWER)).body, body);
    assert_eq!(client.answer().status(), 200);
}

#[test]
fn a_request_may_swell_to_the_limit_and_not_a_byte_beyond() {
    const MOST: usize = 50_000;
    let engine = Engine::start();
    let gateway = Setup::before(&engine)
        .upstream("dialect: openai")
        .with(&format!("limits: {{decode_bytes_max: {MOST}}}"))
        .start();
    let text = |bytes: usize| format!("{}{CHAT}", " ".repeat(bytes - CHAT.len()));
    for coding in CODINGS {
        let headers = format!("Content-Encoding: {coding}\r\nConnection: close\r\n");
        let mut client = gateway.chat(&headers, whole(coding, text(MOST)));
        engine.answer_once(&json_answer(CHAT_ANSWER));
        assert_eq!(client.answer().status(), 200, "{coding}");
        let beyond = whole(coding, text(MOST + 1));
        assert_refused(&gateway, coding, &beyond, 413, "request_too_large");
    }
    engine.assert_untouched();
}

#[test]
fn what_decoding_takes_is_part_of_all_bodies_together() {
    let engine = Engine::start();
    let gateway = Setup::before(&engine)
        .upstream("dialect: openai")
        .with("limits: {body_bytes_max: 1000000, bodies_total_bytes_max: 1000000}")
        .start();
    assert_refused(&gateway, "br", &whole("br", CHAT), 503, "overloaded");
    let text = format!("{}{CHAT}", " ".repeat(900_000));
    assert_refused(&gateway, "gzip", &whole("gzip", text), 503, "overloaded");
    engine.assert_untouched();
    let mut client = gateway.chat("Content-Encoding: gzip\r\n", whole("gzip", CHAT));
    engine.answer_once(&json_answer(CHAT_ANSWER));
    assert_eq!(client.answer().status(), 200, "what was refused holds nothing");
}
