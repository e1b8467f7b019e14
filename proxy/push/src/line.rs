//! The entries of one journal that are still to be sent, in order: from the journal, and from the store
//! where the journal no longer has them.

use std::collections::VecDeque;
use std::collections::vec_deque::Iter;
use std::io;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::Serialize;
use taximeter_billing::export::{BillItem, CloudEvent};
use taximeter_journal::{Found, PushCursor, PushOutcome, REQUESTS};
use taximeter_ledger::{Correction, Entry, FramedEntry, LedgerId, Record, RequestId};
use taximeter_store::{Behind, EntryPage, Stored, StoredEntry};

use super::fault::PushFault;
use super::older::Older;

/// Most entries that are asked of the store at once.
const PAGE_ENTRIES_MAX: usize = 1024;

/// Who hears what becomes of events.
pub(super) type Tell = Box<dyn Fn(&PushOutcome<'_>) + Send>;

/// A journal, and how far it is sent.
pub(super) struct Line {
    /// As the store calls it.
    name: &'static str,
    journal: PathBuf,
    /// The cursor's file.
    file: PathBuf,
    /// Up to where it is sent.
    cursor: PushCursor,
    /// Up to where it is read.
    at: PushCursor,
    entries: Option<taximeter_journal::Entries>,
    gap: Option<Gap>,
    pending: VecDeque<Event>,
}

/// Entries that the journal no longer has.
struct Gap {
    ledger: LedgerId,
    /// The last of them.
    until: u64,
    /// It was looked whether the store has all of them.
    is_checked: bool,
    page: VecDeque<StoredEntry>,
    /// Up to where `page` and what was read have all.
    through: u64,
}

/// An event, and its place in the journal.
pub(super) struct Event {
    /// Of the request, or of the correction.
    pub(super) id: RequestId,
    /// The ledger that it is from.
    pub(super) ledger: LedgerId,
    /// When the request was admitted.
    pub(super) since: Timestamp,
    /// `None` where another event of the same entry follows: the entry is sent when that is.
    position: Option<PushCursor>,
    pub(super) json: Vec<u8>,
}

/// What comes next.
enum Next {
    Entry(FramedEntry),
    /// Entries that the store has, if anybody has them.
    Gap,
    /// Nothing so far.
    End,
}

impl Line {
    /// The journal in the directory `journal`, from where the file says that sending stopped.
    pub(super) const fn new(
        name: &'static str,
        journal: PathBuf,
        file: PathBuf,
        cursor: PushCursor,
    ) -> Self {
        let pending = VecDeque::new();
        Self { name, journal, file, cursor, at: cursor, entries: None, gap: None, pending }
    }

    /// What was read and not sent, the oldest first.
    pub(super) fn pending(&self) -> Iter<'_, Event> {
        self.pending.iter()
    }

    /// The last entry that need not be sent again.
    pub(super) const fn sent(&self) -> u64 {
        self.cursor.seq()
    }

    /// The first `count` need not be sent again.
    pub(super) fn done(&mut self, count: usize) -> io::Result<()> {
        let sent = self.pending.drain(..count.min(self.pending.len()));
        let last = sent.filter_map(|event| event.position).next_back();
        last.map_or(Ok(()), |last| self.go_to(last))
    }

    fn go_to(&mut self, cursor: PushCursor) -> io::Result<()> {
        // What was told since the entry was read stays told.
        let lost = self.cursor.lost();
        self.cursor = if lost > cursor.lost() { cursor.told_lost(lost) } else { cursor };
        self.cursor.save(&self.file)
    }

    /// Fills what is pending up to `batch_max` events, or one entry more. What was read before a fault
    /// is sent first.
    pub(super) async fn read(
        &mut self,
        batch_max: usize,
        older: &mut Older,
        tell: &Tell,
    ) -> Result<(), PushFault> {
        while self.pending.len() < batch_max {
            let read = match self.gap {
                Some(_) => self.next_of_gap(older, tell).await,
                None => self.next_of_journal(tell),
            };
            match read {
                Ok(true) => {}
                Err(fault) if self.pending.is_empty() => return Err(fault),
                Ok(false) | Err(_) => return Ok(()),
            }
        }
        Ok(())
    }

    /// Takes the next entry of the journal. Whether there may be more.
    fn next_of_journal(&mut self, tell: &Tell) -> Result<bool, PushFault> {
        let framed = match self.next(tell)? {
            Next::Entry(framed) => framed,
            Next::Gap => return Ok(true),
            Next::End => return Ok(false),
        };
        let ledger = framed.ledger;
        self.at = self.at.at(framed.position(), ledger);
        // What nobody can read is set aside where the store is fed; the others go on.
        match framed.entry() {
            Ok(Entry::Post(record)) => self.push_request(ledger, &record)?,
            Ok(Entry::Correction(correction)) => self.push_correction(ledger, &correction)?,
            _ => return Ok(true),
        }
        Ok(true)
    }

    /// Takes the next entry of what the journal no longer has. It is sent as it would be from there.
    async fn next_of_gap(&mut self, older: &mut Older, tell: &Tell) -> Result<bool, PushFault> {
        let Some(gap) = &mut self.gap else { return Ok(true) };
        let (ledger, until, after) = (gap.ledger, gap.until, gap.through);
        if !gap.is_checked && self.name == REQUESTS {
            let read = (self.at.seq(), self.at.is_known());
            let gone = older.ask(move |store| store.gone_behind(ledger, read, until)).await?;
            let told = self.cursor.lost();
            if let Some(last) = gone.filter(|last| *last > told) {
                let first = self.at.seq().max(told) + 1;
                tell(&PushOutcome::Lost { first, last });
                self.cursor = self.cursor.told_lost(last);
                self.cursor.save(&self.file)?;
            }
        }
        gap.is_checked = true;
        if gap.page.is_empty() && after < until {
            let journal = self.name;
            let page = older.ask(move |store| {
                store.behind(&Behind { journal, ledger, after, until }, PAGE_ENTRIES_MAX)
            });
            let EntryPage { entries, through } = page.await?;
            (gap.page, gap.through) = (entries.into(), through);
        }
        let Some(entry) = gap.page.pop_front() else {
            // The entries up to here have left nothing more.
            self.at = self.at.behind(gap.through, ledger);
            if gap.through >= until {
                self.gap = None;
                older.close();
            }
            match self.pending.back_mut() {
                Some(last) => last.position = Some(self.at),
                None => self.go_to(self.at)?,
            }
            return Ok(true);
        };
        self.at = self.at.behind(entry.seq, ledger);
        let is_last = gap.page.front().is_none_or(|next| next.seq > entry.seq);
        match entry.what {
            Stored::Request(payload) => {
                if let Ok(record) = Record::decode(entry.seq, &payload) {
                    self.push_request(ledger, &record)?;
                }
            }
            Stored::Correction(payload) => {
                if let Ok(correction) = Correction::decode(&payload) {
                    self.push_correction(ledger, &correction)?;
                }
            }
        }
        // A journal that lost its end may have given a number twice.
        if let Some(last) = self.pending.back_mut().filter(|_| !is_last) {
            last.position = None;
        }
        Ok(true)
    }

    fn push_request(&mut self, ledger: LedgerId, record: &Record) -> Result<(), PushFault> {
        if record.used_nothing() {
            return Ok(());
        }
        self.push(ledger, (record.id, record.started_at), &CloudEvent::of(record))?;
        self.end_entry();
        Ok(())
    }

    fn push_correction(
        &mut self,
        ledger: LedgerId,
        correction: &Correction,
    ) -> Result<(), PushFault> {
        let of = (correction.id, correction.started_at);
        for item in &BillItem::of_correction(correction)? {
            self.push(ledger, of, &CloudEvent::of_item(item))?;
        }
        self.end_entry();
        Ok(())
    }

    /// The entry is sent when the last event is.
    fn end_entry(&mut self) {
        if let Some(last) = self.pending.back_mut() {
            last.position = Some(self.at);
        }
    }

    fn push(
        &mut self,
        ledger: LedgerId,
        (id, since): (RequestId, Timestamp),
        event: &impl Serialize,
    ) -> Result<(), PushFault> {
        let json = serde_json::to_vec(event).map_err(io::Error::from)?;
        self.pending.push_back(Event { id, ledger, since, position: None, json });
        Ok(())
    }

    /// The next entry that was not read.
    fn next(&mut self, tell: &Tell) -> Result<Next, PushFault> {
        if let Some(entries) = &mut self.entries {
            match entries.next() {
                Some(Ok(next)) => return Ok(Next::Entry(next)),
                None => return Ok(Next::End),
                // Segments may have gone, or it is another journal: from where it was read, with open
                // eyes.
                Some(Err(_)) => self.entries = None,
            }
        }
        let mut entries = taximeter_journal::read(&self.journal, self.at.first());
        let first = entries.next().transpose()?;
        let found = first.as_ref().map(|framed| (framed.position(), framed.ledger));
        match self.at.check(found) {
            Found::Nothing => Ok(Next::End),
            Found::Last => {
                let next = entries.next().transpose()?;
                self.entries = Some(entries);
                Ok(next.map_or(Next::End, Next::Entry))
            }
            Found::Next => {
                self.entries = Some(entries);
                Ok(first.map_or(Next::End, Next::Entry))
            }
            Found::Gap { last, .. } => {
                let ledger = found.map_or(LedgerId::UNKNOWN, |(_, ledger)| ledger);
                let (page, through) = (VecDeque::new(), self.at.seq());
                self.gap = Some(Gap { ledger, until: last, is_checked: false, page, through });
                Ok(Next::Gap)
            }
            Found::Other => {
                tell(&PushOutcome::Replaced);
                (self.cursor, self.at) = (PushCursor::START, PushCursor::START);
                self.pending.clear();
                Ok(Next::End)
            }
        }
    }
}

/// The number of the last entry of the journal in a directory; 0 where there is none.
pub(super) fn newest(journal: &Path) -> Result<u64, PushFault> {
    let mut newest = 0;
    for entry in taximeter_journal::read(journal, 0) {
        newest = entry?.seq;
    }
    Ok(newest)
}
