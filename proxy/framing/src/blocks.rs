//! Cuts a stream into blocks: server-sent events, lines of JSON, messages of AWS event streams, or
//! elements of a JSON list.

use crate::elements::Elements;
use crate::frames::Frames;
use crate::lines::Lines;
use crate::sniff::BodyKind;
use crate::sse::{Block, Event, Splitter};

/// Cuts a stream into blocks.
#[derive(Debug)]
pub struct Blocks(Rule);

/// Where a block ends.
#[derive(Debug)]
enum Rule {
    Events(Splitter),
    Lines(Lines),
    Frames(Frames),
    Elements(Elements),
}

impl Blocks {
    /// Events, until it is known to be something else.
    #[must_use]
    pub const fn new() -> Self {
        Self(Rule::Events(Splitter::new()))
    }

    /// Tells what it is, before anything but blanks has come.
    pub fn are(&mut self, kind: BodyKind) {
        self.0 = match kind {
            BodyKind::Lines => Rule::Lines(Lines::new()),
            BodyKind::Frames => Rule::Frames(Frames::new()),
            BodyKind::Elements => Rule::Elements(Elements::new()),
            BodyKind::Unsure | BodyKind::Events | BodyKind::Document | BodyKind::Opaque => return,
        };
    }

    /// The next block that ends in `read` at or behind offset `at`, which moves behind it.
    pub fn next<'s>(&'s mut self, read: &'s [u8], at: &mut usize) -> Option<Block<'s>> {
        match &mut self.0 {
            Rule::Events(splitter) => splitter.next(read, at),
            Rule::Lines(lines) => lines.next(read, at),
            Rule::Frames(frames) => frames.next(read, at),
            Rule::Elements(elements) => elements.next(read, at),
        }
    }

    /// What an unfinished last block says.
    pub fn close(&mut self) -> Option<Event<'_>> {
        match &mut self.0 {
            Rule::Events(splitter) => splitter.close(),
            Rule::Lines(lines) => lines.close(),
            // Half of one cannot be read.
            Rule::Frames(_) | Rule::Elements(_) => None,
        }
    }

    /// Messages that could not be read, and what was none.
    #[must_use]
    pub const fn unread(&self) -> u32 {
        match &self.0 {
            Rule::Frames(frames) => frames.unread,
            Rule::Events(_) | Rule::Lines(_) | Rule::Elements(_) => 0,
        }
    }
}

impl Default for Blocks {
    fn default() -> Self {
        Self::new()
    }
}
