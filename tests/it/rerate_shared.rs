//! `taximeter rerate` on a database that gateways share: all of them are corrected, each request
//! once, wherever a run dies and whoever runs beside it.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::Arc;

use rust_decimal::Decimal;
use serde_json::Value;
use taximeter_tests::postgres::{Server, shared};

use crate::client::ask;
use crate::fixtures::CHAT;
use crate::gateway::{Gateway, Setup, binary, taximeter};
use crate::http::post;
use crate::pacing::{self, PacingEngine};
use crate::patience::patiently;

/// Requests of both gateways. Each has 600 tokens of input beside those from a cache.
const REQUESTS: u64 = 4;

/// Two gateways, one database, and a folder for prices and corrections.
struct Shared {
    server: Arc<Server>,
    database: String,
    url: String,
    gateways: [Gateway; 2],
    folder: tempfile::TempDir,
    _engine: PacingEngine,
}

impl Shared {
    fn new() -> Self {
        let server = shared().expect("a PostgreSQL server");
        let database = server.database().expect("a database");
        let url = server.url(&database);
        let engine = pacing::start();
        let gateways = [(), ()].map(|()| {
            let upstream = format!("name: e, url: \"http://{}\", dialect: openai", engine.address);
            let store = format!("ledger: {{store: \"{url}\"}}");
            Setup::with_upstream(&upstream).with(&store).start()
        });
        for number in 0..REQUESTS {
            let request = post("/v1/chat/completions", "Connection: close\r\n", CHAT);
            let gateway = if number % 2 == 0 { &gateways[0] } else { &gateways[1] };
            assert_eq!(ask(gateway.address(), &request).status(), 200);
        }
        let folder = tempfile::tempdir().expect("a temporary folder");
        let shared = Self { server, database, url, gateways, folder, _engine: engine };
        let there = patiently(|| (shared.count("requests") == REQUESTS).then_some(()));
        assert!(there.is_some(), "all are in the database");
        shared
    }

    fn ask(&self, statements: &str) -> String {
        let statements = format!("SET search_path = taximeter; {statements}");
        self.server.ask(&self.database, &statements).expect("SQL").trim().to_owned()
    }

    fn count(&self, table: &str) -> u64 {
        self.ask(&format!("SELECT count(*) FROM {table}")).parse().expect("a number")
    }

    /// The command, with a price of so many dollars for a million tokens of input.
    fn command(&self, data_dir: &Path, dollars: u64) -> Command {
        let book = self.folder.path().join(format!("{dollars}.yaml"));
        let rates = format!("{{input: {dollars}, cache_read: 0, output: 0}}");
        fs::write(&book, format!("models:\n- {{model: gpt-4o-mini, rates: {rates}}}\n"))
            .expect("write the prices");
        let mut rerate = Command::new(binary());
        rerate.args(["rerate", "--from", "2026-01-01", "--reason", "test", "--format", "json"]);
        rerate.arg("--book").arg(book).arg("--data-dir").arg(data_dir);
        rerate.args(["--store", &self.url]).stdin(Stdio::null());
        rerate
    }

    fn run(&self, data_dir: &Path, dollars: u64) -> (Option<i32>, String) {
        code_and_words(&self.command(data_dir, dollars).output().expect("run taximeter"))
    }

    /// Runs it to its good end; how many requests it corrected.
    fn corrected(&self, data_dir: &Path, dollars: u64) -> u64 {
        let (code, said) = self.run(data_dir, dollars);
        assert_eq!(code, Some(0), "{said}");
        let said: Value = serde_json::from_str(&said).expect("JSON");
        said["corrected_requests"].as_u64().expect("a number")
    }

    /// What happens to whoever changes rows of `table`.
    fn obstruct(&self, change: &str, table: &str, body: &str) {
        self.ask(&format!(
            "CREATE FUNCTION obstacle() RETURNS trigger LANGUAGE plpgsql AS
                $$ BEGIN {body}; RETURN coalesce(NEW, OLD); END $$;
             CREATE TRIGGER obstacle BEFORE {change} ON {table}
                FOR EACH ROW EXECUTE FUNCTION obstacle()"
        ));
    }

    fn clear(&self) {
        self.ask("DROP FUNCTION obstacle() CASCADE");
    }

    /// Each request owes this price, and nothing else, by whichever way it is asked.
    fn assert_owed(&self, dollars: u64) {
        let words = ["--store", &self.url, "--from", "2026-01-01", "--format", "json"];
        let output = taximeter(["bill"].iter().chain(&words));
        let bill: Value = serde_json::from_slice(&output.stdout).expect("a bill");
        let cost: Decimal =
            bill["total"]["cost"].as_str().expect("money").parse().expect("a decimal");
        let expected = Decimal::new(i64::try_from(600 * REQUESTS * dollars).expect("small"), 6);
        assert_eq!((&bill["total"]["requests"], cost), (&REQUESTS.into(), expected), "{bill:#}");
    }
}

fn code_and_words(output: &Output) -> (Option<i32>, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout) + &text(&output.stderr))
}

#[test]
fn all_gateways_are_priced_again_once_wherever_a_run_ends_early() {
    let shared = Shared::new();
    let here = shared.gateways[0].data_dir();
    let elsewhere = shared.folder.path().join("new/data");
    let records = taximeter(["records", "--store", &shared.url]).stdout;

    assert_eq!(shared.corrected(&here, 1), REQUESTS);
    assert_eq!(shared.corrected(&elsewhere, 1), 0);
    shared.assert_owed(1);
    let steps = [("INSERT", "correctors"), ("INSERT", "corrections"), ("DELETE", "correctors")];
    for ((change, table), dollars) in steps.into_iter().zip(2..) {
        shared.obstruct(change, table, "RAISE EXCEPTION 'broken'");
        let (code, said) = shared.run(&here, dollars);
        assert_eq!(code, Some(69), "{change} {table}: {said}");
        shared.clear();
        // Whoever comes from elsewhere would correct what is corrected, and only not fed.
        if (change, table) != ("INSERT", "correctors") {
            let (code, said) = shared.run(&elsewhere, dollars);
            assert_eq!(code, Some(69), "{said}");
            assert!(said.contains("has not ended") && said.contains("--lost"), "{said}");
        }
        shared.corrected(&here, dollars);
        shared.assert_owed(dollars);
        assert_eq!(shared.count("corrections"), REQUESTS * dollars, "{change} {table}");
    }
    assert_eq!(shared.corrected(&elsewhere, 9), REQUESTS);
    shared.assert_owed(9);

    assert_eq!(taximeter(["records", "--store", &shared.url]).stdout, records);
    for data_dir in shared.gateways.each_ref().map(Gateway::data_dir).iter().chain([&elsewhere]) {
        let data_dir = data_dir.to_str().expect("UTF-8");
        let verified = taximeter(["verify", "--data-dir", data_dir, "--store", &shared.url]);
        assert_eq!(verified.status.code(), Some(0), "{}", code_and_words(&verified).1);
    }
    shared.ask("DELETE FROM corrections WHERE seq = 1");
    let data_dir = elsewhere.to_str().expect("UTF-8");
    let (code, said) =
        code_and_words(&taximeter(["verify", "--data-dir", data_dir, "--store", &shared.url]));
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("lacks 1 corrections"), "{said}");
}

#[test]
fn of_two_at_once_one_corrects_and_one_that_is_killed_leaves_nothing_twice() {
    let shared = Shared::new();
    let here = shared.gateways[1].data_dir();
    let elsewhere = shared.folder.path().join("data");
    shared.obstruct("INSERT", "corrections", "PERFORM pg_sleep(600)");
    let mut first = shared.command(&here, 1);
    let mut first = first.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("run it");
    let sleeping = "
        FROM pg_stat_activity
        WHERE wait_event = 'PgSleep' AND datname = current_database()";
    let is_writing =
        || (shared.ask(&format!("SELECT count(*) > 0 {sleeping}")) == "t").then_some(());
    assert!(patiently(is_writing).is_some(), "the first one writes");

    let (code, said) = shared.run(&elsewhere, 1);
    assert_eq!(code, Some(75), "{said}");
    assert!(said.contains("another `taximeter rerate`"), "{said}");
    first.kill().expect("kill it");
    first.wait().expect("its end");
    // The server does not notice until it writes.
    let ended = || {
        shared.ask(&format!("SELECT pg_terminate_backend(pid) {sleeping}"));
        let (code, said) = shared.run(&elsewhere, 1);
        (code == Some(69)).then_some(said)
    };
    let said = patiently(ended).expect("it is told where to go on");
    assert!(said.contains(here.to_str().expect("UTF-8")), "{said}");
    shared.clear();
    // What was written is fed, not written again.
    shared.corrected(&here, 1);
    shared.assert_owed(1);
    assert_eq!(shared.count("corrections"), REQUESTS);
    assert_eq!(shared.corrected(&elsewhere, 1), 0);
}
