//! HTTP/1 as few clients speak it: what is odd and clear is served, what is not is told so in words,
//! and of neither anything is taken for a further request.

use serde_json::Value;

use crate::client::Client;
use crate::engine::Engine;
use crate::fixtures::{CHAT, CHAT_ANSWER, HELLO, STREAM_CHAT};
use crate::gateway::{Gateway, Setup};
use crate::http::{bare, json_answer, post};

const CHAT_PATH: &str = "/v1/chat/completions";

fn old(headers: &str, body: &str) -> String {
    let json = "Content-Type: application/json\r\n";
    format!("POST {CHAT_PATH} HTTP/1.0\r\n{json}{headers}\r\n{body}")
}

#[test]
fn http_1_0_is_served_and_its_connection_closed() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    let length = format!("Content-Length: {}\r\n", CHAT.len());
    let mut client = Client::saying(gateway.address(), old(&length, CHAT).as_bytes());
    let got = engine.answer_once(&json_answer(CHAT_ANSWER));
    assert_eq!(got.text(), CHAT);
    assert_eq!(client.answer().text(), CHAT_ANSWER);
    client.assert_closed();
    assert_eq!(gateway.records().len(), 1);
}

/// Sends each request on a connection of its own: it is answered in words, counted by its cause, and
/// the connection ends.
fn assert_told(gateway: &Gateway, cases: &[(&str, u16, &str, String)]) {
    for (_, status, code, request) in cases {
        let mut client = Client::saying(gateway.address(), request.as_bytes());
        let shown: String = request.chars().take(80).collect();
        let answer = client.try_answer().unwrap_or_else(|fault| panic!("{shown:?}: {fault}"));
        assert_eq!(answer.status(), *status, "{shown:?}");
        let error = &answer.json()["error"];
        assert_eq!(
            (&error["code"], &error["param"]),
            (&Value::from(*code), &Value::Null),
            "{error}"
        );
        assert_eq!(error["type"], "invalid_request_error");
        for (name, value) in [
            ("content-type", "application/json"),
            ("x-should-retry", "false"),
            ("cache-control", "no-store"),
            ("connection", "close"),
        ] {
            assert_eq!(answer.header(name), Some(value), "{shown:?}: {answer:?}");
        }
        assert!(answer.header("x-request-id").is_some(), "{answer:?}");
        client.assert_closed();
    }
    for (cause, ..) in cases {
        let count = cases.iter().filter(|(other, ..)| other == cause).count();
        gateway.await_metric(&format!(
            "taximeter_bad_framing_total{{taximeter_cause=\"{cause}\"}} {count}"
        ));
    }
    // A head that is too large is no request that was refused.
    assert!(!gateway.metrics().contains("headers_too_large"));
}

#[test]
fn what_cannot_be_read_as_a_request_is_refused_in_words_and_told_with_its_beginning() {
    let engine = Engine::start();
    let gateway = Setup::before(&engine)
        .upstream("dialect: openai")
        .with("limits: {header_bytes_max: 80000}")
        .start();
    let length = format!("Content-Length: {}\r\n", CHAT.len());
    let chunked = format!("{:x}\r\n{CHAT}\r\n0\r\n\r\n", CHAT.len());
    let host = "Host: a\r\nContent-Type: application/json\r\n";
    let target = |target: &str| format!("POST {target} HTTP/1.1\r\n{host}{length}\r\n{CHAT}");
    let fields = "X: 1\r\n".repeat(101);
    let other = |line: &str| format!("{line} HTTP/1.1\r\n{host}\r\n");
    let coded = |codings: &str| {
        format!("POST {CHAT_PATH} HTTP/1.1\r\n{host}Transfer-Encoding: {codings}\r\n\r\n{chunked}")
    };
    let cases: [(&str, u16, &str, String); 25] = [
        ("transfer_encoding", 400, "bad_framing", old("Transfer-Encoding: chunked\r\n", &chunked)),
        ("no_length", 400, "bad_framing", old("", "")),
        ("no_length", 400, "bad_framing", format!("POST {CHAT_PATH} HTTP/1.1\r\n{host}\r\n")),
        ("version", 400, "bad_framing", "GET /v1/models\r\n\r\n".into()),
        ("version", 400, "bad_framing", "GET /v1/models HTTP/1.2\r\n\r\n".into()),
        ("version", 400, "bad_framing", "PRI * HTTP/2.0\r\n\r\nMS\r\n\r\n".into()),
        ("request_line", 400, "bad_framing", "\u{16}\u{3}\u{1}\u{2}\0\u{1}\0".into()),
        ("request_line", 400, "bad_framing", "G(T / HTTP/1.1\r\n\r\n".into()),
        ("target", 400, "bad_framing", target("http://a/v1/chat/completions")),
        ("target", 400, "bad_framing", target("a:80")),
        ("target", 400, "bad_framing", target("/v1/chat/completions#x")),
        ("target", 400, "bad_framing", other("OPTIONS *x")),
        ("target", 400, "bad_framing", other("CONNECT a/b")),
        ("target", 400, "bad_framing", other("CONNECT key@a:1")),
        ("target", 400, "bad_framing", other("CONNECT a:1:1")),
        ("header_value", 400, "bad_framing", format!("GET / HTTP/1.1\r\n{host}X: a\0b\r\n\r\n")),
        ("host", 400, "bad_framing", "GET /v1/models HTTP/1.1\r\n\r\n".into()),
        ("host", 400, "bad_framing", format!("OPTIONS {CHAT_PATH} HTTP/1.1\r\n\r\n")),
        ("host", 400, "bad_framing", "GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n".into()),
        (
            "connection",
            400,
            "bad_framing",
            format!("GET / HTTP/1.1\r\n{host}Connection: x, Authorization\r\n\r\n"),
        ),
        ("transfer_encoding", 501, "not_supported", coded("gzip, chunked")),
        ("transfer_encoding", 501, "not_supported", coded("x-compress,deflate , Chunked")),
        ("too_many_headers", 431, "headers_too_large", format!("GET / HTTP/1.1\r\n{fields}\r\n")),
        (
            "head_too_large",
            431,
            "headers_too_large",
            format!("GET / HTTP/1.1\r\nX: {}", "x".repeat(80_000)),
        ),
        ("target_too_long", 414, "uri_too_long", format!("GET /{}", "x".repeat(65_534))),
    ];
    assert_told(&gateway, &cases);
    engine.assert_untouched();
    assert!(gateway.records().is_empty());
}

#[test]
fn a_head_that_cannot_be_read_is_answered_in_the_form_of_its_route() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    for (first_line, is_anthropics) in [
        ("\u{16}\u{3}\u{1}\0", false),
        ("GET /v1/models?key=sk-secret HTTP/1.1", false),
        ("POST /v1/messages HTTP/1.1\r\nX-Api-Key: sk-secret", true),
    ] {
        let request = format!("{first_line}\r\n \n");
        let mut client = Client::saying(gateway.address(), request.as_bytes());
        let answer = client.answer();
        assert_eq!(answer.status(), 400);
        assert_eq!(answer.json()["type"] == "error", is_anthropics, "{answer:?}");
        client.assert_closed();
    }
}

#[test]
fn a_protocol_that_is_asked_for_is_not_switched_to_and_what_follows_is_the_next_request() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    for protocol in ["h2c", "websocket", "HTTP/2.0, x"] {
        let upgrade = format!(
            "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: {protocol}\r\nHTTP2-Settings: AAMAAABk\r\n"
        );
        let behind = bare("GET", "/nowhere", "");
        let both = [post(CHAT_PATH, &upgrade, CHAT), behind].concat();
        let mut client = Client::saying(gateway.address(), &both);
        let got = engine.answer_once(&json_answer(CHAT_ANSWER));
        for name in ["upgrade", "connection", "http2-settings"] {
            assert_eq!(got.header(name), None, "{protocol}: {got:?}");
        }
        assert_eq!(client.answer().text(), CHAT_ANSWER);
        assert_eq!(client.answer().status(), 404, "of what is behind it");
        engine.assert_untouched();
    }
}

#[test]
fn extensions_of_chunks_have_a_maximum_together() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    // hyper counts each byte behind the semicolon, and refuses the 16,384th.
    let chunked = |bytes: usize| {
        let size = format!("{:x}", CHAT.len());
        let half = "x".repeat(bytes / 2);
        let body = format!("{size};{half}\r\n{CHAT}\r\n0;{half}\r\n\r\n");
        let head = "Transfer-Encoding: chunked\r\nContent-Type: application/json\r\n";
        format!("POST {CHAT_PATH} HTTP/1.1\r\nHost: a\r\n{head}\r\n{body}")
    };
    let mut client = Client::saying(gateway.address(), chunked((16 << 10) - 2).as_bytes());
    engine.answer_once(&json_answer(CHAT_ANSWER));
    assert_eq!(client.answer().status(), 200);
    let mut client = Client::saying(gateway.address(), chunked(16 << 10).as_bytes());
    assert_eq!(client.answer().json()["error"]["code"], "bad_framing");
    client.assert_closed();
    engine.assert_untouched();
}

#[test]
fn a_body_that_comes_after_its_refusal_is_taken_for_nothing() {
    let engine = Engine::start();
    let gateway =
        |section: &str| Setup::before(&engine).upstream("dialect: openai").with(section).start();
    let (keys, small) =
        (gateway("tenants: {unknown: refuse}"), gateway("limits: {body_bytes_max: 200000}"));
    let request = bare("GET", "/nowhere", "");
    // Less than what is read for politeness, more than that, and what is refused by its length.
    let cases = [(&keys, 60 << 10, 401), (&keys, 100 << 10, 401), (&small, 300 << 10, 413)];
    std::thread::scope(|scope| {
        for (gateway, length, status) in cases {
            let address = gateway.address();
            let body = request.repeat(length / request.len());
            scope.spawn(move || {
                let json = "Content-Type: application/json\r\n";
                let head = format!(
                    "POST {CHAT_PATH} HTTP/1.1\r\nHost: a\r\n{json}Content-Length: {length}\r\n\r\n"
                );
                let mut client = Client::saying(address, head.as_bytes());
                // It may be that nobody takes it any more.
                let _ = client.try_send(&body);
                let answer = client.try_answer();
                let answer = answer.unwrap_or_else(|fault| panic!("{length}: lost: {fault}"));
                assert_eq!(answer.status(), status);
                assert!(client.try_answer().is_err(), "a second answer: {length}");
            });
        }
    });
    engine.assert_untouched();
}

#[test]
fn an_answer_to_head_has_a_head_and_never_a_body() {
    let engine = Engine::start();
    let gateway = Setup::before(&engine)
        .upstream("dialect: openai")
        .with("tenants: {unknown: refuse}")
        .start();
    for target in [CHAT_PATH, "/v1/models", "/nowhere"] {
        let both = [bare("HEAD", target, ""), bare("GET", "/nowhere", "")].concat();
        let mut client = Client::saying(gateway.address(), &both);
        let head = client.head();
        assert!([401, 404, 405].contains(&head.status()), "{target}: {head:?}");
        // What a body would have in its place is the next answer.
        assert_eq!(client.answer().json()["error"]["code"], "unknown_route", "{target}");
    }
    engine.assert_untouched();
}

#[test]
fn a_head_that_cannot_be_read_has_an_answer_without_a_body_where_it_asks_for_none() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    let request = b"HEAD /v1/models HTTP/1.1\r\nHost : a\r\n\r\n";
    let mut client = Client::saying(gateway.address(), request);
    assert_eq!(client.head().status(), 400);
    client.assert_closed();
    engine.assert_untouched();
}

#[test]
fn a_connection_that_speaks_http_1_does_not_begin_to_speak_http_2() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".as_slice();
    let both = [bare("GET", "/nowhere", "").as_slice(), preface].concat();
    let mut client = Client::saying(gateway.address(), &both);
    assert_eq!(client.answer().status(), 404);
    assert_eq!(client.answer().json()["error"]["code"], "bad_framing");
    client.assert_closed();
    engine.assert_untouched();
}

#[test]
fn a_body_with_a_get_or_a_head_is_read_to_its_end_and_no_further_than_bodies_may_be_long() {
    let engine = Engine::start();
    let setup = Setup::before(&engine).upstream("dialect: openai");
    let gateway = setup.with("limits: {body_bytes_max: 1000}").start();
    // A body that looks like requests, which nobody is to take for such.
    let looks = bare("GET", "/nowhere", "");
    let body = |bytes: usize| looks.iter().copied().cycle().take(bytes).collect::<Vec<_>>();
    let with_body = |method: &str, bytes: usize| {
        let head = bare(method, "/v1/models", &format!("Content-Length: {bytes}\r\n"));
        [head, body(bytes)].concat()
    };
    for method in ["GET", "HEAD"] {
        let both = [with_body(method, 1_000), bare("GET", "/elsewhere", "")].concat();
        let mut client = Client::saying(gateway.address(), &both);
        let got = engine.answer_once(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
        assert!(got.first_line.starts_with(method), "{got:?}");
        assert_eq!((got.text(), got.header("content-length")), ("", None), "{method}");
        assert_eq!(client.head().status(), 200, "{method}");
        let next = client.answer();
        assert!(next.text().contains("/elsewhere"), "{method}: {next:?}");
        let mut client = Client::saying(gateway.address(), &with_body(method, 1_001));
        let refused = client.head();
        assert_eq!((refused.status(), refused.header("connection")), (413, Some("close")));
    }
    engine.assert_untouched();
}

#[test]
fn a_method_that_nobody_knows_is_a_405_and_what_follows_the_next_request() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    for method in ["BREW", "post", "PRINT", "PROPFIND"] {
        let request = bare(method, CHAT_PATH, "Content-Length: 0\r\n");
        let both = [request, bare("GET", "/nowhere", "")].concat();
        let mut client = Client::saying(gateway.address(), &both);
        let answer = client.answer();
        assert_eq!((answer.status(), answer.header("allow")), (405, Some("POST, OPTIONS")));
        assert_eq!(client.answer().status(), 404, "{method}");
    }
    engine.assert_untouched();
}

#[test]
fn a_refusal_comes_in_the_place_of_a_100() {
    let engine = Engine::start();
    let setup = |section: &str| Setup::before(&engine).upstream("dialect: openai").with(section);
    for (section, target, status) in [
        ("tenants: {unknown: refuse}", CHAT_PATH, 401),
        ("limits: {body_bytes_max: 10}", CHAT_PATH, 413),
        ("receipts: on", "/nowhere", 404),
    ] {
        let gateway = setup(section).start();
        let whole = post(target, "Expect: 100-continue\r\n", CHAT);
        let head = &whole[..whole.len() - CHAT.len()];
        let mut client = Client::saying(gateway.address(), head);
        assert_eq!(client.answer().status(), status, "{section}");
    }
    engine.assert_untouched();
    let gateway = setup("limits: {requests_per_tenant_max: 1}").start();
    let _running = gateway.streaming(&engine, STREAM_CHAT, &[HELLO]);
    let whole = post(CHAT_PATH, "Expect: 100-continue\r\n", CHAT);
    let mut client = Client::saying(gateway.address(), &whole[..whole.len() - CHAT.len()]);
    assert_eq!(client.answer().status(), 429, "before it is admitted");
    engine.assert_untouched();
}
