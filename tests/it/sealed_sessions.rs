//! What sessions of agents cost is the same, to the last digit, before their days are sealed and after,
//! when what seals is killed, and in a store that is built anew.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use jiff::{SignedDuration, Timestamp};
use rust_decimal::Decimal;
use taximeter_ledger::{Dimensions, End, Entry, Record};
use taximeter_store::{SealPolicy, Sealer};

use crate::gateway::taximeter;
use crate::old_details::post;
use crate::segments::write_journal;

/// Says to the test that it is the process that seals: the data directory, and up to when its days are
/// closed.
const SEALS: &str = "TAXIMETER_TEST_SEALS_SESSIONS";
const CLOSED: &str = "TAXIMETER_TEST_SESSIONS_CLOSED";
/// It says so at each step at which it can be killed, and at the end.
const STEP: &str = "a step of sealing";
const DONE: &str = "all is sealed";

const DAYS: i32 = 6;
const EACH_DAY: u32 = 24;
/// A session has requests of two days.
const OF_SESSION: u32 = 10;

fn begin() -> Timestamp {
    "2026-11-01T00:00:00Z".parse().expect("a time")
}

/// The end of the `number`th day.
fn end_of(number: i32) -> Timestamp {
    begin() + SignedDuration::from_hours(24) * number
}

/// The `number`th request: each costs something else, to the ninth digit.
fn request(number: u32) -> Vec<Entry> {
    let minutes = 24 * 60 / EACH_DAY * number;
    let mut entries = post(number, begin() + SignedDuration::from_mins(minutes.into()));
    for entry in &mut entries {
        if let Entry::Post(record) = entry {
            tell(record, number);
        }
    }
    entries
}

fn tell(record: &mut Record, number: u32) {
    let digits = i64::from(number) * 7_919 + 1;
    record.end = if number.is_multiple_of(7) { End::ClientLeft } else { End::Complete };
    if let Some(cost) = &mut record.cost {
        (cost.amount, cost.list_amount) = (Decimal::new(digits, 9), Decimal::new(digits, 9));
        for line in &mut cost.lines {
            (line.amount, line.unit_price) = (Decimal::new(digits, 9), Decimal::new(digits, 12));
        }
    }
    let agent = format!("agent-{}", number % 3);
    record.dimensions = Dimensions {
        session: Some(name(number / OF_SESSION)),
        parent_agent: (agent != "agent-0").then(|| "agent-0".to_owned()),
        agent: Some(agent),
        client: Some("codex/0.169".to_owned()),
        turn: Some(format!("turn-{}", number / 3)),
        ..Dimensions::default()
    }
    .if_any();
}

fn name(session: u32) -> String {
    format!("5f3f0c3a-4c1e-4d55-9a6b-{session:012x}")
}

/// What the command says of all sessions, and then of each.
fn shown(data_dir: &Path) -> Vec<String> {
    let sessions = DAYS.unsigned_abs() * EACH_DAY / OF_SESSION;
    let list = ["--from", "2026-11-01", "--to", "2026-11-30", "--limit", "1000"].map(str::to_owned);
    let asked = std::iter::once(list.to_vec()).chain((0..=sessions).map(|of| vec![name(of)]));
    asked.map(|words| ask(data_dir, &words)).collect()
}

fn ask(data_dir: &Path, words: &[String]) -> String {
    let place = ["--json", "--data-dir", data_dir.to_str().expect("UTF-8")].map(str::to_owned);
    let command = ["sessions".to_owned()];
    let told = taximeter(command.iter().chain(words).chain(&place));
    assert!(told.status.success(), "{words:?}: {}", String::from_utf8_lossy(&told.stderr));
    String::from_utf8(told.stdout).expect("UTF-8")
}

/// Seals days that are closed, and says when it can be killed.
fn seal(data_dir: &Path, closed_until: Timestamp, step: &dyn Fn() -> bool) {
    let sealer = Sealer::open(data_dir, "gw").expect("a store").expect("nobody else seals");
    let mut sealer = sealer.with_rows_max(5);
    let policy = SealPolicy { closed_until, ..SealPolicy::default() };
    let newest = sealer.newest().expect("a number");
    let work = sealer.work(&policy, newest, step).expect("to seal");
    assert_eq!(work.fault(), None);
}

/// Seals in a process of its own, which is killed after so many steps. Whether it was killed before its
/// end.
fn seal_and_kill(data_dir: &Path, closed_until: Timestamp, steps: usize) -> bool {
    let test = std::any::type_name_of_val(&sessions_are_the_same_whatever_becomes_of_their_days);
    let test = test.split_once("::").expect("a path").1;
    let mut command = Command::new(std::env::current_exe().expect("this test's own path"));
    command.args(["--exact", test, "--nocapture"]).stdout(Stdio::piped());
    command.env(SEALS, data_dir).env(CLOSED, closed_until.to_string());
    let mut child = command.spawn().expect("start this test");
    let said = BufReader::new(child.stdout.take().expect("what it says")).lines();
    let mut seen = 0;
    let is_done = said.map_while(Result::ok).any(|line| {
        seen += usize::from(line.contains(STEP));
        assert!(!line.contains("FAILED"), "it has failed");
        seen > steps || line.contains(DONE)
    });
    assert!(is_done, "it has ended early");
    child.kill().expect("to kill it");
    child.wait().expect("its end");
    seen > steps
}

fn files(data_dir: &Path, ending: &str) -> usize {
    let files = fs::read_dir(data_dir.join("days")).expect("a folder");
    files
        .filter(|file| file.as_ref().is_ok_and(|it| it.path().to_string_lossy().ends_with(ending)))
        .count()
}

#[test]
fn sessions_are_the_same_whatever_becomes_of_their_days() {
    if let Some(data_dir) = std::env::var_os(SEALS) {
        let closed_until = std::env::var(CLOSED).expect("a time").parse().expect("a time");
        seal(Path::new(&data_dir), closed_until, &|| {
            println!("{STEP}");
            true
        });
        return println!("{DONE}");
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let data_dir = folder.path();
    let requests = DAYS.unsigned_abs() * EACH_DAY;
    let entries: Vec<_> = (0..requests).flat_map(request).collect();
    write_journal(data_dir, 1, &entries);
    let expected = shown(data_dir);
    assert!(expected[0].contains(&format!("\"requests\": {requests}")), "{}", expected[0]);

    let mut killed = 0;
    for round in 0..18_usize {
        // Each day is closed in three rounds, and killed later in each.
        let closed_until = end_of(i32::try_from(round / 3).expect("few") + 1);
        killed += usize::from(seal_and_kill(data_dir, closed_until, round * 5 % 17));
        assert_eq!(shown(data_dir), expected, "round {round}");
    }
    assert!(killed > 5, "{killed} were killed");
    // What was replaced goes the second time.
    seal(data_dir, end_of(DAYS), &|| true);
    seal(data_dir, end_of(DAYS), &|| true);
    assert_eq!(shown(data_dir), expected);
    let days = usize::try_from(DAYS).expect("few");
    assert_eq!((files(data_dir, ".parquet"), files(data_dir, ".sessions")), (days, days));
    assert_eq!(files(data_dir, ".tmp"), 0);

    let place = ["--data-dir", data_dir.to_str().expect("UTF-8")];
    let rebuilt = taximeter(["verify", "--rebuild"].iter().chain(&place));
    let said = String::from_utf8_lossy(&rebuilt.stdout);
    assert!(rebuilt.status.success() && said.contains("Nothing is wrong."), "{said}");
    assert_eq!(shown(data_dir), expected);
    for name in ["store.sqlite", "store.sqlite-wal", "store.sqlite-shm"] {
        let _ = fs::rename(data_dir.join(name), data_dir.join(format!("{name}.away")));
    }
    assert_eq!(shown(data_dir), expected);

    // Who opens a session reads its days alone.
    let day = data_dir.join("days/2026-11-04.parquet");
    fs::rename(&day, data_dir.join("away")).expect("move it");
    assert_eq!(ask(data_dir, &[name(0)]), expected[1]);
    fs::rename(data_dir.join("away"), &day).expect("move it back");
    assert_eq!(shown(data_dir), expected);
}

/// What `taximeter verify` says. Whether nothing is wrong.
fn verified(data_dir: &Path) -> (bool, String) {
    let told = taximeter(["verify", "--data-dir", data_dir.to_str().expect("UTF-8")]);
    (told.status.success(), String::from_utf8_lossy(&told.stdout).into_owned())
}

#[test]
fn a_sum_of_a_session_that_is_not_its_requests_is_named_with_its_day_and_its_file() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let data_dir = folder.path();
    let requests = DAYS.unsigned_abs() * EACH_DAY;
    write_journal(data_dir, 1, &(0..requests).flat_map(request).collect::<Vec<_>>());
    let sums = (0..requests).map(|number| (number / EACH_DAY, number / OF_SESSION));
    let sums = BTreeSet::from_iter(sums).len();
    let right = format!("store: {sums} sums of sessions by the day, each equal to its requests\n");
    let (is_right, told) = verified(data_dir);
    assert!(is_right && told.contains(&right), "{told}");
    seal(data_dir, end_of(3), &|| true);
    let (is_right, told) = verified(data_dir);
    assert!(is_right && told.contains(&right), "{told}");

    // Of the last day one is gone, and one is of another tenant.
    let store = rusqlite::Connection::open(data_dir.join("store.sqlite")).expect("a store");
    let meddle = |statement: &str, session: u32| {
        let changed = store.execute(statement, [name(session)]).expect(statement);
        assert_eq!(changed, 1, "{statement}");
    };
    meddle("DELETE FROM sessions WHERE session = ?1", 14);
    meddle("UPDATE sessions SET tenant = 'other' WHERE session = ?1", 12);
    let (is_right, told) = verified(data_dir);
    let right = format!("store: {} sums of sessions by the day, ", sums - 2);
    assert!(!is_right && told.contains(&right), "{told}");
    let of = |session, tenant: &str| {
        format!("wrong: the session {} of {tenant} on 2026-11-06 has ", name(session))
    };
    let (gone, moved) = (of(14, "acme"), of(12, "acme"));
    for (of, what) in [
        (&gone, "nothing in the store, but its requests add up to "),
        (&moved, "nothing in the store, but its requests add up to "),
        (&of(12, "other"), "(10 requests, "),
    ] {
        assert!(told.lines().any(|line| line.starts_with(of) && line.contains(what)), "{told}");
    }
    assert!(told.contains("3 things are wrong."), "{told}");
    let place = ["--data-dir", data_dir.to_str().expect("UTF-8")];
    assert!(taximeter(["verify", "--rebuild"].iter().chain(&place)).status.success());
    assert!(verified(data_dir).0);

    let path = data_dir.join("days/2026-11-02.sessions");
    let mut bytes = fs::read(&path).expect("a file");
    let middle = bytes.len() / 3;
    bytes[middle] ^= 4;
    fs::write(&path, bytes).expect("to change it");
    let (is_right, told) = verified(data_dir);
    let wrong = format!("wrong: {}, which has sessions of 2026-11-02: ", path.display());
    assert!(!is_right && told.contains(&wrong), "{told}");
}
