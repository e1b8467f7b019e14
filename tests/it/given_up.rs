//! Answers that the gateway gives up: however they come, their client can tell a cut from an end, and
//! the ledger has what was used.

use serde_json::Value;

use crate::engine::{Connection, Engine};
use crate::fixtures::{CHAT, CHAT_ANSWER, HELLO, MESSAGE_EVENTS, MESSAGE_STREAM, STREAM_CHAT};
use crate::gateway::{Gateway, Setup, records};
use crate::http::{chunk, chunks, json_answer};

const RESPONSE_STREAM: &str = r#"{"model":"gpt-5.1","stream":true,"input":"Where to?"}"#;
const RESPONSE_EVENTS: [&str; 2] = [
    concat!(
        "event: response.created\n",
        r#"data: {"type":"response.created","sequence_number":0,"response":{"id":"resp_1","#,
        r#""model":"gpt-5.1","status":"in_progress","output":[],"usage":null}}"#,
        "\n\n"
    ),
    concat!(
        "event: response.output_text.delta\n",
        r#"data: {"type":"response.output_text.delta","sequence_number":1,"delta":"Station"}"#,
        "\n\n"
    ),
];

/// How much of a document comes before nothing more does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Come {
    Nothing,
    HalfOfALength,
    HalfInChunks,
}

const HALF: usize = 200;

impl Come {
    fn send(self, connection: &mut Connection) {
        let (half, _) = CHAT_ANSWER.split_at(HALF);
        match self {
            Self::Nothing => {}
            Self::HalfOfALength => {
                let whole = json_answer(CHAT_ANSWER);
                connection.send(&whole[..whole.len() - (CHAT_ANSWER.len() - HALF)]);
            }
            Self::HalfInChunks => {
                connection.send(
                    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\
                      Transfer-Encoding: chunked\r\n\r\n",
                );
                connection.send(&chunk(half));
            }
        }
    }
}

/// A gateway in front of an engine of OpenAI's, with this limit.
fn limited(engine: &Engine, limit: &str) -> Gateway {
    Setup::before(engine).upstream("dialect: openai").with(&format!("limits: {{{limit}}}")).start()
}

/// What an answer says of which half came: the input is counted, of the output nobody knows.
fn assert_half(record: &Value, end: &str) {
    assert_eq!(record["end"], end, "{record}");
    assert!(record["usage"]["input_tokens"].as_u64() > Some(0), "{record}");
    assert_eq!(record["usage"]["output_tokens"], Value::Null, "{record}");
}

#[test]
fn a_stream_of_typed_events_is_given_up_with_an_event_of_their_kind() {
    let engine = Engine::start();
    for (limit, code, end) in [
        ("upstream_idle_timeout_seconds: 0.3", "upstream_timeout", "upstream_stalled"),
        ("request_timeout_seconds: 0.5", "request_timeout", "deadline"),
    ] {
        let gateway = limited(&engine, limit);
        for (route, body, events) in [
            ("/v1/responses", RESPONSE_STREAM, &RESPONSE_EVENTS[..]),
            ("/v1/messages", MESSAGE_STREAM, &MESSAGE_EVENTS[..4]),
        ] {
            let mut client = crate::client::Client::connect(gateway.address());
            client.send(&crate::http::post(route, "", body));
            let mut connection = engine.begin_stream();
            connection.send(&chunks(events));
            let answer = client.answer();
            assert!(!answer.complete, "{route}: {answer:?}");
            let after = answer.text().strip_prefix(&*events.concat()).expect("what had come");
            let event = after.strip_prefix("event: error\ndata: ").expect("an error event");
            let event: Value = serde_json::from_str(event).expect("JSON");
            assert_eq!((&event["type"], &event["code"]), (&"error".into(), &code.into()));
            assert!(event["error"]["message"].is_string(), "{event}");
            connection.assert_closed_by_gateway();
        }
        for record in gateway.await_records(2) {
            assert_eq!(record["end"], end, "{record}");
            assert_eq!(record["usage"]["sources"]["output_tokens"], "counted", "{record}");
            assert!(record["usage"]["output_tokens"].as_u64() > Some(0), "{record}");
        }
    }
}

#[test]
fn a_document_of_which_half_came_in_time_is_cut_there() {
    let engine = Engine::start();
    for (limit, end) in [
        ("upstream_idle_timeout_seconds: 0.3", "upstream_stalled"),
        ("request_timeout_seconds: 0.5", "deadline"),
    ] {
        let gateway = limited(&engine, limit);
        for come in [Come::HalfOfALength, Come::HalfInChunks] {
            let mut client = gateway.chat("", CHAT);
            let (mut connection, _) = engine.request();
            come.send(&mut connection);
            let answer = client.answer();
            assert!(!answer.complete, "{come:?}: {answer:?}");
            assert_eq!((answer.status(), answer.text()), (200, &CHAT_ANSWER[..HALF]), "{come:?}");
            connection.assert_closed_by_gateway();
        }
        gateway.await_records(2).iter().for_each(|record| assert_half(record, end));
    }
}

#[test]
fn a_stream_that_outlasts_the_drain_says_why_it_is_cut() {
    let engine = Engine::start();
    let mut gateway = limited(&engine, "drain_seconds: 0.2");
    let (mut client, _connection) = gateway.streaming(&engine, STREAM_CHAT, &[HELLO]);
    gateway.terminate();
    let event = client.next_chunk().expect("a chunk");
    let event = String::from_utf8(event).expect("UTF-8");
    let event = event.strip_prefix("data: ").expect("an event");
    let event: Value = serde_json::from_str(event).expect("JSON");
    assert_eq!(event["error"]["code"], "draining");
    assert_eq!(client.next_chunk(), None, "it ended as if it were whole");
    assert_eq!(gateway.exit().0.code(), Some(0));
}

#[test]
fn what_has_no_whole_answer_at_the_end_of_a_drain_is_cut_and_settled() {
    for come in [Come::Nothing, Come::HalfOfALength, Come::HalfInChunks] {
        let engine = Engine::start();
        let mut gateway = limited(&engine, "drain_seconds: 0.2");
        let mut client = gateway.chat("", CHAT);
        let (mut connection, _) = engine.request();
        come.send(&mut connection);
        if come == Come::HalfInChunks {
            client.head();
        }
        gateway.terminate();
        let (status, log) = gateway.exit();
        assert_eq!(status.code(), Some(0), "{come:?}: {log:#?}");
        let records = records(&gateway.data_dir());
        assert_eq!(records.len(), 1, "{come:?}: {log:#?}");
        assert_eq!(records[0]["end"], "shutdown", "{come:?}");
        assert!(records[0]["usage"]["input_tokens"].as_u64() > Some(0), "{come:?}: {records:#?}");
        connection.assert_closed_by_gateway();
    }
}
