//! Rings for the writer behind the tasks of a worker that are ready.

use tokio::runtime::{Handle, RuntimeFlavor};

/// Drops `ring` behind the tasks that are ready now on a thread that carries requests: what they
/// append shares one write and one wake. Elsewhere at once, since nobody should wait for that thread.
pub(super) fn after_turn(ring: impl Send + 'static) {
    match Handle::try_current() {
        Ok(runtime) if runtime.runtime_flavor() == RuntimeFlavor::CurrentThread => {
            runtime.spawn(async move { drop(ring) });
        }
        _ => drop(ring),
    }
}
