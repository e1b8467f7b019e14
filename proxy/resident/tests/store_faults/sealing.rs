//! Requests that leave SQLite for files of their days, files that become one, sums by the hour, days
//! whose details go, and segments of the journal that nobody needs.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::sync::LazyLock;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use taximeter_billing::{Hour, HourKey, Period};
use taximeter_config::{Durability, OnDamage, OnUnavailable};
use taximeter_journal::disk_budget::DiskBudget;
use taximeter_journal::{InStore, Journal, Options, Retention};
use taximeter_ledger::{Charge, Entry, FramedEntry, Record, Reserve};
use taximeter_store::samples::{journal, record};
use taximeter_store::verify::{Findings, verify};
use taximeter_store::{Audited, Filter, GoneCause, SealPolicy, Sealer, Store, StoreError, feeds};
use taximeter_system::clock;

use super::calls;
use super::{OLD_LEDGER, copy, dimensions, each_call, fed, folder};

const GATEWAY: &str = "pod-7f9c/0";
/// Requests of a part.
const PART_ROWS: usize = 2;
/// So many calls of a run fail where not each one does: files are written and read again after each.
const SOME: usize = 4;
/// Days that are over.
const CLOSED: i64 = 5;
/// Days that are over when hours are old.
const OLD: i64 = 90;

/// Comes before a test takes a lock.
fn prepare() {
    calls::take_over();
    LazyLock::force(&OLD_LEDGER);
}

/// What a store says: nothing of it changes by sealing.
#[derive(Debug, PartialEq, Eq)]
struct Books {
    /// Requests with details, and those of days without.
    requests: u64,
    /// What is owed: the sums of each hour.
    hours: BTreeMap<HourKey, Hour>,
}

/// What sessions add up to, by tenant, name and day, of days that have details.
type Sessions = BTreeMap<(String, String, String), String>;

fn sessions(dir: &Path) -> Sessions {
    let mut store = Store::open(dir).expect("a store");
    let mut sessions = Sessions::new();
    let visit = |audited: Audited<'_, ()>| {
        if let Audited::Session(sum) = audited {
            let of = (sum.tenant.to_owned(), sum.session.to_owned(), sum.day.to_string());
            assert_eq!(sessions.insert(of, format!("{:?}", sum.kept)), None, "it is there twice");
        }
    };
    store.audit(|(), _| {}, visit).expect("a store that can be read");
    sessions
}

/// Reads a store. Each request is there once, and nothing is wrong: the sums by the hour and by session are
/// those of the requests.
fn books(dir: &Path) -> Books {
    let mut store = Store::open(dir).expect("a store");
    let mut ids = BTreeSet::new();
    let list = |record: &Record| {
        assert!(ids.insert(record.id), "{} is there twice", record.id);
        Ok::<_, StoreError>(())
    };
    store.records(&Filter::default(), i64::MAX, None, list).expect("records");
    let gone = store.gone_days().expect("days").iter().map(|day| day.requests).sum::<u64>();
    let mut hours = BTreeMap::new();
    let month = Period::month("2026-11").expect("a month");
    let add = |key: &HourKey, hour: &Hour| {
        assert_eq!(hours.insert(key.clone(), hour.clone()), None, "an hour is there twice");
        Ok::<_, StoreError>(())
    };
    store.hours(month, None, add).expect("hours");
    let mut findings = Findings::default();
    verify(dir, &mut store, &mut |_| {}, &mut findings).expect("a store that can be verified");
    let mut report = Vec::new();
    findings.write(&mut report).expect("in memory");
    assert_eq!(findings.wrong(), 0, "{}", String::from_utf8_lossy(&report));
    Books { requests: ids.len() as u64 + gone, hours }
}

/// The files of days, of hours and of the journal. No name is given twice, so that one that was begun
/// again has another number: that is left out.
fn files(dir: &Path) -> Vec<String> {
    let (mut names, mut segments) = (Vec::new(), BTreeSet::new());
    for folder in ["", "days", "hours"] {
        let Ok(entries) = fs::read_dir(dir.join(folder)) else { continue };
        for entry in entries {
            let entry = entry.expect("an entry");
            let name = entry.file_name().into_string().expect("UTF-8");
            let begin = name.split('.').next().unwrap_or_default();
            if [".parquet", ".sessions", ".tmp"].iter().any(|end| name.ends_with(end)) {
                let end = name.rsplit('.').next().unwrap_or_default();
                names.push(format!("{folder}/{begin}.{end}"));
            } else if name.contains(".tlj") {
                // Segments are compressed when there is time for it: for a moment both are there.
                segments.insert(begin.to_owned());
            }
        }
    }
    names.sort();
    names.extend(segments);
    names
}

/// Requests of three days: one in an hour. The first day has more parts than are merged at once.
fn rides() -> Vec<Record> {
    let ride = |hour: u32| {
        let plain = record(hour);
        let later = SignedDuration::from_secs(i64::from(hour) * 3_599);
        let (started_at, ended_at) = (plain.started_at + later, plain.ended_at + later);
        let request_model = Some(format!("m-{}", hour % 7));
        let dimensions = dimensions(hour);
        let response_model = None;
        Record { started_at, ended_at, request_model, response_model, dimensions, ..plain }
    };
    [3..21, 24..28, 48..51].into_iter().flatten().map(ride).collect()
}

fn entries() -> Vec<FramedEntry> {
    journal(rides())
}

fn closed(days: i64) -> SealPolicy {
    let closed_until = record(0).started_at + SignedDuration::from_hours(24 * days);
    SealPolicy { closed_until, ..SealPolicy::default() }
}

fn sealer(dir: &Path) -> Result<Sealer, StoreError> {
    let sealer = Sealer::open(dir, GATEWAY)?.expect("nobody else seals");
    Ok(sealer.with_rows_max(PART_ROWS))
}

/// Seals all that is due, and removes what was replaced.
fn seal(dir: &Path, days: i64) -> Result<(), StoreError> {
    let mut sealer = sealer(dir)?;
    for _ in 0..2 {
        let newest = sealer.newest()?;
        let work = sealer.work(&closed(days), newest, &|| true)?;
        assert_eq!(work.fault(), None);
    }
    Ok(())
}

fn later() -> Timestamp {
    closed(500).closed_until
}

/// Lets each call fail of `work`. The books are as before then, and all is done when `work` has been
/// done again. Sessions are as before too, unless their days go.
fn each_call_of(what: &str, before: &Path, work: impl Fn(&Path) -> Result<(), StoreError>) {
    let all = sessions(before);
    assert!(all.len() > 5);
    let end = |dir: &Path| {
        let after_the_fault = books(dir);
        let is_there = sessions(dir) == all;
        work(dir).expect("no fault");
        assert_eq!(books(dir), after_the_fault, "{what}");
        let left = sessions(dir);
        assert!(is_there || left != all, "{what}");
        (after_the_fault, left, files(dir))
    };
    let sound = copy(before);
    let expected = end(sound.path());
    assert!(expected.2.iter().all(|name| !name.ends_with(".tmp")), "{expected:?}");
    each_call((what, SOME), before, &work, end, &expected);
}

/// The files of these days of November when all of them are sealed.
fn files_of(days: [u32; 3]) -> Vec<String> {
    let of = |day| ["parquet", "sessions"].map(|end| format!("days/2026-11-{day:02}.{end}"));
    days.into_iter().flat_map(of).collect()
}

#[test]
fn whichever_call_fails_requests_are_sealed_later_and_each_is_there_once() {
    prepare();
    let before = folder();
    fed(before.path(), &entries()).expect("no fault");
    each_call_of("sealing and merging", before.path(), |dir| seal(dir, CLOSED));
    seal(before.path(), CLOSED).expect("no fault");
    assert_eq!(files(before.path()), files_of([1, 2, 3]));
}

#[test]
fn whichever_call_fails_hours_go_to_files_later_and_bills_are_as_before() {
    prepare();
    let before = folder();
    fed(before.path(), &entries()).expect("no fault");
    seal(before.path(), CLOSED).expect("no fault");
    each_call_of("hours to files", before.path(), |dir| seal(dir, OLD));
    seal(before.path(), OLD).expect("no fault");
    assert_eq!(files(before.path()).last().map(String::as_str), Some("hours/2026-11.parquet"));
}

#[test]
fn whichever_call_fails_old_days_go_later_and_bills_are_as_before() {
    prepare();
    let before = folder();
    fed(before.path(), &entries()).expect("no fault");
    seal(before.path(), CLOSED).expect("no fault");
    let work = |dir: &Path| {
        let mut sealer = sealer(dir)?;
        sealer.remove_old_days(closed(2).closed_until, later(), &|| true)?;
        seal_with(&mut sealer)
    };
    each_call_of("removal of old days", before.path(), work);
    // One by one, as where there is no room.
    let work = |dir: &Path| {
        let mut sealer = sealer(dir)?;
        while sealer.oldest_day()?.is_some() {
            sealer.remove_oldest_day(later(), GoneCause::Room)?;
        }
        seal_with(&mut sealer)
    };
    each_call_of("removal of all days", before.path(), work);
}

/// The look after a removal.
fn seal_with(sealer: &mut Sealer) -> Result<(), StoreError> {
    let newest = sealer.newest()?;
    sealer.work(&closed(CLOSED), newest, &|| true).map(|work| assert_eq!(work.fault(), None))
}

/// A journal of many segments: each of them is full when the journal is opened again. Its last entry.
fn write_journal(dir: &Path) -> u64 {
    let mut last = 0;
    for rides in rides().chunks(4) {
        let options = Options {
            gateway: GATEWAY.to_owned(),
            durability: Durability::Os,
            recovery: OnDamage::Strict,
            unavailable: OnUnavailable::Refuse,
            queue_bytes_max: 1 << 20,
            segment_bytes: 2_000,
            now: clock::wall,
            tell: Box::new(|event| panic!("{event:?}")),
        };
        let (journal, _) = Journal::open(dir, options, &|_| Charge::default()).expect("a journal");
        for ride in rides {
            let reserve = serde_json::json!({
                "id": ride.id, "request_id": ride.request_id, "started_at": ride.started_at,
                "tenant": ride.tenant, "key_id": null, "identity": "api_key", "operation": "chat",
                "route": ride.route, "stream": true, "upstream": "local", "provider": "vllm",
                "request_model": null, "amount": null,
            });
            let reserve: Reserve = serde_json::from_value(reserve).expect("a reservation");
            assert!(journal.append(&Entry::Reserve(Box::new(reserve))).is_ok());
            journal.append_detached(&Entry::Post(Box::new(ride.clone())));
        }
        last = journal.sequence();
        journal.close().expect("all of it on the volume");
    }
    last
}

/// What a gateway does without requests: each of its threads goes on whatever became of the others.
fn keep_books(dir: &Path, last: u64) -> Result<(), StoreError> {
    let newest = Some(later());
    let at = |minutes: u64| (clock::now() + Duration::from_secs(60 * minutes), later());
    let mut retention = Retention::new(dir, 400, last, newest, at(0), Default::default());
    let budget = DiskBudget::default();
    let mut feed = |minutes: u64| {
        let fed = Store::open(dir)?.catch_up(&mut feeds(dir))?;
        let in_store = InStore { sealed: fed.sealed, corrections: fed.stored_corrections };
        retention.look(at(minutes));
        let removed = retention.fed(last, in_store, &budget, at(minutes));
        removed.map(drop).map_err(|error| StoreError::Unavailable {
            store: dir.display().to_string(),
            source: error.into(),
        })
    };
    let done = [feed(1), seal(dir, CLOSED), feed(2), feed(3)];
    done.into_iter().collect()
}

#[test]
fn whichever_call_fails_segments_go_later_and_nothing_is_lost() {
    prepare();
    let before = folder();
    let last = write_journal(before.path());
    let segments = |dir: &Path| files(dir).iter().filter(|it| it.starts_with("journal-")).count();
    assert!(segments(before.path()) > 5);
    let mut store = Store::open(before.path()).expect("a store");
    store.catch_up(&mut feeds(before.path())).expect("no fault");
    drop(store);
    each_call_of("removal of segments", before.path(), |dir| keep_books(dir, last));
    keep_books(before.path(), last).expect("no fault");
    assert_eq!(segments(before.path()), 1);
}
