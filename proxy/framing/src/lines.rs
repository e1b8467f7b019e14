//! Cuts lines of JSON (`application/x-ndjson`). A read may begin and end anywhere.

use memchr::memchr;

use crate::partial::{Data, Partial};
use crate::sse::{BYTE_ORDER_MARK, Block, Event};

/// Cuts a stream into lines; each is an event.
#[derive(Debug)]
pub(crate) struct Lines(Partial);

impl Lines {
    /// Nothing has come yet.
    pub(crate) const fn new() -> Self {
        Self(Partial::new())
    }

    /// The next line that ends in `read` at or behind offset `at`, which moves behind it.
    ///
    /// `None` when the read is used up; what is left of it is kept for the next.
    pub(crate) fn next<'s>(&'s mut self, read: &'s [u8], at: &mut usize) -> Option<Block<'s>> {
        self.0.renew();
        let rest = read.get(*at..).filter(|rest| !rest.is_empty())?;
        let Some(length) = memchr(b'\n', rest) else {
            self.0.keep(rest);
            *at = read.len();
            return None;
        };
        *at += length + 1;
        let line = self.0.end(rest.get(..length).unwrap_or_default());
        Some(Block { end: *at, event: event(line) })
    }

    /// The end of the stream: what an unfinished last line says.
    pub(crate) fn close(&mut self) -> Option<Event<'_>> {
        self.0.close().and_then(event)
    }
}

/// What a line says; a blank one says nothing.
fn event(line: Data<'_>) -> Option<Event<'_>> {
    let bytes = line.bytes.trim_ascii();
    let bytes = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes);
    (!bytes.is_empty()).then_some(Event::of(Data { bytes, ..line }))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What every line says, however the stream is cut into reads of `step` bytes.
    fn lines(stream: &str, step: usize) -> Vec<String> {
        let mut lines = Lines::new();
        let mut found = Vec::new();
        let mut note =
            |event: Event<'_>| found.push(String::from_utf8_lossy(event.data).into_owned());
        for read in stream.as_bytes().chunks(step) {
            let mut at = 0;
            while let Some(block) = lines.next(read, &mut at) {
                assert_eq!(block.end, at);
                block.event.map(&mut note);
            }
        }
        lines.close().map(&mut note);
        found
    }

    #[test]
    fn every_line_is_an_event_and_blank_ones_say_nothing() {
        let stream = "{\"a\":1}\n\n{\"b\":2}\r\n \n{\"c\":3}";
        for step in 1..=stream.len() {
            let found = lines(stream, step);
            assert_eq!(found, ["{\"a\":1}", "{\"b\":2}", "{\"c\":3}"], "reads of {step} bytes");
        }
    }

    #[test]
    fn a_long_line_is_condensed() {
        let (picture, blanks) = ("x".repeat(3 << 20), " ".repeat(100_000));
        let line = |picture: &str| format!("{{\"a\":\"{picture}\",\"b\":7}}");
        let long = line(&picture);
        let stream = format!("1\n{long} \r\n{blanks}\n2\n{blanks}{long}{blanks}");
        let short = line(&picture[..4 << 10]);
        for step in [4_096, 65_536, 1_000_003, stream.len()] {
            let found = lines(&stream, step);
            assert!(found == ["1", &short, "2", &short], "reads of {step} bytes");
        }
    }
}
