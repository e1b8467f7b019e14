//! A clock that is far ahead of the ledger: nothing is removed by age until it was steady for a day.

use std::fs;
use std::path::{Path, PathBuf};

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use tempfile::TempDir;

use crate::engine::Engine;
use crate::fixtures::{CHAT, CHAT_ANSWER};
use crate::gateway::{Gateway, Setup, taximeter};
use crate::http::json_answer;
use crate::patience::patiently;
use crate::segments::age;

/// How old the ledger is.
const AGE: SignedDuration = SignedDuration::from_hours(24 * 3);
/// How far the clock is ahead.
const AHEAD: SignedDuration = SignedDuration::from_hours(24 * 500);
/// Requests that it has.
const OLD: usize = 3;
/// Waits for the files of days: a minute after a request was stored it may leave.
const WAITS: usize = 8;

fn before(engine: &Engine, keep_days: u32) -> Setup {
    let kept = format!("ledger: {{records_keep_days: {keep_days}}}");
    Setup::before(engine).upstream("dialect: openai").with(&kept)
}

/// A ledger of some requests that are three days old, and are in a file of their day.
fn old_ledger(engine: &Engine) -> TempDir {
    let gateway = before(engine, 400).start();
    (0..OLD).for_each(|_| serve(engine, &gateway));
    let folder = gateway.kill();
    age(&folder.path().join("data"), AGE);
    let gateway = before(engine, 400).start_in(folder);
    serve(engine, &gateway);
    await_said(&gateway, "ledger_sealed");
    assert_eq!(gateway.records().len(), OLD + 1);
    gateway.kill()
}

/// A gateway has last looked at the clock at `looked`, and it was right.
fn looked_at(folder: &TempDir, looked: Timestamp) {
    fs::write(folder.path().join("data/clock.trust"), format!("{looked} {looked} right\n"))
        .expect("write the file");
}

/// The time at which this folder was made, which is now.
fn now(folder: &Path) -> Timestamp {
    let made = fs::metadata(folder).and_then(|folder| folder.modified()).expect("a time");
    made.try_into().expect("a time")
}

fn status(gateway: &Gateway) -> Value {
    gateway.admin("/api/v1/status").json()["ledger"].clone()
}

/// Serves a request, and waits until the store has it.
fn serve(engine: &Engine, gateway: &Gateway) {
    let before = gateway.admin("/api/v1/status").json()["ledger"]["entries"].as_u64();
    let mut client = gateway.chat("Connection: close\r\n", CHAT);
    engine.answer_once(&json_answer(CHAT_ANSWER));
    assert_eq!(client.answer().status(), 200);
    let is_fed = || {
        let status = gateway.admin("/api/v1/status").json();
        let grown = status["ledger"]["entries"].as_u64() > before;
        (grown && status["store"]["pending_entries"] == 0).then_some(())
    };
    assert!(patiently(is_fed).is_some(), "the store lacks the request");
}

/// Files of whole days. What they have replaced goes a minute later.
fn days(gateway: &Gateway) -> Vec<PathBuf> {
    let Ok(files) = fs::read_dir(gateway.data_dir().join("days")) else { return Vec::new() };
    let paths = files.map(|file| file.expect("a file").path());
    let is_day = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.ends_with(".parquet") && !name.contains("part")
    };
    paths.filter(is_day).collect()
}

fn await_said(gateway: &Gateway, event: &str) {
    let is_said = |_| patiently(|| gateway.has_said(event).then_some(())).is_some();
    assert!((0..WAITS).any(is_said), "no {event}");
}

fn bill(gateway: &Gateway) -> String {
    let dir = gateway.data_dir();
    let place = ["--store", "sqlite", "--data-dir", dir.to_str().expect("UTF-8")];
    let words = ["bill", "--from", "2020-01-01", "--to", "2100-01-01", "--format", "csv"];
    let output = taximeter(words.iter().chain(&place));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}

#[test]
fn a_start_with_the_clock_far_ahead_removes_nothing_tells_it_and_goes_on_after_a_restart() {
    let engine = Engine::start();
    let folder = old_ledger(&engine);
    // To the ledger, the clock of this machine is 500 days ahead.
    let newest = now(folder.path()) - AHEAD;
    looked_at(&folder, newest);
    let mut gateway = before(&engine, 1).start_in(folder);
    for start in 2..4 {
        // The store may be fed for the first time before the gateway listens.
        let began = gateway.began.iter().find(|event| event["event"] == "clock_ahead").cloned();
        let event = began.unwrap_or_else(|| gateway.await_event("clock_ahead"));
        assert_eq!(event["level"], "warn");
        let told: Timestamp =
            event["newest_entry"].as_str().and_then(|it| it.parse().ok()).expect("a time");
        assert!(told.duration_since(newest).abs() < SignedDuration::from_hours(1), "{event}");
        gateway.await_metric("taximeter_ledger_clock_ahead 1");
        serve(&engine, &gateway);
        let status = status(&gateway);
        let why = status["retention_waits"].as_str().expect("a reason");
        assert!(why.contains("the newest entry of the ledger is from") && why.contains("minutes"));
        // A look later.
        let more = patiently(|| gateway.has_said("details_retired").then_some(()));
        assert_eq!(more, None, "details go");
        assert_eq!((days(&gateway).len(), gateway.records().len()), (1, OLD + start));
        // By now the newest entry is of this clock.
        gateway = before(&engine, 1).start_in(gateway.kill());
    }
}

#[test]
fn a_clock_that_is_near_the_newest_entry_removes_what_is_old_and_bills_stay() {
    let engine = Engine::start();
    let folder = old_ledger(&engine);
    looked_at(&folder, now(folder.path()) - SignedDuration::from_hours(1));
    let gateway = before(&engine, 1).start_in(folder);
    serve(&engine, &gateway);
    let billed = bill(&gateway);
    await_said(&gateway, "details_retired");
    assert!(patiently(|| days(&gateway).is_empty().then_some(())).is_some(), "files stay");
    assert_eq!((gateway.records().len(), bill(&gateway)), (2, billed));
    assert_eq!(status(&gateway)["retention_waits"], Value::Null);
    gateway.await_metric("taximeter_ledger_details_removed_total{taximeter_cause=\"age\"} 3");
    assert!(!gateway.metrics().contains("taximeter_ledger_clock_ahead 1"));
}
