//! Requests that two readers could read differently are refused, clearly and before anything is
//! sent.

use crate::client::Client;
use crate::engine::Engine;
use crate::fixtures::{CHAT, CHAT_ANSWER};
use crate::gateway::{Gateway, Setup};
use crate::http::{Message, bare, json_answer, post};

/// Everything that the table of refusals promises for each of them, whatever its code.
#[track_caller]
fn assert_refused(answer: &Message, status: u16, kind: &str, code: &str) {
    assert_eq!(answer.status(), status, "{answer:?}");
    let error = &answer.json()["error"];
    assert_eq!(error["type"], kind, "{error}");
    assert_eq!(error["code"], code, "{error}");
    assert!(error["message"].as_str().is_some_and(|text| text.len() > 10), "{error}");
    assert!(error.get("param").is_some(), "{error}");
    assert_eq!(answer.header("content-type"), Some("application/json"));
    assert_eq!(answer.header("content-length"), Some(answer.body.len().to_string().as_str()));
    assert!(answer.header("x-request-id").is_some(), "{answer:?}");
    assert!(answer.header("cache-control").is_none_or(|v| v.contains("no-store")), "{answer:?}");
}

#[track_caller]
fn assert_invalid(answer: &Message, code: &str) {
    assert_refused(answer, 400, "invalid_request_error", code);
    assert_eq!(answer.header("x-should-retry"), Some("false"), "{answer:?}");
}

/// Sends each body to the chat route: all are refused with this code, and nothing else happens.
#[track_caller]
fn assert_bodies_refused(bodies: &[&[u8]], code: &str) {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    for body in bodies {
        println!("{:.60}", String::from_utf8_lossy(body));
        assert_invalid(&gateway.chat("Connection: close\r\n", body).answer(), code);
    }
    engine.assert_untouched();
    assert!(gateway.records().is_empty(), "a refusal is no entry of the ledger");
}

#[test]
fn bodies_that_are_not_one_json_object_in_utf8_are_refused() {
    let deep = format!(r#"{{"model":"m","x":{}{}}}"#, "[".repeat(300), "]".repeat(300));
    let utf16: Vec<u8> = CHAT.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let utf32: Vec<u8> = CHAT.chars().flat_map(|c| u32::from(c).to_be_bytes()).collect();
    let bodies: &[&[u8]] = &[
        b"",
        b"   ",
        b"not json",
        b"[]",
        b"\"model\"",
        b"null",
        br#"{"model":"m"} x"#,
        br#"{"model":"m"}{}"#,
        br#"{"model":"m",}"#,
        br#"{"model":"m" /* who? */}"#,
        br#"{"model":"m"#,
        br#"{'model':'m'}"#,
        b"{\"model\":\"m\",\"x\":\"a\nb\"}",
        br#"{"model":"m","x":NaN}"#,
        br#"{"model":"m","x":-Infinity}"#,
        br#"{"model":"m","x":01}"#,
        br#"{"model":"m","x":+1}"#,
        br#"{"model":"m","x":.5}"#,
        b"\xef\xbb\xbf{\"model\":\"m\"}",
        b"{\"model\":\"m\",\"x\":\"\xff\"}",
        b"{\"model\":\"m\",\"x\":\"\xed\xa0\x80\"}",
        b"{\"model\":\"m\",\"x\":\"\xc0\xaf\"}",
        &utf16,
        &utf32,
        deep.as_bytes(),
    ];
    assert_bodies_refused(bodies, "invalid_json");
}

#[test]
fn a_key_that_we_act_on_may_be_there_once() {
    let bodies: &[&[u8]] = &[
        br#"{"model":"a","model":"b"}"#,
        br#"{"model":"a","mod\u0065l":"a"}"#,
        br#"{"model":"m","stream":true,"stream":false}"#,
        br#"{"model":"m","stream_options":{},"stream_options":{}}"#,
        br#"{"model":"m","stream":true,
            "stream_options":{"include_usage":true,"include_usage":false}}"#,
        br#"{"model":"m","n":1,"n":2}"#,
        br#"{"model":"m","max_tokens":1,"max_tokens":2}"#,
        br#"{"model":"m","max_completion_tokens":1,"max_completion_tokens":2}"#,
        br#"{"model":"m","max_output_tokens":1,"max_output_tokens":2}"#,
        br#"{"model":"m","service_tier":"flex","service_tier":"auto"}"#,
        br#"{"model":"m","user":"a","user":"b"}"#,
    ];
    assert_bodies_refused(bodies, "duplicate_key");
}

#[test]
fn values_that_we_act_on_have_one_meaning_or_are_refused() {
    let long_model = format!(r#"{{"model":"{}"}}"#, "m".repeat(257));
    let bodies: &[&[u8]] = &[
        br#"{"model":7}"#,
        br#"{"model":""}"#,
        br#"{"model":["m"]}"#,
        br#"{"model":"a\u0007b"}"#,
        long_model.as_bytes(),
        br#"{"model":"m","stream":"true"}"#,
        br#"{"model":"m","stream":1}"#,
        br#"{"model":"m","n":"2"}"#,
        br#"{"model":"m","best_of":[2]}"#,
        br#"{"model":"m","max_tokens":"many"}"#,
        br#"{"model":"m","max_tokens":1e400}"#,
        br#"{"model":"m","n_predict":-1e400}"#,
        br#"{"model":"m","max_completion_tokens":18446744073709551616}"#,
    ];
    assert_bodies_refused(bodies, "invalid_value");
}

#[test]
fn bodies_that_are_odd_but_clear_are_forwarded() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    let digits = format!(r#"{{"model":"m","seed":{}}}"#, "9".repeat(5_000));
    let deep = format!(r#"{{"model":"m","x":{}{}}}"#, "[".repeat(200), "]".repeat(200));
    let keys: String = (0..50_000).map(|i| format!(r#""k{i}":0,"#)).collect();
    let keys = format!(r#"{{{keys}"model":"m"}}"#);
    for body in [
        r#"{"model":"m","metadata":1,"metadata":2}"#,
        r#"{"model":"m","Model":"other","MODEL":"other"}"#,
        r#"{"model":"m","x":"\ud800"}"#,
        r#"{"model":"m","stream":null}"#,
        r#"{"model":"m","n":null,"max_tokens":null}"#,
        r#"{"model":"m","temperature":"hot","top_p":-1,"seed":1e308}"#,
        r#"{"model":"m","stream_options":{"include_usage":"yes"}}"#,
        r#"{"model":"m","stream_options":true}"#,
        r#"{"mod\u0065l":"m"}"#,
        &digits,
        &deep,
        &keys,
    ] {
        let mut client = gateway.chat("Connection: close\r\n", body);
        let request = engine.answer_once(&json_answer(CHAT_ANSWER));
        assert!(request.body == body.as_bytes(), "{body:.60}");
        assert_eq!(client.answer().status(), 200, "{body:.60}");
    }
}

#[test]
fn a_model_that_no_upstream_serves_is_a_404_that_names_it_cut_short() {
    let engine = Engine::start();
    let gateway = Setup::before(&engine).upstream("dialect: openai, models: [\"gpt-*\"]").start();
    let name = format!("claude\\\"{}", "x".repeat(200));
    let answer = gateway.chat("", format!(r#"{{"model":"{name}"}}"#)).answer();
    assert_refused(&answer, 404, "invalid_request_error", "model_not_found");
    assert!(!answer.text().contains(&"x".repeat(150)), "{answer:?}");
    assert_eq!(answer.header("x-should-retry"), Some("false"));
    engine.assert_untouched();
}

#[test]
fn a_path_that_no_server_takes_for_a_route_is_a_404() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    for target in [
        "/v1",
        "/V1/chat/completions",
        "/v1/chat/completions;a=b",
        "/v1/chat//../completions",
        "/../v1/chat/completions",
        "/v1/%2e%2e/%2e%2e/v1/chat/completions",
        "/v1/%2563hat/completions",
        "/v1/unknown",
        "/metrics",
    ] {
        let answer = gateway.ask(&post(target, "Connection: close\r\n", CHAT));
        assert_refused(&answer, 404, "invalid_request_error", "unknown_route");
    }
    engine.assert_untouched();
}

#[test]
fn a_method_that_a_route_does_not_know_is_a_405_that_says_which_it_knows() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    for (method, target, allowed) in [
        ("GET", "/v1/chat/completions", "POST"),
        ("DELETE", "/v1/messages", "POST"),
        ("PUT", "/v1/embeddings", "POST"),
        ("TRACE", "/v1/completions", "POST"),
        ("POST", "/v1/models", "GET"),
    ] {
        let request = bare(method, target, "Connection: close\r\nContent-Length: 0\r\n");
        let answer = gateway.ask(&request);
        if target == "/v1/messages" {
            assert_eq!((answer.status(), &answer.json()["type"]), (405, &"error".into()));
        } else {
            assert_refused(&answer, 405, "invalid_request_error", "method_not_allowed");
        }
        let allow = answer.header("allow").expect("allow");
        assert!(allow.contains(allowed), "{allow}");
    }
    engine.assert_untouched();
}

#[test]
fn a_body_that_does_not_call_itself_json_is_a_415() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    for content_type in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"] {
        let request = format!(
            "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\n\
             Content-Type: {content_type}\r\nContent-Length: {}\r\n\r\n{CHAT}",
            CHAT.len()
        );
        let answer = gateway.ask(request.as_bytes());
        assert_refused(&answer, 415, "invalid_request_error", "unsupported_media_type");
    }
    let answer = gateway.chat("Content-Encoding: compress\r\n", CHAT).answer();
    assert_refused(&answer, 415, "invalid_request_error", "unsupported_encoding");
    engine.assert_untouched();
}

#[test]
fn what_is_too_large_is_refused_before_it_is_read() {
    let engine = Engine::start();
    let gateway = Setup::before(&engine)
        .upstream("dialect: openai")
        .with("limits: {body_bytes_max: 1000, header_bytes_max: 8192, uri_bytes_max: 1000}")
        .start();
    let mut client = Client::saying(
        gateway.address(),
        b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\n\
          Content-Type: application/json\r\nContent-Length: 1001\r\n\r\n",
    );
    assert_refused(&client.answer(), 413, "invalid_request_error", "request_too_large");
    client.assert_closed();

    let chunked = [
        b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\n\
          Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
            .as_slice(),
        &crate::http::chunk(vec![b' '; 1001]),
    ]
    .concat();
    let answer = gateway.ask(&chunked);
    assert_refused(&answer, 413, "invalid_request_error", "request_too_large");

    let long = "x".repeat(1000);
    for request in [
        post(&format!("/v1/chat/completions?{long}"), "", CHAT),
        bare("GET", &format!("/nowhere/{long}"), ""),
        bare("OPTIONS", &format!("/v1/models/{long}"), ""),
    ] {
        let answer = gateway.ask(&request);
        assert_refused(&answer, 414, "invalid_request_error", "uri_too_long");
        assert_eq!(answer.header("connection"), Some("close"));
    }
    let count = r#"taximeter_bad_framing_total{taximeter_cause="target_too_long"} 3"#;
    gateway.await_metric(count);

    let many: String = (0..101).map(|i| format!("X-{i}: 1\r\n")).collect();
    let answer = gateway.ask(&post("/v1/chat/completions", &many, CHAT));
    assert_eq!(answer.status(), 431);
    engine.assert_untouched();
}

#[test]
fn ambiguous_framing_reaches_no_engine_and_ends_the_connection() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    let start = "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\n\
                 Content-Type: application/json\r\n";
    for rest in [
        "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "Content-Length: 2\r\nContent-Length: 3\r\n\r\n{} ",
        "Content-Length: +2\r\n\r\n{}",
        "Content-Length: 0x2\r\n\r\n{}",
        "Content-Length: 99999999999999999999\r\n\r\n{}",
        "Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
        "Transfer-Encoding: chunked\r\n\r\n-1\r\n\r\n",
        "Transfer-Encoding: chunked\r\n\r\nxyz\r\n\r\n",
        "Bad Header: 1\r\nContent-Length: 2\r\n\r\n{}",
        "X: a\r\n b\r\nContent-Length: 2\r\n\r\n{}",
        "X: a\0b\r\nContent-Length: 2\r\n\r\n{}",
    ] {
        let mut client = Client::saying(gateway.address(), format!("{start}{rest}").as_bytes());
        let answer = client.answer();
        assert!([400, 501].contains(&answer.status()), "{rest:?}: {answer:?}");
        client.assert_closed();
    }
    engine.assert_untouched();
    assert!(gateway.records().is_empty());
}

#[test]
fn an_expectation_other_than_100_is_a_417() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    for expected in ["cookies", "", "100-continue, cookies", "100-continue\r\nExpect: cookies"] {
        let answer = gateway.chat(&format!("Expect: {expected}\r\n"), CHAT).answer();
        assert_refused(&answer, 417, "invalid_request_error", "expectation_failed");
    }
    engine.assert_untouched();
}

#[test]
fn an_unknown_price_is_refused_where_the_operator_says_so() {
    let engine = Engine::start();
    let gateway =
        Setup::before(&engine).upstream("dialect: vllm").with("prices: {unknown: refuse}").start();
    let answer = gateway.chat("", r#"{"model":"home-grown"}"#).answer();
    assert_invalid(&answer, "unknown_price");
    engine.assert_untouched();
}

#[test]
fn refusals_to_anthropics_clients_have_anthropics_form() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    let answer = gateway.ask(&post("/v1/messages", "", r#"{"model":7}"#));
    assert_eq!(answer.status(), 400);
    let body = answer.json();
    assert_eq!(body["type"], "error");
    assert_eq!(body["error"]["type"], "invalid_request_error");
    assert!(body["error"]["message"].as_str().is_some_and(|text| text.contains("model")), "{body}");
    assert_eq!(body["request_id"].as_str(), answer.header("x-request-id"));
}

#[test]
fn a_head_that_comes_too_slowly_ends_the_connection() {
    let engine = Engine::start();
    let gateway = Setup::before(&engine)
        .upstream("dialect: openai")
        .with("limits: {header_read_timeout_seconds: 0.3}")
        .start();
    let mut client =
        Client::saying(gateway.address(), b"POST /v1/chat/completions HTTP/1.1\r\nHost: l");
    if let Ok(answer) = client.try_answer() {
        assert_eq!(answer.status(), 408);
    }
    client.assert_closed();
    gateway.await_metric("taximeter_bad_framing_total{taximeter_cause=\"slow_header\"} 1");
}

#[test]
fn a_body_that_comes_too_slowly_is_a_408() {
    let engine = Engine::start();
    // Nothing of it for too long; and all of it, however many bytes come meanwhile.
    for limits in [
        "body_read_timeout_seconds: 0.3",
        "body_read_timeout_seconds: 3600, request_timeout_seconds: 0.3",
    ] {
        let gateway = Setup::before(&engine)
            .upstream("dialect: openai")
            .with(&format!("limits: {{{limits}}}"))
            .start();
        let whole = post("/v1/chat/completions", "", CHAT);
        let mut client = Client::saying(gateway.address(), &whole[..whole.len() - 1]);
        assert_refused(&client.answer(), 408, "timeout_error", "request_timeout");
        client.assert_closed();
        engine.assert_untouched();
        assert!(gateway.records().is_empty());
    }
}
