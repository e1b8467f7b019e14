//! A month is final once every gateway has written past it, and a final statement never changes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, ToSpan as _};
use serde_json::{Value, json};
use taximeter_ledger::{
    Checkpoint, Entry, Record, RecordCost, Reserve, Settled, gateway_died_record,
};
use taximeter_tests::postgres::{Server, shared};

use crate::engine::Engine;
use crate::gateway::{Gateway, Setup, taximeter};
use crate::patience::patiently;
use crate::segments::write_journal;

/// A month that is over for long: its name, and its end.
struct Month {
    name: String,
    end: Timestamp,
    now: Timestamp,
}

impl Month {
    /// The one before the last. The folder was made now.
    fn before(folder: &Path) -> Self {
        let made = fs::metadata(folder).and_then(|folder| folder.modified()).expect("a time");
        let now: Timestamp = made.try_into().expect("a time");
        let this = TimeZone::UTC.to_datetime(now).date().first_of_month();
        let end = this.checked_sub(1.month()).expect("a month");
        let month = end.checked_sub(1.month()).expect("a month");
        let end = TimeZone::UTC.to_timestamp(end.at(0, 0, 0, 0)).expect("a time");
        Self { name: month.strftime("%Y-%m").to_string(), end, now }
    }

    /// So many seconds after its end.
    fn at(&self, seconds: i64) -> Timestamp {
        self.end + SignedDuration::from_secs(seconds)
    }
}

fn reserve(number: u8, started_at: Timestamp) -> Reserve {
    let reserve = json!({
        "id": format!("0193e9a0-0000-7000-8000-0000000000{number:02}"),
        "request_id": format!("r-{number}"), "started_at": started_at, "tenant": "acme",
        "key_id": null, "identity": "unknown", "operation": "chat",
        "route": "/v1/chat/completions", "stream": true, "upstream": "e", "provider": "openai",
        "request_model": "gpt-4o-mini", "amount": null, "input_tokens": 1000, "output_tokens": 0
    });
    serde_json::from_value(reserve).expect("a reservation")
}

/// The post of a request that cost a cent.
fn post(number: u8, started_at: Timestamp) -> Vec<Entry> {
    let reserve = reserve(number, started_at);
    let record = gateway_died_record(&reserve, Some(&reserve.admitted()), started_at, "gw");
    let cost: RecordCost = serde_json::from_value(json!({
        "currency": "USD", "amount": "0.01", "list_amount": "0.01", "price_id": "test@1#m",
        "lines": [{"meter": "input", "tokens": 1000, "unit_price": "0.00001", "amount": "0.01"}]
    }))
    .expect("a cost");
    let record = Record { cost: Some(cost), ..record };
    vec![Entry::Reserve(Box::new(reserve)), Entry::Post(Box::new(record))]
}

/// What a gateway says: what was admitted before `until` has ended.
fn says(at: Timestamp, until: Timestamp) -> Entry {
    let settled = Some(Settled { at, until, request_seconds_max: 3600 });
    Entry::Checkpoint(Box::new(Checkpoint { at, settled, ..Checkpoint::default() }))
}

/// Where statements are made and checked: a data directory, or a database.
struct Desk<'a> {
    place: [&'a str; 2],
    folder: PathBuf,
    month: String,
}

impl Desk<'_> {
    fn run(&self, words: &[&str]) -> Output {
        taximeter(["verify"].iter().chain(&self.place).chain(words))
    }

    /// Makes the statement of acme: its file's content, and what was said beside it.
    fn state(&self, more: &[&str]) -> (String, String) {
        let key = self.folder.join("signing.pem");
        let key = key.to_str().expect("UTF-8");
        if !Path::new(key).exists() {
            let made = taximeter(["keys", "signing", "-o", key]);
            assert!(made.status.success());
            fs::write(self.folder.join("public.pem"), made.stdout).expect("write the public key");
        }
        let words = ["--statement", "acme", "--month", self.month.as_str(), "--signing-key", key];
        let made = self.run(&[&words[..], more].concat());
        let told = String::from_utf8(made.stderr).expect("UTF-8");
        assert!(made.status.success(), "{told}");
        (String::from_utf8(made.stdout).expect("UTF-8"), told)
    }

    /// Checks a statement, which is right.
    fn check(&self, text: &str) -> String {
        let (file, key) = (self.folder.join("acme.json"), self.folder.join("public.pem"));
        fs::write(&file, text).expect("write it");
        let [file, key] = [&file, &key].map(|path| path.to_str().expect("UTF-8"));
        let checked = self.run(&["--statement", file, "--public-key", key]);
        let told = String::from_utf8(checked.stdout).expect("UTF-8");
        assert!(checked.status.success(), "{told}");
        assert!(told.contains("The signature is right"), "{told}");
        told
    }

    fn bill(&self) -> Value {
        let words = ["bill", "--month", self.month.as_str(), "--json"];
        let bill = taximeter(words.iter().chain(&self.place));
        serde_json::from_slice(&bill.stdout).expect("a bill")
    }

    fn heading(&self) -> String {
        let words = ["bill", "--month", self.month.as_str(), "--by", "tenant"];
        let bill = taximeter(words.iter().chain(&self.place));
        let text = String::from_utf8(bill.stdout).expect("UTF-8");
        text.lines().next().unwrap_or_default().to_owned()
    }
}

fn statement(text: &str) -> Value {
    serde_json::from_str::<Value>(text).expect("JSON")["statement"].take()
}

#[test]
fn streams_that_were_open_over_the_end_of_a_month_are_a_difference_to_what_was_signed() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (data, month) = (folder.path().join("data"), Month::before(folder.path()));
    // The gateway was killed 20 seconds after the month, with three streams open.
    let mut entries = post(1, month.at(-3600));
    entries.extend((2..5).map(|n| Entry::Reserve(Box::new(reserve(n, month.at(-30))))));
    let Entry::Checkpoint(said) = says(month.at(20), month.at(-30)) else {
        panic!("no checkpoint")
    };
    let said = Checkpoint { posts: 1, oldest_open: Some(3), ..*said };
    entries.push(Entry::Checkpoint(Box::new(said)));
    write_journal(&data, 7, &entries);
    let path = data.to_str().expect("UTF-8").to_owned();
    let desk = Desk {
        place: ["--data-dir", &path],
        folder: folder.path().to_owned(),
        month: month.name.clone(),
    };
    // It has been silent for weeks.
    let silent = json!([{"gateway": "gw", "since": month.at(20)}]);
    let bill = desk.bill();
    assert_eq!((&bill["period"]["status"], &bill["period"]["silent"]), (&json!("final"), &silent));
    assert!(
        desk.heading().contains("final; not waited for: gw has been silent since"),
        "{}",
        desk.heading()
    );
    let (first, _) = desk.state(&[]);
    let stated = statement(&first);
    assert_eq!((&stated["number"], &stated["requests"]), (&json!(1), &json!(1)));
    assert_eq!((&stated["totals"]["USD"], &stated["silent"]), (&json!("0.01"), &silent));
    let told = desk.check(&first);
    assert!(told.starts_with("Statement no. 1 of acme "), "{told}");
    assert!(!told.contains("no. 2"), "{told}");

    // Its next start settles the three, which belong to the month of their admission.
    let engine = Engine::start();
    let setup = || Setup::before(&engine).upstream("dialect: openai");
    let gateway = setup().start_in(folder);
    let usage = || gateway.admin(&format!("/api/v1/usage?month={}", month.name)).json();
    // Both say until when it has written, and it goes on writing.
    let is_fed = || {
        let (bill, usage) = (desk.bill(), usage());
        let are_same = usage["period"]["waits_for"] == bill["period"]["waits_for"];
        (bill["total"]["requests"] == 4 && are_same).then_some((bill, usage))
    };
    let (bill, usage) =
        patiently(is_fed).unwrap_or_else(|| panic!("not the same: {} {}", desk.bill(), usage()));
    // It says the time that it knows without its clock, which is weeks ahead of its newest entry.
    assert_eq!(bill["period"]["status"], "provisional");
    assert_eq!(usage["period"]["status"], "provisional");
    let (again, said) = desk.state(&[]);
    assert_eq!(again, first, "it never changes");
    assert!(
        said.contains("Statement no. 2 is due, with a difference of ")
            && said.contains(" and 3 requests; it is provisional: waits for "),
        "{said}"
    );
    let told = desk.check(&first);
    assert!(told.contains("Statement no. 2 is due, with a difference of "), "{told}");

    // What is recorded outlives the store, and is in a backup.
    let folder = gateway.kill();
    assert!(desk.run(&["--rebuild"]).status.success());
    assert_eq!(desk.state(&[]).0, first);
    let copy = folder.path().join("copy");
    let copy = copy.to_str().expect("UTF-8");
    assert!(taximeter(["backup", copy, "--data-dir", &path]).status.success());
    let copied = Desk {
        place: ["--data-dir", copy],
        folder: desk.folder.clone(),
        month: desk.month.clone(),
    };
    assert_eq!(copied.state(&["--number", "1"]).0, first);
}

/// A gateway that feeds this database from a folder of its own.
fn start(engine: &Engine, url: &str, number: u8, entries: &[Entry]) -> Gateway {
    let folder = tempfile::tempdir().expect("a temporary folder");
    write_journal(&folder.path().join("data"), number, entries);
    let setup = Setup::before(engine).upstream("dialect: openai");
    setup.with(&format!("ledger: {{store: \"{url}\"}}")).start_in(folder)
}

fn await_requests(server: &Server, database: &str, count: u32) {
    let found = || server.ask(database, "SELECT count(*) FROM taximeter.requests").ok();
    let there = patiently(|| found().filter(|found| found.trim() == count.to_string()));
    assert!(there.is_some(), "{:?} of {count} requests are there", found());
}

#[test]
fn a_gateway_of_a_shared_database_that_was_down_is_waited_for_named_and_stated_apart() {
    let server = shared().expect("a PostgreSQL server");
    let database = server.database().expect("a database");
    let url = server.url(&database);
    let (engine, folder) = (Engine::start(), tempfile::tempdir().expect("a temporary folder"));
    let month = Month::before(folder.path());
    let lately = month.now - SignedDuration::from_mins(2);
    let mut entries = post(1, month.at(-3600));
    entries.push(says(lately, lately));
    let _one = start(&engine, &url, 1, &entries);
    await_requests(&server, &database, 1);
    let desk = Desk {
        place: ["--store", &url],
        folder: folder.path().to_owned(),
        month: month.name.clone(),
    };
    assert!(desk.heading().ends_with(", final"), "{}", desk.heading());
    let (first, _) = desk.state(&[]);
    assert_eq!(statement(&first)["totals"]["USD"], "0.01");

    // Another one comes back, with two requests of the month.
    let mut entries = [post(2, month.at(-60)), post(3, month.at(-30))].concat();
    entries.push(says(lately, lately));
    let other = start(&engine, &url, 2, &entries);
    await_requests(&server, &database, 3);
    let due = "Statement no. 2 is due, with a difference of 0.02 USD and 2 requests; it is final.";
    assert!(desk.check(&first).contains(due), "{}", desk.check(&first));
    let (second, said) = desk.state(&[]);
    assert_eq!(said, "This is statement no. 2: the difference to no. 1.\n");
    let difference = statement(&second);
    assert_eq!((&difference["number"], &difference["follows"]["number"]), (&json!(2), &json!(1)));
    assert_eq!(difference["totals"]["USD"], "0.02");
    assert_eq!(desk.state(&[]), (second.clone(), String::new()));
    assert_eq!(desk.state(&["--number", "1"]).0, first);
    let came = "Statement no. 2 came later, with a difference of 0.02 USD and 2 requests.";
    assert!(desk.check(&first).contains(came), "{}", desk.check(&first));
    assert!(!desk.check(&second).contains("no. 3"));

    // It is down again, as if it had been so since an hour before the end of the month.
    let dir = other.data_dir().canonicalize().expect("a directory").display().to_string();
    let _folder = other.kill();
    let until = month.at(-3600).as_microsecond();
    let age = |hours: i64| {
        let heard = (month.now - SignedDuration::from_hours(hours)).as_microsecond();
        let aged = format!(
            "UPDATE taximeter.reached SET heard = {heard}, said_at = {until}, settled_until = {until}
             WHERE gateway LIKE '%{dir}' RETURNING 1"
        );
        assert!(server.ask(&database, &aged).expect("an answer").starts_with('1'));
    };
    age(3);
    let waits = desk.heading();
    assert!(waits.contains("provisional: waits for ") && waits.contains(&dir), "{waits}");
    age(30);
    let silent = desk.heading();
    assert!(silent.contains("final; not waited for: ") && silent.contains(&dir), "{silent}");
    assert_eq!(desk.state(&[]), (second, String::new()));
}
