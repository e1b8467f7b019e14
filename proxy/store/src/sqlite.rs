//! The store in SQLite, in the data directory. It needs no server and serves one machine.

mod add;
mod ask;
mod hold;
mod hours;
mod rebuild;
mod refusals;
mod schema;

use std::fs;
use std::io;
use std::ops::ControlFlow;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;
use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior};
use taximeter_billing::export::Entries;
use taximeter_billing::{Hour, HourKey, Period};
use taximeter_ledger::{Correction, Position, Record, RefusalCount};

use super::batch::{Added, Batch};
use super::database::{AdmissionKey, Database, Filter, Rebuilt, Refill, Written};
use super::error::StoreError;
use super::granularity::Granularity;
use super::post::Post;

pub use self::hold::Held;

/// The store's file in the data directory.
const FILE: &str = "store.sqlite";
/// How long to wait for another process that writes.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

/// An open database.
#[derive(Debug)]
pub(super) struct Sqlite {
    connection: Connection,
    path: PathBuf,
    /// Device and inode of its file.
    file: (u64, u64),
}

impl Sqlite {
    /// Opens the database in `data_dir`; makes one when there is none.
    ///
    /// Errors: `NoDataDir`, `Format`, `Damaged`, `Unavailable`.
    pub(super) fn open(data_dir: &Path) -> Result<Self, StoreError> {
        if !data_dir.is_dir() {
            return Err(StoreError::NoDataDir(data_dir.to_owned()));
        }
        let path = data_dir.join(FILE);
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_CREATE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connect = || {
            let connection = Connection::open_with_flags(&path, flags)?;
            connection.busy_timeout(BUSY_TIMEOUT)?;
            schema::set_up(&connection)?;
            Ok(connection)
        };
        let connection = connect().map_err(|source| fault(&path, source))?;
        let file = file_at(&path)?;
        let mut sqlite = Self { connection, path, file };
        match sqlite.ask(schema::version)? {
            schema::VERSION => {}
            0 => sqlite.change(make_tables)?,
            found => {
                let store = sqlite.path.display().to_string();
                return Err(StoreError::Format { store, found, known: schema::VERSION });
            }
        }
        Ok(sqlite)
    }

    fn ask<T>(
        &self,
        question: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        question(&self.connection).map_err(|source| fault(&self.path, source))
    }

    /// Does all of `change` or nothing: in a transaction of its own, unless one is open. A file that
    /// was moved away is not written to: nobody would find that.
    fn change<T>(
        &mut self,
        change: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        if file_at(&self.path)? != self.file {
            let (store, source) = (self.path.display().to_string(), "it was replaced".into());
            return Err(StoreError::Unavailable { store, source });
        }
        let Self { connection, path, .. } = self;
        let changed = if connection.is_autocommit() {
            let begun = connection.transaction_with_behavior(TransactionBehavior::Immediate);
            begun.and_then(|transaction| {
                let changed = change(&transaction)?;
                transaction.commit()?;
                Ok(changed)
            })
        } else {
            change(connection)
        };
        changed.map_err(|source| fault(path, source))
    }
}

impl Database for Sqlite {
    fn cursor(&mut self, journal: &str) -> Result<Option<Position>, StoreError> {
        self.ask(|connection| ask::cursor(connection, journal))
    }

    fn add(&mut self, batch: &Batch<'_>) -> Result<Added, StoreError> {
        self.change(|connection| add::batch(connection, batch))
    }

    fn rebuild(&mut self, refill: &mut Refill<'_>) -> Result<Rebuilt, StoreError> {
        self.ask(|connection| connection.execute_batch("BEGIN IMMEDIATE"))?;
        let rebuilt = self
            .change(rebuild::set_aside)
            .and_then(|()| refill(self))
            .and_then(|()| self.change(rebuild::keep));
        let done = rebuilt.and_then(|rebuilt| {
            self.ask(|connection| connection.execute_batch("COMMIT")).map(|()| rebuilt)
        });
        // Some faults have undone it already.
        if done.is_err() && !self.connection.is_autocommit() {
            self.ask(|connection| connection.execute_batch("ROLLBACK"))?;
        }
        done
    }

    /// Who writes corrections has the directory's journal of them, and has fed all of it.
    fn begin_correcting(&mut self, _now: Timestamp, _lost: Option<&str>) -> Result<(), StoreError> {
        Ok(())
    }

    fn end_correcting(&mut self) -> Result<(), StoreError> {
        Ok(())
    }

    fn hold(&mut self) -> Result<(), StoreError> {
        self.ask(|connection| connection.execute_batch("BEGIN"))
    }

    fn release(&mut self) -> Result<(), StoreError> {
        // Some faults have ended it already.
        if self.connection.is_autocommit() {
            return Ok(());
        }
        self.ask(|connection| connection.execute_batch("COMMIT"))
    }

    fn newest(&mut self) -> Result<i64, StoreError> {
        self.ask(ask::newest)
    }

    fn hours(
        &mut self,
        hours: Period,
        tenant: Option<&str>,
        granularity: Granularity<'_>,
        visit: &mut dyn FnMut(HourKey, Hour) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        self.ask(|connection| hours::visit(connection, hours, tenant, granularity, visit))
    }

    fn posts(
        &mut self,
        period: Period,
        tenant: Option<&str>,
        visit: &mut dyn FnMut(&Post<'_>) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        self.ask(|connection| ask::posts(connection, period, tenant, visit))
    }

    fn written(
        &mut self,
        filter: &Filter,
        newest: i64,
        start: &AdmissionKey,
        limit: u32,
        page: &mut Written,
    ) -> Result<Option<AdmissionKey>, StoreError> {
        self.ask(|connection| ask::written(connection, filter, newest, (start, limit), page))
    }

    fn corrections(
        &mut self,
        period: Period,
        tenant: Option<&str>,
        visit: &mut dyn FnMut(&Post<'_>, &Correction) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        self.ask(|connection| ask::corrections(connection, period, tenant, visit))
    }

    fn entries(&mut self, period: Period, tenant: Option<&str>) -> Result<Entries, StoreError> {
        self.ask(|connection| ask::entries(connection, period, tenant))
    }

    fn tenants(&mut self, period: Period, tenant: Option<&str>) -> Result<u64, StoreError> {
        self.ask(|connection| ask::tenants(connection, period, tenant))
    }

    fn refusals(
        &mut self,
        period: Period,
        tenant: Option<&str>,
        micros: i64,
        visit: &mut dyn FnMut(Timestamp, RefusalCount) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        self.ask(|connection| refusals::visit(connection, period, tenant, micros, visit))
    }

    fn admitted(
        &mut self,
        filter: &Filter,
        newest: i64,
        start: &AdmissionKey,
        limit: u32,
    ) -> Result<Vec<(AdmissionKey, Record)>, StoreError> {
        self.ask(|connection| ask::admitted(connection, filter, newest, start, limit))
    }

    fn admitted_before(
        &mut self,
        filter: &Filter,
        newest: i64,
        end: &AdmissionKey,
        limit: u32,
    ) -> Result<Vec<(AdmissionKey, Record)>, StoreError> {
        self.ask(|connection| ask::admitted_before(connection, filter, newest, end, limit))
    }

    fn key_of_last(
        &mut self,
        filter: &Filter,
        newest: i64,
        count: u32,
    ) -> Result<Option<AdmissionKey>, StoreError> {
        self.ask(|connection| ask::key_of_last(connection, filter, newest, count))
    }

    fn arrived(
        &mut self,
        filter: &Filter,
        after: i64,
        newest: i64,
        limit: u32,
    ) -> Result<Vec<(i64, Record)>, StoreError> {
        self.ask(|connection| ask::arrived(connection, filter, after, newest, limit))
    }
}

fn make_tables(connection: &Connection) -> rusqlite::Result<()> {
    // Another process may have done it while this one waited.
    match schema::version(connection)? {
        0 => schema::create(connection),
        _ => Ok(()),
    }
}

/// Which file is at `path`: device and inode.
fn file_at(path: &Path) -> Result<(u64, u64), StoreError> {
    let found = fs::metadata(path).map(|found| (found.dev(), found.ino()));
    found.map_err(|source: io::Error| {
        let (store, source) = (path.display().to_string(), source.into());
        StoreError::Unavailable { store, source }
    })
}

fn fault(path: &Path, source: rusqlite::Error) -> StoreError {
    let store = path.display().to_string();
    let damaged = matches!(
        source.sqlite_error_code(),
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase)
    ) || matches!(
        source,
        rusqlite::Error::FromSqlConversionFailure(..)
            | rusqlite::Error::InvalidColumnType(..)
            | rusqlite::Error::IntegralValueOutOfRange(..)
    );
    let source = Box::new(source);
    if damaged {
        StoreError::Damaged { store, source }
    } else {
        StoreError::Unavailable { store, source }
    }
}
