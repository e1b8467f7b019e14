//! Keeps entries that are written but may not be on the disk yet.

use std::collections::VecDeque;
use std::sync::Arc;

use jiff::Timestamp;
use taximeter_ledger::{Digest, Position, StringsSoFar};

use super::frames::Batch;
use crate::disk::OpenFile;

/// Written entries that are kept until they are synced, in bytes, to be written anew if that fails.
/// When syncs are slower than that, the oldest are only in the file.
const UNSYNCED_BYTES_MAX: usize = 16 << 20;

/// DiskBudget of batches that is kept for others, in bytes: more of it is left from an outage.
const SPARE_BYTES_MAX: usize = 1 << 20;

/// What is written, and may not be on the disk yet.
#[derive(Debug, Default)]
pub(super) struct Unsynced {
    pub(super) batches: VecDeque<Batch>,
    bytes: usize,
    /// DiskBudget of batches that are not needed any longer, each as large as a batch grew.
    spares: Vec<Vec<u8>>,
    /// How much room that is.
    spare_bytes: usize,
    pub(super) files: Vec<Arc<dyn OpenFile>>,
    pub(super) syncer_sleeps: bool,
    /// The syncer is at it.
    pub(super) syncing: bool,
    /// The writer waits for the syncer.
    pub(super) hurried: bool,
    /// A sync failed or a file was lost: the batches are to be written anew.
    pub(super) doubtful: bool,
    /// Sequence number of the last entry that is known to be on the disk.
    pub(super) synced: u64,
    /// Since when that is known; `None` where it is since before the start.
    pub(super) synced_at: Option<Timestamp>,
    /// The last one that a mark was taken for.
    marked: u64,
}

/// Frames that are to be written anew.
#[derive(Debug)]
pub(in super::super) struct Doubtful {
    /// The frame before them. Where there are none, the last one that was written.
    pub(in super::super) before: Position,
    /// The digest of the segment that has it.
    pub(in super::super) follows: Option<Digest>,
    /// The strings that had numbers there.
    pub(in super::super) strings: StringsSoFar,
    pub(in super::super) frames: Vec<u8>,
}

impl Unsynced {
    /// Nothing; the entries up to `synced` are on the disk.
    pub(super) fn new(synced: u64) -> Self {
        Self { synced, marked: synced, ..Self::default() }
    }

    /// Nothing any longer: all is written anew, and on the disk up to `synced`.
    pub(super) fn renew(&mut self, synced: Option<(u64, Timestamp)>) {
        let Self { syncer_sleeps, syncing, marked, .. } = *self;
        let (synced, synced_at) =
            synced.map_or((self.synced, self.synced_at), |(seq, at)| (seq, Some(at)));
        *self = Self { syncer_sleeps, syncing, synced, synced_at, marked, ..Self::default() };
    }

    /// What is to be written anew, if there is a doubt.
    pub(super) fn doubtful(
        &self,
        last: Position,
        digest: Option<Digest>,
        strings: &StringsSoFar,
    ) -> Option<Doubtful> {
        let (before, follows, strings) = match self.batches.front() {
            Some(first) => (first.before, first.follows, &first.strings),
            None => (last, digest, strings),
        };
        let frames = || self.batches.iter().flat_map(|batch| &batch.bytes).copied().collect();
        let doubtful = || Doubtful { before, follows, strings: strings.clone(), frames: frames() };
        self.doubtful.then(doubtful)
    }

    /// Whether more is synced than a mark says.
    pub(super) const fn is_unmarked(&self) -> bool {
        self.synced > self.marked
    }

    /// The last entry that is synced, if no mark was taken for it.
    pub(super) fn take_unmarked(&mut self) -> Option<u64> {
        let is_news = self.is_unmarked();
        self.marked = self.synced;
        is_news.then_some(self.synced)
    }

    pub(super) fn push(&mut self, batch: Batch, file: &Arc<dyn OpenFile>) {
        self.bytes += batch.bytes.len();
        self.batches.push_back(batch);
        let mut excess = self.bytes.saturating_sub(UNSYNCED_BYTES_MAX);
        self.forget(|batch| {
            let forgotten = excess > 0;
            excess = excess.saturating_sub(batch.bytes.len());
            forgotten
        });
        if !self.files.last().is_some_and(|last| Arc::ptr_eq(last, file)) {
            self.files.push(Arc::clone(file));
        }
    }

    /// Drops the oldest batches, as long as `done` says so.
    pub(super) fn forget(&mut self, mut done: impl FnMut(&Batch) -> bool) {
        while let Some(batch) = self.batches.pop_front_if(|batch| done(batch)) {
            self.bytes -= batch.bytes.len();
            self.put_spare(batch.bytes);
        }
    }

    /// Keeps the room of a batch for another.
    pub(super) fn put_spare(&mut self, mut bytes: Vec<u8>) {
        if self.spare_bytes + bytes.capacity() <= SPARE_BYTES_MAX {
            bytes.clear();
            self.spare_bytes += bytes.capacity();
            self.spares.push(bytes);
        }
    }

    /// DiskBudget for a batch.
    pub(super) fn take_spare(&mut self) -> Vec<u8> {
        let spare = self.spares.pop().unwrap_or_default();
        self.spare_bytes -= spare.capacity();
        spare
    }
}
