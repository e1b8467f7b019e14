//! The journals, and whether the store agrees with them.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;

use taximeter_ledger::{Contradiction, Entry, Record, Replay};

use super::tally::Tally;
use crate::commands::progress::Progress;
use crate::edge::journal::{self, CORRECTIONS, Examination, JournalError, examine};
use crate::edge::store::{Filter, Store, StoreError};

/// Faults of one kind that are told; of more, the number is.
const TOLD_MAX: usize = 20;

/// What was read, and what is wrong.
#[derive(Debug, Default)]
pub(super) struct Findings {
    /// What was read, a line each.
    read: Vec<String>,
    /// What to know that is no fault.
    notes: Vec<String>,
    /// What is wrong.
    wrong: Vec<String>,
    /// Further faults, which are not in `wrong`.
    more: usize,
}

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
}

/// Reads both journals whole, feeds the store what it lacks, and compares.
///
/// Errors: what cannot be read at all.
pub(super) fn verify(data_dir: &Path, store: &mut Store) -> anyhow::Result<Findings> {
    let mut findings = Findings::default();
    let requests = account(data_dir)?;
    findings.hear("journal", data_dir, &requests);
    let corrections = data_dir.join(CORRECTIONS);
    if corrections.is_dir() {
        let account = account(&corrections)?;
        findings.hear("corrections", &corrections, &account);
    }
    // A journal that is not whole has been told, and cannot be fed.
    if requests.examination.faults.is_empty() {
        store.catch_up(&mut journal::feeds(data_dir))?;
    }
    findings.compare(&requests, &stored(store, &requests)?);
    Ok(findings)
}

fn account(dir: &Path) -> Result<Account, JournalError> {
    let mut account = Account::default();
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
            Entry::Correction(_) => "corrections",
            Entry::Checkpoint(_) => "checkpoints",
        };
        *self.kinds.entry(kind).or_default() += 1;
        if let Err(contradiction) = self.replay.apply(seq, entry) {
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
    let add = |record: &Record| {
        progress.advance();
        if record.seq >= first && requests.tallies.contains_key(&record.gateway) {
            tallies.entry(record.gateway.clone()).or_default().add(record);
        }
        Ok::<_, StoreError>(())
    };
    let newest = store.newest()?;
    store.records(&Filter::default(), newest, None, add)?;
    progress.end();
    Ok(tallies)
}

impl Findings {
    /// How much is wrong.
    pub(super) fn wrong(&self) -> usize {
        self.wrong.len() + self.more
    }

    /// Says it.
    ///
    /// Errors: those of writing.
    pub(super) fn write(&self, out: &mut impl Write) -> io::Result<()> {
        for line in &self.read {
            writeln!(out, "{line}")?;
        }
        for note in &self.notes {
            writeln!(out, "note: {note}")?;
        }
        for fault in &self.wrong {
            writeln!(out, "wrong: {fault}")?;
        }
        if self.more > 0 {
            writeln!(out, "wrong: and {} more", self.more)?;
        }
        match self.wrong() {
            0 => writeln!(out, "Nothing is wrong."),
            1 => writeln!(out, "1 thing is wrong."),
            wrong => writeln!(out, "{wrong} things are wrong."),
        }
    }

    fn hear(&mut self, name: &str, dir: &Path, account: &Account) {
        let Examination { segments, bytes, entries, first, last, .. } = &account.examination;
        let range = match (first, last) {
            (Some(first), Some(last)) => format!(", {first} to {last}"),
            _ => String::new(),
        };
        let kinds: Vec<_> =
            account.kinds.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
        self.read.push(format!(
            "{name} {}: {segments} segments, {bytes} bytes, {entries} entries{range}",
            dir.display()
        ));
        if !kinds.is_empty() {
            self.read.push(format!("  {}", kinds.join(", ")));
        }
        for (tenant, balance) in account.replay.balances() {
            for (currency, amount) in &balance.posted {
                self.read.push(format!("  {tenant} {} {currency}", amount.normalize()));
            }
        }
        self.hear_faults(account);
    }

    fn hear_faults(&mut self, account: &Account) {
        let Examination { faults, torn, is_written, .. } = &account.examination;
        for (path, fault) in faults {
            self.tell(format!("{}: {fault}", path.display()));
        }
        // Behind a gap, what was open and what was settled is not known.
        if faults.is_empty() {
            for contradiction in &account.contradictions {
                self.tell(contradiction.to_string());
            }
            self.more += account.contradictions_count - account.contradictions.len();
        }
        if let Some(torn) = torn {
            let what = if *is_written { "is being written" } else { "was cut off" };
            self.notes.push(format!(
                "{}: an entry {what} at byte {} ({} bytes); the next start cuts it off",
                torn.path.display(),
                torn.offset,
                torn.bytes
            ));
        }
        let open = account.replay.open();
        if *is_written {
            if !open.is_empty() {
                self.notes.push(format!("{} requests are running", open.len()));
            }
        } else if faults.is_empty() {
            for open in open {
                let (id, started_at) = (open.reserve.id, open.reserve.started_at);
                self.tell(format!(
                    "request {id}, admitted {started_at}, is open and no gateway runs; the next \
                     start settles it"
                ));
            }
        }
    }

    fn compare(&mut self, requests: &Account, stored: &BTreeMap<String, Tally>) {
        let none = Tally::default();
        for (gateway, journal) in &requests.tallies {
            let store = stored.get(gateway).unwrap_or(&none);
            if store == journal {
                let records = store.records;
                self.read.push(format!("store: {records} records of {gateway}, each as posted"));
            } else if requests.examination.faults.is_empty() {
                self.tell(format!(
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

    fn tell(&mut self, fault: String) {
        if self.wrong.len() < TOLD_MAX {
            self.wrong.push(fault);
        } else {
            self.more += 1;
        }
    }
}

fn money(tally: &Tally) -> String {
    let costs: Vec<_> =
        tally.costs.iter().map(|(currency, amount)| format!("{amount} {currency}")).collect();
    if costs.is_empty() { "nothing".to_owned() } else { costs.join(" and ") }
}
