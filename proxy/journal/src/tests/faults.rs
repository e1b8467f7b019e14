//! Lets each operation of the disk fail, in every way, once and permanently. Also ends the process
//! or the power there.

use taximeter_config::Durability;

use super::memory::{Cut, Fault, Kind};
use super::model::Model;
use super::random::Random;

/// What operations fail with, by the numbers that Linux has for them.
const KINDS: [(&str, Kind); 10] = [
    ("full volume", Kind::Full),
    ("ENOSPC", Kind::Error(28)),
    ("EIO", Kind::Error(5)),
    ("EDQUOT", Kind::Error(122)),
    ("EFBIG", Kind::Error(27)),
    ("EROFS", Kind::Error(30)),
    ("EACCES", Kind::Error(13)),
    ("EMFILE", Kind::Error(24)),
    ("short write", Kind::Short),
    ("death", Kind::Death),
];

/// How a process ends whose disk has failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Exit {
    /// The disk works again, and the journal is closed.
    Closed,
    /// The same, and then the power fails.
    ClosedAndCut,
    /// It is killed while the disk fails.
    Killed,
    /// The power fails while the disk fails.
    Cut,
}

const EXITS: [Exit; 4] = [Exit::Closed, Exit::ClosedAndCut, Exit::Killed, Exit::Cut];

/// Some entries long: a life has a rotation or two.
const SEGMENT_BYTES: u64 = 250;
/// Entries of one life.
const STEPS: usize = 7;

/// Three lives: one that leaves open requests, one with a fault, one that finds what was promised.
/// Whether the second one came to the fault.
fn live(durability: Durability, fault: Fault, exit: Exit) -> bool {
    let mut random = Random::new(7, fault.at as u64);
    let mut model = Model::new(durability, SEGMENT_BYTES);
    let journal = model.reopen(0).unwrap();
    model.work(&journal, STEPS, &mut random);
    model.memory.die();
    drop(journal);

    model.memory.plan(Some(fault));
    let journal = model.reopen(model.acknowledged).ok();
    if let Some(journal) = &journal {
        model.work(journal, STEPS, &mut random);
    }
    let is_reached = model.memory.operations() > fault.at;
    let must_start = !is_reached || fault.kind == Kind::Full;
    assert!(journal.is_some() || !must_start, "a start that fails for nothing");
    let is_closed = matches!(exit, Exit::Closed | Exit::ClosedAndCut)
        && !(is_reached && fault.kind == Kind::Death);
    if is_closed && let Some(journal) = &journal {
        model.memory.plan(None);
        journal.close().unwrap();
        model.acknowledged = model.taken();
        if durability != Durability::Os {
            model.synced = model.taken();
        }
    }
    let promised = match exit {
        Exit::Closed | Exit::Killed => {
            model.memory.die();
            model.acknowledged
        }
        Exit::Cut | Exit::ClosedAndCut => {
            model.memory.cut(Cut::Lost, &mut random);
            model.synced
        }
    };
    drop(journal);
    model.memory.plan(None);
    let journal = model.reopen(promised).unwrap();
    model.work(&journal, 1, &mut random);
    journal.close().unwrap();
    model.assert_whole();
    assert_eq!(model.memory.syncs_repeated(), 0, "a sync that failed was tried again");
    is_reached
}

/// Which of thousands of cases it was that failed.
struct DescribedOnFailure(String);

impl Drop for DescribedOnFailure {
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!("{}", self.0);
        }
    }
}

fn each_operation(durability: Durability) {
    let mut count = 0;
    for (name, kind) in KINDS {
        for is_permanent in [false, true] {
            for exit in EXITS {
                let mut at = 0;
                while {
                    let description =
                        format!("{name} at {at}, permanent: {is_permanent}, {exit:?}");
                    let _described = DescribedOnFailure(description);
                    live(durability, Fault { at, kind, is_permanent }, exit)
                } {
                    at += 1;
                }
                assert!(at > STEPS, "too few operations to learn anything");
                count += at;
            }
        }
    }
    println!("{count} faults with durability {durability:?}: nothing lost, nothing twice");
}

#[test]
fn whichever_operation_fails_nothing_is_lost_or_twice_in_the_kernel() {
    each_operation(Durability::Os);
}

#[test]
fn whichever_operation_fails_nothing_is_lost_or_twice_in_groups() {
    each_operation(Durability::Group);
}

#[test]
fn whichever_operation_fails_nothing_is_lost_or_twice_when_synced() {
    each_operation(Durability::Sync);
}
