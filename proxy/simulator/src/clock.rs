//! The simulator's only clock. It is monotonic and is tied to the wall clock once, at the start.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::time::Instant;

/// Tells the time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    /// When the simulator started; streams that go in step count from here.
    pub(crate) epoch: Instant,
    unix_epoch: Duration,
}

impl Clock {
    #[expect(clippy::disallowed_methods, reason = "an engine of its own, with a clock of its own")]
    pub(crate) fn start() -> Self {
        let unix_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { epoch: Instant::now(), unix_epoch }
    }

    #[expect(clippy::disallowed_methods, reason = "an engine of its own, with a clock of its own")]
    pub(crate) fn now(&self) -> Instant {
        Instant::now()
    }

    /// Time since 1970 at `instant`.
    pub(crate) fn unix(&self, instant: Instant) -> Duration {
        self.unix_epoch + instant.saturating_duration_since(self.epoch)
    }
}
