//! The store for questions: a database that is fed from the journals.
//!
//! What the journals have is true; the store repeats it in a form that can be asked: each request,
//! each correction, and what they add up to by the hour, which is what bills are made of. A request
//! is in it once, whatever is fed how often, and nothing is ever removed. So several processes may
//! feed it at the same time, and it can be rebuilt at any moment. It is kept through a power cut all
//! the same, since the journal may drop old segments that the store has.

mod ask;
mod batch;
mod database;
mod error;
mod feed;
mod post;
mod sqlite;

use std::path::Path;

pub(crate) use self::database::Filter;
pub(crate) use self::error::{ReadError, StoreError};
pub(crate) use self::feed::{Entries, Fed, Feed};

use self::database::Database;
use self::sqlite::Sqlite;

/// An open store.
#[derive(Debug)]
pub(crate) struct Store {
    database: Box<dyn Database>,
}

impl Store {
    /// Opens the store in `data_dir`; makes one when there is none, and brings an older one up to
    /// date.
    ///
    /// Errors: `NoDataDir`, `Newer`, `Damaged`, `Unavailable`.
    pub(crate) fn open(data_dir: &Path) -> Result<Self, StoreError> {
        Ok(Self { database: Box::new(Sqlite::open(data_dir)?) })
    }
}

#[cfg(test)]
pub(crate) mod samples;
#[cfg(test)]
mod tests;
