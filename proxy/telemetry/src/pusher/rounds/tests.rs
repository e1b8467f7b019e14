//! Tests of the rounds.

use bytes::Bytes;

use super::super::nobody::{Told, nobody};
use super::super::outcome::ExportOutcome;
use super::super::signal::TRACES;
use super::*;

/// A round of batches of so many items each; some panic while they are made.
struct Batches {
    round: Vec<usize>,
    panics_at: Option<usize>,
}

impl Source for Batches {
    fn begin(&mut self) -> usize {
        0
    }

    fn next(&mut self) -> Option<Batch> {
        assert_ne!(self.panics_at, Some(self.round.len()), "as it was told to");
        self.round.pop().map(|items| Batch { body: Bytes::new(), items })
    }

    fn taken(&mut self) {}

    fn abandon(&mut self) -> usize {
        std::mem::take(&mut self.round).iter().sum()
    }
}

/// Rounds that push to nobody, and what they tell.
fn rounds(source: Batches) -> (Rounds<Batches>, Told) {
    let (collector, told_by, told) = nobody();
    (Rounds { collector, source, sending: 0, told: told_by }, told)
}

fn run(rounds: &mut Rounds<Batches>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(rounds.guarded(Duration::from_secs(60)));
}

#[test]
fn what_a_panic_leaves_of_a_round_is_told_as_dropped_and_the_next_round_begins_anew() {
    let (mut rounds, told) = rounds(Batches { round: vec![3, 4], panics_at: Some(2) });
    // One that was being sent is a part of it.
    rounds.sending = 5;
    run(&mut rounds);
    let dropped = |items: usize| {
        let reason = "panicked";
        format!("{:?}", ExportOutcome::Dropped { signal: TRACES.name, items, reason })
    };
    assert_eq!(
        *told.lock().unwrap(),
        [format!("{:?}", ExportOutcome::Panicked), dropped(5 + 3 + 4)]
    );
    told.lock().unwrap().clear();
    rounds.source.panics_at = None;
    run(&mut rounds);
    assert!(told.lock().unwrap().is_empty(), "nothing is left of it");
}
