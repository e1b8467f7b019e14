//! Opens a database to read it, and makes no file beside it.
//!
//! SQLite keeps what was written last in a log, and the index of the log in memory that processes
//! share by a file. Who only reads needs both files, or neither: where there is no log, all is in the
//! database, and it is read as a file that does not change. Its status tells whether that is true.

use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rusqlite::backup::Backup;
use rusqlite::{Connection, OpenFlags};
use taximeter_database::error::StoreError;
use tempfile::TempDir;

use super::files::{BUSY_TIMEOUT, fault, index_of, log_of};
use super::schema;

/// Memory that a copy may take before the rest of it goes to a file.
const COPY_MEMORY_KIB: i64 = 64 << 10;
/// Pages that are copied at once: all.
const ALL_PAGES: i32 = -1;

/// A file that nobody may have changed since it was opened.
#[derive(Debug)]
pub(super) struct Unchanged(Status);

/// Device, inode, length, and the time of the last change in seconds and nanoseconds.
type Status = (u64, u64, u64, i64, i64);

impl Unchanged {
    /// Errors: the file was changed, or got a log.
    pub(super) fn check(&self, path: &Path) -> Result<(), StoreError> {
        let is_same = !has_log(path) && status(path).is_ok_and(|now| now == self.0);
        if is_same {
            return Ok(());
        }
        let source = "a gateway has changed it meanwhile; run this again".into();
        Err(StoreError::Unavailable { store: path.display().to_string(), source })
    }
}

/// Opens the database at `path` to read it. Where it has no log, nobody may change it meanwhile.
///
/// Errors: `Unavailable`, `Damaged`.
pub(super) fn open(path: &Path) -> Result<(Connection, Option<Unchanged>), StoreError> {
    let store = path.display().to_string();
    if !has_log(path) {
        let unavailable = |source: io::Error| StoreError::Unavailable {
            store: store.clone(),
            source: source.into(),
        };
        let unchanged = Unchanged(status(path).map_err(unavailable)?);
        let connection = connect(path, "immutable=1").map_err(|source| fault(path, source))?;
        unchanged.check(path)?;
        return Ok((connection, Some(unchanged)));
    }
    let connection = connect(path, "readonly_shm=1").map_err(|source| fault(path, source))?;
    Ok((connection, None))
}

/// Whether the database at `path` can be read without making a file.
pub(super) fn is_readable(path: &Path) -> bool {
    !has_log(path) || index_of(path).exists()
}

/// A copy of what `from` has at one moment. It is gone when the process ends, however it ends: it is
/// in memory, and in a file without a name where it is large.
pub(super) fn copy_of(from: Option<&Connection>) -> rusqlite::Result<Connection> {
    let mut copy = Connection::open("")?;
    schema::set_up_copy(&copy, COPY_MEMORY_KIB)?;
    if let Some(from) = from {
        Backup::new(from, &mut copy)?.step(ALL_PAGES)?;
    }
    Ok(copy)
}

/// Copies the files of a database whose log has no index, and opens the copy. The folder may go
/// then.
pub(super) fn open_files(path: &Path) -> io::Result<(TempDir, PathBuf)> {
    let folder = tempfile::Builder::new().prefix("taximeter-").tempdir()?;
    let copy = folder.path().join("store.sqlite");
    fs::copy(path, &copy)?;
    fs::copy(log_of(path), log_of(&copy))?;
    Ok((folder, copy))
}

fn connect(path: &Path, how: &str) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
        | OpenFlags::SQLITE_OPEN_URI
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(uri(path, how), flags)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    schema::keep_plans(&connection)?;
    Ok(connection)
}

/// The URI of a file: SQLite takes some characters of a path for others there.
fn uri(path: &Path, how: &str) -> String {
    // A path that begins with two slashes would be the name of a machine.
    let mut uri = if path.is_absolute() { "file://".to_owned() } else { "file:".to_owned() };
    for byte in path.as_os_str().as_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'_' | b'.' => {
                uri.push(char::from(*byte));
            }
            other => uri.push_str(&format!("%{other:02x}")),
        }
    }
    uri + "?mode=ro&" + how
}

fn has_log(path: &Path) -> bool {
    fs::metadata(log_of(path)).is_ok_and(|log| log.len() > 0)
}

fn status(path: &Path) -> io::Result<Status> {
    let now = fs::metadata(path)?;
    Ok((now.dev(), now.ino(), now.len(), now.mtime(), now.mtime_nsec()))
}
