//! Who ends an answer, and how: what none of the plainer tests has.

use std::sync::mpsc::channel;
use std::time::Duration;

use serde_json::Value;

use crate::engine::{Connection, Engine};
use crate::fixtures::{
    CHAT, CHAT_ANSWER, DONE, HELLO, ROLE, STOP, STREAM_CHAT, STREAM_CHAT_WITH_USAGE, USAGE, WORLD,
    of_too_many_parts,
};
use crate::gateway::{Gateway, Setup};
use crate::http::{LAST_CHUNK, answer, chunk, chunks, json_answer, post, stream_answer};
use crate::unused::await_unused;

const DRAINED: &str = "taximeter_answers_left_total{taximeter_kind=\"drained\"}";

fn draining(engine: &Engine) -> Gateway {
    Setup::before(engine).upstream("dialect: openai, on_client_left: drain").start()
}

/// The engine's side of a stream that its client left after `HELLO`: the `nth` to be drained.
fn left(gateway: &Gateway, engine: &Engine, body: &str, nth: usize) -> Connection {
    let (client, connection) = gateway.streaming(engine, body, &[HELLO]);
    drop(client);
    gateway.await_metric(&format!("{DRAINED} {nth}"));
    connection
}

#[test]
fn a_drained_stream_reports_its_usage_although_the_client_has_left() {
    let engine = Engine::start();
    let gateway = draining(&engine);
    for (turn, body) in (1..).zip([STREAM_CHAT, STREAM_CHAT_WITH_USAGE]) {
        let mut connection = left(&gateway, &engine, body, turn);
        connection.send(&chunks(&[WORLD, STOP, USAGE, DONE]));
        connection.send(LAST_CHUNK);
        let record = &gateway.await_records(turn)[turn - 1];
        assert_eq!(record["end"], "client_left", "{record}");
        assert_eq!(record["usage"]["source"], "reported", "{record}");
        assert_eq!(record["usage"]["output_tokens"], 100, "{record}");
        assert_eq!(record["timing"]["output_chunks"], 1, "what the client was sent: {record}");
    }
}

#[test]
fn a_drained_stream_without_usage_is_counted_up_to_what_was_sent() {
    let engine = Engine::start();
    let gateway = draining(&engine);
    let mut connection = left(&gateway, &engine, STREAM_CHAT, 1);
    connection.send(&chunks(&[WORLD, WORLD, STOP, DONE]));
    connection.send(LAST_CHUNK);
    let record = &gateway.await_records(1)[0];
    assert_eq!(record["end"], "client_left", "{record}");
    assert_eq!(record["usage"]["source"], "counted", "{record}");
    assert_eq!(record["usage"]["output_tokens"], 2, "{record}");
}

#[test]
fn no_more_than_64_streams_are_drained_at_once() {
    const CLIENTS: usize = 70;
    let engine = Engine::start();
    let gateway = draining(&engine);
    let begin = |_| gateway.streaming(&engine, STREAM_CHAT, &[HELLO]);
    let (clients, connections): (Vec<_>, Vec<_>) = (0..CLIENTS).map(begin).unzip();
    drop(clients);
    // Those beyond the limit are settled at once, all others when they end.
    gateway.await_metric(&format!("{DRAINED} 64"));
    gateway.await_records(CLIENTS - 64);
    for mut connection in connections {
        // A cancelled one has gone.
        let _ = connection.try_send(&chunks(&[STOP, USAGE, DONE]));
        let _ = connection.try_send(LAST_CHUNK);
    }
    let records = gateway.await_records(CLIENTS);
    let reported = records.iter().filter(|record| record["usage"]["source"] == "reported");
    assert_eq!(reported.count(), 64);
    assert!(records.iter().all(|record| record["end"] == "client_left"), "{records:#?}");
}

/// An engine may go on for ever: half a minute of it is read, whatever it sends.
#[test]
fn a_drained_stream_that_does_not_end_is_cancelled() {
    const PACE: Duration = Duration::from_millis(100);
    const EVENTS_MAX: u32 = 1_200;
    let engine = Engine::start();
    let gateway = draining(&engine);
    let mut connection = left(&gateway, &engine, STREAM_CHAT, 1);
    let (_sender, nothing) = channel::<()>();
    let mut sent = 0..EVENTS_MAX;
    while sent.next().is_some() && connection.try_send(&chunk(WORLD)).is_ok() {
        let _ = nothing.recv_timeout(PACE);
    }
    assert!(!sent.is_empty(), "the gateway reads for ever");
    let record = &gateway.await_records(1)[0];
    assert_eq!(record["end"], "client_left", "{record}");
    assert_eq!(record["usage"]["output_tokens"], 2, "what the client was sent: {record}");
}

#[test]
fn a_drained_stream_that_breaks_is_still_one_that_was_left() {
    let engine = Engine::start();
    let gateway = draining(&engine);
    let connection = left(&gateway, &engine, STREAM_CHAT, 1);
    connection.reset();
    let record = &gateway.await_records(1)[0];
    assert_eq!(record["end"], "client_left", "{record}");
    assert_eq!(record["usage"]["output_tokens"], 2, "{record}");
}

#[test]
fn streams_being_drained_end_with_the_gateway() {
    let engine = Engine::start();
    let mut gateway = draining(&engine);
    let _connection = left(&gateway, &engine, STREAM_CHAT, 1);
    gateway.terminate();
    let (status, log) = gateway.exit();
    assert_eq!(status.code(), Some(0), "{log:#?}");
    let records = crate::gateway::records(&gateway.data_dir());
    assert_eq!(records.len(), 1, "{log:#?}");
    assert_eq!(records[0]["end"], "client_left", "{records:?}");
    assert_eq!(records[0]["usage"]["output_tokens"], 2, "{records:?}");
}

#[test]
fn when_the_end_mark_and_the_leaving_meet_there_is_one_record() {
    const MEETINGS: usize = 20;
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    for _ in 0..MEETINGS {
        let (client, mut connection) = gateway.streaming(&engine, STREAM_CHAT, &[HELLO]);
        let leaving = std::thread::spawn(move || drop(client));
        let _ = connection.try_send(&chunks(&[STOP, USAGE, DONE]));
        leaving.join().expect("left");
    }
    for record in gateway.await_records(MEETINGS) {
        let (end, source) = (&record["end"], &record["usage"]["source"]);
        let output = &record["usage"]["output_tokens"];
        match end.as_str() {
            Some("complete") => assert_eq!((source, output), (&"reported".into(), &100.into())),
            Some("client_left") => assert!(source == "counted" && output == 2, "{record}"),
            _ => panic!("{record}"),
        }
    }
}

#[test]
fn a_client_that_leaves_an_answer_half_sent_owes_an_unknown_output() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    let mut client = gateway.chat("", CHAT);
    let (mut connection, _) = engine.request();
    connection.send(
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n",
    );
    let (half, _) = CHAT_ANSWER.split_at(200);
    connection.send(&chunk(half));
    client.head();
    client.expect(half);
    drop(client);
    connection.assert_closed_by_gateway();
    let record = &gateway.await_records(1)[0];
    assert_eq!(record["end"], "client_left", "{record}");
    assert_eq!(record["usage"]["output_tokens"], Value::Null, "{record}");
    assert!(record["usage"]["input_tokens"].as_u64() > Some(0), "{record}");
}

#[test]
fn an_error_that_reports_usage_is_on_the_ledger() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    let mut client = gateway.chat("", CHAT);
    let body = "{\"error\":{\"code\":\"overloaded\"},\"usage\":{\"prompt_tokens\":7,\
                \"completion_tokens\":3}}";
    engine.answer_once(&answer("503 Service Unavailable", "application/json", body));
    assert_eq!(client.answer().text(), body);
    let record = gateway.record();
    assert_eq!(record["end"], "upstream_refused");
    assert_eq!(record["usage"]["output_tokens"], 3);
}

#[test]
fn a_protocol_that_nobody_asked_to_switch_to_is_a_502() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    let mut client = gateway.chat("", CHAT);
    engine.answer_once(
        b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: h2c\r\n\r\n",
    );
    let answer = client.answer();
    assert_eq!(answer.status(), 502);
    assert_eq!(answer.json()["error"]["code"], "upstream_protocol");
    await_unused(&gateway, 1, "upstream_error", "upstream_refused");
}

#[test]
fn a_head_that_is_too_large_is_a_502() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    let mut client = gateway.chat("", CHAT);
    let (mut connection, _) = engine.request();
    // It may give up before it has read it all.
    let _ = connection.try_send(
        format!("HTTP/1.1 200 OK\r\nX-Large: {}\r\n\r\n", "x".repeat(1 << 20)).as_bytes(),
    );
    let answer = client.answer();
    assert_eq!(answer.status(), 502);
    assert_eq!(gateway.await_records(1)[0]["end"], "upstream_error");
}

#[test]
fn a_stream_with_a_bad_chunk_or_without_its_last_is_incomplete_for_the_client_too() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    for then in ["zz\r\n", ""] {
        let (mut client, mut connection) = gateway.streaming(&engine, STREAM_CHAT, &[HELLO]);
        connection.send(then.as_bytes());
        drop(connection);
        let ends = std::iter::from_fn(|| client.next_chunk()).any(|chunk| chunk.is_empty());
        assert!(!ends, "the message ended as if it were whole");
    }
    for record in gateway.await_records(2) {
        assert_eq!(record["end"], "upstream_error", "{record}");
        assert_eq!(record["usage"]["source"], "counted", "{record}");
        assert_eq!(record["usage"]["output_tokens"], 2, "{record}");
    }
}

#[test]
fn an_answer_that_is_no_json_passes_and_its_output_is_unknown() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    for (content_type, body) in
        [("text/html", "<html>busy</html>"), ("text/plain", "busy"), ("application/json", "busy")]
    {
        let mut client = gateway.chat("Connection: close\r\n", CHAT);
        engine.answer_once(&answer("200 OK", content_type, body));
        assert_eq!(client.answer().text(), body);
    }
    for record in gateway.records() {
        assert_eq!(record["usage"]["source"], "unknown", "{record}");
        assert_eq!(record["usage"]["output_tokens"], Value::Null, "{record}");
        assert!(record["usage"]["input_tokens"].as_u64() > Some(0), "{record}");
    }
}

#[test]
fn json_that_calls_itself_a_stream_is_read_for_what_it_is() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    let mut client = gateway.chat("", CHAT);
    engine.answer_once(&answer("200 OK", "text/event-stream", CHAT_ANSWER));
    assert_eq!(client.answer().text(), CHAT_ANSWER);
    assert_eq!(gateway.record()["usage"]["output_tokens"], 100);
    gateway.await_metric("taximeter_meter_oddities_total{taximeter_kind=\"type_mismatch\"} 1");
}

#[test]
fn bytes_that_are_no_text_pass_and_do_not_disturb() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    let odd = [
        b"data: {\"choices\":[{\"delta\":{\"content\":\"".as_slice(),
        b"a\xff\xfe\0b\"}}]}\r",
        b"\n\r\n",
    ];
    let mut client = gateway.chat("", STREAM_CHAT_WITH_USAGE);
    let events: Vec<&[u8]> =
        odd.into_iter().chain([STOP, USAGE, DONE].map(str::as_bytes)).collect();
    engine.answer_once(&stream_answer(&events));
    assert_eq!(client.answer().body, events.concat());
    let record = gateway.record();
    assert_eq!(record["end"], "complete");
    assert_eq!(record["usage"]["output_tokens"], 100);
}

#[test]
fn choices_side_by_side_are_added_up_although_one_never_finishes() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    let of = |index: u8, event: &str| event.replace("\"index\":0", &format!("\"index\":{index}"));
    let events = [
        of(0, ROLE),
        of(1, ROLE),
        of(1, HELLO),
        of(0, HELLO),
        of(1, WORLD),
        of(0, WORLD),
        of(1, STOP),
    ];
    let mut client = gateway.chat("", STREAM_CHAT);
    engine.answer_once(&stream_answer(&events));
    assert_eq!(client.answer().text(), events.concat());
    let record = gateway.record();
    assert_eq!(record["usage"]["source"], "counted");
    assert_eq!(record["usage"]["output_tokens"], 6);
    assert_eq!(record["timing"]["output_chunks"], 4);
    assert_eq!(record["finish_reasons"], serde_json::json!(["stop"]));
}

#[test]
fn each_oddity_of_a_stream_passes_and_is_counted_by_its_kind() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    let long = of_too_many_parts(HELLO);
    let less = USAGE.replace("1000", "900").replace("1100", "1000");
    let wrong = USAGE.replace(r#""completion_tokens":100"#, r#""completion_tokens":-1"#);
    let events =
        [HELLO, "data: {oops\n\n", &long, USAGE, &wrong, &less, STOP, DONE, HELLO].concat();
    let mut client = gateway.chat("Connection: close\r\n", STREAM_CHAT_WITH_USAGE);
    engine.answer_once(&stream_answer(&[&events]));
    assert_eq!(client.answer().text(), events);
    let usage = &gateway.record()["usage"];
    assert_eq!([&usage["input_tokens"], &usage["output_tokens"]], [900, 100]);
    for kind in ["not_json", "line_too_long", "usage_invalid", "usage_fell", "after_done"] {
        let line = format!("taximeter_meter_oddities_total{{taximeter_kind=\"{kind}\"}} 1");
        gateway.await_metric(&line);
    }
}

#[test]
fn trailers_reach_who_says_that_it_takes_them() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    let close = "Connection: close\r\n";
    for (asks, behind) in [("TE: trailers\r\n", "X-Checksum: 1\r\n"), ("", "")] {
        let mut client = gateway.chat(&format!("{close}{asks}"), STREAM_CHAT_WITH_USAGE);
        let (mut connection, got) = engine.request();
        assert_eq!(got.header("te"), None);
        connection.send(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTrailer: X-Checksum\r\n\
              Transfer-Encoding: chunked\r\n\r\n",
        );
        connection.send(&chunks(&[HELLO, STOP, USAGE, DONE]));
        connection.send(b"0\r\nX-Checksum: 1\r\n\r\n");
        let heard = client.all();
        let end = format!("\r\n0\r\n{behind}\r\n").to_lowercase();
        assert!(heard.to_lowercase().ends_with(&end), "{asks:?}: {heard}");
    }
}

#[test]
fn trailers_do_not_disturb_the_answer() {
    let engine = Engine::start();
    let gateway = Setup::before(&engine).upstream("dialect: openai").keeping_connections().start();
    let mut client = gateway.chat("", STREAM_CHAT_WITH_USAGE);
    let mut connection = engine.begin_stream();
    connection.send(&chunks(&[HELLO, STOP, USAGE, DONE]));
    connection.send(b"0\r\nX-Checksum: 1\r\n\r\n");
    assert_eq!(client.answer().text(), [HELLO, STOP, USAGE, DONE].concat());
    assert_eq!(gateway.record()["usage"]["output_tokens"], 100);
    // Both connections are as good as before.
    client.send(&post("/v1/chat/completions", "", CHAT));
    connection.request();
    connection.send(&json_answer(CHAT_ANSWER));
    assert_eq!(client.answer().text(), CHAT_ANSWER);
}
