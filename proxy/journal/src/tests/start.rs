//! Tests what a start reads, what it adds, and what is kept for it.

use std::time::Instant;

use jiff::{SignedDuration, Timestamp};
use taximeter_ledger::{Checkpoint, FramedEntry};
use taximeter_system::clock;

use super::bench::progress;
use super::*;
use crate::disk_budget::DiskBudget;
use crate::room::{Filler, HistoryKind, Removable, RoomLimits};

/// Removes what is so many days old, of a journal whose newest entry is from `newest`.
fn retention(
    dir: &Path,
    keep_days: u32,
    newest: Option<Timestamp>,
    at: (Instant, Timestamp),
) -> Retention {
    Retention::new(dir, keep_days, 0, newest, at, Arc::default())
}

/// A store that keeps requests in its tables, with corrections up to this one.
fn kept(corrections: u64) -> InStore {
    InStore { sealed: None, corrections }
}

fn checkpoints(bench: &Bench) -> Vec<(FramedEntry, Checkpoint)> {
    let checkpoint = |framed: FramedEntry| match framed.entry().unwrap() {
        Entry::Checkpoint(checkpoint) => Some((framed, *checkpoint)),
        _ => None,
    };
    bench.read(1).into_iter().filter_map(checkpoint).collect()
}

/// A journal of so many requests, all settled but those in `open`, in many segments.
fn filled(requests: u128, open: &[u128]) -> Bench {
    let bench = Bench { segment_bytes: 400, ..Bench::new(Durability::Os) };
    let (journal, _) = bench.open();
    for request in 0..requests {
        append(&journal, &reserve(request)).unwrap();
        append(&journal, &progress(request, 5)).unwrap();
        if !open.contains(&request) {
            append(&journal, &post(request)).unwrap();
        }
    }
    drop(journal);
    bench
}

#[test]
fn every_segment_begins_with_what_the_earlier_ones_add_up_to() {
    let bench = filled(30, &[7]);
    let checkpoints = checkpoints(&bench);
    assert_eq!(checkpoints.len(), bench.segments().len());
    for (framed, checkpoint) in &checkpoints {
        let before: Vec<_> = bench.read(1).into_iter().filter(|it| it.seq < framed.seq).collect();
        let of = |kind| before.iter().filter(|framed| framed.kind == kind).count() as u64;
        assert_eq!(checkpoint.posts, of(Kind::Post));
        assert_eq!(checkpoint.unknown_cost, checkpoint.posts);
        let is_open = |framed: &&FramedEntry| {
            let settles = |it: &FramedEntry| it.kind == Kind::Post && number(it) == number(framed);
            framed.kind == Kind::Reserve && !before.iter().any(settles)
        };
        assert_eq!(checkpoint.oldest_open, before.iter().find(is_open).map(|framed| framed.seq));
    }
}

#[test]
fn a_start_reads_from_the_last_checkpoint_that_carries_over_what_was_open() {
    let bench = filled(60, &[40, 55]);
    let first = files::first_seq(&bench.last_segment()).unwrap();
    let (journal, recovery) = bench.open();
    assert_eq!((recovery.from_seq, recovery.strays), (first, 0));
    assert_eq!(recovery.posts, 58);
    let died: Vec<_> = recovery.died.iter().map(|record| record.id.0.as_u128()).collect();
    assert_eq!(died, [40, 55]);
    // The one that settled them is the last, and says so.
    drop(journal);
    let (_, checkpoint) = checkpoints(&bench).pop().unwrap();
    assert_eq!((checkpoint.posts, checkpoint.oldest_open), (60, None));
    let (_, recovery) = bench.open();
    assert_eq!((recovery.entries, recovery.posts), (1, 60));
}

#[test]
fn what_was_open_is_posted_with_what_it_had_used_and_its_price() {
    let bench = Bench::new(Durability::Group);
    let (journal, _) = bench.open();
    for entry in [reserve(1), reserve(2), progress(1, 5), progress(1, 9), progress(9, 1)] {
        append(&journal, &entry).unwrap();
    }
    drop(journal);
    let (journal, recovery) = bench.open();
    let [first, second] = &recovery.died[..] else { panic!("{:?}", recovery.died) };
    assert_eq!((first.usage.input_tokens, first.usage.output_tokens), (Some(10), Some(9)));
    assert_eq!(first.cost.as_ref().map(|cost| cost.amount.to_string()).as_deref(), Some("0.009"));
    assert_eq!((second.usage.output_tokens, &second.cost), (None, &None));
    drop(journal);
    let (_, checkpoint) = checkpoints(&bench).pop().unwrap();
    assert_eq!((checkpoint.posts, checkpoint.unknown_cost), (2, 1));
    assert_eq!(checkpoint.costs.get("USD").map(ToString::to_string).as_deref(), Some("0.009"));
}

#[test]
fn a_start_and_an_end_without_anything_between_add_nothing() {
    let bench = filled(3, &[]);
    let before = bench.read(1).len();
    for _ in 0..3 {
        drop(bench.open());
    }
    assert_eq!(bench.read(1).len(), before);
}

#[test]
fn old_segments_go_once_the_store_has_them_and_no_start_needs_them() {
    let later = Timestamp::from_second(1).unwrap();
    let all = filled(40, &[]).segments().len();
    for (open, stored, until, kept) in [
        (None, u64::MAX, later, 1),
        (None, u64::MAX, Timestamp::UNIX_EPOCH, all),
        (None, 0, later, all),
        (Some(0), u64::MAX, later, 1),
    ] {
        let open: Vec<u128> = open.into_iter().collect();
        let bench = filled(40, &open);
        let last = bench.read(1).pop().unwrap();
        let removed = retain::retire(bench.dir.path(), until, stored).unwrap();
        assert_eq!(bench.segments().len(), kept, "{open:?} {stored} {until}");
        assert_eq!(removed.len(), all - kept);
        let (journal, recovery) = bench.open();
        assert_eq!((recovery.posts, recovery.strays), (40 - open.len() as u64, 0));
        assert_eq!(recovery.died.len(), open.len());
        let next = last.seq + 1 + 2 * open.len() as u64;
        assert_eq!(append(&journal, &void(99)), Ok(next));
    }
}

#[test]
fn a_segment_that_the_store_has_half_stays() {
    let bench = filled(40, &[]);
    let second = bench.read(1).into_iter().filter(|framed| framed.kind == Kind::Checkpoint);
    let second = second.map(|framed| framed.seq).next().unwrap();
    let later = Timestamp::from_second(1).unwrap();
    assert!(retain::retire(bench.dir.path(), later, second - 2).unwrap().is_empty());
    assert_eq!(retain::retire(bench.dir.path(), later, second - 1).unwrap().len(), 1);
}

#[test]
fn the_store_has_what_was_written_before_it_was_fed() {
    let bench = filled(40, &[]);
    let (at, now): (_, Instant) = (Timestamp::from_second(2 * 86_400).unwrap(), clock::now());
    let mut retention = retention(bench.dir.path(), 1, Some(at), (now, at));
    let mut fed = |hours| {
        let now = now + Duration::from_secs(3600) * hours;
        let budget = DiskBudget::default();
        retention.fed(u64::MAX, kept(0), &budget, (now, at)).unwrap().old.len()
    };
    assert_eq!(fed(0), 0);
    // Not before its time.
    assert_eq!(fed(0), 0);
    assert!(fed(1) > 0);
    assert_eq!(bench.segments().len(), 1);
}

/// What `retention` removes to make room, after a feeding.
fn for_room(
    retention: &mut Retention,
    budget: &DiskBudget,
    at: (Instant, Timestamp),
) -> Option<MadeRoom> {
    let removed = retention.fed(u64::MAX, kept(0), budget, at).unwrap();
    assert!(removed.old.is_empty());
    removed.for_room
}

/// A data directory of which this part in a thousand is taken.
fn budget(dir: &Path, taken: u64) -> DiskBudget {
    let budget = DiskBudget::default();
    let mut limits = RoomLimits { bytes_max: None, segment_bytes: 1, serves: false };
    budget.look(dir, &limits).unwrap();
    limits.bytes_max = budget.bytes().map(|bytes| bytes * 1_000 / taken);
    budget.look(dir, &limits).unwrap();
    budget
}

#[test]
fn where_there_is_little_room_as_many_young_files_go_as_are_needed_but_none_that_the_store_lacks() {
    let bench = filled(40, &[]);
    let (at, now) = (Timestamp::from_second(1).unwrap(), clock::now());
    let mut retention = retention(bench.dir.path(), 400, Some(at), (now, at));
    let all = bench.segments();
    let roomy = budget(bench.dir.path(), 700);
    let mut fed = |budget: &DiskBudget, seconds: u64| {
        let now = now + Duration::from_secs(seconds);
        for_room(&mut retention, budget, (now, at)).map(|made| (made.gone.len(), made.filler))
    };
    let short = budget(bench.dir.path(), 801);
    assert_eq!(fed(&short, 0), None, "the store lacks them");
    assert_eq!(fed(&roomy, 0), None);
    // At once, and not at the next hour.
    assert_eq!(fed(&short, 11), Some((1, Filler::Own)));
    assert_eq!(bench.segments(), all[1..]);
    assert_eq!(fed(&short, 30), None, "there is room again");
    let full = budget(bench.dir.path(), 1_000);
    let gone = fed(&full, 40).map_or(0, |(gone, _)| gone);
    assert!((2..all.len() / 2).contains(&gone), "{gone} of {}", all.len());
    assert!(!full.is_short() && !full.is_full());
}

#[test]
fn room_is_made_while_the_store_cannot_be_fed_of_what_it_is_known_to_have() {
    let bench = filled(40, &[]);
    let (at, now) = (Timestamp::from_second(1).unwrap(), clock::now());
    let full = budget(bench.dir.path(), 20_000);
    let all = bench.segments().len();
    let made = |stored: Option<(u64, u64)>| {
        let mut retention = retention(bench.dir.path(), 400, Some(at), (now, at));
        let made = retention.make_room(|| stored, &full, now).unwrap();
        made.map(|made| (made.gone.len(), made.remaining))
    };
    assert_eq!((made(None), made(Some((0, 0)))), (None, None));
    let second = u64::try_from(bench.read(1).len()).unwrap() / 2;
    let (gone, remaining) = made(Some((second, 0))).unwrap();
    assert!((2..all - 2).contains(&gone) && remaining == 0, "{gone} {remaining} of {all}");
    assert!(made(Some((u64::MAX, 0))).is_some());
    assert_eq!(bench.segments().len(), 1);
    bench.open();
}

#[test]
fn a_restart_begins_no_new_day_for_what_goes_because_of_others() {
    let bench = filled(40, &[]);
    let dir = bench.dir.path();
    let state = || {
        let text = fs::read_to_string(dir.join("room.state")).unwrap();
        text.split_whitespace().take(2).map(|it| it.parse().unwrap()).collect::<Vec<u64>>()
    };
    let kind = HistoryKind::Segment;
    let part = |path| Removable { kind, path, bytes: 100, files: 1 };
    let history: Vec<_> = bench.segments().into_iter().map(part).collect();
    let budget = budget(dir, 700);
    budget.plan(&history);
    budget.freed(&[], 30);
    let left = history.len() as u64 * 10 - 30;
    assert_eq!(state(), [left, 0]);
    let again = self::budget(dir, 700);
    again.plan(&history);
    again.freed(&[], 0);
    assert_eq!(state(), [left, 0]);
}

#[test]
fn nothing_goes_by_age_while_the_clock_is_ahead_of_the_newest_entry_but_for_room() {
    let bench = filled(40, &[]);
    let newest = Timestamp::from_second(1).unwrap();
    let (mut now, mut at) = (clock::now(), newest + SignedDuration::from_hours(24 * 500));
    let mut retention = retention(bench.dir.path(), 400, Some(newest), (now, at));
    let mut fed = |hours: u64| {
        let passed = Duration::from_secs(3600) * u32::try_from(hours).unwrap();
        (now, at) = (now + passed, at + passed);
        let turn = retention.look((now, at));
        let budget = DiskBudget::default();
        let removed = retention.fed(u64::MAX, kept(0), &budget, (now, at));
        (turn, removed.unwrap().old.len())
    };
    let (began, removed) = fed(0);
    let Some(WaitTurn::Began(ahead)) = began else { panic!("{began:?}") };
    assert_eq!((ahead.newest, removed), (newest, 0));
    // The first feeding removes nothing, whatever the clock says. The next ones would.
    for _ in 0..11 {
        assert_eq!(fed(2), (None, 0));
    }
    assert_eq!(bench.segments().len(), filled(40, &[]).segments().len());
    let (ended, removed) = fed(2);
    assert_eq!(ended, Some(WaitTurn::Ended));
    assert!(removed > 0);

    let bench = filled(40, &[]);
    let at = newest + SignedDuration::from_hours(24 * 500);
    let mut retention = self::retention(bench.dir.path(), 400, Some(newest), (now, at));
    let full = budget(bench.dir.path(), 1_000);
    assert!(for_room(&mut retention, &full, (now, at)).is_none());
    let made = for_room(&mut retention, &full, (now, at));
    assert!(made.is_some(), "room is no question of age");
}

#[test]
fn segments_of_sealed_requests_go_whatever_the_clock_says_and_corrections_stay() {
    let bench = filled(40, &[]);
    let newest = Timestamp::from_second(1).unwrap();
    // Nothing is old, and the clock is in doubt.
    let (mut now, at) = (clock::now(), newest + SignedDuration::from_hours(24 * 500));
    let mut retention = retention(bench.dir.path(), 36_500, Some(newest), (now, at));
    retention.look((now, at));
    let all = bench.segments().len();
    let last = bench.read(1).last().unwrap().seq;
    let mut fed = |seconds: u64, sealed: u64| {
        now += Duration::from_secs(seconds);
        let in_store = InStore { sealed: Some(sealed), corrections: u64::MAX };
        let budget = DiskBudget::default();
        let removed = retention.fed(last, in_store, &budget, (now, at));
        removed.unwrap().old.len()
    };
    assert_eq!(fed(0, 0), 0);
    assert_eq!(fed(9, last / 2), 0, "not so soon");
    let half = fed(2, last / 2);
    assert!((1..all - 1).contains(&half), "{half} of {all}");
    assert_eq!(fed(11, last / 2), 0, "no further ones are sealed");
    assert_eq!(fed(11, last), all - 1 - half);
    bench.open();
}

#[test]
fn a_restart_goes_on_with_the_wait_also_where_the_file_of_it_cannot_be_read() {
    let bench = filled(40, &[]);
    let newest = Timestamp::from_second(1).unwrap();
    let (now, at) = (clock::now(), newest + SignedDuration::from_hours(24 * 500));
    let start = |newest, at| {
        let mut retention = retention(bench.dir.path(), 400, newest, (now, at));
        retention.look((now, at))
    };
    assert!(matches!(start(Some(newest), at), Some(WaitTurn::Began(_))));
    // By now the newest entry is of the wrong clock too.
    let Some(WaitTurn::Began(ahead)) = start(Some(at), at) else { panic!("no wait") };
    assert_eq!(ahead.newest, newest);
    // Set right, it is what it was.
    assert_eq!(start(Some(at), newest), None);
    let file = bench.dir.path().join("clock.trust");
    for rubbish in ["", "?", "2026-01-01T00:00:00Z"] {
        fs::write(&file, rubbish).unwrap();
        assert!(matches!(start(Some(newest), at), Some(WaitTurn::Began(_))));
        assert!(matches!(start(Some(at), at), Some(WaitTurn::Began(_))), "it was written over");
    }
}

#[test]
fn a_start_tells_the_time_of_the_newest_entry_before_it() {
    let bench = Bench::new(Durability::Os);
    assert_eq!(bench.open().1.newest, None);
    let mut late = progress(1, 5);
    let time = Timestamp::from_second(77).unwrap();
    if let Entry::Progress(progress) = &mut late {
        progress.at = time;
    }
    let (journal, _) = bench.open();
    for entry in [reserve(1), late, post(1)] {
        append(&journal, &entry).unwrap();
    }
    // What a gateway leaves that is killed.
    let (killed, segment) = (Bench::new(Durability::Os), bench.last_segment());
    fs::copy(&segment, killed.dir.path().join(segment.file_name().unwrap())).unwrap();
    assert_eq!(killed.open().1.newest, Some(time));
}

#[test]
fn old_corrections_go_once_the_store_has_them() {
    let (data, filled) = (tempfile::tempdir().unwrap(), filled(40, &[]));
    let dir = data.path().join(CORRECTIONS);
    fs::create_dir(&dir).unwrap();
    for path in filled.segments() {
        fs::copy(&path, dir.join(path.file_name().unwrap())).unwrap();
    }
    let (at, now): (_, Instant) = (Timestamp::from_second(2 * 86_400).unwrap(), clock::now());
    let mut retention = retention(data.path(), 1, Some(at), (now, at));
    let mut fed = |stored: u64, hours| {
        let now = now + Duration::from_secs(3600) * hours;
        let budget = DiskBudget::default();
        retention.fed(0, kept(stored), &budget, (now, at)).unwrap().old.len()
    };
    assert_eq!(fed(0, 0), 0, "the store lacks them");
    assert_eq!(fed(u64::MAX, 1), filled.segments().len() - 1);
    assert_eq!(files::list(&dir, &Kernel).unwrap().len(), 1);
}

#[test]
fn a_ledger_that_serves_all_the_same_queues_until_there_is_no_room() {
    let serve = OnUnavailable::Serve;
    let bench = Bench { unavailable: serve, queue_bytes_max: 1_500, ..Bench::new(Durability::Os) };
    let (journal, _) = bench.open();
    bench.disk.set(|script| script.full_after = Some(0));
    assert_eq!(append(&journal, &reserve(0)), Err(AppendError::Unavailable));
    let mut accepted = 1;
    while journal.is_open() && journal.append(&reserve(accepted)).map(drop).is_ok() {
        accepted += 1;
    }
    assert!((2..20).contains(&accepted) && !journal.is_healthy());
    // What a stream says of itself is left out before a request is refused.
    journal.append_if_room(&progress(0, 1));
    bench.disk.set(|script| script.full_after = None);
    wait_for(&journal, accepted.try_into().unwrap());
    assert!(journal.is_open() && journal.is_healthy());
    assert_eq!(bench.requests(), (0..accepted).collect::<Vec<_>>());
    assert_eq!(
        (journal.lost(), bench.events()),
        (0, vec!["WriteFailed".into(), "Recovered".into()])
    );
}

#[test]
fn what_nobody_waits_for_is_synced_with_its_group() {
    let bench = Bench::new(Durability::Group);
    let (journal, _) = bench.open();
    let before = bench.disk.syncs();
    journal.append_detached(&void(1));
    bench.disk.wait_for_syncs(before + 1);
    assert_eq!(bench.requests(), [1]);
}

#[test]
fn a_disk_that_takes_longer_than_it_should_is_told() {
    let bench = Bench::new(Durability::Os);
    let (journal, _) = bench.open();
    journal.0.queue.tell_slow("write", clock::now());
    assert!(bench.events().is_empty());
    let begun = clock::now().checked_sub(Duration::from_secs(2)).unwrap();
    journal.0.queue.tell_slow("write", begun);
    assert_eq!(bench.events(), ["Slow"]);
}

#[test]
fn a_segment_whose_last_entry_was_cut_off_is_still_what_the_next_one_says() {
    let whole = Bench::new(Durability::Os);
    let (journal, _) = whole.open();
    append(&journal, &void(1)).unwrap();
    drop(journal);
    // Strings begin anew before the first entry of a start, by a frame of their own.
    let (journal, _) = whole.open();
    append(&journal, &void(2)).unwrap();
    drop(journal);
    let bytes = fs::read(whole.last_segment()).unwrap();
    let (begin, end) = (whole.read(1).last().unwrap().offset, bytes.len() as u64);
    for length in (begin - 40..=end).rev() {
        let bench = Bench { segment_bytes: 1_500, ..Bench::new(Durability::Os) };
        let path = bench.dir.path().join(whole.last_segment().file_name().unwrap());
        fs::write(&path, &bytes).unwrap();
        fs::copy(whole.dir.path().join(LEDGER), bench.dir.path().join(LEDGER)).unwrap();
        File::options().write(true).open(&path).unwrap().set_len(length).unwrap();
        let (journal, _) = bench.open();
        for request in 3..30 {
            append(&journal, &void(request)).unwrap();
        }
        journal.close().unwrap();
        assert!(bench.segments().len() > 1);
        let examined = examine(bench.dir.path(), |_, _| (), drop).unwrap();
        assert!(examined.faults.is_empty(), "{length}: {examined:?}");
        assert!(examined.altered.is_empty(), "{length}: {examined:?}");
    }
}
