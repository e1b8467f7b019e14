//! Detects a worker thread that hangs. Each worker reports once a second.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Who says nothing for longer than this hangs, or has died.
const SILENCE_MAX: Duration = Duration::from_secs(10);
/// Of a thread that has ended as it should.
const OVER: u64 = u64::MAX;

/// When each thread was last heard.
#[derive(Debug)]
pub struct WorkerHeartbeat {
    since: Instant,
    /// Milliseconds after `since`.
    heard: Box<[AtomicU64]>,
}

impl WorkerHeartbeat {
    /// Of so many threads, which are as good as heard `now`.
    pub fn new(threads: usize, now: Instant) -> Self {
        Self { since: now, heard: (0..threads).map(|_| AtomicU64::new(0)).collect() }
    }

    /// A thread turns.
    pub(crate) fn beat(&self, thread: usize, now: Instant) {
        self.note(thread, self.millis(now));
    }

    /// A thread has nothing more to do, and ends.
    pub fn over(&self, thread: usize) {
        self.note(thread, OVER);
    }

    /// Whether all of them turn that are not over.
    pub fn is_felt(&self, now: Instant) -> bool {
        let now = self.millis(now);
        let most = u64::try_from(SILENCE_MAX.as_millis()).unwrap_or(OVER);
        self.heard.iter().all(|heard| now.saturating_sub(heard.load(Relaxed)) <= most)
    }

    fn note(&self, thread: usize, at: u64) {
        if let Some(heard) = self.heard.get(thread) {
            heard.store(at, Relaxed);
        }
    }

    fn millis(&self, now: Instant) -> u64 {
        let millis = now.saturating_duration_since(self.since).as_millis();
        u64::try_from(millis).unwrap_or(OVER - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use taximeter_system::clock;

    #[test]
    fn one_thread_that_falls_silent_is_missed_and_one_that_is_over_is_not() {
        let start = clock::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let heartbeat = WorkerHeartbeat::new(2, start);
        assert!(heartbeat.is_felt(at(10)), "they may still begin");
        assert!(!heartbeat.is_felt(at(11)));
        heartbeat.beat(0, at(11));
        assert!(!heartbeat.is_felt(at(11)), "the other has never been heard");
        heartbeat.beat(1, at(11));
        assert!(heartbeat.is_felt(at(21)));
        heartbeat.beat(0, at(21));
        assert!(!heartbeat.is_felt(at(22)));
        heartbeat.over(1);
        assert!(heartbeat.is_felt(at(31)));
        assert!(!heartbeat.is_felt(at(32)));
        // A clock of another thread may be read before.
        heartbeat.beat(0, at(40));
        assert!(heartbeat.is_felt(at(39)));
    }
}
