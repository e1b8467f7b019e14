//! The store for questions: a database that is fed from the journals.
//!
//! What the journals have is true; the store repeats it in a form that can be asked: each request,
//! each correction, and what they add up to by the hour, which is what bills are made of. A request
//! is in it once, whatever is fed how often, and nothing is ever removed. So several processes may
//! feed it at the same time, and it can be rebuilt at any moment. It is kept through a power cut all
//! the same, since the journal may drop old segments that the store has.

mod ask;
mod audit;
mod batch;
pub mod bills;
mod cursor;
mod database;
mod error;
pub mod export;
mod fed;
mod feed;
pub mod feeder;
pub mod format;
mod grain;
mod journals;
mod post;
mod postgres;
pub mod push;
mod rejected;
pub mod signing;
mod sqlite;
pub mod terms;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use taximeter_config::{Config, PostgresUrl, Store as Configured};

pub use self::ask::Pages;
pub use self::audit::{Audited, Sum};
pub use self::cursor::{Cursor, Order};
pub use self::database::{Filter, Written};
pub use self::error::{ReadError, StoreError};
pub use self::fed::FedStore;
pub use self::feed::{Entries, Fed, Feed};
pub(crate) use self::grain::Granularity;
pub use self::journals::{feeds, feeds_with, set_rejected_aside};
pub use self::post::Post;
pub use self::sqlite::Held as HeldStore;

use self::database::Database;
use self::postgres::Postgres;
use self::sqlite::Sqlite;

/// An open store.
#[derive(Debug)]
pub struct Store {
    database: Box<dyn Database>,
    is_shared: bool,
}

/// Where the store is that a gateway feeds.
#[derive(Debug, Clone)]
pub enum Location {
    /// In this data directory.
    DataDir(PathBuf),
    /// In a database.
    Postgres {
        /// Which.
        url: Box<PostgresUrl>,
        /// As whom.
        gateway: String,
    },
}

impl Location {
    /// Where the gateway called `gateway` is told to have it. Its data directory is there already.
    pub fn of(config: &Config, gateway: &str) -> Self {
        let dir = &config.data_dir;
        match &config.ledger.store {
            Configured::Sqlite => Self::DataDir(dir.clone()),
            Configured::Postgres(url) => Self::in_database(url, gateway, dir),
        }
    }

    /// The database that the gateway called `gateway` feeds from `data_dir`, which is there already.
    pub fn in_database(url: &PostgresUrl, gateway: &str, data_dir: &Path) -> Self {
        // Gateways of one machine have one name, but never one data directory.
        let dir = data_dir.canonicalize().unwrap_or_else(|_| data_dir.to_owned());
        let gateway = format!("{gateway} {}", dir.display());
        Self::Postgres { url: Box::new(url.clone()), gateway }
    }

    /// Leaves word of it in `data_dir`, for those who ask the directory.
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

    /// Opens it.
    ///
    /// Errors: as [`Store::open`] and [`Store::connect`].
    pub fn open(&self) -> Result<Store, StoreError> {
        match self {
            Self::DataDir(dir) => Store::open(dir),
            Self::Postgres { url, gateway } => Store::connect(url, gateway),
        }
    }
}

/// What people call it; without the password.
impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DataDir(dir) => write!(f, "the ledger in {}", dir.display()),
            Self::Postgres { url, .. } => url.fmt(f),
        }
    }
}

impl Store {
    /// Opens the store in `data_dir`; makes one when there is none, and brings an older one up to
    /// date.
    ///
    /// Errors: `NoDataDir`, `Newer`, `Damaged`, `Unavailable`.
    pub fn open(data_dir: &Path) -> Result<Self, StoreError> {
        Ok(Self { database: Box::new(Sqlite::open(data_dir)?), is_shared: false })
    }

    /// Whether several gateways may feed it.
    pub const fn is_shared(&self) -> bool {
        self.is_shared
    }

    /// Opens the store in a PostgreSQL database; makes one when there is none, and brings an older
    /// one up to date. `gateway` is whose journals are fed, and different from all others.
    ///
    /// Errors: `Newer`, `Damaged`, `Unavailable`.
    pub fn connect(url: &PostgresUrl, gateway: &str) -> Result<Self, StoreError> {
        Ok(Self { database: Box::new(Postgres::open(url, gateway)?), is_shared: true })
    }

    /// From here to [`end_correcting`](Self::end_correcting), or until it is closed, nobody else
    /// writes corrections of what it has; `now` is for people. The gateway that is called `lost`
    /// will not feed any more.
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

    /// All corrections that were written are in it. What was begun and not ended keeps others from
    /// correcting, also after this process.
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
