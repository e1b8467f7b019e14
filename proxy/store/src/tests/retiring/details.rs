//! Days without details.

use super::*;

/// A store of which the first two days are gone, with so many corrections.
fn without_two_days(dir: &TempDir, history: &History, corrections: usize) -> (Store, Sealer) {
    let mut store = Store::open(dir.path()).unwrap();
    history.feed(&mut store, history.requests.len(), corrections);
    let mut sealer = sealer(dir.path());
    seal(&mut sealer, 9);
    seal(&mut sealer, 9);
    for day in ["2026-11-01", "2026-11-02"] {
        let old = sealer.oldest_day().unwrap().unwrap();
        assert_eq!(old.day.to_string(), day);
        let gone = remove(&mut sealer).unwrap();
        assert_eq!((gone.day, gone.requests, gone.files.len()), (old.day, old.requests, 1));
        assert_eq!(gone.files[0].bytes, old.bytes);
    }
    (store, sealer)
}

#[test]
fn a_day_goes_when_its_hours_are_in_a_file_and_bills_stay() {
    let dir = tempfile::tempdir().unwrap();
    let history = History::in_order();
    let (mut store, mut sealer) = without_two_days(&dir, &history, history.corrections.len());
    let expected = history.expected(history.requests.len(), history.corrections.len());
    assert_eq!(bills(&mut store), expected);
    assert_eq!(files(dir.path(), "hours"), ["2026-11-01.parquet", "2026-11-02.parquet"]);
    assert!(files(dir.path(), "days").iter().all(|name| name.as_str() > "2026-11-03"));
    let from = store.details_from().unwrap().unwrap();
    assert_eq!(from.to_string(), "2026-11-03T00:00:00Z");
    let first = records(&mut store, &Filter::default(), None).remove(0);
    assert!(first.started_at >= from);
    // The rest of the month follows, and becomes one file.
    seal(&mut sealer, 90);
    seal(&mut sealer, 90);
    assert_eq!(files(dir.path(), "hours"), ["2026-11.parquet"]);
    assert_eq!(bills(&mut store), expected);
    while remove(&mut sealer).is_some() {}
    assert_eq!(files(dir.path(), "days"), Vec::<String>::new());
    assert_eq!(bills(&mut store), expected);
    assert!(!store.is_empty().unwrap());
}

#[test]
fn what_is_gone_is_not_added_again() {
    let dir = tempfile::tempdir().unwrap();
    let history = History::in_order();
    let (mut store, _sealer) = without_two_days(&dir, &history, history.corrections.len());
    let expected = history.expected(history.requests.len(), history.corrections.len());
    let again = store.catch_up(&mut [feed_as("other", &history.requests)]).unwrap();
    assert_eq!(again.records, 0);
    assert_eq!(bills(&mut store), expected);
    store.rebuild(&mut [feed(&history.requests), changed(&history.corrections)]).unwrap();
    assert_eq!(bills(&mut store), expected);
    store.rebuild(&mut [feed(&history.requests[60..])]).unwrap();
    assert_eq!(bills(&mut store), expected);
}

#[test]
fn late_requests_of_a_gone_day_count_once_and_go_with_the_next_removal() {
    let dir = tempfile::tempdir().unwrap();
    let is_late = |number: &u32| number % 9 == 4;
    let order: Vec<_> =
        (0..RIDES).filter(|it| !is_late(it)).chain((0..RIDES).filter(is_late)).collect();
    let history = History::of(&order);
    let early = (0..RIDES).filter(|it| !is_late(it)).count();
    let mut store = Store::open(dir.path()).unwrap();
    history.feed(&mut store, early, 0);
    let mut sealer = sealer(dir.path());
    seal(&mut sealer, 9);
    remove(&mut sealer).unwrap();
    let all = history.requests.len();
    let fed = history.feed(&mut store, all, 0);
    assert_eq!(fed.records, (all - early) as u64);
    assert_eq!(bills(&mut store), history.expected(all, 0));
    assert!(verified(&dir, &mut store).contains("2026-11-01 by digest: "));
    seal(&mut sealer, 9);
    let late = remove(&mut sealer).unwrap();
    assert_eq!(late.day.to_string(), "2026-11-01");
    assert!(late.requests < 5);
    let days = store.gone_days().unwrap();
    assert_eq!((days.len(), days[0].files.len()), (1, 2));
    assert_eq!(
        days[0].requests,
        (0..RIDES)
            .filter(|it| ride(*it).started_at < days[0].first + SignedDuration::from_hours(24))
            .count() as u64
    );
    for first in [0, all - 3] {
        store.rebuild(&mut [feed(&history.requests[first..])]).unwrap();
        assert_eq!(bills(&mut store), history.expected(all, 0), "{first}");
    }
    assert_eq!(files(dir.path(), "hours"), ["2026-11-01.2.parquet", "2026-11-01.parquet"]);
}

#[test]
fn what_corrects_a_request_whose_details_are_gone_counts_for_its_tenant() {
    let dir = tempfile::tempdir().unwrap();
    let history = History::in_order();
    let (mut store, mut sealer) = without_two_days(&dir, &history, 0);
    let (all, corrections) = (history.requests.len(), history.corrections.len());
    history.feed_all(&mut store);
    let (found, expected) = (bills(&mut store), history.expected(all, corrections));
    assert!(found.has_unknown());
    assert_eq!(found.by_tenant(), expected.by_tenant());
    store.rebuild(&mut [feed(&history.requests), changed(&history.corrections)]).unwrap();
    assert_eq!(bills(&mut store), found);
    seal(&mut sealer, 90);
    assert_eq!(bills(&mut store), found);
    drop((store, sealer));
    lose_database(dir.path());
    let mut store = Store::open(dir.path()).unwrap();
    history.feed_all(&mut store);
    assert_eq!(bills(&mut store).by_tenant(), expected.by_tenant());
}

#[test]
fn where_room_is_limited_the_oldest_day_can_go_without_a_new_file() {
    let dir = tempfile::tempdir().unwrap();
    let history = History::in_order();
    let mut store = Store::open(dir.path()).unwrap();
    history.feed_all(&mut store);
    let expected = bills(&mut store);
    let mut sealer = sealer(dir.path());
    let limited = SealPolicy { left: Some(1 << 30), ..closed(9) };
    let [hours, moved] = ["hours", "moved"].map(|name| dir.path().join(name));
    for days in 1..=5 {
        let newest = sealer.newest().unwrap();
        for _ in 0..2 {
            sealer.work(&limited, newest, &|| true).unwrap();
        }
        assert_eq!(files(dir.path(), "hours").len(), days, "the one of the next day is there");
        assert_eq!(bills(&mut store), expected);
        let report = verified(&dir, &mut store);
        assert!(!report.contains("store's hour") && report.contains("hours: "), "{report}");
        // No file can be made there.
        fs::rename(&hours, &moved).unwrap();
        fs::write(&hours, "").unwrap();
        assert!(remove(&mut sealer).is_some());
        fs::remove_file(&hours).unwrap();
        fs::rename(&moved, &hours).unwrap();
        assert_eq!(bills(&mut Store::open(dir.path()).unwrap()), expected);
    }
    assert!(remove(&mut sealer).is_none());
}

#[test]
fn verify_says_by_digest_and_is_clean_and_finds_damage() {
    let dir = tempfile::tempdir().unwrap();
    let history = History::in_order();
    let (mut store, _sealer) = without_two_days(&dir, &history, 0);
    let report = verified(&dir, &mut store);
    assert!(report.contains("2026-11-01 to 2026-11-02 by digest: 40 records"), "{report}");
    assert!(report.contains("hours: 2 files of "), "{report}");
    assert!(report.contains("Nothing is wrong."), "{report}");
    let path = dir.path().join("hours/2026-11-02.parquet");
    let whole = fs::read(&path).unwrap();
    let mut flipped = whole.clone();
    flipped[100] ^= 1;
    let other = fs::read(dir.path().join("hours/2026-11-01.parquet")).unwrap();
    for (bytes, what) in [
        (Some(flipped), "row group 0: "),
        (Some(whole[..whole.len() - 9].to_vec()), "footer: "),
        (Some(other), "another file"),
        (None, "the file is gone"),
    ] {
        match bytes {
            Some(bytes) => fs::write(&path, bytes).unwrap(),
            None => fs::remove_file(&path).unwrap(),
        }
        let mut store = Store::open(dir.path()).unwrap();
        let report = verified(&dir, &mut store);
        assert!(report.contains(what) && report.contains("of 2026-11: "), "{report}");
        assert!(report.contains(&path.display().to_string()), "{report}");
        let nothing = |_: &HourKey, _: &Hour| Ok::<_, StoreError>(());
        let error = store.hours(november(), None, nothing).unwrap_err().to_string();
        assert!(error.contains("2026-11-02.parquet"), "{error}");
    }
}
