//! What checkpoints say of time: up to when everything is settled.
//!
//! A reader of the journal, or of a store that it feeds, must know when nothing of a day can come any
//! more. So a gateway says about once an hour, also while it is idle, that time has passed. While the
//! wall clock is in doubt it says nothing.

use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use taximeter_ledger::Settled;

use super::super::retain::AgeWait;
use super::ring::{Ring, ring_after_turn};
use super::{Bell, Queue, Stage};

/// Least time between two checkpoints that are written because time has passed.
const MARK_INTERVAL: Duration = Duration::from_secs(600);
/// Such a checkpoint is due with each hour that begins.
const HOUR_SECONDS: i64 = 3600;

/// What is known of time.
#[derive(Debug, Default)]
pub(super) struct Settling {
    age_wait: Arc<AgeWait>,
    /// The longest that a request may take. `None` until somebody has looked at the clock.
    request_max: Option<Duration>,
    /// When such a checkpoint was written last, on both clocks, or since when it is known that none
    /// was.
    marked: Option<(Instant, Option<Timestamp>)>,
}

impl Settling {
    /// What a checkpoint says, if everything is settled up to `until`.
    pub(super) fn says(&self, until: Timestamp) -> Option<Settled> {
        let request_max = self.request_max.filter(|_| self.age_wait.ahead().is_none())?;
        let request_seconds_max = request_max.as_secs() + u64::from(request_max.subsec_nanos() > 0);
        Some(Settled { until, request_seconds_max })
    }

    /// Whether a checkpoint is due because time has passed. A look at both clocks that finds one due
    /// counts as that checkpoint.
    fn is_due(&mut self, now: Instant, wall: Timestamp) -> bool {
        let Some((at, marked)) = self.marked else {
            self.marked = Some((now, None));
            return false;
        };
        let hour = |time: Timestamp| time.as_second().div_euclid(HOUR_SECONDS);
        let is_due = now.saturating_duration_since(at) >= MARK_INTERVAL
            && marked.is_none_or(|marked| hour(marked) != hour(wall))
            && self.age_wait.ahead().is_none();
        if is_due {
            self.marked = Some((now, Some(wall)));
        }
        is_due
    }
}

impl Queue {
    /// Adds a checkpoint if an hour has begun since the last one. From now on checkpoints say up to
    /// when everything is settled.
    pub(in super::super) fn mark(self: &Arc<Self>, now: Instant, request_max: Duration) {
        let mut state = self.lock();
        let settling = state.frames.settling();
        settling.request_max = Some(request_max);
        if !settling.is_due(now, (self.options.now)()) {
            return;
        }
        let has_room = state.held_bytes < self.options.queue_bytes_max / 2;
        if state.stage > Stage::Open || state.failing || !has_room {
            state.frames.settling().marked = Some((now, None));
            return;
        }
        state.held_bytes += state.frames.mark(self.options.now);
        let is_first = state.bell == Bell::Quiet;
        if is_first {
            state.bell = Bell::Due;
        }
        drop(state);
        if is_first {
            ring_after_turn(Ring(Arc::clone(self)));
        }
    }

    /// Whether what follows from the wall clock waits.
    pub(in super::super) fn age_wait(&self) -> Arc<AgeWait> {
        Arc::clone(&self.lock().frames.settling().age_wait)
    }
}
