//! The database that answers questions: this crate feeds it from the journals, and queries it.
//!
//! Begin with `feed.rs` (journals to batches) and `ask.rs` (questions). The crate `database` says what a
//! database must do; `sqlite` and `postgres` do it.
//!
//! # Invariants
//!
//! - The journals are the truth. The store repeats them in a form that can be queried: each
//!   request, each correction, and the sums per hour from which bills are made.
//! - Feeding is idempotent. Each request is in the store once, even if several processes feed it at
//!   the same time.
//! - The key of a request is the id of its ledger and the sequence number of its entry. Requests get their
//!   numbers in this order (`ledgers.rs` in `sqlite`). A journal that lost its tail gives sequence numbers
//!   again: what is here keeps its key, and what is new comes behind all that is here.
//! - Nothing is removed from the store but single requests, a day at a time, after the sums of their hours
//!   are in a file. It survives a power cut, because the journal may drop
//!   segments that the store has.
//! - Each request is in one place at any moment: in the tables, or in a file of its day.
//! - The store can be rebuilt from the journals and the files of days at any time. It keeps what the
//!   journals no longer have.
//!
//! What the store has may go from the journal: `room.rs` asks for that after each feeding, and before a
//! start writes anything.
//!
//! This crate knows no clients, engines or wire formats. How bills and export formats look is in
//! `billing`.
//!
//! # Layout
//!
//! `feed` (journals to batches), `rejected` (entries that cannot be read, one file each), `ask`
//! (questions), `audit` (whether the sums are those of the requests). A thread of `serve` feeds the store,
//! and so does every command that queries it and may write it. Others only read it (`reading.rs`).
//!
//! # Bills
//!
//! Bills come from the sums per hour. If neither GPUs nor allowances need single hours
//! (`Terms::sums`), they come from sums per hour, day or month, which are much cheaper to read. If
//! the period or the bill's time zone cuts an hour, that hour comes from its requests. Allowances
//! and shares of GPUs are known only when a bill is made. `terms.rs` computes them for bills,
//! exports and statements alike, so that all show the same amounts. They become credits and further
//! hours, and nothing of them is stored.
//!
//! # Closed periods and statements
//!
//! The feed also reads checkpoints. They say up to when a gateway has written and which of its
//! requests are open. The store keeps that for each journal of requests (`reached` in both
//! databases), and `closing.rs` tells from it whether a period is closed (the rule is in `billing`).
//! It is asked before the sums are read: what is said to be final is in them.
//!
//! A final statement is recorded before it is given out (`statements/`): as a file in the data
//! directory, so that it outlives a store that is built anew, or in a table of the shared database.
//!
//! # Corrections
//!
//! Corrections have a journal of their own in `data_dir/corrections`, because a command may write
//! them while the gateway runs. In the store they are hours next to those of the requests. If
//! gateways share a database, a correction is in the journal of the directory that was given to its
//! run, and the gateway of that directory feeds it. So `verify`, rebuilding and pushing treat it
//! like any other. A run sets a mark in the database before its first correction and removes it
//! after its last one. While the mark is there, no other run begins (`postgres/src/corrector.rs`).
//!
//! # SQLite and PostgreSQL
//!
//! A gateway that feeds PostgreSQL notes this in its data directory (`fed.rs`). So a command that
//! is pointed at the directory does not answer from the incomplete SQLite file there.
//!
//! Requests leave SQLite for files of days, and sums per hour for files of hours (`sqlite` says how,
//! `seal_thread.rs` when). PostgreSQL has no such files. Samples of engines, GPUs and hosts are in files beside
//! them, which no database knows (`memory.rs`). In PostgreSQL each change takes one advisory lock first and keeps it to its end. So numbers become visible in
//! order, no two changes deadlock, and the hours need no row per gateway. `postgres/src/link.rs` puts a
//! limit on every wait, and tries again what a deadlock undid. The feeder repeats every other
//! failure, from the cursor of its journal. The tests start their server with
//! `tests/src/postgres.rs`.
//!

mod ask;
mod ask_behind;
mod audit;
pub mod bills;
mod closing;
pub mod convert;
mod cursor;
mod details;
mod dimensions;
mod fed;
mod feed;
pub mod feeder;
mod journals;
pub mod memory;
mod models;
mod reading;
pub mod refusals;
mod rejected;
mod room;
pub mod seal_thread;
mod sessions;
pub mod signing;
pub mod statements;
pub mod terms;
pub mod verify;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use taximeter_config::{Config, PostgresUrl, Store as Configured};

pub use self::ask::Pages;
pub use self::audit::{Audited, SessionSum, Sum};
pub use self::cursor::{Cursor, Order};
pub use self::fed::FedStore;
pub use self::feed::{Entries, Fed, Feed};
pub use self::journals::{feeds, feeds_to_read, feeds_with, set_rejected_aside};
pub use self::room::{AtStart, Cleaner};
pub use taximeter_database::behind::{Behind, EntryPage, Lacked, Stored, StoredEntry};
pub use taximeter_database::database::{Filter, Rebuilt, SessionsCure, Written, WrongSessions};
pub use taximeter_database::error::{ReadError, StoreError};
pub use taximeter_database::gone::{GoneCause, GoneDay, GoneFile};
pub(crate) use taximeter_database::granularity::Granularity;
pub use taximeter_database::post::Post;
pub use taximeter_database::sealing::SealPolicy;
pub use taximeter_sqlite::Held as HeldStore;
pub use taximeter_sqlite::keeper::check_keeper;
pub use taximeter_sqlite::{DAYS, DaysForRoom, HOURS, OldDay, SealWork, Sealer};

use taximeter_database::database::Database;
use taximeter_postgres::Postgres;
use taximeter_sqlite::Sqlite;

/// An open store.
#[derive(Debug)]
pub struct Store {
    database: Box<dyn Database>,
    is_shared: bool,
    /// The data directory whose store is only read.
    read_in: Option<PathBuf>,
}

/// The location of the store that a gateway feeds.
#[derive(Debug, Clone)]
pub enum Location {
    /// In this data directory.
    DataDir(PathBuf),
    /// In a database.
    Postgres {
        /// The URL of the database.
        url: Box<PostgresUrl>,
        /// The name of the gateway in the database.
        gateway: String,
    },
}

impl Location {
    /// The location that the configuration of `gateway` names. Its data directory must exist.
    pub fn of(config: &Config, gateway: &str) -> Self {
        let dir = &config.data_dir;
        match &config.ledger.store {
            Configured::Sqlite => Self::DataDir(dir.clone()),
            Configured::Postgres(url) => Self::in_database(url, gateway, dir),
        }
    }

    /// The database that `gateway` feeds from `data_dir`, which must exist.
    pub fn in_database(url: &PostgresUrl, gateway: &str, data_dir: &Path) -> Self {
        // Gateways of one machine have one name, but never one data directory.
        let dir = data_dir.canonicalize().unwrap_or_else(|_| data_dir.to_owned());
        let gateway = format!("{gateway} {}", dir.display());
        Self::Postgres { url: Box::new(url.clone()), gateway }
    }

    /// Notes the location in `data_dir`, for commands that are pointed at the directory.
    ///
    /// Errors: the directory cannot be written.
    pub fn leave_word(&self, data_dir: &Path) -> io::Result<()> {
        let fed = match self {
            Self::DataDir(_) => None,
            Self::Postgres { url, gateway } => {
                Some(FedStore { store: url.to_string(), gateway: gateway.clone() })
            }
        };
        FedStore::say(fed.as_ref(), data_dir)
    }

    /// Opens the store for the gateway of `data_dir`, after the note there that names it.
    ///
    /// Errors: as [`Location::open`]; `Unavailable` while the note cannot be written.
    pub fn open_noted(&self, data_dir: &Path) -> Result<Store, StoreError> {
        self.leave_word(data_dir).map_err(|source| StoreError::Unavailable {
            store: data_dir.display().to_string(),
            source: source.into(),
        })?;
        self.open()
    }

    /// Opens the store.
    ///
    /// Errors: as [`Store::open`] and [`Store::connect`].
    pub fn open(&self) -> Result<Store, StoreError> {
        match self {
            Self::DataDir(dir) => Store::open(dir),
            Self::Postgres { url, gateway } => Store::connect(url, gateway),
        }
    }
}

/// The name of the location for people, without the password.
impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DataDir(dir) => write!(f, "the ledger in {}", dir.display()),
            Self::Postgres { url, .. } => url.fmt(f),
        }
    }
}

impl Store {
    /// Opens the store in `data_dir`. It creates the store if there is none.
    ///
    /// Errors: `NoDataDir`, `Older`, `Format`, `Damaged`, `Unavailable`.
    pub fn open(data_dir: &Path) -> Result<Self, StoreError> {
        Ok(Self { database: Box::new(Sqlite::open(data_dir)?), is_shared: false, read_in: None })
    }

    /// Whether others feed the store, and not this process: gateways that share it, or the gateway of
    /// a directory that this process may not write.
    pub const fn is_fed_elsewhere(&self) -> bool {
        self.is_shared || self.read_in.is_some()
    }

    /// Whether several gateways can feed the store.
    pub const fn is_shared(&self) -> bool {
        self.is_shared
    }

    /// Opens the store in a PostgreSQL database. It creates the store if there is none. `gateway` is
    /// the name of the gateway whose journals are fed. It must be unique in the database.
    ///
    /// Errors: `OlderDatabase`, `Format`, `Damaged`, `Unavailable`.
    pub fn connect(url: &PostgresUrl, gateway: &str) -> Result<Self, StoreError> {
        let database = Box::new(Postgres::open(url, gateway)?);
        Ok(Self { database, is_shared: true, read_in: None })
    }

    /// Reserves the right to write corrections of this store until
    /// [`end_correcting`](Self::end_correcting), or until the store is closed. `now` is shown to
    /// people. `lost` names a gateway that will not feed any more.
    ///
    /// Errors: `Correcting`; `Unfinished` while corrections may lie in another gateway's journal;
    /// `Damaged`, `Unavailable`.
    pub fn begin_correcting(
        &mut self,
        now: Timestamp,
        lost: Option<&str>,
    ) -> Result<(), StoreError> {
        self.database.begin_correcting(now, lost)
    }

    /// Ends correcting: all corrections that were written are in the store. Without this call
    /// others cannot correct, also after this process has ended.
    ///
    /// Errors: `Damaged`, `Unavailable`.
    pub fn end_correcting(&mut self) -> Result<(), StoreError> {
        self.database.end_correcting()
    }
}

#[cfg(any(test, feature = "samples"))]
#[expect(clippy::unwrap_used, reason = "only tests build it")]
pub mod samples;
#[cfg(test)]
mod tests;
