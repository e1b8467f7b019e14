//! HTTP/2 clients that send much and want nothing, frame by frame on a bare socket.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;

use crate::engine::Engine;
use crate::fixtures::{CHAT, CHAT_ANSWER};
use crate::gateway::Gateway;
use crate::http::json_answer;
use crate::patience::PATIENCE;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const GOAWAY: u8 = 7;
const CONTINUATION: u8 = 9;
const END_STREAM_AND_HEADERS: u8 = 5;
/// `POST http://a/` in HPACK's static table.
const REQUEST: &[u8] = &[0x83, 0x86, 0x84, 0x01, 0x01, b'a'];
const CANCEL: [u8; 4] = [0, 0, 0, 8];

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("a short payload").to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// Sends `frames` behind a preface and reads until the gateway ends the connection; the error code
/// of its GOAWAY, if it sent one.
fn flood(gateway: &Gateway, frames: &[u8]) -> Option<u32> {
    let mut stream = TcpStream::connect(gateway.address()).expect("connect");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    stream.write_all(&[PREFACE, &frame(SETTINGS, 0, 0, &[])].concat()).expect("a preface");
    // The gateway may have had enough of it before the end.
    let _ = stream.write_all(frames);
    let (mut came, mut buffer) = (Vec::new(), [0; 4096]);
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) => came.extend_from_slice(&buffer[..read]),
            Err(fault) if fault.kind() == ErrorKind::ConnectionReset => break,
            Err(fault) => panic!("the connection stays open: {fault}"),
        }
    }
    let mut rest = came.as_slice();
    while let Some((head, behind)) = rest.split_at_checked(9) {
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        let (payload, next) = behind.split_at_checked(length.try_into().expect("a length"))?;
        if head[3] == GOAWAY {
            return payload[4..8].try_into().ok().map(u32::from_be_bytes);
        }
        rest = next;
    }
    None
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
    assert_eq!(flood(&gateway, &frames), Some(0xb), "ENHANCE_YOUR_CALM");
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
