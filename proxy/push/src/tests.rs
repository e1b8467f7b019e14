//! What is sent is the same whether the journal still has it or the store alone.

use std::fs;
use std::path::{Path, PathBuf};

use jiff::SignedDuration;
use proptest::prelude::*;
use taximeter_config::{Durability, OnDamage, OnUnavailable};
use taximeter_journal::{Journal, Options};
use taximeter_ledger::{Charge, Correction, Entry, RecordUsage, RequestId};
use taximeter_store::samples::{record, void};
use taximeter_store::{SealPolicy, Sealer, Store, feeds};
use taximeter_system::clock;
use tempfile::TempDir;
use tokio::runtime::Builder;

use super::*;

/// Requests of a journal: one every two hours.
const REQUESTS: u32 = 48;

fn journal_in(dir: &Path) -> Journal {
    let options = Options {
        gateway: "pod-7f9c/0".to_owned(),
        durability: Durability::Os,
        recovery: OnDamage::Strict,
        unavailable: OnUnavailable::Refuse,
        queue_bytes_max: 1 << 20,
        segment_bytes: 2_000,
        now: clock::wall,
        tell: Box::new(|event| panic!("{event:?}")),
    };
    Journal::open(dir, options, &|_| Charge::default()).unwrap().0
}

/// Requests of four days, of which some have used nothing.
fn ride(number: u32) -> taximeter_ledger::Record {
    let mut ride = record(number);
    let shift = SignedDuration::from_hours(2 * i64::from(number));
    (ride.started_at, ride.ended_at) = (ride.started_at + shift, ride.ended_at + shift);
    if number % 5 == 3 {
        (ride.usage, ride.cost) = (RecordUsage::default(), None);
    }
    ride
}

/// Twice the price from now on.
fn correction(number: u32) -> Correction {
    let of = ride(number);
    let after = of.cost.clone().map(|mut cost| {
        cost.amount *= rust_decimal::Decimal::TWO;
        cost
    });
    Correction {
        id: RequestId(uuid::Uuid::from_u128(u128::from(number) + 1)),
        corrects: of.id,
        started_at: of.started_at,
        tenant: of.tenant.clone(),
        made_at: of.ended_at,
        reason: "late".to_owned(),
        before: of.cost,
        after,
        completion: None,
        completed: None,
    }
}

/// A data directory with both journals, which a store has.
fn data_dir() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let journal = journal_in(dir.path());
    for number in 0..REQUESTS {
        journal.append_detached(&void(1_000 + number));
        journal.append_detached(&Entry::Post(Box::new(ride(number))));
    }
    journal.close().unwrap();
    let corrections = dir.path().join(CORRECTIONS);
    fs::create_dir(&corrections).unwrap();
    let journal = journal_in(&corrections);
    for number in (0..REQUESTS).filter(|number| number % 5 != 3) {
        journal.append_detached(&Entry::Correction(Box::new(correction(number))));
    }
    journal.close().unwrap();
    dir
}

/// The store has all, and the first days are in files.
fn feed_and_seal(dir: &Path, days: i64) {
    let mut store = Store::open(dir).unwrap();
    store.catch_up(&mut feeds(dir)).unwrap();
    let mut sealer = Sealer::open(dir, "pod-7f9c/0").unwrap().unwrap();
    let closed_until = record(0).started_at + SignedDuration::from_hours(24 * days);
    let newest = sealer.newest().unwrap();
    let policy = SealPolicy { closed_until, ..SealPolicy::default() };
    sealer.work(&policy, newest, &|| true).unwrap();
}

fn segments(dir: &Path) -> Vec<PathBuf> {
    let files = fs::read_dir(dir).unwrap().map(|file| file.unwrap().path());
    let mut files: Vec<_> =
        files.filter(|path| path.to_string_lossy().contains("journal-")).collect();
    files.sort();
    files
}

/// The oldest segments go: of ten parts so many.
fn remove(dir: &Path, tenths: usize) {
    let all = segments(dir);
    let gone = (all.len() * tenths / 10).min(all.len() - 1);
    all.iter().take(gone).for_each(|path| fs::remove_file(path).unwrap());
}

/// How a receiver takes events.
#[derive(Debug, Clone)]
struct Taking {
    batch_max: usize,
    /// So many events are taken before each restart.
    restarts: Vec<usize>,
}

/// The events of a journal in order, as they are sent, and what is told meanwhile.
fn sent(name: &'static str, dir: &Path, taking: &Taking, change: impl Fn(usize)) -> Vec<Vec<u8>> {
    let runtime = Builder::new_current_thread().build().unwrap();
    let journal = if name == CORRECTIONS { dir.join(CORRECTIONS) } else { dir.to_owned() };
    let file = dir.join("cursor.json");
    let tell: Tell = Box::new(|outcome| panic!("{outcome:?}"));
    let (mut all, mut restarts) = (Vec::new(), taking.restarts.iter());
    for round in 0.. {
        change(round);
        let cursor = PushCursor::load(&file, || Ok::<_, io::Error>(0)).unwrap();
        let mut line = Line::new(name, journal.clone(), file.clone(), cursor);
        let mut older = Older::new(Location::DataDir(dir.to_owned()));
        let mut left = restarts.next().copied();
        loop {
            runtime.block_on(line.read(taking.batch_max, &mut older, &tell)).unwrap();
            let count = line.pending().len().min(left.unwrap_or(usize::MAX));
            if count == 0 {
                break;
            }
            all.extend(line.pending().take(count).map(|event| event.json.clone()));
            line.done(count).unwrap();
            left = left.map(|left| left - count);
        }
        if line.pending().len() == 0 && left != Some(0) {
            return all;
        }
    }
    all
}

fn takings() -> impl Strategy<Value = Taking> {
    (1..20_usize, prop::collection::vec(1..12_usize, 0..6))
        .prop_map(|(batch_max, restarts)| Taking { batch_max, restarts })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]
    #[test]
    fn a_receiver_gets_the_same_bytes_in_the_same_order_from_the_store(
        taking in takings(), days in 0..6_i64, tenths in 0..11_usize, later in 0..11_usize,
    ) {
        let (whole, cut) = (data_dir(), data_dir());
        let at_once = Taking { batch_max: 1000, restarts: Vec::new() };
        for name in [taximeter_journal::REQUESTS, CORRECTIONS] {
            let expected = sent(name, whole.path(), &at_once, |_| {});
            let events = (0..REQUESTS).filter(|number| number % 5 != 3).count();
            prop_assert!(expected.len() >= events);
            // What was written before a journal lost some is the same.
            fs::remove_file(whole.path().join("cursor.json")).unwrap();
            let found = sent(name, cut.path(), &taking, |round| {
                // More goes and is sealed while it is away.
                feed_and_seal(cut.path(), if round == 0 { days / 2 } else { days });
                let dir = if name == CORRECTIONS { cut.path().join(name) } else { cut.path().into() };
                remove(&dir, if round == 0 { tenths } else { later });
            });
            prop_assert_eq!(found, expected);
            fs::remove_file(cut.path().join("cursor.json")).unwrap();
        }
    }
}

#[test]
fn segments_that_go_while_they_are_read_are_missed_by_nobody() {
    let (whole, cut) = (data_dir(), data_dir());
    let name = taximeter_journal::REQUESTS;
    let at_once = Taking { batch_max: 1000, restarts: Vec::new() };
    let expected = sent(name, whole.path(), &at_once, |_| {});
    feed_and_seal(cut.path(), 2);
    let runtime = Builder::new_current_thread().build().unwrap();
    let tell: Tell = Box::new(|outcome| panic!("{outcome:?}"));
    let file = cut.path().join("cursor.json");
    let mut line = Line::new(name, cut.path().to_owned(), file, PushCursor::START);
    let mut older = Older::new(Location::DataDir(cut.path().to_owned()));
    let mut all = Vec::new();
    loop {
        runtime.block_on(line.read(4, &mut older, &tell)).unwrap();
        let count = line.pending().len();
        if count == 0 {
            break;
        }
        all.extend(line.pending().map(|event| event.json.clone()));
        line.done(count).unwrap();
        if all.len() == 8 {
            remove(cut.path(), 7);
        }
    }
    assert_eq!(all, expected);
}

#[test]
fn what_nobody_has_any_more_is_told_once_and_the_rest_is_sent() {
    let dir = data_dir();
    let name = taximeter_journal::REQUESTS;
    let runtime = Builder::new_current_thread().build().unwrap();
    let told = Arc::new(std::sync::Mutex::new(Vec::new()));
    let hears = told.clone();
    let tell: Tell = Box::new(move |outcome| hears.lock().unwrap().push(format!("{outcome:?}")));
    let file = dir.path().join("cursor.json");
    let mut older = Older::new(Location::DataDir(dir.path().to_owned()));
    let mut line = Line::new(name, dir.path().to_owned(), file.clone(), PushCursor::START);
    runtime.block_on(line.read(3, &mut older, &tell)).unwrap();
    line.done(3).unwrap();
    // The store is made anew of what the journal still has.
    remove(dir.path(), 5);
    feed_and_seal(dir.path(), 1);
    let first = taximeter_journal::read(dir.path(), 0).next().unwrap().unwrap().seq;
    remove(dir.path(), 8);
    let mut ids = Vec::new();
    for _ in 0..2 {
        let cursor = PushCursor::load(&file, || Ok::<_, io::Error>(0)).unwrap();
        line = Line::new(name, dir.path().to_owned(), file.clone(), cursor);
        runtime.block_on(line.read(2, &mut older, &tell)).unwrap();
        ids.extend(line.pending().map(|event| event.id));
    }
    let told = told.lock().unwrap();
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].starts_with("Lost"), "{told:?}");
    let sequence = |id: RequestId| u64::try_from(id.0.as_u128() & 0xffff).unwrap();
    assert!(ids.iter().all(|id| sequence(*id) * 2 + 2 >= first - 2), "{ids:?} {first}");
    assert_eq!(ids[..2], ids[2..], "they were not taken");
}
