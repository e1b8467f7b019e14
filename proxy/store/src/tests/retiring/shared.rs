//! Details of a database that gateways share.

use super::*;
use crate::tests::postgres::Database;

/// Removes details of days before this one of November: how many went in how many steps.
fn remove_before(store: &mut Store, day: i64) -> (u64, u64) {
    let before = record(0).started_at + SignedDuration::from_hours(24 * (day - 1) + 5);
    let (mut all, mut steps) = (0, 0);
    loop {
        let removed = store.remove_details(before, 7, later()).unwrap();
        (all, steps) = (all + removed, steps + 1);
        if removed < 7 {
            return (all, steps);
        }
    }
}

#[test]
fn details_of_a_database_go_in_small_steps_and_bills_stay() {
    let database = Database::new();
    let mut store = database.store_of("first");
    let history = History::in_order();
    let (all, corrections) = (history.requests.len(), history.corrections.len());
    history.feed(&mut store, all, 20);
    let expected = history.expected(all, 20);
    // A day that is not over stays.
    let [end, now] =
        [120, 119].map(|hours| record(0).started_at + SignedDuration::from_hours(hours));
    assert_eq!(store.remove_details(end, 7, now).unwrap(), 0);
    assert_eq!(remove_before(&mut store, 3), (40, 6));
    assert_eq!(bills(&mut store), expected);
    let from = store.details_from().unwrap().unwrap();
    assert_eq!(from.to_string(), "2026-11-03T00:00:00Z");
    assert_eq!(records(&mut store, &Filter::default(), None).len(), all - 40);
    let days = store.gone_days().unwrap();
    assert_eq!(days.iter().map(|day| day.requests).collect::<Vec<_>>(), [20, 20]);
    // What is gone is not added again, and the hours that are left of it stay.
    let again = store.catch_up(&mut [feed_as("other", &history.requests)]).unwrap();
    assert_eq!(again.records, 0);
    for first in [0, 50] {
        let rest = feed(&history.requests[first..]);
        store.rebuild(&mut [rest, changed(&history.corrections[..20])]).unwrap();
        assert_eq!(bills(&mut store), expected, "{first}");
    }
    // What corrects a request that is gone counts for its tenant.
    history.feed(&mut store, all, corrections);
    let expected = history.expected(all, corrections);
    assert_eq!(bills(&mut store).by_tenant(), expected.by_tenant());
    store.rebuild(&mut [feed(&history.requests), changed(&history.corrections)]).unwrap();
    assert_eq!(bills(&mut store).by_tenant(), expected.by_tenant());
}

#[test]
fn late_requests_of_a_day_without_details_count_once_in_a_database() {
    let is_late = |number: &u32| number % 9 == 4;
    let order: Vec<_> =
        (0..RIDES).filter(|it| !is_late(it)).chain((0..RIDES).filter(is_late)).collect();
    let history = History::of(&order);
    let (early, all) = ((0..RIDES).filter(|it| !is_late(it)).count(), history.requests.len());
    let database = Database::new();
    let mut store = database.store_of("first");
    history.feed(&mut store, early, 0);
    let (gone, _) = remove_before(&mut store, 2);
    assert_eq!(history.feed(&mut store, all, 0).records, (all - early) as u64);
    assert_eq!(bills(&mut store), history.expected(all, 0));
    for _ in 0..2 {
        store.rebuild(&mut [feed(&history.requests)]).unwrap();
        assert_eq!(bills(&mut store), history.expected(all, 0));
        let (late, _) = remove_before(&mut store, 2);
        assert!(gone + late <= 20, "{gone} {late}");
    }
    let dir = tempfile::tempdir().unwrap();
    let report = verified(&dir, &mut store);
    assert!(report.contains("2026-11-01 without records: 20 records are older"), "{report}");
    assert!(!report.contains("store's hour"), "{report}");
}

#[test]
fn the_longest_time_of_all_gateways_counts() {
    let database = Database::new();
    let mut stores = [database.store_of("a"), database.store_of("b")];
    assert_eq!(stores[0].keep_days(400).unwrap(), 400);
    assert_eq!(stores[1].keep_days(30).unwrap(), 400);
    assert_eq!(stores[0].keep_days(10).unwrap(), 30);
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(Store::open(dir.path()).unwrap().keep_days(10).unwrap(), 10);
}
