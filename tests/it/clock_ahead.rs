//! A clock that is far ahead of the ledger: nothing is removed by age until it was steady for a day.

use std::fs;
use std::path::Path;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use taximeter_ledger::{
    Checkpoint, EncodedEntry, Entry, Framer, LedgerId, Position, SegmentHeader,
};

use crate::engine::Engine;
use crate::fixtures::{CHAT, CHAT_ANSWER};
use crate::gateway::{Gateway, Setup};
use crate::http::json_answer;
use crate::patience::patiently;
use crate::segments::{plain_path, segments};

const KEPT_A_DAY: &str = "ledger: {records_keep_days: 1}\nlimits: {ledger_segment_bytes: 4096}";

fn before(engine: &Engine) -> Setup {
    Setup::before(engine).upstream("dialect: openai").with(KEPT_A_DAY)
}

/// Writes a journal of four files, of which the newest entry was made at `time`.
fn write_journal(dir: &Path, time: Timestamp) {
    fs::create_dir_all(dir).expect("make the directory");
    let ledger = LedgerId("5f3f0c3a-4c1e-4d55-9a6b-0d4a5e3c2b1a".parse().expect("a UUID"));
    let mut before = Position::START;
    for _ in 0..4 {
        let header = SegmentHeader {
            gateway: "gw".to_owned(),
            ledger,
            before,
            lost: 0,
            has_sync_marks: false,
            follows: None,
            created: time,
        };
        let (mut bytes, mut payload) = (Vec::new(), Vec::new());
        header.encode(&mut bytes);
        let checkpoint = Checkpoint {
            at: time,
            posts: 0,
            voids: 0,
            corrections: 0,
            costs: Default::default(),
            unknown_cost: 0,
            oldest_open: None,
            pending: Vec::new(),
            settled: None,
        };
        let mut framer = Framer::new(ledger, before);
        let entry = Entry::Checkpoint(Box::new(checkpoint));
        framer.append(&EncodedEntry::new(&entry, &mut payload).expect("an entry"), &mut bytes);
        fs::write(dir.join(format!("journal-{:020}.tlj", before.seq + 1)), bytes)
            .expect("write a segment");
        before = framer.last();
    }
}

/// The time at which this folder was made, which is now.
fn now(folder: &Path) -> Timestamp {
    let made = fs::metadata(folder).and_then(|folder| folder.modified()).expect("a time");
    made.try_into().expect("a time")
}

fn status(gateway: &Gateway) -> Value {
    gateway.admin("/api/v1/status").json()["ledger"].clone()
}

fn first_segment(gateway: &Gateway) -> String {
    let first = segments(&gateway.data_dir()).into_iter().next().expect("a segment");
    plain_path(&first).file_name().expect("a name").to_string_lossy().into_owned()
}

/// Serves a request, and waits until the store has it: old files go behind that.
fn serve(engine: &Engine, gateway: &Gateway) {
    let before = gateway.admin("/api/v1/status").json()["ledger"]["entries"].as_u64();
    let mut client = gateway.chat("", CHAT);
    engine.answer_once(&json_answer(CHAT_ANSWER));
    assert_eq!(client.answer().status(), 200);
    let is_fed = || {
        let status = gateway.admin("/api/v1/status").json();
        let grown = status["ledger"]["entries"].as_u64() > before;
        (grown && status["store"]["pending_entries"] == 0).then_some(())
    };
    assert!(patiently(is_fed).is_some(), "the store lacks the request");
}

#[test]
fn a_start_with_the_clock_far_ahead_removes_nothing_tells_it_and_goes_on_after_a_restart() {
    let engine = Engine::start();
    let folder = tempfile::tempdir().expect("a temporary folder");
    // To the ledger, the clock of this machine is 500 days ahead.
    let newest = now(folder.path()) - SignedDuration::from_hours(24 * 500);
    write_journal(&folder.path().join("data"), newest);
    let mut gateway = before(&engine).start_in(folder);
    for _ in 0..2 {
        // The store may be fed for the first time before the gateway listens.
        let began = gateway.began.iter().find(|event| event["event"] == "clock_ahead").cloned();
        let event = began.unwrap_or_else(|| gateway.await_event("clock_ahead"));
        assert_eq!(event["level"], "warn");
        let told: Timestamp =
            event["newest_entry"].as_str().and_then(|it| it.parse().ok()).expect("a time");
        assert!(told.duration_since(newest).abs() < SignedDuration::from_hours(1), "{event}");
        gateway.await_metric("taximeter_ledger_clock_ahead 1");
        for _ in 0..2 {
            serve(&engine, &gateway);
        }
        let status = status(&gateway);
        let why = status["retention_waits"].as_str().expect("a reason");
        assert!(why.contains("the newest entry of the ledger is from") && why.contains("minutes"));
        assert_eq!(first_segment(&gateway), "journal-00000000000000000001.tlj");
        // By now the newest entry is of this clock.
        gateway = before(&engine).start_in(gateway.kill());
    }
}

#[test]
fn a_clock_that_is_near_the_newest_entry_removes_what_is_old_at_once() {
    let engine = Engine::start();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let data_dir = folder.path().join("data");
    write_journal(&data_dir, now(folder.path()) - SignedDuration::from_hours(24 * 500));
    // A gateway looked at the clock an hour ago.
    let looked = now(folder.path()) - SignedDuration::from_hours(1);
    fs::write(data_dir.join("clock.trust"), format!("{looked} {looked} right\n"))
        .expect("write the file");
    let gateway = before(&engine).start_in(folder);
    let gone = || (first_segment(&gateway) != "journal-00000000000000000001.tlj").then_some(());
    assert!(patiently(gone).is_some(), "the oldest file stays");
    assert_eq!(status(&gateway)["retention_waits"], Value::Null);
    assert!(!gateway.metrics().contains("taximeter_ledger_clock_ahead 1"));
}
