//! Writes checkpoints because time has passed.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::ring::after_turn;
use super::{Bell, Queue, Ring, Stage};

impl Queue {
    /// Adds a checkpoint if one is due because time has passed. From now on checkpoints say up to when
    /// everything is settled.
    pub(in super::super) fn mark(self: &Arc<Self>, now: Instant, request_max: Duration) {
        let mut state = self.lock();
        let wall = (self.options.now)();
        let settling = state.frames.settling();
        settling.request_max = Some(request_max);
        if !settling.is_due(now, wall) {
            return;
        }
        let has_room = state.held_bytes < self.options.queue_bytes_max / 2;
        if state.stage > Stage::Open || state.failing || !has_room {
            state.frames.settling().marked = Some((now, None));
            return;
        }
        state.frames.settling().marked = Some((now, Some(state.frames.settled_until(wall))));
        state.held_bytes += state.frames.mark(self.options.now);
        let is_first = state.bell == Bell::Quiet;
        if is_first {
            state.bell = Bell::Due;
        }
        drop(state);
        if is_first {
            after_turn(Ring(Arc::clone(self)));
        }
    }
}
