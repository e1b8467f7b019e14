//! Feeds entries from the journals into the store.

use std::fmt;
use std::io;

use jiff::Timestamp;
use taximeter_database::batch::Batch;
use taximeter_database::database::{Database, Rebuilt};
use taximeter_database::error::{ReadError, StoreError};
use taximeter_database::forms::Forms;
use taximeter_journal::REQUESTS;
use taximeter_ledger::{Fault, FramedEntry, Kind, LedgerId, Position};

use super::Store;

/// Most entries that are read at once: bounds their memory.
const BATCH_ENTRIES_MAX: usize = 4096;
/// About the entries of half a second.
const USUAL_BATCH: usize = 1024;
/// Most bytes of entries that are read at once, but for the last one.
const BATCH_BYTES_MAX: usize = 8 << 20;
/// Most entries of the batches that are committed together, but for those of the last batch: bounds how
/// long other writers wait. Each commit writes the sums of all hours that have changed, so fewer entries
/// cost more each.
const COMMIT_ENTRIES_MAX: usize = 32 << 10;

/// How often a feeding begins anew behind the cursor where a journal cannot be read.
const TRIES_MAX: u32 = 5;

/// The entries of a journal, in order. `None` may mean the end so far.
pub type Entries = Box<dyn Iterator<Item = Result<FramedEntry, ReadError>> + Send>;

/// Reads a journal from this sequence number on, or from its first entry after it.
type Read<'a> = Box<dyn FnMut(u64) -> Result<Entries, ReadError> + Send + 'a>;

/// Keeps an entry of the journal of this name that the store cannot read.
type SetAside<'a> = Box<dyn FnMut(&str, &FramedEntry, &Fault) -> io::Result<()> + Send + 'a>;

/// A journal that feeds the store. It is read from where the last feeding ended.
pub struct Feed<'a> {
    name: &'a str,
    read: Read<'a>,
    set_aside: SetAside<'a>,
    open: Option<Entries>,
    /// Those of the last entries.
    forms: Forms,
    /// Sequence number of the last entry of it that the store has.
    stored: u64,
    /// The ledger of that entry.
    ledger: Option<LedgerId>,
    /// How many requests there were up to there, and the time of the first checkpoint that was read.
    counted: Option<(u64, Timestamp)>,
    /// Whether the store was asked if it has them all.
    is_checked: bool,
}

/// The result of a feeding.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Fed {
    /// Entries read that leave something in the store, or come last.
    pub entries: u64,
    /// Records that were new to the store.
    pub records: u64,
    /// Corrections that were new to the store.
    pub corrections: u64,
    /// Sequence number of the last entry of the first journal that the store has; 0 for none. The
    /// journal may remove entries up to it.
    pub stored: u64,
    /// The same for the second journal, that of corrections.
    pub stored_corrections: u64,
    /// The last entry of the first journal up to which all requests are in files of days. `None` where
    /// the store has no such files.
    pub sealed: Option<u64>,
    /// Bytes of the data directory in pages that the store has free for later rows.
    pub free_bytes: u64,
}

impl<'a> Feed<'a> {
    /// The journal that `read` reads. `name` is its name in the store. An entry that cannot be
    /// understood ends the feeding, unless the caller sets it aside.
    pub fn new(
        name: &'a str,
        read: impl FnMut(u64) -> Result<Entries, ReadError> + Send + 'a,
    ) -> Self {
        let set_aside =
            |_: &str, _: &FramedEntry, fault: &Fault| Err(io::Error::other(fault.clone()));
        Self {
            name,
            read: Box::new(read),
            set_aside: Box::new(set_aside),
            open: None,
            forms: Forms::default(),
            stored: 0,
            ledger: None,
            counted: None,
            is_checked: false,
        }
    }

    /// The same, but an entry that cannot be read is given to `set_aside`, and once that has it the
    /// others go on.
    pub(crate) fn setting_aside(
        self,
        set_aside: impl FnMut(&str, &FramedEntry, &Fault) -> io::Result<()> + Send + 'a,
    ) -> Self {
        Self { set_aside: Box::new(set_aside), ..self }
    }

    /// Its name in the store.
    pub(super) const fn name(&self) -> &'a str {
        self.name
    }

    /// Reads it from the cursor of the store again.
    pub(super) fn begin_anew(&mut self) {
        self.open = None;
    }

    /// What the journal has behind `cursor`. When it does not go on there (its tail was lost, or it
    /// was replaced), all that it has: requests that are in the store stay as they are.
    pub(super) fn unread(&mut self, cursor: Option<Position>) -> Result<Entries, ReadError> {
        if let Some(cursor) = cursor {
            let mut entries = (self.read)(cursor.seq)?;
            let last = entries.next().transpose()?;
            if let Some(last) = last.filter(|last| last.position() == cursor) {
                (self.stored, self.ledger) = (cursor.seq, Some(last.ledger));
                return Ok(entries);
            }
        }
        self.stored = 0;
        (self.read)(0)
    }

    /// The last entry of this journal that a store with this cursor has: 0 where the journal does not
    /// go on there.
    pub(super) fn stored_at(&mut self, cursor: Option<Position>) -> u64 {
        let is_read = self.unread(cursor).is_ok();
        if is_read { self.stored } else { 0 }
    }

    /// Feeds all that is new.
    fn feed(&mut self, database: &mut dyn Database, fed: &mut Fed) -> Result<(), StoreError> {
        let mut entries = match self.open.take() {
            Some(entries) => entries,
            None => self.unread(database.cursor(self.name)?).map_err(StoreError::Journal)?,
        };
        self.drain(database, &mut entries, fed)?;
        if let (false, REQUESTS, Some((posts, before))) = (self.is_checked, self.name, self.counted)
        {
            database.check_whole(posts, before)?;
            self.is_checked = true;
        }
        self.open = Some(entries);
        Ok(())
    }

    /// Feeds all of `entries`.
    fn drain(
        &mut self,
        database: &mut dyn Database,
        entries: &mut Entries,
        fed: &mut Fed,
    ) -> Result<(), StoreError> {
        let mut read = Vec::with_capacity(USUAL_BATCH);
        let mut uncommitted = 0;
        loop {
            let mut end = read_batch(entries, &mut read);
            let mut batch = Batch::new(std::mem::take(&mut self.forms), read.len());
            for framed in &read {
                let Err(fault) = batch.push(self.name, framed) else { continue };
                if let Err(error) = (self.set_aside)(self.name, framed, &fault) {
                    end = Err(error.into());
                    break;
                }
                batch.pass(self.name, framed);
            }
            let Some((_, last)) = batch.end else {
                database.commit()?;
                return end.map_err(StoreError::Journal);
            };
            let added = database.add(&batch)?;
            uncommitted += read.len();
            if uncommitted >= COMMIT_ENTRIES_MAX || read.len() < BATCH_ENTRIES_MAX || end.is_err() {
                database.commit()?;
                uncommitted = 0;
            }
            let posts = batch.posts.len() as u64;
            let before = self.counted.map(|(_, before)| before).or(batch.first_checkpoint);
            let counted = batch.counted.or(self.counted.map(|(known, _)| known + posts));
            self.counted = counted.zip(before);
            self.forms = batch.forms;
            self.stored = last.seq;
            self.ledger = read.last().map(|framed| framed.ledger).or(self.ledger);
            fed.entries += read.len() as u64;
            fed.records += added.posts;
            fed.corrections += added.corrections;
            end.map_err(StoreError::Journal)?;
        }
    }
}

impl fmt::Debug for Feed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Feed").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Store {
    /// Feeds the entries that the store does not have yet, one journal after the other. A store that
    /// is only read gets them from its gateway, or becomes a copy that gets them.
    ///
    /// Errors: `Journal` after feeding what came before the fault; `Damaged`, `Unavailable`.
    pub fn catch_up(&mut self, feeds: &mut [Feed<'_>]) -> Result<Fed, StoreError> {
        match self.read_in.clone() {
            Some(data_dir) => self.read_on(&data_dir, feeds),
            None => feed_all(&mut *self.database, feeds),
        }
    }

    /// Rebuilds the store from the journals. It keeps what the journals no longer have, because
    /// they may have removed old segments. The store stays as it was until everything is done, and
    /// after an error.
    ///
    /// Errors: as [`Store::catch_up`].
    pub fn rebuild(&mut self, feeds: &mut [Feed<'_>]) -> Result<Rebuilt, StoreError> {
        if self.is_shared && self.details_from()?.is_some() {
            // Hours of days without details stay. So nothing of these days may be new meanwhile.
            feed_all(&mut *self.database, feeds)?;
        }
        feeds.iter_mut().for_each(Feed::begin_anew);
        self.database.rebuild(&mut |database| feed_all(database, feeds).map(|_| ()))
    }
}

pub(super) fn feed_all(
    database: &mut dyn Database,
    feeds: &mut [Feed<'_>],
) -> Result<Fed, StoreError> {
    let mut fed = Fed::default();
    for feed in &mut *feeds {
        let mut tries = 1;
        loop {
            match feed.feed(database, &mut fed) {
                // The gateway may have fed these entries, and removed their files meanwhile. Damage
                // is still there the next time.
                Err(StoreError::Journal(_))
                    if tries < TRIES_MAX && database.cursor(feed.name)?.is_some() => {}
                done => break done?,
            }
            tries += 1;
        }
    }
    if let Some(Feed { name, ledger: Some(ledger), .. }) = feeds.first() {
        fed.sealed = database.sealed_through(name, *ledger)?;
    }
    let mut stored = feeds.iter().map(|feed| feed.stored);
    fed.stored = stored.next().unwrap_or(0);
    fed.stored_corrections = stored.next().unwrap_or(0);
    fed.free_bytes = database.free_bytes()?;
    Ok(fed)
}

/// Whether entries of this kind leave something in the store.
pub(super) const fn is_kept(kind: Kind) -> bool {
    matches!(kind, Kind::Post | Kind::Correction | Kind::Refusals)
}

/// Whether entries of this kind are fed. A checkpoint tells how far the journal is.
pub(super) const fn is_fed(kind: Kind) -> bool {
    is_kept(kind) || matches!(kind, Kind::Checkpoint)
}

/// Reads the entries of the next transaction, in place of what `read` has.
fn read_batch(entries: &mut Entries, read: &mut Vec<FramedEntry>) -> Result<(), ReadError> {
    read.clear();
    let mut bytes = 0;
    while read.len() < BATCH_ENTRIES_MAX && bytes < BATCH_BYTES_MAX {
        let Some(framed) = entries.next().transpose()? else { break };
        bytes += framed.payload.len();
        read.push(framed);
    }
    Ok(())
}
