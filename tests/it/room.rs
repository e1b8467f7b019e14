//! The room of the data directory: what goes early where there is little of it, and what is told.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use rusqlite::Connection;
use serde_json::Value;
use tempfile::TempDir;

use crate::engine::Engine;
use crate::fixtures::{CHAT, CHAT_ANSWER};
use crate::gateway::{Gateway, Setup, taximeter};
use crate::http::json_answer;
use crate::patience::patiently;
use crate::segments::{plain_path, segments};
use crate::volume::{Kind, Volume};

const VOLUME_KIB: u64 = 12 << 10;
/// Enough for the store to have some hours and forms, and the journal some files.
const REQUESTS: usize = 150;
const SMALL_FILES: &str = "limits: {ledger_segment_bytes: 4096}";

fn before(engine: &Engine) -> Setup {
    Setup::before(engine).upstream("dialect: openai").with(SMALL_FILES)
}

fn chat(engine: &Engine, gateway: &Gateway) {
    static NUMBER: AtomicUsize = AtomicUsize::new(0);
    // A long name fills the files sooner.
    let id = format!("x-request-id: {:0>128}\r\n", NUMBER.fetch_add(1, Relaxed));
    let mut client = gateway.chat(&format!("Connection: close\r\n{id}"), CHAT);
    engine.answer_once(&json_answer(CHAT_ANSWER));
    assert_eq!(client.answer().status(), 200);
}

/// Serves requests, and waits until the store has them.
fn serve(engine: &Engine, gateway: &Gateway, requests: usize) {
    for _ in 0..requests {
        chat(engine, gateway);
    }
    let is_fed = || (status(gateway, "/store/pending_entries") == 0).then_some(());
    assert!(patiently(is_fed).is_some(), "the store lacks requests");
}

/// Waits until the files of the journal are compressed, so that each takes about as much.
fn await_compressed(gateway: &Gateway) {
    let data = gateway.data_dir();
    let plain = |path: &PathBuf| *path == plain_path(path);
    let is_compressed =
        || (segments(&data).iter().filter(|it| plain(it)).count() < 2).then_some(());
    assert!(patiently(is_compressed).is_some(), "{:?}", segments(&data));
}

fn status(gateway: &Gateway, pointer: &str) -> Value {
    gateway.admin("/api/v1/status").json().pointer(pointer).cloned().unwrap_or_default()
}

fn number(gateway: &Gateway, pointer: &str) -> Option<u64> {
    patiently(|| status(gateway, pointer).as_u64())
}

fn names(data: &Path) -> Vec<PathBuf> {
    segments(data).iter().map(|path| plain_path(path)).collect()
}

/// How many of these files are gone.
fn gone(gateway: &Gateway, before: &[PathBuf]) -> usize {
    let now = names(&gateway.data_dir());
    before.iter().filter(|name| !now.contains(name)).count()
}

/// Ends the gateway. Nothing is wrong with its ledger, which has so many requests.
fn assert_whole(mut gateway: Gateway, requests: usize) {
    assert_eq!(gateway.await_records(requests).len(), requests);
    gateway.terminate();
    let (status, said) = gateway.exit();
    assert!(status.success(), "{said:#?}");
    let data = gateway.data_dir();
    let verified = taximeter(["verify", "--data-dir", data.to_str().expect("UTF-8")]);
    let said = String::from_utf8_lossy(&verified.stdout);
    assert!(verified.status.success() && said.contains("Nothing is wrong."), "{said}");
}

#[test]
fn where_others_fill_the_volume_a_tenth_of_the_history_goes_and_that_is_told_at_once() {
    let test = where_others_fill_the_volume_a_tenth_of_the_history_goes_and_that_is_told_at_once;
    Kind::each(test, |kind| {
        if kind != Kind::Limits {
            // A sixth of the room is left.
            filled_by_others(kind, |volume, data| volume.fill(taken(data) / 5 / 1_024));
            filled_by_others(kind, |volume, _| volume.leave_inodes(6));
        }
    });
}

fn filled_by_others(kind: Kind, fill: impl Fn(&Volume, &Path)) {
    let engine = Engine::start();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let volume = Volume::mount_around(kind, folder.path(), VOLUME_KIB);
    let mut gateway = volume.start(before(&engine), folder);
    serve(&engine, &gateway, REQUESTS);
    await_compressed(&gateway);
    let all = names(&gateway.data_dir());
    assert!(all.len() > 11, "{all:?}");
    assert_eq!(number(&gateway, "/ledger/inodes_left").map(|left| left > 6), Some(true));
    fill(&volume, &gateway.data_dir());
    let event = gateway.await_event("volume_filled_by_others");
    assert_eq!(event["level"], "warn", "{event}");
    let first = all[0].to_str().expect("UTF-8");
    assert!(event["first"].as_str().is_some_and(|path| path.contains(first)), "{event}");
    assert!(event["hint"].as_str().is_some_and(|hint| hint.contains("other files")), "{event}");
    let removed = gone(&gateway, &all);
    let removable = all.len() - 1;
    assert!((1..=removable / 10).contains(&removed), "{removed} of {removable}");
    assert_eq!(event["files"], removed, "{event}");
    assert_eq!(event["remaining_files"], removable - removed, "{event}");
    let metric = r#"taximeter_ledger_history_removed_total{taximeter_cause="others"}"#;
    gateway.await_metric(&format!("{metric} {removed}"));
    // It is served all the same, and a restart begins no new day.
    chat(&engine, &gateway);
    gateway = volume.start(before(&engine), gateway.kill());
    let is_fed = || (!status(&gateway, "/store/fed_at").is_null()).then_some(());
    assert!(patiently(is_fed).is_some(), "{}", status(&gateway, "/store"));
    assert_eq!(gone(&gateway, &all), removed);
    assert!(!gateway.began.iter().any(|event| event["event"] == "volume_filled_by_others"));
    volume.empty(&gateway);
    assert_whole(gateway, REQUESTS + 1);
}

#[test]
fn where_the_directory_fills_its_room_as_much_goes_as_is_needed_and_no_more() {
    let test = where_the_directory_fills_its_room_as_much_goes_as_is_needed_and_no_more;
    Kind::each(test, |kind| {
        if kind != Kind::Limits {
            fill_it_ourselves(kind, "");
        }
        fill_it_ourselves(Kind::Limits, "ledger: {dir_bytes_max: 8388608}");
    });
}

fn fill_it_ourselves(kind: Kind, section: &str) {
    let engine = Engine::start();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let volume = Volume::mount_around(kind, folder.path(), VOLUME_KIB);
    let gateway = volume.start(before(&engine).with(section), folder);
    serve(&engine, &gateway, REQUESTS);
    await_compressed(&gateway);
    let all = names(&gateway.data_dir());
    // The last look has seen all of it.
    let is_seen = || {
        let seen = status(&gateway, "/ledger/dir_bytes").as_u64();
        (seen == Some(taken(&gateway.data_dir()))).then_some(())
    };
    assert!(patiently(is_seen).is_some(), "{}", status(&gateway, "/ledger"));
    let most = number(&gateway, "/ledger/dir_bytes_max").expect("a limit");
    let left = || number(&gateway, "/ledger/dir_bytes_left").expect("a limit");
    let mut filler = File::create(gateway.data_dir().join("something else")).expect("a file");
    let goes = patiently(|| {
        let before = left();
        if gone(&gateway, &all) > 0 || before <= most / 5 {
            return (gone(&gateway, &all) > 0).then_some(());
        }
        let taken = number(&gateway, "/ledger/dir_bytes").expect("a number");
        // As far as it is known, and a little more.
        let more = vec![1; usize::try_from(before - most / 5).expect("small") + 1_024];
        filler.write_all(&more).and_then(|()| filler.sync_all()).expect("room");
        // A look may have seen a part of it.
        let all_of_it = taken + more.len() as u64;
        patiently(|| status(&gateway, "/ledger/dir_bytes").as_u64().filter(|it| *it >= all_of_it));
        None
    });
    assert!(goes.is_some(), "{:?}", status(&gateway, "/ledger"));
    let made = gateway.await_event("ledger_made_room");
    assert_eq!(made["level"], "info");
    let removed = gone(&gateway, &all);
    let told = status(&gateway, "/ledger");
    assert!((1..all.len() * 2 / 3).contains(&removed), "{removed} of {}: {made} {told}", all.len());
    assert!(left() > most / 5);
    gateway.await_ready(200);
    chat(&engine, &gateway);
    assert!(!gateway.has_said("volume_filled_by_others") && !gateway.has_said("ledger_full"));
    fs::remove_file(gateway.data_dir().join("something else")).expect("make room");
    assert_whole(gateway, REQUESTS + 1);
}

#[test]
fn room_is_made_while_new_requests_are_refused() {
    let engine = Engine::start();
    let gateway = before(&engine).with("ledger: {dir_bytes_max: 8388608}").start();
    serve(&engine, &gateway, REQUESTS);
    let all = names(&gateway.data_dir());
    let filler = gateway.data_dir().join("something else");
    fs::write(&filler, vec![1; 8 << 20]).expect("fill it");
    gateway.await_event("ledger_full");
    gateway.await_ready(503);
    let are_gone = || (gone(&gateway, &all) == all.len() - 1).then_some(());
    assert!(patiently(are_gone).is_some(), "{:?}", names(&gateway.data_dir()));
    assert_eq!(gateway.admin("/readyz").status(), 503);
    fs::remove_file(filler).expect("make room");
    gateway.await_ready(200);
    chat(&engine, &gateway);
    assert_whole(gateway, REQUESTS + 1);
}

#[test]
fn a_start_makes_room_where_the_directory_takes_nearly_all_that_it_may() {
    let engine = Engine::start();
    let (folder, all) = killed(&engine);
    let most = taken(&folder.path().join("data")) * 100 / 97;
    let limit = format!("ledger: {{dir_bytes_max: {most}}}");
    let gateway = before(&engine).with(&limit).start_in(folder);
    let made = gateway.said_at_its_start("ledger_made_room");
    assert_eq!(made["files"], gone(&gateway, &all), "{made}");
    let opened = gateway.began.iter().position(|event| event["event"] == "ledger_opened");
    let made = gateway.began.iter().position(|event| event["event"] == "ledger_made_room");
    assert!(made < opened, "{:?}", gateway.began);
    gateway.await_ready(200);
    chat(&engine, &gateway);
    assert_whole(gateway, REQUESTS + 1);
}

#[test]
fn a_directory_that_takes_what_it_may_is_served_on_where_that_is_wanted() {
    let engine = Engine::start();
    let section = "ledger: {unavailable: serve, dir_bytes_max: 4194304}";
    let gateway = before(&engine).with(section).start();
    fs::write(gateway.data_dir().join("something else"), vec![1; 5 << 20]).expect("fill it");
    gateway.await_event("ledger_full");
    gateway.await_metric("taximeter_ledger_healthy 0");
    assert_eq!(gateway.admin("/readyz").status(), 200);
    chat(&engine, &gateway);
    assert_whole(gateway, 1);
}

/// A ledger in small files, whose gateway was killed; and these files.
fn killed(engine: &Engine) -> (TempDir, Vec<PathBuf>) {
    let gateway = before(engine).start();
    serve(engine, &gateway, REQUESTS);
    let folder = gateway.kill();
    let all = names(&folder.path().join("data"));
    assert!(all.len() > 11, "{all:?}");
    (folder, all)
}

/// The bytes of all files below a folder.
pub(crate) fn taken(dir: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt as _;
    let files = fs::read_dir(dir).expect("a folder").map(|file| file.expect("a file"));
    files
        .map(|file| match file.metadata().expect("it is there") {
            metadata if metadata.is_dir() => taken(&file.path()),
            metadata => metadata.blocks() * 512,
        })
        .sum()
}

#[test]
fn a_start_on_a_full_volume_makes_room_before_it_writes() {
    Kind::each(a_start_on_a_full_volume_makes_room_before_it_writes, |kind| {
        if kind != Kind::Limits {
            for inodes in [false, true] {
                for unavailable in ["refuse", "serve"] {
                    start_on_full(kind, inodes, unavailable);
                }
            }
        }
    });
}

fn start_on_full(kind: Kind, inodes: bool, unavailable: &str) {
    let engine = Engine::start();
    let setup = |durability: &str| {
        let ledger = format!("ledger: {{unavailable: {unavailable}, durability: {durability}}}");
        before(&engine).with(&ledger)
    };
    let folder = tempfile::tempdir().expect("a temporary folder");
    let volume = Volume::mount_around(kind, folder.path(), VOLUME_KIB);
    let gateway = volume.start(setup("os"), folder);
    serve(&engine, &gateway, 2 * REQUESTS);
    await_compressed(&gateway);
    let all = names(&gateway.data_dir());
    let folder = gateway.kill();
    if inodes {
        volume.leave_inodes(0);
    } else {
        volume.fill(0);
    }
    // A change of the promise begins a file.
    let gateway = volume.start(setup("group"), folder);
    let made = gateway.said_at_its_start("volume_filled_by_others");
    let removed = gone(&gateway, &all);
    assert_eq!(made["files"], removed, "{made}");
    assert!((2..=(all.len() - 1) / 10).contains(&removed), "{removed} of {}", all.len());
    let failed = |event: &Value| event["event"] == "ledger_write_failed";
    assert!(!gateway.began.iter().any(failed), "{:?}", gateway.began);
    assert_eq!(gateway.admin("/healthz").status(), 200);
    if inodes {
        gateway.await_ready(200);
        chat(&engine, &gateway);
    }
    volume.empty(&gateway);
    gateway.await_ready(200);
    chat(&engine, &gateway);
    assert_whole(gateway, 2 * REQUESTS + 1 + usize::from(inodes));
}

#[test]
fn a_start_removes_nothing_that_the_store_lacks_or_for_which_its_free_pages_have_room() {
    let engine = Engine::start();
    let (folder, all) = killed(&engine);
    let data = folder.path().join("data");
    let store = data.join("store.sqlite");
    let change = |statements: &str| {
        let connection = Connection::open(&store).expect("the store");
        connection.execute_batch(statements).expect("a change");
    };
    change(
        "CREATE TABLE other (content BLOB);
         WITH RECURSIVE number (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < 400)
         INSERT INTO other SELECT randomblob(10000) FROM number;
         DROP TABLE other; PRAGMA wal_checkpoint(TRUNCATE);",
    );
    let most = taken(&data) * 100 / 90;
    let limit = format!("ledger: {{dir_bytes_max: {most}}}");
    let gateway = before(&engine).with(&limit).start_in(folder);
    serve(&engine, &gateway, 1);
    let left = number(&gateway, "/ledger/dir_bytes_left");
    assert!(left.is_some_and(|left| left > most / 2), "{left:?} of {most}");
    assert_eq!(gone(&gateway, &all), 0);
    assert!(!gateway.has_said("ledger_made_room"));

    // A store that lacks all of it: only what is fed goes.
    let folder = gateway.kill();
    for file in ["store.sqlite", "store.sqlite-wal", "store.sqlite-shm"] {
        let _ = fs::remove_file(data.join(file));
    }
    let most = taken(&data) * 100 / 97;
    let limit = format!("ledger: {{dir_bytes_max: {most}}}");
    let gateway = before(&engine).with(&limit).start_in(folder);
    assert!(!gateway.began.iter().any(|event| event["event"] == "ledger_made_room"));
    assert_eq!(gateway.await_records(REQUESTS + 1).len(), REQUESTS + 1);
}

#[test]
fn a_reader_of_another_program_keeps_the_log_of_the_store_and_room_is_made_all_the_same() {
    let engine = Engine::start();
    let gateway = before(&engine).with("ledger: {dir_bytes_max: 8388608}").start();
    serve(&engine, &gateway, 10);
    let reader = Connection::open(gateway.data_dir().join("store.sqlite")).expect("the store");
    reader.execute_batch("BEGIN").expect("a transaction");
    let rows: i64 = reader
        .query_row("SELECT count(*) FROM sqlite_schema", (), |row| row.get(0))
        .expect("an answer");
    assert!(rows > 0);
    serve(&engine, &gateway, REQUESTS);
    let all = names(&gateway.data_dir());
    fs::write(gateway.data_dir().join("something else"), vec![1; 6 << 20]).expect("fill it");
    gateway.await_event("ledger_made_room");
    assert!(gone(&gateway, &all) > 0);
    gateway.await_ready(200);
    chat(&engine, &gateway);
    drop(reader);
    fs::remove_file(gateway.data_dir().join("something else")).expect("make room");
    assert_whole(gateway, REQUESTS + 11);
}

#[test]
fn the_days_left_are_unknown_until_they_are_known_and_then_told_everywhere() {
    let engine = Engine::start();
    let gateway = before(&engine).start();
    serve(&engine, &gateway, 1);
    assert!(number(&gateway, "/ledger/dir_bytes_max").is_some());
    assert!(number(&gateway, "/ledger/dir_bytes").is_some_and(|bytes| bytes > 0));
    for pointer in ["/ledger/days_left", "/ledger/bytes_a_day"] {
        assert_eq!(status(&gateway, pointer), Value::Null);
    }
    assert!(!gateway.metrics().contains("taximeter_ledger_days_left "));
    let page = |gateway: &Gateway| gateway.admin("/upstreams").text().to_owned();
    let days = "<dt>Days left at this rate</dt><dd>";
    assert!(page(&gateway).contains(&format!("{days}unknown</dd>")), "{}", page(&gateway));

    // Two hours ago there was nothing, says a file that outlives the process.
    let folder = gateway.kill();
    let file = folder.path().join("data/room.state");
    assert!(file.exists());
    fs::write(&file, "0 - 7200 0 7200 0\n").expect("write the file");
    let gateway = before(&engine).start_in(folder);
    let known = patiently(|| status(&gateway, "/ledger/days_left").as_f64());
    assert!(known.is_some_and(|days| days > 0.0), "{known:?}");
    let growth = status(&gateway, "/ledger/bytes_a_day").as_f64().expect("a number");
    let bytes = status(&gateway, "/ledger/dir_bytes").as_f64().expect("a number");
    assert!((growth / bytes - 12.0).abs() < 1.0, "{growth} for {bytes}");
    let is_told = || gateway.metrics().contains("taximeter_ledger_days_left ").then_some(());
    assert!(patiently(is_told).is_some());
    assert!(!page(&gateway).contains(&format!("{days}unknown</dd>")));
}
