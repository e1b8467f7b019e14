//! The health of an upstream, derived from the results of its requests.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;
use taximeter_telemetry::{UpstreamCounts, UpstreamVitals};

/// The cause of a failure to connect.
const UNREACHABLE: &str = "upstream_connect";
/// Before the first answer.
const NEVER: i64 = i64::MIN;

/// How one upstream does.
#[derive(Debug)]
pub struct Health {
    /// Microseconds since 1970.
    answered_at: AtomicI64,
    /// Since the last answer.
    failures: AtomicU64,
    last_failure: Mutex<Option<Failure>>,
    /// Answers that began well.
    began: AtomicU64,
    /// Requests that got none.
    refused: AtomicU64,
    /// Those that broke off.
    broke_off: AtomicU64,
}

/// A request that an upstream has failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Failure {
    /// When.
    pub at: Timestamp,
    /// One of a few words.
    pub cause: &'static str,
}

/// What is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Known {
    /// The last answer below 500.
    pub answered_at: Option<Timestamp>,
    /// Failures in a row, up to now.
    pub failures: u64,
    /// The last one, however long ago.
    pub last_failure: Option<Failure>,
}

impl Known {
    /// Whether the last request was answered; `None` before the first.
    pub const fn is_healthy(&self) -> Option<bool> {
        match (self.failures, self.answered_at) {
            (0, None) => None,
            (0, Some(_)) => Some(true),
            _ => Some(false),
        }
    }

    /// Whether the last request could not reach it.
    pub(crate) fn is_away(&self) -> bool {
        let cause = self.last_failure.map(|failure| failure.cause);
        self.failures > 0 && cause == Some(UNREACHABLE)
    }
}

impl Default for Health {
    fn default() -> Self {
        Self {
            answered_at: AtomicI64::new(NEVER),
            failures: AtomicU64::new(0),
            last_failure: Mutex::new(None),
            began: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            broke_off: AtomicU64::new(0),
        }
    }
}

impl Health {
    /// It has answered.
    pub fn answered(&self, at: Timestamp) {
        self.began.fetch_add(1, Relaxed);
        self.answered_at.store(at.as_microsecond(), Relaxed);
        // A failure is rare: the line is not written to while there is none.
        if self.failures.load(Relaxed) > 0 {
            self.failures.store(0, Relaxed);
        }
    }

    /// It has not.
    pub fn failed(&self, at: Timestamp, cause: &'static str) {
        self.refused.fetch_add(1, Relaxed);
        self.note(at, cause);
    }

    /// It has failed in the middle of an answer.
    pub(crate) fn broke_off(&self, at: Timestamp, cause: &'static str) {
        self.broke_off.fetch_add(1, Relaxed);
        self.note(at, cause);
    }

    fn note(&self, at: Timestamp, cause: &'static str) {
        self.failures.fetch_add(1, Relaxed);
        let mut last = self.last_failure.lock().unwrap_or_else(PoisonError::into_inner);
        *last = Some(Failure { at, cause });
    }

    /// How it does, for telemetry.
    pub(crate) fn vitals(&self, name: Arc<str>) -> UpstreamVitals {
        let counts = UpstreamCounts {
            answered: self.began.load(Relaxed),
            failed: self.refused.load(Relaxed),
            broke_off: self.broke_off.load(Relaxed),
        };
        UpstreamVitals { name, healthy: self.known().is_healthy(), counts }
    }

    /// What is known now.
    pub fn known(&self) -> Known {
        let answered_at = Some(self.answered_at.load(Relaxed)).filter(|at| *at != NEVER);
        Known {
            answered_at: answered_at.and_then(|at| Timestamp::from_microsecond(at).ok()),
            failures: self.failures.load(Relaxed),
            last_failure: *self.last_failure.lock().unwrap_or_else(PoisonError::into_inner),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_counted_until_the_next_answer() {
        let (health, at) = (Health::default(), "2026-11-20T16:00:00Z".parse().unwrap());
        assert_eq!(health.known(), Known { answered_at: None, failures: 0, last_failure: None });
        assert_eq!(health.known().is_healthy(), None);
        assert!(!health.known().is_away());
        health.failed(at, UNREACHABLE);
        assert!(health.known().is_away());
        health.failed(at, "upstream_reset");
        let failure = Some(Failure { at, cause: "upstream_reset" });
        assert_eq!(health.known(), Known { answered_at: None, failures: 2, last_failure: failure });
        assert_eq!(health.known().is_healthy(), Some(false));
        assert!(!health.known().is_away());
        health.answered(at);
        let known = Known { answered_at: Some(at), failures: 0, last_failure: failure };
        assert_eq!(health.known(), known);
        assert_eq!(known.is_healthy(), Some(true));
        health.failed(at, UNREACHABLE);
        assert!(health.known().is_away());
        health.answered(at);
        assert!(!health.known().is_away(), "it was, and is not any more");
    }
}
