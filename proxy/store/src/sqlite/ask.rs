//! Queries the SQLite tables.

use std::ops::ControlFlow;

use rusqlite::types::Type;
use rusqlite::{Connection, OptionalExtension, Params, Row, params};
use rust_decimal::Decimal;
use taximeter_billing::Period;
use taximeter_billing::export::{Entries, SequenceRange};
use taximeter_ledger::{Correction, Position, Record};

use crate::database::{AdmissionKey, Filter, Written};
use crate::post::{Post, gateway, says_nothing_used};

const CURSOR: &str = "SELECT seq, chain FROM cursors WHERE journal = ?1";
const NEWEST: &str = "SELECT coalesce(max(number), 0) FROM requests";

const POSTS: &str = "
    SELECT seq, record
    FROM requests
    WHERE started_at >= ?1 AND started_at < ?2 AND (?3 IS NULL OR tenant = ?3)
    ORDER BY started_at, id";

/// `CROSS` keeps the order of the tables: corrections are few.
const CORRECTIONS: &str = "
    SELECT requests.seq, record, correction
    FROM corrections CROSS JOIN requests
        ON requests.started_at = corrections.started_at AND requests.id = corrects
    WHERE corrections.started_at >= ?1 AND corrections.started_at < ?2
        AND (?3 IS NULL OR tenant = ?3)
    ORDER BY corrections.started_at, corrects, made_at, corrections.number";

const ENTRIES: &str = "
    SELECT seq, record
    FROM requests
    WHERE started_at >= ?1 AND started_at < ?2 AND (?3 IS NULL OR tenant = ?3)";
/// At most so many are counted as one needs to know of.
const TENANTS: &str = "
    SELECT count(*)
    FROM (
        SELECT DISTINCT tenant
        FROM requests
        WHERE started_at >= ?1 AND started_at < ?2 AND (?3 IS NULL OR tenant = ?3)
        LIMIT 1000)";
const COUNT_CORRECTIONS: &str = "
    SELECT count(*)
    FROM corrections CROSS JOIN requests
        ON requests.started_at = corrections.started_at AND requests.id = corrects
    WHERE corrections.started_at >= ?1 AND corrections.started_at < ?2
        AND (?3 IS NULL OR tenant = ?3)";

const ADMITTED: &str = "
    SELECT started_at, id, seq, record
    FROM requests
    WHERE (started_at, id) >= (?1, ?2) AND started_at < ?3 AND (?4 IS NULL OR tenant = ?4)
        AND number <= ?5
    ORDER BY started_at, id
    LIMIT ?6";

const ADMITTED_BEFORE: &str = "
    SELECT started_at, id, seq, record
    FROM requests
    WHERE (started_at, id) < (?1, ?2) AND started_at >= ?3 AND started_at < ?4
        AND (?5 IS NULL OR tenant = ?5) AND number <= ?6
    ORDER BY started_at DESC, id DESC
    LIMIT ?7";

const KEY_OF_LAST: &str = "
    SELECT started_at, id
    FROM requests
    WHERE started_at >= ?1 AND started_at < ?2 AND (?3 IS NULL OR tenant = ?3) AND number <= ?4
    ORDER BY started_at DESC, id DESC
    LIMIT 1 OFFSET ?5";

/// `+` keeps the index out of it: what is new is found by number.
const ARRIVED: &str = "
    SELECT number, seq, record
    FROM requests
    WHERE number > ?1 AND number <= ?2
        AND +started_at >= ?3 AND +started_at < ?4 AND (?5 IS NULL OR tenant = ?5)
    ORDER BY number
    LIMIT ?6";

pub(super) fn cursor(connection: &Connection, journal: &str) -> rusqlite::Result<Option<Position>> {
    let read = |row: &Row<'_>| {
        Ok(Position { seq: row.get(0).map(i64::cast_unsigned)?, chain: row.get(1)? })
    };
    connection.prepare_cached(CURSOR)?.query_row([journal], read).optional()
}

pub(super) fn newest(connection: &Connection) -> rusqlite::Result<i64> {
    connection.prepare_cached(NEWEST)?.query_row([], |row| row.get(0))
}

pub(super) fn posts(
    connection: &Connection,
    period: Period,
    tenant: Option<&str>,
    visit: &mut dyn FnMut(&Post<'_>) -> ControlFlow<()>,
) -> rusqlite::Result<()> {
    each(connection, POSTS, params![from(period), to(period), tenant], |row| {
        Ok(visit(&post(row, 0, 1)?))
    })
}

pub(super) fn corrections(
    connection: &Connection,
    period: Period,
    tenant: Option<&str>,
    visit: &mut dyn FnMut(&Post<'_>, &Correction) -> ControlFlow<()>,
) -> rusqlite::Result<()> {
    each(connection, CORRECTIONS, params![from(period), to(period), tenant], |row| {
        let correction: Correction =
            serde_json::from_str(text(row, 2)?).map_err(|error| unreadable(2, error))?;
        Ok(visit(&post(row, 0, 1)?, &correction))
    })
}

pub(super) fn entries(
    connection: &Connection,
    period: Period,
    tenant: Option<&str>,
) -> rusqlite::Result<Entries> {
    let asked = params![from(period), to(period), tenant];
    let mut entries = Entries::default();
    each(connection, ENTRIES, asked, |row| {
        let record = text(row, 1)?;
        if says_nothing_used(record) {
            return Ok(ControlFlow::Continue(()));
        }
        let gateway = gateway(record).map_err(|error| unreadable(1, error))?;
        let seq = row.get(0).map(i64::cast_unsigned)?;
        SequenceRange::add(&mut entries.sequences, &gateway, seq);
        Ok(ControlFlow::Continue(()))
    })?;
    let mut count = connection.prepare_cached(COUNT_CORRECTIONS)?;
    entries.corrections = count.query_row(asked, |row| row.get(0).map(i64::cast_unsigned))?;
    Ok(entries)
}

pub(super) fn tenants(
    connection: &Connection,
    period: Period,
    tenant: Option<&str>,
) -> rusqlite::Result<u64> {
    let asked = params![from(period), to(period), tenant];
    let mut count = connection.prepare_cached(TENANTS)?;
    count.query_row(asked, |row| row.get(0).map(i64::cast_unsigned))
}

pub(super) fn admitted(
    connection: &Connection,
    filter: &Filter,
    newest: i64,
    start: &AdmissionKey,
    limit: u32,
) -> rusqlite::Result<Vec<(AdmissionKey, Record)>> {
    let asked = params![start.at, start.id, filter.before(), filter.tenant, newest, limit];
    let mut query = connection.prepare_cached(ADMITTED)?;
    query.query_map(asked, |row| Ok((admission_key(row)?, record(row, 2, 3)?)))?.collect()
}

pub(super) fn written(
    connection: &Connection,
    filter: &Filter,
    newest: i64,
    (start, limit): (&AdmissionKey, u32),
    page: &mut Written,
) -> rusqlite::Result<Option<AdmissionKey>> {
    let asked = params![start.at, start.id, filter.before(), filter.tenant, newest, limit];
    let mut next = None;
    page.clear();
    each(connection, ADMITTED, asked, |row| {
        page.push(row.get(2).map(i64::cast_unsigned)?, text(row, 3)?);
        if page.count() == limit as usize {
            next = Some(admission_key(row)?.next());
        }
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(next)
}

pub(super) fn admitted_before(
    connection: &Connection,
    filter: &Filter,
    newest: i64,
    end: &AdmissionKey,
    limit: u32,
) -> rusqlite::Result<Vec<(AdmissionKey, Record)>> {
    let (since, before) = (filter.since(), filter.before());
    let asked = params![end.at, end.id, since, before, filter.tenant, newest, limit];
    let mut query = connection.prepare_cached(ADMITTED_BEFORE)?;
    query.query_map(asked, |row| Ok((admission_key(row)?, record(row, 2, 3)?)))?.collect()
}

pub(super) fn key_of_last(
    connection: &Connection,
    filter: &Filter,
    newest: i64,
    count: u32,
) -> rusqlite::Result<Option<AdmissionKey>> {
    let offset = count.saturating_sub(1);
    let asked = params![filter.since(), filter.before(), filter.tenant, newest, offset];
    connection.prepare_cached(KEY_OF_LAST)?.query_row(asked, admission_key).optional()
}

pub(super) fn arrived(
    connection: &Connection,
    filter: &Filter,
    after: i64,
    newest: i64,
    limit: u32,
) -> rusqlite::Result<Vec<(i64, Record)>> {
    let (since, before) = (filter.since(), filter.before());
    let asked = params![after, newest, since, before, filter.tenant, limit];
    let mut query = connection.prepare_cached(ARRIVED)?;
    query.query_map(asked, |row| Ok((row.get(0)?, record(row, 1, 2)?)))?.collect()
}

fn each(
    connection: &Connection,
    question: &str,
    asked: impl Params,
    mut visit: impl FnMut(&Row<'_>) -> rusqlite::Result<ControlFlow<()>>,
) -> rusqlite::Result<()> {
    let mut query = connection.prepare_cached(question)?;
    let mut rows = query.query(asked)?;
    while let Some(row) = rows.next()? {
        if visit(row)?.is_break() {
            break;
        }
    }
    Ok(())
}

fn from(period: Period) -> i64 {
    period.from().as_microsecond()
}

fn to(period: Period) -> i64 {
    period.to().as_microsecond()
}

fn admission_key(row: &Row<'_>) -> rusqlite::Result<AdmissionKey> {
    Ok(AdmissionKey { at: row.get(0)?, id: row.get(1)? })
}

/// A post, from the columns of its number in the journal and its JSON.
fn post<'a>(row: &'a Row<'_>, seq: usize, json: usize) -> rusqlite::Result<Post<'a>> {
    let seq = row.get(seq).map(i64::cast_unsigned)?;
    Post::read(seq, text(row, json)?).map_err(|error| unreadable(json, error))
}

/// All of a record, from the same.
fn record(row: &Row<'_>, seq: usize, json: usize) -> rusqlite::Result<Record> {
    let record: Record =
        serde_json::from_str(text(row, json)?).map_err(|error| unreadable(json, error))?;
    Ok(Record { seq: row.get(seq).map(i64::cast_unsigned)?, ..record })
}

fn text<'a>(row: &'a Row<'_>, column: usize) -> rusqlite::Result<&'a str> {
    row.get_ref(column)?.as_str().map_err(|error| unreadable(column, error))
}

fn maybe_text<'a>(row: &'a Row<'_>, column: usize) -> rusqlite::Result<Option<&'a str>> {
    row.get_ref(column)?.as_str_or_null().map_err(|error| unreadable(column, error))
}

/// Tokens, as they are kept: in 64 bits.
pub(super) fn tokens(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<u64>> {
    row.get(column).map(|tokens: Option<i64>| tokens.map(i64::cast_unsigned))
}

/// An exact decimal.
pub(super) fn money(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<Decimal>> {
    let amount = maybe_text(row, column)?.map(Decimal::from_str_exact).transpose();
    amount.map_err(|error| unreadable(column, error))
}

/// What is in `column` is not what was written.
pub(super) fn unreadable(
    column: usize,
    error: impl std::error::Error + Send + Sync + 'static,
) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(column, Type::Text, error.into())
}
