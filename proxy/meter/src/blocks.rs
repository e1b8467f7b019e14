//! Cuts a stream into blocks: server-sent events, lines of JSON, messages of AWS event streams, or
//! elements of a JSON list.

use crate::elements::Elements;
use crate::frames::Frames;
use crate::lines::Lines;
use crate::sniff::BodyKind;
use crate::sse::{Block, Event, Splitter};

/// Cuts a stream by one of these rules.
#[derive(Debug)]
pub(crate) enum Blocks {
    Events(Splitter),
    Lines(Lines),
    Frames(Frames),
    Elements(Elements),
}

impl Blocks {
    /// Events, until it is known to be something else.
    pub(crate) const fn new() -> Self {
        Self::Events(Splitter::new())
    }

    /// Tells what it is, before anything but blanks has come.
    pub(crate) fn are(&mut self, kind: BodyKind) {
        match kind {
            BodyKind::Lines => *self = Self::Lines(Lines::new()),
            BodyKind::Frames => *self = Self::Frames(Frames::new()),
            BodyKind::Elements => *self = Self::Elements(Elements::new()),
            BodyKind::Unsure | BodyKind::Events | BodyKind::Document | BodyKind::Opaque => {}
        }
    }

    /// The next block that ends in `read` at or behind offset `at`, which moves behind it.
    pub(crate) fn next<'s>(&'s mut self, read: &'s [u8], at: &mut usize) -> Option<Block<'s>> {
        match self {
            Self::Events(splitter) => splitter.next(read, at),
            Self::Lines(lines) => lines.next(read, at),
            Self::Frames(frames) => frames.next(read, at),
            Self::Elements(elements) => elements.next(read, at),
        }
    }

    /// What an unfinished last block says.
    pub(crate) fn close(&mut self) -> Option<Event<'_>> {
        match self {
            Self::Events(splitter) => splitter.close(),
            Self::Lines(lines) => lines.close(),
            // Half of one cannot be read.
            Self::Frames(_) | Self::Elements(_) => None,
        }
    }

    /// Messages that could not be read, and what was none.
    pub(crate) const fn unread(&self) -> u32 {
        match self {
            Self::Frames(frames) => frames.unread,
            Self::Events(_) | Self::Lines(_) | Self::Elements(_) => 0,
        }
    }
}
