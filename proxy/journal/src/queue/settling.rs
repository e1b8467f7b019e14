//! What checkpoints say of time: up to when everything is settled.
//!
//! A reader of the journal, or of a store that it feeds, must know when nothing of a day can come any
//! more. So a gateway says about once an hour, also while it is idle, that time has passed. While the
//! wall clock is in doubt it says the time that is known without it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use taximeter_ledger::Settled;

use super::super::retain::AgeWait;

/// Least time between two checkpoints that are written because time has passed.
const MARK_INTERVAL: Duration = Duration::from_secs(600);
/// Such a checkpoint is due with each hour that begins, and again until what was open then has ended.
const HOUR_SECONDS: i64 = 3600;

/// What is known of time.
#[derive(Debug)]
pub(super) struct Settling {
    /// What time it is, for what follows from time alone.
    pub(super) age_wait: Arc<AgeWait>,
    /// The longest that a request may take. `None` until somebody has looked at the clock.
    pub(super) request_max: Option<Duration>,
    /// When such a checkpoint was written last, and up to when all was settled then; or since when it
    /// is known that none was.
    pub(super) marked: Option<(Instant, Option<Timestamp>)>,
}

impl Settling {
    pub(super) const fn new(age_wait: Arc<AgeWait>) -> Self {
        Self { age_wait, request_max: None, marked: None }
    }

    /// What a checkpoint says at `at`, if everything is settled up to `until`.
    pub(super) fn says(&self, at: Timestamp, until: Timestamp) -> Option<Settled> {
        let request_max = self.request_max?;
        let request_seconds_max = request_max.as_secs() + u64::from(request_max.subsec_nanos() > 0);
        let known = self.age_wait.ahead().map_or(Timestamp::MAX, |ahead| ahead.newest);
        Some(Settled { at: at.min(known), until: until.min(known), request_seconds_max })
    }

    /// Whether a checkpoint is due because time has passed: an hour has begun that was not settled at
    /// the last one.
    pub(super) fn is_due(&mut self, now: Instant, wall: Timestamp) -> bool {
        let Some((at, until)) = self.marked else {
            self.marked = Some((now, None));
            // What is written under a wrong clock must not be taken for a sign that time has passed.
            return self.age_wait.ahead().is_some();
        };
        let hour = |time: Timestamp| time.as_second().div_euclid(HOUR_SECONDS);
        now.saturating_duration_since(at) >= MARK_INTERVAL
            && until.is_none_or(|until| hour(until) != hour(wall))
    }
}
