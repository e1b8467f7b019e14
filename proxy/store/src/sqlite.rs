//! The store in SQLite, in the data directory. It needs no server and serves one machine.

mod add;
mod ask;
mod convert;
mod files;
mod hold;
mod hours;
mod known;
mod log;
mod reached;
mod reading;
mod rebuild;
mod refusals;
mod schema;
mod shrink;
mod statements;

use std::fs;
use std::io::ErrorKind;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use rusqlite::{Connection, OpenFlags, TransactionBehavior};
use taximeter_billing::export::Entries;
use taximeter_billing::{GatewayProgress, Hour, HourKey, Period};
use taximeter_ledger::{Correction, Position, Record, RefusalCount};

use super::batch::{Added, Batch, NewHours};
use super::database::{AdmissionKey, Database, Filter, Rebuilt, Refill, Written};
use super::error::StoreError;
use super::granularity::Granularity;
use super::keeper::STORE;
use super::old_rows;
use super::post::Post;

use self::files::{BUSY_TIMEOUT, fault, file_at, no_copy};
use self::known::Known;
use self::reading::Unchanged;

pub use self::hold::Held;
#[cfg(test)]
pub(super) use self::log::{LOG_BYTES_MAX, LOG_KEPT_BYTES_MAX};

/// Most sums of requests that wait for the end of their transaction: bounds their memory.
const SUMS_MAX: usize = 2048;
/// How often a database is opened to be read whose log comes or goes meanwhile.
const OPENINGS_MAX: usize = 5;

/// An open database.
#[derive(Debug)]
pub(super) struct Sqlite {
    connection: Connection,
    path: PathBuf,
    kind: Kind,
    known: Known,
    /// Batches that are added, and not committed.
    adding: Option<Adding>,
}

/// An open transaction of batches.
#[derive(Debug)]
struct Adding {
    /// What they add up to.
    hours: NewHours,
    /// Whether it ends with these batches.
    is_own: bool,
}

/// What may be done with an open database.
#[derive(Debug)]
enum Kind {
    /// All. Its file has this device and inode.
    Own((u64, u64)),
    /// It is read alone. Where its file is read as one that does not change, this tells whether it
    /// did.
    Read(Option<Unchanged>),
    /// All: it is a copy of the file, which only this process has.
    Copy,
}

impl Sqlite {
    /// Opens the database in `data_dir`; makes one when there is none.
    ///
    /// Errors: `NoDataDir`, `Format`, `Damaged`, `Unavailable`.
    pub(super) fn open(data_dir: &Path) -> Result<Self, StoreError> {
        let mut sqlite = Self::connect(data_dir)?;
        if !sqlite.has_tables()? {
            sqlite.change(make_tables)?;
        } else if !sqlite.ask(schema::has_reached)? {
            sqlite.change(schema::create_reached)?;
        }
        Ok(sqlite)
    }

    /// Converts the database in `data_dir` if its format is 2 or 3. The requests and corrections that
    /// were moved. `None` where there is no such database.
    ///
    /// Errors: `Format`, `Damaged`, `Unavailable`. What was moved before stays so.
    pub(super) fn convert(data_dir: &Path) -> Result<Option<Rebuilt>, StoreError> {
        if !data_dir.join(STORE).exists() {
            return Ok(None);
        }
        let mut sqlite = Self::connect(data_dir)?;
        if !old_rows::is_old(sqlite.ask(schema::version)?) {
            sqlite.has_tables()?;
            return Ok(None);
        }
        let ledger = match taximeter_journal::identity(data_dir) {
            Ok(identity) => identity.unwrap_or_default().id,
            Err(error) => {
                let store = sqlite.path.display().to_string();
                return Err(StoreError::Unavailable { store, source: error.into() });
            }
        };
        sqlite.change(convert::begin)?;
        let mut moved = Rebuilt::default();
        while sqlite.change(|connection| convert::go_on(connection, ledger, &mut moved))? {
            sqlite.shorten_log(log::LOG_BYTES_MAX)?;
        }
        sqlite.change(convert::end)?;
        // Rows of the old formats are larger.
        shrink::shrink(&sqlite.connection);
        Ok(Some(moved))
    }

    fn connect(data_dir: &Path) -> Result<Self, StoreError> {
        if !data_dir.is_dir() {
            return Err(StoreError::NoDataDir(data_dir.to_owned()));
        }
        let path = data_dir.join(STORE);
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
        let kind = Kind::Own(file_at(&path)?);
        Ok(Self { connection, path, kind, known: Known::default(), adding: None })
    }

    /// Opens the database in `data_dir` to read it, and makes no file there; `None` where there is
    /// none.
    ///
    /// Errors: `Format`, `Damaged`, `Unavailable`, `NoCopy`.
    pub(super) fn open_to_read(data_dir: &Path) -> Result<Option<Self>, StoreError> {
        let path = data_dir.join(STORE);
        match fs::metadata(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            _ => {}
        }
        let mut openings = 0;
        loop {
            openings += 1;
            let sqlite = Self::open_unchanged(&path);
            let opened = sqlite.and_then(|sqlite| Ok(sqlite.has_tables()?.then_some(sqlite)));
            match opened {
                Err(StoreError::Unavailable { .. }) if openings < OPENINGS_MAX => {}
                opened => return opened,
            }
        }
    }

    fn open_unchanged(path: &Path) -> Result<Self, StoreError> {
        let path = path.to_owned();
        if reading::is_readable(&path) {
            let (connection, unchanged) = reading::open(&path)?;
            return Ok(Self {
                connection,
                path,
                kind: Kind::Read(unchanged),
                known: Known::default(),
                adding: None,
            });
        }
        let (folder, copied) =
            reading::open_files(&path).map_err(|source| no_copy(&path, source))?;
        let connection = Connection::open(copied)
            .and_then(|connection| reading::copy_of(Some(&connection)))
            .map_err(|source| no_copy(&path, source))?;
        drop(folder);
        Ok(Self { connection, path, kind: Kind::Copy, known: Known::default(), adding: None })
    }

    /// A copy that can be changed, and is gone with this process: of `of`, or of an empty database
    /// in `data_dir`.
    ///
    /// Errors: `NoCopy`.
    pub(super) fn copy(mut of: Option<Self>, data_dir: &Path) -> Result<Self, StoreError> {
        let path = data_dir.join(STORE);
        if let Some(mut copy) = of.take_if(|sqlite| matches!(sqlite.kind, Kind::Copy)) {
            copy.change(schema::create_reached)?;
            return Ok(copy);
        }
        let connection = reading::copy_of(of.as_ref().map(|sqlite| &sqlite.connection));
        let connection = connection.map_err(|source| no_copy(&path, source))?;
        if let Some(Self { kind: Kind::Read(Some(unchanged)), .. }) = &of {
            unchanged.check(&path)?;
        }
        let mut copy =
            Self { connection, path, kind: Kind::Copy, known: Known::default(), adding: None };
        if !copy.has_tables()? {
            copy.change(make_tables)?;
        }
        copy.change(schema::create_reached)?;
        Ok(copy)
    }

    /// Whether its tables are there.
    ///
    /// Errors: `Format`, `Damaged`, `Unavailable`.
    fn has_tables(&self) -> Result<bool, StoreError> {
        match self.ask(schema::version)? {
            schema::VERSION => Ok(true),
            0 => Ok(false),
            found if old_rows::is_old(found) => {
                let dir = self.path.parent().unwrap_or(&self.path).to_owned();
                Err(StoreError::Older { store: self.path.display().to_string(), dir })
            }
            found => {
                let store = self.path.display().to_string();
                Err(StoreError::Format { store, found, known: schema::VERSION })
            }
        }
    }

    fn ask<T>(
        &self,
        question: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        let answer = question(&self.connection).map_err(|source| self.fault(source));
        if let Kind::Read(Some(unchanged)) = &self.kind {
            unchanged.check(&self.path)?;
        }
        answer
    }

    fn fault(&self, source: rusqlite::Error) -> StoreError {
        match (fault(&self.path, source), &self.kind) {
            (StoreError::Unavailable { store, source }, Kind::Copy) => {
                StoreError::NoCopy { store, source }
            }
            (fault, _) => fault,
        }
    }

    /// Does all of `change` or nothing: in a transaction of its own, unless one is open. A file that
    /// was moved away is not written to: nobody would find that.
    fn change<T>(
        &mut self,
        change: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        let refused = match &self.kind {
            Kind::Own(file) => (file_at(&self.path)? != *file).then_some("it was replaced"),
            Kind::Read(_) => Some("it is opened to be read"),
            Kind::Copy => None,
        };
        if let Some(why) = refused {
            let (store, source) = (self.path.display().to_string(), why.into());
            return Err(StoreError::Unavailable { store, source });
        }
        let changed = if self.connection.is_autocommit() {
            let begun = self.connection.transaction_with_behavior(TransactionBehavior::Immediate);
            begun.and_then(|transaction| {
                let changed = change(&transaction)?;
                transaction.commit()?;
                Ok(changed)
            })
        } else {
            change(&self.connection)
        };
        changed.map_err(|source| self.fault(source))
    }

    /// Begins a transaction of batches, unless one is open.
    fn begin_adding(&mut self) -> Result<Adding, StoreError> {
        self.shorten_log(log::LOG_BYTES_MAX)?;
        let is_own = self.connection.is_autocommit();
        if is_own {
            self.ask(|connection| connection.execute_batch("BEGIN IMMEDIATE"))?;
        }
        Ok(Adding { hours: NewHours::default(), is_own })
    }

    /// Undoes the open transaction if `is_own`, after `fault`.
    fn undo(&self, is_own: bool, fault: StoreError) -> StoreError {
        // Some faults have undone it already.
        if is_own && !self.connection.is_autocommit() {
            let undone = self.ask(|connection| connection.execute_batch("ROLLBACK"));
            return undone.err().unwrap_or(fault);
        }
        fault
    }

    /// Cuts a log that is longer than this, where it has one and no transaction is open.
    ///
    /// Errors: `Pinned`.
    fn shorten_log(&self, bytes_max: u32) -> Result<(), StoreError> {
        if matches!(self.kind, Kind::Own(_)) && self.connection.is_autocommit() {
            log::shorten(&self.connection, &self.path, bytes_max)?;
        }
        Ok(())
    }
}

impl Database for Sqlite {
    fn cursor(&mut self, journal: &str) -> Result<Option<Position>, StoreError> {
        self.ask(|connection| ask::cursor(connection, journal))
    }

    fn add(&mut self, batch: &Batch<'_>) -> Result<Added, StoreError> {
        let mut adding = match self.adding.take() {
            Some(adding) => adding,
            None => self.begin_adding()?,
        };
        // They do not come back if nothing was added.
        let mut known = std::mem::take(&mut self.known);
        let add = |connection: &Connection| {
            let added = add::batch(connection, &mut known, batch, &mut adding.hours)?;
            if adding.hours.len() > SUMS_MAX {
                hours::add(connection, &mut known, std::mem::take(&mut adding.hours))?;
            }
            Ok(added)
        };
        match self.change(add) {
            Ok(added) => {
                (self.known, self.adding) = (known, Some(adding));
                Ok(added)
            }
            Err(fault) => Err(self.undo(adding.is_own, fault)),
        }
    }

    fn commit(&mut self) -> Result<(), StoreError> {
        let Some(Adding { hours, is_own }) = self.adding.take() else { return Ok(()) };
        let mut known = std::mem::take(&mut self.known);
        let done = self.change(|connection| {
            hours::add(connection, &mut known, hours)?;
            if is_own { connection.execute_batch("COMMIT") } else { Ok(()) }
        });
        match done {
            Ok(()) => {
                self.known = known;
                Ok(())
            }
            Err(fault) => Err(self.undo(is_own, fault)),
        }
    }

    fn rebuild(&mut self, refill: &mut Refill<'_>) -> Result<Rebuilt, StoreError> {
        self.known = Known::default();
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
        self.known = Known::default();
        if done.is_ok() {
            shrink::shrink(&self.connection);
        }
        // All of it went through the log at once. Who reads it now keeps it long until later.
        let _ = self.shorten_log(log::LOG_KEPT_BYTES_MAX);
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

    fn progress(&mut self) -> Result<Vec<GatewayProgress>, StoreError> {
        let found = self.ask(reached::progress)?;
        Ok(found.map(|found| reached::named(found, &self.path)).into_iter().collect())
    }

    fn statements(&mut self, tenant: &str, period: Period) -> Result<Vec<String>, StoreError> {
        statements::read(&self.path, tenant, period)
    }

    fn all_statements(&mut self) -> Result<Vec<String>, StoreError> {
        statements::read_all(&self.path)
    }

    fn issue(
        &mut self,
        tenant: &str,
        period: Period,
        number: u32,
        signed: &str,
    ) -> Result<bool, StoreError> {
        statements::add(&self.path, (tenant, period, number), signed)
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
