//! Tests of the counts of requests that have no record.

use std::borrow::Cow;

use jiff::{SignedDuration, Timestamp};
use taximeter_ledger::{RefusalCount, RefusalKind, Refusals, RequestId, TenantId};
use uuid::Uuid;

use super::*;

fn kind(tenant: Option<&str>, reason: &'static str, status: Option<u16>) -> RefusalKind {
    let tenant = tenant.map(|tenant| TenantId(tenant.into()));
    let reason = Cow::Borrowed(reason);
    RefusalKind { tenant, others: false, reason, status, admitted: false }
}

fn kinds() -> [RefusalKind; 4] {
    [
        kind(None, "missing_api_key", Some(401)),
        kind(Some("acme"), "rate_limited", Some(429)),
        RefusalKind { admitted: true, ..kind(Some("acme"), "429", None) },
        RefusalKind { others: true, ..kind(None, "rate_limited", Some(429)) },
    ]
}

/// What a gateway counted in a minute of November: each kind as often as said.
pub(super) fn refusals(id: u128, minute: i64, counts: [u64; 4]) -> Entry {
    let minute = record(0).started_at + SignedDuration::from_mins(minute);
    let counts = kinds().into_iter().zip(counts);
    Entry::Refusals(Box::new(Refusals {
        id: RequestId(Uuid::from_u128(id)),
        gateway: "pod-7f9c/0".to_owned(),
        at: minute,
        minute,
        counts: counts.map(|(kind, count)| RefusalCount { kind, count }).collect(),
    }))
}

/// The counts of each hour.
fn counts(store: &mut Store, tenant: Option<&str>) -> Vec<(Timestamp, RefusalKind, u64)> {
    let mut found = Vec::new();
    let hour = SignedDuration::from_hours(1);
    let visit = |at, RefusalCount { kind, count }| {
        found.push((at, kind, count));
        Ok::<_, StoreError>(())
    };
    store.refusals(november(), tenant, hour, visit).unwrap();
    found.sort();
    found
}

fn entries() -> Vec<FramedEntry> {
    let counted = [
        refusals(1, 0, [1, 2, 3, u64::from(u32::MAX) + 4]),
        refusals(2, 1, [10, 20, 30, 40]),
        refusals(3, 120, [5, 6, 7, 8]),
    ];
    let records = (0..3).map(|number| Entry::Post(Box::new(record(number))));
    segment(1, records.zip(counted).flat_map(|(record, counted)| [record, counted]))
}

#[test]
fn counts_are_summed_by_kind_and_part_of_the_period_and_read_twice_they_count_once() {
    let (_dir, mut store) = open();
    let entries = entries();
    catch_up(&mut store, &entries[..4]);
    catch_up(&mut store, &entries);
    let found = counts(&mut store, None);
    let of = |kind: &RefusalKind| {
        let of_kind = found.iter().filter(|(_, found, _)| found == kind);
        of_kind.map(|(_, _, count)| *count).collect::<Vec<_>>()
    };
    let expected = [[11, 5], [22, 6], [33, 7], [u64::from(u32::MAX) + 44, 8]];
    for (kind, expected) in kinds().iter().zip(expected) {
        assert_eq!(of(kind), expected, "{kind:?}");
    }
    let of_acme = counts(&mut store, Some("acme"));
    let is_acmes = |kind: &RefusalKind| kind.tenant.as_ref().is_some_and(|it| &*it.0 == "acme");
    assert!(of_acme.len() == 4 && of_acme.iter().all(|(_, kind, _)| is_acmes(kind)));

    // The same entries once more, as after a crash between store and cursor.
    store.rebuild(&mut [feed(&entries)]).unwrap();
    assert_eq!(counts(&mut store, None), found);
}

#[test]
fn counts_that_the_journal_no_longer_has_survive_a_rebuild() {
    let (_dir, mut store) = open();
    let entries = entries();
    catch_up(&mut store, &entries);
    let before = counts(&mut store, None);
    store.rebuild(&mut [feed(&entries[4..])]).unwrap();
    assert_eq!(counts(&mut store, None), before);
}

on_postgres! {
    counts_are_summed_by_kind_and_part_of_the_period_and_read_twice_they_count_once,
    counts_that_the_journal_no_longer_has_survive_a_rebuild,
}
