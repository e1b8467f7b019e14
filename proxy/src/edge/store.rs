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
mod cursor;
mod database;
mod error;
mod fed;
mod feed;
mod grain;
mod post;
mod postgres;
mod rejected;
mod sqlite;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use taximeter_config::{Config, PostgresUrl, Store as Configured};

pub(crate) use self::ask::Pages;
pub(crate) use self::audit::{Audited, Sum};
pub(crate) use self::cursor::{Cursor, Order};
pub(crate) use self::database::{Filter, Written};
pub(crate) use self::error::{ReadError, StoreError};
pub(crate) use self::fed::FedStore;
pub(crate) use self::feed::{Entries, Fed, Feed};
pub(crate) use self::grain::Grain;
pub(crate) use self::post::Post;
pub(crate) use self::rejected::set_aside;
pub(crate) use self::sqlite::Held as HeldStore;

use self::database::Database;
use self::postgres::Postgres;
use self::sqlite::Sqlite;

/// An open store.
#[derive(Debug)]
pub(crate) struct Store {
    database: Box<dyn Database>,
    is_shared: bool,
}

/// Where the store is that a gateway feeds.
#[derive(Debug, Clone)]
pub(crate) enum Location {
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
    pub(crate) fn of(config: &Config, gateway: &str) -> Self {
        let dir = &config.data_dir;
        match &config.ledger.store {
            Configured::Sqlite => Self::DataDir(dir.clone()),
            Configured::Postgres(url) => Self::in_database(url, gateway, dir),
        }
    }

    /// The database that the gateway called `gateway` feeds from `data_dir`, which is there already.
    pub(crate) fn in_database(url: &PostgresUrl, gateway: &str, data_dir: &Path) -> Self {
        // Gateways of one machine have one name, but never one data directory.
        let dir = data_dir.canonicalize().unwrap_or_else(|_| data_dir.to_owned());
        let gateway = format!("{gateway} {}", dir.display());
        Self::Postgres { url: Box::new(url.clone()), gateway }
    }

    /// Leaves word of it in `data_dir`, for those who ask the directory.
    ///
    /// Errors: the directory cannot be written.
    pub(crate) fn leave_word(&self, data_dir: &Path) -> io::Result<()> {
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
    pub(crate) fn open(&self) -> Result<Store, StoreError> {
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
    /// Errors: `NoDataDir`, `Format`, `Damaged`, `Unavailable`.
    pub(crate) fn open(data_dir: &Path) -> Result<Self, StoreError> {
        Ok(Self { database: Box::new(Sqlite::open(data_dir)?), is_shared: false })
    }

    /// Whether several gateways may feed it.
    pub(crate) const fn is_shared(&self) -> bool {
        self.is_shared
    }

    /// Opens the store in a PostgreSQL database; makes one when there is none, and brings an older
    /// one up to date. `gateway` is whose journals are fed, and different from all others.
    ///
    /// Errors: `Format`, `Damaged`, `Unavailable`.
    pub(crate) fn connect(url: &PostgresUrl, gateway: &str) -> Result<Self, StoreError> {
        Ok(Self { database: Box::new(Postgres::open(url, gateway)?), is_shared: true })
    }

    /// From here to [`end_correcting`](Self::end_correcting), or until it is closed, nobody else
    /// writes corrections of what it has; `now` is for people. The gateway that is called `lost`
    /// will not feed any more.
    ///
    /// Errors: `Correcting`; `Unfinished` while corrections may lie in another gateway's journal;
    /// `Damaged`, `Unavailable`.
    pub(crate) fn begin_correcting(
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
    pub(crate) fn end_correcting(&mut self) -> Result<(), StoreError> {
        self.database.end_correcting()
    }
}

#[cfg(test)]
pub(crate) mod samples;
#[cfg(test)]
mod tests;
