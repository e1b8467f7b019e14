//! The engine refuses, breaks or lies: the client learns of it as if it had asked the engine
//! itself.

use crate::client::Client;
use crate::engine::Engine;
use crate::fixtures::{
    CHAT, CHAT_ANSWER, DONE, HELLO, ROLE, STOP, STREAM_CHAT, STREAM_CHAT_WITH_USAGE, USAGE, WORLD,
};
use crate::gateway::{Gateway, Setup};
use crate::http::{LAST_CHUNK, answer, chunk, json_answer, post, stream_answer};
use crate::unused::{assert_unused, await_unused};

#[test]
fn errors_of_the_engine_reach_the_client_byte_for_byte_and_cost_nothing() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    let cases = [
        (
            "400 Bad Request",
            "application/json",
            "{ \"error\" : {\"message\":\"no\",\"code\":400} }\n",
        ),
        ("404 Not Found", "application/json", r#"{"detail":"Not Found"}"#),
        ("422 Unprocessable Entity", "application/json", "[]"),
        ("429 Too Many Requests", "application/json", r#"{"error":{"type":"tokens"}}"#),
        ("500 Internal Server Error", "text/plain; charset=utf-8", "Internal Server Error"),
        ("503 Service Unavailable", "text/html", "<html>nginx</html>"),
        ("529 Overloaded", "application/json", ""),
    ];
    for (status, content_type, body) in cases {
        for request in [CHAT, STREAM_CHAT] {
            let mut client = gateway.chat("", request);
            engine.answer_once(&answer(status, content_type, body));
            let answer = client.answer();
            assert!(answer.first_line.ends_with(status), "{answer:?}");
            assert_eq!(answer.header("content-type"), Some(content_type));
            assert_eq!(answer.text(), body);
        }
    }
    gateway.await_voids("upstream_refused", 2 * cases.len());
    let records = gateway.await_records(2 * cases.len());
    for (record, (status, ..)) in records.iter().zip(cases.iter().flat_map(|case| [case, case])) {
        let code = status.split(' ').next().expect("a code");
        assert_eq!(
            (&record["end"], &record["error_type"]),
            (&"upstream_refused".into(), &code.into())
        );
        assert_eq!(record["status"].to_string(), code, "{record}");
        assert_unused(record);
    }
}

#[test]
fn a_redirect_is_passed_on_and_never_followed() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    let mut client = gateway.chat("", CHAT);
    engine.answer_once(
        b"HTTP/1.1 307 Temporary Redirect\r\nLocation: http://elsewhere.invalid/\r\n\
          Content-Length: 0\r\n\r\n",
    );
    let answer = client.answer();
    assert_eq!(answer.status(), 307);
    assert_eq!(answer.header("location"), Some("http://elsewhere.invalid/"));
    engine.assert_untouched();
    gateway.await_voids("upstream_refused", 1);
    assert_eq!(await_unused(&gateway, 1, "upstream_refused", "307")[0]["status"], 307);
}

#[test]
fn an_engine_that_refuses_our_credential_is_a_502_without_its_text() {
    let engine = Engine::start();
    let gateway = Setup::before(&engine).upstream("dialect: openai, credential: sk-ours").start();
    let mut client = gateway.chat("", CHAT);
    engine.answer_once(&answer(
        "401 Unauthorized",
        "application/json",
        r#"{"error":"sk-ours is wrong"}"#,
    ));
    let answer = client.answer();
    assert_eq!(answer.status(), 502);
    assert_eq!(answer.json()["error"]["code"], "upstream_auth");
    assert!(!answer.text().contains("sk-ours"), "{answer:?}");
    gateway.await_voids("upstream_auth", 1);
    let record = &await_unused(&gateway, 1, "upstream_refused", "401")[0];
    assert_eq!(record["status"], 502, "{record}");
    assert!(!record.to_string().contains("sk-ours"), "{record}");
    let event = gateway.await_event("upstream_refused_credential");
    assert_eq!((&event["level"], &event["upstream"]), (&"critical".into(), &"engine".into()));
    assert!(!event.to_string().contains("sk-ours"), "{event}");
}

#[test]
fn an_engine_that_closes_without_an_answer_is_a_502() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    let mut client = gateway.chat("", CHAT);
    let (connection, _) = engine.request();
    connection.reset();
    let answer = client.answer();
    assert_eq!(answer.status(), 502);
    assert_eq!(answer.json()["error"]["code"], "upstream_reset");
    engine.assert_untouched();
    let record = &gateway.await_records(1)[0];
    assert_eq!(record["end"], "upstream_error");
}

#[test]
fn an_engine_that_does_not_speak_http_is_a_502() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    for nonsense in [
        &b"220 mail.example ESMTP\r\n"[..],
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nContent-Length: two\r\n\r\n{}",
    ] {
        let mut client = gateway.chat("Connection: close\r\n", CHAT);
        let (mut connection, _) = engine.request();
        connection.send(nonsense);
        let answer = client.answer();
        assert_eq!(answer.status(), 502, "{:?}", String::from_utf8_lossy(nonsense));
        assert_eq!(answer.json()["error"]["code"], "upstream_protocol");
    }
}

#[test]
fn an_engine_that_is_silent_before_its_answer_is_a_504() {
    let engine = Engine::start();
    let gateway = Setup::before(&engine)
        .upstream("dialect: openai")
        .with("limits: {upstream_head_timeout_seconds: 0.3}")
        .start();
    let mut client = gateway.chat("", CHAT);
    let (connection, _) = engine.request();
    let answer = client.answer();
    assert_eq!(answer.status(), 504);
    assert_eq!(answer.json()["error"]["code"], "upstream_timeout");
    connection.assert_closed_by_gateway();
    let record = &gateway.await_records(1)[0];
    assert_eq!(record["usage"]["output_tokens"], 0, "{record}");
    assert_eq!(record["usage"]["source"], "counted", "{record}");
}

#[test]
fn a_stream_that_falls_silent_is_cut_with_an_error_event_and_without_its_end() {
    let engine = Engine::start();
    let gateway = Setup::before(&engine)
        .upstream("dialect: openai")
        .with("limits: {upstream_idle_timeout_seconds: 0.3}")
        .start();
    let mut client = gateway.chat("", STREAM_CHAT);
    let mut connection = engine.begin_stream();
    connection.send(&chunk(HELLO));
    let answer = client.answer();
    let after = answer.text().strip_prefix(HELLO).expect("what came before the silence");
    let event = after.strip_prefix("data: ").expect("an event").trim_end();
    let event: serde_json::Value = serde_json::from_str(event).expect("JSON");
    assert_eq!(event["error"]["code"], "upstream_timeout");
    connection.assert_closed_by_gateway();
    let record = gateway.record();
    assert_eq!(record["end"], "upstream_stalled");
    assert_eq!(record["usage"]["source"], "counted");
}

/// What reached to the length that the client was told would look like the end.
#[test]
fn a_stream_of_a_told_length_that_falls_silent_ends_with_an_error_event_where_that_leaves_a_cut() {
    let engine = Engine::start();
    let gateway = Setup::before(&engine)
        .upstream("dialect: openai")
        .with("limits: {upstream_idle_timeout_seconds: 0.3}")
        .start();
    for (asked, content_type, lacking, has_event) in [
        (STREAM_CHAT_WITH_USAGE, "text/event-stream", 1000, true),
        (STREAM_CHAT_WITH_USAGE, "text/event-stream", 20, false),
        (STREAM_CHAT_WITH_USAGE, "application/json", 1000, true),
        (STREAM_CHAT_WITH_USAGE, "application/json", 20, false),
        // Something may be taken out of it, so the client is told no length.
        (STREAM_CHAT, "text/event-stream", 20, true),
    ] {
        let case = format!("{content_type}, {lacking} bytes lacking");
        let mut client = gateway.chat("", asked);
        let (mut connection, _) = engine.request();
        let whole = answer("200 OK", content_type, format!("{HELLO}{}", " ".repeat(lacking)));
        connection.send(&whole[..whole.len() - lacking]);
        let answer = client.answer();
        assert!(!answer.complete, "{case}: {answer:?}");
        let after = answer.text().strip_prefix(HELLO).expect("what came before the silence");
        let event = after.strip_prefix("data: ").map(str::trim_end).map(serde_json::from_str);
        let event: Option<serde_json::Value> = event.transpose().expect("JSON");
        assert_eq!(event.is_some(), has_event, "{case}: {after}");
        assert!(event.is_none_or(|event| event["error"]["code"] == "upstream_timeout"), "{case}");
    }
    for record in gateway.await_records(5) {
        assert_eq!(
            (&record["end"], &record["usage"]["output_tokens"]),
            (&"upstream_stalled".into(), &2.into())
        );
    }
}

#[test]
fn a_stream_that_is_called_json_and_tells_its_length_passes_as_it_comes() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    let mut client = gateway.chat("", STREAM_CHAT_WITH_USAGE);
    let (mut connection, _) = engine.request();
    let whole = json_answer([HELLO, WORLD, STOP, USAGE, DONE].concat());
    let (first, rest) = whole.split_at(whole.len() - [WORLD, STOP, USAGE, DONE].concat().len());
    connection.send(first);
    client.wait_for_byte().expect("what has come of it");
    connection.send(rest);
    assert_eq!(client.answer().text(), [HELLO, WORLD, STOP, USAGE, DONE].concat());
    let record = gateway.record();
    assert_eq!(
        (&record["end"], &record["timing"]["output_chunks"]),
        (&"complete".into(), &2.into())
    );
}

#[test]
fn a_stream_that_is_reset_is_an_incomplete_message_for_the_client_too() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    let (mut client, connection) = gateway.streaming(&engine, STREAM_CHAT, &[ROLE, HELLO, WORLD]);
    connection.reset();
    let mut rest = Vec::new();
    while let Some(more) = client.next_chunk() {
        assert!(!more.is_empty(), "the message ended as if it were whole");
        rest.extend(more);
    }
    assert!(!String::from_utf8_lossy(&rest).contains("[DONE]"));
    let record = gateway.record();
    assert_eq!(record["end"], "upstream_error");
    assert_eq!(record["usage"]["source"], "counted");
    assert_eq!(record["usage"]["output_tokens"], 3);
}

#[test]
fn a_stream_without_its_end_mark_is_truncated() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    let mut client = gateway.chat("", STREAM_CHAT);
    engine.answer_once(&stream_answer(&[ROLE, HELLO]));
    assert_eq!(client.answer().text(), [ROLE, HELLO].concat());
    let record = gateway.record();
    assert_eq!(record["end"], "truncated");
    assert_eq!(record["usage"]["source"], "counted");
}

#[test]
fn a_stream_that_finishes_and_forgets_its_end_mark_is_complete() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    let mut client = gateway.chat("", STREAM_CHAT_WITH_USAGE);
    engine.answer_once(&stream_answer(&[HELLO, STOP, USAGE]));
    assert_eq!(client.answer().text(), [HELLO, STOP, USAGE].concat());
    let record = gateway.record();
    assert_eq!(record["end"], "complete");
    assert_eq!(record["usage"]["output_tokens"], 100);
}

#[test]
fn an_error_inside_a_stream_passes_and_what_came_before_counts() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    let error = "data: {\"error\":{\"message\":\"out of memory\",\"type\":\"server_error\",\
                 \"code\":500}}\n\n";
    let mut client = gateway.chat("", STREAM_CHAT);
    engine.answer_once(&stream_answer(&[HELLO, WORLD, error]));
    assert_eq!(client.answer().text(), [HELLO, WORLD, error].concat());
    let record = gateway.record();
    assert_eq!(record["end"], "upstream_error");
    assert_eq!(record["usage"]["output_tokens"], 3);
}

#[test]
fn an_answer_shorter_than_its_length_is_incomplete_for_the_client_too() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    let mut client = gateway.chat("", CHAT);
    let whole = json_answer(CHAT_ANSWER);
    engine.answer_once(&whole[..whole.len() - 20]);
    let answer = client.answer();
    assert!(!answer.complete, "{answer:?}");
    assert_eq!(gateway.record()["end"], "upstream_error");
}

#[test]
fn bytes_beyond_the_length_of_an_answer_are_dropped_and_mean_nothing() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    let mut client = gateway.chat("", CHAT);
    let (mut connection, _) = engine.request();
    connection.send(&[json_answer(CHAT_ANSWER), json_answer("{\"smuggled\":true}")].concat());
    assert_eq!(client.answer().text(), CHAT_ANSWER);
    client.send(&post("/v1/chat/completions", "", CHAT));
    engine.answer_once(&json_answer("{}"));
    assert_eq!(client.answer().text(), "{}");
}

#[test]
fn an_answer_of_unknown_length_ends_with_its_connection() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    let mut client = gateway.chat("", CHAT);
    let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n";
    engine.answer_once(&[head.as_bytes(), CHAT_ANSWER.as_bytes()].concat());
    let answer = client.answer();
    assert_eq!(answer.text(), CHAT_ANSWER);
    assert_eq!(gateway.record()["usage"]["output_tokens"], 100);
}

#[test]
fn an_engine_may_answer_before_it_has_read_the_whole_request() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    let body = format!(r#"{{"model":"gpt-4o-mini","pad":"{}"}}"#, "x".repeat(1 << 20));
    let mut client = Client::connect(gateway.address());
    client.send(&post("/v1/chat/completions", "", &body));
    let mut connection = engine.accept();
    connection.head();
    connection.send(&answer("413 Payload Too Large", "text/plain", "too large"));
    let answer = client.answer();
    assert_eq!((answer.status(), answer.text()), (413, "too large"));
}

#[test]
fn a_kept_connection_that_the_engine_has_closed_is_replaced_without_an_error() {
    let engine = Engine::start();
    let gateway = Setup::before(&engine).upstream("dialect: openai").keeping_connections().start();
    let mut client = gateway.chat("", CHAT);
    let (mut connection, _) = engine.request();
    connection.send(&json_answer(CHAT_ANSWER));
    assert_eq!(client.answer().status(), 200);

    // The gateway keeps the connection and uses it again.
    client.send(&post("/v1/chat/completions", "", CHAT));
    connection.request();
    connection.send(&json_answer(CHAT_ANSWER));
    assert_eq!(client.answer().status(), 200);

    // Closed while idle: noticed before it is used.
    drop(connection);
    client.send(&post("/v1/chat/completions", "", CHAT));
    let (mut connection, _) = engine.request();
    connection.send(&json_answer(CHAT_ANSWER));
    assert_eq!(client.answer().status(), 200);
    assert_eq!(gateway.records().len(), 3);
}

#[test]
fn a_stream_that_calls_itself_json_is_read_for_what_it_is() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    let mut client = gateway.chat("", STREAM_CHAT_WITH_USAGE);
    let body = [HELLO, STOP, USAGE, DONE].concat();
    let (mut connection, _) = engine.request();
    connection.send(
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n",
    );
    connection.send(&chunk(&body));
    connection.send(LAST_CHUNK);
    assert_eq!(client.answer().text(), body);
    assert_eq!(gateway.record()["usage"]["output_tokens"], 100);
}

#[test]
fn a_request_that_takes_too_long_as_a_whole_is_cut_and_says_so() {
    let engine = Engine::start();
    let gateway = Setup::before(&engine)
        .upstream("dialect: openai")
        .with("limits: {request_timeout_seconds: 0.4}")
        .start();
    let mut client = gateway.chat("", STREAM_CHAT);
    let mut connection = engine.begin_stream();
    connection.send(&chunk(HELLO));
    let answer = client.answer();
    assert!(answer.text().contains("\"code\":\"request_timeout\""), "{}", answer.text());
    assert!(!answer.complete);
    connection.assert_closed_by_gateway();
    assert_eq!(gateway.record()["end"], "deadline");
}

#[test]
fn a_request_whose_answer_never_begins_in_time_is_a_504() {
    let engine = Engine::start();
    let gateway = Setup::before(&engine).with("limits: {request_timeout_seconds: 0.3}").start();
    let mut client = gateway.chat("", CHAT);
    let (connection, _) = engine.request();
    let answer = client.answer();
    assert_eq!(
        (answer.status(), answer.json()["error"]["code"].as_str()),
        (504, Some("upstream_timeout"))
    );
    connection.assert_closed_by_gateway();
    assert_eq!(gateway.record()["end"], "deadline");
}
