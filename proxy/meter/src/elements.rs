//! Cuts one JSON list into its elements. Gemini streams such a list where the client does not ask
//! for events. A read may begin and end anywhere.

use memchr::memchr2;

use crate::partial::Partial;
use crate::sse::{Block, Event};

/// Cuts a list into its elements; each is an event. Those that are neither objects nor lists say
/// nothing.
#[derive(Debug)]
pub(crate) struct Elements {
    /// Brackets that are open, the list's own included.
    depth: usize,
    text: InText,
    element: Partial,
}

/// Whether what comes is inside of a JSON text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum InText {
    No,
    Yes,
    /// Behind a backslash.
    Escaped,
}

impl Elements {
    /// Elements of at most `bytes_max`.
    pub(crate) const fn new(bytes_max: usize) -> Self {
        Self { depth: 0, text: InText::No, element: Partial::new(bytes_max) }
    }

    /// The next element that ends in `read` at or behind offset `at`, which moves behind it.
    ///
    /// `None` when the read is used up; what is left of it is kept for the next.
    pub(crate) fn next<'s>(&'s mut self, read: &'s [u8], at: &mut usize) -> Option<Block<'s>> {
        self.element.renew();
        let rest = read.get(*at..).filter(|rest| !rest.is_empty())?;
        let (begin, end) = self.step(rest);
        let part = begin.and_then(|begin| rest.get(begin..end.unwrap_or(rest.len())));
        let part = part.unwrap_or_default();
        let Some(end) = end else {
            self.element.keep(part);
            *at = read.len();
            return None;
        };
        *at += end;
        let data = self.element.end(part);
        Some(Block { end: *at, event: data.map(|data| Event { is_error: false, data }) })
    }

    /// Elements that were too long.
    pub(crate) const fn too_long(&self) -> u32 {
        self.element.too_long
    }

    /// Goes through `rest` up to behind the end of an element. Where in it that began, or goes on,
    /// and where it ends.
    fn step(&mut self, rest: &[u8]) -> (Option<usize>, Option<usize>) {
        let mut begin = (self.depth > 1).then_some(0);
        let mut at = 0;
        while let Some(ahead) = rest.get(at..).filter(|ahead| !ahead.is_empty()) {
            let mark = match self.text {
                InText::Escaped => Some(0),
                InText::Yes => memchr2(b'"', b'\\', ahead),
                InText::No => ahead.iter().position(|byte| b"\"{}[]".contains(byte)),
            };
            let Some(mark) = mark else { break };
            let (here, byte) = (at + mark, ahead.get(mark));
            at = here + 1;
            match (self.text, byte) {
                (InText::Escaped, _) => self.text = InText::Yes,
                (InText::Yes, Some(b'\\')) => self.text = InText::Escaped,
                (InText::Yes, _) => self.text = InText::No,
                (InText::No, Some(b'"')) => self.text = InText::Yes,
                (InText::No, Some(b'{' | b'[')) => {
                    self.depth += 1;
                    if self.depth == 2 {
                        begin = Some(here);
                    }
                }
                (InText::No, _) => {
                    self.depth = self.depth.saturating_sub(1);
                    if self.depth == 1 {
                        return (begin, Some(at));
                    }
                }
            }
        }
        (begin, None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BYTES_MAX: usize = 1 << 20;

    /// What every element says, however the list is cut into reads of `step` bytes.
    fn elements(list: &str, step: usize) -> (Vec<String>, u32) {
        let mut elements = Elements::new(BYTES_MAX);
        let mut found = Vec::new();
        for read in list.as_bytes().chunks(step) {
            let mut at = 0;
            while let Some(block) = elements.next(read, &mut at) {
                assert_eq!(block.end, at);
                let said =
                    block.event.map(|event| String::from_utf8_lossy(event.data).into_owned());
                found.extend(said);
            }
            assert_eq!(at, read.len());
        }
        (found, elements.too_long())
    }

    #[test]
    fn every_element_is_an_event_as_soon_as_it_ends() {
        let first = r#"{"a":"]},{[\"\\","b":[{"c":[]}]}"#;
        let second = "[{},\n[]]";
        let list = format!(" [ {first}\n,\r\n7, \"}}{{\\\"\", {second},{{\"half\":\"");
        for step in 1..=list.len() {
            assert_eq!(elements(&list, step).0, [first, second], "reads of {step} bytes");
            let whole = format!("{list}\"}}] ");
            assert_eq!(elements(&whole, step).0.len(), 3, "reads of {step} bytes");
        }
        assert_eq!(elements("[]", 1).0, [""; 0]);
    }

    #[test]
    fn what_is_too_long_is_counted_and_not_read() {
        let element = |length: usize| format!("{{\"{}\"}}", "x".repeat(length - 4));
        let (most, more) = (element(BYTES_MAX), element(BYTES_MAX + 1));
        let list = format!("[{{}},{more},{most},{more},[]]");
        for step in [4096, 65_536, 1_000_003, list.len()] {
            let (found, too_long) = elements(&list, step);
            assert_eq!(found, ["{}", &most, "[]"], "reads of {step} bytes");
            assert_eq!(too_long, 2, "reads of {step} bytes");
        }
    }
}
