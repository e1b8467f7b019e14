//! Requests that two readers could read differently: what passes for one of them may be two to the
//! engine.

use crate::client::Client;
use crate::engine::Engine;
use crate::fixtures::{CHAT, CHAT_ANSWER, DONE, HELLO, STOP, STREAM_CHAT};
use crate::gateway::Gateway;
use crate::http::{LAST_CHUNK, bare, chunk, json_answer, post};

const START: &str =
    "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n";

fn told(cause: &str, count: usize) -> String {
    format!("taximeter_bad_framing_total{{taximeter_cause=\"{cause}\"}} {count}")
}

fn chunked(body: &str) -> String {
    format!("{START}Transfer-Encoding: chunked\r\n\r\n{body}")
}

#[test]
fn a_request_that_two_readers_could_read_differently_reaches_no_engine() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    let length = CHAT.len();
    let size = format!("{length:x}");
    let end = "0\r\n\r\n";
    let both = "Transfer-Encoding: chunked\r\n";
    let twice = format!("Content-Length: {length}\r\n");
    let cases = [
        ("cl_te", format!("{START}{both}{twice}\r\n{size}\r\n{CHAT}\r\n{end}")),
        ("cl_te", format!("{START}{twice}{both}\r\n{size}\r\n{CHAT}\r\n{end}")),
        ("content_length", format!("{START}{twice}{twice}\r\n{CHAT}")),
        ("content_length", format!("{START}Content-Length: {length}, {length}\r\n\r\n{CHAT}")),
        ("content_length", format!("{START}Content-Length: 9223372036854775809\r\n\r\n{CHAT}")),
        ("content_length", format!("{START}Content-Length:\r\n\r\n{CHAT}")),
        ("transfer_encoding", format!("{START}{both}{both}\r\n{size}\r\n{CHAT}\r\n{end}")),
        ("line_end", format!("{START}{twice}\r\n{CHAT}").replacen("\r\n", "\n", 1)),
        ("line_end", format!("{START}X: 1\n{twice}\r\n{CHAT}")),
        ("line_end", format!("{START}X: 1\r{twice}\r\n{CHAT}")),
        ("line_end", format!("{START}{twice}\n{CHAT}")),
        ("line_end", format!("\n{START}{twice}\r\n{CHAT}")),
        ("line_end", chunked(&format!("{size}\n{CHAT}\r\n{end}"))),
        ("line_end", chunked(&format!("{size}\r{CHAT}\r\n{end}"))),
        ("line_end", chunked(&format!("{size}\r\n{CHAT}\r0\r\n\r\n"))),
        ("line_end", chunked(&format!("{size};a\n{CHAT}\r\n{end}"))),
        ("line_end", chunked(&format!("{size}\r\n{CHAT}\r\n0\n\r\n"))),
        ("line_end", chunked(&format!("{size}\r\n{CHAT}\r\n0\r\nX: 1\n\r\n"))),
        ("header_name", format!("{START}{twice}\r\n{CHAT}").replacen("Host", " Host", 1)),
        ("header_name", format!("{START}X : 1\r\n{twice}\r\n{CHAT}")),
        ("header_name", format!("{START}X\u{1}: 1\r\n{twice}\r\n{CHAT}")),
        ("header_name", format!("{START}X\u{e9}: 1\r\n{twice}\r\n{CHAT}")),
        ("header_name", format!("{START}: 1\r\n{twice}\r\n{CHAT}")),
        ("header_name", format!("{START}X\r\n{twice}\r\n{CHAT}")),
        ("header_value", format!("{START}X: 1\r\n 2\r\n{twice}\r\n{CHAT}")),
        ("header_value", format!("{START}X: 1\r\n\t2\r\n{twice}\r\n{CHAT}")),
        ("header_value", format!("{START}X: a\0b\r\n{twice}\r\n{CHAT}")),
        ("chunk", chunked(&format!("{size:0>17}\r\n{CHAT}\r\n{end}"))),
        ("chunk", chunked(&format!("+{size}\r\n{CHAT}\r\n{end}"))),
        ("chunk", chunked(&format!("0x{size}\r\n{CHAT}\r\n{end}"))),
        ("chunk", chunked(&format!("0_{size}\r\n{CHAT}\r\n{end}"))),
        ("chunk", chunked(&format!("{size} \r\n{CHAT}\r\n{end}"))),
        ("chunk", chunked(&format!("\r\n{CHAT}\r\n{end}"))),
        ("chunk", chunked(&format!("{size}\r\n{CHAT}{end}"))),
    ];
    let lengths =
        ["+70", "-70", "0x46", "7_0", "7 0", "seventy", "\u{ff17}0", "99999999999999999999"].map(
            |length| ("content_length", format!("{START}Content-Length: {length}\r\n\r\n{CHAT}")),
        );
    let codings =
        ["", "gzip", "identity", "chunked, gzip", "chunked, chunked", "xchunked", "chunked;q=1"];
    let codings = codings.map(|coding| {
        let head = format!("{START}Transfer-Encoding: {coding}\r\n\r\n");
        ("transfer_encoding", format!("{head}{size}\r\n{CHAT}\r\n{end}"))
    });
    let cases: Vec<_> = cases.into_iter().chain(lengths).chain(codings).collect();
    for (_, request) in &cases {
        let mut client = Client::saying(gateway.address(), request.as_bytes());
        let answer = client.answer();
        assert_eq!(answer.status(), 400, "{request:?}");
        assert_eq!(answer.json()["error"]["code"], "bad_framing", "{request:?}");
        client.assert_closed();
    }
    for (cause, _) in &cases {
        let count = cases.iter().filter(|(other, _)| other == cause).count();
        gateway.await_metric(&told(cause, count));
    }
    engine.assert_untouched();
    assert!(gateway.records().is_empty());
}

#[test]
fn a_request_before_one_that_cannot_be_read_in_one_way_is_served() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    for second in ["GET / HTTP/1.1\nHost: a\r\n\r\n", "\r\r\n"] {
        let first = post("/v1/chat/completions", "", CHAT);
        let both = [first.as_slice(), second.as_bytes()].concat();
        let mut client = Client::saying(gateway.address(), &both);
        engine.answer_once(&json_answer(CHAT_ANSWER));
        assert_eq!(client.answer().text(), CHAT_ANSWER);
        assert_eq!(client.answer().status(), 400);
        client.assert_closed();
    }
    for record in gateway.records() {
        assert_eq!(record["end"], "complete", "{record}");
    }
}

/// All that came, without the ids that differ each time.
fn masked(all: &str) -> String {
    let id = all.split("x-taximeter-request-id: ").nth(1).and_then(|rest| rest.lines().next());
    all.replace(id.expect("an id"), "ID")
}

#[test]
fn the_refusal_of_what_cannot_be_read_is_the_same_to_the_byte() {
    let body = |told: &str| {
        format!(
            "{{\"error\":{{\"code\":\"bad_framing\",\"message\":\"{told}\",\"param\":null,\
             \"type\":\"invalid_request_error\"}}}}"
        )
    };
    let answer = |told: &str| {
        let body = body(told);
        format!(
            "HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\
             cache-control: no-store\r\nx-should-retry: false\r\nconnection: close\r\n\
             x-taximeter-request-id: ID\r\nx-request-id: ID\r\n\r\n{body}",
            body.len()
        )
    };
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    let in_head = "the request could not be read: a line does not end with CR LF";
    let in_body = "the request could not be read in one way only; check its framing (body)";
    for (request, told) in [
        ("GET / HTTP/1.1\nHost: a\r\n\r\n".to_owned(), in_head),
        (chunked("5\nhello\r\n0\r\n\r\n"), in_body),
        (chunked(&format!("{:x}\r\n{CHAT}\r\n0\r\nX: 1\n\r\n", CHAT.len())), in_body),
    ] {
        let mut client = Client::saying(gateway.address(), request.as_bytes());
        assert_eq!(masked(&client.all()), answer(told), "{request:?}");
    }
    engine.assert_untouched();
}

#[test]
fn requests_before_one_that_cannot_be_read_are_answered_first_however_they_come() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    let good = bare("GET", "/nowhere", "X-Request-Id: good\r\n");
    let bad_body = chunked("5\r\n{\"a\":1\r\n0\r\n\r\n");
    for (before, bad) in [
        (2, "\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"),
        (2, "GET / HTTP/1.1\r\nHost: a\r\nX : 1\r\n\r\n"),
        (1, &bad_body),
        (0, "PRI * HTTP/2.0\r\n\r\n"),
    ] {
        // What stands behind it is nobody's request.
        let all = [good.repeat(before), bad.into(), good.clone()].concat();
        for split in (0..all.len()).step_by(5) {
            let (one, two) = all.split_at(split);
            let mut client = Client::saying(gateway.address(), one);
            let _ = client.try_send(two);
            for _ in 0..before {
                let answer = client.answer();
                assert_eq!((answer.status(), answer.header("x-request-id")), (404, Some("good")));
            }
            let refused = client.answer();
            assert_eq!(refused.status(), 400, "split at byte {split} of {bad:?}: {refused:?}");
            assert_eq!(refused.json()["error"]["code"], "bad_framing");
            client.assert_closed();
        }
    }
    engine.assert_untouched();
    assert!(gateway.records().is_empty());
}

#[test]
fn a_stream_before_a_request_that_cannot_be_read_runs_to_its_end() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    for bad in ["\n", "GET / HTTP/1.1\r\nX : 1\r\n"] {
        let stream = post("/v1/chat/completions", "", STREAM_CHAT);
        let mut client = Client::saying(gateway.address(), &[&stream, bad.as_bytes()].concat());
        let mut connection = engine.begin_stream();
        client.head();
        for event in [HELLO, STOP] {
            connection.send(&chunk(event));
            client.expect(event);
            assert!(!client.has_answer(), "the refusal waits for its turn");
        }
        connection.send(&[chunk(DONE), LAST_CHUNK.to_vec()].concat());
        client.expect(DONE);
        assert_eq!(client.next_chunk().as_deref(), Some(&b""[..]));
        assert_eq!(client.answer().json()["error"]["code"], "bad_framing");
        client.assert_closed();
    }
    for record in gateway.await_records(2) {
        assert_eq!(record["end"], "complete", "{record}");
    }
}

#[test]
fn a_client_that_leaves_behind_a_request_that_cannot_be_read_cancels_the_engines_work() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    for bad in ["\n", "GET / HTTP/1.1\r\nX : 1\r\n"] {
        let stream = post("/v1/chat/completions", "", STREAM_CHAT);
        let client = Client::saying(gateway.address(), &[&stream, bad.as_bytes()].concat());
        let (connection, _) = engine.request();
        drop(client);
        connection.assert_closed_by_gateway();
    }
    for record in gateway.await_records(2) {
        assert_eq!(record["end"], "client_left", "{record}");
    }
}

#[test]
fn extensions_and_trailers_of_a_request_go_nowhere() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    let (one, two) = CHAT.split_at(10);
    let body = format!(
        "{:X};a=\"b;c\"\r\n{one}\r\n000{:x}\r\n{two}\r\n0;z\r\nX-Tenant-Id: other\r\n\r\n",
        one.len(),
        two.len()
    );
    let mut client = Client::saying(gateway.address(), chunked(&body).as_bytes());
    let got = engine.answer_once(&json_answer(CHAT_ANSWER));
    assert_eq!((got.text(), got.header("x-tenant-id")), (CHAT, None));
    assert_eq!(client.answer().text(), CHAT_ANSWER);
    assert_eq!(gateway.record()["tenant"], "default");
    let long = chunked(&format!("5;{}\r\nhello\r\n0\r\n\r\n", "x".repeat(17 << 10)));
    let mut client = Client::saying(gateway.address(), long.as_bytes());
    assert_eq!(client.answer().status(), 400);
    client.assert_closed();
}

#[test]
fn trailers_of_a_request_have_a_maximum() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    // What hyper keeps of them; it counts what it adds itself, too.
    for (bytes, passes) in [(15 << 10, true), (17 << 10, false)] {
        let body = format!("{:x}\r\n{CHAT}\r\n0\r\nX: {}\r\n\r\n", CHAT.len(), "x".repeat(bytes));
        let mut client = Client::saying(gateway.address(), chunked(&body).as_bytes());
        if passes {
            engine.answer_once(&json_answer(CHAT_ANSWER));
            assert_eq!(client.answer().text(), CHAT_ANSWER);
        } else {
            assert_eq!(client.answer().json()["error"]["code"], "bad_framing");
            client.assert_closed();
        }
    }
    engine.assert_untouched();
}

#[test]
fn the_longest_length_that_can_be_said_is_one_and_too_large() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    let head = format!("{START}Content-Length: 9223372036854775808\r\n\r\n");
    let mut client = Client::saying(gateway.address(), head.as_bytes());
    assert_eq!(client.answer().status(), 413);
    client.assert_closed();
    engine.assert_untouched();
}
