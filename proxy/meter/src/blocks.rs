//! What a stream is cut into: blocks of server-sent events, or lines of JSON.

use crate::lines::Lines;
use crate::sse::{Block, Event, Splitter};

/// Cuts a stream by one of both rules.
#[derive(Debug)]
pub(crate) struct Blocks {
    bytes_max: usize,
    splitter: Splitter,
    lines: Option<Lines>,
}

impl Blocks {
    /// Events, until it is known to be lines; of at most `bytes_max` each.
    pub(crate) const fn new(bytes_max: usize) -> Self {
        Self { bytes_max, splitter: Splitter::new(bytes_max), lines: None }
    }

    /// Tells which it is, before anything but blanks has come.
    pub(crate) fn are_lines(&mut self, lines: bool) {
        self.lines = lines.then(|| Lines::new(self.bytes_max));
    }

    /// The next block that ends in `read` at or behind offset `at`, which moves behind it.
    pub(crate) fn next<'s>(&'s mut self, read: &'s [u8], at: &mut usize) -> Option<Block<'s>> {
        match &mut self.lines {
            None => self.splitter.next(read, at),
            Some(lines) => lines.next(read, at),
        }
    }

    /// What an unfinished last block says.
    pub(crate) fn close(&mut self) -> Option<Event<'_>> {
        match &mut self.lines {
            None => self.splitter.close(),
            Some(lines) => lines.close(),
        }
    }

    /// Lines and events that were too long.
    pub(crate) fn too_long(&self) -> u32 {
        self.splitter.too_long + self.lines.as_ref().map_or(0, |lines| lines.too_long)
    }
}
