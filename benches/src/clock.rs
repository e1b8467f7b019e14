//! Time for the benches, in one place.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds of `CLOCK_MONOTONIC`: the same clock in every process of this machine, so that a
/// stamp of the engine can be compared with a reading of the client.
#[must_use]
pub fn monotonic_nanos() -> u64 {
    nanos(ClockId::Monotonic)
}

/// CPU time of this process in nanoseconds, exact to the moment.
#[must_use]
pub fn cpu_nanos() -> u64 {
    nanos(ClockId::ProcessCPUTime)
}

/// Nanoseconds since 1970.
#[must_use]
pub fn wall_nanos() -> u64 {
    nanos(ClockId::Realtime)
}

fn nanos(clock: ClockId) -> u64 {
    let now = clock_gettime(clock);
    let seconds = u64::try_from(now.tv_sec).unwrap_or_default();
    seconds * 1_000_000_000 + u64::try_from(now.tv_nsec).unwrap_or_default()
}

/// Waits, for the one program here that carries no stream.
#[expect(clippy::disallowed_methods, reason = "`compare` only starts, waits and reads /proc")]
pub fn pause(duration: Duration) {
    std::thread::sleep(duration);
}
