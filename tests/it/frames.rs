//! HTTP/2 frames, made by hand and read by hand.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;

use crate::gateway::Gateway;
use crate::patience::PATIENCE;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
pub(crate) const DATA: u8 = 0;
pub(crate) const HEADERS: u8 = 1;
pub(crate) const PRIORITY: u8 = 2;
pub(crate) const RST_STREAM: u8 = 3;
pub(crate) const SETTINGS: u8 = 4;
pub(crate) const PING: u8 = 6;
pub(crate) const GOAWAY: u8 = 7;
pub(crate) const WINDOW_UPDATE: u8 = 8;
pub(crate) const CONTINUATION: u8 = 9;
pub(crate) const END_STREAM: u8 = 1;
pub(crate) const END_HEADERS: u8 = 4;
pub(crate) const END_STREAM_AND_HEADERS: u8 = 5;
/// `POST http://a/` in HPACK's static table.
pub(crate) const REQUEST: &[u8] = &[0x83, 0x86, 0x84, 0x01, 0x01, b'a'];
pub(crate) const CANCEL: [u8; 4] = [0, 0, 0, 8];

pub(crate) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("a short payload").to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// A header as HPACK writes it without any table.
pub(crate) fn header(name: &str, value: &str) -> Vec<u8> {
    let text = |text: &str| {
        let length = u8::try_from(text.len()).ok().filter(|length| *length < 127);
        [&[length.expect("a short text")], text.as_bytes()].concat()
    };
    [vec![0], text(name), text(value)].concat()
}

/// `POST http://a/v1/chat/completions` without `left_out`.
pub(crate) fn chat_head(left_out: &str) -> Vec<u8> {
    [
        (":method", "POST"),
        (":scheme", "http"),
        (":path", "/v1/chat/completions"),
        (":authority", "a"),
    ]
    .iter()
    .filter(|(name, _)| *name != left_out)
    .flat_map(|(name, value)| header(name, value))
    .chain(header("content-type", "application/json"))
    .collect()
}

/// A frame that came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) kind: u8,
    pub(crate) stream: u32,
    pub(crate) payload: Vec<u8>,
}

impl Frame {
    /// The code of a RST_STREAM or a GOAWAY.
    pub(crate) fn code(&self) -> Option<u32> {
        let code = match self.kind {
            RST_STREAM => self.payload.get(..4)?,
            GOAWAY => self.payload.get(4..8)?,
            _ => return None,
        };
        code.try_into().ok().map(u32::from_be_bytes)
    }
}

/// A client that says frames.
pub(crate) struct Framer {
    stream: TcpStream,
    unread: Vec<u8>,
}

impl Framer {
    /// Connects, and says what a connection begins with.
    pub(crate) fn connect(gateway: &Gateway, settings: &[u8]) -> Self {
        let stream = TcpStream::connect(gateway.address()).expect("connect");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        let mut client = Self { stream, unread: Vec::new() };
        client.send(&[PREFACE, &frame(SETTINGS, 0, 0, settings)].concat());
        client
    }

    /// Sends to a gateway that may have had enough.
    pub(crate) fn send(&mut self, frames: &[u8]) {
        let _ = self.stream.write_all(frames);
    }

    /// The next frame; `None` where the connection ends.
    pub(crate) fn next(&mut self) -> Option<Frame> {
        loop {
            if let Some((head, rest)) = self.unread.split_at_checked(9) {
                let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
                if let Some(payload) = rest.get(..length) {
                    let stream = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
                    let frame = Frame { kind: head[3], stream, payload: payload.to_vec() };
                    self.unread.drain(..9 + length);
                    return Some(frame);
                }
            }
            let mut buffer = [0; 4096];
            match self.stream.read(&mut buffer) {
                Ok(0) => return None,
                Ok(read) => self.unread.extend_from_slice(&buffer[..read]),
                Err(fault) if fault.kind() == ErrorKind::ConnectionReset => return None,
                Err(fault) => panic!("nothing comes: {fault}"),
            }
        }
    }

    /// The next frame of this kind; `None` where the connection ends before.
    pub(crate) fn await_kind(&mut self, kind: u8) -> Option<Frame> {
        loop {
            let frame = self.next()?;
            if frame.kind == kind {
                return Some(frame);
            }
        }
    }

    /// Waits until the gateway ends the connection; the code of its GOAWAY, if it sent one.
    pub(crate) fn end(&mut self) -> Option<u32> {
        let mut code = None;
        while let Some(frame) = self.next() {
            if frame.kind == GOAWAY {
                code = frame.code();
            }
        }
        code
    }
}
