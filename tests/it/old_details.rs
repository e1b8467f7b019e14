//! A ledger of which the single requests of a day are gone: bills stay, and who needs requests is told.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;
use std::process::Output;

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, ToSpan as _};
use serde_json::{Value, json};
use taximeter_ledger::{
    Checkpoint, Entry, Record, RecordCost, Reserve, Settled, gateway_died_record,
};
use taximeter_store::{GoneCause, SealPolicy, Sealer, Store, feeds};
use tempfile::TempDir;

use crate::engine::Engine;
use crate::gateway::{Setup, taximeter};
use crate::patience::patiently;
use crate::room::taken;
use crate::segments::write_journal;
use crate::volume::{Kind, Volume};

/// Requests of a day: each cost a cent.
const EACH_DAY: u32 = 10;
/// Waits for what a gateway does a minute after its start.
const WAITS: usize = 8;

/// A ledger with two days of a month that is over for long, of which the first one is gone.
struct Ledger {
    folder: TempDir,
    month: String,
    /// The second day.
    day: String,
}

impl Ledger {
    fn new() -> Self {
        Self::new_in(tempfile::tempdir().expect("a folder"))
    }

    fn new_in(folder: TempDir) -> Self {
        let made = fs::metadata(folder.path()).and_then(|folder| folder.modified());
        let now: Timestamp = made.expect("a time").try_into().expect("a time");
        let date = TimeZone::UTC.to_datetime(now).date().first_of_month();
        let first = date.checked_sub(2.months()).expect("a month");
        let begin = TimeZone::UTC.to_timestamp(first.at(0, 0, 0, 0)).expect("a time");
        let dir = folder.path().join("data");
        let hours = |hours| begin + SignedDuration::from_hours(hours);
        let mut entries = Vec::new();
        for number in 0..2 * EACH_DAY {
            let (day, hour) = (number / EACH_DAY, number % EACH_DAY);
            entries.extend(post(number, hours(24 * i64::from(day) + i64::from(hour))));
        }
        let settled = Some(Settled { at: now, until: now, request_seconds_max: 3600 });
        let checkpoint = Checkpoint { at: now, settled, ..Checkpoint::default() };
        entries.push(Entry::Checkpoint(Box::new(checkpoint)));
        write_journal(&dir, 1, &entries);
        let mut store = Store::open(&dir).expect("a store");
        store.catch_up(&mut feeds(&dir)).expect("to feed it");
        let mut sealer = Sealer::open(&dir, "gw").expect("a store").expect("no other sealer");
        let policy = SealPolicy { closed_until: hours(24 * 9), ..SealPolicy::default() };
        for _ in 0..2 {
            let newest = sealer.newest().expect("a number");
            sealer.work(&policy, newest, &|| true).expect("to seal");
        }
        let gone = sealer.remove_oldest_day(now, GoneCause::Age).expect("to remove a day");
        assert_eq!(gone.map(|gone| gone.requests), Some(EACH_DAY.into()));
        let day = first.tomorrow().expect("a day").to_string();
        Self { folder, month: first.strftime("%Y-%m").to_string(), day }
    }

    fn run(&self, words: &[&str]) -> Output {
        let dir = self.folder.path().join("data");
        let place = ["--data-dir", dir.to_str().expect("UTF-8")];
        taximeter(words.iter().chain(&place))
    }

    /// The bill of the month as JSON.
    fn bill(&self) -> Value {
        let made = self.run(&["bill", "--month", &self.month, "--json"]);
        assert!(made.status.success(), "{}", said(&made));
        serde_json::from_slice(&made.stdout).expect("JSON")
    }

    fn assert_refused(&self, words: &[&str]) {
        let refused = self.run(words);
        assert_eq!(refused.status.code(), Some(65), "{words:?}: {}", said(&refused));
        let date = format!("before {} (UTC) are gone", self.day);
        assert!(said(&refused).contains(&date), "{words:?}: {}", said(&refused));
    }
}

/// The post of a request that cost a cent.
pub(crate) fn post(number: u32, started_at: Timestamp) -> Vec<Entry> {
    let reserve = json!({
        "id": format!("0193e9a0-0000-7000-8000-{number:012}"),
        "request_id": format!("r-{number}"), "started_at": started_at, "tenant": "acme",
        "key_id": null, "identity": "unknown", "operation": "chat",
        "route": "/v1/chat/completions", "stream": true, "upstream": "e", "provider": "openai",
        "request_model": "gpt-4o-mini", "amount": null, "input_tokens": 1000, "output_tokens": 0
    });
    let reserve: Reserve = serde_json::from_value(reserve).expect("a reservation");
    let record = gateway_died_record(&reserve, Some(&reserve.admitted()), started_at, "gw");
    let cost: RecordCost = serde_json::from_value(json!({
        "currency": "USD", "amount": "0.01", "list_amount": "0.01", "price_id": "test@1#m",
        "lines": [{"meter": "input", "tokens": 1000, "unit_price": "0.00001", "amount": "0.01"}]
    }))
    .expect("a cost");
    let record = Record { cost: Some(cost), ..record };
    vec![Entry::Reserve(Box::new(reserve)), Entry::Post(Box::new(record))]
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

#[test]
fn bills_of_a_month_stay_and_say_until_when_there_are_details() {
    let ledger = Ledger::new();
    let bill = ledger.bill();
    assert_eq!((&bill["total"]["requests"], &bill["total"]["cost"]), (&json!(20), &json!("0.2")));
    assert_eq!(bill["period"]["details_from"], format!("{}T00:00:00Z", ledger.day));
    let words = format!("details until {}", ledger.day);
    for format in ["table", "csv"] {
        for by in [&[][..], &["--by", "tenant,day"]] {
            let asked = ["bill", "--month", &ledger.month, "--format", format];
            let made = ledger.run(&[&asked[..], by].concat());
            assert!(made.status.success() && said(&made).contains(&words), "{}", said(&made));
        }
    }
    let focus = ledger.run(&["bill", "--month", &ledger.month, "--format", "focus"]);
    assert!(focus.status.success(), "{}", said(&focus));
    // Neither without the database nor after a rebuild is anything else owed.
    let rebuilt = ledger.run(&["verify", "--rebuild"]);
    assert!(rebuilt.status.success(), "{}", said(&rebuilt));
    assert_eq!(ledger.bill(), bill);
    for name in ["store.sqlite", "store.sqlite-wal", "store.sqlite-shm"] {
        let _ = fs::remove_file(ledger.folder.path().join("data").join(name));
    }
    assert_eq!(ledger.bill(), bill);
}

#[test]
fn verify_says_by_digest_and_single_requests_are_refused() {
    let ledger = Ledger::new();
    let verified = ledger.run(&["verify"]);
    assert!(verified.status.success(), "{}", said(&verified));
    assert!(said(&verified).contains("by digest: 10 records"), "{}", said(&verified));
    let from = format!("{}-01", ledger.month);
    for format in ["ndjson", "cloudevents", "parquet"] {
        let words = ["bill", "--month", &ledger.month, "--format", format, "-o", "/dev/null"];
        ledger.assert_refused(&words);
    }
    ledger.assert_refused(&["records", "--from", &from]);
    ledger.assert_refused(&["records", "--from", &from, "--session", "s"]);
    ledger.assert_refused(&["bill", "--month", &ledger.month, "--by", "tenant,session"]);
    let focus = ["bill", "--month", &ledger.month, "--format", "focus", "--by", "end_user"];
    ledger.assert_refused(&focus);
    let kept = ledger.run(&["bill", "--from", &ledger.day, "--by", "tag:team", "--json"]);
    let kept: Value = serde_json::from_slice(&kept.stdout).expect("JSON");
    assert_eq!(
        (&kept["rows"][0]["requests"], &kept["rows"][0]["cost"]),
        (&json!(10), &json!("0.1"))
    );
    let book = ledger.folder.path().join("prices.yaml");
    fs::write(&book, "version: 2026-11-20\nmodels: []\n").expect("write prices");
    let book = book.to_str().expect("UTF-8");
    ledger.assert_refused(&["rerate", "--month", &ledger.month, "--book", book, "--dry-run"]);
    ledger.assert_refused(&["rerate", "--month", &ledger.month, "--book", book, "--reason", "x"]);
    // Without a period they begin at that day.
    let records = ledger.run(&["records"]);
    let lines = String::from_utf8(records.stdout).expect("UTF-8");
    assert_eq!(lines.lines().count(), EACH_DAY as usize);
    assert!(ledger.run(&["records", "--from", &ledger.day]).status.success());
}

#[test]
fn the_api_and_the_console_say_the_same() {
    let ledger = Ledger::new();
    let (engine, month, day) = (Engine::start(), ledger.month, ledger.day);
    let gateway = Setup::before(&engine).upstream("dialect: openai").start_in(ledger.folder);
    let usage = gateway.admin(&format!("/api/v1/usage?month={month}")).json();
    assert_eq!(usage["period"]["details_from"], format!("{day}T00:00:00Z"));
    assert_eq!(usage["total"]["requests"]["count"], 20);
    let gone = gateway.admin(&format!("/api/v1/records?month={month}"));
    assert_eq!(
        (gone.status(), gone.json()["type"].as_str()),
        (410, Some("urn:taximeter:problem:details_gone"))
    );
    let page = gateway.admin("/api/v1/records?order=oldest").json();
    assert_eq!(page["details_from"], format!("{day}T00:00:00Z"));
    assert_eq!(page["records"].as_array().map(Vec::len), Some(EACH_DAY as usize));
    for asked in ["export?format=ndjson", "usage?by=session", "export?format=focus&by=session"] {
        let gone = gateway.admin(&format!("/api/v1/{asked}&month={month}"));
        assert_eq!(gone.status(), 410, "{asked}: {}", gone.text());
    }
    let bill = gateway.admin(&format!("/bill?month={month}"));
    assert!(bill.text().contains(&format!("details until {day}")), "{}", bill.text());
    let requests = gateway.admin("/requests");
    assert!(requests.text().contains("Details until "), "{}", requests.text());
}

#[test]
fn a_start_without_room_removes_the_oldest_day_before_it_opens_the_ledger() {
    let ledger = Ledger::new();
    let (bill, month) = (ledger.bill(), ledger.month);
    // No segment may go: there is one.
    let most = taken(&ledger.folder.path().join("data")) * 100 / 97;
    let engine = Engine::start();
    let room = format!("ledger: {{dir_bytes_max: {most}}}");
    let setup = Setup::before(&engine).upstream("dialect: openai").with(&room);
    let gateway = setup.start_in(ledger.folder);
    let told = gateway.said_at_its_start("details_removed_for_room");
    assert_eq!((&told["requests"], &told["first_day"]), (&json!(EACH_DAY), &json!(ledger.day)));
    let place = |name: &str| gateway.began.iter().position(|event| event["event"] == name);
    assert!(place("details_removed_for_room") < place("ledger_opened"), "{:?}", gateway.began);
    let usage = gateway.admin(&format!("/api/v1/usage?month={month}")).json();
    assert_eq!(usage["total"]["requests"]["count"], bill["total"]["requests"]);
    let gone = gateway.admin(&format!("/api/v1/records?month={month}"));
    assert_eq!(gone.status(), 410, "{}", gone.text());
}

/// Ways in which the file of a day is not what was written, and what `verify` says of it.
fn damages(whole: &[u8]) -> [(Vec<u8>, &'static str); 3] {
    let mut flipped = whole.to_vec();
    flipped[whole.len() / 3] ^= 1;
    let cut = whole[..whole.len() / 2].to_vec();
    [(flipped, "row group 0: "), (cut, "footer: "), (Vec::new(), "footer: ")]
}

#[test]
fn a_damaged_day_is_named_by_all_that_needs_it_and_bills_stay_as_they_are() {
    let ledger = Ledger::new();
    let bill = ledger.bill();
    let name = format!("days/{}.parquet", ledger.day);
    let path = ledger.folder.path().join("data").join(&name);
    let whole = fs::read(&path).expect("a file of a day");
    let book = ledger.folder.path().join("prices.yaml");
    fs::write(&book, "version: 2026-11-20\nmodels: []\n").expect("write prices");
    let (book, day) = (book.to_str().expect("UTF-8"), &*ledger.day);
    let named = |words: &[&str]| {
        let failed = ledger.run(words);
        assert!(!failed.status.success(), "{words:?}: {}", said(&failed));
        assert!(said(&failed).contains(&name), "{words:?}: {}", said(&failed));
        said(&failed)
    };
    for (bytes, what) in damages(&whole) {
        fs::write(&path, bytes).expect("damage it");
        let report = named(&["verify"]);
        assert!(report.contains(&format!("of {day}: {what}")), "{report}");
        named(&["verify", "--rebuild"]);
        named(&["records", "--from", day]);
        for format in ["ndjson", "cloudevents", "parquet"] {
            named(&["bill", "--from", day, "--format", format, "-o", "/dev/null"]);
        }
        named(&["rerate", "--from", day, "--book", book, "--dry-run"]);
        assert_eq!(ledger.bill(), bill);
    }
    let engine = Engine::start();
    let (month, day) = (ledger.month, ledger.day);
    let gateway = Setup::before(&engine).upstream("dialect: openai").start_in(ledger.folder);
    for target in ["records?", "export?format=ndjson&"] {
        let failed = gateway.admin(&format!("/api/v1/{target}from={day}"));
        assert_eq!(failed.status(), 503, "{target}: {}", failed.text());
        assert!(failed.text().contains(&name), "{target}: {}", failed.text());
    }
    let usage = gateway.admin(&format!("/api/v1/usage?month={month}")).json();
    assert_eq!(usage["total"]["requests"]["count"], bill["total"]["requests"]);
    assert_eq!(gateway.admin("/healthz").status(), 200);
    // It is as before when the file is restored, without a restart.
    fs::write(&path, whole).expect("restore it");
    let page = gateway.admin(&format!("/api/v1/records?from={day}")).json();
    assert_eq!(page["records"].as_array().map(Vec::len), Some(EACH_DAY as usize), "{page}");
}

#[test]
fn on_a_volume_without_a_free_block_the_oldest_day_goes_all_the_same() {
    Kind::each(on_a_volume_without_a_free_block_the_oldest_day_goes_all_the_same, |kind| {
        if kind != Kind::Limits {
            fill(kind);
        }
    });
}

fn fill(kind: Kind) {
    let folder = tempfile::tempdir().expect("a folder");
    let volume = Volume::mount_around(kind, folder.path(), 24 << 10);
    let ledger = Ledger::new_in(folder);
    let (bill, month, day) = (ledger.bill(), ledger.month, ledger.day);
    let engine = Engine::start();
    let setup = Setup::before(&engine).upstream("dialect: openai");
    let gateway = volume.start(setup, ledger.folder);
    // A minute after its start it sees to it that the day can go.
    let hours = gateway.data_dir().join(format!("hours/{day}.parquet"));
    let store = gateway.data_dir().join("store.sqlite");
    let changed = |path: &Path| fs::metadata(path).and_then(|file| file.modified()).ok();
    let is_there = || changed(&hours).filter(|made| changed(&store).is_some_and(|it| it >= *made));
    assert!((0..WAITS).any(|_| patiently(is_there).is_some()), "its hours are in no file");
    // The directory itself takes all of it.
    let mut filler = File::create(gateway.data_dir().join("something else")).expect("a file");
    while filler.write_all(&[1; 4 << 10]).is_ok() {}
    filler.sync_all().expect("all of it on the volume");
    let told = gateway.await_event("details_removed_for_room");
    assert_eq!((&told["requests"], &told["first_day"]), (&json!(EACH_DAY), &json!(day)));
    assert_eq!(gateway.admin("/healthz").status(), 200);
    let usage = gateway.admin(&format!("/api/v1/usage?month={month}")).json();
    assert_eq!(usage["total"]["requests"]["count"], bill["total"]["requests"]);
    drop(filler);
    fs::remove_file(gateway.data_dir().join("something else")).expect("make room");
    gateway.await_ready(200);
}
