//! WebSockets, which the gateway does not serve: it says so, and what to send instead.

use serde_json::Value;

use crate::client::Client;
use crate::engine::Engine;
use crate::fixtures::{CHAT, CHAT_ANSWER};
use crate::frames::{END_HEADERS, Framer, HEADERS, RST_STREAM, SETTINGS, frame, header};
use crate::gateway::{Gateway, Setup};
use crate::http::{Message, bare, json_answer, post};

/// As RFC 6455 has it.
const HANDSHAKE: &str = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
                         Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
/// The same behind a proxy that removes what belongs to its own connection.
const WITHOUT_UPGRADE: &str =
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";

#[track_caller]
fn assert_no_sockets(answer: &Message, instead: &str) {
    assert_eq!(answer.status(), 426, "{answer:?}");
    let error = &answer.json()["error"];
    assert_eq!(
        (&error["type"], &error["code"]),
        (&Value::from("invalid_request_error"), &Value::from("not_supported"))
    );
    let message = error["message"].as_str().expect("a message");
    assert!(message.contains("does not serve WebSockets"), "{message}");
    assert!(message.contains(&format!("POST {instead} ")), "{message}");
    for (name, value) in [
        ("upgrade", "HTTP/1.1"),
        ("connection", "upgrade"),
        ("content-type", "application/json"),
        ("x-should-retry", "false"),
        ("cache-control", "no-store"),
    ] {
        assert_eq!(answer.header(name), Some(value), "{answer:?}");
    }
    assert!(answer.header("x-request-id").is_some(), "{answer:?}");
}

#[test]
fn a_handshake_is_answered_by_what_to_send_instead_and_the_connection_goes_on() {
    let engine = Engine::start();
    let start = |section| Setup::before(&engine).upstream("dialect: openai").with(section).start();
    let (strict, lenient) = (start("passthrough: off"), start("passthrough: on"));
    let everywhere = [
        ("/v1/responses", "/v1/responses"),
        ("/openai/v1/responses", "/openai/v1/responses"),
        ("/responses", "/responses"),
        ("/v1/models", "/v1/responses"),
        ("/health", "/v1/responses"),
        ("/v1/nowhere", "/v1/responses"),
        ("/v1/realtime?model=gpt-realtime", "/v1/responses"),
        ("/openai/realtime?deployment=a", "/v1/responses"),
        ("/v1/chat/completions", "/v1/chat/completions"),
        (
            "/ws/google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateContent",
            "/v1/responses",
        ),
    ];
    let cases = everywhere.iter().flat_map(|case| [(&lenient, case), (&strict, case)]);
    for (gateway, (target, instead)) in cases {
        for headers in [HANDSHAKE, WITHOUT_UPGRADE] {
            let mut client = Client::saying(gateway.address(), &bare("GET", target, headers));
            assert_no_sockets(&client.answer(), instead);
            client.send(&post("/v1/chat/completions", "", CHAT));
            engine.answer_once(&json_answer(CHAT_ANSWER));
            assert_eq!(client.answer().text(), CHAT_ANSWER, "{target}");
        }
    }
    engine.assert_untouched();
    let asked = 2 * everywhere.len();
    strict.await_metric(&format!(
        "taximeter_refusals_total{{taximeter_refusal_code=\"not_supported\"}} {asked}"
    ));
    let records = strict.records();
    assert_eq!(records.len(), asked, "one for each request behind a handshake, and no more");
}

#[test]
fn a_handshake_needs_no_key_to_be_told_and_has_the_shape_of_its_route() {
    let engine = Engine::start();
    let setup = Setup::before(&engine).upstream("dialect: anthropic");
    let gateway = setup.with("tenants: {unknown: refuse}").start();
    let answer = gateway.ask(&bare("GET", "/v1/messages", HANDSHAKE));
    assert_eq!((answer.status(), answer.header("upgrade")), (426, Some("HTTP/1.1")));
    let told = answer.json();
    assert_eq!(
        (&told["type"], &told["error"]["type"]),
        (&"error".into(), &"invalid_request_error".into())
    );
    let message = told["error"]["message"].as_str().expect("a message");
    assert!(message.contains("WebSockets") && message.contains("POST /v1/messages"), "{message}");
}

#[test]
fn a_plain_request_to_an_api_of_sockets_is_told_that_there_are_none() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    for request in [
        post("/v1/realtime", "", CHAT),
        post("/v1/realtime/client_secrets", "", "{}"),
        post("/openai/v1/realtime/calls", "", "{}"),
        bare("GET", "/v1/realtime?model=m", ""),
        bare("GET", "/v1/realtime", "Connection: Upgrade\r\nUpgrade: h2c\r\n"),
    ] {
        let answer = gateway.ask(&request);
        let error = &answer.json()["error"];
        assert_eq!((answer.status(), &error["code"]), (404, &"unknown_route".into()), "{error}");
        let message = error["message"].as_str().expect("a message");
        assert!(message.contains("realtime") && message.contains("WebSockets"), "{message}");
        assert!(message.contains("POST /v1/responses "), "{message}");
        assert_eq!(answer.header("x-should-retry"), Some("false"));
    }
    let other = gateway.ask(&post("/v1/nowhere", "", CHAT)).json();
    assert!(!other.to_string().contains("WebSockets"), "{other}");
    engine.assert_untouched();
}

#[test]
fn an_upgrade_to_another_protocol_is_a_plain_request() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    let upgrade = "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMA\r\n";
    let mut client = Client::saying(gateway.address(), &bare("GET", "/v1/models", upgrade));
    let got = engine.answer_once(&json_answer("{}"));
    for name in ["upgrade", "connection", "http2-settings"] {
        assert_eq!(got.header(name), None, "{got:?}");
    }
    assert_eq!(client.answer().status(), 200);
}

#[test]
fn http_2_offers_no_sockets_and_a_connect_for_one_is_an_error_of_its_stream() {
    /// RFC 8441 §3.
    const ENABLE_CONNECT_PROTOCOL: [u8; 2] = [0, 8];
    const PROTOCOL_ERROR: u32 = 1;
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    let mut client = Framer::connect(&gateway, &[]);
    let settings = client.await_kind(SETTINGS).expect("settings");
    let offered = settings.payload.chunks(6).any(|one| one.starts_with(&ENABLE_CONNECT_PROTOCOL));
    assert!(!offered, "{settings:?}");
    let head: Vec<u8> = [
        (":method", "CONNECT"),
        (":protocol", "websocket"),
        (":scheme", "http"),
        (":path", "/v1/responses"),
        (":authority", "a"),
    ]
    .iter()
    .flat_map(|(name, value)| header(name, value))
    .collect();
    client.send(&frame(HEADERS, END_HEADERS, 1, &head));
    let reset = client.await_kind(RST_STREAM).expect("a reset");
    assert_eq!((reset.stream, reset.code()), (1, Some(PROTOCOL_ERROR)));
    engine.assert_untouched();
}
