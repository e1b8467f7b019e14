//! Holds the database still while its files are copied.
//!
//! Who may write it keeps others from writing. Who only reads it keeps a reader's view open instead:
//! meanwhile no page that the view needs is written over, neither in the database nor in its log. So
//! the database that is copied first and the log that is copied behind it are one whole.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};
use taximeter_database::error::StoreError;

use super::days::{self, FOLDER};
use super::files::fault;
use super::hour_files;
use super::keeper::{STORE, may_write};
use super::reading::{self, Unchanged};

/// How long to wait for a gateway that feeds it.
const BUSY_TIMEOUT: Duration = Duration::from_secs(60);
/// How often a view is begun of which a file goes meanwhile.
const VIEWS_MAX: usize = 5;
/// The database, and what was written to it and is not in its file yet.
const FILES: [&str; 2] = [STORE, "store.sqlite-wal"];

/// The store of a data directory with the files of days, which does not change until this is dropped. A feeder waits, or
/// tries again later. One that this process may not write can grow, behind what this shows.
#[derive(Debug)]
pub struct Held {
    /// `None` where the files are read as they are.
    connection: Option<Connection>,
    /// The database at this path has no log, and must not get one.
    unchanged: Option<(PathBuf, Unchanged)>,
    /// Its files, by their names. Closed behind the connection: a file that a process closes takes
    /// all of its locks on that file along.
    files: Vec<(String, File)>,
}

impl Held {
    /// Holds the store in `data_dir`; `None` if there is nothing of it.
    ///
    /// Errors: it cannot be opened, or somebody has written to it for a minute.
    pub fn begin(data_dir: &Path) -> Result<Option<Self>, StoreError> {
        let path = data_dir.join(STORE);
        if !path.exists() {
            // The files of days may be there without it.
            let held = Self::with(None, None, data_dir, &path)?;
            return Ok(Some(held).filter(|held| !held.files.is_empty()));
        }
        if may_write(data_dir) {
            return Self::still(data_dir, path).map(Some);
        }
        let mut tried = 1;
        loop {
            // A gateway may replace a file of a day before it is opened here.
            match Self::view(data_dir, path.clone()) {
                Err(StoreError::DayFile { .. } | StoreError::HoursFile { .. })
                    if tried < VIEWS_MAX =>
                {
                    tried += 1;
                }
                held => return held.map(Some),
            }
        }
    }

    fn still(data_dir: &Path, path: PathBuf) -> Result<Self, StoreError> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let held = Connection::open_with_flags(&path, flags).and_then(|connection| {
            connection.busy_timeout(BUSY_TIMEOUT)?;
            // Only who may write moves pages from one file to the other.
            connection.execute_batch("BEGIN IMMEDIATE")?;
            Ok(connection)
        });
        let connection = held.map_err(|source| fault(&path, source))?;
        Self::with(Some(connection), None, data_dir, &path)
    }

    fn view(data_dir: &Path, path: PathBuf) -> Result<Self, StoreError> {
        if !reading::is_readable(&path) {
            // Who writes it has an index of the log: nobody does.
            return Self::with(None, None, data_dir, &path);
        }
        let (connection, unchanged) = reading::open(&path)?;
        let begun = connection.execute_batch("BEGIN; SELECT 1 FROM sqlite_schema");
        begun.map_err(|source| fault(&path, source))?;
        let unchanged = unchanged.map(|unchanged| (path.clone(), unchanged));
        Self::with(Some(connection), unchanged, data_dir, &path)
    }

    fn with(
        connection: Option<Connection>,
        unchanged: Option<(PathBuf, Unchanged)>,
        data_dir: &Path,
        path: &Path,
    ) -> Result<Self, StoreError> {
        let open = |name: &str| match File::open(data_dir.join(name)) {
            Err(fault) if fault.kind() == io::ErrorKind::NotFound => None,
            opened => Some(opened.map(|file| (name.to_owned(), file))),
        };
        let files: io::Result<_> = FILES.into_iter().filter_map(open).collect();
        let unavailable = |source: io::Error| StoreError::Unavailable {
            store: path.display().to_string(),
            source: source.into(),
        };
        let mut files: Vec<_> = files.map_err(unavailable)?;
        let hours = data_dir.join(hour_files::FOLDER);
        let in_days = data_dir.join(FOLDER);
        let [of_days, of_sessions, of_hours] = match &connection {
            Some(connection) => [
                days::names_of(connection),
                days::all_sessions(connection)
                    .map(|files| files.into_iter().map(|file| file.name).collect()),
                hour_files::names_of(connection),
            ]
            .map(|names| names.map_err(|error| fault(path, error))),
            // Nobody writes, so that the folders do not change.
            None => [
                days::day_names(&in_days),
                days::session_names(&in_days),
                hour_files::file_names(&hours),
            ]
            .map(|names| names.map_err(unavailable)),
        };
        let folders = [FOLDER, FOLDER, hour_files::FOLDER];
        for (names, folder) in [of_days?, of_sessions?, of_hours?].into_iter().zip(folders) {
            for name in names.into_iter().map(|name| format!("{folder}/{name}")) {
                let file = data_dir.join(&name);
                let opened = File::open(&file).map_err(|error| {
                    let source = error.into();
                    match folder {
                        FOLDER => StoreError::DayFile { file, source },
                        _ => StoreError::HoursFile { file, source },
                    }
                })?;
                files.push((name, opened));
            }
        }
        Ok(Self { connection, unchanged, files })
    }

    /// Errors: the files were changed since they were opened, although nobody could hold them still.
    pub fn check(&self) -> Result<(), StoreError> {
        match &self.unchanged {
            Some((path, unchanged)) => unchanged.check(path),
            None => Ok(()),
        }
    }

    /// Its files, by their names in the data directory.
    pub fn files(&self) -> &[(String, File)] {
        &self.files
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // Nothing was changed; a connection that closes gives up its transaction anyway.
        let _ = self.connection.as_ref().map(|connection| connection.execute_batch("ROLLBACK"));
    }
}
