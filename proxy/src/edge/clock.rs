//! The only place that reads a clock. Everything else takes time as an argument.

use std::time::Instant;

use jiff::Timestamp;

/// Monotonic time: for durations.
#[expect(clippy::disallowed_methods, reason = "this is the one place that reads the clock")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// Wall time: for stamps on records. May step; durations never come from it.
#[expect(clippy::disallowed_methods, reason = "this is the one place that reads the clock")]
pub(crate) fn wall() -> Timestamp {
    Timestamp::now()
}
