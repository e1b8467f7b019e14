//! A data directory of the version before, whose journal has format 4. `convert/ledger.tar.gz` is one
//! that this version's predecessor left when it was killed: with a running stream, a correction, counts
//! of refusals, and a store that lags behind. The other files in `convert/` are what its commands said.

mod postgres;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::engine::Engine;
use crate::gateway::{Gateway, Setup, records, taximeter};
use crate::segments::segments;

const RECORDS: &str = include_str!("convert/records.ndjson");
const BILL: &str = include_str!("convert/bill.json");
const REFUSALS: &str = include_str!("convert/refusals.json");
const DAY: [&str; 2] = ["--day", "2026-11-26"];
/// The request that was running.
const OPEN: &str = "01a21729-bdc5-7bf6-a983-35f51e405b9c";

/// What the version before left, in `data`.
fn old_ledger() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let archive = concat!(env!("CARGO_MANIFEST_DIR"), "/it/convert/ledger.tar.gz");
    let tar = Command::new("tar").arg("-xzf").arg(archive).arg("-C").arg(folder.path()).status();
    assert!(tar.expect("run tar").success());
    let data = folder.path().join("data");
    fs::rename(folder.path().join("format4"), &data).expect("rename");
    (folder, data)
}

fn run(words: &[&str], data: &Path) -> Output {
    let data = data.to_str().expect("UTF-8");
    taximeter(words.iter().chain(&["--data-dir", data]))
}

fn text(output: &Output) -> String {
    let text = [&output.stdout[..], &output.stderr].concat();
    String::from_utf8(text).expect("UTF-8")
}

/// Runs a command that must succeed.
fn done(words: &[&str], data: &Path) -> String {
    let output = run(words, data);
    assert!(output.status.success(), "{words:?}: {}", text(&output));
    text(&output)
}

fn said(words: &[&str], data: &Path) -> Value {
    serde_json::from_str(&done(words, data)).expect("JSON")
}

/// The bytes of all files but those that reading may make.
fn content(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(dir).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            files.extend(content(&path));
        } else if !path.to_string_lossy().contains("store.sqlite") {
            files.insert(path.clone(), fs::read(&path).expect("a file"));
        }
    }
    files
}

/// Seconds to the microsecond.
fn to_the_microsecond(value: &mut Value) {
    match value {
        Value::Number(number) if number.is_f64() => {
            let seconds = number.as_f64().expect("a number");
            *value = json!((seconds * 1e6).round() / 1e6);
        }
        Value::Array(values) => values.iter_mut().for_each(to_the_microsecond),
        Value::Object(values) => values.values_mut().for_each(to_the_microsecond),
        _ => {}
    }
}

/// A bill without what it says about its period, which changes with time.
fn without_status(mut bill: Value) -> Value {
    let period = bill["period"].as_object_mut().expect("a period");
    for name in ["status", "closes_at", "waits_for", "silent"] {
        period.remove(name);
    }
    bill
}

fn check_answers(data: &Path) {
    let lines = RECORDS.lines();
    let mut expected: Vec<Value> =
        lines.map(|line| serde_json::from_str(line).expect("a record")).collect();
    let mut records = records(data);
    records.iter_mut().chain(&mut expected).for_each(to_the_microsecond);
    assert_eq!(records, expected);
    let bill: Value = serde_json::from_str(BILL).expect("a bill");
    let told = said(&["bill", DAY[0], DAY[1], "--format", "json"], data);
    assert_eq!(without_status(told), bill);
    let refusals: Value = serde_json::from_str(REFUSALS).expect("counts");
    assert_eq!(said(&["refusals", DAY[0], DAY[1], "--json"], data), refusals);
}

#[test]
fn a_ledger_of_the_version_before_is_refused_with_the_command_that_converts_it() {
    let (folder, data) = old_ledger();
    let before = content(&data);
    let command = format!("run `taximeter convert --data-dir {}`", data.display());
    for words in [&["records"][..], &["bill"], &["verify"]] {
        let output = run(words, &data);
        assert!(!output.status.success(), "{words:?}");
        assert!(text(&output).contains(&command), "{words:?}: {}", text(&output));
    }
    let engine = Engine::start();
    let refused = Setup::before(&engine).refused_in(&folder);
    assert_eq!(refused.status.code(), Some(1));
    assert!(text(&refused).contains(&command), "{}", text(&refused));
    assert_eq!(content(&data), before, "nothing was changed");
}

#[test]
fn a_converted_ledger_says_what_it_said_before_and_a_gateway_goes_on_with_it() {
    let (folder, data) = old_ledger();
    let told = done(&["convert"], &data);
    assert!(told.contains("3 segments with 28 entries converted"), "{told}");
    check_answers(&data);
    let store = rusqlite::Connection::open(data.join("store.sqlite")).expect("open the store");
    let pages = |which: &str| {
        let pages = store.pragma_query_value(None, which, |row| row.get::<_, i64>(0));
        pages.expect("a number of pages")
    };
    assert!(pages("freelist_count") <= pages("page_count") / 10, "{}", pages("freelist_count"));
    drop(store);
    let output = run(&["verify"], &data);
    let report = text(&output);
    let wrong: Vec<_> = report.lines().filter(|line| line.starts_with("wrong")).collect();
    assert!(matches!(wrong[..], [only] if only.contains(OPEN)), "{report}");
    assert!(done(&["convert"], &data).contains("needs no conversion"));

    let engine = Engine::start();
    let gateway = Setup::before(&engine).start_in(folder);
    let all = gateway.await_records(10);
    let died = all.last().expect("a record");
    assert_eq!((&died["id"], &died["end"]), (&json!(OPEN), &json!("gateway_died")));
    assert_eq!(died["usage"]["source"], "counted", "it keeps its progress: {died}");
    let busy = run(&["convert"], &data);
    assert_eq!(busy.status.code(), Some(75), "{}", text(&busy));
    let _folder = Gateway::into_folder(gateway);
    let report = done(&["verify"], &data);
    assert!(report.contains("Nothing is wrong."), "{report}");
}

#[test]
fn the_store_keeps_what_the_journal_no_longer_has() {
    let (_folder, data) = old_ledger();
    // The store has the requests of the first file, so that may be gone.
    fs::remove_file(&segments(&data)[0]).expect("remove a file");
    let told = done(&["convert"], &data);
    assert!(told.contains("the store is converted: 9 records and 3 corrections"), "{told}");
    check_answers(&data);
}

#[test]
fn damage_stops_the_conversion_unless_it_is_to_be_left_out() {
    let (_folder, data) = old_ledger();
    let path = &segments(&data)[0];
    let mut bytes = fs::read(path).expect("a segment");
    // In the JSON of an entry in the middle.
    bytes[4000] ^= 1;
    fs::write(path, &bytes).expect("write");
    let before = content(&data);
    let refused = run(&["convert"], &data);
    assert_eq!(refused.status.code(), Some(1));
    let told = text(&refused);
    let name = path.display().to_string();
    assert!(told.contains(&name) && told.contains("payload check is"), "{told}");
    assert!(told.contains("nothing was changed"), "{told}");
    assert_eq!(content(&data), before);

    let told = done(&["convert", "--salvage"], &data);
    assert!(told.contains("cannot be read") && told.contains("converted"), "{told}");
    assert_eq!(fs::read(path.with_extension("tlj.damaged-0")).expect("it is kept"), bytes);
    // The store has the request all the same.
    check_answers(&data);
}
