//! Answers that come compressed: they pass as they came and are metered all the same.

use std::io::Write;

use crate::client::Client;
use crate::engine::Engine;
use crate::fixtures::{
    CHAT, CHAT_ANSWER, DONE, HELLO, STOP, STREAM_CHAT, STREAM_CHAT_WITH_USAGE, USAGE, WORLD,
};
use crate::gateway::{Gateway, Setup};
use crate::http::{LAST_CHUNK, chunk};

pub(crate) const CODINGS: [&str; 4] = ["gzip", "deflate", "br", "zstd"];

/// `parts` in this coding, flushed behind each: what can be decoded after which bytes.
fn encoded<P: AsRef<[u8]>>(coding: &str, parts: &[P]) -> Vec<Vec<u8>> {
    fn flushed<W: Write>(
        to: &mut W,
        parts: &[impl AsRef<[u8]>],
        taken: impl Fn(&W) -> usize,
    ) -> Vec<usize> {
        let mut ends = vec![0];
        for part in parts {
            to.write_all(part.as_ref()).expect("encode");
            to.flush().expect("flush");
            ends.push(taken(to));
        }
        ends
    }
    let level = flate2::Compression::default();
    let (body, mut ends) = match coding {
        "gzip" => {
            let mut to = flate2::write::GzEncoder::new(Vec::new(), level);
            let ends = flushed(&mut to, parts, |to| to.get_ref().len());
            (to.finish().expect("the end"), ends)
        }
        "deflate" => {
            let mut to = flate2::write::ZlibEncoder::new(Vec::new(), level);
            let ends = flushed(&mut to, parts, |to| to.get_ref().len());
            (to.finish().expect("the end"), ends)
        }
        "br" => {
            let mut to = brotli::CompressorWriter::new(Vec::new(), 4096, 5, 22);
            let ends = flushed(&mut to, parts, |to| to.get_ref().len());
            (to.into_inner(), ends)
        }
        "zstd" => {
            let mut to = zstd::stream::write::Encoder::new(Vec::new(), 3).expect("an encoder");
            let ends = flushed(&mut to, parts, |to| to.get_ref().len());
            (to.finish().expect("the end"), ends)
        }
        other => panic!("no encoder for {other}"),
    };
    ends.push(body.len());
    ends.windows(2).map(|pair| body[pair[0]..pair[1]].to_vec()).collect()
}

/// `text` in this coding.
pub(crate) fn whole(coding: &str, text: impl AsRef<[u8]>) -> Vec<u8> {
    encoded(coding, &[text]).concat()
}

/// An answer with a length.
fn answer(coding: &str, content_type: &str, body: &[u8]) -> Vec<u8> {
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: {content_type}\r\nContent-Encoding: {coding}\r\n\
         Content-Length: {}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

fn stream_head(coding: &str) -> Vec<u8> {
    format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Encoding: {coding}\r\n\
         Transfer-Encoding: chunked\r\n\r\n"
    )
    .into_bytes()
}

/// A whole stream: head, one chunk a flush, end.
fn stream_answer(coding: &str, events: &[&str]) -> Vec<u8> {
    let mut bytes = stream_head(coding);
    for flush in encoded(coding, events).iter().filter(|flush| !flush.is_empty()) {
        bytes.extend(chunk(flush));
    }
    bytes.extend(LAST_CHUNK);
    bytes
}

/// Reads chunks until all of `expected` has come.
fn expect(client: &mut Client, expected: &[u8]) {
    let mut came = Vec::new();
    while came.len() < expected.len() {
        came.extend(client.next_chunk().filter(|chunk| !chunk.is_empty()).expect("a chunk"));
    }
    assert_eq!(came, expected);
}

#[test]
fn an_encoded_answer_passes_as_it_came_and_is_metered() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    for coding in CODINGS {
        let body = whole(coding, CHAT_ANSWER);
        let mut client = gateway.chat(&format!("Accept-Encoding: {coding}\r\n"), CHAT);
        let request = engine.answer_once(&answer(coding, "application/json", &body));
        assert_eq!(request.header("accept-encoding"), Some(coding));
        let came = client.answer();
        assert_eq!(came.header("content-encoding"), Some(coding));
        assert_eq!(
            came.header("x-taximeter-tokens"),
            Some("input=1000;output=100;cache_read=400"),
            "{coding}"
        );
        assert_eq!(came.body, body, "{coding}");
    }
    for record in gateway.records() {
        assert_eq!(record["usage"]["source"], "reported", "{record}");
        assert_eq!(record["response_model"], "gpt-4o-mini-2024-07-18", "{record}");
        assert_eq!(record["end"], "complete", "{record}");
    }
}

#[test]
fn each_flush_of_an_encoded_stream_passes_at_once_and_is_timed() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    for coding in CODINGS {
        let mut client = gateway.chat(
            &format!("Accept-Encoding: {coding}\r\nConnection: close\r\n"),
            STREAM_CHAT_WITH_USAGE,
        );
        let (mut connection, _) = engine.request();
        connection.send(&stream_head(coding));
        client.head();
        let flushes = encoded(coding, &[HELLO, WORLD, STOP, USAGE, DONE]);
        for flush in flushes.iter().filter(|flush| !flush.is_empty()) {
            connection.send(&chunk(flush));
            expect(&mut client, flush);
        }
        connection.send(LAST_CHUNK);
        assert_eq!(client.next_chunk(), Some(Vec::new()), "{coding}");
    }
    for record in gateway.records() {
        assert_eq!(record["usage"]["source"], "reported", "{record}");
        assert_eq!(record["usage"]["output_tokens"], 100, "{record}");
        assert_eq!(record["timing"]["output_chunks"], 2, "{record}");
        assert_eq!(record["end"], "complete", "{record}");
        let time = |name: &str| record["timing"][name].as_f64().expect("a time");
        assert!(time("time_to_first_token") < time("duration"), "{record}");
    }
}

#[test]
fn an_encoded_stream_that_is_left_is_counted_up_to_what_was_sent() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    for coding in CODINGS {
        let headers = format!("Accept-Encoding: {coding}\r\n");
        let mut client = gateway.chat(&headers, STREAM_CHAT_WITH_USAGE);
        let (mut connection, _) = engine.request();
        connection.send(&stream_head(coding));
        client.head();
        for flush in encoded(coding, &[HELLO, WORLD]).iter().take(2) {
            connection.send(&chunk(flush));
            expect(&mut client, flush);
        }
        drop(client);
        connection.assert_closed_by_gateway();
    }
    for record in gateway.await_records(CODINGS.len()) {
        assert_eq!(record["end"], "client_left", "{record}");
        assert_eq!(record["usage"]["source"], "counted", "{record}");
        // "To the station": three words, three tokens of o200k.
        assert_eq!(record["usage"]["output_tokens"], 3, "{record}");
    }
}

#[test]
fn a_long_encoded_stream_that_is_left_is_counted_to_the_token() {
    const WORDS: usize = 1_500;
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    let mut client = gateway.chat("Accept-Encoding: gzip\r\n", STREAM_CHAT_WITH_USAGE);
    let (mut connection, _) = engine.request();
    connection.send(&stream_head("gzip"));
    client.head();
    let words = HELLO.replace("To the", " station").repeat(WORDS / 3);
    for flush in encoded("gzip", &[words.as_str(); 3]).iter().take(3) {
        connection.send(&chunk(flush));
        expect(&mut client, flush);
    }
    drop(client);
    connection.assert_closed_by_gateway();
    let usage = &gateway.await_records(1)[0]["usage"];
    assert_eq!((&usage["source"], &usage["output_tokens"]), (&"counted".into(), &WORDS.into()));
    assert_eq!(usage["flags"], serde_json::json!(["missing"]));
}

#[test]
fn running_totals_are_read_where_they_cannot_be_taken_out() {
    let engine = Engine::start();
    let gateway =
        Setup::before(&engine).upstream("dialect: vllm, usage: continuous, recount: off").start();
    let usage = r#","usage":{"prompt_tokens":9,"total_tokens":16,"completion_tokens":7}}"#;
    let running = HELLO.replacen("}\n\n", &format!("{usage}\n\n"), 1);
    let mut client = gateway.chat("Accept-Encoding: gzip\r\n", STREAM_CHAT);
    let (mut connection, request) = engine.request();
    assert_eq!(request.header("accept-encoding"), Some("identity"));
    connection.send(&stream_head("gzip"));
    client.head();
    // It encodes all the same.
    let flush = &encoded("gzip", &[&running])[0];
    connection.send(&chunk(flush));
    expect(&mut client, flush);
    drop(client);
    connection.assert_closed_by_gateway();
    let usage = &gateway.await_records(1)[0]["usage"];
    assert_eq!((&usage["source"], &usage["output_tokens"]), (&"reported".into(), &7.into()));
}

#[test]
fn no_coding_is_asked_for_where_something_must_be_taken_out_or_added() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    for (headers, body) in
        [("", STREAM_CHAT), ("X-Taximeter-Receipt: 1\r\n", STREAM_CHAT_WITH_USAGE)]
    {
        let headers = format!("{headers}Accept-Encoding: gzip, br\r\nConnection: close\r\n");
        let mut client = gateway.chat(&headers, body);
        // It encodes all the same: nothing is taken out or added then.
        let encoded = stream_answer("gzip", &[HELLO, WORLD, STOP, USAGE, DONE]);
        let request = engine.answer_once(&encoded);
        assert_eq!(request.header("accept-encoding"), Some("identity"));
        let came = client.answer();
        let sent = super::encoded::encoded("gzip", &[HELLO, WORLD, STOP, USAGE, DONE]).concat();
        assert!(came.complete && came.body == sent, "{came:?}");
    }
    for record in gateway.records() {
        assert_eq!(record["usage"]["source"], "reported", "{record}");
        assert_eq!(record["usage"]["output_tokens"], 100, "{record}");
    }
}

#[test]
fn the_codings_of_the_client_go_on_as_far_as_they_can_be_read() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    for (asked, goes_on) in [
        ("Accept-Encoding: gzip, deflate, br;q=0.9, zstd\r\n", "gzip, deflate, br;q=0.9, zstd"),
        ("Accept-Encoding: gzip, dcb, *;q=0.1\r\n", "gzip"),
        ("Accept-Encoding: *\r\n", "identity"),
        ("", "identity"),
    ] {
        let mut client = gateway.chat(&format!("{asked}Connection: close\r\n"), CHAT);
        let request = engine.answer_once(&crate::http::json_answer(CHAT_ANSWER));
        assert_eq!(request.header("accept-encoding"), Some(goes_on), "{asked}");
        assert_eq!(client.answer().text(), CHAT_ANSWER);
    }
}

#[test]
fn a_damaged_or_unknown_coding_passes_and_its_usage_is_unknown() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    let mut damaged = whole("gzip", [HELLO, WORLD, STOP, USAGE, DONE].concat());
    damaged[20..30].fill(0xff);
    let plain = CHAT_ANSWER.as_bytes().to_vec();
    for (coding, content_type, body) in [
        ("gzip", "text/event-stream", damaged),
        ("br", "application/json", plain.clone()),
        ("compress", "application/json", plain),
    ] {
        let mut client = gateway.chat("Connection: close\r\n", CHAT);
        engine.answer_once(&answer(coding, content_type, &body));
        let came = client.answer();
        assert!(came.complete && came.body == body, "{coding}: {came:?}");
    }
    for record in gateway.records() {
        assert_eq!(record["usage"]["source"], "unknown", "{record}");
        assert_eq!(record["usage"]["output_tokens"], serde_json::Value::Null, "{record}");
        assert!(record["usage"]["input_tokens"].as_u64() > Some(0), "{record}");
        assert_eq!(record["end"], "complete", "{record}");
    }
    gateway.await_metric("taximeter_meter_oddities_total{taximeter_kind=\"decode_stopped\"} 3");
}

#[test]
fn an_answer_that_swells_beyond_the_limit_passes_unread() {
    let engine = Engine::start();
    let gateway = Setup::before(&engine)
        .upstream("dialect: openai")
        .with("limits: {decode_ratio_max: 100}")
        .start();
    let swollen = |blanks: usize| format!("{}{CHAT_ANSWER}", " ".repeat(blanks));
    for (coding, blanks) in [("gzip", 1_000_000), ("gzip", 4_000_000), ("br", 4_000_000)] {
        let body = whole(coding, swollen(blanks));
        let mut client = gateway.chat("Connection: close\r\n", CHAT);
        engine.answer_once(&answer(coding, "application/json", &body));
        assert_eq!(client.answer().body, body);
    }
    let sources: Vec<_> =
        gateway.records().iter().map(|record| record["usage"]["source"].clone()).collect();
    assert_eq!(sources, ["reported", "unknown", "unknown"]);
}

#[test]
fn no_plain_text_is_put_into_an_encoded_stream_that_falls_silent() {
    let engine = Engine::start();
    let gateway = Setup::before(&engine)
        .upstream("dialect: openai")
        .with("limits: {upstream_idle_timeout_seconds: 0.3}")
        .start();
    let mut client = gateway.chat("", STREAM_CHAT_WITH_USAGE);
    let (mut connection, _) = engine.request();
    let first = encoded("zstd", &[HELLO]).remove(0);
    connection.send(&stream_head("zstd"));
    connection.send(&chunk(&first));
    let came = client.answer();
    assert!(!came.complete && came.body == first, "{came:?}");
    let record = gateway.record();
    assert_eq!(record["end"], "upstream_stalled");
    assert_eq!(record["usage"]["output_tokens"], 2);
}
