//! Lets each call fail with which the store changes a file, in every way, once and from then on. Whatever
//! it was, the store has all requests and their sums once it was fed again.
#![cfg(test)]

mod calls;
mod sealing;

use std::collections::BTreeSet;
use std::env;
use std::fmt::Debug;
use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use rusqlite::Connection;
use taximeter_ledger::{Dimensions, FramedEntry};
use taximeter_store::samples::{feed, journal, record};
use taximeter_store::{Audited, Location, Store, StoreError, convert};
use tempfile::TempDir;

use self::calls::{Fault, Kind};

/// Set it to `all` to have each call fail, and not some of them; or to `2/16` for the second of sixteen
/// shares of them, which together are all.
const ALL_VARIABLE: &str = "TAXIMETER_TEST_FAULTS";
/// So many calls of a run fail where not each one does.
const SOME: usize = 12;

/// The files of an old ledger, of which `tests/it/convert` says more. They are unpacked before a test
/// takes a lock: for a moment a new process has the locks of the one that starts it.
static OLD_LEDGER: LazyLock<Vec<(PathBuf, Vec<u8>)>> = LazyLock::new(unpack);

const ENOSPC: Kind = Kind::Error(28);
const EIO: Kind = Kind::Error(5);
const EROFS: Kind = Kind::Error(30);
const KINDS: [(Kind, bool); 7] = [
    (ENOSPC, false),
    (ENOSPC, true),
    (EIO, false),
    (EIO, true),
    (EROFS, true),
    (Kind::Short, false),
    (Kind::Short, true),
];

/// A folder in memory where there is one: what is synced to it costs nothing.
fn folder() -> TempDir {
    let memory = Path::new("/dev/shm");
    let folder = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
    folder.expect("a temporary folder")
}

/// A copy of a folder with its folders. Starts no process: see [`OLD_LEDGER`].
fn copy(from: &Path) -> TempDir {
    let to = folder();
    copy_into(from, to.path());
    to
}

fn copy_into(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).expect("a folder") {
        let path = entry.expect("an entry").path();
        let copy = to.join(path.file_name().expect("a name"));
        if path.is_dir() {
            fs::create_dir(&copy).expect("a folder");
            copy_into(&path, &copy);
        } else {
            fs::copy(&path, &copy).expect("a copy");
        }
    }
}

/// What a store has.
#[derive(Debug, Default, PartialEq, Eq)]
struct Content {
    requests: usize,
    /// In the sums.
    summed: u64,
    amount: String,
    /// In the sums of sessions.
    of_sessions: u64,
    /// The sessions, each as often as it has days.
    sessions: Vec<String>,
}

/// Reads a store. All sums are those of the requests.
fn content(store: &mut Store) -> Content {
    let mut content = Content::default();
    let mut amounts = Vec::new();
    let visit = |audited: Audited<'_, ()>| match audited {
        Audited::Posts(count, ()) => content.requests += count,
        Audited::Sum(sum) => {
            assert_eq!(sum.kept, sum.due, "{:?}", sum.key);
            content.summed += sum.kept.iter().map(|hour| hour.sums.requests).sum::<u64>();
            amounts.extend(sum.kept.iter().filter_map(|hour| hour.sums.cost));
        }
        Audited::Session(sum) => {
            assert!(sum.is_right(), "{sum:?}");
            content.of_sessions += sum.kept.map_or(0, |kept| kept.sums.requests);
            content.sessions.push(format!("{} {} {}", sum.tenant, sum.session, sum.day));
        }
        Audited::Correction(_) | Audited::GoneCorrection(_) => {}
        Audited::UnreadableSessions(error) => panic!("{error}"),
        Audited::SessionsLeftOut(error) => panic!("{error}"),
        Audited::Unreadable(place, error) => panic!("{place:?}: {error}"),
    };
    store.audit(|(), _| {}, visit).expect("a store that can be read");
    content.amount = amounts.into_iter().sum::<rust_decimal::Decimal>().normalize().to_string();
    content
}

/// Lets the calls of `work` fail, one after the other or only so many, each in a copy of `before`. `end` does without
/// a fault what is left to do, and what is there then is compared with `expected`.
fn each_call<T: Debug + PartialEq>(
    (what, some): (&str, usize),
    before: &Path,
    work: impl Fn(&Path) -> Result<(), StoreError>,
    end: impl Fn(&Path) -> T,
    expected: &T,
) {
    let run = |fault: Fault| {
        let dir = copy(before);
        calls::plan(fault);
        let done = work(dir.path());
        (calls::calls(), done, dir)
    };
    let (all, done, _) = run(Fault { at: usize::MAX, kind: EIO, is_permanent: false });
    done.expect("no fault");
    assert!(all > 8, "{what}: only {all} calls");
    let (first, step) = share().unwrap_or((0, all.div_ceil(some)));
    let (mut failed, mut count) = (0, 0);
    for (turn, (kind, is_permanent)) in KINDS.into_iter().enumerate() {
        // Each kind meets other calls.
        for at in ((first + turn) % step..all).step_by(step) {
            let fault = Fault { at, kind, is_permanent };
            let (_, done, dir) = run(fault);
            failed += usize::from(done.is_err());
            count += 1;
            assert_eq!(end(dir.path()), *expected, "{what}, {fault:?} of {all}: {done:?}");
        }
    }
    assert!(failed > count / 4, "{what}: {failed} of {count} were errors");
    println!("{what}: {count} faults at {all} calls, {failed} errors");
}

/// Which calls fail where the variable is set: the first, and every so many behind it.
fn share() -> Option<(usize, usize)> {
    let share = env::var(ALL_VARIABLE).ok()?;
    let (number, of) = share.split_once('/').unwrap_or(("1", "1"));
    let [number, of] = [number, of].map(|text| text.parse::<usize>().expect("such as 2/16"));
    assert!((1..=of).contains(&number), "{ALL_VARIABLE}={share}");
    Some((number - 1, of))
}

fn fed(dir: &Path, entries: &[FramedEntry]) -> Result<(), StoreError> {
    Store::open(dir)?.catch_up(&mut [feed(entries)]).map(|_| ())
}

fn ended(dir: &Path, entries: &[FramedEntry]) -> Content {
    fed(dir, entries).expect("no fault");
    content(&mut Store::open(dir).expect("a store"))
}

fn expected(requests: u32) -> Content {
    let amount = rust_decimal::Decimal::new(12_340, 8) * rust_decimal::Decimal::from(requests);
    let amount = amount.normalize().to_string();
    let names = (0..requests).filter_map(session_of);
    let sessions = BTreeSet::from_iter(names.map(|name| format!("acme {name} 2026-11-01")));
    Content {
        requests: requests as usize,
        summed: requests.into(),
        amount,
        of_sessions: (0..requests).filter_map(session_of).count() as u64,
        sessions: sessions.into_iter().collect(),
    }
}

/// The session of a request; some have none.
fn session_of(number: u32) -> Option<String> {
    (!number.is_multiple_of(7)).then(|| format!("session-{:02}", number % 11))
}

/// What the client of a request says: a session with several agents, and turns.
fn dimensions(number: u32) -> Option<Box<Dimensions>> {
    let agent = format!("agent-{}", number % 3);
    let dimensions = Dimensions {
        session: Some(session_of(number)?),
        parent_agent: (agent != "agent-0").then(|| "agent-0".to_owned()),
        agent: Some(agent),
        turn: Some(format!("turn-{}", number / 4)),
        client: Some("codex/0.169".to_owned()),
        ..Dimensions::default()
    };
    dimensions.if_any()
}

/// Requests of many models, so that there are many sums, and of several sessions.
fn requests(numbers: std::ops::Range<u32>) -> Vec<FramedEntry> {
    let spread = |number: u32| {
        let mut record = record(number);
        record.request_model = Some(format!("m-{}", number % 37));
        record.response_model = None;
        record.dimensions = dimensions(number);
        record
    };
    journal(numbers.map(spread))
}

#[test]
fn whatever_the_standard_library_changes_is_among_the_calls() {
    let folder = folder();
    let [one, other] = ["one", "other"].map(|name| folder.path().join(name));
    let file = fs::File::create(&one).expect("a file");
    let mut appended = fs::File::options().append(true).open(&one).expect("a file");
    let changes: [&mut dyn FnMut() -> io::Result<()>; 9] = [
        &mut || file.sync_all(),
        &mut || file.sync_data(),
        &mut || file.write_all_at(b"bytes", 0),
        &mut || appended.write_all(b"more"),
        &mut || file.set_len(3),
        &mut || fs::rename(&one, &other),
        &mut || fs::File::create(&one).map(drop),
        &mut || fs::remove_file(&other),
        &mut || fs::create_dir(&other),
    ];
    for (number, change) in changes.into_iter().enumerate() {
        calls::plan(Fault { at: 0, kind: EIO, is_permanent: false });
        let (first, second) = (change(), change());
        let calls = calls::calls();
        assert!(first.is_err() && second.is_ok(), "{number}: {first:?} {second:?}");
        assert_eq!(calls, 2, "{number}");
    }
}

#[test]
fn whichever_call_fails_the_first_feeding_and_the_next_ones_make_one_whole() {
    calls::take_over();
    let entries = requests(0..120);
    let before = folder();
    let work = |dir: &Path| fed(dir, &entries);
    let end = |dir: &Path| ended(dir, &entries);
    each_call(("first feeding", SOME), before.path(), work, end, &expected(120));
    // As often as a feeder does, some at a time.
    fed(before.path(), &entries[..20]).expect("no fault");
    let work = |dir: &Path| {
        let mut store = Store::open(dir)?;
        for until in [21, 50, 51, 120] {
            store.catch_up(&mut [feed(&entries[..until])])?;
        }
        Ok(())
    };
    each_call(("later feedings", SOME), before.path(), work, end, &expected(120));
}

#[test]
fn whichever_call_fails_a_rebuild_keeps_all() {
    calls::take_over();
    let (entries, before) = (requests(0..120), folder());
    fed(before.path(), &entries).expect("no fault");
    // The journal has removed the oldest.
    let left = &entries[40..];
    let work = |dir: &Path| Store::open(dir)?.rebuild(&mut [feed(left)]).map(|_| ());
    each_call(("rebuild", SOME), before.path(), work, |dir| ended(dir, left), &expected(120));
}

#[test]
fn whichever_call_fails_a_log_that_is_too_long_is_shortened_later() {
    const LOG_BYTES: u64 = 64 << 20;
    calls::take_over();
    let (entries, folder) = (requests(0..4_000), folder());
    let log = |dir: &Path| fs::metadata(dir.join("store.sqlite-wal")).map_or(0, |log| log.len());
    fed(folder.path(), &entries[..10]).expect("no fault");
    // Who reads what was before keeps the log.
    let reader = Connection::open(folder.path().join("store.sqlite")).expect("a store");
    reader.execute_batch("BEGIN; SELECT 1 FROM requests").expect("a store");
    let mut store = Store::open(folder.path()).expect("a store");
    let full = (11..entries.len()).find(|until| {
        store.catch_up(&mut [feed(&entries[..*until])]).expect("room in the log");
        log(folder.path()) > LOG_BYTES
    });
    let full = full.expect("it never was too long");
    let before = copy(folder.path());
    drop((reader, store));
    fs::remove_file(before.path().join("store.sqlite-shm")).expect("the index of the log");
    let entries = &entries[..full + 1];
    let work = |dir: &Path| {
        fed(dir, entries)?;
        assert!(log(dir) < LOG_BYTES);
        Ok(())
    };
    let requests = u32::try_from(entries.len()).expect("few");
    let end = |dir: &Path| ended(dir, entries);
    each_call(("log shortening", SOME), before.path(), work, end, &expected(requests));
}

fn unpack() -> Vec<(PathBuf, Vec<u8>)> {
    let folder = folder();
    let archive = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/it/convert/ledger.tar.gz");
    let tar = Command::new("tar").arg("-xzf").arg(archive).arg("-C").arg(folder.path()).status();
    assert!(tar.expect("run tar").success());
    let (mut files, mut folders) = (Vec::new(), vec![folder.path().join("format4")]);
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let bytes = fs::read(&path).expect("a file");
                files.push((path.strip_prefix(folder.path()).expect("below it").to_owned(), bytes));
            }
        }
    }
    files
}

fn old_ledger() -> (TempDir, PathBuf) {
    let folder = folder();
    for (name, bytes) in &*OLD_LEDGER {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, bytes).expect("a file");
    }
    let data = folder.path().join("format4");
    (folder, data)
}

#[test]
fn whichever_call_fails_a_conversion_goes_on_with_all() {
    calls::take_over();
    let (_folder, data) = old_ledger();
    let convert = |dir: &Path| {
        let now = record(0).started_at;
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let store = Location::DataDir(dir.to_owned());
        convert::convert(dir, &store, false, now, &mut |_| {}, (&mut out, &mut err)).map(drop)
    };
    let end = |dir: &Path| {
        convert(dir).expect("no fault");
        let mut store = Store::open(dir).expect("a store");
        store.catch_up(&mut taximeter_store::feeds(dir)).expect("no fault");
        content(&mut store)
    };
    let expected = end(copy(&data).path());
    assert!(expected.requests > 5, "{expected:?}");
    let work = |dir: &Path| {
        convert(dir).map_err(|error| StoreError::Unavailable {
            store: dir.display().to_string(),
            source: error.into(),
        })
    };
    each_call(("conversion", SOME), &data, work, end, &expected);
}
