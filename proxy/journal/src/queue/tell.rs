//! Reports the state of the queue.

use std::sync::atomic::Ordering::Relaxed;

use taximeter_ledger::{PendingRequest, TenantId};

use super::Queue;
use crate::error::AppendError;
use crate::options::Event;
use crate::state::JournalState;

impl Queue {
    /// How the journal does.
    pub(in super::super) fn tell_state(&self) -> JournalState {
        let state = self.lock();
        JournalState {
            synced: state.unsynced.synced_at.map(|at| (state.unsynced.synced, at)),
            queued_bytes: state.held_bytes,
            lost: state.lost,
            pending: state.frames.pending().len(),
        }
    }

    /// The last entry that is written.
    pub(in super::super) fn sequence(&self) -> u64 {
        self.lock().written
    }

    /// The number of the first entry of the segment that is written to.
    pub(in super::super) fn open_segment(&self) -> u64 {
        self.open_segment.load(Relaxed)
    }

    /// A segment was opened that begins with entry `first_seq`. Those before it are closed.
    pub(in super::super) fn opened(&self, first_seq: u64) {
        self.open_segment.store(first_seq, Relaxed);
    }

    /// The pending request of this tenant whose answer by this upstream has this `id`.
    pub(in super::super) fn pending(
        &self,
        tenant: &TenantId,
        upstream: &str,
        response_id: &str,
    ) -> Option<PendingRequest> {
        self.lock().frames.pending().find(tenant, upstream, response_id).cloned()
    }

    #[cfg(test)]
    pub(in super::super) fn synced_up_to(&self) -> u64 {
        self.lock().unsynced.synced
    }

    /// Counts and tells an entry that was not taken.
    pub(in super::super) fn lose(&self, error: AppendError) {
        self.lock().lost += 1;
        self.tell(&Event::EntryLost { error });
    }

    #[cfg(test)]
    pub(in super::super) fn lost(&self) -> u64 {
        self.lock().lost
    }
}
