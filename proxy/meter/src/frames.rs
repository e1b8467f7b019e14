//! Cuts AWS event streams (`application/vnd.amazon.eventstream`) into messages. A read may begin
//! and end anywhere.
//!
//! A message has two lengths of four bytes (its own and that of its headers), a checksum of both,
//! the headers, a payload, and a checksum of all. The client checks the checksums.

use flate2::Crc;

use crate::sse::{Block, Event};

/// Both lengths.
const LENGTHS_BYTES: usize = 8;

/// Both lengths and their checksum.
const PRELUDE_BYTES: usize = 12;

/// The checksum at the end.
const CHECKSUM_BYTES: usize = 4;

/// The kind of a header's value that is text.
const TEXT: u8 = 7;

/// The type of a payload.
const JSON: &str = "application/json";

/// Cuts a stream into messages; each is an event.
#[derive(Debug)]
pub(crate) struct Frames {
    /// Longest message that is read.
    bytes_max: usize,
    /// The unfinished message, as far as it came; then the last one that crossed reads.
    message: Vec<u8>,
    /// The message has ended.
    is_whole: bool,
    /// Bytes that are left of a message that is too long.
    skipped: usize,
    /// What comes is no message: it passes unread.
    is_broken: bool,
    /// Messages that were too long, and what was none.
    pub(crate) too_long: u32,
}

impl Frames {
    /// Messages of at most `bytes_max`.
    pub(crate) const fn new(bytes_max: usize) -> Self {
        Self {
            bytes_max,
            message: Vec::new(),
            is_whole: false,
            skipped: 0,
            is_broken: false,
            too_long: 0,
        }
    }

    /// The next message that ends in `read` at or behind offset `at`, which moves behind it.
    ///
    /// `None` when the read is used up; what is left of it is kept for the next.
    pub(crate) fn next<'s>(&'s mut self, read: &'s [u8], at: &mut usize) -> Option<Block<'s>> {
        if std::mem::take(&mut self.is_whole) {
            self.message = Vec::new();
        }
        loop {
            let rest = read.get(*at..).filter(|rest| !rest.is_empty())?;
            if self.is_broken {
                *at = read.len();
                return None;
            }
            if self.skipped > 0 {
                let skipped = self.skipped.min(rest.len());
                self.skipped -= skipped;
                *at += skipped;
                if self.skipped == 0 {
                    return Some(Block { end: *at, event: None });
                }
                continue;
            }
            let here = Lengths::of(rest).filter(|lengths| lengths.message <= self.bytes_max);
            if self.message.is_empty()
                && let Some(message) = here.and_then(|lengths| rest.get(..lengths.message))
            {
                *at += message.len();
                return Some(Block { end: *at, event: event(message) });
            }
            let known = Lengths::of(&self.message);
            let length = known.map_or(LENGTHS_BYTES, |lengths| lengths.message);
            let missing = length - self.message.len();
            let (part, _) = rest.split_at_checked(missing).unwrap_or((rest, &[]));
            self.message.extend_from_slice(part);
            *at += part.len();
            if self.message.len() < length {
                continue;
            }
            if known.is_some() {
                self.is_whole = true;
                return Some(Block { end: *at, event: event(&self.message) });
            }
            self.judge();
        }
    }

    /// Whether the message whose lengths have just come is read.
    fn judge(&mut self) {
        match Lengths::of(&self.message) {
            Some(lengths) if lengths.message <= self.bytes_max => return,
            Some(lengths) => self.skipped = lengths.message - self.message.len(),
            None => self.is_broken = true,
        }
        self.message = Vec::new();
        self.too_long = self.too_long.saturating_add(1);
    }
}

/// A message that tells of an exception, with a payload in JSON.
#[must_use]
pub fn exception(name: &str, payload: &str) -> Vec<u8> {
    let said = [(":exception-type", name), (":content-type", JSON), (":message-type", "exception")];
    let mut headers = Vec::new();
    for (name, value) in said {
        headers.extend(u8::try_from(name.len()));
        headers.extend_from_slice(name.as_bytes());
        headers.push(TEXT);
        headers.extend(u16::try_from(value.len()).unwrap_or_default().to_be_bytes());
        headers.extend_from_slice(value.as_bytes());
    }
    let length = PRELUDE_BYTES + headers.len() + payload.len() + CHECKSUM_BYTES;
    let mut message = Vec::with_capacity(length);
    for length in [length, headers.len()] {
        message.extend(u32::try_from(length).unwrap_or_default().to_be_bytes());
    }
    message.extend(checksum(&message));
    message.extend_from_slice(&headers);
    message.extend_from_slice(payload.as_bytes());
    message.extend(checksum(&message));
    message
}

fn checksum(bytes: &[u8]) -> [u8; CHECKSUM_BYTES] {
    let mut crc = Crc::new();
    crc.update(bytes);
    crc.sum().to_be_bytes()
}

/// What a message says of itself.
#[derive(Debug, Clone, Copy)]
struct Lengths {
    message: usize,
    headers: usize,
}

impl Lengths {
    /// Of the message that begins here; `None` where they are not whole, or are no message's.
    fn of(message: &[u8]) -> Option<Self> {
        let (message, rest) = message.split_first_chunk()?;
        let (headers, _) = rest.split_first_chunk()?;
        let bytes = |length: &[u8; 4]| usize::try_from(u32::from_be_bytes(*length)).ok();
        let lengths = Self { message: bytes(message)?, headers: bytes(headers)? };
        let room = lengths.message.checked_sub(PRELUDE_BYTES + CHECKSUM_BYTES)?;
        (lengths.headers <= room).then_some(lengths)
    }
}

/// What a message says; one without a payload says nothing.
fn event(message: &[u8]) -> Option<Event<'_>> {
    let lengths = Lengths::of(message)?;
    let (headers, rest) = message.get(PRELUDE_BYTES..)?.split_at_checked(lengths.headers)?;
    let data = rest.get(..rest.len().checked_sub(CHECKSUM_BYTES)?)?;
    (!data.is_empty()).then(|| {
        let error = error(headers);
        Event { is_error: error.is_some(), exception: error, data }
    })
}

/// The kind of error that a message is, by its headers; `None` where it is none.
fn error(mut headers: &[u8]) -> Option<&[u8]> {
    let (mut is_error, mut kind) = (false, &[][..]);
    while let Some((name, value)) = header(&mut headers) {
        match name {
            b":message-type" => is_error = value != b"event",
            b":exception-type" | b":error-code" => kind = value,
            _ => {}
        }
    }
    is_error.then_some(kind)
}

/// Takes one header off the front; a value that is no text is as its bytes are.
fn header<'h>(headers: &mut &'h [u8]) -> Option<(&'h [u8], &'h [u8])> {
    let (&[length], rest) = headers.split_first_chunk()?;
    let (name, rest) = rest.split_at_checked(length.into())?;
    let (&[kind], rest) = rest.split_first_chunk()?;
    let (length, rest) = match kind {
        0 | 1 => (0, rest),
        2 => (1, rest),
        3 => (2, rest),
        4 => (4, rest),
        5 | 8 => (8, rest),
        6 | TEXT => {
            let (&length, rest) = rest.split_first_chunk()?;
            (u16::from_be_bytes(length).into(), rest)
        }
        9 => (16, rest),
        _ => return None,
    };
    let (value, rest) = rest.split_at_checked(length)?;
    *headers = rest;
    Some((name, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    const BYTES_MAX: usize = 1 << 10;

    /// A message, its checksums left out.
    fn message(kind: &str, payload: &str) -> Vec<u8> {
        let mut headers = vec![4];
        headers.extend_from_slice(b"flag\x00");
        headers.push(13);
        headers.extend_from_slice(b":message-type\x07");
        headers.extend_from_slice(&u16::try_from(kind.len()).unwrap().to_be_bytes());
        headers.extend_from_slice(kind.as_bytes());
        let length = u32::try_from(PRELUDE_BYTES + headers.len() + payload.len() + 4).unwrap();
        let mut message = length.to_be_bytes().to_vec();
        message.extend_from_slice(&u32::try_from(headers.len()).unwrap().to_be_bytes());
        message.extend_from_slice(b"\xff\xff\xff\xff");
        message.extend_from_slice(&headers);
        message.extend_from_slice(payload.as_bytes());
        message.extend_from_slice(b"\xff\xff\xff\xff");
        message
    }

    /// What every message says, however the stream is cut into reads of `step` bytes.
    fn events(stream: &[u8], step: usize) -> (Vec<(bool, String)>, u32) {
        let mut frames = Frames::new(BYTES_MAX);
        let mut found = Vec::new();
        for read in stream.chunks(step) {
            let mut at = 0;
            while let Some(block) = frames.next(read, &mut at) {
                assert_eq!(block.end, at);
                found.extend(block.event.map(|event| {
                    (event.is_error, String::from_utf8(event.data.to_vec()).unwrap())
                }));
            }
            assert_eq!(at, read.len());
        }
        (found, frames.too_long)
    }

    #[test]
    fn every_message_is_an_event_and_one_without_a_payload_says_nothing() {
        let stream = [
            message("event", "{\"a\":1}"),
            message("event", ""),
            message("exception", "{\"message\":\"slow down\"}"),
        ]
        .concat();
        for step in 1..=stream.len() {
            let (found, too_long) = events(&stream, step);
            let said = [(false, "{\"a\":1}"), (true, "{\"message\":\"slow down\"}")];
            assert_eq!(found, said.map(|(is_error, data)| (is_error, data.to_owned())), "{step}");
            assert_eq!(too_long, 0);
        }
    }

    #[test]
    fn an_exception_is_written_as_it_is_read() {
        let stream =
            include_bytes!("../../../tests/fixtures/bedrock/converse_throttled.eventstream");
        let payload = r#"{"message":"Too many requests, please wait before trying again."}"#;
        let message = exception("throttlingException", payload);
        assert!(stream.ends_with(&message), "{message:?}");
        assert_eq!(events(&message, 1), (vec![(true, payload.to_owned())], 0));
    }

    #[test]
    fn what_is_too_long_is_counted_and_not_read() {
        let long = message("event", &"x".repeat(BYTES_MAX));
        let stream = [message("event", "a"), long, message("event", "b")].concat();
        for step in [1, 7, 100, stream.len()] {
            let (found, too_long) = events(&stream, step);
            let said: Vec<_> = found.iter().map(|(_, data)| data.as_str()).collect();
            assert_eq!((said, too_long), (vec!["a", "b"], 1), "reads of {step} bytes");
        }
    }

    #[test]
    fn what_is_no_message_passes_unread() {
        let (mut short, mut deep) = (message("event", "b"), message("event", "b"));
        short.splice(0..4, [0, 0, 0, 15]);
        deep.splice(4..8, [0, 0, 1, 0]);
        for broken in [short, deep] {
            let stream = [message("event", "a"), broken, message("event", "c")].concat();
            for step in [1, 5, stream.len()] {
                let (found, too_long) = events(&stream, step);
                assert_eq!((found, too_long), (vec![(false, "a".to_owned())], 1), "{step}");
            }
        }
    }
}
