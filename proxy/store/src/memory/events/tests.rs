use taximeter_fleet::{Fact, Own, Watcher};
use taximeter_system::clock;

use super::*;

/// 2026-11-20T00:00:00Z.
const DAY: i64 = 1_795_132_800;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(DAY + second).unwrap()
}

fn event(second: i64, of: &str) -> Event {
    Event {
        at: at(second),
        kind: EventKind::GpuOwner,
        subject: of.to_owned(),
        source: Some("http://g/metrics".to_owned()),
        about: vec![of.to_owned(), "n1".to_owned()],
        before: Some("a".to_owned()),
        after: None,
        text: "\"moved\"\n".to_owned(),
    }
}

fn query(from: i64, to: i64) -> EventQuery {
    let (from, to) = (at(from), at(to));
    EventQuery { from, to, kind: None, subjects: Vec::new(), events_max: 10 }
}

fn seconds(found: &FoundEvents) -> Vec<i64> {
    found.events.iter().map(|event| event.at.as_second() - DAY).collect()
}

#[test]
fn events_are_found_by_time_kind_and_subject_the_newest_first() {
    let dir = tempfile::tempdir().unwrap();
    let events = Events::of(dir.path());
    assert_eq!(events.ask(&query(0, 99)).unwrap(), FoundEvents::default());
    events.add(&[event(1, "GPU-1"), event(2, "GPU-2")]).unwrap();
    events.add(&[]).unwrap();
    let late = [event(40 * 86_400, "GPU-1")];
    events.add(&late).unwrap();
    // A writer that was told of a fault writes once more.
    events.add(&late).unwrap();
    assert_eq!(events.files().unwrap().len(), 2, "a month has a file of its own");
    let all = events.ask(&query(0, i64::from(u32::MAX))).unwrap();
    assert_eq!(seconds(&all), [40 * 86_400, 2, 1]);
    assert_eq!(all.events[2], event(1, "GPU-1"));
    assert_eq!(seconds(&events.ask(&query(2, 3)).unwrap()), [2]);
    let of = |name: &str| EventQuery { subjects: vec![name.to_owned()], ..query(0, 99) };
    assert_eq!(seconds(&events.ask(&of("GPU-2")).unwrap()), [2]);
    assert_eq!(seconds(&events.ask(&of("n1")).unwrap()), [2, 1]);
    let other = EventQuery { kind: Some(EventKind::Prices), ..query(0, 99) };
    assert!(seconds(&events.ask(&other).unwrap()).is_empty());
    let few = events.ask(&EventQuery { events_max: 1, ..query(0, 99) }).unwrap();
    assert_eq!((seconds(&few), few.more), (vec![2], true));
}

#[test]
fn a_torn_line_and_a_changed_byte_cost_no_other_line_and_are_told() {
    let dir = tempfile::tempdir().unwrap();
    let events = Events::of(dir.path());
    events.add(&[event(1, "GPU-1"), event(2, "GPU-2")]).unwrap();
    let path = dir.path().join(EVENTS).join("2026-11-20T00-00-01.jsonl");
    let whole = fs::read(&path).unwrap();
    for cut in 0..whole.len() {
        // The process was killed while it wrote the second line.
        fs::write(&path, &whole[..cut]).unwrap();
        events.add(&[event(3, "GPU-3")]).unwrap();
        let found = events.ask(&query(0, 99)).unwrap();
        let lines = whole[..cut].iter().filter(|byte| **byte == b'\n').count();
        assert!((lines + 1..=lines + 2).contains(&found.events.len()), "{cut}");
        assert_eq!(found.events[0], event(3, "GPU-3"), "{cut}");
        let torn = found.events.len() == lines + 1 && cut > 0 && whole[cut - 1] != b'\n';
        assert_eq!(found.skipped, u64::from(torn), "{cut}");
    }
    let mut hurt = whole.clone();
    hurt[5] = 0xff;
    fs::write(&path, hurt).unwrap();
    let found = events.ask(&query(0, 99)).unwrap();
    assert_eq!((seconds(&found), found.skipped), (vec![2], 1));
    let (_, fault) = events.recall().unwrap();
    assert!(fault.unwrap().to_string().contains("2026-11-20T00-00-01.jsonl is damaged: 1 of"));
}

#[test]
fn what_is_known_outlives_a_crash_and_no_change_is_told_twice() {
    let dir = tempfile::tempdir().unwrap();
    let events = Events::of(dir.path());
    assert_eq!(events.recall().unwrap().0, Known::default());
    let facts = |prices| [Fact::new(EventKind::Prices, "p.yaml", prices, Vec::new())];
    let mut watcher = Watcher::default();
    let now = clock::now();
    assert_eq!(watcher.note(&[], Own { facts: &facts("a"), host: None }, now, at(0)), []);
    events.keep(&watcher.known(at(0), true).unwrap(), u64::MAX).unwrap();
    let told = watcher.note(&[], Own { facts: &facts("b"), host: None }, now, at(1));
    assert_eq!(told.len(), 1);
    events.add(&told).unwrap();
    // Killed before it has kept what it knows, and while it writes that.
    fs::write(dir.path().join(EVENTS).join(UNFINISHED), "{").unwrap();
    let (known, fault) = events.recall().unwrap();
    assert!(fault.is_none());
    let mut again = Watcher::new(known);
    assert_eq!(again.note(&[], Own { facts: &facts("b"), host: None }, now, at(2)), []);
    assert_eq!(again.note(&[], Own { facts: &facts("c"), host: None }, now, at(3)).len(), 1);
    // Too much is not kept, and what is damaged is told.
    let known = watcher.known(at(4), true).unwrap();
    events.keep(&known, 10).unwrap();
    assert_ne!(events.recall().unwrap().0, known);
    fs::write(dir.path().join(EVENTS).join(KNOWN), "[]").unwrap();
    let (known, fault) = events.recall().unwrap();
    assert_eq!(known, Known::default());
    assert!(fault.unwrap().to_string().contains("known.json is damaged"));
}

#[test]
fn files_are_bounded_by_age_and_bytes_and_the_newest_stay() {
    let dir = tempfile::tempdir().unwrap();
    let events = Events::of(dir.path());
    for month in 0..4 {
        events.add(&[event(month * FILE_SECONDS_MAX, "GPU-1")]).unwrap();
    }
    let names = || events.files().unwrap().into_iter().map(|file| file.begin - DAY);
    let left = || names().map(|begin| begin / FILE_SECONDS_MAX).collect::<Vec<_>>();
    events.bound(Some(DAY + FILE_SECONDS_MAX - 1), u64::MAX).unwrap();
    assert_eq!(left(), [0, 1, 2, 3]);
    events.bound(Some(DAY + FILE_SECONDS_MAX), u64::MAX).unwrap();
    assert_eq!(left(), [1, 2, 3]);
    let one = events.bytes().unwrap() / 3;
    events.bound(None, (one * 2) * PART_OF).unwrap();
    assert_eq!(left(), [2, 3]);
    assert_eq!(events.remove_oldest().unwrap().map(|(_, bytes)| bytes), Some(one));
    events.bound(Some(DAY + 4 * FILE_SECONDS_MAX), u64::MAX).unwrap();
    assert_eq!((left().len(), events.remove_oldest().unwrap()), (0, None));
    // However many come, a file is not much longer than it may be.
    for begin in 0..8 {
        let seconds = begin * 500..(begin + 1) * 500;
        let many: Vec<_> = seconds.map(|second| event(second, "GPU-1")).collect();
        events.add(&many).unwrap();
    }
    let files = events.files().unwrap();
    assert!(files.len() > 1 && files.iter().all(|file| file.bytes < FILE_BYTES_MAX * 2));
    let found = events.ask(&EventQuery { events_max: 9_999, ..query(0, 5_000) }).unwrap();
    assert_eq!((found.events.len(), found.more), (4_000, false));
    // A clock that is set back begins no file, and its events are found.
    events.add(&[event(9_999, "GPU-1")]).unwrap();
    let files = events.files().unwrap();
    events.add(&[event(-86_400, "GPU-1")]).unwrap();
    assert_eq!(events.files().unwrap().len(), files.len());
    assert_eq!(seconds(&events.ask(&query(-86_400, 0)).unwrap()), [-86_400]);
}
