//! The store's tables, and the questions that are asked of them.
//!
//! `requests` holds what bills are made of, and behind it the JSON, in the order of arrival:
//! inserts go to the end. The one index is by admission, which ids follow: it picks a month, grows
//! near its end too, and keeps a request from being here twice, since an id comes with its
//! admission.

use rusqlite::{Connection, TransactionBehavior};

/// The format that this program writes.
pub(super) const VERSION: u32 = 1;

/// Large pages: a record fills a good part of a small one, and half the cost of an insert is calls
/// to the system.
const PAGE_BYTES: u32 = 16 << 10;

/// The step from each format to the next.
const MIGRATIONS: [&str; VERSION as usize] = ["
    CREATE TABLE requests (
        number INTEGER PRIMARY KEY,   -- order of arrival
        started_at INTEGER NOT NULL,  -- admission, microseconds since 1970
        id BLOB NOT NULL,             -- UUID
        tenant TEXT NOT NULL,
        model TEXT,                   -- the answer's, or the request's
        provider TEXT NOT NULL,
        upstream TEXT NOT NULL,
        operation TEXT NOT NULL,
        route TEXT NOT NULL,
        key_id TEXT,
        labels TEXT,                  -- JSON object; NULL for none
        source TEXT NOT NULL,         -- reported, counted, unknown
        input_tokens INTEGER,
        cache_read_input_tokens INTEGER,
        output_tokens INTEGER,
        reasoning_output_tokens INTEGER,
        currency TEXT,
        cost TEXT,                    -- decimal, exact; NULL is unknown
        seq INTEGER NOT NULL,         -- its entry in the journal
        record TEXT NOT NULL          -- that entry's JSON
    ) STRICT;
    CREATE UNIQUE INDEX admission ON requests (started_at, id);
    CREATE TABLE cursor (
        one INTEGER PRIMARY KEY CHECK (one = 1),
        seq INTEGER NOT NULL,         -- last entry of the journal that is here
        chain INTEGER NOT NULL        -- its chain: tells this journal from another
    ) STRICT;
"];

pub(super) const ADD: &str = "
    INSERT OR IGNORE INTO requests VALUES
        (NULL, ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10,
            ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19)";
pub(super) const IS_EMPTY: &str = "SELECT NOT EXISTS (SELECT 1 FROM requests)";
pub(super) const NEWEST: &str = "SELECT coalesce(max(number), 0) FROM requests";

pub(super) const CURSOR: &str = "SELECT seq, chain FROM cursor";
pub(super) const SET_CURSOR: &str =
    "INSERT OR REPLACE INTO cursor (one, seq, chain) VALUES (1, ?1, ?2)";

pub(super) const BILL_ROWS: &str = "
    SELECT started_at, tenant, model, provider, upstream, operation, route, key_id, labels, source,
        input_tokens, cache_read_input_tokens, output_tokens, reasoning_output_tokens,
        currency, cost, json_extract(record, '$.cost.list_amount')
    FROM requests
    WHERE started_at >= ?1 AND started_at < ?2 AND (?3 IS NULL OR tenant = ?3)
    ORDER BY started_at, id";

pub(super) const RECORDS: &str = "
    SELECT started_at, id, seq, record
    FROM requests
    WHERE (started_at, id) >= (?1, ?2) AND started_at < ?3 AND (?4 IS NULL OR tenant = ?4)
        AND number <= ?5
    ORDER BY started_at, id
    LIMIT ?6";

pub(super) const FIRST_OF_LAST: &str = "
    SELECT started_at, id
    FROM requests
    WHERE started_at >= ?1 AND started_at < ?2 AND (?3 IS NULL OR tenant = ?3) AND number <= ?4
    ORDER BY started_at DESC, id DESC
    LIMIT 1 OFFSET ?5";

/// `+` keeps the index out of it: what is new is found by number.
pub(super) const AFTER: &str = "
    SELECT number, seq, record
    FROM requests
    WHERE number > ?1 AND number <= ?2
        AND +started_at >= ?3 AND +started_at < ?4 AND (?5 IS NULL OR tenant = ?5)
    ORDER BY number
    LIMIT ?6";

/// Sets the connection up and brings the tables up to date; answers with the format that is now
/// there, which is higher than [`VERSION`] when a later version wrote it.
///
/// Synced at checkpoints: a power cut loses at most what the journal can feed again.
pub(super) fn prepare(connection: &mut Connection) -> rusqlite::Result<u32> {
    connection.pragma_update(None, "page_size", PAGE_BYTES)?;
    connection.pragma_update(None, "journal_mode", "wal")?;
    connection.pragma_update(None, "synchronous", "normal")?;
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let found: u32 = transaction.pragma_query_value(None, "user_version", |row| row.get(0))?;
    for step in MIGRATIONS.iter().skip(found as usize) {
        transaction.execute_batch(step)?;
    }
    if found < VERSION {
        transaction.pragma_update(None, "user_version", VERSION)?;
    }
    transaction.commit()?;
    Ok(found.max(VERSION))
}
