//! Whether the store says what the journals say, and whether its sums, which bills are made of, are
//! those of the requests and corrections that it has.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use taximeter_billing::{Hour, HourKey};
use taximeter_journal::examine;
use taximeter_ledger::{Correction, Entry, Framed, Replay, RequestId};

use super::account::Account;
use super::findings::{Findings, TOLD_MAX};
use super::tally::{Tally, hash};
use super::{Steps, VerifyError};
use crate::{Audited, Post, Store, Sum};

/// What cures a store.
const CURE: &str = "rebuild it with `taximeter verify --rebuild`";

/// Which requests of the store are to be those of the journal.
struct Selection<'a> {
    requests: &'a Account,
    /// Which requests were posted, or voided.
    replay: &'a Replay,
    /// Whether others feed it too, and some may have the same name.
    is_shared: bool,
}

/// What some requests of the store come to.
#[derive(Default)]
struct Weighed {
    /// Those that are to be the journal's, by gateway.
    tallies: BTreeMap<String, Tally>,
    /// What is wrong with others.
    wrong: Vec<String>,
}

/// Holds what the store has against what was read of the journals, and against itself.
struct Comparison<'a> {
    requests: &'a Account,
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
    steps: &mut Steps<'_>,
    findings: &mut Findings,
) -> Result<(), VerifyError> {
    let missing = std::mem::take(&mut corrections.corrections);
    let is_shared = store.is_shared();
    let selection = Selection { requests, replay: &corrections.replay, is_shared };
    let mut comparison = Comparison {
        requests,
        tallies: BTreeMap::new(),
        missing,
        corrections: 0,
        changed: Vec::new(),
        unknown: HashMap::new(),
        sums: Sums::default(),
    };
    let has_all = !is_shared && corrections.examination.first.is_none_or(|it| it == 1);
    let weigh = |page: &mut Weighed, post: &Post<'_>| selection.weigh(page, post);
    store.audit(weigh, |audited| match audited {
        Audited::Posts(count, page) => {
            (0..count).for_each(|_| steps("reading the store"));
            page.wrong.into_iter().for_each(|wrong| findings.tell(wrong));
            comparison.add(&page.tallies);
        }
        Audited::Unreadable(seq, fault) => findings
            .tell(format!("the store's request of entry {seq} cannot be read: {fault}: {CURE}")),
        Audited::Correction(correction) => comparison.add_correction(correction, has_all),
        Audited::Sum(sum) => comparison.sums.add(&sum),
    })?;
    let is_whole = requests.examination.faults.is_empty();
    comparison.tell_records(is_whole, findings);
    if is_whole && corrections.examination.faults.is_empty() {
        // Somebody may have corrected since the journal was read.
        if !comparison.unknown.is_empty() {
            let read = |_: &Framed, entry| match entry {
                Entry::Correction(correction) => Some(correction.id),
                _ => None,
            };
            examine(dir, read, |corrected| {
                corrected.map(|id| comparison.unknown.remove(&id));
            })?;
        }
        comparison.tell_corrections(findings);
    }
    comparison.sums.tell(findings);
    Ok(())
}

impl Selection<'_> {
    /// Adds a request to those of its page.
    fn weigh(&self, page: &mut Weighed, post: &Post<'_>) {
        let Account { examination, tallies, scale, .. } = self.requests;
        let first = examination.first.unwrap_or(u64::MAX);
        // A gateway that runs has posted more since its journal was read.
        let last = if examination.is_written { examination.last } else { None };
        if (first..=last.unwrap_or(u64::MAX)).contains(&post.seq)
            && tallies.contains_key(&*post.gateway)
            && !(self.is_shared && self.replay.settlement(post.id).is_none())
        {
            let tally = page.tallies.entry(post.gateway.clone().into_owned()).or_default();
            tally.add(scale.weigh(post.seq, post.record.as_bytes()), post.cost.as_ref());
        } else if let Err(fault) = post.whole() {
            // One that is as the journal has it has been read there.
            page.wrong.push(format!("the store's request {} cannot be read: {fault}", post.id));
        }
    }
}

impl Comparison<'_> {
    fn add(&mut self, tallies: &BTreeMap<String, Tally>) {
        for (gateway, tally) in tallies {
            self.tallies.entry(gateway.clone()).or_default().add_all(tally);
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
