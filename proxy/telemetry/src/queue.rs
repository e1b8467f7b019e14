//! A bounded queue of what waits for the collector.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A bounded queue that is emptied at once; what does not fit is lost, and counted.
#[derive(Debug)]
pub(super) struct Queue<T> {
    state: Mutex<QueueState<T>>,
    max: usize,
}

#[derive(Debug)]
struct QueueState<T> {
    waiting: VecDeque<T>,
    lost: usize,
}

impl<T> Queue<T> {
    pub(super) const fn new(max: usize) -> Self {
        Self { state: Mutex::new(QueueState { waiting: VecDeque::new(), lost: 0 }), max }
    }

    /// Puts something of so many items on its way, if there is room.
    pub(super) fn push(&self, what: T, items: usize) {
        let mut state = self.lock();
        if state.waiting.len() < self.max {
            state.waiting.push_back(what);
        } else {
            state.lost += items;
        }
    }

    /// Everything that waits, and how many items were lost since this was asked last.
    pub(super) fn take(&self) -> (VecDeque<T>, usize) {
        let mut state = self.lock();
        (std::mem::take(&mut state.waiting), std::mem::take(&mut state.lost))
    }

    /// How many wait.
    pub(super) fn len(&self) -> usize {
        self.lock().waiting.len()
    }

    fn lock(&self) -> MutexGuard<'_, QueueState<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
