//! Reads one journal: its entries, their sums, and every fault.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

use taximeter_journal::{Altered, Examination, JournalError, Seen, examine};
use taximeter_ledger::{Contradiction, Entry, FramedEntry, LedgerId, Place, Replay, RequestId};

use super::error::Steps;
use super::findings::{Findings, TOLD_MAX};
use super::refusals::RefusalCounts;
use super::tally::{Scale, Tally, hash};
use crate::details::GoneDays;

/// The content of one journal.
#[derive(Debug, Default)]
pub(super) struct Account {
    pub(super) examination: Examination,
    /// Hashes its posts, and the records that they are compared with.
    pub(super) scale: Scale,
    pub(super) replay: Replay,
    kinds: BTreeMap<&'static str, u64>,
    contradictions: Vec<Contradiction>,
    contradictions_count: usize,
    /// Sums of posts by gateway.
    pub(super) tallies: BTreeMap<String, Tally>,
    /// The ledgers of its requests: more than one if it is a restored copy.
    pub(super) ledgers: BTreeSet<LedgerId>,
    /// Counts of requests that have no record.
    pub(super) refusals: RefusalCounts,
    /// The hash of each correction.
    pub(super) corrections: HashMap<RequestId, u128>,
    /// Days whose posts the store has not any more: they are not compared.
    pub(super) gone: GoneDays,
    /// Whether older posts are gone: those of this journal, or of the one that it corrects.
    lacks_posts: bool,
    /// Whether it has corrections of another journal, and no requests.
    only_corrects: bool,
}

/// Reads the whole journal in `dir`. `account` has what is known before it.
///
/// Errors: the journal cannot be read at all.
pub(super) fn account(
    dir: &Path,
    mut account: Account,
    steps: &mut Steps<'_>,
) -> Result<Account, JournalError> {
    let scale = account.scale.clone();
    let read = |framed: &FramedEntry, entry: Entry| {
        let weight = match &entry {
            // The store has the same payload.
            Entry::Post(_) => scale.weigh(framed.seq, &framed.payload.to_vec()),
            _ => 0,
        };
        (framed.ledger, framed.seq, weight, entry)
    };
    let examination = examine(dir, read, |seen| match seen {
        Seen::Entry((ledger, seq, weight, entry)) => {
            steps("journal entries read");
            account.ledgers.insert(ledger);
            account.add(Place { ledger, seq }, weight, entry);
        }
        Seen::BeginsAnew => account.begin_anew(),
    })?;
    account.examination = examination;
    Ok(account)
}

impl Account {
    /// Nothing but the days whose posts the store has not any more.
    pub(super) fn without(gone: GoneDays) -> Self {
        Self { gone, ..Self::default() }
    }

    /// What is known before the journal of corrections: the posts of these requests. They are already
    /// reported, and move out of here.
    pub(super) fn take_posts(&mut self, is_shared: bool) -> Self {
        // In a shared store, this journal may correct requests of other gateways.
        let lacks_posts = is_shared || self.examination.first.is_some_and(|first| first > 1);
        let replay = std::mem::take(&mut self.replay).into_corrections();
        Self { replay, lacks_posts, only_corrects: true, ..Self::default() }
    }

    /// Forgets the entries of files that the gateway has removed, and of those before them. What the
    /// journal has is compared as if it had been read later.
    fn begin_anew(&mut self) {
        if self.only_corrects {
            // What was read is as true as before. Nothing says what was in the files.
            self.replay = std::mem::take(&mut self.replay).into_corrections();
        } else {
            let (scale, gone) = (self.scale.clone(), std::mem::take(&mut self.gone));
            *self = Self { scale, gone, ..Self::default() };
        }
    }

    fn add(&mut self, place: Place, weight: u64, entry: Entry) {
        let seq = place.seq;
        let is_first = self.kinds.is_empty();
        self.lacks_posts |= is_first && seq > 1 && !self.only_corrects;
        let kind = match &entry {
            Entry::Reserve(_) => "reservations",
            Entry::Post(record) => {
                let is_new = self.replay.settlement(record.id).is_none();
                if is_new && !self.gone.has(record.started_at, place) {
                    let tally = self.tallies.entry(record.gateway.clone()).or_default();
                    tally.add(weight, record.owed());
                }
                "posts"
            }
            Entry::Void(_) => "voids",
            Entry::Progress(_) => "progress",
            Entry::Correction(correction) => {
                self.corrections.entry(correction.id).or_insert_with(|| hash(correction));
                "corrections"
            }
            Entry::Checkpoint(_) => "checkpoints",
            Entry::Refusals(refusals) => {
                self.refusals.add(refusals);
                "counts of refusals"
            }
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

impl Account {
    /// Reports what was read, and every fault.
    pub(super) fn tell(&self, name: &str, dir: &Path, findings: &mut Findings) {
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
        let Examination { faults, unreadable, altered, torn, is_written, .. } = &self.examination;
        for (path, fault) in faults.iter().chain(unreadable) {
            findings.tell(format!("{}: {fault}", path.display()));
        }
        for Altered { path, last, behind, digest, said } in altered {
            findings.tell(format!(
                "{} was changed, although its checksums are right: its SHA-256 up to entry {last} is \
                 {digest}, and {} says that it was {said}; restore the file",
                path.display(),
                behind.display()
            ));
        }
        // After a gap, it is unknown which requests are open or settled.
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
                "{}: an entry {what} at byte {} ({} bytes); the next start removes it",
                torn.path.display(),
                torn.offset,
                torn.bytes
            ));
        }
        if self.examination.passed_removed {
            findings.note(
                "the gateway removed old journal files while they were read; what is left is \
                 compared"
                    .to_owned(),
            );
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
                    "request {id}, admitted at {started_at}, is open and no gateway runs; the \
                     next start settles it"
                ));
            }
        }
    }
}
