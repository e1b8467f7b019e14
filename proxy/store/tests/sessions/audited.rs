//! Sums of sessions that are not those of the requests are found and named, whatever became of them.

use std::fmt::Write as _;
use std::fs::File;
use std::ops::RangeInclusive;

use jiff::civil::Date;
use rusqlite::Connection;
use sha2::{Digest as _, Sha256};
use taximeter_sessions::{DaySum, SessionRow, SessionsFile, SessionsWriter};
use taximeter_store::{Audited, SessionsCure, WrongSessions};

use super::*;

/// A session on a day: day, tenant and name.
type Key = (Date, String, String);

/// What the store says of each session and day.
type Kept = BTreeMap<Key, Option<DaySum>>;

/// What the store says, and the sessions of which that is wrong, with the file of their day.
pub(super) fn audit(store: &mut Store) -> (Kept, BTreeMap<Key, Option<String>>) {
    let (mut kept, mut wrong) = (BTreeMap::new(), BTreeMap::new());
    let visit = |audited: Audited<'_, ()>| match audited {
        Audited::Session(sum) => {
            assert!(sum.with_cost, "{sum:?}");
            let key = (sum.day, sum.tenant.to_owned(), sum.session.to_owned());
            if !sum.is_right() {
                wrong.insert(key.clone(), sum.file.map(str::to_owned));
            }
            assert_eq!(kept.insert(key, sum.kept.cloned()), None, "twice");
        }
        Audited::UnreadableSessions(error) => panic!("{error}"),
        Audited::SessionsLeftOut(error) => panic!("{error}"),
        _ => {}
    };
    store.audit(|(), _| {}, visit).unwrap();
    (kept, wrong)
}

/// What happens to a row.
#[derive(Debug, Clone)]
enum Damage {
    Gone,
    OtherDay(i8),
    OtherTenant,
    OtherSession,
    /// These bits of its sum.
    Flipped(usize, u8),
}

fn damages() -> impl Strategy<Value = Damage> {
    prop_oneof![
        Just(Damage::Gone),
        prop_oneof![Just(-1_i8), Just(1), Just(99)].prop_map(Damage::OtherDay),
        Just(Damage::OtherTenant),
        Just(Damage::OtherSession),
        (any::<usize>(), 1..=u8::MAX).prop_map(|(at, bits)| Damage::Flipped(at, bits)),
    ]
}

/// A row: first instant of its day, tenant, name, sum.
type Row = (i64, String, String, Vec<u8>);

impl Damage {
    /// The row after it; `None` if it is gone.
    fn apply(&self, (mut day, mut tenant, mut session, mut sum): Row) -> Option<Row> {
        match self {
            Self::Gone => return None,
            Self::OtherDay(days) => day += 86_400_000_000 * i64::from(*days),
            Self::OtherTenant => tenant.push('x'),
            Self::OtherSession => session.push('x'),
            Self::Flipped(at, bits) => {
                let at = at % sum.len();
                sum[at] ^= bits;
            }
        }
        Some((day, tenant, session, sum))
    }
}

fn database(dir: &Path) -> Connection {
    Connection::open(dir.join("store.sqlite")).unwrap()
}

/// Damages a row of a table.
fn damage_row(dir: &Path, table: &str, which: usize, damage: &Damage) {
    let store = database(dir);
    let mut rows = store.prepare(&format!("SELECT * FROM {table}")).unwrap();
    let read = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?));
    let rows: Vec<Row> = rows.query_map((), read).unwrap().map(Result::unwrap).collect();
    let Some(row) = (!rows.is_empty()).then(|| rows[which % rows.len()].clone()) else { return };
    let delete = format!("DELETE FROM {table} WHERE day = ?1 AND tenant = ?2 AND session = ?3");
    store.execute(&delete, (row.0, &row.1, &row.2)).unwrap();
    if let Some((day, tenant, session, sum)) = damage.apply(row) {
        let set = format!("INSERT OR REPLACE INTO {table} VALUES (?1, ?2, ?3, ?4)");
        store.execute(&set, (day, tenant, session, sum)).unwrap();
    }
}

/// Writes a file of sessions again with one row that is damaged, as if it had been written so.
fn damage_file(dir: &Path, which: usize, damage: &Damage) {
    let files = session_files(dir);
    let Some(path) = (!files.is_empty()).then(|| &files[which % files.len()]) else { return };
    let file = SessionsFile::open(File::open(path).unwrap()).unwrap();
    let footer = file.footer().clone();
    let mut rows = file.rows(None, None);
    let rows: Vec<_> = std::iter::from_fn(|| rows.next_row().unwrap()).collect();
    let at = which % rows.len();
    let mut written = BTreeMap::new();
    for (number, SessionRow { tenant, session, sum }) in rows.into_iter().enumerate() {
        let row = (0, tenant, session, sum.encode());
        let row = if number == at { damage.apply(row) } else { Some(row) };
        if let Some((_, tenant, session, sum)) = row
            && let Ok(sum) = DaySum::decode(&sum)
        {
            written.insert((tenant, session), sum);
        }
    }
    let (gateway, day) = (&footer.gateway, footer.day);
    let mut writer = SessionsWriter::new(Vec::new(), gateway, day, footer.last_entries).unwrap();
    for ((tenant, session), sum) in &written {
        writer.add(tenant, session, sum).unwrap();
    }
    let bytes = writer.finish().unwrap().file.out;
    let name = path.file_name().unwrap().to_str().unwrap();
    let set = "UPDATE session_files SET sessions = ?1, bytes = ?2, sha256 = ?3 WHERE name = ?4";
    let digest: [u8; 32] = Sha256::digest(&bytes).into();
    let [count, length] = [written.len(), bytes.len()].map(|it| i64::try_from(it).unwrap());
    let row = (count, length, digest, name);
    assert_eq!(database(dir).execute(set, row).unwrap(), 1);
    fs::write(path, bytes).unwrap();
}

/// What `verify` says.
fn verified(dir: &Path, store: &mut Store) -> String {
    let mut findings = taximeter_store::verify::Findings::default();
    taximeter_store::verify::verify(dir, store, &mut |_| {}, &mut findings).unwrap();
    let mut report = Vec::new();
    findings.write(&mut report).unwrap();
    String::from_utf8(report).unwrap()
}

/// A store with some of its days sealed, one row of which is damaged.
fn tell_damage(story: &Story, days: i64, damage: &Damage, which: usize) {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let (records, changes, _) = story;
    let entry = |change: &Correction| Entry::Correction(Box::new(change.clone()));
    let amendments = segment(1, changes.iter().map(entry));
    let mut store = Store::open(dir).unwrap();
    store.catch_up(&mut [feed(&journal(records.clone())), corrections(&amendments)]).unwrap();
    seal(dir, days);
    let (whole, wrong) = audit(&mut store);
    assert_eq!(wrong, BTreeMap::new());
    let files: BTreeSet<_> = session_files(dir).into_iter().collect();
    let written = contents(dir);
    match which % 3 {
        0 => damage_row(dir, "sessions", which / 3, damage),
        1 => damage_row(dir, "session_changes", which / 3, damage),
        _ => damage_file(dir, which / 3, damage),
    }
    let mut unreadable = None;
    store
        .audit(
            |(), _: &taximeter_store::Post<'_>| {},
            |audited: Audited<'_, ()>| {
                if let Audited::UnreadableSessions(error) = audited {
                    unreadable = Some(error.to_string());
                }
            },
        )
        .unwrap();
    let report = verified(dir, &mut store);
    if let Some(unreadable) = unreadable {
        assert!(unreadable.contains("the sum of the session "), "{unreadable}");
        assert!(report.contains(&unreadable), "{report}");
        return;
    }
    let (damaged, wrong) = audit(&mut store);
    let named: BTreeSet<_> = wrong.keys().cloned().collect();
    let changed: BTreeSet<_> = whole.keys().chain(damaged.keys()).cloned().collect();
    let is_changed = |key: &Key| {
        let [before, after] = [&whole, &damaged].map(|of| of.get(key).cloned().flatten());
        before != after
    };
    let changed: BTreeSet<_> = changed.into_iter().filter(is_changed).collect();
    assert_eq!(named, changed, "{damage:?}");
    for ((day, tenant, session), file) in wrong {
        let name = format!("days/{day}.sessions");
        let is_there = files.contains(&dir.join(&name));
        assert_eq!(file, is_there.then_some(name.clone()));
        let of = format!("wrong: the session {session} of {tenant} on {day} has ");
        let line = report.lines().find(|line| line.starts_with(&of)).expect(&report);
        assert_eq!(line.contains(&name), is_there, "{line}");
    }
    // A correction of the same request can hide what is wrong in a file, and a file need not have a cost in
    // several currencies as its requests do.
    let is_shown = which % 3 > 1 && damaged != whole;
    let wrong = usize::from(is_shown)..=usize::from(contents(dir) != written);
    rebuild_damaged(dir, &mut store, story, &wrong);
    assert_eq!(audit(&mut store), (whole, BTreeMap::new()));
    assert_eq!(session_files(dir).into_iter().collect::<BTreeSet<_>>(), files);
}

/// The files of sessions.
fn contents(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let content = |path: PathBuf| (path.clone(), fs::read(path).unwrap());
    session_files(dir).into_iter().map(content).collect()
}

/// Builds a store anew of which one sum is wrong. Only a file that has it is written again: so many.
fn rebuild_damaged(
    dir: &Path,
    store: &mut Store,
    (records, changes, _): &Story,
    files: &RangeInclusive<usize>,
) {
    let before = contents(dir);
    let entry = |change: &Correction| Entry::Correction(Box::new(change.clone()));
    let amendments = segment(1, changes.iter().map(entry));
    let posts = journal(records.clone());
    let mut rebuild = || {
        let rebuilt = store.rebuild(&mut [feed(&posts), corrections(&amendments)]).unwrap();
        rebuilt.wrong_sessions
    };
    let wrong = rebuild();
    assert!(files.contains(&wrong.len()), "{files:?}: {wrong:?}");
    let after = contents(dir);
    for (path, content) in before {
        let is_wrong = wrong.iter().any(|it| dir.join(&it.file) == path);
        assert_eq!(after[&path] != content, is_wrong, "{}", path.display());
    }
    assert!(wrong.iter().all(|it| it.cure == SessionsCure::Written), "{wrong:?}");
    assert_eq!(rebuild(), []);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]
    #[test]
    fn a_sum_of_a_session_that_is_not_that_of_its_requests_is_named(
        story in stories(),
        days in 0..9_i64,
        damage in damages(),
        which in any::<usize>(),
    ) {
        tell_damage(&story, days, &damage, which);
    }
}

/// What `verify` says of a file of which a byte was changed since it was written.
#[test]
fn a_flipped_byte_of_a_file_of_sessions_is_told_with_the_file_and_its_day() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let records: Vec<_> = (0..12).map(|number| ride_of(number, Some(0), 0, None)).collect();
    let mut store = Store::open(dir).unwrap();
    store.catch_up(&mut [feed(&journal(records))]).unwrap();
    seal(dir, 1);
    let path = session_files(dir).remove(0);
    let whole = fs::read(&path).unwrap();
    for at in (0..whole.len()).step_by(131) {
        let mut damaged = whole.clone();
        damaged[at] ^= 1;
        fs::write(&path, damaged).unwrap();
        let report = verified(dir, &mut store);
        let mut told = String::new();
        write!(told, "wrong: {}, which has sessions of 2026-11-01: ", path.display()).unwrap();
        assert!(report.contains(&told), "byte {at}: {report}");
    }
}

/// A store of which the first day is in files, and what that of its sessions is called.
fn with_sealed_day(dir: &Path) -> (Store, Vec<FramedEntry>, PathBuf) {
    let records: Vec<_> = (0..12).map(|number| ride_of(number, Some(0), 0, None)).collect();
    let mut store = Store::open(dir).unwrap();
    let posts = journal(records);
    store.catch_up(&mut [feed(&posts)]).unwrap();
    seal(dir, 1);
    let path = session_files(dir).remove(0);
    (store, posts, path)
}

#[test]
fn while_somebody_else_seals_the_store_has_the_right_sums_and_the_file_comes_later() {
    let dir = tempfile::tempdir().unwrap();
    let (mut store, posts, path) = with_sealed_day(dir.path());
    let (whole, _) = audit(&mut store);
    damage_file(dir.path(), 0, &Damage::OtherSession);
    let damaged = fs::read(&path).unwrap();
    let sealing = sealer(dir.path());
    let rebuilt = store.rebuild(&mut [feed(&posts)]).unwrap();
    let file = "days/2026-11-01.sessions".to_owned();
    assert_eq!(rebuilt.wrong_sessions, [WrongSessions { file, cure: SessionsCure::Counted }]);
    assert_eq!(
        (audit(&mut store), fs::read(&path).unwrap()),
        ((whole.clone(), BTreeMap::new()), damaged)
    );
    drop(sealing);
    seal(dir.path(), 1);
    assert_eq!(audit(&mut store), (whole, BTreeMap::new()));
    assert_eq!((session_files(dir.path()), rows(dir.path())), (vec![path], 1));
}

#[test]
fn a_file_of_sessions_without_requests_is_kept_and_told() {
    let dir = tempfile::tempdir().unwrap();
    let (mut store, posts, path) = with_sealed_day(dir.path());
    let of_requests = path.with_extension("parquet");
    let whole = fs::read(&of_requests).unwrap();
    for is_damaged in [false, true] {
        if is_damaged {
            damage_file(dir.path(), 0, &Damage::OtherSession);
        }
        let kept = fs::read(&path).unwrap();
        // A file that is named and not there: nothing is made anew.
        fs::remove_file(&of_requests).unwrap();
        let error = store.rebuild(&mut [feed(&posts)]).unwrap_err().to_string();
        assert!(error.contains("2026-11-01.parquet"), "{error}");
        assert_eq!(fs::read(&path).unwrap(), kept);
        fs::write(&of_requests, &whole).unwrap();
    }
    let kept = fs::read(&path).unwrap();
    database(dir.path()).execute("DELETE FROM days", ()).unwrap();
    let rebuilt = store.rebuild(&mut []).unwrap();
    let file = "days/2026-11-01.sessions".to_owned();
    assert_eq!(rebuilt.wrong_sessions, [WrongSessions { file, cure: SessionsCure::Kept }]);
    assert_eq!(fs::read(&path).unwrap(), kept);
}

/// Of a cost in two currencies one is in the sum, and which one depends on the order.
#[test]
fn a_session_that_is_paid_in_two_currencies_is_compared_but_for_its_cost() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = Store::open(dir.path()).unwrap();
    let records: Vec<_> = (0..6)
        .rev()
        .map(|number| {
            let mut ride = ride_of(0, Some(0), 0, None);
            ride.id = record(number).id;
            ride.started_at += SignedDuration::from_mins(number.into());
            ride.cost.as_mut().unwrap().currency =
                if number > 2 { "EUR".to_owned() } else { "USD".to_owned() };
            ride
        })
        .collect();
    store.catch_up(&mut [feed(&journal(records))]).unwrap();
    let sums = |store: &mut Store| {
        let mut sums = Vec::new();
        let visit = |audited: Audited<'_, ()>| {
            if let Audited::Session(sum) = audited {
                sums.push((sum.with_cost, sum.is_right()));
            }
        };
        store.audit(|(), _| {}, visit).unwrap();
        sums
    };
    assert_eq!(sums(&mut store), [(false, true)]);
    let report = verified(dir.path(), &mut store);
    assert!(report.contains("note: the costs of 1 sums of sessions are of several"), "{report}");
    let connection = database(dir.path());
    connection.execute("UPDATE sessions SET session = 'other'", ()).unwrap();
    assert_eq!(sums(&mut store), [(false, false), (true, false)]);
}

#[test]
fn sums_of_days_without_details_are_not_compared_also_if_requests_come_late() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = Store::open(dir.path()).unwrap();
    let records: Vec<_> = (0..18).map(|number| ride_of(number, Some(0), 0, None)).collect();
    let late = Record { id: record(99).id, ..records[2].clone() };
    let posts = journal(records.into_iter().chain([late]));
    store.catch_up(&mut [feed(&posts[..posts.len() - 2])]).unwrap();
    let closed_until = "2026-11-03T00:00:00Z".parse().unwrap();
    let policy = SealPolicy { closed_until, ..SealPolicy::default() };
    let mut sealer = sealer(dir.path());
    let newest = sealer.newest().unwrap();
    sealer.work(&policy, newest, &|| true).unwrap();
    sealer.remove_oldest_day(closed_until, GoneCause::Age).unwrap().unwrap();
    let days = |store: &mut Store| {
        let (kept, wrong) = audit(store);
        assert_eq!(wrong, BTreeMap::new());
        kept.into_keys().map(|(day, ..)| day.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(days(&mut store), ["2026-11-02", "2026-11-03"]);
    store.catch_up(&mut [feed(&posts)]).unwrap();
    assert_eq!(days(&mut store), ["2026-11-02", "2026-11-03"]);
}
