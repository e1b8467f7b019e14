//! Records of old days leave a PostgreSQL database, and bills stay.

use std::fs;

use jiff::{SignedDuration, Timestamp};
use taximeter_tests::postgres::Server;

use crate::engine::Engine;
use crate::fixtures::{CHAT, CHAT_ANSWER};
use crate::gateway::{Gateway, Setup, taximeter};
use crate::http::json_answer;
use crate::patience::patiently;
use crate::segments::age;

/// How much older the first requests are made.
const EARLIER: SignedDuration = SignedDuration::from_hours(3 * 24);
const OLD: usize = 5;

fn serve(engine: &Engine, gateway: &Gateway, count: usize) {
    for _ in 0..count {
        let mut client = gateway.chat("Connection: close\r\n", CHAT);
        engine.answer_once(&json_answer(CHAT_ANSWER));
        assert_eq!(client.answer().status(), 200);
    }
}

fn bill(url: &str) -> String {
    let year = ["bill", "--from", "2020-01-01", "--to", "2100-01-01", "--format", "csv"];
    let output = taximeter(year.iter().chain(&["--store", url]));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}

#[test]
fn records_of_old_days_leave_the_database_and_bills_stay() {
    let server = Server::start(&[]).expect("a PostgreSQL server");
    let database = server.database().expect("a database");
    let url = server.url(&database);
    let count = || server.ask(&database, "SELECT count(*) FROM taximeter.requests").ok();
    let await_count = |expected: usize| {
        let expected = expected.to_string();
        let is_there = || count().filter(|count| count.trim() == expected);
        assert!(patiently(is_there).is_some(), "{:?} in place of {expected}", count());
    };
    let engine = Engine::start();
    let setup = |sections: &str| Setup::before(&engine).upstream("dialect: openai").with(sections);

    // A journal whose requests are older is fed into the database.
    let gateway = setup("workers: 1").start();
    serve(&engine, &gateway, OLD);
    let folder = gateway.kill();
    let data_dir = folder.path().join("data");
    age(&data_dir, EARLIER);
    let kept = |days: u32| format!("ledger: {{store: \"{url}\", records_keep_days: {days}}}");
    let gateway = setup(&kept(400)).start_in(folder);
    serve(&engine, &gateway, 2);
    await_count(OLD + 2);
    let billed = bill(&url);

    let folder = gateway.kill();
    let made = fs::metadata(&data_dir).and_then(|folder| folder.modified()).expect("a time");
    let looked = Timestamp::try_from(made).expect("a time");
    // The clock is right: a gateway looked at it just now.
    fs::write(data_dir.join("clock.trust"), format!("{looked} {looked} right\n")).expect("a file");
    // The first look at what is old fails.
    let rename = |from: &str, to: &str| {
        let renamed = format!("ALTER TABLE taximeter.{from} RENAME TO {to}");
        server.ask(&database, &renamed).expect("a table");
    };
    rename("keeping", "away");
    let gateway = setup(&kept(1)).start_in(folder);
    gateway.await_metric("taximeter_store_faults_total 1");
    rename("away", "keeping");
    await_count(2);
    assert_eq!(bill(&url), billed);
    gateway.await_metric("taximeter_ledger_details_removed_total{taximeter_cause=\"age\"} 5");
}
