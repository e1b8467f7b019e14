//! Rings for the writer when something is queued.

use std::sync::Arc;

use tokio::runtime::{Handle, RuntimeFlavor};

use super::{Bell, Queue};

/// Rings for the writer when dropped.
pub(super) struct Ring(pub(super) Arc<Queue>);

impl Drop for Ring {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        // The writer may have been there already, to settle a doubt.
        state.bell = if state.frames.is_empty() { Bell::Quiet } else { Bell::Rung };
        drop(state);
        self.0.work.notify_one();
    }
}

/// Rings behind the tasks that are ready now on a thread that carries requests: what they append
/// shares one write and one wake. Elsewhere at once, since nobody should wait for that thread.
pub(super) fn ring_after_turn(ring: Ring) {
    match Handle::try_current() {
        Ok(runtime) if runtime.runtime_flavor() == RuntimeFlavor::CurrentThread => {
            runtime.spawn(async move { drop(ring) });
        }
        _ => drop(ring),
    }
}
