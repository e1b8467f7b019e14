//! How long anything is waited for.

use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

/// Longest wait for anything: far above what a busy machine needs, so that it only ever ends a
/// failed test.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// Longest start, with all that was open settled: twice what is promised, for programs that are not
/// optimized and run beside others.
pub(crate) const START_MAX: Duration = Duration::from_secs(10);

/// The end of a wait that has several steps.
pub(crate) struct Limit(Instant);

impl Limit {
    /// A wait begins.
    #[expect(clippy::disallowed_methods, reason = "what never comes has no time of its own")]
    pub(crate) fn begin() -> Self {
        Self(Instant::now() + PATIENCE)
    }

    /// What is left of it.
    #[expect(clippy::disallowed_methods, reason = "as above")]
    pub(crate) fn left(&self) -> Duration {
        self.0.saturating_duration_since(Instant::now())
    }

    /// Whether no more than this has passed since it began.
    pub(crate) fn is_within(&self, time: Duration) -> bool {
        PATIENCE - self.left() <= time
    }

    /// Whether it is over.
    pub(crate) fn is_over(&self) -> bool {
        self.left().is_zero()
    }
}

/// Looks again and again until something is there; `None` when it has not come within `PATIENCE`.
pub(crate) fn patiently<T>(mut look: impl FnMut() -> Option<T>) -> Option<T> {
    /// Between two looks, so that they do not keep busy what they wait for.
    const PAUSE: Duration = Duration::from_millis(5);
    let (_sender, nothing) = channel::<()>();
    let limit = Limit::begin();
    loop {
        let there = look();
        if there.is_some() || limit.is_over() {
            return there;
        }
        let _ = nothing.recv_timeout(PAUSE);
    }
}
