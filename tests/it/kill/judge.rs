//! Holds the ledger against what the engine and the clients have seen.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use rust_decimal::Decimal;
use serde_json::Value;
use taximeter_tokenizer::estimate;

use crate::gateway::{records, taximeter};
use crate::pacing::{Log, OUTPUT_TOKENS};

/// What one client saw of one request.
pub(super) struct SentRequest {
    pub(super) request_id: String,
    pub(super) finished: bool,
}

/// What the kills met.
#[must_use]
pub(super) struct Met {
    finished: usize,
    died: usize,
}

impl Met {
    /// Fails if so many kills met too little to learn anything from.
    pub(super) fn assert_enough(&self, kills: usize) {
        assert!(self.finished >= kills, "too little load to learn anything");
        assert!(self.died > kills / 2, "kills met too few running requests");
    }
}

/// Fails unless every request is on the ledger once, with what it used. Prints what was counted.
pub(super) fn judge(kills: usize, data_dir: &Path, log: &Log, requests: &[SentRequest]) -> Met {
    let records = records(data_dir);
    let verified = verify(data_dir);
    let mut by_request: BTreeMap<&str, &Value> = BTreeMap::new();
    let mut ids = BTreeSet::new();
    let mut twice = Vec::new();
    for record in &records {
        let request_id = record["request_id"].as_str().expect("a request id");
        let is_new = ids.insert(record["id"].as_str());
        if by_request.insert(request_id, record).is_some() || !is_new {
            twice.push(request_id);
        }
    }
    let finished: Vec<_> = requests.iter().filter(|request| request.finished).collect();
    let is_billed = |request: &&&SentRequest| {
        by_request.get(request.request_id.as_str()).is_some_and(|record| {
            record["end"] == "complete" && record["usage"]["output_tokens"] == OUTPUT_TOKENS
        })
    };
    let unbilled: Vec<_> = finished.iter().filter(|request| !is_billed(request)).collect();
    let open = verified.lines().filter(|line| line.contains(" is open ")).count();

    let ended = |end: &str| records.iter().filter(|record| record["end"] == end).count();
    println!(
        "{kills} kills: {} requests, {} reached the engine, {} completed, {} aborted, {} died, {} \
         voided, {} segments",
        count(&verified, "reservations"),
        log.len(),
        ended("complete"),
        ended("client_left"),
        ended("gateway_died"),
        count(&verified, "voids"),
        count(&verified, "segments"),
    );
    println!("{} completed-but-unbilled, {} twice, {open} open", unbilled.len(), twice.len());
    let lost: Vec<_> = unbilled.iter().map(|request| &request.request_id).collect();
    assert!(lost.is_empty(), "answered and not billed: {lost:?}");
    assert!(twice.is_empty(), "twice on the ledger: {twice:?}");
    assert!(verified.ends_with("Nothing is wrong.\n"), "{verified}");
    assert!(sessions(data_dir, &records).len() > 1, "no sessions");
    let met = Met { finished: finished.len(), died: ended("gateway_died") };
    for (request_id, written) in log {
        // Reserved before it was sent, so it must have ended on the ledger, one way or another.
        let record = by_request.get(request_id.as_str());
        let record = record.unwrap_or_else(|| panic!("{request_id} reached the engine, is lost"));
        let usage = &record["usage"];
        let billed = usage["output_tokens"].as_u64().unwrap_or(0);
        // A gateway that has not lived long enough to load a vocabulary estimates, and says so.
        let is_estimated =
            usage["flags"].as_array().is_some_and(|f| f.contains(&"estimated".into()));
        let estimated = if is_estimated { estimate(written.text_bytes) } else { 0 };
        let most = written.tokens.max(estimated);
        assert!(billed <= most, "more than the {written:?} that were written: {record:#}");
    }
    let asked: BTreeSet<&str> =
        requests.iter().map(|request| request.request_id.as_str()).collect();
    let unasked: Vec<_> = by_request.keys().filter(|id| !asked.contains(*id)).collect();
    assert!(unasked.is_empty(), "never asked: {unasked:?}");
    met
}

/// What sessions add up to, as the command says, and as these records do: number of requests, and cost.
/// Fails if they differ.
pub(super) fn sessions(data_dir: &Path, records: &[Value]) -> BTreeMap<String, (u64, Decimal)> {
    let cost = |cost: &Value| cost.as_str().map_or(Decimal::ZERO, |it| it.parse().expect("a cost"));
    let mut of_records = BTreeMap::<_, (u64, Decimal)>::new();
    for record in records {
        let Some(session) = record["session"].as_str() else { continue };
        let (requests, costs) = of_records.entry(session.to_owned()).or_default();
        *requests += 1;
        *costs += cost(&record["cost"]["amount"]) + cost(&record["cost_known"]["amount"]);
    }
    let place = data_dir.to_str().expect("UTF-8");
    let period = ["--from", "2020-01-01", "--to", "2040-01-01", "--limit", "1000"];
    let words = ["sessions", "--json", "--data-dir", place].into_iter().chain(period);
    let told = taximeter(words).stdout;
    let told: Value = serde_json::from_slice(&told).expect("JSON");
    let listed = told["sessions"].as_array().expect("a list").iter().map(|session| {
        let name = session["session"].as_str().expect("a name").to_owned();
        (name, (session["requests"].as_u64().expect("a number"), cost(&session["cost"])))
    });
    assert_eq!(listed.collect::<BTreeMap<_, _>>(), of_records);
    of_records
}

/// What the gateway's own command says of the whole ledger.
fn verify(data_dir: &Path) -> String {
    let output = taximeter(["verify", "--data-dir", data_dir.to_str().expect("UTF-8")]);
    String::from_utf8(output.stdout).expect("findings in UTF-8")
}

/// The number before `word`; 0 where it is not there.
fn count(findings: &str, word: &str) -> u64 {
    let words: Vec<_> = findings.split([' ', ',', '\n']).collect();
    let number =
        words.windows(2).find(|pair| pair[1] == word).and_then(|pair| pair[0].parse().ok());
    number.unwrap_or(0)
}
