//! An open SQLite database: how it is opened, asked and changed.

use std::ffi::OsStr;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use rusqlite::{Connection, OpenFlags, TransactionBehavior};
use taximeter_database::batch::NewHours;
use taximeter_database::database::{AtRest, Database as _, Rebuilt};
use taximeter_database::error::StoreError;
use taximeter_journal::{CORRECTIONS, REQUESTS};

use super::convert;
use super::days::{self, Days};
use super::files::{BUSY_TIMEOUT, fault, file_at, no_copy};
use super::gone;
use super::hour_files::HourFiles;
use super::keeper::STORE;
use super::known::Known;
use super::log;
use super::reading::{self, Unchanged};
use super::rebuild;
use super::schema;
use super::sessions;
use super::shrink;

/// How often a database is opened to be read whose log comes or goes meanwhile.
const OPENINGS_MAX: usize = 5;
/// How often files are listed of which one goes meanwhile.
const LISTINGS_MAX: usize = 5;

/// An open database.
#[derive(Debug)]
pub struct Sqlite {
    pub(super) connection: Connection,
    pub(super) path: PathBuf,
    kind: Kind,
    pub(super) known: Known,
    /// Requests that have left the tables.
    pub(super) days: Days,
    /// Hours that have left the tables.
    pub(super) hour_files: HourFiles,
    /// Batches that are added, and not committed.
    pub(super) adding: Option<Adding>,
}

/// An open transaction of batches.
#[derive(Debug)]
pub(super) struct Adding {
    /// What they add up to.
    pub(super) hours: NewHours,
    /// Whether it ends with these batches.
    pub(super) is_own: bool,
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
    pub fn open(data_dir: &Path) -> Result<Self, StoreError> {
        let mut sqlite = Self::connect(data_dir)?;
        if sqlite.version()? != schema::VERSION {
            sqlite.make_tables()?;
        } else if !sqlite.ask(sessions::are_kept)? {
            // An older version made it.
            sqlite.change(sessions::create)?;
        }
        Ok(sqlite)
    }

    /// Converts the database in `data_dir` if its format is an older one. The requests and corrections
    /// that were moved. `None` where there is no such database.
    ///
    /// Errors: `Format`, `Damaged`, `Unavailable`. What was moved before stays so.
    pub fn convert(data_dir: &Path) -> Result<Option<Rebuilt>, StoreError> {
        if !data_dir.join(STORE).exists() {
            return Ok(None);
        }
        let mut sqlite = Self::connect(data_dir)?;
        if !convert::is_old(sqlite.ask(schema::version)?) {
            sqlite.version()?;
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
        sqlite.change_with_days(convert::end)?;
        // Rows of the old formats are larger.
        shrink::shrink(&sqlite.connection);
        Ok(Some(moved))
    }

    fn new(connection: Connection, path: PathBuf, kind: Kind) -> Self {
        let (days, hour_files) = (Days::beside(&path), HourFiles::beside(&path));
        let known = Known::default();
        Self { connection, path, kind, known, days, hour_files, adding: None }
    }

    /// The same, with so few bytes of requests that are read ahead.
    #[cfg(any(test, feature = "samples"))]
    #[must_use]
    pub const fn with_ahead_bytes_max(mut self, bytes_max: usize) -> Self {
        self.days.ahead_bytes_max = bytes_max;
        self
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
        Ok(Self::new(connection, path, kind))
    }

    /// Opens the database in `data_dir` to read it, and makes no file there; `None` where there is
    /// none.
    ///
    /// Errors: `Format`, `Damaged`, `Unavailable`, `NoCopy`.
    pub fn open_to_read(data_dir: &Path) -> Result<Option<Self>, StoreError> {
        let path = data_dir.join(STORE);
        match fs::metadata(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            _ => {}
        }
        let mut openings = 0;
        loop {
            openings += 1;
            let sqlite = Self::open_unchanged(&path);
            let opened = sqlite.and_then(|sqlite| Ok((sqlite.version()? != 0).then_some(sqlite)));
            match opened {
                Err(StoreError::Unavailable { .. }) if openings < OPENINGS_MAX => {}
                opened => return opened,
            }
        }
    }

    /// What the database in `data_dir` has. Makes and copies no file; `None` where that is not possible.
    pub fn look(data_dir: &Path) -> Option<AtRest> {
        let mut sqlite = Self::open_as_it_is(&data_dir.join(STORE))?;
        let mut cursor = |journal| sqlite.cursor(journal).ok();
        let cursors = [cursor(REQUESTS)?, cursor(CORRECTIONS)?];
        Some(AtRest { cursors, free_bytes: sqlite.free_bytes().ok()? })
    }

    /// Opens the database at `path` to read it, where that needs no copy and no file.
    fn open_as_it_is(path: &Path) -> Option<Self> {
        let is_there = path.exists() && reading::is_readable(path);
        let sqlite = is_there.then(|| Self::open_unchanged(path).ok()).flatten()?;
        (sqlite.version().ok()? != 0).then_some(sqlite)
    }

    fn open_unchanged(path: &Path) -> Result<Self, StoreError> {
        let path = path.to_owned();
        if reading::is_readable(&path) {
            let (connection, unchanged) = reading::open(&path)?;
            return Ok(Self::new(connection, path, Kind::Read(unchanged)));
        }
        let (folder, copied) =
            reading::open_files(&path).map_err(|source| no_copy(&path, source))?;
        let connection = Connection::open(copied)
            .and_then(|connection| reading::copy_of(Some(&connection)))
            .map_err(|source| no_copy(&path, source))?;
        drop(folder);
        Ok(Self::new(connection, path, Kind::Copy))
    }

    /// A copy that can be changed, and is gone with this process: of `of`, or of an empty database
    /// in `data_dir`.
    ///
    /// Errors: `NoCopy`.
    pub fn copy(mut of: Option<Self>, data_dir: &Path) -> Result<Self, StoreError> {
        let path = data_dir.join(STORE);
        if let Some(copy) = of.take_if(|sqlite| matches!(sqlite.kind, Kind::Copy)) {
            return Ok(copy);
        }
        let connection = reading::copy_of(of.as_ref().map(|sqlite| &sqlite.connection));
        let connection = connection.map_err(|source| no_copy(&path, source))?;
        if let Some(Self { kind: Kind::Read(Some(unchanged)), .. }) = &of {
            unchanged.check(&path)?;
        }
        let mut copy = Self::new(connection, path, Kind::Copy);
        if copy.version()? != schema::VERSION {
            copy.make_tables()?;
        }
        if !copy.ask(sessions::are_kept)? {
            copy.change(sessions::create)?;
        }
        Ok(copy)
    }

    /// The format of its tables; 0 if there are none.
    ///
    /// Errors: `Format`, `Damaged`, `Unavailable`.
    fn version(&self) -> Result<u32, StoreError> {
        match self.ask(schema::version)? {
            known @ (0 | schema::VERSION) => Ok(known),
            found if convert::is_old(found) => {
                let dir = self.path.parent().unwrap_or(&self.path).to_owned();
                Err(StoreError::Older { store: self.path.display().to_string(), dir })
            }
            found => {
                let store = self.path.display().to_string();
                Err(StoreError::Format { store, found, known: schema::VERSION })
            }
        }
    }

    /// Makes the tables where there are none. A new store gets the requests of the files of days that
    /// are there.
    fn make_tables(&mut self) -> Result<(), StoreError> {
        let hour_files = HourFiles::beside(&self.path);
        self.change_with_days(|connection, days| {
            // Another process may have done it while this one waited.
            if schema::version(connection)? != 0 {
                return Ok(());
            }
            schema::create(connection)?;
            rebuild::adopt(connection, days, &hour_files)
        })
    }

    /// Answers from the tables and from the files of days, as of one moment.
    pub(super) fn ask_all<T>(
        &mut self,
        question: impl FnOnce(&Connection, &mut Days) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        let is_own = self.connection.is_autocommit();
        if is_own {
            self.begin_view()?;
        }
        let answer = question(&self.connection, &mut self.days);
        let answer = answer.map_err(|source| self.fault(source));
        if is_own {
            self.end_view()?;
        }
        answer.map_err(|fault| self.gone_meanwhile(fault))
    }

    /// From here to the end of the view, what is asked is answered as of one moment.
    pub(super) fn begin_view(&mut self) -> Result<(), StoreError> {
        for tried in 1.. {
            self.ask(|connection| connection.execute_batch("BEGIN"))?;
            if let Err(error) = self.days.list(&self.connection) {
                self.end_view()?;
                return Err(self.fault(error));
            }
            // Another process may have replaced a file between the list and this look at it.
            if tried == LISTINGS_MAX || !self.days.lacks_any() {
                break;
            }
            self.end_view()?;
        }
        Ok(())
    }

    /// Ends a view.
    pub(super) fn end_view(&self) -> Result<(), StoreError> {
        // Some faults have ended it already.
        if self.connection.is_autocommit() {
            return Ok(());
        }
        self.ask(|connection| connection.execute_batch("COMMIT"))
    }

    /// What happened to a file that was listed, and was not there when it was opened.
    pub fn gone_meanwhile(&self, fault: StoreError) -> StoreError {
        let StoreError::DayFile { file, .. } = &fault else { return fault };
        if file.exists() {
            return fault;
        }
        // A view and a copy show the list as it was.
        let is_of_before = matches!(self.kind, Kind::Copy) || !self.connection.is_autocommit();
        let now = is_of_before.then(|| Self::open_as_it_is(&self.path)).flatten();
        let details = now.as_ref().unwrap_or(self).details_without(file);
        details.map_or(fault, |from| StoreError::DetailsGone { from })
    }

    /// The first instant with details, if the requests of this file have gone for good.
    fn details_without(&self, file: &Path) -> Option<Timestamp> {
        let name = file.file_name().and_then(OsStr::to_str)?;
        let has_gone = self.ask(gone::names).ok()?.contains(name)
            && self.ask(days::names_of).ok()?.iter().all(|live| live != name);
        let from = if has_gone { self.ask(gone::details_from).ok()?? } else { return None };
        Timestamp::from_microsecond(from).ok()
    }

    /// The same of what needs the files of hours too.
    pub(super) fn ask_hours<T>(
        &mut self,
        question: impl FnOnce(&Connection, &mut Days, &mut HourFiles) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        let mut files = std::mem::take(&mut self.hour_files);
        let answer = self.ask_all(|connection, days| {
            files.list(connection)?;
            question(connection, days, &mut files)
        });
        self.hour_files = files;
        answer
    }

    /// Whether requests have left the tables, up to now.
    pub(super) fn has_days(&mut self) -> Result<bool, StoreError> {
        self.ask(days::are_there)
    }

    pub(super) fn ask<T>(
        &self,
        question: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        let answer = question(&self.connection).map_err(|source| self.fault(source));
        if let Kind::Read(Some(unchanged)) = &self.kind {
            unchanged.check(&self.path)?;
        }
        answer
    }

    pub(super) fn fault(&self, source: rusqlite::Error) -> StoreError {
        match (fault(&self.path, source), &self.kind) {
            (StoreError::Unavailable { store, source }, Kind::Copy) => {
                StoreError::NoCopy { store, source }
            }
            (fault, _) => fault,
        }
    }

    /// Does all of `change` or nothing: in a transaction of its own, unless one is open. A file that
    /// was moved away is not written to: nobody would find that.
    pub(super) fn change<T>(
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

    /// The same of what needs the files of days.
    pub(super) fn change_with_days<T>(
        &mut self,
        change: impl FnOnce(&Connection, &mut Days) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        let mut days = std::mem::take(&mut self.days);
        let changed = self.change(|connection| change(connection, &mut days));
        self.days = days;
        changed
    }

    /// Whether it is the database in the data directory, and may be changed.
    pub(super) const fn is_own(&self) -> bool {
        matches!(self.kind, Kind::Own(_))
    }

    /// Begins a transaction of batches, unless one is open.
    pub(super) fn begin_adding(&mut self) -> Result<Adding, StoreError> {
        self.shorten_log(log::LOG_BYTES_MAX)?;
        let is_own = self.connection.is_autocommit();
        if is_own {
            self.ask(|connection| connection.execute_batch("BEGIN IMMEDIATE"))?;
        }
        Ok(Adding { hours: NewHours::default(), is_own })
    }

    /// Undoes the open transaction if `is_own`, after `fault`.
    pub(super) fn undo(&self, is_own: bool, fault: StoreError) -> StoreError {
        // Some faults have undone it already.
        if is_own && !self.connection.is_autocommit() {
            let undone = self.ask(|connection| connection.execute_batch("ROLLBACK"));
            return undone.err().unwrap_or(fault);
        }
        fault
    }

    /// Moves what the log has to the database, as far as nobody reads what was before and there is room.
    pub(super) fn settle_log(&self) {
        let _ = self.connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", (), |_| Ok(()));
    }

    /// Cuts a log that is longer than this, where it has one and no transaction is open.
    ///
    /// Errors: `Pinned`.
    pub(super) fn shorten_log(&self, bytes_max: u32) -> Result<(), StoreError> {
        if self.is_own() && self.connection.is_autocommit() {
            log::shorten(&self.connection, &self.path, bytes_max)?;
        }
        Ok(())
    }
}
