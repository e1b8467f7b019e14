//! Entries that have their place but are not written yet. They are framed one after the other and
//! cut where a segment begins, with a checkpoint as the segment's first entry.

use std::collections::VecDeque;
use std::mem;
use std::sync::Arc;

use jiff::Timestamp;
use taximeter_ledger::{
    CarriedRequest, Change, Digest, EncodedEntry, Entry, Framer, LedgerId, PendingRequests,
    Position, RunningTotals, StringsSoFar,
};

use super::super::retain::AgeWait;
use super::settling::Settling;

/// Frames that are written together.
#[derive(Debug)]
pub(in super::super) struct Batch {
    pub(in super::super) bytes: Vec<u8>,
    /// The frame before the first one.
    pub(in super::super) before: Position,
    /// The strings that had numbers there.
    pub(in super::super) strings: StringsSoFar,
    /// Digest of the segment that has it, up to that, once they are written.
    pub(in super::super) follows: Option<Digest>,
    pub(in super::super) last: Position,
    /// They are the first of a segment.
    pub(in super::super) begins_segment: bool,
    /// The requests that are open where the segment begins, until they are in `bytes`.
    carried: Vec<CarriedRequest>,
    /// Bytes of these in `bytes`, which are no entries and do not count as held.
    carried_bytes: usize,
}

/// Frames in order, and what all of the journal adds up to with them.
#[derive(Debug)]
pub(in super::super) struct Frames {
    bytes: Vec<u8>,
    before: Position,
    /// The strings that had numbers there.
    strings: StringsSoFar,
    framer: Framer,
    cuts: VecDeque<Cut>,
    tally: RunningTotals,
    /// The last entry is a checkpoint, or there is none.
    is_checked: bool,
    /// Length of the segment up to here.
    segment_filled: u64,
    /// A segment that is this long is followed by another one.
    segment_bytes: u64,
    settling: Settling,
}

/// Where a segment begins.
#[derive(Debug)]
struct Cut {
    /// In `bytes`.
    at: usize,
    before: Position,
    /// What is open there.
    carried: Vec<CarriedRequest>,
}

impl Batch {
    /// Puts the requests that the segment carries over before its first entry.
    pub(in super::super) fn carry_over(&mut self, ledger: LedgerId) {
        if self.carried.is_empty() {
            return;
        }
        let mut bytes = Vec::new();
        CarriedRequest::append_all(mem::take(&mut self.carried), ledger, &mut bytes);
        self.carried_bytes = bytes.len();
        bytes.append(&mut self.bytes);
        self.bytes = bytes;
    }

    /// Bytes of its entries.
    pub(super) const fn held_bytes(&self) -> usize {
        self.bytes.len() - self.carried_bytes
    }
}

impl Frames {
    /// None yet. `framer` goes on behind a checkpoint, or the beginning, which ends a segment of
    /// `segment_filled` bytes.
    pub(in super::super) fn new(
        framer: Framer,
        (tally, ages): (RunningTotals, Arc<AgeWait>),
        segment_filled: u64,
        segment_bytes: u64,
    ) -> Self {
        Self {
            bytes: Vec::new(),
            before: framer.last(),
            strings: framer.strings(),
            framer,
            cuts: VecDeque::new(),
            tally,
            is_checked: true,
            segment_filled,
            segment_bytes,
            settling: Settling::new(ages),
        }
    }

    /// The frames `bytes` are still to be written. They follow `before` and use no strings from
    /// before it.
    pub(in super::super) fn not_written(self, bytes: Vec<u8>, before: Position) -> Self {
        let segment_filled = self.segment_filled + bytes.len() as u64;
        Self { bytes, before, strings: StringsSoFar::default(), segment_filled, ..self }
    }

    /// Adds an entry, and before it a checkpoint where a segment begins. The bytes added.
    pub(super) fn push(
        &mut self,
        entry: &EncodedEntry<'_>,
        change: &Change<'_>,
        now: fn() -> Timestamp,
    ) -> usize {
        let before = self.bytes.len();
        if self.segment_filled >= self.segment_bytes && !self.is_checked {
            self.cut();
            self.check(now);
        }
        self.append(entry);
        self.tally.add_and_keep(self.last().seq, change, entry.payload());
        self.is_checked = false;
        self.bytes.len() - before
    }

    fn cut(&mut self) {
        let (at, before, carried) = (self.bytes.len(), self.last(), self.tally.carried());
        self.cuts.push_back(Cut { at, before, carried });
        self.segment_filled = 0;
    }

    /// Adds a checkpoint because time has passed, whatever the last entry is. The bytes added.
    pub(super) fn mark(&mut self, now: fn() -> Timestamp) -> usize {
        if self.segment_filled >= self.segment_bytes {
            self.cut();
        }
        self.is_checked = false;
        self.check(now)
    }

    /// Adds a checkpoint, unless the last entry is one. The bytes added. Gives up what is too old
    /// before that, unless the wall clock is in doubt.
    pub(super) fn check(&mut self, now: fn() -> Timestamp) -> usize {
        if let Some(time) = self.settling.age_wait.time() {
            self.tally.drop_old_pending(time);
        }
        let at = now();
        let mut checkpoint = self.tally.checkpoint(at);
        checkpoint.settled = self.settling.says(at, self.tally.settled_until(at));
        let checkpoint = Entry::Checkpoint(Box::new(checkpoint));
        let mut payload = Vec::new();
        match EncodedEntry::new(&checkpoint, &mut payload) {
            Ok(entry) if !mem::replace(&mut self.is_checked, true) => self.append(&entry),
            // Without one a start reads a little more.
            _ => 0,
        }
    }

    fn append(&mut self, entry: &EncodedEntry<'_>) -> usize {
        let before = self.bytes.len();
        self.framer.append(entry, &mut self.bytes);
        let added = self.bytes.len() - before;
        self.segment_filled += added as u64;
        added
    }

    /// Takes the frames of one segment; `spare` is room for further ones.
    pub(super) fn take(&mut self, spare: Vec<u8>) -> Batch {
        let cut = self.cuts.pop_front_if(|cut| cut.at == 0);
        let begins_segment = cut.is_some();
        let carried = cut.map(|cut| cut.carried).unwrap_or_default();
        let (rest, last, strings) = match self.cuts.front().map(|cut| (cut.at, cut.before)) {
            None => (spare, self.last(), self.framer.strings()),
            Some((end, last)) => {
                let rest = self.bytes.split_off(end);
                for cut in &mut self.cuts {
                    cut.at -= end;
                }
                // What follows begins with a checkpoint.
                (rest, last, StringsSoFar::default())
            }
        };
        let before = mem::replace(&mut self.before, last);
        let strings = mem::replace(&mut self.strings, strings);
        Batch {
            bytes: mem::replace(&mut self.bytes, rest),
            before,
            strings,
            follows: None,
            last,
            begins_segment,
            carried,
            carried_bytes: 0,
        }
    }

    /// The requests whose usage is pending.
    pub(super) const fn pending(&self) -> &PendingRequests {
        self.tally.pending()
    }

    /// Up to when everything is settled at the time `at`.
    pub(super) fn settled_until(&self, at: Timestamp) -> Timestamp {
        self.tally.settled_until(at)
    }

    /// What is known of time.
    pub(super) const fn settling(&mut self) -> &mut Settling {
        &mut self.settling
    }

    /// Bytes that are not taken.
    pub(super) const fn queued_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Whether all are taken.
    pub(super) const fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The last one that was added.
    pub(super) const fn last(&self) -> Position {
        self.framer.last()
    }

    /// The last one that was taken, and the strings that have numbers there.
    pub(super) fn taken(&self) -> (Position, StringsSoFar) {
        (self.before, self.strings.clone())
    }
}
