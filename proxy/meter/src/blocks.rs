//! Cuts a stream into blocks: server-sent events, lines of JSON, messages of AWS event streams, or
//! elements of a JSON list.

use crate::elements::Elements;
use crate::frames::Frames;
use crate::lines::Lines;
use crate::sniff::BodyKind;
use crate::sse::{Block, Event, Splitter};

/// Cuts a stream by one of these rules.
#[derive(Debug)]
pub(crate) struct Blocks {
    bytes_max: usize,
    cutter: Cutter,
}

#[derive(Debug)]
enum Cutter {
    Events(Splitter),
    Lines(Lines),
    Frames(Frames),
    Elements(Elements),
}

impl Blocks {
    /// Events, until it is known to be something else; of at most `bytes_max` each.
    pub(crate) const fn new(bytes_max: usize) -> Self {
        Self { bytes_max, cutter: Cutter::Events(Splitter::new(bytes_max)) }
    }

    /// Tells what it is, before anything but blanks has come.
    pub(crate) fn are(&mut self, kind: BodyKind) {
        match kind {
            BodyKind::Lines => self.cutter = Cutter::Lines(Lines::new(self.bytes_max)),
            BodyKind::Frames => self.cutter = Cutter::Frames(Frames::new(self.bytes_max)),
            BodyKind::Elements => self.cutter = Cutter::Elements(Elements::new(self.bytes_max)),
            BodyKind::Unsure | BodyKind::Events | BodyKind::Document | BodyKind::Opaque => {}
        }
    }

    /// The next block that ends in `read` at or behind offset `at`, which moves behind it.
    pub(crate) fn next<'s>(&'s mut self, read: &'s [u8], at: &mut usize) -> Option<Block<'s>> {
        match &mut self.cutter {
            Cutter::Events(splitter) => splitter.next(read, at),
            Cutter::Lines(lines) => lines.next(read, at),
            Cutter::Frames(frames) => frames.next(read, at),
            Cutter::Elements(elements) => elements.next(read, at),
        }
    }

    /// What an unfinished last block says.
    pub(crate) fn close(&mut self) -> Option<Event<'_>> {
        match &mut self.cutter {
            Cutter::Events(splitter) => splitter.close(),
            Cutter::Lines(lines) => lines.close(),
            // Half of one cannot be read.
            Cutter::Frames(_) | Cutter::Elements(_) => None,
        }
    }

    /// Lines, events, messages and elements that were too long.
    pub(crate) const fn too_long(&self) -> u32 {
        match &self.cutter {
            Cutter::Events(splitter) => splitter.too_long,
            Cutter::Lines(lines) => lines.too_long(),
            Cutter::Frames(frames) => frames.too_long,
            Cutter::Elements(elements) => elements.too_long(),
        }
    }
}
