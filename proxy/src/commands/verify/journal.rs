//! The journals, and whether the store agrees with them.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;

use jiff::Timestamp;
use taximeter_billing::Period;
use taximeter_ledger::{Contradiction, Entry, Record, Replay, RequestId};

use super::findings::{Findings, TOLD_MAX};
use super::tally::Tally;
use crate::commands::progress::Progress;
use crate::edge::journal::{self, CORRECTIONS, Examination, JournalError, examine};
use crate::edge::store::{Filter, Store, StoreError};

/// What the entries of one journal say.
#[derive(Debug, Default)]
struct Account {
    examination: Examination,
    replay: Replay,
    kinds: BTreeMap<&'static str, u64>,
    contradictions: Vec<Contradiction>,
    contradictions_count: usize,
    /// By gateway.
    tallies: BTreeMap<String, Tally>,
    corrections: HashSet<RequestId>,
    /// Its journal, or the one that it corrects, no longer begins with the first entry.
    lacks_posts: bool,
}

/// Reads both journals whole, feeds the store what it lacks, and compares.
///
/// Errors: what cannot be read at all.
pub(super) fn verify(
    data_dir: &Path,
    store: &mut Store,
    findings: &mut Findings,
) -> anyhow::Result<()> {
    let mut requests = account(data_dir, Account::default())?;
    requests.tell("journal", data_dir, findings);
    // A journal that is not whole has been told, and cannot be fed.
    if requests.examination.faults.is_empty() {
        store.catch_up(&mut journal::feeds(data_dir))?;
    }
    let stored = stored(store, &requests)?;
    let corrections = data_dir.join(CORRECTIONS);
    if corrections.is_dir() {
        let corrected = account(&corrections, requests.take_posts(store.is_shared()))?;
        corrected.tell("corrections", &corrections, findings);
        // Somebody may have corrected since the store was fed.
        if requests.examination.faults.is_empty() && corrected.examination.faults.is_empty() {
            store.catch_up(&mut journal::feeds(data_dir))?;
        }
        corrected.compare_corrections(store, findings)?;
    }
    requests.compare(&stored, findings);
    Ok(())
}

fn account(dir: &Path, mut account: Account) -> Result<Account, JournalError> {
    let mut progress = Progress::new("reading the journal");
    let examination = examine(dir, |framed, entry| {
        progress.advance();
        account.add(framed.seq, &entry);
    })?;
    progress.end();
    account.examination = examination;
    Ok(account)
}

impl Account {
    /// What the journal of corrections begins with: the posts of these requests, which are told and
    /// are not needed any longer.
    fn take_posts(&mut self, is_shared: bool) -> Self {
        // Where others feed too, their requests may be corrected here.
        let lacks_posts = is_shared || self.examination.first.is_some_and(|first| first > 1);
        let replay = std::mem::take(&mut self.replay).into_corrections();
        Self { replay, lacks_posts, ..Self::default() }
    }

    fn add(&mut self, seq: u64, entry: &Entry) {
        let kind = match entry {
            Entry::Reserve(_) => "reservations",
            Entry::Post(record) => {
                if self.replay.settlement(record.id).is_none() {
                    self.tallies.entry(record.gateway.clone()).or_default().add(record);
                }
                "posts"
            }
            Entry::Void(_) => "voids",
            Entry::Progress(_) => "progress",
            Entry::Correction(correction) => {
                self.corrections.insert(correction.id);
                "corrections"
            }
            Entry::Checkpoint(_) => "checkpoints",
        };
        *self.kinds.entry(kind).or_default() += 1;
        let applied = self.replay.apply(seq, entry);
        if let Err(contradiction) = applied
            && !(self.lacks_posts && matches!(contradiction, Contradiction::NotPosted { .. }))
        {
            self.contradictions_count += 1;
            if self.contradictions.len() < TOLD_MAX {
                self.contradictions.push(contradiction);
            }
        }
    }
}

/// What the store has of the requests that the journal has.
fn stored(store: &mut Store, requests: &Account) -> Result<BTreeMap<String, Tally>, StoreError> {
    let first = requests.examination.first.unwrap_or(u64::MAX);
    let mut tallies: BTreeMap<String, Tally> = BTreeMap::new();
    let mut progress = Progress::new("reading the store");
    // Where others feed too, some may have the same name.
    let is_shared = store.is_shared();
    let add = |record: &Record| {
        progress.advance();
        if record.seq >= first
            && requests.tallies.contains_key(&record.gateway)
            && !(is_shared && requests.replay.settlement(record.id).is_none())
        {
            tallies.entry(record.gateway.clone()).or_default().add(record);
        }
        Ok::<_, StoreError>(())
    };
    let newest = store.newest()?;
    store.records(&Filter::default(), newest, None, add)?;
    progress.end();
    Ok(tallies)
}

impl Account {
    /// Says what was read, and what is wrong with it.
    fn tell(&self, name: &str, dir: &Path, findings: &mut Findings) {
        let Examination { segments, bytes, entries, first, last, .. } = &self.examination;
        let range = match (first, last) {
            (Some(first), Some(last)) => format!(", {first} to {last}"),
            _ => String::new(),
        };
        let kinds: Vec<_> =
            self.kinds.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
        findings.hear(format!(
            "{name} {}: {segments} segments, {bytes} bytes, {entries} entries{range}",
            dir.display()
        ));
        if !kinds.is_empty() {
            findings.hear(format!("  {}", kinds.join(", ")));
        }
        for (tenant, balance) in self.replay.balances() {
            for (currency, amount) in &balance.posted {
                findings.hear(format!("  {tenant} {} {currency}", amount.normalize()));
            }
        }
        self.tell_faults(findings);
    }

    fn tell_faults(&self, findings: &mut Findings) {
        let Examination { faults, unreadable, torn, is_written, .. } = &self.examination;
        for (path, fault) in faults.iter().chain(unreadable) {
            findings.tell(format!("{}: {fault}", path.display()));
        }
        // Behind a gap, what was open and what was settled is not known.
        let is_known = faults.is_empty() && unreadable.is_empty();
        if is_known {
            for contradiction in &self.contradictions {
                findings.tell(contradiction.to_string());
            }
            findings.tell_more(self.contradictions_count - self.contradictions.len());
        }
        if let Some(torn) = torn {
            let what = if *is_written { "is being written" } else { "was cut off" };
            findings.note(format!(
                "{}: an entry {what} at byte {} ({} bytes); the next start cuts it off",
                torn.path.display(),
                torn.offset,
                torn.bytes
            ));
        }
        let open = self.replay.open();
        if *is_written {
            if !open.is_empty() {
                findings.note(format!("{} requests are running", open.len()));
            }
        } else if is_known {
            for open in open {
                let (id, started_at) = (open.reserve.id, open.reserve.started_at);
                findings.tell(format!(
                    "request {id}, admitted {started_at}, is open and no gateway runs; the next \
                     start settles it"
                ));
            }
        }
    }

    /// Holds what the store has against it.
    fn compare(&self, stored: &BTreeMap<String, Tally>, findings: &mut Findings) {
        let none = Tally::default();
        for (gateway, journal) in &self.tallies {
            let store = stored.get(gateway).unwrap_or(&none);
            if store == journal {
                let records = store.records;
                findings.hear(format!("store: {records} records of {gateway}, each as posted"));
            } else if self.examination.faults.is_empty() {
                findings.tell(format!(
                    "the store has {} records of {gateway} with costs of {}, and the journal {} \
                     with {}: rebuild it with `taximeter verify --rebuild`",
                    store.records,
                    money(store),
                    journal.records,
                    money(journal)
                ));
            }
        }
    }

    /// Holds what the store has of these corrections against them.
    fn compare_corrections(
        mut self,
        store: &mut Store,
        findings: &mut Findings,
    ) -> anyhow::Result<()> {
        let all = Period::new(Timestamp::MIN, Timestamp::MAX)?;
        store.corrections(all, None, |_, correction| {
            self.corrections.remove(&correction.id);
            Ok::<_, StoreError>(())
        })?;
        let missing = self.corrections.len();
        if missing > 0 && self.examination.faults.is_empty() {
            findings.tell(format!(
                "the store lacks {missing} corrections of the journal, or the requests that they \
                 correct: rebuild it with `taximeter verify --rebuild`"
            ));
        }
        Ok(())
    }
}

fn money(tally: &Tally) -> String {
    let costs: Vec<_> =
        tally.costs.iter().map(|(currency, amount)| format!("{amount} {currency}")).collect();
    if costs.is_empty() { "nothing".to_owned() } else { costs.join(" and ") }
}
