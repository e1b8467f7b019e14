//! Whether the store says what the journals say, and whether its sums, which bills are made of, are
//! those of the requests and corrections that it has.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use taximeter_billing::{Hour, HourKey};
use taximeter_ledger::{Correction, Entry, Record, Replay, RequestId};

use super::account::Account;
use super::findings::{Findings, TOLD_MAX};
use super::tally::{Tally, hash};
use crate::commands::progress::Progress;
use crate::edge::journal::examine;
use crate::edge::store::{Audited, Store, Sum};

/// What cures a store.
const CURE: &str = "rebuild it with `taximeter verify --rebuild`";

/// Holds what the store has against what was read of the journals, and against itself.
struct Comparison<'a> {
    requests: &'a Account,
    /// Which requests were posted, or voided.
    replay: &'a Replay,
    /// Whether others feed it too, and some may have the same name.
    is_shared: bool,
    /// What the store has of the requests that the journal has, by gateway.
    tallies: BTreeMap<String, Tally>,
    /// Corrections of the journal that the store was not seen to have.
    missing: HashMap<RequestId, u128>,
    /// Those that are in both and the same.
    corrections: u64,
    /// Those that say something else than in the journal, and their requests.
    changed: Vec<(RequestId, RequestId)>,
    /// Those that the journal did not have when it was read, and should, and their requests.
    unknown: HashMap<RequestId, RequestId>,
    sums: Sums,
}

/// What became of the sums of the store.
#[derive(Default)]
struct Sums {
    right: u64,
    /// In several parts, which may part differently.
    parted: u64,
    wrong: u64,
    told: Vec<String>,
}

/// Compares. `dir` has the journal of corrections.
///
/// Errors: what cannot be read.
pub(super) fn compare(
    store: &mut Store,
    requests: &Account,
    corrections: &mut Account,
    dir: &Path,
    findings: &mut Findings,
) -> anyhow::Result<()> {
    let mut comparison = Comparison {
        requests,
        is_shared: store.is_shared(),
        tallies: BTreeMap::new(),
        missing: std::mem::take(&mut corrections.corrections),
        replay: &corrections.replay,
        corrections: 0,
        changed: Vec::new(),
        unknown: HashMap::new(),
        sums: Sums::default(),
    };
    let has_all = !comparison.is_shared && corrections.examination.first.is_none_or(|it| it == 1);
    let mut progress = Progress::new("reading the store");
    store.audit(|audited| {
        progress.advance();
        match audited {
            Audited::Record(record) => comparison.add_record(record),
            Audited::Correction(correction) => comparison.add_correction(correction, has_all),
            Audited::Sum(sum) => comparison.sums.add(&sum),
        }
    })?;
    progress.end();
    let is_whole = requests.examination.faults.is_empty();
    comparison.tell_records(is_whole, findings);
    if is_whole && corrections.examination.faults.is_empty() {
        // Somebody may have corrected since the journal was read.
        if !comparison.unknown.is_empty() {
            examine(dir, |_, entry| {
                if let Entry::Correction(correction) = entry {
                    comparison.unknown.remove(&correction.id);
                }
            })?;
        }
        comparison.tell_corrections(findings);
    }
    comparison.sums.tell(findings);
    Ok(())
}

impl Comparison<'_> {
    fn add_record(&mut self, record: &Record) {
        let examination = &self.requests.examination;
        let first = examination.first.unwrap_or(u64::MAX);
        // A gateway that runs has posted more since its journal was read.
        let last = if examination.is_written { examination.last } else { None };
        if (first..=last.unwrap_or(u64::MAX)).contains(&record.seq)
            && self.requests.tallies.contains_key(&record.gateway)
            && !(self.is_shared && self.replay.settlement(record.id).is_none())
        {
            self.tallies.entry(record.gateway.clone()).or_default().add(record);
        }
    }

    fn add_correction(&mut self, correction: &Correction, has_all: bool) {
        match self.missing.remove(&correction.id) {
            Some(written) if written == hash(correction) => self.corrections += 1,
            Some(_) => self.changed.push((correction.id, correction.corrects)),
            None if has_all => drop(self.unknown.insert(correction.id, correction.corrects)),
            None => {}
        }
    }

    fn tell_records(&self, is_whole: bool, findings: &mut Findings) {
        let none = Tally::default();
        for (gateway, journal) in &self.requests.tallies {
            let store = self.tallies.get(gateway).unwrap_or(&none);
            if store == journal {
                let records = store.records;
                findings.hear(format!("store: {records} records of {gateway}, each as posted"));
            } else if is_whole {
                findings.tell(format!(
                    "the store has {} records of {gateway} with costs of {}, and the journal {} \
                     with {}: {CURE}",
                    store.records,
                    money(store),
                    journal.records,
                    money(journal)
                ));
            }
        }
    }

    fn tell_corrections(&self, findings: &mut Findings) {
        if self.corrections > 0 {
            let corrections = self.corrections;
            findings.hear(format!("store: {corrections} corrections, each as written"));
        }
        let missing = self.missing.len();
        if missing > 0 {
            findings.tell(format!(
                "the store lacks {missing} corrections of the journal, or the requests that they \
                 correct: {CURE}"
            ));
        }
        for (id, corrects) in &self.changed {
            findings.tell(format!(
                "the store's correction {id} of request {corrects} is not what was written: {CURE}"
            ));
        }
        for (id, corrects) in &self.unknown {
            findings.tell(format!(
                "the store has a correction {id} of request {corrects}, and the journal does not"
            ));
        }
    }
}

impl Sums {
    fn add(&mut self, sum: &Sum<'_>) {
        if sum.kept == sum.due {
            self.right += 1;
        } else if sum.kept.len() > 1 || sum.due.len() > 1 {
            self.parted += 1;
        } else {
            self.wrong += 1;
            if self.told.len() < TOLD_MAX {
                self.told.push(told(sum));
            }
        }
    }

    fn tell(self, findings: &mut Findings) {
        if self.right > 0 {
            findings.hear(format!("store: {} sums by the hour, each as its requests", self.right));
        }
        if self.parted > 0 {
            findings.note(format!(
                "{} sums of the store are too large to be kept in one, and were not compared",
                self.parted
            ));
        }
        let more = self.wrong.saturating_sub(self.told.len() as u64);
        self.told.into_iter().for_each(|told| findings.tell(told));
        findings.tell_more(usize::try_from(more).unwrap_or(usize::MAX));
    }
}

/// What is wrong with a sum.
fn told(sum: &Sum<'_>) -> String {
    let HourKey { hour, tenant, model, key_id, correction, .. } = sum.key;
    let what = if *correction { "corrections" } else { "requests" };
    let model = model.as_deref().unwrap_or("an unknown model");
    let key = key_id.as_ref().map(|key| format!(" with key {key}")).unwrap_or_default();
    let [kept, due] =
        [sum.kept, sum.due].map(|parts| parts.first().map(|hour| amount(sum.key, hour)));
    let [is, should] = match (&kept, &due) {
        (Some(kept), Some(due)) if kept == due => [kept, "the same by other tokens or prices"],
        _ => [&kept, &due].map(|amount| amount.as_deref().unwrap_or("nothing")),
    };
    format!(
        "the store's hour {hour} of {tenant}, {model}{key} has {what} of {is}, and they add up to \
         {should}: {CURE}"
    )
}

/// As far as people look at it first.
fn amount(key: &HourKey, hour: &Hour) -> String {
    let Hour { sums, .. } = hour;
    let tokens = |tokens: Option<u64>| tokens.map_or("unknown".to_owned(), |it| it.to_string());
    let cost = match (sums.cost, &key.currency) {
        (Some(cost), Some(currency)) => format!("{} {currency}", cost.normalize()),
        _ => "an unknown cost".to_owned(),
    };
    let (input, output) = (tokens(sums.input_tokens), tokens(sums.output_tokens));
    format!("{cost} ({} requests, {input} tokens in, {output} out)", sums.requests)
}

fn money(tally: &Tally) -> String {
    let costs: Vec<_> =
        tally.costs.iter().map(|(currency, amount)| format!("{amount} {currency}")).collect();
    if costs.is_empty() { "nothing".to_owned() } else { costs.join(" and ") }
}
