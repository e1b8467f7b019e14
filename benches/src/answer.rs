//! One HTTP/1.1 answer as it arrives: where it ends, and how many chunks it brought.

use anyhow::{Result, ensure};
use memchr::memchr;

use crate::wire::{STAMP_DIGITS, STAMP_MARK, head_length, number};

/// Longest answer head accepted, in bytes.
const HEAD_BYTES_MAX: usize = 16 << 10;
/// How a chunked body ends; no event of the engine contains it.
const LAST_CHUNK: &[u8] = b"\r\n0\r\n\r\n";

/// Reads an answer without keeping it.
#[derive(Debug, Default)]
pub struct Answer {
    head: Vec<u8>,
    body: Body,
}

#[derive(Debug, Default)]
enum Body {
    #[default]
    Expected,
    Length(u64),
    /// The last bytes seen, as many as `LAST_CHUNK` has.
    Chunked(Vec<u8>),
}

impl Answer {
    /// Takes one read; true when the answer is complete.
    ///
    /// `on_chunk` is called for every content chunk, with the engine's send time in nanoseconds
    /// unless the read cut it. Errors: a status other than 200, or a head that is none.
    pub fn take(&mut self, bytes: &[u8], mut on_chunk: impl FnMut(Option<u64>)) -> Result<bool> {
        if !matches!(self.body, Body::Expected) {
            return Ok(self.take_body(bytes, &mut on_chunk));
        }
        self.head.extend_from_slice(bytes);
        let Some(length) = head_length(&self.head) else {
            ensure!(self.head.len() < HEAD_BYTES_MAX, "the answer's head has no end");
            return Ok(false);
        };
        let rest = self.head.split_off(length);
        let text = String::from_utf8_lossy(&self.head);
        ensure!(text.starts_with("HTTP/1.1 200 "), "unexpected answer: {text}");
        self.body = match number(&self.head, "content-length") {
            Some(length) => Body::Length(length),
            None => Body::Chunked(Vec::new()),
        };
        Ok(self.take_body(&rest, &mut on_chunk))
    }

    /// True once a byte of the body is there.
    #[must_use]
    pub fn has_body(&self) -> bool {
        match &self.body {
            Body::Expected => false,
            Body::Length(_) => true,
            Body::Chunked(tail) => !tail.is_empty(),
        }
    }

    fn take_body(&mut self, bytes: &[u8], on_chunk: &mut impl FnMut(Option<u64>)) -> bool {
        match &mut self.body {
            Body::Expected => false,
            Body::Length(left) => {
                *left = left.saturating_sub(bytes.len() as u64);
                *left == 0
            }
            Body::Chunked(tail) => {
                each_stamp(bytes, on_chunk);
                let kept = bytes.len().saturating_sub(LAST_CHUNK.len());
                tail.extend_from_slice(bytes.get(kept..).unwrap_or_default());
                tail.drain(..tail.len().saturating_sub(LAST_CHUNK.len()));
                tail == LAST_CHUNK
            }
        }
    }
}

fn each_stamp(mut bytes: &[u8], on_chunk: &mut impl FnMut(Option<u64>)) {
    while let Some(at) = memchr(STAMP_MARK, bytes) {
        bytes = bytes.get(at + 1..).unwrap_or_default();
        let digits = bytes.get(..STAMP_DIGITS).and_then(|digits| std::str::from_utf8(digits).ok());
        on_chunk(digits.and_then(|digits| digits.parse().ok()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
    const BODY: &str = "1a\r\ndata: @0000000000000000042\r\n0\r\n\r\n";

    #[test]
    fn reads_may_split_anywhere() {
        let whole = format!("{HEAD}{BODY}");
        for at in 0..whole.len() {
            let (first, second) = whole.as_bytes().split_at(at);
            let (mut answer, mut chunks) = (Answer::default(), 0);
            assert!(!answer.take(first, |_| chunks += 1).unwrap(), "split at {at}");
            assert!(answer.take(second, |_| chunks += 1).unwrap(), "split at {at}");
            assert_eq!(chunks, 1, "split at {at}");
        }
    }

    #[test]
    fn a_send_time_is_read_when_it_is_whole() {
        let (mut answer, mut stamps) = (Answer::default(), Vec::new());
        assert!(!answer.take(HEAD.as_bytes(), |stamp| stamps.push(stamp)).unwrap());
        assert!(!answer.has_body());
        assert!(!answer.take(b"4\r\n@123\r\n", |stamp| stamps.push(stamp)).unwrap());
        assert!(answer.has_body());
        assert!(answer.take(BODY.as_bytes(), |stamp| stamps.push(stamp)).unwrap());
        assert_eq!(stamps, [None, Some(42)]);
    }

    #[test]
    fn a_refusal_is_an_error() {
        let refusal = b"HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\n\r\n";
        assert!(Answer::default().take(refusal, |_| ()).is_err());
    }
}
