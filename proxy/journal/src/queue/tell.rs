//! Reports the state of the queue.

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
