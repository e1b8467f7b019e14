//! How far the receiver of `export.push` has the journals, stored on disk.

use std::fs;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};
use taximeter_ledger::{LedgerId, Position};
use tempfile::NamedTempFile;

use super::CORRECTIONS;

/// The file, in the data directory, of how far the receiver has the requests.
pub const PUSHED: &str = "push.json";
/// The same of the corrections.
pub const PUSHED_CORRECTIONS: &str = "push-corrections.json";

/// The sequence numbers of the last request and the last correction of `data_dir` that need not be
/// sent again.
#[must_use]
pub fn pushed(data_dir: &Path) -> (u64, u64) {
    let sent = |file| PushCursor::sent(&data_dir.join(file));
    (sent(PUSHED), sent(PUSHED_CORRECTIONS))
}

/// Notes in `data_dir` that an entry of this journal, up to which all is sent, has a new position.
///
/// # Errors
/// The directory cannot be written.
pub fn follow_push(data_dir: &Path, journal: &str, from: Position, to: Position) -> io::Result<()> {
    let file = if journal == CORRECTIONS { PUSHED_CORRECTIONS } else { PUSHED };
    PushCursor::follow(&data_dir.join(file), from, to)
}

/// The last entry that need not be sent again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PushCursor {
    seq: u64,
    /// Tells this journal from another. Unknown where nothing was sent yet, and where the store had the
    /// entry and the journal had it no longer: then the ledger tells it.
    chain: Option<u32>,
    /// The ledger of the entry, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ledger: Option<LedgerId>,
    /// It was told that requests up to this entry are lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    lost: Option<u64>,
}

/// What the journal has where the cursor is.
#[derive(Debug, PartialEq, Eq)]
pub enum Found {
    /// Nothing yet.
    Nothing,
    /// The last entry that was sent: what follows is new.
    Last,
    /// The entry after it.
    Next,
    /// A later one: those between were dropped.
    Gap {
        /// The first of them.
        first: u64,
        /// The last of them.
        last: u64,
    },
    /// Another journal.
    Other,
}

impl PushCursor {
    /// Before the first entry.
    pub const START: Self = Self { seq: 0, chain: None, ledger: None, lost: None };

    /// The same at this entry of the journal.
    #[must_use]
    pub fn at(self, position: Position, ledger: LedgerId) -> Self {
        let Position { seq, chain } = position;
        Self { seq, chain: Some(chain), ..self.behind(seq, ledger) }
    }

    /// The same behind this entry, which the journal no longer has.
    #[must_use]
    pub fn behind(self, seq: u64, ledger: LedgerId) -> Self {
        let ledger = Some(ledger).filter(|ledger| *ledger != LedgerId::UNKNOWN);
        Self { seq, chain: None, ledger, ..self }
    }

    /// The same after it was told that requests up to this entry are lost.
    #[must_use]
    pub const fn told_lost(self, last: u64) -> Self {
        Self { lost: Some(last), ..self }
    }

    /// The last entry that need not be sent again.
    #[must_use]
    pub const fn seq(self) -> u64 {
        self.seq
    }

    /// Whether the entry is one that was sent, and the journal had it.
    #[must_use]
    pub const fn is_known(self) -> bool {
        self.chain.is_some()
    }

    /// It was told that requests up to this entry are lost; 0 if that was not told.
    #[must_use]
    pub fn lost(self) -> u64 {
        self.lost.unwrap_or(0)
    }

    /// Where sending stopped, by its `file`; after the `newest` entry where it never began, which is
    /// kept, so that what comes while the receiver is down is sent after the next start too. A file
    /// that cannot be read says nothing, so that all is sent again: better twice than never.
    ///
    /// # Errors
    /// Those of `newest`. The file cannot be written.
    pub fn load<E: From<io::Error>>(
        file: &Path,
        newest: impl FnOnce() -> Result<u64, E>,
    ) -> Result<Self, E> {
        match fs::read(file) {
            Ok(json) => Ok(serde_json::from_slice(&json).unwrap_or(Self::START)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let cursor = Self { seq: newest()?, ..Self::START };
                cursor.save(file)?;
                Ok(cursor)
            }
            Err(_) => Ok(Self::START),
        }
    }

    /// Whether a journal that ends at `newest` is another one.
    #[must_use]
    pub const fn is_beyond(self, newest: u64) -> bool {
        self.seq > newest
    }

    /// Empties the file, so that all is sent. Needs no room.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn forget(file: &Path) -> io::Result<()> {
        fs::File::create(file)?.sync_all()
    }

    /// The last entry that need not be sent again; 0 where nobody knows.
    #[must_use]
    pub fn sent(file: &Path) -> u64 {
        let json = fs::read(file).unwrap_or_default();
        serde_json::from_slice(&json).unwrap_or(Self::START).seq
    }

    /// Follows an entry to its new position, where `file` has the old one.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn follow(file: &Path, from: Position, to: Position) -> io::Result<()> {
        let json = fs::read(file).unwrap_or_default();
        match serde_json::from_slice(&json) {
            Ok(Self { seq, chain, ledger, lost })
                if (seq, chain) == (from.seq, Some(from.chain)) =>
            {
                Self { seq: to.seq, chain: Some(to.chain), ledger, lost }.save(file)
            }
            _ => Ok(()),
        }
    }

    /// Takes the old one's place in one step.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn save(self, path: &Path) -> io::Result<()> {
        let file = NamedTempFile::new_in(path.parent().unwrap_or(Path::new(".")))?;
        serde_json::to_writer(&file, &self)?;
        file.as_file().sync_all()?;
        file.persist(path)?;
        Ok(())
    }

    /// From which sequence number to read.
    #[must_use]
    pub const fn first(self) -> u64 {
        // The last one is read again to see that it is the same journal.
        if self.chain.is_some() { self.seq } else { self.seq + 1 }
    }

    /// What it means that the journal begins with `first`, read from [`PushCursor::first`] on.
    #[must_use]
    pub fn check(self, first: Option<(Position, LedgerId)>) -> Found {
        let is_other = |ledger| self.ledger.is_some_and(|own| own != ledger);
        if first.is_some_and(|(_, ledger)| is_other(ledger)) {
            return Found::Other;
        }
        match (first.map(|(position, _)| position), self.chain) {
            (None, _) => Found::Nothing,
            (Some(found), Some(chain)) if found.seq == self.seq => {
                if found.chain == chain {
                    Found::Last
                } else {
                    Found::Other
                }
            }
            (Some(found), _) if found.seq > self.seq + 1 => {
                Found::Gap { first: self.seq + 1, last: found.seq - 1 }
            }
            (Some(_), _) => Found::Next,
        }
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    const SENT: PushCursor = PushCursor { seq: 7, chain: Some(9), ..PushCursor::START };

    fn load(file: &Path, newest: u64) -> PushCursor {
        let cursor = PushCursor::load(file, || Ok::<_, io::Error>(newest)).unwrap();
        if cursor.is_beyond(newest) { PushCursor::START } else { cursor }
    }

    #[test]
    fn it_is_where_it_was_after_a_restart() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("push.json");
        assert_eq!(PushCursor::sent(&file), 0);
        let first = PushCursor { seq: 5, ..PushCursor::START };
        assert_eq!(load(&file, 5), first);
        assert_eq!(load(&file, 9), first, "what came before anything was sent is not left out");
        SENT.save(&file).unwrap();
        assert_eq!(load(&file, 20), SENT);
        assert_eq!(PushCursor::sent(&file), 7);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "nothing else is left");
    }

    #[test]
    fn it_follows_an_entry_that_gets_another_chain() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("push.json");
        let at = |chain| Position { seq: 7, chain };
        PushCursor::follow(&file, at(9), at(3)).unwrap();
        assert!(!file.exists(), "nothing was sent");
        SENT.save(&file).unwrap();
        PushCursor::follow(&file, at(8), at(3)).unwrap();
        assert_eq!(load(&file, 20), SENT, "of another journal");
        PushCursor::follow(&file, at(9), at(3)).unwrap();
        assert_eq!(load(&file, 20), PushCursor { chain: Some(3), ..SENT });
    }

    #[test]
    fn a_file_that_cannot_be_read_and_a_shorter_journal_send_all_again() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("push.json");
        SENT.save(&file).unwrap();
        assert_eq!(load(&file, 6), PushCursor::START);
        PushCursor::forget(&file).unwrap();
        assert_eq!((PushCursor::sent(&file), load(&file, 20)), (0, PushCursor::START));
        fs::write(&file, "{").unwrap();
        assert_eq!(PushCursor::sent(&file), 0);
        assert_eq!(load(&file, 20), PushCursor::START);
    }

    #[test]
    fn it_knows_its_journal_and_what_is_missing() {
        let ledger = LedgerId(Uuid::from_u128(1));
        let at = |seq, chain| Some((Position { seq, chain }, ledger));
        assert_eq!(SENT.first(), 7);
        assert_eq!(SENT.check(at(7, 9)), Found::Last);
        assert_eq!(SENT.check(at(7, 8)), Found::Other);
        assert_eq!(SENT.check(at(8, 1)), Found::Next);
        assert_eq!(SENT.check(at(11, 1)), Found::Gap { first: 8, last: 10 });
        assert_eq!(SENT.check(None), Found::Nothing);
        assert_eq!(
            (PushCursor::START.first(), PushCursor::START.check(at(1, 5))),
            (1, Found::Next)
        );
        let behind = SENT.behind(20, ledger);
        assert_eq!((behind.first(), behind.check(at(21, 1))), (21, Found::Next));
        assert_eq!(behind.check(at(25, 1)), Found::Gap { first: 21, last: 24 });
        assert_eq!(SENT.at(Position { seq: 20, chain: 4 }, ledger).check(at(20, 4)), Found::Last);
        let other = LedgerId(Uuid::from_u128(2));
        assert_eq!(SENT.behind(20, other).check(at(21, 1)), Found::Other);
        assert_eq!(SENT.behind(20, LedgerId::UNKNOWN).check(at(21, 1)), Found::Next);
    }
}
