//! Opens the store of a data directory to read it, for commands.
//!
//! Who may write the directory feeds the store first, as the gateway does. Everybody else changes
//! nothing there: on a volume that cannot be written, or as another user. Where the store has all that
//! the journals have, it is read as it is. A gateway that runs feeds it in a moment. Where nobody
//! does, a copy of the store is fed, which is gone at the end.

use std::path::Path;
use std::thread;
use std::time::Duration;

use taximeter_database::database::Database as _;
use taximeter_database::error::StoreError;
use taximeter_sqlite::Sqlite;
use taximeter_sqlite::keeper::may_write;

use super::Store;
use super::fed::FedStore;
use super::feed::{Fed, Feed, is_kept};

/// How long a gateway may take to feed what its journal had.
const FEEDING_WAIT_MAX: Duration = Duration::from_secs(5);
/// Time between two looks.
const FEEDING_POLL: Duration = Duration::from_millis(50);
/// Entries that a gateway feeds within that time. Who has more of them does not wait for it.
const LAG_ENTRIES_MAX: usize = 100_000;

impl Store {
    /// Opens the store in `data_dir` to read it, with all that `feeds` have. Changes nothing in a
    /// directory that belongs to another user or cannot be written.
    ///
    /// Errors: `NoDataDir`, `Format`, `Damaged`, `Unavailable`, `NoCopy`, `Journal`.
    pub fn open_to_read(data_dir: &Path, feeds: &mut [Feed<'_>]) -> Result<Self, StoreError> {
        if !data_dir.is_dir() {
            return Err(StoreError::NoDataDir(data_dir.to_owned()));
        }
        if may_write(data_dir) {
            let fed = Self::open(data_dir).and_then(|mut store| {
                store.catch_up(feeds)?;
                Ok(store)
            });
            match fed {
                // The volume is full, or the store is written by others for long.
                Err(StoreError::Unavailable { .. } | StoreError::Pinned { .. }) => {}
                fed => return fed,
            }
        }
        feeds.iter_mut().for_each(Feed::begin_anew);
        let store = Sqlite::open_to_read(data_dir)?;
        if let Some(mut sqlite) = store {
            if has_all(&mut sqlite, feeds, data_dir)? {
                let database = Box::new(sqlite);
                return Ok(Self { database, is_shared: false, read_in: Some(data_dir.to_owned()) });
            }
            return Self::copied(Some(sqlite), data_dir, feeds);
        }
        Self::copied(None, data_dir, feeds)
    }

    fn copied(
        of: Option<Sqlite>,
        data_dir: &Path,
        feeds: &mut [Feed<'_>],
    ) -> Result<Self, StoreError> {
        let database = Box::new(Sqlite::copy(of, data_dir)?);
        let mut store = Self { database, is_shared: false, read_in: None };
        store.catch_up(feeds)?;
        Ok(store)
    }

    /// Gets what `feeds` have into a store that is read: its gateway feeds it, or else a copy takes
    /// its place.
    pub(super) fn read_on(
        &mut self,
        data_dir: &Path,
        feeds: &mut [Feed<'_>],
    ) -> Result<Fed, StoreError> {
        *self = Self::open_to_read(data_dir, feeds)?;
        Ok(Fed::default())
    }
}

/// Whether the store has what the journals have now. Waits for a gateway that feeds it.
fn has_all(
    sqlite: &mut Sqlite,
    feeds: &mut [Feed<'_>],
    data_dir: &Path,
) -> Result<bool, StoreError> {
    for feed in &mut *feeds {
        if let Some(last) = lag(sqlite, feed)?
            && !(is_fed(data_dir) && comes_to(sqlite, feed.name(), last)?)
        {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The last entry of a journal that the store lacks; `None` where it lacks none. `u64::MAX` where it
/// lacks too many.
fn lag(sqlite: &mut Sqlite, feed: &mut Feed<'_>) -> Result<Option<u64>, StoreError> {
    let entries = feed.unread(sqlite.cursor(feed.name())?).map_err(StoreError::Journal)?;
    let mut last = None;
    for (count, framed) in entries.enumerate() {
        let Ok(framed) = framed else {
            // Feeding comes to the same fault and tells it.
            return Ok(Some(u64::MAX));
        };
        if is_kept(framed.kind) {
            last = Some(framed.seq);
        }
        if count == LAG_ENTRIES_MAX {
            return Ok(last.map(|_| u64::MAX));
        }
    }
    Ok(last)
}

/// Whether a gateway runs that feeds the store in `data_dir`.
fn is_fed(data_dir: &Path) -> bool {
    taximeter_journal::is_written(data_dir) && matches!(FedStore::of(data_dir), Ok(None))
}

/// Waits until the store has this entry of a journal.
fn comes_to(sqlite: &mut Sqlite, journal: &str, seq: u64) -> Result<bool, StoreError> {
    if seq == u64::MAX {
        return Ok(false);
    }
    let mut waited = Duration::ZERO;
    loop {
        if sqlite.cursor(journal)?.is_some_and(|cursor| cursor.seq >= seq) {
            return Ok(true);
        }
        if waited >= FEEDING_WAIT_MAX {
            return Ok(false);
        }
        thread::park_timeout(FEEDING_POLL);
        waited += FEEDING_POLL;
    }
}
