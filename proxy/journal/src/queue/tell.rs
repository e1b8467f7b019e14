//! Reports the state of the queue.

use super::Queue;
use crate::state::JournalState;

impl Queue {
    /// How the journal does.
    pub(in super::super) fn tell_state(&self) -> JournalState {
        let state = self.lock();
        JournalState {
            synced: state.unsynced.synced_at.map(|at| (state.unsynced.synced, at)),
            queued_bytes: state.held_bytes,
            lost: state.lost,
        }
    }

    #[cfg(test)]
    pub(in super::super) fn synced_up_to(&self) -> u64 {
        self.lock().unsynced.synced
    }
}
