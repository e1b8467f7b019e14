//! A bounded queue of what is on its way to a collector.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// What may wait of one signal until its sender makes batches of it, in bytes of memory. A sender does
/// that each second, and sooner if a quarter of it is there.
pub(super) const QUEUE_BYTES_MAX: usize = 8 << 20;

/// A queue that is bounded by bytes and emptied at once. What does not fit makes the oldest go, which
/// is counted.
#[derive(Debug)]
pub(super) struct Queue<T> {
    state: Mutex<QueueState<T>>,
    bytes_max: usize,
    filling: Arc<Notify>,
    /// Items that wait in batches.
    in_batches: AtomicUsize,
}

#[derive(Debug)]
struct QueueState<T> {
    waiting: VecDeque<Queued<T>>,
    bytes: usize,
    items: usize,
    lost: usize,
}

#[derive(Debug)]
struct Queued<T> {
    what: T,
    items: usize,
    bytes: usize,
}

impl<T> Queue<T> {
    pub(super) fn new(bytes_max: usize) -> Self {
        let state = QueueState { waiting: VecDeque::new(), bytes: 0, items: 0, lost: 0 };
        let (filling, in_batches) = (Arc::default(), AtomicUsize::new(0));
        Self { state: Mutex::new(state), bytes_max, filling, in_batches }
    }

    /// Puts something of so many items and bytes on its way. The oldest goes where there is no room.
    pub(super) fn push(&self, what: T, items: usize, bytes: usize) {
        let mut gone = Vec::new();
        let mut state = self.lock();
        let before = state.bytes;
        state.bytes += bytes;
        state.items += items;
        state.waiting.push_back(Queued { what, items, bytes });
        while state.bytes > self.bytes_max {
            let Some(oldest) = state.waiting.pop_front() else { break };
            state.bytes -= oldest.bytes;
            state.items -= oldest.items;
            state.lost += oldest.items;
            gone.push(oldest);
        }
        drop(state);
        let much = self.bytes_max / 4;
        if before < much && before + bytes >= much {
            self.filling.notify_one();
        }
        // What goes is given back when others have their turn.
        drop(gone);
    }

    /// Everything that waits, and how many items were lost since this was asked last.
    pub(super) fn take(&self) -> (VecDeque<T>, usize) {
        let mut state = self.lock();
        let waiting = std::mem::take(&mut state.waiting);
        (state.bytes, state.items) = (0, 0);
        let lost = std::mem::take(&mut state.lost);
        drop(state);
        (waiting.into_iter().map(|queued| queued.what).collect(), lost)
    }

    /// How many items wait, also in batches.
    pub(super) fn items(&self) -> usize {
        self.lock().items + self.in_batches.load(Relaxed)
    }

    /// Notes how many items wait in batches.
    pub(super) fn note_in_batches(&self, items: usize) {
        self.in_batches.store(items, Relaxed);
    }

    /// Is notified when much waits.
    pub(super) fn filling(&self) -> Arc<Notify> {
        self.filling.clone()
    }

    fn lock(&self) -> MutexGuard<'_, QueueState<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_oldest_goes_first_and_is_counted_by_its_items() {
        let queue = Queue::new(10);
        for (what, items, bytes) in [("a", 1, 4), ("b", 2, 4), ("c", 4, 4)] {
            queue.push(what, items, bytes);
        }
        queue.note_in_batches(100);
        assert_eq!(queue.items(), 2 + 4 + 100);
        assert_eq!(queue.take(), (["b", "c"].into(), 1));
        assert_eq!((queue.take(), queue.items()), ((VecDeque::new(), 0), 100));
        queue.push("larger than all room", 8, 11);
        assert_eq!(queue.take(), (VecDeque::new(), 8));
    }

    #[test]
    fn its_reader_is_woken_once_when_much_is_there() {
        let queue = Queue::new(100);
        let filling = queue.filling();
        let is_woken = || filling.notified().now_or_never().is_some();
        queue.push((), 1, 24);
        assert!(!is_woken());
        queue.push((), 1, 1);
        assert!(is_woken());
        queue.push((), 1, 50);
        assert!(!is_woken());
    }

    proptest! {
        #[test]
        fn no_more_bytes_wait_than_there_is_room_for_and_every_item_is_told_once(
            pushes in proptest::collection::vec((0..9_usize, 0..40_usize), 0..200),
        ) {
            let queue = Queue::new(100);
            let mut came = 0;
            for (items, bytes) in pushes {
                came += items;
                queue.push((items, bytes), items, bytes);
                prop_assert!(queue.lock().bytes <= 100);
            }
            let (waiting, lost) = queue.take();
            prop_assert!(waiting.iter().map(|(_, bytes)| bytes).sum::<usize>() <= 100);
            prop_assert_eq!(came, lost + waiting.iter().map(|(items, _)| items).sum::<usize>());
        }
    }
}
