//! Queries the SQLite tables.

use std::ops::ControlFlow;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension, Params, Row, params};
use taximeter_billing::Period;
use taximeter_billing::export::{Entries, SequenceRange};
use taximeter_database::database::{AdmissionKey, Filter, Written};
use taximeter_database::post::Post;
use taximeter_ledger::{Correction, Place, Position, Record, RequestId, join_payload};

use super::columns::seq;
pub(super) use super::columns::{bytes, money, tokens, unreadable};
use super::ledgers::Ledgers;

const CURSOR: &str = "SELECT seq, chain FROM cursors WHERE journal = ?1";

const POSTS: &str = "
    SELECT requests.number, seq, id, strings, members
    FROM requests CROSS JOIN forms ON forms.number = form
    WHERE started_at >= ?1 AND started_at < ?2 AND (?3 IS NULL OR tenant = ?3)
    ORDER BY started_at, id";

/// `CROSS` keeps the order of the tables: corrections are few.
const CORRECTIONS: &str = "
    SELECT requests.number, requests.seq, requests.id, strings, members, correction
    FROM corrections CROSS JOIN requests
        ON requests.started_at = corrections.started_at AND requests.id = corrects
        CROSS JOIN forms ON forms.number = form
    WHERE corrections.started_at >= ?1 AND corrections.started_at < ?2
        AND (?3 IS NULL OR tenant = ?3)
    ORDER BY corrections.started_at, corrects, made_at, corrections.number";

/// The same where requests may have left the table: those columns are null then.
const ALL_CORRECTIONS: &str = "
    SELECT requests.number, requests.seq, requests.id, strings, members, correction
    FROM corrections LEFT JOIN requests
        ON requests.started_at = corrections.started_at AND requests.id = corrects
        LEFT JOIN forms ON forms.number = form
    WHERE corrections.started_at >= ?1 AND corrections.started_at < ?2 AND waiting = 0
        AND (?3 IS NULL OR tenant IS NULL OR tenant = ?3)
    ORDER BY corrections.started_at, corrects, made_at, corrections.number";

const ENTRIES: &str = "
    SELECT requests.number, seq, id, strings, members
    FROM requests CROSS JOIN forms ON forms.number = form
    WHERE started_at >= ?1 AND started_at < ?2 AND (?3 IS NULL OR tenant = ?3)";
/// At most so many are counted as one needs to know of.
const TENANTS: &str = "
    SELECT count(*)
    FROM (
        SELECT DISTINCT tenant
        FROM requests CROSS JOIN forms ON forms.number = form
        WHERE started_at >= ?1 AND started_at < ?2 AND (?3 IS NULL OR tenant = ?3)
        LIMIT 1000)";
const NAMES_OF_TENANTS: &str = "
    SELECT DISTINCT tenant
    FROM requests CROSS JOIN forms ON forms.number = form
    WHERE started_at >= ?1 AND started_at < ?2 AND (?3 IS NULL OR tenant = ?3)
    LIMIT 1000";
const COUNT: &str = "
    SELECT count(*)
    FROM requests CROSS JOIN forms ON forms.number = form
    WHERE started_at >= ?1 AND started_at < ?2 AND (?3 IS NULL OR tenant = ?3) AND requests.number <= ?4";
const COUNT_CORRECTIONS: &str = "
    SELECT count(*)
    FROM corrections CROSS JOIN requests
        ON requests.started_at = corrections.started_at AND requests.id = corrects
        CROSS JOIN forms ON forms.number = form
    WHERE corrections.started_at >= ?1 AND corrections.started_at < ?2
        AND (?3 IS NULL OR tenant = ?3)";

const ADMITTED: &str = "
    SELECT started_at, requests.number, seq, id, strings, members
    FROM requests CROSS JOIN forms ON forms.number = form
    WHERE (started_at, id) >= (?1, ?2) AND started_at < ?3 AND (?4 IS NULL OR tenant = ?4)
        AND requests.number <= ?5
    ORDER BY started_at, id
    LIMIT ?6";

const ADMITTED_BEFORE: &str = "
    SELECT started_at, requests.number, seq, id, strings, members
    FROM requests CROSS JOIN forms ON forms.number = form
    WHERE (started_at, id) < (?1, ?2) AND started_at >= ?3 AND started_at < ?4
        AND (?5 IS NULL OR tenant = ?5) AND requests.number <= ?6
    ORDER BY started_at DESC, id DESC
    LIMIT ?7";

const KEY_OF_LAST: &str = "
    SELECT started_at, id
    FROM requests CROSS JOIN forms ON forms.number = form
    WHERE started_at >= ?1 AND started_at < ?2 AND (?3 IS NULL OR tenant = ?3) AND requests.number <= ?4
    ORDER BY started_at DESC, id DESC
    LIMIT 1 OFFSET ?5";

/// `+` keeps the index out of it: what is new is found by number.
const ARRIVED: &str = "
    SELECT requests.number, seq, id, strings, members
    FROM requests CROSS JOIN forms ON forms.number = form
    WHERE requests.number > ?1 AND requests.number <= ?2
        AND +started_at >= ?3 AND +started_at < ?4 AND (?5 IS NULL OR tenant = ?5)
    ORDER BY requests.number
    LIMIT ?6";

pub(super) fn cursor(connection: &Connection, journal: &str) -> rusqlite::Result<Option<Position>> {
    let read = |row: &Row<'_>| {
        Ok(Position { seq: row.get(0).map(i64::cast_unsigned)?, chain: row.get(1)? })
    };
    connection.prepare_cached(CURSOR)?.query_row([journal], read).optional()
}

pub(super) fn posts(
    connection: &Connection,
    period: Period,
    tenant: Option<&str>,
    visit: &mut dyn FnMut(&Post<'_>) -> ControlFlow<()>,
) -> rusqlite::Result<()> {
    let (mut ledgers, mut buffer) = (Ledgers::new(connection), Vec::new());
    each(connection, POSTS, params![from(period), to(period), tenant], |row| {
        Ok(visit(&post(row, &mut ledgers, &mut buffer)?))
    })
}

pub(super) fn corrections(
    connection: &Connection,
    period: Period,
    tenant: Option<&str>,
    visit: &mut dyn FnMut(&Post<'_>, &Correction) -> ControlFlow<()>,
) -> rusqlite::Result<()> {
    let (mut ledgers, mut buffer) = (Ledgers::new(connection), Vec::new());
    each(connection, CORRECTIONS, params![from(period), to(period), tenant], |row| {
        let correction = Correction::decode(bytes(row, 5)?);
        let correction = correction.map_err(|error| unreadable(5, error))?;
        Ok(visit(&post(row, &mut ledgers, &mut buffer)?, &correction))
    })
}

/// Sees a correction, and its request if that is in the table.
pub(super) type CorrectionVisitor<'a> =
    dyn FnMut(Option<&Post<'_>>, &Correction) -> rusqlite::Result<ControlFlow<()>> + 'a;

/// The same, also of requests that are not in the table.
pub(super) fn all_corrections(
    connection: &Connection,
    period: Period,
    tenant: Option<&str>,
    visit: &mut CorrectionVisitor<'_>,
) -> rusqlite::Result<()> {
    let (mut ledgers, mut buffer) = (Ledgers::new(connection), Vec::new());
    each(connection, ALL_CORRECTIONS, params![from(period), to(period), tenant], |row| {
        let correction = Correction::decode(bytes(row, 5)?);
        let correction = correction.map_err(|error| unreadable(5, error))?;
        if row.get_ref(2)? == ValueRef::Null {
            return visit(None, &correction);
        }
        visit(Some(&post(row, &mut ledgers, &mut buffer)?), &correction)
    })
}

/// Without the number of corrections.
pub(super) fn entries(
    connection: &Connection,
    period: Period,
    tenant: Option<&str>,
) -> rusqlite::Result<Entries> {
    let asked = params![from(period), to(period), tenant];
    let mut entries = Entries::default();
    let (mut ledgers, mut buffer) = (Ledgers::new(connection), Vec::new());
    each(connection, ENTRIES, asked, |row| {
        let post = post(row, &mut ledgers, &mut buffer)?;
        if !post.used_nothing() {
            SequenceRange::add(&mut entries.sequences, post.gateway(), post.place.seq);
        }
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(entries)
}

pub(super) fn count_corrections(
    connection: &Connection,
    period: Period,
    tenant: Option<&str>,
) -> rusqlite::Result<u64> {
    let asked = params![from(period), to(period), tenant];
    let mut count = connection.prepare_cached(COUNT_CORRECTIONS)?;
    count.query_row(asked, |row| row.get(0).map(i64::cast_unsigned))
}

/// How many requests there are from one time to before another one.
pub(super) fn count(
    connection: &Connection,
    filter: &Filter,
    newest: i64,
    (from, to): (i64, i64),
) -> rusqlite::Result<u64> {
    let asked = params![from, to, filter.tenant, newest];
    let mut count = connection.prepare_cached(COUNT)?;
    count.query_row(asked, |row| row.get(0).map(i64::cast_unsigned))
}

pub(super) fn names_of_tenants(
    connection: &Connection,
    period: Period,
    tenant: Option<&str>,
) -> rusqlite::Result<Vec<String>> {
    let mut names = connection.prepare_cached(NAMES_OF_TENANTS)?;
    names.query_map(params![from(period), to(period), tenant], |row| row.get(0))?.collect()
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
    let mut buffer = Vec::new();
    let read = |row: &Row<'_>| Ok((admission_key(row, 3)?, record(row, 2, &mut buffer)?));
    query.query_map(asked, read)?.collect()
}

pub(super) fn written(
    connection: &Connection,
    filter: &Filter,
    newest: i64,
    (start, limit): (&AdmissionKey, u32),
    page: &mut Written,
) -> rusqlite::Result<Option<AdmissionKey>> {
    let asked = params![start.at, start.id, filter.before(), filter.tenant, newest, limit];
    let (mut next, mut ledgers, mut buffer) = (None, Ledgers::new(connection), Vec::new());
    page.clear();
    each(connection, ADMITTED, asked, |row| {
        payload(row, 3, &mut buffer)?;
        page.push(place(row, &mut ledgers, 1)?, &buffer);
        if page.count() == limit as usize {
            next = Some(admission_key(row, 3)?.next());
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
    let mut buffer = Vec::new();
    let read = |row: &Row<'_>| Ok((admission_key(row, 3)?, record(row, 2, &mut buffer)?));
    query.query_map(asked, read)?.collect()
}

/// A request that is not read yet.
#[derive(Debug, Clone)]
pub(super) struct KeyedRow {
    pub(super) key: AdmissionKey,
    pub(super) place: Place,
    /// The complete payload of its entry.
    pub(super) payload: Vec<u8>,
}

/// The same as `admitted`, not read yet.
pub(super) fn rows(
    connection: &Connection,
    filter: &Filter,
    newest: i64,
    start: &AdmissionKey,
    limit: u32,
) -> rusqlite::Result<Vec<KeyedRow>> {
    let asked = params![start.at, start.id, filter.before(), filter.tenant, newest, limit];
    keyed(connection, ADMITTED, asked)
}

/// The same as `admitted_before`, not read yet.
pub(super) fn rows_before(
    connection: &Connection,
    filter: &Filter,
    newest: i64,
    end: &AdmissionKey,
    limit: u32,
) -> rusqlite::Result<Vec<KeyedRow>> {
    let (since, before) = (filter.since(), filter.before());
    let asked = params![end.at, end.id, since, before, filter.tenant, newest, limit];
    keyed(connection, ADMITTED_BEFORE, asked)
}

fn keyed(
    connection: &Connection,
    question: &str,
    asked: impl Params,
) -> rusqlite::Result<Vec<KeyedRow>> {
    let mut ledgers = Ledgers::new(connection);
    let mut query = connection.prepare_cached(question)?;
    let rows = query.query_map(asked, |row| {
        let mut whole = Vec::new();
        payload(row, 3, &mut whole)?;
        let place = place(row, &mut ledgers, 1)?;
        Ok(KeyedRow { key: admission_key(row, 3)?, place, payload: whole })
    })?;
    rows.collect()
}

/// Where the last `count` begin that were admitted from one time to before another one.
pub(super) fn key_of_last(
    connection: &Connection,
    filter: &Filter,
    newest: i64,
    (from, to): (i64, i64),
    count: u32,
) -> rusqlite::Result<Option<AdmissionKey>> {
    let offset = count.saturating_sub(1);
    let asked = params![from, to, filter.tenant, newest, offset];
    connection.prepare_cached(KEY_OF_LAST)?.query_row(asked, |row| admission_key(row, 1)).optional()
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
    let mut buffer = Vec::new();
    query.query_map(asked, |row| Ok((row.get(0)?, record(row, 1, &mut buffer)?)))?.collect()
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

/// The admission in the first column, and the id in column `id`.
fn admission_key(row: &Row<'_>, id: usize) -> rusqlite::Result<AdmissionKey> {
    Ok(AdmissionKey { at: row.get(0)?, id: row.get(id)? })
}

/// A post, from the first columns: its number, its entry, its id, its strings and its members.
fn post<'a>(
    row: &Row<'_>,
    ledgers: &mut Ledgers<'_>,
    buffer: &'a mut Vec<u8>,
) -> rusqlite::Result<Post<'a>> {
    let place = place(row, ledgers, 0)?;
    payload(row, 2, buffer)?;
    Post::read(place, buffer).map_err(|error| unreadable(2, error))
}

/// All of a record, from the same columns, of which `entry` is the second.
fn record(row: &Row<'_>, entry: usize, buffer: &mut Vec<u8>) -> rusqlite::Result<Record> {
    let seq = seq(row, entry)?;
    payload(row, entry + 1, buffer)?;
    Record::decode(seq, buffer).map_err(|error| unreadable(entry + 1, error))
}

/// Where the entry of a request is, from two columns: its number and its entry.
pub(super) fn place(
    row: &Row<'_>,
    ledgers: &mut Ledgers<'_>,
    number: usize,
) -> rusqlite::Result<Place> {
    ledgers.place(row.get(number)?, seq(row, number + 1)?)
}

/// The complete payload of a request, in place of what `buffer` has, from three columns: the id, the
/// strings and the members.
pub(super) fn payload(row: &Row<'_>, id: usize, buffer: &mut Vec<u8>) -> rusqlite::Result<()> {
    let request = bytes(row, id)?;
    let request = uuid::Uuid::from_slice(request).map_err(|error| unreadable(id, error))?;
    let (strings, members) = (bytes(row, id + 1)?, bytes(row, id + 2)?);
    join_payload(RequestId(request), strings, members, buffer);
    Ok(())
}
