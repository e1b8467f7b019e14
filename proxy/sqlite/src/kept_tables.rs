//! Tables of what is kept although details go: files of hours, and days without details.

use rusqlite::Connection;

const TABLES: &str = "
    CREATE TABLE IF NOT EXISTS hour_files (
        number INTEGER PRIMARY KEY AUTOINCREMENT,  -- never given again
        name TEXT NOT NULL UNIQUE,    -- of the file
        month INTEGER NOT NULL,       -- its first instant, microseconds since 1970
        first_hour INTEGER NOT NULL,  -- microseconds since 1970
        last_hour INTEGER NOT NULL,
        rows INTEGER NOT NULL,
        bytes INTEGER NOT NULL,
        sha256 BLOB NOT NULL,         -- of the whole file
        covers TEXT NOT NULL,         -- JSON: of each day which requests and corrections it has
        is_adopted INTEGER NOT NULL   -- 1 if the store was lost after it was written
    ) STRICT;
    CREATE TABLE IF NOT EXISTS counted_corrections (
        id BLOB PRIMARY KEY           -- UUID of a correction that a file of hours has
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS gone_days (
        day INTEGER PRIMARY KEY,      -- its first instant, microseconds since 1970
        requests INTEGER NOT NULL,
        first_at INTEGER NOT NULL,    -- first and last admission, microseconds since 1970
        last_at INTEGER NOT NULL,
        files TEXT NOT NULL,          -- JSON: names, bytes and SHA-256
        ledgers TEXT NOT NULL,        -- JSON: last entry by ledger
        gone_at INTEGER NOT NULL,     -- microseconds since 1970
        cause TEXT NOT NULL
    ) STRICT;
    CREATE TABLE IF NOT EXISTS lost_requests (
        number INTEGER PRIMARY KEY,   -- there is one row at most
        before INTEGER,               -- they ended before; null until somebody has looked
        requests INTEGER NOT NULL
    ) STRICT;
";
const HAS: &str = "SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?1)";

/// Makes the tables that are missing. Needs an open transaction.
pub(super) fn create(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch(TABLES)
}

/// Whether there is a table of this name: a store that is only read may lack it.
pub(super) fn has(connection: &Connection, table: &str) -> rusqlite::Result<bool> {
    connection.prepare_cached(HAS)?.query_row([table], |row| row.get(0))
}
