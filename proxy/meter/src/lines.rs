//! Cuts lines of JSON (`application/x-ndjson`). A read may begin and end anywhere.

use memchr::memchr;

use crate::partial::Partial;
use crate::sse::{BYTE_ORDER_MARK, Block, Event};

/// Cuts a stream into lines; each is an event.
#[derive(Debug)]
pub(crate) struct Lines(Partial);

impl Lines {
    /// Lines of at most `bytes_max`.
    pub(crate) const fn new(bytes_max: usize) -> Self {
        Self(Partial::new(bytes_max))
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
        Some(Block { end: *at, event: line.and_then(event) })
    }

    /// The end of the stream: what an unfinished last line says.
    pub(crate) fn close(&mut self) -> Option<Event<'_>> {
        self.0.close().and_then(event)
    }

    /// Lines that were too long.
    pub(crate) const fn too_long(&self) -> u32 {
        self.0.too_long
    }
}

/// What a line says; a blank one says nothing.
fn event(line: &[u8]) -> Option<Event<'_>> {
    let line = line.trim_ascii();
    let data = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line);
    (!data.is_empty()).then_some(Event { data, ..Event::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    const BYTES_MAX: usize = 1 << 20;

    /// What every line says, however the stream is cut into reads of `step` bytes.
    fn lines(stream: &str, step: usize) -> (Vec<String>, u32) {
        let mut lines = Lines::new(BYTES_MAX);
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
        (found, lines.too_long())
    }

    #[test]
    fn every_line_is_an_event_and_blank_ones_say_nothing() {
        let stream = "{\"a\":1}\n\n{\"b\":2}\r\n \n{\"c\":3}";
        for step in 1..=stream.len() {
            let (found, too_long) = lines(stream, step);
            assert_eq!(found, ["{\"a\":1}", "{\"b\":2}", "{\"c\":3}"], "reads of {step} bytes");
            assert_eq!(too_long, 0);
        }
    }

    #[test]
    fn what_is_too_long_is_counted_and_not_read() {
        let most = "x".repeat(BYTES_MAX);
        let stream = format!("a\n{most}y\nb\n{most}\n{most}z");
        for step in [4096, 65_536, 1_000_003, stream.len()] {
            let (found, too_long) = lines(&stream, step);
            assert_eq!(found, ["a", "b", &most], "reads of {step} bytes");
            assert_eq!(too_long, 2, "reads of {step} bytes");
        }
    }
}
