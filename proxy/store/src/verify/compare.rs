//! Checks the store: whether its records are those of the journals, and whether its hourly sums are
//! the sums of its records. Bills come from these sums.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use taximeter_billing::{Hour, HourKey};
use taximeter_journal::{Seen, examine};
use taximeter_ledger::{Correction, Entry, FramedEntry, LedgerId, Place, Replay, RequestId};

use super::account::Account;
use super::error::{Steps, VerifyError};
use super::findings::{CURE, Findings, TOLD_MAX};
use super::session_sums::SessionSums;
use super::tally::{Tally, hash};
use crate::{Audited, Post, Store, Sum};

/// Which requests in the store must be those of the journal.
struct Selection<'a> {
    requests: &'a Account,
    /// The posted and voided requests.
    replay: &'a Replay,
    /// Whether other gateways feed the store too. Some may have the same name.
    is_shared: bool,
}

/// The sums of some requests in the store.
#[derive(Default)]
struct Weighed {
    /// Requests that must be in the journal, by gateway.
    tallies: BTreeMap<String, Tally>,
    /// Faults of other requests.
    wrong: Vec<String>,
}

/// Compares the store with the journals, and its sums with its records.
struct Comparison<'a> {
    requests: &'a Account,
    /// Requests in the store that the journal has too, by gateway.
    tallies: BTreeMap<String, Tally>,
    /// Corrections in the journal that were not found in the store so far.
    missing: HashMap<RequestId, u128>,
    /// Corrections that are the same in both.
    corrections: u64,
    /// Corrections that differ from the journal, and their requests.
    changed: Vec<(RequestId, RequestId)>,
    /// Corrections that the journal lacked when it was read, and their requests.
    unknown: HashMap<RequestId, RequestId>,
    sums: Sums,
    sessions: SessionSums,
}

/// The result for the sums in the store.
#[derive(Default)]
struct Sums {
    right: u64,
    /// Sums in several parts. The parts may differ.
    parted: u64,
    wrong: u64,
    messages: Vec<String>,
}

/// Compares the store with the journals. `dirs` have the journals of requests and of corrections.
///
/// Errors: the store or the journal cannot be read.
pub(super) fn compare(
    store: &mut Store,
    requests: &mut Account,
    corrections: &mut Account,
    dirs: [&Path; 2],
    steps: &mut Steps<'_>,
    findings: &mut Findings,
) -> Result<(), VerifyError> {
    let mut missing = std::mem::take(&mut corrections.corrections);
    // A request is completed by a correction in its own journal.
    missing.extend(std::mem::take(&mut requests.corrections));
    let requests = &*requests;
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
        sessions: SessionSums::default(),
    };
    let is_whole = |account: &Account| account.examination.first.is_none_or(|first| first == 1);
    let has_all = !is_shared && is_whole(requests) && is_whole(corrections);
    let weigh = |page: &mut Weighed, post: &Post<'_>| selection.weigh(page, post);
    store.audit(weigh, |audited| match audited {
        Audited::Posts(count, page) => {
            (0..count).for_each(|_| steps("records of the store read"));
            page.wrong.into_iter().for_each(|wrong| findings.tell(wrong));
            comparison.add(&page.tallies);
        }
        Audited::Unreadable(Place { seq, .. }, fault) => findings
            .tell(format!("the store's request of entry {seq} cannot be read: {fault}: {CURE}")),
        Audited::Correction(correction) => comparison.add_correction(correction, has_all),
        Audited::GoneCorrection(correction) => {
            // One of a request that came late was shown beside it.
            if comparison.missing.contains_key(&correction.id) {
                comparison.add_correction(correction, has_all);
            }
        }
        Audited::Sum(sum) => comparison.sums.add(&sum),
        Audited::Session(sum) => comparison.sessions.add(&sum),
        Audited::UnreadableSessions(error) => {
            findings.tell(format!("sums of sessions cannot be read: {error}"));
        }
        Audited::SessionsLeftOut(error) => findings.note(format!(
            "not all sums of sessions were compared with their requests: there is no room for a temporary \
             file: {error}; set TMPDIR to a folder with room"
        )),
    })?;
    let is_whole = requests.examination.faults.is_empty();
    comparison.tell_records(is_whole, findings);
    if is_whole && corrections.examination.faults.is_empty() {
        // Another process may have written corrections since the journal was read.
        if !comparison.unknown.is_empty() {
            let read = |_: &FramedEntry, entry| match entry {
                Entry::Correction(correction) => Some(correction.id),
                _ => None,
            };
            for dir in dirs {
                examine(dir, read, |seen| {
                    if let Seen::Entry(Some(id)) = seen {
                        comparison.unknown.remove(&id);
                    }
                })?;
            }
        }
        comparison.tell_corrections(findings);
    }
    comparison.sums.tell(findings);
    comparison.sessions.tell(findings);
    Ok(())
}

impl Selection<'_> {
    /// Adds a request to the sums of its page.
    fn weigh(&self, page: &mut Weighed, post: &Post<'_>) {
        let Account { examination, tallies, ledgers, scale, gone, .. } = self.requests;
        if gone.has(post.view().started_at, post.place) {
            return;
        }
        let first = examination.first.unwrap_or(u64::MAX);
        // A running gateway has written more posts since its journal was read.
        let last = if examination.is_written { examination.last } else { None };
        let Place { ledger, seq } = post.place;
        if (first..=last.unwrap_or(u64::MAX)).contains(&seq)
            && (ledgers.contains(&ledger) || (self.is_shared && ledger == LedgerId::UNKNOWN))
            && tallies.contains_key(post.gateway())
            && !(self.is_shared && self.replay.settlement(post.id()).is_none())
        {
            let tally = page.tallies.entry(post.gateway().to_owned()).or_default();
            tally.add(scale.weigh(seq, post.payload), post.owed());
        } else if let Err(fault) = post.whole() {
            // A record that equals the journal was checked there.
            page.wrong.push(format!("the store's request {} cannot be read: {fault}", post.id()));
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
                    "the store has {} records of {gateway} with costs of {}, and the journal has {} \
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
                "the store lacks {missing} corrections of the journal, or their requests: {CURE}"
            ));
        }
        for (id, corrects) in &self.changed {
            findings.tell(format!(
                "the store's correction {id} of request {corrects} differs from the journal: {CURE}"
            ));
        }
        for (id, corrects) in &self.unknown {
            findings.tell(format!(
                "the store has a correction {id} of request {corrects} that the journal does not have"
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
            if self.messages.len() < TOLD_MAX {
                self.messages.push(wrong_sum(sum));
            }
        }
    }

    fn tell(self, findings: &mut Findings) {
        if self.right > 0 {
            findings.hear(format!(
                "store: {} sums by the hour, each equal to its requests",
                self.right
            ));
        }
        if self.parted > 0 {
            findings.note(format!(
                "{} sums of the store are too large for one number, and were not compared",
                self.parted
            ));
        }
        let more = self.wrong.saturating_sub(self.messages.len() as u64);
        self.messages.into_iter().for_each(|message| findings.tell(message));
        findings.tell_more(usize::try_from(more).unwrap_or(usize::MAX));
    }
}

/// The text for a wrong sum.
fn wrong_sum(sum: &Sum<'_>) -> String {
    let HourKey { hour, tenant, model, key_id, correction, .. } = sum.key;
    let what = if *correction { "corrections" } else { "requests" };
    let model = model.as_deref().unwrap_or("an unknown model");
    let key = key_id.as_ref().map(|key| format!(" with key {key}")).unwrap_or_default();
    let [kept, due] =
        [sum.kept, sum.due].map(|parts| parts.first().map(|hour| amount(sum.key, hour)));
    let [is, should] = match (&kept, &due) {
        (Some(kept), Some(due)) if kept == due => {
            [kept, "the same cost, but other tokens or prices"]
        }
        _ => [&kept, &due].map(|amount| amount.as_deref().unwrap_or("nothing")),
    };
    format!(
        "the store's hour {hour} of {tenant}, {model}{key} has {what} of {is}, but they add up to \
         {should}: {CURE}"
    )
}

/// The most important figures of a sum.
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
