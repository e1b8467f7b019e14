//! The store for questions: SQLite in the data directory, fed from the journal beside it.
//!
//! What the journal has is true; the store repeats it in a form that can be asked. A request is in
//! it once, whatever is fed how often, and nothing is ever removed. So several processes may feed
//! it at the same time, and it can be rebuilt at any moment. It is kept through a power cut all the
//! same, since the journal may drop old segments that the store has.

mod ask;
mod feed;
mod post;
mod schema;

use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;
use rusqlite::{Connection, ErrorCode, OpenFlags};
use taximeter_ledger::Framed;

/// The store's file in the data directory.
const FILE: &str = "store.sqlite";
/// How long to wait for another process that writes.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

/// Any error of whoever reads the journal.
pub(crate) type ReadError = Box<dyn std::error::Error + Send + Sync>;

/// Entries of the journal, in order. `None` may be the end so far.
pub(crate) type Entries = Box<dyn Iterator<Item = Result<Framed, ReadError>>>;

/// Reads the journal from this sequence number on, or from its first entry after it.
pub(crate) type ReadJournal<'a> = dyn FnMut(u64) -> Result<Entries, ReadError> + 'a;

/// An open store.
#[derive(Debug)]
pub(crate) struct Store {
    connection: Connection,
    path: PathBuf,
}

/// What a feeding did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Fed {
    /// Entries read.
    pub(crate) entries: u64,
    /// Records that were new to the store.
    pub(crate) records: u64,
}

/// Which records are asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Filter {
    /// Of this tenant only.
    pub(crate) tenant: Option<String>,
    /// Admitted at or after, to the microsecond.
    pub(crate) from: Option<Timestamp>,
    /// Admitted before, to the microsecond.
    pub(crate) to: Option<Timestamp>,
}

/// Why the store cannot answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum StoreError {
    /// No such directory.
    #[error(
        "there is no data directory {}; name the gateway's with --data-dir, or start the gateway \
         first (taximeter serve)",
        .0.display()
    )]
    NoDataDir(PathBuf),
    /// Written by a later version.
    #[error(
        "the store {} has format {found}, and this taximeter knows formats up to {known}; use the \
         newer taximeter that wrote it",
        path.display()
    )]
    Newer {
        /// Its file.
        path: PathBuf,
        /// Its format.
        found: u32,
        /// Ours.
        known: u32,
    },
    /// Not a store, or not whole.
    #[error(
        "the store {} is damaged: {source}; move it away and run this again, and it is built anew \
         from the journal",
        path.display()
    )]
    Damaged {
        /// Its file.
        path: PathBuf,
        /// What does not fit.
        source: rusqlite::Error,
    },
    /// The file system, or another process, says no.
    #[error("cannot use the store {}: {source}", path.display())]
    Unavailable {
        /// Its file.
        path: PathBuf,
        /// What SQLite said.
        source: rusqlite::Error,
    },
    /// The journal cannot be read; what came before the fault is in the store.
    #[error("cannot read the journal: {0}")]
    Journal(#[source] ReadError),
}

impl Store {
    /// Opens the store in `data_dir`; makes one when there is none, and brings an older one up to
    /// date.
    ///
    /// Errors: `NoDataDir`, `Newer`, `Damaged`, `Unavailable`.
    pub(crate) fn open(data_dir: &Path) -> Result<Self, StoreError> {
        if !data_dir.is_dir() {
            return Err(StoreError::NoDataDir(data_dir.to_owned()));
        }
        let path = data_dir.join(FILE);
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_CREATE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let fault = |source| fault(&path, source);
        let mut connection = Connection::open_with_flags(&path, flags).map_err(fault)?;
        connection.busy_timeout(BUSY_TIMEOUT).map_err(fault)?;
        let found = schema::prepare(&mut connection).map_err(fault)?;
        if found > schema::VERSION {
            return Err(StoreError::Newer { path, found, known: schema::VERSION });
        }
        Ok(Self { connection, path })
    }

    /// Says which store it was.
    fn fault(&self, source: rusqlite::Error) -> StoreError {
        fault(&self.path, source)
    }
}

fn fault(path: &Path, source: rusqlite::Error) -> StoreError {
    let path = path.to_owned();
    let damaged = matches!(
        source.sqlite_error_code(),
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase)
    ) || matches!(
        source,
        rusqlite::Error::FromSqlConversionFailure(..)
            | rusqlite::Error::InvalidColumnType(..)
            | rusqlite::Error::IntegralValueOutOfRange(..)
    );
    if damaged {
        StoreError::Damaged { path, source }
    } else {
        StoreError::Unavailable { path, source }
    }
}

#[cfg(test)]
pub(crate) mod samples;
#[cfg(test)]
mod tests;
