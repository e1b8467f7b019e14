//! Cuts the power again and again, and checks that everything promised is there.

use std::time::Duration;

use taximeter_config::Durability;
use taximeter_system::clock;

use super::super::Journal;
use super::memory::{Cut, Fault, Kind};
use super::model::Model;
use super::random::{Random, seed};

/// Set to how many power cuts there are to be; `tests/soak` does.
const CUTS_VARIABLE: &str = "TAXIMETER_TEST_CUTS";
const CUTS: u64 = 600;

/// Longest wait for the journal to sync: only ever ends a failed test.
const PATIENCE: Duration = Duration::from_secs(30);

const CUTS_OF_ONE_JOURNAL_MAX: usize = 4;

#[derive(Debug, Default)]
struct Counts {
    cuts: u64,
    /// Journals with damage in what was not synced: without promises a start refuses them, with them
    /// it cuts the damage off.
    holed: u64,
    /// Entries that this cost, from between others.
    between: u64,
    /// Entries that were kept behind such damage.
    kept: u64,
    /// Checkpoints that were looked at and carry over what is open.
    carried: usize,
    /// Entries that were there at last.
    entries: u64,
    /// Entries that went with the power, none of them promised.
    gone: usize,
}

/// Whether what is left of what was not synced is a start of it.
const fn leaves_a_start(cut: Cut) -> bool {
    matches!(cut, Cut::Lost | Cut::Kept | Cut::Begun | Cut::Zeros)
}

const CUT_KINDS: [Cut; 6] =
    [Cut::Lost, Cut::Kept, Cut::Begun, Cut::Zeros, Cut::Shuffled, Cut::Garbled];

/// Waits until a power cut would take nothing up to `seq`.
fn wait_until_synced(journal: &Journal, seq: u64) {
    let begun = clock::now();
    while journal.0.queue.synced_up_to() < seq {
        assert!(clock::now() - begun < PATIENCE, "nothing is synced");
        std::thread::yield_now();
    }
}

/// One journal, from its first entry to its last power cut.
fn live(durability: Durability, random: &mut Random, counts: &mut Counts) {
    let mut model = Model::new(durability, 150 + random.index(1_000) as u64);
    let mut journal = model.reopen(0).unwrap();
    for _ in 0..=random.index(CUTS_OF_ONE_JOURNAL_MAX) {
        let is_failing = random.one_in(4);
        if is_failing {
            let at = random.index(60);
            model.memory.plan(Some(Fault { at, kind: Kind::Error(5), is_permanent: false }));
        }
        for _ in 0..random.index(4) {
            model.work(&journal, random.index(12), random);
            if durability == Durability::Group && !is_failing && random.one_in(2) {
                wait_until_synced(&journal, model.acknowledged);
                model.synced = model.acknowledged;
            }
        }
        let cut = CUT_KINDS[random.index(CUT_KINDS.len())];
        model.memory.cut(cut, random);
        model.memory.plan(None);
        drop(journal);
        counts.cuts += 1;
        if durability == Durability::Os {
            counts.holed += u64::from(model.assert_nothing_is_made_up().is_some());
            break;
        }
        if !model.is_sound() {
            assert!(!leaves_a_start(cut), "after {cut:?} with {durability:?}");
            let (between, kept) = model.reopen_with_holes(model.synced);
            counts.holed += 1;
            counts.between += between;
            counts.kept += kept;
            break;
        }
        journal = model.reopen(model.synced).unwrap();
    }
    assert_eq!(model.memory.syncs_repeated(), 0, "a sync that failed was tried again");
    counts.entries += model.taken();
    counts.gone += model.gone;
    counts.carried += model.carried;
}

fn cut_the_power(durability: Durability) {
    let cuts = std::env::var(CUTS_VARIABLE).ok().and_then(|cuts| cuts.parse().ok());
    let cuts = cuts.unwrap_or(CUTS).div_ceil(3);
    let seed = seed();
    let mut counts = Counts::default();
    let mut part = 0;
    while counts.cuts < cuts {
        live(durability, &mut Random::new(seed, part), &mut counts);
        part += 1;
    }
    assert!(counts.carried > 0 || durability == Durability::Os, "{counts:?}");
    println!("{durability:?}: {counts:?}");
}

#[test]
fn a_power_cut_takes_nothing_that_was_synced_in_groups() {
    cut_the_power(Durability::Group);
}

#[test]
fn a_power_cut_takes_nothing_that_was_acknowledged_when_synced() {
    cut_the_power(Durability::Sync);
}

/// The promise is for the death of the process alone; but nothing is made up.
#[test]
fn a_power_cut_may_take_what_is_only_in_the_kernel_and_makes_nothing_up() {
    cut_the_power(Durability::Os);
}
