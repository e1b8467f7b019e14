//! What is written and may not be on the disk yet.

use std::collections::VecDeque;
use std::sync::Arc;

use super::frames::Batch;
use crate::edge::journal::disk::OpenFile;

/// Written entries that are kept until they are synced, in bytes, to be written anew if that fails.
/// When syncs are slower than that, the oldest are only in the file.
const UNSYNCED_BYTES_MAX: usize = 16 << 20;

/// What is written, and may not be on the disk yet.
#[derive(Debug, Default)]
pub(super) struct Unsynced {
    pub(super) batches: VecDeque<Batch>,
    bytes: usize,
    /// Room of a batch that is not needed any longer.
    pub(super) spare: Vec<u8>,
    pub(super) files: Vec<Arc<dyn OpenFile>>,
    pub(super) syncer_sleeps: bool,
    /// The syncer is at it.
    pub(super) syncing: bool,
    /// The writer waits for the syncer.
    pub(super) hurried: bool,
    /// A sync failed or a file was lost: the batches are to be written anew.
    pub(super) doubtful: bool,
}

impl Unsynced {
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
            self.spare = batch.bytes;
        }
    }
}
