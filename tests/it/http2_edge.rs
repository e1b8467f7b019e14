//! HTTP/2 requests that are not what they should be, and clients that do not read, frame by frame.

use crate::engine::Engine;
use crate::fixtures::{CHAT, CHAT_ANSWER, HELLO, STREAM_CHAT};
use crate::frames::{
    DATA, END_HEADERS, END_STREAM, END_STREAM_AND_HEADERS, Framer, GOAWAY, HEADERS, RST_STREAM,
    SETTINGS, WINDOW_UPDATE, chat_head, frame, header,
};
use crate::gateway::{Gateway, Setup};
use crate::http::{chunk, json_answer};

const PROTOCOL_ERROR: u32 = 1;
const REFUSED_STREAM: u32 = 7;
/// The setting of how much may be sent on a stream before it is read.
const INITIAL_WINDOW_SIZE: u8 = 4;
/// `:status: 200`, by HPACK's static table.
const STATUS_200: u8 = 0x88;
/// `:status: 400`, by HPACK's static table.
const STATUS_400: u8 = 0x8c;

#[test]
fn heads_that_are_malformed_reach_no_engine_and_are_not_repaired() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    let with = |name: &str, value: &str| [chat_head(""), header(name, value)].concat();
    for (what, head) in [
        ("an upper case name", with("X-Name", "1")),
        ("an empty name", with("", "1")),
        ("a header of the connection", with("connection", "close")),
        ("another of the connection", with("keep-alive", "timeout=5")),
        ("a third of the connection", with("proxy-connection", "close")),
        ("another protocol", with("upgrade", "h2c")),
        ("a transfer coding", with("transfer-encoding", "chunked")),
        ("te", with("te", "gzip")),
        ("CR", with("x", "a\rb")),
        ("LF", with("x", "a\nb")),
        ("NUL", with("x", "a\0b")),
        ("a blank first", with("x", " a")),
        ("a blank last", with("x", "a\t")),
        ("a pseudo-header late", [chat_head(":path"), header(":path", "/")].concat()),
        ("a pseudo-header twice", [header(":path", "/"), chat_head("")].concat()),
        ("an unknown pseudo-header", [header(":x", "/"), chat_head("")].concat()),
        ("no method", chat_head(":method")),
        ("no scheme", chat_head(":scheme")),
        ("no path", chat_head(":path")),
        ("an empty path", [header(":path", ""), chat_head(":path")].concat()),
        ("a path that is none", [header(":path", "v1"), chat_head(":path")].concat()),
        ("another host", with("host", "b")),
    ] {
        let mut client = Framer::connect(&gateway, &[]);
        client.send(&frame(HEADERS, END_HEADERS, 1, &head));
        client.send(&frame(DATA, END_STREAM, 1, STREAM_CHAT.as_bytes()));
        loop {
            let frame = client.next().unwrap_or_else(|| panic!("{what}: closed without a word"));
            match frame.kind {
                RST_STREAM => assert_eq!(frame.code(), Some(PROTOCOL_ERROR), "{what}"),
                GOAWAY => assert_ne!(frame.code(), Some(0), "{what}"),
                HEADERS => assert_eq!(frame.payload[0], STATUS_400, "{what}"),
                _ => continue,
            }
            break;
        }
    }
    engine.assert_untouched();
    assert!(gateway.records().is_empty());
}

#[test]
fn a_body_of_another_length_than_it_says_reaches_no_engine() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    for (length, data) in [("5", "{}"), ("1", "{}")] {
        let mut client = Framer::connect(&gateway, &[]);
        let head = [chat_head(""), header("content-length", length)].concat();
        client.send(&frame(HEADERS, END_HEADERS, 1, &head));
        client.send(&frame(DATA, END_STREAM, 1, data.as_bytes()));
        let reset = client.await_kind(RST_STREAM).expect("a reset");
        assert_eq!(reset.code(), Some(PROTOCOL_ERROR), "{length}");
    }
    engine.assert_untouched();
    assert!(gateway.records().is_empty());
}

#[test]
fn trailers_of_a_request_are_dropped_and_say_nothing_of_who_asks() {
    let engine = Engine::start();
    let gateway = Setup::before(&engine)
        .upstream("dialect: openai")
        .with("tenants: {header: {name: x-tenant-id, trusted_peers: [127.0.0.0/8]}}")
        .start();
    let mut client = Framer::connect(&gateway, &[]);
    let head = [chat_head(""), header("x-tenant-id", "acme")].concat();
    client.send(&frame(HEADERS, END_HEADERS, 1, &head));
    client.send(&frame(DATA, 0, 1, CHAT.as_bytes()));
    let trailers = [header("x-tenant-id", "globex"), header("x-note", "late")].concat();
    client.send(&frame(HEADERS, END_STREAM_AND_HEADERS, 1, &trailers));
    let request = engine.answer_once(&json_answer(CHAT_ANSWER));
    assert_eq!(request.body, CHAT.as_bytes());
    for name in ["x-tenant-id", "x-note", "trailer"] {
        assert_eq!(request.header(name), None, "{name}");
    }
    assert_eq!(client.await_kind(HEADERS).expect("an answer").payload[0], STATUS_200);
    assert_eq!(gateway.record()["tenant"], "acme");
}

#[test]
fn a_head_that_comes_too_slowly_ends_the_connection() {
    let engine = Engine::start();
    let gateway = Setup::before(&engine)
        .upstream("dialect: openai")
        .with("limits: {header_read_timeout_seconds: 0.3}")
        .start();
    let goes_on = frame(HEADERS, 0, 1, &chat_head(""));
    let whole = frame(HEADERS, END_HEADERS, 1, &chat_head(""));
    for part in [&goes_on[..], &whole[..whole.len() / 2]] {
        let mut client = Framer::connect(&gateway, &[]);
        client.send(part);
        client.end();
    }
    gateway.await_metric("taximeter_bad_framing_total{taximeter_cause=\"slow_header\"} 2");
    engine.assert_untouched();
}

#[test]
fn a_client_that_opens_no_window_slows_the_engine_and_is_given_up() {
    let engine = Engine::start();
    let gateway = Setup::before(&engine)
        .upstream("dialect: openai")
        .with("limits: {client_write_timeout_seconds: 0.3, header_read_timeout_seconds: 0.3}")
        .start();
    let mut client = Framer::connect(&gateway, &[0, INITIAL_WINDOW_SIZE, 0, 0, 0, 0]);
    client.send(&frame(HEADERS, END_HEADERS, 1, &chat_head("")));
    client.send(&frame(DATA, END_STREAM, 1, STREAM_CHAT.as_bytes()));
    let mut connection = engine.begin_stream();
    assert!(client.await_kind(HEADERS).is_some(), "a head needs no window");
    // More than the gateway and both sockets hold: from there on it is not read.
    let event = chunk(HELLO).repeat(1_000);
    while connection.try_send(&event).is_ok() {}
    let record = &gateway.await_records(1)[0];
    assert_eq!(record["end"], "client_stalled", "{record}");
}

#[test]
fn streams_beyond_the_limit_are_refused_and_windows_and_heads_are_as_configured() {
    let engine = Engine::start();
    let gateway = Setup::before(&engine)
        .upstream("dialect: openai")
        .with(
            "limits: {http2_streams_max: 2, http2_window_bytes: 70000, \
             http2_connection_window_bytes: 200000, header_bytes_max: 10000}",
        )
        .start();
    let mut client = Framer::connect(&gateway, &[]);
    let settings = client.await_kind(SETTINGS).expect("settings").payload;
    let said = |id: u8| {
        let setting = settings.chunks(6).find(|setting| setting[..2] == [0, id])?;
        setting[2..].try_into().ok().map(u32::from_be_bytes)
    };
    assert_eq!(
        (said(3), said(INITIAL_WINDOW_SIZE), said(6)),
        (Some(2), Some(70_000), Some(10_000))
    );
    let update = client.await_kind(WINDOW_UPDATE).expect("the connection's window");
    assert_eq!((update.stream, update.payload), (0, (200_000_u32 - 65_535).to_be_bytes().to_vec()));
    for stream in [1, 3, 5] {
        client.send(&frame(HEADERS, END_HEADERS, stream, &chat_head("")));
    }
    let reset = client.await_kind(RST_STREAM).expect("a reset");
    assert_eq!((reset.stream, reset.code()), (5, Some(REFUSED_STREAM)));
    engine.assert_untouched();
}
