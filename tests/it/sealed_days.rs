//! Requests of days that are over leave SQLite for files, and nobody notices.

use std::fs;
use std::path::Path;

use jiff::{SignedDuration, Timestamp};

use crate::engine::Engine;
use crate::fixtures::{CHAT, CHAT_ANSWER};
use crate::gateway::{Gateway, Setup, taximeter};
use crate::http::json_answer;
use crate::patience::patiently;
use crate::segments::{age, plain_path, segments};

/// How much earlier the requests of the journal are made.
const EARLIER: SignedDuration = SignedDuration::from_hours(3 * 24);
/// Waits for a sealing: a minute after a request was stored it may leave.
const WAITS: usize = 8;
/// Requests of days that are over.
const SEALED: usize = 40;
const SMALL_FILES: &str = "limits: {ledger_segment_bytes: 4096}";

fn serve(engine: &Engine, gateway: &Gateway, count: usize) {
    for _ in 0..count {
        let mut client = gateway.chat("Connection: close\r\n", CHAT);
        engine.answer_once(&json_answer(CHAT_ANSWER));
        assert_eq!(client.answer().status(), 200);
    }
}

fn said(words: &[&str], data_dir: &Path) -> String {
    let dir = data_dir.to_str().expect("UTF-8");
    let output = taximeter(words.iter().chain(&["--store", "sqlite", "--data-dir", dir]));
    let said = String::from_utf8(output.stdout).expect("UTF-8");
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    said
}

#[test]
fn a_gateway_seals_days_that_are_over_and_answers_as_before() {
    let engine = Engine::start();
    let setup = || Setup::before(&engine).upstream("dialect: openai").with(SMALL_FILES);
    let gateway = setup().start();
    serve(&engine, &gateway, SEALED);
    gateway.await_records(SEALED);
    let folder = gateway.into_folder();
    let data_dir = folder.path().join("data");
    age(&data_dir, EARLIER);
    let old: Vec<_> = segments(&data_dir).iter().map(|path| plain_path(path)).collect();
    assert!(old.len() > 2, "{old:?}");
    let gateway = setup().start_in(folder);
    serve(&engine, &gateway, 2);
    let records = gateway.await_records(SEALED + 2);
    let bill = |gateway: &Gateway| {
        let year =
            ["bill", "--from", "2020-01-01", "--to", "2100-01-01", "--by", "tenant,model,day"];
        said(&[&year[..], &["--format", "csv"]].concat(), &gateway.data_dir())
    };
    let billed = bill(&gateway);
    let is_sealed = |_| patiently(|| gateway.has_said("ledger_sealed").then_some(())).is_some();
    assert!((0..WAITS).any(is_sealed), "nothing is sealed");
    let days = fs::read_dir(data_dir.join("days")).expect("a folder of days");
    let names: Vec<_> =
        days.map(|day| day.expect("a file").file_name().into_string().expect("UTF-8")).collect();
    let day =
        Timestamp::try_from(fs::metadata(&data_dir).and_then(|it| it.modified()).expect("now"));
    let day = (day.expect("a time") - EARLIER).strftime("%Y-%m-%d").to_string();
    assert!(names.contains(&format!("{day}.parquet")), "{names:?} of {day}");
    assert_eq!(gateway.records(), records);
    assert_eq!(bill(&gateway), billed);
    // Nobody needs their journal any more, but for the last segment.
    let gone = || {
        let left: Vec<_> = segments(&data_dir).iter().map(|path| plain_path(path)).collect();
        old.iter().rev().skip(1).all(|old| !left.contains(old)).then_some(())
    };
    assert!(patiently(gone).is_some(), "segments of sealed requests stay");
    serve(&engine, &gateway, 1);
    assert_eq!(gateway.await_records(SEALED + 3)[..SEALED + 2], records);
    let report = said(&["verify"], &data_dir);
    assert!(report.contains(&format!("days: 1 files of {SEALED} records")), "{report}");
    let folder = gateway.into_folder();
    // A store that is lost has them from the file: the journal has them no longer.
    for name in ["store.sqlite", "store.sqlite-wal", "store.sqlite-shm"] {
        let _ = fs::remove_file(data_dir.join(name));
    }
    let gateway = setup().start_in(folder);
    assert_eq!(gateway.await_records(SEALED + 3)[..SEALED + 2], records);
}
