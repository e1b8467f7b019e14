//! Connections of clients that do more, or less, than they should.

use crate::client::Client;
use crate::engine::Engine;
use crate::fixtures::{CHAT, CHAT_ANSWER, STREAM_CHAT};
use crate::gateway::{Gateway, Setup};
use crate::http::{bare, json_answer, post};

#[test]
fn a_client_that_leaves_behind_a_pipelined_request_cancels_the_engines_work() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    let one = post("/v1/chat/completions", "", STREAM_CHAT);
    let client = Client::saying(gateway.address(), &[one.as_slice(), b"POST /v1"].concat());
    let (connection, _) = engine.request();
    drop(client);
    connection.assert_closed_by_gateway();
    let mut client = Client::saying(gateway.address(), &one);
    let (connection, _) = engine.request();
    client.send(&one);
    drop(client);
    connection.assert_closed_by_gateway();
    for record in gateway.await_records(2) {
        assert_eq!(record["end"], "client_left", "{record}");
    }
}

#[test]
fn a_head_that_two_readers_could_read_differently_reaches_no_engine() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    let length = format!("Content-Length: {}\r\n", CHAT.len());
    let json = "Content-Type: application/json\r\n";
    let chunked = format!("{:x}\r\n{CHAT}\r\n0\r\n\r\n", CHAT.len());
    let path = "POST /v1/chat/completions HTTP/1.1\r\n";
    for (status, request) in [
        (400, format!("{path}{json}{length}\r\n{CHAT}")),
        (400, format!("{path}Host: a\r\nHost: a\r\n{json}{length}\r\n{CHAT}")),
        (
            400,
            format!("POST http://b/v1/completions HTTP/1.1\r\nHost: a\r\n{json}{length}\r\n{CHAT}"),
        ),
        (501, format!("{path}Host: a\r\n{json}Transfer-Encoding: gzip, chunked\r\n\r\n{chunked}")),
        (501, "CONNECT engine:80 HTTP/1.1\r\nHost: engine:80\r\n\r\n".to_owned()),
    ] {
        let mut client = Client::saying(gateway.address(), request.as_bytes());
        assert_eq!(client.answer().status(), status, "{request}");
        client.assert_closed();
    }
    let two = format!("{json}Content-Type: text/plain\r\n{length}");
    let request = format!("{path}Host: a\r\n{two}\r\n{CHAT}");
    assert_eq!(gateway.ask(request.as_bytes()).status(), 415);
    engine.assert_untouched();
    assert!(gateway.records().is_empty());
}

#[test]
fn options_are_told_without_asking_an_engine() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    let mut client =
        Client::saying(gateway.address(), &bare("OPTIONS", "/v1/chat/completions", ""));
    let answer = client.head();
    assert_eq!((answer.status(), answer.header("allow")), (204, Some("POST, OPTIONS")));
    // Of the whole server.
    client.send(&bare("OPTIONS", "*", ""));
    let answer = client.head();
    let all = Some("GET, HEAD, POST, DELETE, OPTIONS");
    assert_eq!((answer.status(), answer.header("allow")), (204, all));
    engine.assert_untouched();
}

#[test]
fn a_body_with_a_get_goes_nowhere() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    let request = bare("GET", "/v1/models", "Content-Length: 5\r\n");
    let mut client = Client::saying(gateway.address(), &[&request, b"GET /".as_slice()].concat());
    let got = engine.answer_once(&json_answer("{}"));
    assert_eq!((got.text(), got.header("content-length")), ("", None));
    assert_eq!(client.answer().status(), 200);
}

#[test]
fn a_request_id_that_came_twice_is_one_for_the_engine_and_the_record() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    let mut client = gateway.chat("X-Request-Id: a\r\nX-Request-Id: b\r\n", CHAT);
    let got = engine.answer_once(&json_answer(CHAT_ANSWER));
    client.answer();
    let record = gateway.record();
    assert_eq!(got.header("x-request-id"), record["request_id"].as_str());
    assert_eq!(record["request_id"], record["id"]);
}

#[test]
fn refused_keys_spoofed_headers_and_unreadable_heads_are_told() {
    let engine = Engine::start();
    let sha256 = "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b";
    let gateway = Setup::before(&engine)
        .upstream("dialect: openai")
        .with(&format!(
            "tenants: {{unknown: refuse, keys: [{{id: k, tenant: acme, sha256: \"{sha256}\"}}]}}"
        ))
        .start();
    assert_eq!(gateway.chat("X-Api-Key: wrong\r\n", CHAT).answer().status(), 401);
    let mut client = gateway.chat("X-Api-Key: secret\r\nX-Tenant-Id: other\r\n", CHAT);
    engine.answer_once(&json_answer(CHAT_ANSWER));
    assert_eq!(client.answer().status(), 200);
    let mut client = Client::saying(gateway.address(), b"what is this\r\n\r\n");
    assert_eq!(client.answer().status(), 400);
    client.assert_closed();
    for line in [
        "taximeter_auth_refusals_total{taximeter_refusal_code=\"invalid_api_key\"} 1",
        "taximeter_spoofed_headers_total 1",
        "taximeter_bad_framing_total{taximeter_cause=\"target\"} 1",
    ] {
        gateway.await_metric(line);
    }
}
