//! What sessions add up to in a store: always what their requests and corrections say.
#![cfg(test)]

mod audited;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;
use rust_decimal::Decimal;
use taximeter_billing::{ClientDimension, Hour, HourKey, Period};
use taximeter_dimensions::{self as dimensions, Asked};
use taximeter_ledger::{
    Completion, Correction, Dimensions, End, Entry, FramedEntry, Record, RecordUsage, RequestId,
    TenantId,
};
use taximeter_sessions::{Listing, Request, Session, SessionBuilder, Sums, TopBy};
use taximeter_store::samples::{feed, journal, record, segment};
use taximeter_store::{Feed, Filter, GoneCause, SealPolicy, SealWork, Sealer, Store, StoreError};
use taximeter_tests::postgres::shared;
use uuid::Uuid;

const GATEWAY: &str = "pod-7f9c/0";

/// Calls `test` with a new store in SQLite.
fn in_sqlite(test: impl FnOnce(&mut Store)) {
    let dir = tempfile::tempdir().unwrap();
    test(&mut Store::open(dir.path()).unwrap());
}

/// Calls `test` with a new store in PostgreSQL.
fn in_postgresql(test: impl FnOnce(&mut Store)) {
    let server = shared().unwrap();
    let name = server.database().unwrap();
    let url = server.url(&name).parse().unwrap();
    test(&mut Store::connect(&url, "first").unwrap());
}

fn corrections(entries: &[FramedEntry]) -> Feed<'_> {
    Feed::new("corrections", |from| {
        let entries: Vec<_> = entries.iter().filter(|entry| entry.seq >= from).cloned().collect();
        Ok(Box::new(entries.into_iter().map(Ok)))
    })
}

/// The `number`th request, every four hours: of a session, or of none.
fn ride_of(number: u32, session: Option<u8>, tenant: u8, agent: Option<u8>) -> Record {
    let mut ride = record(number);
    let shift = SignedDuration::from_hours(4 * i64::from(number));
    (ride.started_at, ride.ended_at) = (ride.started_at + shift, ride.ended_at + shift);
    ride.tenant = TenantId(["acme", "blue"][usize::from(tenant) % 2].into());
    let name = |name: u8| name.to_string();
    ride.dimensions = Dimensions {
        session: session.map(name),
        agent: agent.map(name),
        client: agent.map(|agent| format!("codex/0.{agent}")),
        ..Dimensions::default()
    }
    .if_any();
    match number % 5 {
        1 => ride.cost = None,
        2 => (ride.end, ride.status) = (End::ClientLeft, None),
        3 => {
            (ride.cost, ride.usage) = (None, RecordUsage::counted(Some(9), None, &[]));
            ride.usage.go_on();
        }
        _ => {}
    }
    ride
}

/// What changes a request: its cost, or all of it if it was not known when it ended.
fn correction(of: &Record, cents: i64) -> Correction {
    let mut after = record(0).cost.unwrap();
    after.amount = Decimal::new(cents, 2);
    let completion = of.is_pending().then(|| Completion {
        response_id: of.response_id.clone().unwrap(),
        response_model: None,
        service_tier: None,
        finish_reasons: Vec::new(),
        error: None,
        requests: None,
        models: Vec::new(),
        usage: record(0).usage,
        reported_cost: None,
    });
    Correction {
        id: RequestId(Uuid::from_u128(of.id.0.as_u128() ^ 1 << 100)),
        corrects: of.id,
        started_at: of.started_at,
        tenant: of.tenant.clone(),
        made_at: of.ended_at,
        reason: "a price was wrong".to_owned(),
        before: of.owed().cloned(),
        after: Some(after),
        completion: completion.map(Box::new),
        completed: None,
    }
}

/// Each session as its requests make it, by tenant and name.
fn made(records: &[Record], changes: &[Correction]) -> BTreeMap<(String, String), Session> {
    let mut sessions: BTreeMap<_, SessionBuilder> = BTreeMap::new();
    for record in records {
        let dimensions = record.dimensions.as_deref();
        let Some(session) = dimensions.and_then(|it| it.session.clone()) else { continue };
        let change = changes.iter().find(|change| change.corrects == record.id);
        let record = change.map_or(record.clone(), |change| change.apply_to(record.clone()));
        let key = (record.tenant.to_string(), session);
        sessions.entry(key).or_default().add(Request::from(&record));
    }
    let finished = sessions.into_iter().map(|((tenant, name), session)| {
        let session = session.finish(&tenant, &name).unwrap();
        ((tenant, name), session)
    });
    finished.collect()
}

fn always() -> Period {
    let at = |text: &str| text.parse::<Timestamp>().unwrap();
    Period::new(at("2026-01-01T00:00:00Z"), at("2028-01-01T00:00:00Z")).unwrap()
}

fn list(store: &mut Store, period: Period, tenant: Option<&str>) -> Listing {
    store.sessions(period, tenant, (TopBy::Cost, 1000), || false).unwrap().unwrap()
}

/// What the list says of each session, by tenant and name.
fn listed(store: &mut Store) -> BTreeMap<(String, String), Sums> {
    let sessions = list(store, always(), None).sessions.into_iter();
    sessions.map(|listed| ((listed.tenant, listed.session), listed.sums)).collect()
}

fn check(store: &mut Store, expected: &BTreeMap<(String, String), Session>) {
    let sums = expected.iter().map(|(key, session)| (key.clone(), session.sums.clone()));
    assert_eq!(listed(store), sums.collect());
    for tenant in ["acme", "blue"] {
        let found = list(store, always(), Some(tenant)).sessions;
        assert!(found.iter().all(|listed| listed.tenant == tenant));
        assert_eq!(found.len(), expected.keys().filter(|(of, _)| of == tenant).count());
    }
    for ((tenant, name), session) in expected {
        let found = store.session(name, Some(tenant)).unwrap();
        assert_eq!(found, std::slice::from_ref(session));
        let all: Vec<_> = expected.iter().filter(|((_, of), _)| of == name).collect();
        let all: Vec<_> = all.into_iter().map(|(_, session)| session.clone()).collect();
        assert_eq!(store.session(name, None).unwrap(), all);
    }
    assert_eq!(store.session("nobody", None).unwrap(), []);
    let (_, wrong) = audited::audit(store);
    assert_eq!(wrong, BTreeMap::new());
}

/// Records are found by what their clients say, and sums that are split by it are those of the hours.
fn check_dimensions(store: &mut Store, records: &[Record]) {
    let newest = store.newest().unwrap();
    let mut some = |session: Option<&str>, agent: Option<&str>, tenant: Option<&str>, limit| {
        let [of, by] = [session, agent].map(|name| name.map(str::to_owned));
        let asked = Asked { session: of, agent: by, ..Asked::default() };
        let wanted = dimensions::Filter::new(asked, None);
        let filter = Filter { tenant: tenant.map(str::to_owned), ..Filter::default() };
        let mut found = Vec::new();
        store
            .records_of(&filter, &wanted, newest, limit, |record| {
                found.push(record.id);
                Ok::<_, StoreError>(())
            })
            .unwrap();
        let is = |name: Option<&str>, value: Option<&String>| {
            name.is_none() || name == value.map(String::as_str)
        };
        let expected = records.iter().filter(|record| {
            let dimensions = record.dimensions.as_deref();
            tenant.is_none_or(|tenant| tenant == &*record.tenant.0)
                && is(session, dimensions.and_then(|dimensions| dimensions.session.as_ref()))
                && is(agent, dimensions.and_then(|dimensions| dimensions.agent.as_ref()))
        });
        let expected: Vec<_> = expected.map(|record| record.id).collect();
        let last = limit.map_or(expected.len(), |limit| expected.len().min(limit as usize));
        assert_eq!(found, expected[expected.len() - last..], "{session:?} {agent:?} {tenant:?}");
    };
    for session in [None, Some("0"), Some("nobody")] {
        for agent in [None, Some("1")] {
            for (tenant, limit) in
                [(None, None), (Some("acme"), None), (Some("blue"), Some(1)), (None, Some(3))]
            {
                some(session, agent, tenant, limit);
            }
        }
    }
    let mut sums = [BTreeMap::new(), BTreeMap::new()];
    let mut split = BTreeSet::new();
    let by = ["session", "client"].map(|name| name.parse().unwrap()).into_iter().collect();
    let add = |sums: &mut BTreeMap<HourKey, Hour>, key: &HourKey, hour: &Hour| {
        let key = HourKey { dimensions: BTreeMap::new(), ..key.clone() };
        sums.entry(key).or_default().add(hour).unwrap();
        Ok::<_, StoreError>(())
    };
    store.hours(always(), None, |key, hour| add(&mut sums[0], key, hour)).unwrap();
    store
        .split_hours(always(), None, &by, |key, hour| {
            split.extend(key.dimensions.get(&ClientDimension::Session).cloned());
            add(&mut sums[1], key, hour)
        })
        .unwrap();
    assert_eq!(sums[0], sums[1]);
    let used = records.iter().filter(|record| !record.used_nothing());
    let sessions = used.filter_map(|record| record.dimensions.as_ref()?.session.clone());
    assert_eq!(split, sessions.collect());
}

/// What happens in a store: requests, those of them that are changed, and how many come first.
type Story = (Vec<Record>, Vec<Correction>, usize);

fn stories() -> impl Strategy<Value = Story> {
    let ride = (prop::option::of(0..3_u8), 0..2_u8, prop::option::of(0..3_u8));
    let rides = prop::collection::vec(ride, 1..40);
    let changed = prop::collection::btree_set(0..40_usize, 0..10);
    (rides, changed, 0..40_usize).prop_map(|(rides, changed, cut)| {
        let records: Vec<_> = (0..)
            .zip(rides)
            .map(|(number, (session, tenant, agent))| ride_of(number, session, tenant, agent))
            .collect();
        let changed = changed.into_iter().filter_map(|at| records.get(at));
        let changes = changed.map(|record| correction(record, 77)).collect();
        let cut = cut.min(records.len());
        (records, changes, cut)
    })
}

fn tell(store: &mut Store, (records, changes, cut): &Story) {
    let posts = journal(records.clone());
    let (first, last) = posts.split_at(*cut);
    let entry = |change: &Correction| Entry::Correction(Box::new(change.clone()));
    let amendments = segment(1, changes.iter().map(entry));
    store.catch_up(&mut [feed(first)]).unwrap();
    check(store, &made(&records[..*cut], &[]));
    // Some corrections come before their requests.
    store.catch_up(&mut [corrections(&amendments)]).unwrap();
    store.catch_up(&mut [feed(&posts)]).unwrap();
    let expected = made(records, changes);
    check(store, &expected);
    check_dimensions(store, records);
    store.rebuild(&mut [feed(&posts), corrections(&amendments)]).unwrap();
    check(store, &expected);
    // What the journals no longer have is kept.
    store.rebuild(&mut [feed(last)]).unwrap();
    check(store, &expected);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]
    #[test]
    fn sessions_are_what_their_requests_and_corrections_say(story in stories()) {
        in_sqlite(|store| tell(store, &story));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3, ..ProptestConfig::default() })]
    #[test]
    fn in_postgresql_sessions_are_what_their_requests_and_corrections_say(story in stories()) {
        in_postgresql(|store| tell(store, &story));
    }
}

/// Seals the first days of November.
fn seal(dir: &Path, days: i64) -> SealWork {
    let november: Timestamp = "2026-11-01T00:00:00Z".parse().unwrap();
    let closed_until = november + SignedDuration::from_hours(24 * days);
    let policy = SealPolicy { closed_until, ..SealPolicy::default() };
    let mut sealer = sealer(dir).with_rows_max(5);
    let newest = sealer.newest().unwrap();
    sealer.work(&policy, newest, &|| true).unwrap()
}

/// The files of sessions.
fn session_files(dir: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(dir.join("days")) else { return Vec::new() };
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "sessions"));
    paths.sort();
    paths
}

/// How many sums of requests are in the table.
fn rows(dir: &Path) -> u32 {
    let store = rusqlite::Connection::open(dir.join("store.sqlite")).unwrap();
    store.query_row("SELECT count(*) FROM sessions", (), |row| row.get(0)).unwrap()
}

/// Removes the store and what belongs to it, but not its files of days.
fn lose_store(dir: &Path) {
    for name in ["store.sqlite", "store.sqlite-wal", "store.sqlite-shm"] {
        let _ = fs::remove_file(dir.join(name));
    }
}

/// The same story, with days that are sealed before all of their requests are there, and after.
fn tell_sealing((records, changes, cut): &Story, days: [i64; 2]) {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let posts = journal(records.clone());
    let (first, last) = posts.split_at(*cut);
    let entry = |change: &Correction| Entry::Correction(Box::new(change.clone()));
    let amendments = segment(1, changes.iter().map(entry));
    let mut store = Store::open(dir).unwrap();
    store.catch_up(&mut [feed(first)]).unwrap();
    seal(dir, days[0]);
    check(&mut store, &made(&records[..*cut], &[]));
    store.catch_up(&mut [corrections(&amendments)]).unwrap();
    store.catch_up(&mut [feed(&posts)]).unwrap();
    let expected = made(records, changes);
    check(&mut store, &expected);
    seal(dir, days[1]);
    check(&mut store, &expected);
    store.rebuild(&mut [feed(&posts), corrections(&amendments)]).unwrap();
    check(&mut store, &expected);
    store.rebuild(&mut [feed(last)]).unwrap();
    check(&mut store, &expected);
    drop(store);
    lose_store(dir);
    let mut store = Store::open(dir).unwrap();
    store.catch_up(&mut [feed(&posts), corrections(&amendments)]).unwrap();
    check(&mut store, &expected);
    // What is damaged is made anew, and then again a file.
    let files = session_files(dir);
    files.iter().for_each(|path| fs::write(path, b"no file").unwrap());
    store.rebuild(&mut [feed(last)]).unwrap();
    check(&mut store, &expected);
    seal(dir, days[1]);
    check(&mut store, &expected);
    assert_eq!(session_files(dir), files);
    let found = files.iter().filter(|path| fs::metadata(path).unwrap().len() < 100).count();
    assert_eq!(found, 0);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]
    #[test]
    fn sessions_of_days_that_are_sealed_are_what_their_requests_and_corrections_say(
        story in stories(),
        days in prop::array::uniform2(0..9_i64),
    ) {
        tell_sealing(&story, days);
    }
}

#[test]
fn sums_of_closed_days_are_in_files_that_are_opened_when_the_store_is_lost() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let records: Vec<_> = (0..18).map(|number| ride_of(number, Some(0), 0, None)).collect();
    let posts = journal(records.clone());
    let mut store = Store::open(dir).unwrap();
    store.catch_up(&mut [feed(&posts)]).unwrap();
    seal(dir, 2);
    assert_eq!((session_files(dir).len(), rows(dir)), (2, 1));
    drop(store);
    lose_store(dir);
    // The sums of the files are not made anew.
    drop(Store::open(dir).unwrap());
    assert_eq!(rows(dir), 0);
    let mut store = Store::open(dir).unwrap();
    store.catch_up(&mut [feed(&posts)]).unwrap();
    assert_eq!(rows(dir), 1);
    check(&mut store, &made(&records, &[]));
    let work = seal(dir, 2);
    assert_eq!((work, session_files(dir).len()), (SealWork::default(), 2));
}

#[test]
fn a_file_of_sessions_that_is_damaged_is_told_and_not_believed() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let records: Vec<_> = (0..12).map(|number| ride_of(number, Some(0), 0, None)).collect();
    let mut store = Store::open(dir).unwrap();
    store.catch_up(&mut [feed(&journal(records))]).unwrap();
    seal(dir, 1);
    let path = session_files(dir).remove(0);
    let whole = fs::read(&path).unwrap();
    for at in (0..whole.len()).step_by(97) {
        let mut damaged = whole.clone();
        damaged[at] ^= 1;
        fs::write(&path, damaged).unwrap();
        let listed = store.sessions(always(), None, (TopBy::Cost, 9), || false);
        let told = listed.is_err() || store.session("0", None).is_err();
        let right = list_if(listed).is_none_or(|listing| listing.total.requests == 12);
        assert!(told || right, "byte {at}");
    }
    fs::remove_file(&path).unwrap();
    let told = store.session("0", None).unwrap_err().to_string();
    assert!(told.contains("2026-11-01.sessions"), "{told}");
}

fn list_if(listed: Result<Option<Listing>, StoreError>) -> Option<Listing> {
    listed.ok().flatten()
}

#[test]
fn a_list_has_the_days_of_its_period_alone() {
    let records: Vec<_> = (0..12).map(|number| ride_of(number, Some(0), 0, None)).collect();
    let posts = journal(records.clone());
    let list_days = |store: &mut Store| {
        store.catch_up(&mut [feed(&posts)]).unwrap();
        let requests = |store: &mut Store, from: &str, to: &str| {
            let [from, to] = [from, to].map(|at| at.parse().unwrap());
            let found = list(store, Period::new(from, to).unwrap(), None);
            (found.count, found.total.requests)
        };
        // Six a day, from the first of November on.
        assert_eq!(requests(store, "2026-11-01T00:00:00Z", "2026-11-03T00:00:00Z"), (1, 12));
        assert_eq!(requests(store, "2026-11-02T00:00:00Z", "2026-11-03T00:00:00Z"), (1, 6));
        assert_eq!(requests(store, "2026-11-01T12:00:00Z", "2026-11-02T00:00:00Z"), (1, 6));
        assert_eq!(requests(store, "2026-11-01T12:00:00Z", "2026-11-02T00:00:01Z"), (1, 12));
        assert_eq!(requests(store, "2026-11-03T00:00:00Z", "2026-11-09T00:00:00Z"), (0, 0));
        let enough = store.sessions(always(), None, (TopBy::Cost, 1), || true).unwrap();
        // Few are looked at whatever time it takes.
        assert_eq!(enough.map(|listing| listing.count), Some(1));
    };
    in_sqlite(list_days);
    in_postgresql(list_days);
}

fn sealer(dir: &Path) -> Sealer {
    Sealer::open(dir, GATEWAY).unwrap().unwrap()
}

#[test]
fn the_sums_of_a_day_go_with_its_details() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = Store::open(dir.path()).unwrap();
    let records: Vec<_> = (0..12).map(|number| ride_of(number, Some(0), 0, None)).collect();
    store.catch_up(&mut [feed(&journal(records.clone()))]).unwrap();
    let closed_until = "2026-11-03T00:00:00Z".parse().unwrap();
    let policy = SealPolicy { closed_until, ..SealPolicy::default() };
    let mut sealer = sealer(dir.path());
    let newest = sealer.newest().unwrap();
    assert_eq!(sealer.work(&policy, newest, &|| true).unwrap().sealed, 12);
    assert_eq!(list(&mut store, always(), None).total.requests, 12);
    assert_eq!(session_files(dir.path()).len(), 2);
    let gone = sealer.remove_oldest_day(closed_until, GoneCause::Age).unwrap().unwrap();
    assert!(gone.files.iter().any(|file| file.name == "2026-11-01.sessions"), "{gone:?}");
    assert_eq!(session_files(dir.path()).len(), 1);
    let left = made(&records[6..], &[]);
    let sums: Vec<_> = left.values().map(|session| session.sums.clone()).collect();
    assert_eq!(listed(&mut store).into_values().collect::<Vec<_>>(), sums);
}

#[test]
fn what_clients_say_is_found_in_files_of_days_and_behind_them_until_it_goes() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = Store::open(dir.path()).unwrap();
    let records: Vec<_> = (0..20_u8)
        .map(|at| ride_of(at.into(), (at % 4 > 0).then_some(at % 3), at, Some(at % 2)))
        .collect();
    let changes: Vec<_> = records.iter().step_by(5).map(|record| correction(record, 5)).collect();
    let entry = |change: &Correction| Entry::Correction(Box::new(change.clone()));
    let amendments = segment(1, changes.iter().map(entry));
    store.catch_up(&mut [feed(&journal(records.clone())), corrections(&amendments)]).unwrap();
    check_dimensions(&mut store, &records);
    let closed_until = "2026-11-03T00:00:00Z".parse().unwrap();
    let policy = SealPolicy { closed_until, ..SealPolicy::default() };
    let mut sealer = sealer(dir.path());
    let newest = sealer.newest().unwrap();
    assert_eq!(sealer.work(&policy, newest, &|| true).unwrap().sealed, 12);
    check_dimensions(&mut store, &records);
    sealer.remove_oldest_day(closed_until, GoneCause::Age).unwrap().unwrap();
    let by = [ClientDimension::Session].into_iter().collect();
    let gone = store.split_hours(always(), None, &by, |_, _| Ok::<_, StoreError>(()));
    assert!(matches!(gone, Err(StoreError::DetailsGone { .. })), "{gone:?}");
}

#[test]
fn in_postgresql_the_sums_of_a_day_go_with_its_last_request() {
    let server = shared().unwrap();
    let name = server.database().unwrap();
    let mut store = Store::connect(&server.url(&name).parse().unwrap(), "first").unwrap();
    let records: Vec<_> = (0..12).map(|number| ride_of(number, Some(0), 0, None)).collect();
    store.catch_up(&mut [feed(&journal(records.clone()))]).unwrap();
    let (before, now) = ("2026-11-02T00:00:00Z", "2027-01-01T00:00:00Z");
    let mut remove = |rows| -> Result<u64, StoreError> {
        store.remove_details(before.parse().unwrap(), rows, now.parse().unwrap())
    };
    assert_eq!((remove(4).unwrap(), remove(4).unwrap()), (4, 2));
    let left = made(&records[6..], &[]);
    assert_eq!(listed(&mut store).len(), 1);
    check(&mut store, &left);
}
