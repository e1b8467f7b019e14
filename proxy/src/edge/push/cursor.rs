//! How far the receiver has the journal, on disk.

use std::fs;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};
use taximeter_ledger::Position;
use tempfile::NamedTempFile;

/// Its file in the data directory.
const FILE: &str = "push.json";

/// The last entry that need not be sent again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Cursor {
    seq: u64,
    /// Tells this journal from another; unknown where nothing was sent yet.
    chain: Option<u32>,
}

/// What the journal has where the cursor is.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// Nothing yet.
    Nothing,
    /// The last entry that was sent: what follows is new.
    Last,
    /// The entry after it.
    Next,
    /// A later one: those between were dropped.
    Gap { first: u64, last: u64 },
    /// Another journal.
    Other,
}

impl Cursor {
    /// Before the first entry.
    pub(super) const START: Self = Self { seq: 0, chain: None };

    pub(super) const fn at(position: Position) -> Self {
        Self { seq: position.seq, chain: Some(position.chain) }
    }

    /// Where sending stopped; after entry `newest` where it never began. A file that cannot be read
    /// says nothing, so that all is sent again: better twice than never.
    pub(super) fn load(dir: &Path, newest: u64) -> Self {
        let cursor = match fs::read(dir.join(FILE)) {
            Ok(json) => serde_json::from_slice(&json).unwrap_or(Self::START),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Self { seq: newest, chain: None }
            }
            Err(_) => Self::START,
        };
        // A journal that is shorter than what was sent is another one.
        if cursor.seq > newest { Self::START } else { cursor }
    }

    /// Takes the old one's place in one step.
    pub(super) fn save(self, dir: &Path) -> io::Result<()> {
        let file = NamedTempFile::new_in(dir)?;
        serde_json::to_writer(&file, &self)?;
        file.as_file().sync_all()?;
        file.persist(dir.join(FILE))?;
        Ok(())
    }

    /// From which sequence number to read.
    pub(super) const fn first(self) -> u64 {
        // The last one is read again to see that it is the same journal.
        if self.chain.is_some() { self.seq } else { self.seq + 1 }
    }

    /// What it means that the journal begins with `first`, read from [`Cursor::first`] on.
    pub(super) fn check(self, first: Option<Position>) -> Found {
        match (first, self.chain) {
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
    use super::*;

    const SENT: Cursor = Cursor { seq: 7, chain: Some(9) };

    #[test]
    fn it_is_where_it_was_after_a_restart() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(Cursor::load(dir.path(), 5), Cursor { seq: 5, chain: None });
        SENT.save(dir.path()).unwrap();
        assert_eq!(Cursor::load(dir.path(), 20), SENT);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "nothing else is left");
    }

    #[test]
    fn a_file_that_cannot_be_read_and_a_shorter_journal_send_all_again() {
        let dir = tempfile::tempdir().unwrap();
        SENT.save(dir.path()).unwrap();
        assert_eq!(Cursor::load(dir.path(), 6), Cursor::START);
        fs::write(dir.path().join(FILE), "{").unwrap();
        assert_eq!(Cursor::load(dir.path(), 20), Cursor::START);
    }

    #[test]
    fn it_knows_its_journal_and_what_is_missing() {
        let at = |seq, chain| Some(Position { seq, chain });
        assert_eq!(SENT.first(), 7);
        assert_eq!(SENT.check(at(7, 9)), Found::Last);
        assert_eq!(SENT.check(at(7, 8)), Found::Other);
        assert_eq!(SENT.check(at(8, 1)), Found::Next);
        assert_eq!(SENT.check(at(11, 1)), Found::Gap { first: 8, last: 10 });
        assert_eq!(SENT.check(None), Found::Nothing);
        assert_eq!((Cursor::START.first(), Cursor::START.check(at(1, 5))), (1, Found::Next));
    }
}
