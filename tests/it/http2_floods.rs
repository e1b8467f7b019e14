//! HTTP/2 clients that send much and want nothing, frame by frame on a bare socket.

use std::collections::BTreeSet;

use crate::engine::Engine;
use crate::fixtures::{CHAT, CHAT_ANSWER};
use crate::frames::{
    CANCEL, CONTINUATION, DATA, END_HEADERS, END_STREAM, END_STREAM_AND_HEADERS, Framer, GOAWAY,
    HEADERS, PING, PRIORITY, REQUEST, RST_STREAM, SETTINGS, WINDOW_UPDATE, chat_head, frame,
    header,
};
use crate::gateway::{Gateway, Setup};
use crate::http::json_answer;

/// `:status: 200`, by HPACK's static table.
const STATUS_200: u8 = 0x88;
/// What we say to clients that are too busy.
const ENHANCE_YOUR_CALM: u32 = 0xb;

/// Sends `frames` and reads until the gateway ends the connection; the error code of its GOAWAY, if
/// it sent one.
fn flood(gateway: &Gateway, frames: &[u8]) -> Option<u32> {
    let mut client = Framer::connect(gateway, &[]);
    client.send(frames);
    client.end()
}

#[track_caller]
fn assert_others_are_served(engine: &Engine, gateway: &Gateway) {
    engine.assert_untouched();
    let mut client = gateway.chat("", CHAT);
    engine.answer_once(&json_answer(CHAT_ANSWER));
    assert_eq!(client.answer().status(), 200);
    assert_eq!(gateway.records().len(), 1);
}

#[test]
fn streams_that_are_reset_as_soon_as_they_begin_end_the_connection() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    let frames: Vec<u8> = (0..2_000)
        .flat_map(|count| {
            let stream = 2 * count + 1;
            let begin = frame(HEADERS, END_STREAM_AND_HEADERS, stream, REQUEST);
            [begin, frame(RST_STREAM, 0, stream, &CANCEL)].concat()
        })
        .collect();
    assert_eq!(flood(&gateway, &frames), Some(ENHANCE_YOUR_CALM));
    assert_others_are_served(&engine, &gateway);
}

#[test]
fn a_head_without_an_end_ends_the_connection() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    // A header of one byte for its name and one for its value.
    let header = [0x00, 0x01, b'x', 0x01, b'y'];
    let mut frames = frame(HEADERS, 1, 1, REQUEST);
    for _ in 0..1_000 {
        frames.extend(frame(CONTINUATION, 0, 1, &header));
    }
    assert!(flood(&gateway, &frames).is_some_and(|code| code != 0));
    assert_others_are_served(&engine, &gateway);
}

#[test]
fn a_list_of_headers_beyond_the_limit_is_no_request() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    let many: Vec<u8> = (0..700).flat_map(|_| header("x", &"y".repeat(100))).collect();
    let block = [chat_head(""), many].concat();
    let (first, rest) = block.split_at(16_000);
    let mut frames = frame(HEADERS, 0, 1, first);
    for piece in rest.chunks(16_000) {
        frames.extend(frame(CONTINUATION, 0, 1, piece));
    }
    frames.extend(frame(CONTINUATION, END_HEADERS, 1, &[]));
    // And one that is short as it is sent: the same header, by its number in the table.
    let mut named = header("x", &"y".repeat(100));
    named[0] = 0x40;
    let same = vec![0xbe; 15_000];
    let bomb = frame(HEADERS, END_HEADERS, 1, &[chat_head(""), named, same].concat());
    for frames in [frames, bomb] {
        let mut client = Framer::connect(&gateway, &[]);
        client.send(&frames);
        let refused = loop {
            let Some(frame) = client.next() else { break true };
            match frame.kind {
                HEADERS => break frame.payload[0] != STATUS_200,
                RST_STREAM | GOAWAY => break frame.code() != Some(0),
                _ => {}
            }
        };
        assert!(refused, "it was taken");
    }
    assert_others_are_served(&engine, &gateway);
}

#[test]
fn frames_that_move_nothing_end_the_connection_after_a_thousand() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    let open = frame(HEADERS, END_HEADERS, 1, &chat_head(""));
    for one in [
        frame(SETTINGS, 0, 0, &[]),
        frame(PING, 0, 0, &[0; 8]),
        frame(PRIORITY, 0, 3, &[0, 0, 0, 0, 1]),
        frame(DATA, 0, 1, &[]),
        frame(WINDOW_UPDATE, 0, 0, &[0, 0, 0, 1]),
    ] {
        let frames = [open.clone(), one.repeat(1_500)].concat();
        assert_eq!(flood(&gateway, &frames), Some(ENHANCE_YOUR_CALM), "{:?}", one[3]);
    }
    gateway.await_metric("taximeter_bad_framing_total{taximeter_cause=\"http2_control_frames\"} 4");
    assert_others_are_served(&engine, &gateway);
}

#[test]
fn streams_that_are_reset_one_by_one_end_the_connection_at_the_limit() {
    let engine = Engine::start();
    let gateway = Setup::before(&engine)
        .upstream("dialect: openai")
        .with("limits: {http2_resets_per_10s_max: 5}")
        .start();
    let mut client = Framer::connect(&gateway, &[]);
    for count in 1..=5 {
        let stream = 2 * count - 1;
        client.send(&frame(HEADERS, END_HEADERS, stream, REQUEST));
        client.send(&frame(RST_STREAM, 0, stream, &CANCEL));
        // What was read before it has been dealt with when it is answered.
        client.send(&frame(PING, 0, 0, &[0; 8]));
        assert_eq!(client.await_kind(PING).is_some(), count < 5, "{count}");
    }
    gateway.await_metric("taximeter_bad_framing_total{taximeter_cause=\"http2_resets\"} 1");
    assert_others_are_served(&engine, &gateway);
}

#[test]
fn streams_that_are_reset_together_are_taken_up_to_the_limit() {
    const MOST: u32 = 100;
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    let begun_and_reset = |count: u32| {
        let stream = 2 * count + 1;
        let begin = frame(HEADERS, END_STREAM_AND_HEADERS, stream, REQUEST);
        [begin, frame(RST_STREAM, 0, stream, &CANCEL)].concat()
    };
    let ping = frame(PING, 0, 0, &[0; 8]);
    let mut client = Framer::connect(&gateway, &[]);
    let mut most: Vec<u8> = (0..MOST - 1).flat_map(begun_and_reset).collect();
    most.extend(&ping);
    client.send(&most);
    assert!(client.await_kind(PING).is_some(), "one less than may be");
    client.send(&[begun_and_reset(MOST), ping].concat());
    assert_eq!(client.end(), Some(ENHANCE_YOUR_CALM));
    gateway.await_metric("taximeter_bad_framing_total{taximeter_cause=\"http2_resets\"} 1");
    assert_others_are_served(&engine, &gateway);
}

#[test]
fn streams_that_we_are_made_to_reset_end_the_connection_at_the_limit() {
    let engine = Engine::start();
    let gateway = Setup::before(&engine)
        .upstream("dialect: openai")
        .with("limits: {http2_resets_per_10s_max: 5}")
        .start();
    let mut client = Framer::connect(&gateway, &[]);
    // A body of another length than is said is our fault to find, and so our reset to send.
    let head = [chat_head(""), header("content-length", "5")].concat();
    for count in 1..=5 {
        let stream = 2 * count - 1;
        client.send(&frame(HEADERS, END_HEADERS, stream, &head));
        client.send(&frame(DATA, END_STREAM, stream, b"{}"));
        assert_eq!(client.await_kind(RST_STREAM).map(|reset| reset.stream), Some(stream));
        client.send(&frame(PING, 0, 0, &[0; 8]));
        if count < 5 {
            assert!(client.await_kind(PING).is_some(), "{count}");
        }
    }
    assert_eq!(client.end(), Some(ENHANCE_YOUR_CALM));
    gateway.await_metric("taximeter_bad_framing_total{taximeter_cause=\"http2_resets\"} 1");
    assert_others_are_served(&engine, &gateway);
}

#[test]
fn streams_that_are_reset_while_an_engine_works_are_settled_once_each() {
    const STREAMS: u32 = 5;
    let engine = Engine::start();
    let gateway = Setup::before(&engine)
        .upstream("dialect: openai")
        .with(&format!("limits: {{http2_resets_per_10s_max: {STREAMS}}}"))
        .start();
    let mut client = Framer::connect(&gateway, &[]);
    let streams = || (0..STREAMS).map(|count| 2 * count + 1);
    let connections: Vec<_> = streams()
        .map(|stream| {
            client.send(&frame(HEADERS, END_HEADERS, stream, &chat_head("")));
            client.send(&frame(DATA, END_STREAM, stream, CHAT.as_bytes()));
            engine.request().0
        })
        .collect();
    for stream in streams() {
        client.send(&frame(RST_STREAM, 0, stream, &CANCEL));
    }
    assert_eq!(client.end(), Some(ENHANCE_YOUR_CALM));
    for connection in connections {
        connection.assert_closed_by_gateway();
    }
    let records = gateway.await_records(STREAMS as usize);
    assert!(records.iter().all(|record| record["end"] == "client_left"), "{records:#?}");
    let ids: BTreeSet<_> = records.iter().map(|record| record["id"].to_string()).collect();
    assert_eq!(ids.len(), STREAMS as usize);
    engine.assert_untouched();
}

#[test]
fn frames_that_move_nothing_are_taken_up_to_the_limit_and_not_beyond() {
    const MOST: usize = 20;
    let engine = Engine::start();
    let gateway = Setup::before(&engine)
        .upstream("dialect: openai")
        .with(&format!("limits: {{http2_control_frames_per_10s_max: {MOST}}}"))
        .start();
    let open = frame(HEADERS, END_HEADERS, 1, &chat_head(""));
    let ping = frame(PING, 0, 0, &[0; 8]);
    let kinds = [
        frame(SETTINGS, 0, 0, &[]),
        ping.clone(),
        frame(PRIORITY, 0, 3, &[0, 0, 0, 0, 1]),
        frame(DATA, 0, 1, &[]),
        frame(WINDOW_UPDATE, 0, 0, &[0, 0, 0, 1]),
        frame(WINDOW_UPDATE, 0, 1, &[0, 0, 0, 1]),
    ];
    for one in &kinds {
        let mut client = Framer::connect(&gateway, &[]);
        // With the settings of the connection and the ping these are all.
        client.send(&[open.clone(), one.repeat(MOST - 2), ping.clone()].concat());
        let pings = if *one == ping { MOST - 1 } else { 1 };
        for _ in 0..pings {
            assert!(client.await_kind(PING).is_some(), "{:?}", &one[3..]);
        }
        client.send(one);
        assert_eq!(client.end(), Some(ENHANCE_YOUR_CALM), "{:?}", &one[3..]);
    }
    let count = kinds.len();
    gateway.await_metric(&format!(
        "taximeter_bad_framing_total{{taximeter_cause=\"http2_control_frames\"}} {count}"
    ));
    assert_others_are_served(&engine, &gateway);
}
