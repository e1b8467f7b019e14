//! Batches that wait for the collector, bounded by their bytes.

use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Unbounded};
use std::time::Instant;

use bytes::Bytes;

/// What a batch takes in memory beside its bytes.
const BATCH_OVERHEAD_BYTES: usize = 128;

/// A batch that waits. It stays as it was made, so that no item is in two batches.
#[derive(Debug)]
struct Waiting {
    body: Bytes,
    items: usize,
    /// When it was sent for the first time.
    tried: Option<Instant>,
}

impl Waiting {
    fn bytes(&self) -> usize {
        self.body.len() + BATCH_OVERHEAD_BYTES
    }
}

/// Batches that wait for the collector, by their age.
#[derive(Debug)]
pub(super) struct Backlog {
    batches: BTreeMap<u64, Waiting>,
    /// The number of the next batch that comes.
    next: u64,
    /// The batch that was sent last.
    last: Option<u64>,
    bytes: usize,
    items: usize,
    bytes_max: usize,
}

impl Backlog {
    /// Room for so many bytes.
    pub(super) const fn new(bytes_max: usize) -> Self {
        let batches = BTreeMap::new();
        Self { batches, next: 0, last: None, bytes: 0, items: 0, bytes_max }
    }

    /// Adds a batch. Returns how many items had to go for it: those of the oldest batches but
    /// `sending`, which the collector may be about to take.
    pub(super) fn push(&mut self, body: Bytes, items: usize, sending: Option<u64>) -> usize {
        let batch = Waiting { body, items, tried: None };
        self.bytes += batch.bytes();
        self.items += items;
        self.batches.insert(self.next, batch);
        self.next += 1;
        let mut gone = 0;
        while self.bytes > self.bytes_max {
            let oldest = self.batches.keys().find(|number| Some(**number) != sending);
            let Some(oldest) = oldest.copied() else { break };
            gone += self.remove(oldest);
        }
        gone
    }

    /// The batch to send now: the one behind the batch that was sent last, so that one that the
    /// collector cannot take holds up no others. Its number and bytes.
    pub(super) fn due(&mut self, now: Instant) -> Option<(u64, Bytes)> {
        let after = self.last.map_or(Unbounded, Excluded);
        let behind = self.batches.range((after, Unbounded)).next().map(|(number, _)| *number);
        let number = behind.or_else(|| self.batches.keys().next().copied())?;
        let batch = self.batches.get_mut(&number)?;
        batch.tried.get_or_insert(now);
        self.last = Some(number);
        Some((number, batch.body.clone()))
    }

    /// When a batch was sent for the first time; `None` if it was not.
    pub(super) fn tried(&self, number: u64) -> Option<Instant> {
        self.batches.get(&number)?.tried
    }

    /// Takes out a batch. Returns how many items it has.
    pub(super) fn remove(&mut self, number: u64) -> usize {
        let Some(batch) = self.batches.remove(&number) else { return 0 };
        self.bytes -= batch.bytes();
        self.items -= batch.items;
        batch.items
    }

    /// Takes out all batches. Returns how many items they have.
    pub(super) fn clear(&mut self) -> usize {
        self.batches.clear();
        self.bytes = 0;
        std::mem::take(&mut self.items)
    }

    /// How many items wait.
    pub(super) const fn items(&self) -> usize {
        self.items
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use taximeter_system::clock;

    use super::*;

    /// Room for so many empty batches.
    fn room_for(batches: usize) -> Backlog {
        Backlog::new(batches * BATCH_OVERHEAD_BYTES)
    }

    fn due(backlog: &mut Backlog) -> Option<u64> {
        backlog.due(clock::now()).map(|(number, _)| number)
    }

    #[test]
    fn the_oldest_goes_first_but_never_the_one_that_is_being_sent() {
        let mut backlog = room_for(2);
        assert_eq!(backlog.push(Bytes::new(), 1, None), 0);
        let sending = due(&mut backlog);
        assert_eq!(backlog.push(Bytes::new(), 2, sending), 0);
        assert_eq!(backlog.push(Bytes::new(), 4, sending), 2);
        assert_eq!(backlog.push(Bytes::new(), 8, None), 1);
        assert_eq!((backlog.items(), backlog.clear(), backlog.items()), (12, 12, 0));
    }

    #[test]
    fn a_batch_that_is_not_taken_lets_others_pass_and_comes_again() {
        let mut backlog = room_for(9);
        for _ in 0..3 {
            backlog.push(Bytes::new(), 1, None);
        }
        let order = [(); 5].map(|()| due(&mut backlog).unwrap());
        assert_eq!(order, [0, 1, 2, 0, 1]);
        assert_eq!((backlog.remove(2), backlog.remove(2)), (1, 0));
        assert_eq!(due(&mut backlog), Some(0));
    }

    #[test]
    fn the_time_of_a_batch_is_that_of_its_first_try() {
        let mut backlog = room_for(9);
        backlog.push(Bytes::new(), 1, None);
        assert_eq!(backlog.tried(0), None);
        let first = clock::now();
        backlog.due(first);
        backlog.due(first + std::time::Duration::from_secs(1));
        assert_eq!(backlog.tried(0), Some(first));
    }

    proptest! {
        #[test]
        fn whatever_comes_and_goes_the_room_suffices_and_every_item_is_told_once(
            steps in proptest::collection::vec((0..2_000_usize, 1..9_usize, 0..4_u8), 1..200),
        ) {
            let mut backlog = Backlog::new(4_096);
            let (mut came, mut left) = (0, 0);
            for (bytes, items, step) in steps {
                came += items;
                let sending = due(&mut backlog);
                left += backlog.push(vec![0; bytes].into(), items, sending);
                if let (Some(sending), 0) = (sending, step) {
                    left += backlog.remove(sending);
                }
                let held: usize = backlog.batches.values().map(Waiting::bytes).sum();
                prop_assert_eq!(held, backlog.bytes);
                // At most the batch that is being sent is beyond it.
                prop_assert!(held <= 4_096 + 2_000 + BATCH_OVERHEAD_BYTES);
                prop_assert_eq!(came, left + backlog.items());
            }
            prop_assert_eq!(came, left + backlog.clear());
        }
    }
}
