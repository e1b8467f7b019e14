//! The PostgreSQL tables, in a schema of their own.
//!
//! `requests` has one table per month of admission, so that an old month can be detached and
//! dropped at once. So no index has all keys of requests: `ledgers.rs` keeps them apart. The other tables are as in SQLite. Requests get their numbers under the lock
//! that every change takes first and keeps until it is visible to all. So no number is visible
//! before all lower ones are, and changes never deadlock.

use std::collections::BTreeSet;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan as _};
use taximeter_database::old_rows;
use tokio_postgres::types::Type;

use super::fault::Fault;
use super::link::Link;

const TABLES: &str = "
    SET LOCAL search_path = taximeter;
    CREATE SEQUENCE arrivals;
    CREATE TABLE requests (
        number bigint NOT NULL,       -- order of arrival
        started_at bigint NOT NULL,   -- admission, microseconds since 1970
        id uuid NOT NULL,
        ended_at bigint NOT NULL,     -- microseconds since 1970
        tenant text NOT NULL,
        upstream text NOT NULL,
        model text,                   -- the answer's, or the request's
        input_tokens bigint,
        output_tokens bigint,
        ledger uuid NOT NULL,         -- the journal of its gateway
        seq bigint NOT NULL,          -- its entry there
        gateway text NOT NULL,        -- whose journal that is
        billed boolean NOT NULL,      -- whether bills count it: it has used something
        payload bytea NOT NULL,       -- the complete payload of that entry
        PRIMARY KEY (started_at, id)
    ) PARTITION BY RANGE (started_at);
    CREATE INDEX ON requests (number);
    CREATE TABLE corrections (
        number bigint GENERATED ALWAYS AS IDENTITY,
        id uuid PRIMARY KEY,          -- its own
        started_at bigint NOT NULL,   -- admission of the request
        corrects uuid NOT NULL,       -- id of the request
        made_at bigint NOT NULL,      -- microseconds since 1970
        waiting boolean NOT NULL,     -- until its request is here: it counts in no hour
        seq bigint NOT NULL,          -- its entry in the journal of corrections
        correction bytea NOT NULL     -- the complete payload of that entry
    );
    CREATE INDEX ON corrections (started_at, corrects, made_at);
    CREATE INDEX ON corrections (started_at, corrects) WHERE waiting;
    CREATE TABLE combinations (
        number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        digest bytea NOT NULL UNIQUE, -- SHA-256 of what follows: an index takes no long text
        tenant text NOT NULL,
        dimensions text NOT NULL      -- JSON: tenant, model, key and so on
    );
    CREATE TABLE lines (
        number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        digest bytea NOT NULL UNIQUE,
        line text NOT NULL            -- JSON: meter, unit, prices and so on
    );
    CREATE TABLE hours (
        hour bigint NOT NULL,         -- its first instant, microseconds since 1970
        combination bigint NOT NULL,
        part bigint NOT NULL,         -- another one where a sum would be too large to be exact
        requests bigint NOT NULL,
        input_tokens bigint,
        cache_read_input_tokens bigint,
        output_tokens bigint,
        reasoning_output_tokens bigint,
        cost numeric,
        list_cost numeric,
        unknown_cost_requests bigint NOT NULL,
        counted_requests bigint NOT NULL,
        unknown_usage_requests bigint NOT NULL,
        quantities text NOT NULL,     -- JSON: decimal by number of line
        PRIMARY KEY (hour, combination, part)
    ) WITH (fillfactor = 50);
    CREATE TABLE cursors (
        gateway text NOT NULL,        -- and its data directory
        journal text NOT NULL,
        seq bigint NOT NULL,          -- last entry of the journal that is here
        chain bigint NOT NULL,        -- its chain: tells this journal from another
        PRIMARY KEY (gateway, journal)
    );
    CREATE TABLE correctors (
        gateway text PRIMARY KEY,     -- whose journal of corrections may have more than is here
        since bigint NOT NULL         -- microseconds since 1970
    )";

/// The table that format 2 does not have.
pub(super) const REFUSALS: &str = "
    CREATE TABLE IF NOT EXISTS taximeter.refusals (
        minute bigint NOT NULL,       -- its first instant, microseconds since 1970
        id uuid NOT NULL,             -- of the entry
        tenant text NOT NULL,         -- empty if there is none
        others boolean NOT NULL,      -- for tenants that are not told apart
        reason text NOT NULL,
        status integer NOT NULL,      -- 0 if the client had left
        admitted boolean NOT NULL,    -- whether the requests used nothing, or were refused
        count bigint NOT NULL,
        PRIMARY KEY (minute, id, tenant, others, reason, status, admitted)
    )";

/// The tables that a store of this format may lack.
pub(super) const LATER: &str = "
    CREATE TABLE IF NOT EXISTS taximeter.reached (
        gateway text PRIMARY KEY,     -- and its data directory
        heard bigint NOT NULL,        -- time of its last entry that is here, microseconds since 1970
        said_at bigint,               -- time of the last one that says what is settled
        settled_until bigint,         -- what was admitted before has ended
        request_seconds bigint        -- the longest that a request may take
    );
    CREATE TABLE IF NOT EXISTS taximeter.statements (
        tenant text NOT NULL,
        period_start bigint NOT NULL, -- microseconds since 1970
        period_end bigint NOT NULL,   -- the same
        number integer NOT NULL,      -- from 1 on
        signed text NOT NULL,         -- the signed statement, as JSON
        PRIMARY KEY (tenant, period_start, period_end, number)
    );
    CREATE TABLE IF NOT EXISTS taximeter.keeping (
        gateway text PRIMARY KEY,     -- and its data directory
        records_keep_days bigint NOT NULL
    );
    CREATE TABLE IF NOT EXISTS taximeter.gone_days (
        day bigint NOT NULL,          -- its first instant, microseconds since 1970
        ledger uuid NOT NULL,
        last_seq bigint NOT NULL,     -- the last entry of its requests that are gone
        requests bigint NOT NULL,
        first_at bigint NOT NULL,     -- first and last admission, microseconds since 1970
        last_at bigint NOT NULL,
        gone_at bigint NOT NULL,      -- microseconds since 1970
        PRIMARY KEY (day, ledger)
    );
    CREATE TABLE IF NOT EXISTS taximeter.sessions (
        day bigint NOT NULL,          -- its first instant, microseconds since 1970
        tenant text NOT NULL,
        session text NOT NULL,
        sum bytea NOT NULL,           -- of its requests that were admitted on that day
        PRIMARY KEY (day, tenant, session)
    ) WITH (fillfactor = 50);
    CREATE TABLE IF NOT EXISTS taximeter.ledgers (
        ledger uuid PRIMARY KEY,
        series bigint NOT NULL,       -- its last one
        seq bigint NOT NULL           -- last entry of that whose request is here
    );
    ALTER TABLE taximeter.requests ADD COLUMN IF NOT EXISTS series bigint NOT NULL DEFAULT 0";
/// The last of the tables, and the last one that readers ask for.
const LAST: &str = "sessions";
const READ: &str = "gone_days";

/// The format that this program writes.
pub(super) const VERSION: i32 = 4;

/// Ours, of all that the database's users agree on: “taximete” in ASCII.
const LOCK: i64 = 0x7461_7869_6d65_7465;

const ENCODING: &str = "SELECT current_setting('server_encoding')";
/// As the last change left it: `to_regclass` may tell what this session knew before it waited.
const IS_THERE: &str = "
    SELECT EXISTS (SELECT 1 FROM pg_tables WHERE schemaname = 'taximeter' AND tablename = $1)";
const FORMAT: &str = "SELECT version FROM taximeter.format";
const MAKE: &str = "
    CREATE SCHEMA IF NOT EXISTS taximeter;
    CREATE TABLE taximeter.format (version integer NOT NULL)";

/// A partition of `requests`: a calendar month in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Month(Date);

/// Makes the tables where there are none. One does it, others wait. Who only reads needs no right to
/// make those that a store of this format may lack.
///
/// Errors: `Older` where `taximeter convert` is needed; `Format` where another version made them;
/// `Unfit`.
pub(super) fn set_up(link: &Link, is_reader: bool) -> Result<(), Fault> {
    if version(link)? == VERSION {
        if is_there(link, LAST)? {
            return Ok(());
        }
        let made = begin(link).and_then(|()| link.run(LATER)).and_then(|()| link.run("COMMIT"));
        return made.or_else(|fault| {
            link.run("ROLLBACK")?;
            if is_reader { Ok(()) } else { Err(fault) }
        });
    }
    let encoding: String = link.query_one(ENCODING, &[])?.try_get(0)?;
    if encoding != "UTF8" {
        return Err(Fault::Unfit(format!(
            "its encoding is {encoding}, which has not all characters; make one with ENCODING 'UTF8'"
        )));
    }
    begin(link)?;
    let found = version(link)?;
    match found {
        0 => {
            link.run(MAKE)?;
            link.run(TABLES)?;
            link.run(REFUSALS)?;
            link.run(LATER)?;
            link.run(&format!("INSERT INTO taximeter.format VALUES ({VERSION}); COMMIT"))
        }
        VERSION => link.run("COMMIT"),
        _ if old_rows::is_old(found) => Err(Fault::Older),
        _ => Err(Fault::Format { found, known: VERSION }),
    }
}

/// The format of what is there; 0 is nothing.
pub(super) fn version(link: &Link) -> Result<i32, Fault> {
    if !is_there(link, "format")? {
        return Ok(0);
    }
    Ok(link.query_one(FORMAT, &[])?.try_get(0)?)
}

/// Begins a change: from here to its end, this is the only one. All settings end with it: a pool may
/// give the session to another client then.
///
/// A client that falls silent in the middle keeps others from theirs for so long. A batch fits into
/// the memory of a step.
pub(super) fn begin(link: &Link) -> Result<(), Fault> {
    let limit = super::link::STEP_WAIT.as_millis();
    link.run(&format!(
        "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE;
         SET LOCAL work_mem = '32MB';
         SET LOCAL idle_in_transaction_session_timeout = '20s';
         SET LOCAL statement_timeout = {limit};
         SELECT pg_advisory_xact_lock({LOCK})"
    ))
}

impl Month {
    /// The months of these admissions, and the one after each: it is there when it begins.
    pub(super) fn of(admissions: impl Iterator<Item = Timestamp>) -> BTreeSet<Self> {
        let months = |admitted: Timestamp| {
            let month = Self::at(admitted);
            [Some(month), month.next()].into_iter().flatten()
        };
        admissions.flat_map(months).collect()
    }

    fn at(instant: Timestamp) -> Self {
        Self(TimeZone::UTC.to_datetime(instant).date().first_of_month())
    }

    fn next(self) -> Option<Self> {
        self.0.checked_add(1.month()).ok().map(Self)
    }

    /// Makes its table where there is none. Needs an open change.
    ///
    /// It is attached, not made in its place: so nobody who reads has to wait.
    pub(super) fn make(self, link: &Link) -> Result<(), Fault> {
        let table = format!("requests_{:04}_{:02}", self.0.year(), self.0.month());
        if is_there(link, &table)? {
            return Ok(());
        }
        let from = bound(Some(self), "MINVALUE");
        let to = bound(self.next(), "MAXVALUE");
        link.run(&format!(
            "CREATE TABLE taximeter.\"{table}\" (LIKE taximeter.requests INCLUDING ALL);
             CREATE UNIQUE INDEX \"{table}_keys\"
                ON taximeter.\"{table}\" (ledger, series, seq) WHERE series > 0;
             ALTER TABLE taximeter.requests ATTACH PARTITION taximeter.\"{table}\"
                FOR VALUES FROM ({from}) TO ({to})"
        ))
    }
}

/// Whether the tables are there that a store of this format may lack, and that are read.
pub(super) fn has_later(link: &Link) -> Result<bool, Fault> {
    is_there(link, READ)
}

/// Whether there is a table of this name.
pub(super) fn is_there(link: &Link, table: &str) -> Result<bool, Fault> {
    Ok(link.query_one(IS_THERE, &[(&table, Type::TEXT)])?.try_get(0)?)
}

fn bound(month: Option<Month>, otherwise: &str) -> String {
    let first = month.and_then(|Month(date)| TimeZone::UTC.to_timestamp(date.at(0, 0, 0, 0)).ok());
    first.map_or_else(|| otherwise.to_owned(), |first| first.as_microsecond().to_string())
}
