//! Keeps SQLite's write-ahead log short.
//!
//! What is written goes to the log first, and from there to the database as far as nobody reads what
//! was before. A reader that stays holds this up, and the log grows with each batch. So nothing is
//! added while the log is too long: the journal keeps what is missing.

use std::fs;
use std::path::Path;
use std::time::Duration;

use rusqlite::Connection;
use taximeter_database::error::StoreError;

use super::files::{BUSY_TIMEOUT, log_of};

/// Length to which the log is cut when all of it is in the database.
pub const LOG_KEPT_BYTES_MAX: u32 = 32 << 20;
/// Length of the log from which on nothing is added.
pub const LOG_BYTES_MAX: u32 = 64 << 20;
/// How long readers may take to get out of the way of a log that is too long.
const READERS_WAIT: Duration = Duration::from_millis(500);

/// Cuts a log that is too long. Not inside of a transaction.
///
/// Errors: `Pinned` while somebody reads what was before.
pub(super) fn shorten(
    connection: &Connection,
    path: &Path,
    bytes_max: u32,
) -> Result<(), StoreError> {
    let bytes_max = u64::from(bytes_max);
    if length(path) <= bytes_max {
        return Ok(());
    }
    // A fault shows in the length.
    let _ = connection.busy_timeout(READERS_WAIT);
    let _ = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", (), |_| Ok(()));
    let _ = connection.busy_timeout(BUSY_TIMEOUT);
    let bytes = length(path);
    if bytes <= bytes_max {
        return Ok(());
    }
    let log = log_of(path).display().to_string();
    Err(StoreError::Pinned { store: path.display().to_string(), log, bytes, bytes_max })
}

fn length(path: &Path) -> u64 {
    fs::metadata(log_of(path)).map_or(0, |log| log.len())
}
