//! Hours that leave the tables for files, and days whose details go: bills are as before.

mod crashes;
mod damage;
mod details;
mod lost;
mod periods;
mod questions;
mod shared;
mod twins;
mod verified;

use std::collections::BTreeMap;
use std::path::Path;

use jiff::{SignedDuration, Timestamp};
use taximeter_billing::Sums;
use taximeter_ledger::Correction;

use super::hours::{changed, corrections, entries as correction_entries, ride as any_ride};
use super::*;

/// Rides of a history: five days.
const RIDES: u32 = 98;

/// The `number`th request of one in every 73 minutes.
fn ride(number: u32) -> Record {
    let plain = any_ride(number);
    let shift = SignedDuration::from_mins(63 * i64::from(number));
    Record { started_at: plain.started_at + shift, ended_at: plain.ended_at + shift, ..plain }
}

/// The journals of a store.
struct History {
    requests: Vec<FramedEntry>,
    corrections: Vec<FramedEntry>,
    /// How many requests are written before that of each correction.
    written: Vec<usize>,
}

impl History {
    /// Requests that were written in the order of `numbers`, and corrections of them in the same order.
    fn of(numbers: &[u32]) -> Self {
        let rides: Vec<_> = (0..RIDES).map(ride).collect();
        let mut changes: Vec<Correction> = corrections(&rides);
        let written = |change: &Correction| {
            numbers.iter().position(|number| rides[*number as usize].id == change.corrects).unwrap()
        };
        changes.sort_by_key(written);
        Self {
            written: changes.iter().map(written).collect(),
            requests: journal(numbers.iter().map(|number| ride(*number))),
            corrections: correction_entries(&changes),
        }
    }

    /// In order of admission.
    fn in_order() -> Self {
        Self::of(&(0..RIDES).collect::<Vec<_>>())
    }

    /// Feeds so many of both.
    fn feed(&self, store: &mut Store, requests: usize, corrections: usize) -> Fed {
        let (requests, corrections) =
            (&self.requests[..requests], &self.corrections[..corrections]);
        store.catch_up(&mut [feed(requests), changed(corrections)]).unwrap()
    }

    /// How many corrections are of the first `requests`.
    fn corrections_of(&self, requests: usize) -> usize {
        self.written.partition_point(|written| *written < requests)
    }

    fn feed_all(&self, store: &mut Store) -> Fed {
        self.feed(store, self.requests.len(), self.corrections.len())
    }

    /// What a store says that has so many of both, and no files.
    fn expected(&self, requests: usize, corrections: usize) -> Bills {
        let (_dir, mut twin) = open();
        self.feed(&mut twin, requests, corrections);
        bills(&mut twin)
    }
}

/// What people owe: bills from hours and from coarser sums, and the hours themselves.
#[derive(Debug, PartialEq)]
struct Bills {
    by_hour: Bill,
    coarse: Bill,
    hours: BTreeMap<HourKey, Hour>,
}

impl Bills {
    /// What each tenant owes by the hour. Nobody knows more of a request whose details are gone than its
    /// tenant.
    fn by_tenant(&self) -> BTreeMap<(String, Timestamp), Sums> {
        let mut tenants = BTreeMap::<_, Sums>::new();
        for (key, hour) in &self.hours {
            let sums = tenants.entry((key.tenant.clone(), key.hour)).or_default();
            sums.add(&hour.sums).unwrap();
        }
        tenants
    }

    /// Whether there is a correction of a request whose details are gone.
    fn has_unknown(&self) -> bool {
        self.hours.keys().any(|key| key.provider.is_empty())
    }
}

fn bills(store: &mut Store) -> Bills {
    let mut hours = BTreeMap::<HourKey, Hour>::new();
    let add = |key: &HourKey, hour: &Hour| {
        hours.entry(key.clone()).or_default().add(hour).unwrap();
        Ok::<_, StoreError>(())
    };
    store.hours(november(), None, add).unwrap();
    let mut biller = Biller::new(november(), Zone::UTC, "tenant,upstream".parse().unwrap());
    let cuts = [record(0).started_at + SignedDuration::from_hours(49)];
    let granularity = Granularity { cuts: &cuts, is_hourly: &|key| key.model.is_none() };
    let add = |key: &HourKey, hour: &Hour| {
        biller.add_hour(key, hour).unwrap();
        Ok::<_, StoreError>(())
    };
    store.sums(november(), None, granularity, add).unwrap();
    Bills { by_hour: bill(store, "tenant,model,hour"), coarse: biller.finish(), hours }
}

fn sealer(dir: &Path) -> Sealer {
    Sealer::open(dir, "pod-7f9c/0").unwrap().unwrap()
}

/// So many days since the begin of November are closed. Its hours are old after 91.
fn closed(days: i64) -> SealPolicy {
    let closed_until = record(0).started_at + SignedDuration::from_hours(24 * days);
    SealPolicy { closed_until, ..SealPolicy::default() }
}

fn seal(sealer: &mut Sealer, days: i64) -> SealWork {
    let newest = sealer.newest().unwrap();
    sealer.work(&closed(days), newest, &|| true).unwrap()
}

/// When details go.
fn later() -> Timestamp {
    record(0).started_at + SignedDuration::from_hours(24 * 500)
}

fn remove(sealer: &mut Sealer) -> Option<GoneDay> {
    sealer.remove_oldest_day(later(), GoneCause::Age).unwrap()
}

/// The names of the files of a folder.
fn files(dir: &Path, folder: &str) -> Vec<String> {
    let Ok(names) = fs::read_dir(dir.join(folder)) else { return Vec::new() };
    let mut names: Vec<_> =
        names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.retain(|name| name != "lock");
    names.sort();
    names
}

fn hours_in_table(dir: &TempDir) -> i64 {
    connect(dir).query_row("SELECT count(*) FROM hours", (), |row| row.get(0)).unwrap()
}

fn lose_database(dir: &Path) {
    for name in ["store.sqlite", "store.sqlite-wal", "store.sqlite-shm"] {
        let _ = fs::remove_file(dir.join(name));
    }
}

fn verified(dir: &TempDir, store: &mut Store) -> String {
    let mut findings = crate::verify::Findings::default();
    crate::verify::verify(dir.path(), store, &mut |_| {}, &mut findings).unwrap();
    let mut report = Vec::new();
    findings.write(&mut report).unwrap();
    String::from_utf8(report).unwrap()
}

#[test]
fn hours_of_an_old_month_are_in_one_file_and_no_longer_in_the_table() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = Store::open(dir.path()).unwrap();
    let history = History::in_order();
    history.feed_all(&mut store);
    let before = bills(&mut store);
    let rows = hours_in_table(&dir);
    let mut sealer = sealer(dir.path());
    assert_eq!(seal(&mut sealer, 89).hours, 0, "not all of the month is old enough");
    let work = seal(&mut sealer, 90);
    assert_eq!((work.hours, work.merged_hours), (rows.cast_unsigned(), 5), "{work:?}");
    assert_eq!(hours_in_table(&dir), 0);
    assert_eq!(bills(&mut store), before);
    // What was replaced goes at the next sealing.
    assert_eq!(seal(&mut sealer, 90), SealWork::default());
    assert_eq!(files(dir.path(), "hours"), ["2026-11.parquet"]);
    assert_eq!(bills(&mut store), before);
    assert!(verified(&dir, &mut store).contains("hours: 1 files of "));
}

#[test]
fn what_comes_later_for_sealed_hours_is_added_to_them() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = Store::open(dir.path()).unwrap();
    let late_first: Vec<_> =
        (0..RIDES).filter(|it| it % 7 != 3).chain((0..RIDES).filter(|it| it % 7 == 3)).collect();
    let history = History::of(&late_first);
    let (early, all) = (80, history.requests.len());
    history.feed(&mut store, early, 10);
    let mut sealer = sealer(dir.path());
    seal(&mut sealer, 90);
    assert_eq!(hours_in_table(&dir), 0);
    assert_eq!(bills(&mut store), history.expected(early, 10));
    for (requests, corrections) in [(90, 10), (90, 30), (all, history.corrections.len())] {
        history.feed(&mut store, requests, corrections);
        assert!(hours_in_table(&dir) > 0);
        assert_eq!(bills(&mut store), history.expected(requests, corrections));
        assert!(verified(&dir, &mut store).contains("hours: 1 files of "));
    }
    // They stay where they are, and are built anew as they are.
    assert_eq!(seal(&mut sealer, 99).hours, 0);
    let rows = hours_in_table(&dir);
    connect(&dir).execute("UPDATE hours SET cost = '0', requests = 1", ()).unwrap();
    store.rebuild(&mut [feed(&history.requests[50..]), changed(&history.corrections)]).unwrap();
    assert_eq!(bills(&mut store), history.expected(all, history.corrections.len()));
    assert_eq!(hours_in_table(&dir), rows);
}
