//! Holds the database still while its files are copied.

use std::fs::File;
use std::io;
use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use super::super::error::StoreError;
use super::{FILE, fault};

/// How long to wait for a gateway that feeds it.
const BUSY_TIMEOUT: Duration = Duration::from_secs(60);
/// The database, and what was written to it and is not in its file yet.
const FILES: [&str; 2] = [FILE, "store.sqlite-wal"];

/// The store of a data directory, which does not change until this is dropped. A feeder waits, or
/// tries again later.
#[derive(Debug)]
pub struct Held {
    connection: Connection,
    /// Its files, by their names. Closed behind the connection: a file that a process closes takes
    /// all of its locks on that file along.
    files: Vec<(&'static str, File)>,
}

impl Held {
    /// Holds the store in `data_dir`; `None` if there is none.
    ///
    /// Errors: it cannot be opened, or somebody has written to it for a minute.
    pub fn begin(data_dir: &Path) -> Result<Option<Self>, StoreError> {
        let path = data_dir.join(FILE);
        if !path.exists() {
            return Ok(None);
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let held = Connection::open_with_flags(&path, flags).and_then(|connection| {
            connection.busy_timeout(BUSY_TIMEOUT)?;
            // Only who may write moves pages from one file to the other.
            connection.execute_batch("BEGIN IMMEDIATE")?;
            Ok(connection)
        });
        let connection = held.map_err(|source| fault(&path, source))?;
        let open = |name| match File::open(data_dir.join(name)) {
            Err(fault) if fault.kind() == io::ErrorKind::NotFound => None,
            opened => Some(opened.map(|file| (name, file))),
        };
        let files: io::Result<_> = FILES.into_iter().filter_map(open).collect();
        let unavailable = |source: io::Error| StoreError::Unavailable {
            store: path.display().to_string(),
            source: source.into(),
        };
        Ok(Some(Self { connection, files: files.map_err(unavailable)? }))
    }

    /// Its files, by their names in the data directory.
    pub fn files(&self) -> &[(&'static str, File)] {
        &self.files
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // Nothing was changed; a connection that closes gives up its transaction anyway.
        let _ = self.connection.execute_batch("ROLLBACK");
    }
}
