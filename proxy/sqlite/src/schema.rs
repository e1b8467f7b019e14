//! The SQLite tables.
//!
//! `requests` holds the entry of each request, in the order of arrival. So inserts go to the end. That
//! is also the order of their keys, which are the ids of ledgers and the numbers of entries
//! (`ledgers.rs`). The view `request_keys` shows the keys.
//!
//! What many requests have in common is in `forms`: their strings, as the journal has them. The one
//! index of `requests` is by admission, and ids follow admission. The index selects a month, grows
//! near its end too, and keeps a request from being stored twice.
//!
//! `refusals` holds the counts of requests that have no record, as the entries of the journal have
//! them. An entry that comes again takes its own place.
//!
//! `hours` holds the sums of requests and corrections. Its rows are narrow: values that repeat
//! every hour are in `combinations` and `lines`. Decimals are exact texts.
//!
//! `sessions` holds what sessions of agents add up to, by day, and `session_changes` what corrections
//! change of that. They go with the details of their days. `session_files` is the list of the files that
//! have sums which left `sessions`.
//!
//! `days` is the list of the files in the folder `days` that have requests which left `requests`. A
//! file that it does not name has nothing that counts. Numbers of requests are never given again:
//! `ledgers` keeps the next one when the last request leaves.

use rusqlite::Connection;
use rusqlite::config::DbConfig;

use super::kept_tables;
use super::log::LOG_KEPT_BYTES_MAX;
use super::sessions;

/// The format that this program writes.
pub(super) const VERSION: u32 = 6;

/// Large pages: a record fills a good part of a small one, and half the cost of an insert is calls
/// to the system.
const PAGE_BYTES: u32 = 16 << 10;

const DAYS: &str = "
    CREATE TABLE IF NOT EXISTS days (
        number INTEGER PRIMARY KEY AUTOINCREMENT,  -- never given again
        name TEXT NOT NULL UNIQUE,    -- of the file
        day INTEGER NOT NULL,         -- its first instant, microseconds since 1970
        requests INTEGER NOT NULL,
        first_at INTEGER NOT NULL,    -- first and last admission, microseconds since 1970
        last_at INTEGER NOT NULL,
        bytes INTEGER NOT NULL,
        sha256 BLOB NOT NULL,         -- of the whole file
        is_final INTEGER NOT NULL     -- 1 if the day is closed and the file has all of it
    ) STRICT;
";

const REQUESTS: &str = "
    CREATE TABLE ledgers (
        first INTEGER PRIMARY KEY,    -- from this number on, requests are of this ledger
        ledger BLOB NOT NULL          -- its UUID; another row can have the same
    ) STRICT;
    CREATE TABLE forms (
        number INTEGER PRIMARY KEY,
        digest INTEGER NOT NULL,      -- of the strings
        tenant TEXT NOT NULL,
        strings BLOB NOT NULL         -- as in the payloads of complete entries
    ) STRICT;
    CREATE INDEX digests ON forms (digest);
    CREATE TABLE requests (
        number INTEGER PRIMARY KEY,   -- order of arrival, and of the keys
        started_at INTEGER NOT NULL,  -- admission, microseconds since 1970
        id BLOB NOT NULL,             -- UUID
        form INTEGER NOT NULL,
        seq INTEGER NOT NULL,         -- its entry in the ledger: with that the key
        members BLOB NOT NULL         -- of that entry
    ) STRICT;
    CREATE UNIQUE INDEX admission ON requests (started_at, id);
    CREATE VIEW request_keys AS
        WITH keys AS (
            SELECT
                lower(hex((SELECT ledger FROM ledgers
                    WHERE first <= requests.number ORDER BY first DESC LIMIT 1))) AS ledger,
                seq, requests.number AS number, started_at, lower(hex(id)) AS id, tenant
            FROM requests JOIN forms ON forms.number = form)
        SELECT
            substr(ledger, 1, 8) || '-' || substr(ledger, 9, 4) || '-' || substr(ledger, 13, 4)
                || '-' || substr(ledger, 17, 4) || '-' || substr(ledger, 21) AS ledger,
            seq, number, started_at,
            substr(id, 1, 8) || '-' || substr(id, 9, 4) || '-' || substr(id, 13, 4)
                || '-' || substr(id, 17, 4) || '-' || substr(id, 21) AS id,
            tenant
        FROM keys
";

const TABLES: &str = "
    CREATE TABLE corrections (
        number INTEGER PRIMARY KEY,   -- order of arrival
        id BLOB NOT NULL UNIQUE,      -- UUID, its own
        started_at INTEGER NOT NULL,  -- admission of the request
        corrects BLOB NOT NULL,       -- id of the request
        made_at INTEGER NOT NULL,     -- microseconds since 1970
        waiting INTEGER NOT NULL,     -- 1 until its request is here: it counts in no hour
        seq INTEGER NOT NULL,         -- its entry in the journal of corrections
        correction BLOB NOT NULL      -- the complete payload of that entry
    ) STRICT;
    CREATE INDEX corrected ON corrections (started_at, corrects, made_at);
    CREATE INDEX waiting ON corrections (started_at, corrects) WHERE waiting = 1;
    CREATE TABLE combinations (
        number INTEGER PRIMARY KEY,
        tenant TEXT NOT NULL,
        dimensions TEXT NOT NULL UNIQUE  -- JSON: tenant, model, key and so on
    ) STRICT;
    CREATE TABLE lines (
        number INTEGER PRIMARY KEY,
        line TEXT NOT NULL UNIQUE     -- JSON: meter, unit, prices and so on
    ) STRICT;
    CREATE TABLE hours (
        hour INTEGER NOT NULL,        -- its first instant, microseconds since 1970
        combination INTEGER NOT NULL,
        part INTEGER NOT NULL,        -- another one where a sum would be too large to be exact
        requests INTEGER NOT NULL,
        input_tokens INTEGER,
        cache_read_input_tokens INTEGER,
        output_tokens INTEGER,
        reasoning_output_tokens INTEGER,
        cost TEXT,                    -- decimal
        list_cost TEXT,               -- decimal
        unknown_cost_requests INTEGER NOT NULL,
        counted_requests INTEGER NOT NULL,
        unknown_usage_requests INTEGER NOT NULL,
        quantities TEXT NOT NULL,     -- JSON: decimal by number of line
        PRIMARY KEY (hour, combination, part)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS refusals (
        minute INTEGER NOT NULL,      -- its first instant, microseconds since 1970
        id BLOB NOT NULL,             -- UUID of the entry
        tenant TEXT NOT NULL,         -- empty if there is none
        others INTEGER NOT NULL,      -- 1 for tenants that are not told apart
        reason TEXT NOT NULL,
        status INTEGER NOT NULL,      -- 0 if the client had left
        admitted INTEGER NOT NULL,    -- 1 if the requests used nothing, 0 if they were refused
        count INTEGER NOT NULL,
        PRIMARY KEY (minute, id, tenant, others, reason, status, admitted)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE cursors (
        journal TEXT PRIMARY KEY,
        seq INTEGER NOT NULL,         -- last entry of the journal that is here
        chain INTEGER NOT NULL        -- its chain: tells this journal from another
    ) STRICT;
";

const REACHED: &str = "
    CREATE TABLE IF NOT EXISTS reached (
        journal TEXT PRIMARY KEY,
        heard INTEGER NOT NULL,       -- time of its last entry that is here, microseconds since 1970
        said_at INTEGER,              -- time of the last one that says what is settled
        settled_until INTEGER,        -- what was admitted before has ended
        request_seconds INTEGER       -- the longest that a request may take
    ) STRICT
";

/// Synced at checkpoints: a power cut loses at most what the journal can feed again.
pub(super) fn set_up(connection: &Connection) -> rusqlite::Result<()> {
    keep_plans(connection)?;
    connection.pragma_update(None, "page_size", PAGE_BYTES)?;
    connection.pragma_update(None, "journal_mode", "wal")?;
    connection.pragma_update(None, "journal_size_limit", LOG_KEPT_BYTES_MAX)?;
    connection.pragma_update(None, "synchronous", "normal")
}

/// A copy outlives nothing, so nothing of it is synced.
pub(super) fn set_up_copy(connection: &Connection, memory_kib: i64) -> rusqlite::Result<()> {
    keep_plans(connection)?;
    connection.pragma_update(None, "page_size", PAGE_BYTES)?;
    connection.pragma_update(None, "journal_mode", "memory")?;
    connection.pragma_update(None, "synchronous", "off")?;
    connection.pragma_update(None, "cache_size", -memory_kib)
}

/// Statements keep their plan whatever values they are given; planning one costs more than running
/// it.
pub(super) fn keep_plans(connection: &Connection) -> rusqlite::Result<()> {
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true).map(|_| ())
}

/// The format of what is there; 0 is nothing.
pub(super) fn version(connection: &Connection) -> rusqlite::Result<u32> {
    connection.pragma_query_value(None, "user_version", |row| row.get(0))
}

/// Makes the tables; of those that are there, `refusals`, `days` and `reached` stay.
pub(super) fn create(connection: &Connection) -> rusqlite::Result<()> {
    create_requests(connection)?;
    connection.execute_batch(TABLES)?;
    complete(connection)
}

/// Makes the tables of requests alone.
pub(super) fn create_requests(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch(REQUESTS)
}

/// Makes the tables that older formats lack.
pub(super) fn complete(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch(DAYS)?;
    kept_tables::create(connection)?;
    sessions::create(connection)?;
    connection.execute_batch(REACHED)?;
    connection.pragma_update(None, "user_version", VERSION)
}
