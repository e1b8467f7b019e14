//! The files of a database, and what is wrong with them.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::ErrorCode;
use taximeter_database::error::StoreError;

use super::days::found;

/// How long to wait for another process that writes.
pub(super) const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

/// Which file is at `path`: device and inode.
pub(super) fn file_at(path: &Path) -> Result<(u64, u64), StoreError> {
    let found = fs::metadata(path).map(|found| (found.dev(), found.ino()));
    found.map_err(|source: io::Error| {
        let (store, source) = (path.display().to_string(), source.into());
        StoreError::Unavailable { store, source }
    })
}

/// The write-ahead log of the database at `path`.
pub(super) fn log_of(path: &Path) -> PathBuf {
    beside(path, "-wal")
}

/// The index of that log.
pub(super) fn index_of(path: &Path) -> PathBuf {
    beside(path, "-shm")
}

fn beside(path: &Path, end: &str) -> PathBuf {
    let mut name: OsString = path.into();
    name.push(end);
    name.into()
}

pub(super) fn no_copy(
    path: &Path,
    source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
) -> StoreError {
    StoreError::NoCopy { store: path.display().to_string(), source: source.into() }
}

pub(super) fn fault(path: &Path, source: rusqlite::Error) -> StoreError {
    let source = match found(source) {
        Ok(fault) => return fault,
        Err(source) => source,
    };
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
