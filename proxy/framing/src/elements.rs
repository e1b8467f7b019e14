//! Cuts one JSON list into its elements. Gemini streams such a list where the client does not ask
//! for events. A read may begin and end anywhere.

use taximeter_json::Nesting;

use crate::partial::Partial;
use crate::sse::{Block, Event};

/// Depth inside the list, outside of its elements.
const LIST_DEPTH: usize = 1;

/// Cuts a list into its elements; each is an event. Those that are neither objects nor lists say
/// nothing.
#[derive(Debug)]
pub(crate) struct Elements {
    nesting: Nesting,
    element: Partial,
}

impl Elements {
    /// Nothing has come yet.
    pub(crate) const fn new() -> Self {
        Self { nesting: Nesting::new(), element: Partial::new() }
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
        Some(Block { end: *at, event: Some(Event::of(self.element.end(part))) })
    }

    /// Goes through `rest` up to behind the end of an element. Where in it that began, or goes on,
    /// and where it ends.
    fn step(&mut self, rest: &[u8]) -> (Option<usize>, Option<usize>) {
        let (begin, inside) = if self.nesting.depth() > LIST_DEPTH {
            (0, 0)
        } else {
            match self.nesting.reach(rest, LIST_DEPTH + 1) {
                Some(inside) => (inside - 1, inside),
                None => return (None, None),
            }
        };
        let end = self.nesting.reach(rest.get(inside..).unwrap_or_default(), LIST_DEPTH);
        (Some(begin), end.map(|end| inside + end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What every element says, however the list is cut into reads of `step` bytes.
    fn elements(list: &str, step: usize) -> Vec<String> {
        let mut elements = Elements::new();
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
        found
    }

    #[test]
    fn every_element_is_an_event_as_soon_as_it_ends() {
        let first = r#"{"a":"]},{[\"\\","b":[{"c":[]}]}"#;
        let second = "[{},\n[]]";
        let list = format!(" [ {first}\n,\r\n7, \"}}{{\\\"\", {second},{{\"half\":\"");
        for step in 1..=list.len() {
            assert_eq!(elements(&list, step), [first, second], "reads of {step} bytes");
            let whole = format!("{list}\"}}] ");
            assert_eq!(elements(&whole, step).len(), 3, "reads of {step} bytes");
        }
        assert_eq!(elements("[]", 1), [""; 0]);
    }

    #[test]
    fn a_long_element_is_condensed() {
        let picture = "x".repeat(3 << 20);
        let element = |picture: &str| format!("{{\"a\":[\"{picture}\"],\"b\":7}}");
        let (long, short) = (element(&picture), element(&picture[..4 << 10]));
        let list = format!("[{{}},{long},\n{long},[]]");
        for step in [4_096, 65_536, 1_000_003, list.len()] {
            let found = elements(&list, step);
            assert!(found == ["{}", &short, &short, "[]"], "reads of {step} bytes");
        }
    }
}
