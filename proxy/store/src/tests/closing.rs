//! Tests of what a store says about whether a period is closed.

use jiff::{SignedDuration, Timestamp};
use taximeter_billing::{Closing, PeriodStatus, instant};
use taximeter_ledger::{Checkpoint, Settled};

use super::postgres::Database;
use super::*;

on_postgres! {
    a_store_knows_how_far_its_journal_is,
    what_a_journal_says_outlives_a_rebuild,
}

pub(super) fn at(text: &str) -> Timestamp {
    instant(text).unwrap()
}

pub(super) fn october() -> Period {
    Period::month("2026-10").unwrap()
}

/// The post of a request that was admitted then.
pub(super) fn post_at(number: u32, admitted: &str) -> Entry {
    let started_at = at(admitted);
    let ended_at = started_at + SignedDuration::from_secs(1);
    Entry::Post(Box::new(Record { started_at, ended_at, ..record(number) }))
}

/// What a gateway says at this time: what was admitted before `until` has ended.
pub(super) fn says(said: &str, until: &str) -> Entry {
    let settled = Settled { at: at(said), until: at(until), request_seconds_max: 7200 };
    let checkpoint = Checkpoint { at: at(said), settled: Some(settled), ..Checkpoint::default() };
    Entry::Checkpoint(Box::new(checkpoint))
}

fn words(store: &mut Store, now: &str) -> String {
    let status: PeriodStatus = store.status(october(), at(now)).unwrap();
    let words = status.words(&Zone::UTC);
    // The gateway has another name in each kind of store.
    words.split_once("which").map_or(words.clone(), |(_, rest)| format!("which{rest}"))
}

#[test]
fn a_store_knows_how_far_its_journal_is() {
    let (_dir, mut store) = open();
    assert_eq!(words(&mut store, "2026-11-01T01:00:00Z"), "final", "nobody feeds it");
    let mut entries = vec![post_at(1, "2026-10-31T23:00:00Z")];
    catch_up(&mut store, &segment(1, entries.clone()));
    assert_eq!(
        words(&mut store, "2026-11-01T01:00:00Z"),
        "which has written up to 2026-10-31 23:00"
    );

    entries.push(says("2026-11-01T01:30:00Z", "2026-10-31T23:59:00Z"));
    catch_up(&mut store, &segment(1, entries.clone()));
    let soon = "provisional: closes at 2026-11-01 02:00";
    assert_eq!(
        words(&mut store, "2026-11-01T01:59:00Z"),
        soon,
        "the longest request takes two hours"
    );
    let open = "which has requests open since 2026-10-31 23:59";
    assert_eq!(words(&mut store, "2026-11-01T02:00:00Z"), open);

    // A post and a checkpoint of a gateway that does not know its clock say nothing of what is open.
    entries.push(post_at(2, "2026-11-01T02:10:00Z"));
    let unsure = Checkpoint { at: at("2026-11-01T02:20:00Z"), ..Checkpoint::default() };
    entries.push(Entry::Checkpoint(Box::new(unsure)));
    catch_up(&mut store, &segment(1, entries.clone()));
    assert_eq!(words(&mut store, "2026-11-01T02:30:00Z"), open);

    entries.push(says("2026-11-01T03:00:00Z", "2026-11-01T02:59:00Z"));
    catch_up(&mut store, &segment(1, entries.clone()));
    assert_eq!(words(&mut store, "2026-11-01T03:00:00Z"), "final");
    let day = store.day_closing(jiff::civil::date(2026, 10, 31), at("2026-11-01T03:00:00Z"));
    assert_eq!(day.unwrap(), Some(Closing::Closed { silent: Vec::new() }));
    let day = store.day_closing(jiff::civil::date(2026, 11, 1), at("2026-11-01T03:00:00Z"));
    assert!(matches!(day.unwrap(), Some(Closing::Open { .. })));
}

#[test]
fn what_a_journal_says_outlives_a_rebuild() {
    let (_dir, mut store) = open();
    let entries =
        [says("2026-11-01T03:00:00Z", "2026-11-01T03:00:00Z"), post_at(1, "2026-11-01T03:01:00Z")];
    let entries = segment(1, entries);
    catch_up(&mut store, &entries);
    assert_eq!(words(&mut store, "2026-11-01T04:00:00Z"), "final");
    // The journal has lost the segment that said so.
    store.rebuild(&mut [feed(&entries[1..])]).unwrap();
    assert_eq!(words(&mut store, "2026-11-01T04:00:00Z"), "final");
}

#[test]
fn a_store_from_before_is_as_far_as_its_newest_request() {
    let (dir, mut store) = open();
    let entries =
        segment(1, [post_at(1, "2026-10-31T10:00:00Z"), post_at(2, "2026-10-30T10:00:00Z")]);
    catch_up(&mut store, &entries);
    connect(&dir).execute_batch("DELETE FROM reached").unwrap();
    let waits = "which has written up to 2026-10-31 10:00";
    let now = "2026-11-01T01:00:00Z";
    assert_eq!(words(&mut store, now), waits);
    let mut store = Store::open(dir.path()).unwrap();
    assert_eq!(words(&mut store, now), waits);
    assert!(words(&mut store, "2026-11-01T10:00:00Z").starts_with("final; not waited for: "));
}

#[test]
fn gateways_that_share_a_database_are_waited_for_and_a_silent_one_is_named() {
    let database = Database::new();
    let (mut store, mut other) =
        (database.store_of("pod-1 /data"), database.store_of("pod-2 /data"));
    let entries =
        [post_at(1, "2026-10-31T23:00:00Z"), says("2026-11-01T02:00:00Z", "2026-11-01T02:00:00Z")];
    catch_up(&mut store, &segment(1, entries));
    let down =
        [post_at(2, "2026-10-31T23:10:00Z"), says("2026-10-31T23:20:00Z", "2026-10-31T23:20:00Z")];
    catch_up(&mut other, &segment(1, down));
    let mut reader = database.store_of("");
    let mut said = |now: &str| reader.status(october(), at(now)).unwrap().words(&Zone::UTC);
    let waits = "provisional: waits for pod-2 /data, which has written up to 2026-10-31 23:20";
    assert_eq!(said("2026-11-01T02:00:00Z"), waits);
    let silent = "final; not waited for: pod-2 /data has been silent since 2026-10-31 23:20";
    // The clock of who asks alone makes nobody silent while another gateway writes.
    assert_eq!(said("2026-11-01T23:20:00Z"), waits);
    let entries = [says("2026-11-01T23:30:00Z", "2026-11-01T23:30:00Z")];
    catch_up(&mut store, &segment(10, entries));
    assert_eq!(said("2026-11-01T23:40:00Z"), silent);
    // A journal that has corrections alone is not waited for.
    let mut rerate = database.store_of("laptop /home");
    rerate
        .catch_up(&mut [feed_as(
            "corrections",
            &segment(1, [says("2026-10-01T00:00:00Z", "2026-10-01T00:00:00Z")]),
        )])
        .unwrap();
    assert_eq!(said("2026-11-01T23:40:00Z"), silent);
}
