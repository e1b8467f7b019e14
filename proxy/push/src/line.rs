//! The entries of one journal that are still to be sent, in order.

use std::collections::VecDeque;
use std::collections::vec_deque::Iter;
use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;
use taximeter_billing::export::{BillItem, CloudEvent};
use taximeter_journal::{Found, PushCursor, PushOutcome};
use taximeter_ledger::{Entry, FramedEntry, Position, RequestId};

use super::fault::PushFault;

/// Who hears what becomes of events.
pub(super) type Tell = Box<dyn Fn(&PushOutcome<'_>) + Send>;

/// A journal, and how far it is sent.
pub(super) struct Line {
    journal: PathBuf,
    /// The cursor's file.
    file: PathBuf,
    cursor: PushCursor,
    entries: Option<taximeter_journal::Entries>,
    pending: VecDeque<Event>,
}

/// An event, and its place in the journal.
pub(super) struct Event {
    /// Of the request, or of the correction.
    pub(super) id: RequestId,
    /// `None` where another event of the same entry follows: the entry is sent when that is.
    position: Option<Position>,
    pub(super) json: Vec<u8>,
}

impl Line {
    /// The journal in the directory `journal`, from where the file says that sending stopped.
    pub(super) const fn new(journal: PathBuf, file: PathBuf, cursor: PushCursor) -> Self {
        Self { journal, file, cursor, entries: None, pending: VecDeque::new() }
    }

    /// What was read and not sent, the oldest first.
    pub(super) fn pending(&self) -> Iter<'_, Event> {
        self.pending.iter()
    }

    /// The first `count` need not be sent again.
    pub(super) fn done(&mut self, count: usize) -> io::Result<()> {
        let sent = self.pending.drain(..count.min(self.pending.len()));
        if let Some(last) = sent.filter_map(|event| event.position).next_back() {
            self.cursor = PushCursor::at(last);
            self.cursor.save(&self.file)?;
        }
        Ok(())
    }

    /// Fills what is pending up to `batch_max` events, or one entry more.
    pub(super) fn read(&mut self, batch_max: usize, tell: &Tell) -> Result<(), PushFault> {
        while self.pending.len() < batch_max {
            let Some(framed) = self.next(tell)? else { return Ok(()) };
            let position = framed.position();
            // What nobody can read is set aside where the store is fed; the others go on.
            let Ok(entry) = framed.entry() else { continue };
            match entry {
                Entry::Post(record) if !record.used_nothing() => {
                    self.push(record.id, &CloudEvent::of(&record))?
                }
                Entry::Correction(correction) => {
                    for item in &BillItem::of_correction(&correction)? {
                        self.push(correction.id, &CloudEvent::of_item(item))?;
                    }
                }
                _ => continue,
            }
            if let Some(last) = self.pending.back_mut() {
                last.position = Some(position);
            }
        }
        Ok(())
    }

    fn push(&mut self, id: RequestId, event: &impl Serialize) -> Result<(), PushFault> {
        let json = serde_json::to_vec(event).map_err(io::Error::from)?;
        self.pending.push_back(Event { id, position: None, json });
        Ok(())
    }

    /// The next entry that was not sent.
    fn next(&mut self, tell: &Tell) -> Result<Option<FramedEntry>, PushFault> {
        if let Some(entries) = &mut self.entries {
            return match entries.next().transpose() {
                Ok(next) => Ok(next),
                Err(fault) => {
                    // From where the receiver has it, with open eyes.
                    self.entries = None;
                    self.pending.clear();
                    Err(fault.into())
                }
            };
        }
        let mut entries = taximeter_journal::read(&self.journal, self.cursor.first());
        let first = entries.next().transpose()?;
        match self.cursor.check(first.as_ref().map(FramedEntry::position)) {
            Found::Nothing => Ok(None),
            Found::Last => {
                let next = entries.next().transpose()?;
                self.entries = Some(entries);
                Ok(next)
            }
            Found::Next => {
                self.entries = Some(entries);
                Ok(first)
            }
            Found::Gap { first: lost, last } => {
                tell(&PushOutcome::Lost { first: lost, last });
                self.entries = Some(entries);
                Ok(first)
            }
            Found::Other => {
                tell(&PushOutcome::Replaced);
                self.cursor = PushCursor::START;
                Ok(None)
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
