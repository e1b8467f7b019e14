//! Cuts AWS event streams (`application/vnd.amazon.eventstream`) into messages. A read may begin
//! and end anywhere.
//!
//! A message has two lengths of four bytes (its own and that of its headers), a checksum of both,
//! the headers, a payload, and a checksum of all. The client checks the checksums.

use flate2::Crc;

use crate::partial::{Data, PLAIN_BYTES_MAX, Partial};
use crate::sse::{Block, Event};

/// Both lengths.
const LENGTHS_BYTES: usize = 8;

/// Both lengths and their checksum.
const PRELUDE_BYTES: usize = 12;

/// Longest headers that are read: AWS has no longer ones.
const HEADERS_BYTES_MAX: usize = 128 << 10;

/// The checksum at the end.
const CHECKSUM_BYTES: usize = 4;

/// The kind of a header's value that is text.
const TEXT: u8 = 7;

/// The type of a payload.
const JSON: &str = "application/json";

/// Cuts a stream into messages; each is an event.
#[derive(Debug)]
pub(crate) struct Frames {
    /// Bytes of the unfinished message that came with earlier reads.
    taken: usize,
    /// Lengths and headers of the unfinished message, as far as they came.
    head: Vec<u8>,
    lengths: Option<Lengths>,
    payload: Partial,
    /// What comes is no message: it passes unread.
    is_broken: bool,
    /// Messages whose headers were too long, and what was no message.
    pub(crate) unread: u32,
}

impl Frames {
    /// Nothing has come yet.
    pub(crate) const fn new() -> Self {
        Self {
            taken: 0,
            head: Vec::new(),
            lengths: None,
            payload: Partial::new(),
            is_broken: false,
            unread: 0,
        }
    }

    /// The next message that ends in `read` at or behind offset `at`, which moves behind it.
    ///
    /// `None` when the read is used up; what is left of it is kept for the next.
    pub(crate) fn next<'s>(&'s mut self, read: &'s [u8], at: &mut usize) -> Option<Block<'s>> {
        self.payload.renew();
        if self.taken == 0 {
            self.head.clear();
        }
        loop {
            let rest = read.get(*at..).filter(|rest| !rest.is_empty())?;
            if self.is_broken {
                *at = read.len();
                return None;
            }
            let here = Lengths::of(rest).filter(|lengths| self.taken == 0 && lengths.are_short());
            if let Some(message) = here.and_then(|lengths| rest.get(..lengths.message)) {
                *at += message.len();
                return Some(Block { end: *at, event: event(message) });
            }
            *at += self.take(rest);
            if self.lengths.is_some_and(|lengths| lengths.message == self.taken) {
                return Some(Block { end: *at, event: self.finish() });
            }
        }
    }

    /// Takes the next bytes of the unfinished message, up to where its next part begins; tells how
    /// many.
    fn take(&mut self, rest: &[u8]) -> usize {
        let (part_end, is_head, is_payload) = match self.lengths {
            None => (LENGTHS_BYTES, true, false),
            Some(lengths) if self.taken < lengths.payload_begin() => {
                (lengths.payload_begin(), lengths.headers <= HEADERS_BYTES_MAX, false)
            }
            Some(lengths) if self.taken < lengths.payload_end() => {
                (lengths.payload_end(), false, lengths.headers <= HEADERS_BYTES_MAX)
            }
            Some(lengths) => (lengths.message, false, false),
        };
        let (part, _) = rest.split_at_checked(part_end - self.taken).unwrap_or((rest, &[]));
        if is_head {
            self.head.extend_from_slice(part);
        } else if is_payload {
            self.payload.keep(part);
        }
        self.taken += part.len();
        if self.lengths.is_none() && self.taken == LENGTHS_BYTES {
            self.lengths = Lengths::of(&self.head);
            self.is_broken = self.lengths.is_none();
            let is_read = self.lengths.is_some_and(|it| it.headers <= HEADERS_BYTES_MAX);
            self.unread = self.unread.saturating_add(u32::from(!is_read));
        }
        part.len()
    }

    /// What the message says that has just ended.
    fn finish(&mut self) -> Option<Event<'_>> {
        (self.taken, self.lengths) = (0, None);
        let exception = error(self.head.get(PRELUDE_BYTES..)?);
        said(exception, self.payload.close()?)
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

    /// Where the payload begins in the message.
    const fn payload_begin(self) -> usize {
        PRELUDE_BYTES + self.headers
    }

    /// Where the payload ends in the message.
    const fn payload_end(self) -> usize {
        self.message - CHECKSUM_BYTES
    }

    /// Whether the message is read as it came.
    const fn are_short(self) -> bool {
        let payload = self.payload_end() - self.payload_begin();
        payload <= PLAIN_BYTES_MAX && self.headers <= HEADERS_BYTES_MAX
    }
}

/// What a whole message says.
fn event(message: &[u8]) -> Option<Event<'_>> {
    let lengths = Lengths::of(message)?;
    let headers = message.get(PRELUDE_BYTES..lengths.payload_begin())?;
    let payload = message.get(lengths.payload_begin()..lengths.payload_end())?;
    said(error(headers), Data::plain(payload))
}

/// What a message says; one without a payload says nothing.
fn said<'a>(exception: Option<&'a [u8]>, payload: Data<'a>) -> Option<Event<'a>> {
    let is_error = exception.is_some();
    (!payload.bytes.is_empty()).then_some(Event { is_error, exception, ..Event::of(payload) })
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
        let mut frames = Frames::new();
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
        (found, frames.unread)
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
            let (found, unread) = events(&stream, step);
            let said = [(false, "{\"a\":1}"), (true, "{\"message\":\"slow down\"}")];
            assert_eq!(found, said.map(|(is_error, data)| (is_error, data.to_owned())), "{step}");
            assert_eq!(unread, 0);
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
    fn a_long_payload_is_condensed_and_a_message_with_long_headers_passes_unread() {
        let payload = |picture: &str| format!("{{\"a\":\"{picture}\",\"b\":7}}");
        let picture = "x".repeat(3 << 20);
        let mut odd = message("event", "c");
        odd.splice(12..12, vec![0; HEADERS_BYTES_MAX]);
        let lengths = [odd.len(), HEADERS_BYTES_MAX + 28].map(|it| u32::try_from(it).unwrap());
        odd.splice(..8, lengths.map(u32::to_be_bytes).concat());
        let stream = [
            message("event", "a"),
            message("exception", &payload(&picture)),
            odd,
            message("event", "b"),
        ]
        .concat();
        let short = payload(&picture[..4 << 10]);
        for step in [7, 100, 65_536, stream.len()] {
            let (found, unread) = events(&stream, step);
            let found: Vec<_> = found.iter().map(|(is_error, said)| (*is_error, &**said)).collect();
            let expected = [(false, "a"), (true, &*short), (false, "b")];
            assert!(found == expected, "reads of {step} bytes: {found:?}");
            assert_eq!(unread, 1, "reads of {step} bytes");
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
                let (found, unread) = events(&stream, step);
                assert_eq!((found, unread), (vec![(false, "a".to_owned())], 1), "{step}");
            }
        }
    }
}
