//! Two gateways that feed one PostgreSQL database, each killed at random moments under load: one
//! bill, which is what both have on their ledgers.

use std::collections::{BTreeMap, HashSet};
use std::hash::{BuildHasher, RandomState};

use rust_decimal::Decimal;
use serde_json::Value;
use taximeter_tests::postgres;

use super::{KILLS, KILLS_VARIABLE, SEED_VARIABLE, given, kill};
use crate::gateway::{Setup, records, records_of, taximeter};
use crate::pacing;

/// Requests, input and output tokens, and cost.
pub(super) type Sums = (u64, u64, u64, Decimal);

#[test]
fn two_gateways_killed_at_random_make_one_exact_bill() {
    let seed = given(SEED_VARIABLE).unwrap_or_else(|| RandomState::new().hash_one(0));
    println!("{SEED_VARIABLE}={seed}");
    // Each of them a quarter: they share the machine with a database.
    let kills = given(KILLS_VARIABLE).unwrap_or(KILLS) / 4;
    let server = postgres::shared().expect("a PostgreSQL server");
    let url = server.url(&server.database().expect("a database"));
    let engines = [pacing::start(), pacing::start()];
    let before = |engine: &pacing::PacingEngine| {
        let upstream = format!("name: e, url: \"http://{}\", dialect: openai", engine.address);
        Setup::with_upstream(&upstream).with(&format!("ledger: {{store: \"{url}\"}}"))
    };
    let left = std::thread::scope(|gateways| {
        let run = |engine, seed| gateways.spawn(move || kill(kills, seed, || before(engine)));
        let [first, second] = &engines;
        let running = [run(first, seed), run(second, !seed)];
        running.map(|gateway| gateway.join().expect("a gateway's life"))
    });

    let mut on_ledgers = BTreeMap::new();
    for ((folder, requests), engine) in left.into_iter().zip(&engines) {
        // One more start settles what the last kill left open, and its end feeds the rest.
        let mut gateway = before(engine).start_in(folder);
        gateway.terminate();
        assert!(gateway.exit().0.success());
        let folder = gateway.into_folder();
        let data_dir = folder.path().join("data");
        let records = records(&data_dir);
        let completed: HashSet<_> =
            records.iter().filter(|r| r["end"] == "complete").map(|r| &r["request_id"]).collect();
        let finished = requests.iter().filter(|request| request.finished);
        let unbilled: Vec<_> = finished
            .map(|request| Value::from(request.request_id.as_str()))
            .filter(|request_id| !completed.contains(request_id))
            .collect();
        assert!(unbilled.is_empty(), "answered and not billed: {unbilled:?}");
        on_ledgers.extend(by_id(records));
    }
    let in_database = records_of(&["--store", &url]);
    assert_eq!(in_database.len(), on_ledgers.len(), "each request is there once");
    assert!(by_id(in_database) == on_ledgers, "what is there is what was written");
    // What used nothing has a record and is on no bill.
    let billed_ones = on_ledgers.values().filter(|record| record["usage"]["source"] != "none");
    let sums = sums(billed_ones);
    println!("2 gateways, {} requests in one database, {} USD", sums.0, sums.3);
    assert_eq!(billed(&["--store", &url]), sums);
}

fn by_id(records: Vec<Value>) -> BTreeMap<String, Value> {
    let id = |record: &Value| record["id"].as_str().expect("an id").to_owned();
    records.into_iter().map(|record| (id(&record), record)).collect()
}

pub(super) fn sums<'a>(records: impl Iterator<Item = &'a Value>) -> Sums {
    records.fold(Sums::default(), |(requests, input, output, cost), record| {
        let tokens = |member: &str| record["usage"][member].as_u64().unwrap_or(0);
        (
            requests + 1,
            input + tokens("input_tokens"),
            output + tokens("output_tokens"),
            cost + money(&record["cost"]["amount"]),
        )
    })
}

/// What the bill of the ledger at this place adds up to.
pub(super) fn billed(place: &[&str]) -> Sums {
    let ask = ["bill", "--from", "2020-01-01", "--format", "json"];
    let output = taximeter(ask.iter().chain(place));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let bill: Value = serde_json::from_slice(&output.stdout).expect("a bill in JSON");
    let total = &bill["total"];
    let number = |member: &str| total[member].as_u64().unwrap_or(0);
    let cost = money(&total["cost"]);
    (number("requests"), number("input_tokens"), number("output_tokens"), cost)
}

fn money(amount: &Value) -> Decimal {
    amount.as_str().map_or(Decimal::ZERO, |amount| amount.parse().expect("a decimal"))
}
