//! Requests that leave the tables for files: what is asked, fed and rebuilt is as without files.

mod clocks;
mod crashes;
mod damage;
mod keys;
mod questions;
mod rebuilt;

use std::path::Path;

use jiff::Timestamp;
use taximeter_ledger::{RequestId, TenantId};
use uuid::Uuid;

use super::hours::{changed, correction, entries as correction_entries};
use super::*;

/// Seconds between two requests: a day has eight.
const STEP: i64 = 10_800;

/// Requests of several tenants and days. Some were admitted in one microsecond.
fn ride(number: u32) -> Record {
    let shift = i64::from(number / 2 * 2) * (STEP - 1);
    let moved = |at: Timestamp| at + jiff::SignedDuration::from_secs(shift);
    let plain = record(number / 2 * 2);
    let id = RequestId(Uuid::from_u128(plain.id.0.as_u128() + u128::from(number % 2)));
    Record {
        id,
        request_id: format!("client-{number}"),
        started_at: moved(plain.started_at),
        ended_at: moved(plain.ended_at),
        tenant: TenantId::new(["acme", "blue", "dock"][number as usize % 3]).unwrap(),
        ..plain
    }
}

fn sealer(dir: &Path) -> Sealer {
    Sealer::open(dir, "pod-7f9c/0").unwrap().unwrap()
}

/// Up to `days` of November are closed.
fn closed(days: i64) -> SealPolicy {
    let november = record(0).started_at;
    let closed_until = november + jiff::SignedDuration::from_hours(24 * days);
    SealPolicy { closed_until, ..SealPolicy::default() }
}

/// All is sealed that is there and due.
fn seal(sealer: &mut Sealer, policy: &SealPolicy) -> SealWork {
    let newest = sealer.newest().unwrap();
    sealer.work(policy, newest, &|| true).unwrap()
}

/// All is sealed of the first days of November.
pub(super) fn seal_through(dir: &Path, days: i64) {
    if days > 0 {
        seal(&mut sealer(dir).with_rows_max(50), &closed(days));
    }
}

/// The names of the files of days.
fn files(dir: &Path) -> Vec<String> {
    let names = fs::read_dir(dir.join("days")).unwrap();
    let mut names: Vec<_> =
        names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.retain(|name| name != "lock");
    names.sort();
    names
}

fn requests_in_tables(dir: &TempDir) -> i64 {
    let count = "SELECT count(*) FROM requests";
    connect(dir).query_row(count, (), |row| row.get(0)).unwrap()
}

#[test]
fn requests_of_closed_days_are_in_one_file_each_and_no_longer_in_the_tables() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = Store::open(dir.path()).unwrap();
    catch_up(&mut store, &journal((0..40).map(ride)));
    let before = records(&mut store, &Filter::default(), None);
    let mut sealer = sealer(dir.path()).with_rows_max(3);
    let work = seal(&mut sealer, &closed(2));
    assert_eq!((work.sealed, work.misfits), (16, 0));
    assert_eq!(files(dir.path()).iter().filter(|name| !name.contains("part")).count(), 2);
    assert_eq!(requests_in_tables(&dir), 24);
    assert_eq!(records(&mut store, &Filter::default(), None), before);
    // What was replaced goes at the next sealing.
    assert_eq!(seal(&mut sealer, &closed(2)), SealWork::default());
    assert_eq!(files(dir.path()), ["2026-11-01.parquet", "2026-11-02.parquet"]);
    seal(&mut sealer, &closed(30));
    assert_eq!(requests_in_tables(&dir), 0);
    assert_eq!(records(&mut store, &Filter::default(), None), before);
}

#[test]
fn numbers_are_not_given_again_after_the_last_request_was_sealed() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = Store::open(dir.path()).unwrap();
    let entries = journal((0..20).map(ride));
    catch_up(&mut store, &entries[..10]);
    let mut sealer = sealer(dir.path());
    let mut newest = store.newest().unwrap();
    seal(&mut sealer, &closed(30));
    assert_eq!(store.newest().unwrap(), newest);
    assert!(!store.is_empty().unwrap());
    catch_up(&mut store, &entries);
    seal(&mut sealer, &closed(30));
    let mut seen = Vec::new();
    store
        .records_after(&Filter::default(), &mut newest, |record| {
            seen.push(record.id);
            Ok::<_, StoreError>(())
        })
        .unwrap();
    assert_eq!((seen.len(), newest), (0, 20), "they have left already");
    catch_up(&mut store, &journal((0..21).map(ride)));
    assert_eq!(store.newest().unwrap(), 21);
}

#[test]
fn what_is_sealed_is_not_added_again_and_finds_its_corrections() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = Store::open(dir.path()).unwrap();
    let entries = journal((0..40).map(ride));
    catch_up(&mut store, &entries);
    seal(&mut sealer(dir.path()), &closed(3));
    let before = bill(&mut store, "tenant,model,hour");
    // Another journal of the same requests, and the same one again.
    let again = store.catch_up(&mut [feed_as("other", &entries)]).unwrap();
    assert_eq!((again.records, requests_in_tables(&dir)), (0, 16));
    assert_eq!(bill(&mut store, "tenant,model,hour"), before);
    let ride = Record { seq: 6, ..ride(5) };
    let changes = correction_entries(&[correction(1, &ride, ride.cost.as_ref(), 3)]);
    let fed = store.catch_up(&mut [feed(&entries), changed(&changes)]).unwrap();
    assert_eq!(fed.corrections, 1);
    let (_other, mut twin) = open();
    twin.catch_up(&mut [feed(&entries), changed(&changes)]).unwrap();
    assert_ne!(before, bill(&mut twin, "tenant,model,hour"));
    assert_eq!(bill(&mut store, "tenant,model,hour"), bill(&mut twin, "tenant,model,hour"));
}

#[test]
fn late_requests_of_a_closed_day_are_in_files_beside_it() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = Store::open(dir.path()).unwrap();
    let (early, late) = ((0..40).filter(|it| it % 5 > 0), (0..40).filter(|it| it % 5 == 0));
    catch_up(&mut store, &journal(early.map(ride)));
    let mut sealer = sealer(dir.path());
    seal(&mut sealer, &closed(1));
    let whole = fs::read(dir.path().join("days/2026-11-01.parquet")).unwrap();
    store.catch_up(&mut [feed_as("late", &journal(late.map(ride)))]).unwrap();
    assert_eq!(seal(&mut sealer, &closed(1)).sealed, 0, "they wait for others");
    assert_eq!(seal(&mut sealer, &closed(2)).sealed, 8 + 2, "those of both days");
    assert_eq!(fs::read(dir.path().join("days/2026-11-01.parquet")).unwrap(), whole);
    assert!(files(dir.path()).iter().any(|name| name.starts_with("2026-11-01.late-")));
    let (_other, mut twin) = open();
    catch_up(&mut twin, &journal((0..40).map(ride)));
    let ids = |store: &mut Store| request_ids(store, &Filter::default(), None);
    assert_eq!(ids(&mut store), ids(&mut twin));
}

#[test]
fn a_request_that_cannot_be_read_stays_and_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = Store::open(dir.path()).unwrap();
    catch_up(&mut store, &journal((0..20).map(ride)));
    connect(&dir)
        .execute("UPDATE requests SET members = x'00' WHERE number IN (3, 20)", ())
        .unwrap();
    let mut sealer = sealer(dir.path());
    let work = seal(&mut sealer, &closed(9));
    assert_eq!((work.sealed, work.misfits, requests_in_tables(&dir)), (18, 2, 2));
    assert!(work.fault().unwrap().starts_with("2 requests cannot be read"), "{work:?}");
    assert_eq!(seal(&mut sealer, &closed(9)).misfits, 2, "they are told as long as they are there");
}

#[test]
fn two_processes_do_not_seal_one_directory() {
    let dir = tempfile::tempdir().unwrap();
    let first = sealer(dir.path());
    assert!(Sealer::open(dir.path(), "pod-7f9c/0").unwrap().is_none());
    drop(first);
    sealer(dir.path());
}

#[test]
fn forms_that_no_request_has_any_more_are_forgotten() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = Store::open(dir.path()).unwrap();
    let entries = journal((0..40).map(|number| Record {
        labels: [("job".to_owned(), format!("job-{number}"))].into(),
        ..ride(number)
    }));
    catch_up(&mut store, &entries[..30]);
    let forms = || {
        let count = "SELECT count(*) FROM forms";
        connect(&dir).query_row(count, (), |row| row.get::<_, i64>(0)).unwrap()
    };
    assert_eq!(forms(), 30);
    seal(&mut sealer(dir.path()), &closed(2));
    assert_eq!(forms(), 14);
    catch_up(&mut store, &entries);
    assert_eq!(forms(), 24);
    assert_eq!(records(&mut store, &Filter::default(), None).len(), 40);
}
