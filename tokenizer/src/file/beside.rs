//! Runs two functions at the same time.

use std::{fmt, thread};

use super::recipe::Unsupported;

/// Does `here`, and on a thread of its own what is `there`.
///
/// Errors: no thread, or one that panicked.
pub(super) fn beside<T, U: Send>(
    here: impl FnOnce() -> T,
    there: impl FnOnce() -> U + Send,
) -> Result<(T, U), Unsupported> {
    let failed = |why: &dyn fmt::Debug| Unsupported(format!("a thread: {why:?}"));
    thread::scope(|scope| {
        let there = thread::Builder::new().spawn_scoped(scope, there);
        let there = there.map_err(|error| failed(&error))?;
        let here = here();
        let there = there.join().map_err(|panic| failed(&panic))?;
        Ok((here, there))
    })
}
