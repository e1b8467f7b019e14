//! What an engine sends before its answer, and answers that two readers could read differently.

use crate::client::Client;
use crate::engine::Engine;
use crate::fixtures::{CHAT, CHAT_ANSWER, DONE, HELLO, STOP, STREAM_CHAT, WORLD};
use crate::gateway::{Gateway, Setup};
use crate::http::{STREAM_HEAD, bare, chunk, json_answer, post};
use crate::unused::await_unused;

const JSON_HEAD: &str = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n";

fn faults(cause: &str, count: usize) -> String {
    let labels = format!("taximeter_cause=\"{cause}\",taximeter_upstream=\"engine\"");
    format!("taximeter_upstream_protocol_faults_total{{{labels}}} {count}")
}

#[test]
fn a_head_that_two_readers_could_read_differently_is_a_502() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    let large =
        format!("{JSON_HEAD}X-Large: {}\r\nContent-Length: 2\r\n\r\n{{}}", "x".repeat(70_000));
    let cases = [
        ("line_end", "HTTP/1.1 200 OK\nContent-Length: 2\n\n{}".to_owned()),
        ("line_end", format!("{JSON_HEAD}X: 1\nContent-Length: 2\r\n\r\n{{}}")),
        (
            "content_length",
            format!("{JSON_HEAD}Content-Length: 2\r\nContent-Length: 2\r\n\r\n{{}}"),
        ),
        ("content_length", format!("{JSON_HEAD}Content-Length: 2, 2\r\n\r\n{{}}")),
        ("content_length", format!("{JSON_HEAD}Content-Length: +2\r\n\r\n{{}}")),
        (
            "cl_te",
            format!(
                "{JSON_HEAD}Transfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n2\r\n{{}}\r\n0\r\n\r\n"
            ),
        ),
        (
            "transfer_encoding",
            format!("{JSON_HEAD}Transfer-Encoding: gzip, chunked\r\n\r\n2\r\n{{}}\r\n0\r\n\r\n"),
        ),
        ("head", format!("{JSON_HEAD}X: a\r\n b\r\nContent-Length: 2\r\n\r\n{{}}")),
        ("head_too_large", large),
    ];
    for (done, (cause, answer)) in cases.iter().enumerate() {
        let mut client = gateway.chat("", CHAT);
        let (mut connection, _) = engine.request();
        // The gateway may close before it has taken all of a large one.
        let _ = connection.try_send(answer.as_bytes());
        let refusal = client.answer();
        assert_eq!(refusal.status(), 502, "{cause}");
        assert_eq!(refusal.json()["error"]["code"], "upstream_protocol", "{cause}");
        connection.assert_closed_by_gateway();
        let told = cases[..=done].iter().filter(|(other, _)| other == cause).count();
        gateway.await_metric(&faults(cause, told));
        // The engine may have worked: its input is on the ledger, and no output.
        let record = &gateway.await_records(done + 1)[done];
        assert_eq!(record["end"], "upstream_error", "{record}");
        assert_eq!(record["error_type"], "upstream_protocol", "{record}");
        assert_eq!(record["usage"]["output_tokens"], 0, "{record}");
        // What follows on the client's connection is as good as before.
        client.send(&post("/v1/models", "", ""));
        assert_eq!(client.answer().status(), 405);
    }
}

#[test]
fn a_body_that_two_readers_could_read_differently_is_cut_where_they_would() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    let sized = |size: &str| format!("{size}\r\n{WORLD}\r\n").into_bytes();
    let size = format!("{:x}", WORLD.len());
    let long_size = format!("{size:0>17}");
    let cases = [
        ("chunk", sized("zz")),
        ("chunk", sized(&long_size)),
        ("chunk", sized(&format!("{size} "))),
        ("chunk", sized(&format!("+{size}"))),
        ("chunk", sized(&format!("0x{size}"))),
        ("line_end", format!("{size}\n{WORLD}\r\n").into_bytes()),
        ("line_end", b"0\r\nX: 1\n\r\n".to_vec()),
    ];
    for (done, (cause, then)) in cases.iter().enumerate() {
        let mut client = gateway.chat("Connection: close\r\n", STREAM_CHAT);
        let (mut connection, _) = engine.request();
        connection.send(&[STREAM_HEAD, &chunk(HELLO), then].concat());
        let answer = client.answer();
        assert_eq!(answer.text(), HELLO, "{then:?}");
        assert!(!answer.complete, "{then:?}");
        connection.assert_closed_by_gateway();
        let told = cases[..=done].iter().filter(|(other, _)| other == cause).count();
        gateway.await_metric(&faults(cause, told));
        let record = &gateway.await_records(done + 1)[done];
        assert_eq!(record["end"], "upstream_error", "{record}");
        assert_eq!(record["error_type"], "upstream_protocol", "{record}");
        assert_eq!(record["usage"]["source"], "counted", "{record}");
        assert_eq!(record["usage"]["output_tokens"], 2, "{record}");
    }
    // A chunk that is longer than it says: its data passes as far as its size goes.
    let mut client = gateway.chat("Connection: close\r\n", STREAM_CHAT);
    engine.answer_once(
        &[STREAM_HEAD, &chunk(HELLO), &chunk(WORLD)[..], b"\r\n", &chunk(STOP), &chunk(DONE)]
            .concat(),
    );
    let answer = client.answer();
    assert_eq!((answer.text(), answer.complete), ([HELLO, WORLD].concat().as_str(), false));
}

#[test]
fn interim_answers_reach_the_client_at_once_and_before_the_final_one() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    let mut client = gateway.chat("", CHAT);
    let (mut connection, _) = engine.request();
    connection.send(
        b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\nlink: </b>\r\n\
          Connection: X-Private\r\nX-Private: 1\r\n\r\n",
    );
    let hints = client.head();
    assert_eq!(hints.first_line, "HTTP/1.1 103 Early Hints");
    let of = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    assert_eq!(hints.headers, [of("link", "</a>"), of("link", "</b>")]);
    // With the final answer in one piece.
    let processing = b"HTTP/1.1 102 Processing\r\n\r\n".as_slice();
    connection.send(&[processing, &json_answer(CHAT_ANSWER)].concat());
    assert_eq!(client.head().first_line, "HTTP/1.1 102 Processing");
    assert_eq!(client.answer().text(), CHAT_ANSWER);
    // Both connections are as good as before.
    client.send(&post("/v1/chat/completions", "", STREAM_CHAT));
    connection.request();
    connection.send(processing);
    assert_eq!(client.head().status(), 102);
    connection.send(&crate::http::stream_answer(&[HELLO, STOP, DONE]));
    assert_eq!(client.answer().text(), [HELLO, STOP, DONE].concat());
    for record in gateway.records() {
        assert_eq!((&record["status"], &record["end"]), (&200.into(), &"complete".into()));
    }
}

#[test]
fn eight_interim_answers_pass_and_no_more() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    let mut client = gateway.chat("", CHAT);
    let hints: String =
        (0..100).map(|at| format!("HTTP/1.1 103 Early Hints\r\nAt: {at}\r\n\r\n")).collect();
    engine.answer_once(&[hints.as_bytes(), &json_answer(CHAT_ANSWER)].concat());
    for at in 0..8 {
        assert_eq!(client.head().header("at"), Some(at.to_string().as_str()));
    }
    assert_eq!(client.answer().text(), CHAT_ANSWER);
}

#[test]
fn interim_answers_of_pipelined_requests_stay_with_their_own() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    let one = post("/v1/chat/completions", "", CHAT);
    let mut client = Client::saying(gateway.address(), &[one.as_slice(), &one].concat());
    let (mut connection, _) = engine.request();
    for body in ["{\"first\":1}", "{\"second\":2}"] {
        connection
            .send(&[b"HTTP/1.1 103 Early Hints\r\n\r\n", json_answer(body).as_slice()].concat());
        assert_eq!(client.head().status(), 103);
        assert_eq!(client.answer().text(), body);
        if body.contains("first") {
            connection.request();
        }
    }
}

#[test]
fn a_client_is_told_to_continue_once_and_by_us() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    let whole = post("/v1/chat/completions", "Expect: 100-continue\r\n", CHAT);
    let (head, body) = whole.split_at(whole.len() - CHAT.len());
    let mut client = Client::saying(gateway.address(), head);
    assert_eq!(client.head().status(), 100);
    client.send(body);
    let before = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\n\r\n".as_bytes();
    let got = engine.answer_once(&[before, &json_answer(CHAT_ANSWER)].concat());
    assert_eq!(got.header("expect"), None);
    assert_eq!(client.head().status(), 103);
    assert_eq!(client.answer().text(), CHAT_ANSWER);
}

#[test]
fn a_client_of_http_1_0_gets_no_interim_answer() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    let request = post("/v1/chat/completions", "", CHAT);
    let request = String::from_utf8(request).expect("text").replace("HTTP/1.1", "HTTP/1.0");
    let mut client = Client::saying(gateway.address(), request.as_bytes());
    let hints = b"HTTP/1.1 103 Early Hints\r\n\r\n".as_slice();
    engine.answer_once(&[hints, &json_answer(CHAT_ANSWER)].concat());
    let answer = client.answer();
    assert_eq!((answer.status(), answer.text()), (200, CHAT_ANSWER));
}

#[test]
fn an_engine_that_never_read_its_request_costs_nothing() {
    let engine = Engine::start_with_small_buffers();
    let gateway = Setup::before(&engine)
        .upstream("dialect: openai")
        .with("limits: {upstream_head_timeout_seconds: 0.3}")
        .start();
    let large = format!(r#"{{"model":"gpt-4o-mini","pad":"{}"}}"#, "x".repeat(16 << 20));
    let mut client = gateway.chat("", large);
    let _connection = engine.accept();
    let answer = client.answer();
    assert_eq!(answer.status(), 504);
    assert_eq!(answer.json()["error"]["code"], "upstream_timeout");
    gateway.await_metric("taximeter_void_reason=\"not_sent\"} 1");
    let record = &await_unused(&gateway, 1, "upstream_stalled", "upstream_timeout")[0];
    assert_eq!(record["status"], 504, "{record}");
}

#[test]
fn a_kept_connection_that_closes_under_a_request_is_replaced_if_nothing_of_a_body_was_taken() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    let models = bare("GET", "/v1/models", "");
    let mut client = Client::saying(gateway.address(), &models);
    let (mut kept, _) = engine.request();
    kept.send(&json_answer("{}"));
    assert_eq!(client.answer().status(), 200);
    client.send(&models);
    kept.request();
    drop(kept);
    let (mut kept, again) = engine.request();
    assert_eq!(again.first_line, "GET /v1/models HTTP/1.1");
    kept.send(&json_answer("{}"));
    assert_eq!(client.answer().status(), 200);
    // With a body, part of an answer, or on a fresh connection: the engine may have worked.
    client.send(&post("/v1/chat/completions", "", CHAT));
    kept.request();
    drop(kept);
    assert_eq!(client.answer().status(), 502);
    client.send(&models);
    drop(engine.request());
    assert_eq!(client.answer().status(), 502);
    client.send(&models);
    let (mut kept, _) = engine.request();
    kept.send(&json_answer("{}"));
    assert_eq!(client.answer().status(), 200);
    client.send(&models);
    kept.request();
    kept.send(b"HTTP/1.1 200");
    drop(kept);
    assert_eq!(client.answer().status(), 502);
    engine.assert_untouched();
    assert_eq!(gateway.record()["error_type"], "upstream_reset");
}
