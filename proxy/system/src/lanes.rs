//! Runs slow work on several threads and returns the results in the order of the inputs.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{Scope, available_parallelism};

/// Most threads: more would wait for whoever fills the lanes.
const LANES_MAX: usize = 4;

/// Threads that work in turn. Each of them holds at most one piece.
#[derive(Debug)]
pub struct Lanes<T, U> {
    lanes: Vec<(SyncSender<T>, Receiver<U>)>,
    /// Pieces that went in.
    taken: usize,
    /// Pieces that came out.
    given: usize,
}

impl<T: Send, U: Send> Lanes<T, U> {
    /// Starts one thread per core, at most four. Each does `work`, with a state of its own.
    pub fn new<'scope, S, W>(scope: &'scope Scope<'scope, '_>, work: &'scope W) -> Self
    where
        S: Default,
        W: Fn(&mut S, T) -> U + Sync,
        T: 'scope,
        U: 'scope,
    {
        let cores = available_parallelism().map_or(1, usize::from);
        let lane = |_| {
            let (to_lane, pieces) = sync_channel(1);
            let (done, from_lane) = sync_channel(1);
            scope.spawn(move || {
                let mut state = S::default();
                pieces.into_iter().try_for_each(|piece| done.send(work(&mut state, piece)))
            });
            (to_lane, from_lane)
        };
        Self { lanes: (0..cores.min(LANES_MAX)).map(lane).collect(), taken: 0, given: 0 }
    }

    /// Passes a piece to the next thread. If all threads have a piece, it returns the oldest result
    /// first.
    pub fn push(&mut self, piece: T) -> Option<U> {
        let is_full = self.taken - self.given == self.lanes.len();
        let done = if is_full { self.next() } else { None };
        let (to_lane, _) = self.lanes.get(self.taken % self.lanes.len())?;
        // A lane that panicked is noticed at the end of its scope.
        let _ = to_lane.send(piece);
        self.taken += 1;
        done
    }
}

/// The result of the next piece; `None` if there is none left.
impl<T, U> Iterator for Lanes<T, U> {
    type Item = U;

    fn next(&mut self) -> Option<U> {
        if self.given == self.taken {
            return None;
        }
        let (_, from_lane) = self.lanes.get(self.given % self.lanes.len())?;
        self.given += 1;
        from_lane.recv().ok()
    }
}

#[cfg(test)]
mod tests {
    use std::hint::black_box;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::thread;

    use super::*;

    #[test]
    fn what_goes_in_comes_out_in_order_however_long_each_takes() {
        for pieces in [0, 1, 3, 1000_u64] {
            let work = |(): &mut (), piece: u64| {
                (0..piece * 7919 % 1000).fold(piece, |sum, _| black_box(sum))
            };
            let done = thread::scope(|scope| {
                let mut lanes = Lanes::new(scope, &work);
                let mut done: Vec<_> = (0..pieces).filter_map(|piece| lanes.push(piece)).collect();
                done.extend(lanes);
                done
            });
            assert_eq!(done, Vec::from_iter(0..pieces));
        }
    }

    #[test]
    fn a_panic_in_a_lane_is_one_outside_of_it() {
        let work = |(): &mut (), piece: u32| assert_ne!(piece, 2, "on purpose");
        let done = catch_unwind(AssertUnwindSafe(|| {
            thread::scope(|scope| {
                let mut lanes = Lanes::new(scope, &work);
                (0..100).for_each(|piece| lanes.push(piece).unwrap_or_default());
            });
        }));
        assert!(done.is_err());
    }
}
