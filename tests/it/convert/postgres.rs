//! A shared store in PostgreSQL that older versions fed. `shared2.tar.gz` and `shared3.tar.gz` have
//! what programs with formats 2 and 3 of the store left: the data directories of two gateways of one
//! name, corrections of the requests of both in a third directory, and a dump of a database. That has
//! the requests of the first gateway and all corrections. The other files are what those programs said
//! of the database (`part`), and of the same when the second gateway had fed it (`all`).

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;

use serde_json::Value;
use taximeter_tests::postgres::{Server, shared};
use tempfile::TempDir;

use super::{text, to_the_microsecond, without_status};
use crate::client::ask;
use crate::fixtures::CHAT;
use crate::gateway::{Setup, records_of, taximeter};
use crate::http::post;
use crate::pacing;
use crate::patience::patiently;

/// What the older version of a format left.
struct Old {
    format: u32,
    server: Arc<Server>,
    database: String,
    url: String,
    folder: TempDir,
}

impl Old {
    fn of(format: u32) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let archives = concat!(env!("CARGO_MANIFEST_DIR"), "/it/convert");
        let archive = format!("{archives}/shared{format}.tar.gz");
        let mut tar = Command::new("tar");
        tar.arg("-xzf").arg(archive).arg("-C").arg(folder.path()).arg("--strip-components=1");
        assert!(tar.status().expect("run tar").success());
        let server = shared().expect("a PostgreSQL server");
        let database = server.database().expect("a database");
        let mut restore = server.psql(&database, "SET client_min_messages = warning");
        restore.arg("-f").arg(folder.path().join("store.sql"));
        let restored = restore.output().expect("run psql");
        assert!(restored.status.success(), "{}", text(&restored));
        let url = server.url(&database);
        Self { format, server, database, url, folder }
    }

    fn dir(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn ask(&self, question: &str) -> String {
        self.server.ask(&self.database, question).expect("SQL").trim().to_owned()
    }

    /// Runs a command on a directory and the database. Its exit code, and what it says.
    fn run(&self, command: &str, dir: &str) -> (Option<i32>, String) {
        let dir = self.dir(dir).display().to_string();
        let output = taximeter([command, "--data-dir", &dir, "--store", &self.url]);
        (output.status.code(), text(&output))
    }

    fn done(&self, command: &str, dir: &str) -> String {
        let (code, said) = self.run(command, dir);
        assert_eq!(code, Some(0), "{command} {dir} of format {}: {said}", self.format);
        said
    }

    fn read(&self, file: &str) -> String {
        fs::read_to_string(self.dir(file)).expect("a file of the older version")
    }

    /// The answers are those of the older version.
    fn check(&self, moment: &str) {
        let lines = self.read(&format!("{moment}.records.ndjson"));
        let mut expected: Vec<Value> =
            lines.lines().map(|line| serde_json::from_str(line).expect("a record")).collect();
        let mut records = records_of(&["--store", &self.url]);
        records.iter_mut().chain(&mut expected).for_each(to_the_microsecond);
        assert_eq!(records, expected, "{moment} of format {}", self.format);
        let period = ["--from", "2026-11-01", "--to", "2026-12-01", "--store", &self.url];
        let said = |words: &[&str]| {
            let output = taximeter(words.iter().chain(&period));
            serde_json::from_slice::<Value>(&output.stdout).expect("JSON")
        };
        let old = |file: String| serde_json::from_str::<Value>(&self.read(&file)).expect("JSON");
        let bill = without_status(said(&["bill", "--format", "json"]));
        assert_eq!(bill, old(format!("{moment}.bill.json")));
        if self.format > 2 {
            assert_eq!(said(&["refusals", "--json"]), old(format!("{moment}.refusals.json")));
        }
    }
}

#[test]
fn a_shared_store_is_refused_until_it_is_converted_and_then_says_what_it_said_before() {
    for format in [2, 3] {
        let old = Old::of(format);
        let refused = taximeter(["bill", "--store", &old.url]);
        assert_eq!(refused.status.code(), Some(69), "{}", text(&refused));
        assert!(text(&refused).contains("run `taximeter convert --config FILE`"));
        assert_eq!(old.ask("SELECT version FROM taximeter.format"), format.to_string());

        let config = old.dir("taximeter.yaml");
        let yaml = format!(
            "data_dir: \"{}\"\nupstreams: [{{name: e, url: \"http://127.0.0.1:1\"}}]\n\
             ledger: {{store: \"{}\"}}\n",
            old.dir("one").display(),
            old.url
        );
        fs::write(&config, yaml).expect("write the configuration");
        let convert = || taximeter(["convert", "--config", config.to_str().expect("UTF-8")]);
        let converted = convert();
        let said = text(&converted);
        assert!(converted.status.success(), "{said}");
        assert!(
            said.contains("1 segments with ") && said.contains("the store postgres://"),
            "{said}"
        );
        assert!(said.contains("is converted: 8 records and 9 corrections"), "{said}");
        assert!(text(&convert()).contains("needs no conversion"));
        old.check("part");
        let said = old.done("verify", "one");
        assert!(
            said.contains("store: 8 records of ") && said.contains(", each as posted"),
            "{said}"
        );
        assert!(said.contains("Nothing is wrong."), "{said}");

        // The directories of others that fed it are converted on their own.
        for dir in ["fixes", "other"] {
            let said = old.done("convert", dir);
            assert!(said.contains("1 segments with ") && !said.contains("the store"), "{said}");
        }
        // All that the corrections had waited for comes.
        old.done("verify", "other");
        old.check("all");
        for dir in ["one", "fixes"] {
            let said = old.done("verify", dir);
            assert!(said.contains("Nothing is wrong."), "{said}");
        }
        // What it has in its journal is of its ledger then.
        let unknown = "SELECT count(*) FROM taximeter.requests
            WHERE ledger = '00000000-0000-0000-0000-000000000000'";
        assert_eq!(old.ask(unknown), "8");
        let dir = old.dir("one").display().to_string();
        let rebuilt = taximeter(["verify", "--rebuild", "--data-dir", &dir, "--store", &old.url]);
        assert!(text(&rebuilt).contains("Nothing is wrong."), "{}", text(&rebuilt));
        assert_eq!(old.ask(unknown), "0");
        old.check("all");
    }
}

#[test]
fn a_converted_journal_is_fed_to_the_database_from_where_it_was() {
    for format in [2, 3] {
        let old = Old::of(format);
        let entries = "SELECT seq FROM taximeter.cursors ORDER BY gateway";
        let before = old.ask(entries);
        old.done("convert", "one");
        assert_eq!(old.ask(entries), before);
        // What was fed is not read again: somebody may have removed it.
        old.ask("DELETE FROM taximeter.requests WHERE number = 2");
        let (code, said) = old.run("verify", "one");
        assert_eq!(code, Some(1), "{said}");
        assert!(said.contains("the store has 7 records"), "{said}");
        assert_eq!(old.ask("SELECT count(*) FROM taximeter.requests"), "7");
    }
}

#[test]
fn a_directory_whose_gateway_feeds_a_database_is_not_converted_without_it() {
    let old = Old::of(2);
    let dir = old.dir("one").display().to_string();
    let refused = taximeter(["convert", "--data-dir", &dir]);
    assert_eq!(refused.status.code(), Some(69), "{}", text(&refused));
    assert!(text(&refused).contains("use --store with the URL of the database"));
    let gone = "postgres://me:hunter2@127.0.0.1:1/bills";
    let refused = taximeter(["convert", "--data-dir", &dir, "--store", gone]);
    assert_eq!(refused.status.code(), Some(69), "{}", text(&refused));
    assert!(!text(&refused).contains("hunter2"), "{}", text(&refused));
    // Nothing was changed: the older version goes on with it.
    old.done("convert", "one");
    assert!(old.done("convert", "one").contains("needs no conversion"));
    let alone = Old::of(2);
    let dir = alone.dir("one").display().to_string();
    let converted = taximeter(["convert", "--data-dir", &dir, "--store", "sqlite"]);
    assert!(converted.status.success(), "{}", text(&converted));
    assert_eq!(alone.ask("SELECT version FROM taximeter.format"), "2");
}

#[test]
fn a_gateway_serves_without_an_old_store_says_what_to_do_and_feeds_it_once_it_is_converted() {
    let old = Old::of(2);
    let engine = pacing::start();
    let upstream = format!("name: e, url: \"http://{}\", dialect: openai", engine.address);
    let store = format!("ledger: {{store: \"{}\"}}", old.url);
    let gateway = Setup::with_upstream(&upstream).with(&store).start();
    let request = post("/v1/chat/completions", "Connection: close\r\n", CHAT);
    assert_eq!(ask(gateway.address(), &request).status(), 200);
    let status = || gateway.admin("/api/v1/status").text().to_owned();
    let told = patiently(|| Some(status()).filter(|said| said.contains("run `taximeter convert")));
    assert!(told.is_some(), "{}", status());
    assert_eq!(old.ask("SELECT version FROM taximeter.format"), "2");
    old.done("convert", "one");
    let fed = || old.ask("SELECT count(*) FROM taximeter.requests");
    assert!(patiently(|| (fed() == "9").then_some(())).is_some(), "{}", fed());
}
