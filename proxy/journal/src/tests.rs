//! Tests of the journal on real files, with a disk that fails on demand.

mod bench;
mod bits;
mod carried;
mod compress;
mod convert;
mod faults;
mod foreign;
mod forgery;
mod format4;
mod full;
mod identity;
mod kinds;
mod memory;
mod model;
mod pending;
mod power;
mod random;
mod rejected;
mod removed;
mod salvage;
mod settling;
mod speed;
mod start;

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use taximeter_config::{Durability, OnDamage, OnUnavailable};
use taximeter_ledger::{End, Fault, Kind};

use self::bench::{Bench, SEGMENT_BYTES, is_of_a_request, number, post, reserve, void};
use super::*;

fn run<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

/// Waits until entry `seq` is written.
fn wait_for(journal: &Journal, seq: u64) {
    while journal.sequence() < seq {
        std::thread::yield_now();
    }
}

fn append(journal: &Journal, entry: &Entry) -> Result<u64, AppendError> {
    run(journal.append(entry)?)
}

#[test]
fn entries_are_in_the_file_when_their_futures_are_done() {
    for durability in [Durability::Os, Durability::Group, Durability::Sync] {
        let bench = Bench::new(durability);
        let (journal, recovery) = bench.open();
        assert_eq!((recovery.entries, recovery.next_seq), (0, 1));
        for request in 0..5 {
            let seq = append(&journal, &reserve(request)).unwrap();
            assert_eq!(append(&journal, &post(request)), Ok(seq + 1));
            assert_eq!(bench.read(1).len() as u64, seq + 1);
            assert_eq!(journal.sequence(), seq + 1);
        }
        assert!(journal.is_healthy());
        assert_eq!(bench.requests(), [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]);
        assert_eq!(bench.read(8).first().map(|framed| framed.seq), Some(8));
    }
}

#[test]
fn what_is_appended_in_one_turn_shares_one_write() {
    let bench = Bench::new(Durability::Os);
    let (journal, _) = bench.open();
    let before = bench.disk.writes();
    run(async {
        let appended: Vec<_> = (0..50).map(|n| journal.append(&reserve(n)).unwrap()).collect();
        for (append, seq) in appended.into_iter().zip(1..) {
            assert_eq!(append.await, Ok(seq));
        }
    });
    assert_eq!(bench.disk.writes() - before, 1);
}

#[test]
fn many_may_append_at_once() {
    let bench = Bench { segment_bytes: 2_000, ..Bench::new(Durability::Group) };
    let (journal, _) = bench.open();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let journal = journal.clone();
            scope.spawn(move || {
                run(async {
                    for request in 0..50 {
                        journal.append(&reserve(thread << 32 | request)).unwrap().await.unwrap();
                        journal.append_detached(&post(thread << 32 | request));
                    }
                });
            });
        }
    });
    journal.close().unwrap();
    assert_eq!(bench.requests().len(), 400);
    assert!(bench.segments().len() > 3);
    let (_, recovery) = bench.open();
    assert_eq!((recovery.posts, recovery.strays), (200, 0));
    assert!(recovery.died.is_empty());
}

#[test]
fn a_second_process_is_refused_until_the_first_has_left() {
    let bench = Bench::new(Durability::Os);
    let (journal, _) = bench.open();
    let refused = bench.try_open().map(drop);
    assert!(matches!(refused, Err(JournalError::InUse { .. })), "{refused:?}");
    journal.close().unwrap();
    bench.open();
    assert_eq!(append(&journal, &void(1)), Err(AppendError::Closed));
}

#[test]
fn what_was_open_when_we_died_is_posted_once() {
    let bench = Bench::new(Durability::Group);
    let (journal, _) = bench.open();
    for entry in [reserve(1), reserve(2), reserve(3), post(2), void(3)] {
        append(&journal, &entry).unwrap();
    }
    drop(journal);
    let (journal, recovery) = bench.open();
    assert_eq!((recovery.entries, recovery.posts, recovery.voids), (6, 1, 1));
    let [died] = &recovery.died[..] else { panic!("{:?}", recovery.died) };
    assert_eq!((died.id.0.as_u128(), died.seq, died.end), (1, 7, End::GatewayDied));
    assert_eq!(recovery.next_seq, 9);
    assert_eq!(append(&journal, &void(9)), Ok(9));
    drop(journal);
    let (_, recovery) = bench.open();
    assert_eq!((recovery.posts, recovery.died.len()), (2, 0));
    assert_eq!(bench.requests(), [1, 2, 3, 2, 3, 1, 9]);
}

#[test]
fn damage_before_the_end_stops_the_start_and_changes_nothing() {
    let bench = Bench::new(Durability::Os);
    let (journal, _) = bench.open();
    for request in 1..=3 {
        append(&journal, &void(request)).unwrap();
    }
    drop(journal);
    let path = bench.last_segment();
    let offset = bench.read(1)[1].offset;
    let file = File::options().write(true).open(&path).unwrap();
    file.write_all_at(b"~", offset + 30).unwrap();
    let bytes = fs::read(&path).unwrap();
    let error = bench.try_open().map(drop).unwrap_err();
    let JournalError::Segment { path: named, fault } = &error else { panic!("{error}") };
    assert_eq!(*named, path);
    assert!(matches!(fault, Fault::Damaged { offset: at, .. } if *at == offset), "{fault}");
    assert_eq!(fs::read(&path).unwrap(), bytes);
}

#[test]
fn a_segment_that_is_gone_stops_the_start() {
    let bench = Bench { segment_bytes: 1, ..Bench::new(Durability::Os) };
    let (journal, _) = bench.open();
    for entry in [reserve(1), void(2), void(3)] {
        append(&journal, &entry).unwrap();
    }
    drop(journal);
    carried::forget_carried(&bench);
    fs::remove_file(&bench.segments()[1]).unwrap();
    let error = bench.try_open().map(drop).unwrap_err();
    assert!(matches!(error, JournalError::Segment { .. }), "{error}");
}

#[test]
fn a_header_that_was_cut_off_is_written_again() {
    let bench = Bench { segment_bytes: 1, ..Bench::new(Durability::Os) };
    let (journal, _) = bench.open();
    append(&journal, &void(1)).unwrap();
    append(&journal, &void(2)).unwrap();
    drop(journal);
    let file = File::options().write(true).open(bench.last_segment()).unwrap();
    file.set_len(100).unwrap();
    let (journal, recovery) = bench.open();
    assert_eq!((recovery.torn_bytes, recovery.next_seq), (100, 3));
    append(&journal, &void(3)).unwrap();
    assert_eq!(bench.requests(), [1, 3]);
}

#[test]
fn a_full_disk_refuses_reservations_and_loses_and_repeats_nothing() {
    for room in [0, 1, 30, 150] {
        let bench = Bench::new(Durability::Group);
        let (journal, _) = bench.open();
        append(&journal, &reserve(1)).unwrap();
        bench.disk.set(|script| script.full_after = Some(room));
        let taken = (2..6).map_while(|request| match append(&journal, &reserve(request)) {
            Ok(_) => Some(request),
            Err(error) => {
                assert_eq!(error, AppendError::Unavailable);
                None
            }
        });
        let failed = taken.last().map_or(2, |last| last + 1);
        assert!(!journal.is_healthy());
        assert_eq!(journal.append(&reserve(9)).map(drop), Err(AppendError::Unavailable));
        assert_eq!(append(&journal, &post(1)), Err(AppendError::Unavailable));
        journal.append_detached(&void(failed));
        bench.disk.set(|script| script.full_after = None);
        let seq = u64::try_from(failed).unwrap() + 2;
        wait_for(&journal, seq);
        assert!(journal.is_healthy());
        assert_eq!(append(&journal, &void(7)), Ok(seq + 1));
        let expected: Vec<_> = (1..=failed).chain([1, failed, 7]).collect();
        assert_eq!(bench.requests(), expected);
        assert_eq!(bench.events(), ["WriteFailed", "Recovered"]);
        assert_eq!(journal.lost(), 0);
    }
}

#[test]
fn closing_on_a_full_disk_says_so() {
    let bench = Bench::new(Durability::Os);
    let (journal, _) = bench.open();
    bench.disk.set(|script| script.full_after = Some(10));
    assert_eq!(append(&journal, &void(1)), Err(AppendError::Unavailable));
    assert!(matches!(journal.close(), Err(JournalError::Io { action: "write", .. })));
    bench.disk.set(|script| script.full_after = None);
    let (_, recovery) = bench.open();
    assert_eq!((recovery.entries, recovery.next_seq), (0, 1));
}

#[test]
fn a_file_that_could_not_be_synced_is_not_trusted_again() {
    for segment_bytes in [SEGMENT_BYTES, 150] {
        let bench = Bench { segment_bytes, ..Bench::new(Durability::Sync) };
        let (journal, _) = bench.open();
        append(&journal, &void(1)).unwrap();
        bench.disk.set(|script| script.failing_syncs = 1);
        assert_eq!(append(&journal, &void(2)), Err(AppendError::Unavailable));
        wait_for(&journal, 2);
        append(&journal, &void(3)).unwrap();
        assert_eq!(bench.requests(), [1, 2, 3]);
        assert!(bench.segments().len() > 1);
        drop(journal);
        bench.open();
        assert_eq!(bench.requests(), [1, 2, 3]);
    }
}

#[test]
fn a_sync_that_fails_behind_our_back_loses_and_repeats_nothing() {
    let bench = Bench { segment_bytes: 250, ..Bench::new(Durability::Group) };
    let (journal, _) = bench.open();
    let mut follower = read(bench.dir.path(), 1);
    let mut followed = Vec::new();
    for request in 1..=40 {
        if request % 8 == 0 {
            bench.disk.set(|script| script.failing_syncs = 1);
        }
        let seq = journal.append(&void(request)).unwrap().seq;
        wait_for(&journal, seq);
        followed.extend(follower.by_ref().map(Result::unwrap).filter(is_of_a_request));
    }
    journal.close().unwrap();
    let expected: Vec<_> = (1..=40).collect();
    assert_eq!(followed.iter().map(number).collect::<Vec<_>>(), expected);
    assert_eq!(bench.requests(), expected);
    assert_eq!(bench.open().1.voids, 40);
}

#[test]
fn a_file_that_is_taken_from_us_is_noticed_and_followed_by_another() {
    type Fate = fn(&Path);
    let fates: [Fate; 3] = [
        |path| fs::remove_file(path).unwrap(),
        |path| fs::rename(path, path.with_extension("away")).unwrap(),
        |path| File::options().write(true).open(path).unwrap().set_len(520).unwrap(),
    ];
    for fate in fates {
        let bench = Bench::new(Durability::Os);
        let (journal, _) = bench.open();
        append(&journal, &void(1)).unwrap();
        fate(&bench.last_segment());
        append(&journal, &void(2)).unwrap();
        append(&journal, &void(3)).unwrap();
        let later: Vec<_> = bench.read(2).iter().map(number).collect();
        assert_eq!(later, [2, 3]);
        assert_eq!(bench.events(), ["SegmentLost"]);
    }
}

#[test]
fn a_reader_that_follows_is_told_of_a_hole() {
    let bench = Bench::new(Durability::Os);
    let (journal, _) = bench.open();
    let mut follower = read(bench.dir.path(), 1);
    assert!(follower.next().is_none());
    for request in 1..=3 {
        append(&journal, &void(request)).unwrap();
    }
    let hole = bench.read(3)[0].offset;
    let file = File::options().write(true).open(bench.last_segment()).unwrap();
    file.set_len(hole).unwrap();
    append(&journal, &void(4)).unwrap();
    assert_eq!(follower.by_ref().map_while(Result::ok).count(), 2);
    let error = follower.next().unwrap().unwrap_err();
    let JournalError::Segment { fault, .. } = &error else { panic!("{error}") };
    let gap = Fault::Damaged { offset: hole, what: "last sequence", expected: 3, found: 2 };
    assert_eq!(*fault, gap);
}

#[test]
fn a_slow_disk_fills_the_queue_and_leaves_room_to_settle() {
    let bench = Bench { queue_bytes_max: 1_500, ..Bench::new(Durability::Os) };
    let (journal, _) = bench.open();
    bench.disk.set(|script| script.stuck_after = Some(0));
    let mut accepted = 0;
    while journal.append(&reserve(accepted)).map(drop).is_ok() {
        accepted += 1;
    }
    bench.disk.wait_until_stuck();
    assert_eq!(journal.append(&reserve(99)).map(drop), Err(AppendError::QueueFull));
    assert!((1..20).contains(&accepted) && journal.is_healthy());
    for request in 0..accepted {
        journal.append_detached(&void(request));
    }
    assert_eq!(journal.lost(), 0);
    bench.disk.set(|script| script.stuck_after = None);
    journal.close().unwrap();
    assert_eq!(bench.requests(), (0..accepted).chain(0..accepted).collect::<Vec<_>>());
    journal.append_detached(&void(1));
    assert_eq!((journal.lost(), bench.events()), (1, vec!["EntryLost".to_owned()]));
}

#[test]
fn a_dropped_future_loses_nothing() {
    let bench = Bench::new(Durability::Os);
    let (journal, _) = bench.open();
    bench.disk.set(|script| script.stuck_after = Some(0));
    run(async {
        let mut append = journal.append(&void(1)).unwrap();
        for _ in 0..2 {
            let poll = std::future::poll_fn(|context| {
                Poll::Ready(Pin::new(&mut append).poll(context).is_pending())
            });
            assert!(poll.await);
        }
    });
    bench.disk.set(|script| script.stuck_after = None);
    wait_for(&journal, 1);
    assert_eq!(bench.requests(), [1]);
}

#[test]
fn a_failure_that_passes_between_two_looks_forgets_nobody() {
    let bench = Bench::new(Durability::Os);
    let (journal, _) = bench.open();
    bench.disk.set(|script| script.stuck_after = Some(0));
    drop(journal.append(&void(1)).unwrap());
    bench.disk.wait_until_stuck();
    run(async {
        let mut second = journal.append(&void(2)).unwrap();
        let pending = std::future::poll_fn(|context| {
            Poll::Ready(Pin::new(&mut second).poll(context).is_pending())
        });
        assert!(pending.await);
        bench.disk.set(|script| (script.full_after, script.stuck_after) = (Some(0), None));
        assert_eq!(journal.append(&void(3)).unwrap().await, Err(AppendError::Unavailable));
        bench.disk.set(|script| (script.full_after, script.stuck_after) = (None, Some(1)));
        // The bell is rung by a task of this runtime, which is about to be blocked.
        tokio::task::yield_now().await;
        bench.disk.wait_until_stuck();
        let pending = std::future::poll_fn(|context| {
            Poll::Ready(Pin::new(&mut second).poll(context).is_pending())
        });
        assert!(pending.await);
        bench.disk.set(|script| script.stuck_after = None);
        assert_eq!(second.await, Ok(2));
    });
}

#[derive(Debug, Clone)]
enum Step {
    /// Reserves another request, or settles one of those before.
    Append(Vec<Option<prop::sample::Index>>),
    Reopen,
    /// Dies within the last entry's write.
    Tear(prop::sample::Index),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let entries = vec(proptest::option::of(any::<prop::sample::Index>()), 1..6);
    let step = prop_oneof![
        4 => entries.prop_map(Step::Append),
        1 => Just(Step::Reopen),
        1 => any::<prop::sample::Index>().prop_map(Step::Tear),
    ];
    vec(step, 1..12)
}

/// What a start adds: a post for each request that is open.
fn posts_of_the_open(model: &[(u128, bool)]) -> Vec<(u128, bool)> {
    let settled = |id| model.contains(&(id, false));
    let reserved = model.iter().filter(|(_, reserves)| *reserves);
    reserved.filter(|(id, _)| !settled(*id)).map(|(id, _)| (*id, false)).collect()
}

/// Cuts the journal within its last entry that is of a request, as dying there does. Whether there
/// is one in its last segment.
fn tear(bench: &Bench, at: prop::sample::Index) -> bool {
    let path = bench.last_segment();
    let framed = bench.read(1);
    let (Some(last), Some(end)) = (framed.iter().rposition(is_of_a_request), framed.last()) else {
        return false;
    };
    // What follows it is what closing has added.
    let end = framed.get(last + 1).map_or(fs::metadata(&path).unwrap().len(), |_| end.offset);
    let Some(length) = end.checked_sub(framed[last].offset).filter(|length| *length > 0) else {
        return false;
    };
    let left = framed[last].offset + at.index(usize::try_from(length).unwrap()) as u64;
    File::options().write(true).open(&path).unwrap().set_len(left).unwrap();
    true
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn the_journal_is_a_list(steps in steps(), segment_bytes in 150..900u64) {
        let bench = Bench { segment_bytes, ..Bench::new(Durability::Os) };
        let mut model: Vec<(u128, bool)> = Vec::new();
        let mut journal = Some(bench.open().0);
        let mut requests = 0;
        for step in steps {
            match step {
                Step::Append(entries) => for settles in entries {
                    let (id, reserves) = match settles {
                        Some(at) if requests > 0 => (at.index(requests) as u128, false),
                        _ => {
                            requests += 1;
                            (requests as u128 - 1, true)
                        }
                    };
                    let entry = if reserves { reserve(id) } else { void(id) };
                    append(journal.as_ref().unwrap(), &entry).unwrap();
                    model.push((id, reserves));
                },
                Step::Reopen => {
                    drop(journal.take());
                    journal = Some(bench.open().0);
                    model.extend(posts_of_the_open(&model));
                }
                Step::Tear(at) => {
                    drop(journal.take());
                    if tear(&bench, at) {
                        model.pop();
                    }
                    journal = Some(bench.open().0);
                    model.extend(posts_of_the_open(&model));
                }
            }
        }
        let framed = bench.read(1);
        prop_assert!(framed.iter().map(|framed| framed.seq).eq(1..=framed.len() as u64));
        let found: Vec<_> = framed
            .iter()
            .filter(|framed| is_of_a_request(framed))
            .map(|framed| (number(framed), framed.kind == Kind::Reserve))
            .collect();
        prop_assert_eq!(found, model);
    }
}

#[test]
fn who_stops_waiting_leaves_nobody_asleep() {
    let bench = Bench::new(Durability::Os);
    let (journal, _) = bench.open();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async {
        for round in 0..50 {
            let tasks: Vec<_> = (0..20)
                .map(|request| {
                    let append = journal.append(&reserve(round * 20 + request)).unwrap();
                    tokio::spawn(append)
                })
                .collect();
            tokio::task::yield_now().await;
            for task in tasks.iter().step_by(3) {
                task.abort();
            }
            for (index, task) in tasks.into_iter().enumerate() {
                let written = tokio::time::timeout(Duration::from_secs(30), task).await.unwrap();
                assert!(index % 3 == 0 || written.unwrap().is_ok());
            }
        }
    });
}
