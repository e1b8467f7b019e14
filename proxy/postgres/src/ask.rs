//! Queries the PostgreSQL tables.

use std::borrow::Cow;
use std::ops::ControlFlow;

use taximeter_billing::Period;
use taximeter_billing::export::{Entries, SequenceRange};
use taximeter_database::database::{AdmissionKey, Filter, Written};
use taximeter_database::post::Post;
use taximeter_ledger::{Correction, LedgerId, Place, Position, Record};
use tokio_postgres::Row;
use tokio_postgres::types::Type;
use uuid::Uuid;

use super::fault::Fault;
use super::link::{Given, Link};

const CURSOR: &str = "
    SELECT seq, chain FROM taximeter.cursors WHERE gateway = $1 AND journal = $2";
const NEWEST: &str = "SELECT coalesce(max(number), 0) FROM taximeter.requests";

const POSTS: &str = "
    SELECT ledger, seq, payload
    FROM taximeter.requests
    WHERE started_at >= $1 AND started_at < $2 AND ($3 IS NULL OR tenant = $3)
    ORDER BY started_at, id";

const CORRECTIONS: &str = "
    SELECT ledger, requests.seq, payload, correction
    FROM taximeter.corrections JOIN taximeter.requests
        ON requests.started_at = corrections.started_at AND requests.id = corrects
    WHERE corrections.started_at >= $1 AND corrections.started_at < $2
        AND requests.started_at >= $1 AND requests.started_at < $2
        AND ($3 IS NULL OR tenant = $3)
    ORDER BY corrections.started_at, corrects, made_at, corrections.number";

const ENTRIES: &str = "
    SELECT gateway, min(seq), max(seq), count(*)
    FROM taximeter.requests
    WHERE started_at >= $1 AND started_at < $2 AND ($3 IS NULL OR tenant = $3) AND billed
    GROUP BY gateway";
/// At most so many are counted as one needs to know of.
const TENANTS: &str = "
    SELECT count(*)
    FROM (
        SELECT DISTINCT tenant
        FROM taximeter.requests
        WHERE started_at >= $1 AND started_at < $2 AND ($3 IS NULL OR tenant = $3)
        LIMIT 1000) AS tenants";
const COUNT_CORRECTIONS: &str = "
    SELECT count(*)
    FROM taximeter.corrections JOIN taximeter.requests
        ON requests.started_at = corrections.started_at AND requests.id = corrects
    WHERE corrections.started_at >= $1 AND corrections.started_at < $2
        AND requests.started_at >= $1 AND requests.started_at < $2
        AND ($3 IS NULL OR tenant = $3)";

const ADMITTED: &str = "
    SELECT started_at, id, ledger, seq, payload
    FROM taximeter.requests
    WHERE started_at >= $1 AND (started_at, id) >= ($1, $2) AND started_at < $3
        AND ($4 IS NULL OR tenant = $4) AND number <= $5
    ORDER BY started_at, id
    LIMIT $6";

const ADMITTED_BEFORE: &str = "
    SELECT started_at, id, ledger, seq, payload
    FROM taximeter.requests
    WHERE started_at <= $1 AND (started_at, id) < ($1, $2) AND started_at >= $3
        AND started_at < $4 AND ($5 IS NULL OR tenant = $5) AND number <= $6
    ORDER BY started_at DESC, id DESC
    LIMIT $7";

const KEY_OF_LAST: &str = "
    SELECT started_at, id
    FROM taximeter.requests
    WHERE started_at >= $1 AND started_at < $2 AND ($3 IS NULL OR tenant = $3) AND number <= $4
    ORDER BY started_at DESC, id DESC
    LIMIT 1 OFFSET $5";

const ARRIVED: &str = "
    SELECT number, ledger, seq, payload
    FROM taximeter.requests
    WHERE number > $1 AND number <= $2
        AND started_at >= $3 AND started_at < $4 AND ($5 IS NULL OR tenant = $5)
    ORDER BY number
    LIMIT $6";

/// Goes on with the visits, or ends them.
pub(super) type Visited = Result<ControlFlow<()>, Fault>;

pub(super) fn cursor(link: &Link, gateway: &str, journal: &str) -> Result<Option<Position>, Fault> {
    let given = [(&gateway as _, Type::TEXT), (&journal as _, Type::TEXT)];
    let rows = link.query(CURSOR, &given)?;
    let Some(row) = rows.first() else { return Ok(None) };
    let chain = u32::try_from(row.try_get::<_, i64>(1)?).map_err(Fault::unreadable)?;
    Ok(Some(Position { seq: row.try_get(0).map(i64::cast_unsigned)?, chain }))
}

pub(super) fn newest(link: &Link) -> Result<i64, Fault> {
    Ok(link.query_one(NEWEST, &[])?.try_get(0)?)
}

pub(super) fn posts(
    link: &Link,
    period: Period,
    tenant: Option<&str>,
    visit: &mut dyn FnMut(&Post<'_>) -> ControlFlow<()>,
) -> Result<(), Fault> {
    ask(link, POSTS, period, tenant, |row| Ok(visit(&post(row)?)))
}

pub(super) fn corrections(
    link: &Link,
    period: Period,
    tenant: Option<&str>,
    visit: &mut dyn FnMut(&Post<'_>, &Correction) -> ControlFlow<()>,
) -> Result<(), Fault> {
    ask(link, CORRECTIONS, period, tenant, |row| {
        let correction = Correction::decode(row.try_get(3)?).map_err(Fault::unreadable)?;
        Ok(visit(&post(row)?, &correction))
    })
}

pub(super) fn entries(link: &Link, period: Period, tenant: Option<&str>) -> Result<Entries, Fault> {
    let mut entries = Entries::default();
    let unsigned = |row: &Row, column| row.try_get(column).map(i64::cast_unsigned);
    ask(link, ENTRIES, period, tenant, |row| {
        let gateway = row.try_get(0)?;
        let (first, last, records) = (unsigned(row, 1)?, unsigned(row, 2)?, unsigned(row, 3)?);
        entries.sequences.insert(gateway, SequenceRange { first, last, records });
        Ok(ControlFlow::Continue(()))
    })?;
    ask(link, COUNT_CORRECTIONS, period, tenant, |row| {
        entries.corrections = unsigned(row, 0)?;
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(entries)
}

pub(super) fn tenants(link: &Link, period: Period, tenant: Option<&str>) -> Result<u64, Fault> {
    let mut tenants = 0;
    ask(link, TENANTS, period, tenant, |row| {
        tenants = row.try_get(0).map(i64::cast_unsigned)?;
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(tenants)
}

pub(super) fn admitted(
    link: &Link,
    filter: &Filter,
    newest: i64,
    start: &AdmissionKey,
    limit: u32,
) -> Result<Vec<(AdmissionKey, Record)>, Fault> {
    let mut admitted = Vec::new();
    each_admitted(link, filter, newest, (start, limit), |row| {
        admitted.push((admission_key(row)?, record(row, 3, 4)?));
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(admitted)
}

pub(super) fn written(
    link: &Link,
    filter: &Filter,
    newest: i64,
    (start, limit): (&AdmissionKey, u32),
    page: &mut Written,
) -> Result<Option<AdmissionKey>, Fault> {
    let mut next = None;
    page.clear();
    each_admitted(link, filter, newest, (start, limit), |row| {
        page.push(place(row, 2)?, row.try_get(4)?);
        if page.count() == limit as usize {
            next = Some(admission_key(row)?.next());
        }
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(next)
}

fn each_admitted(
    link: &Link,
    filter: &Filter,
    newest: i64,
    (start, limit): (&AdmissionKey, u32),
    visit: impl FnMut(&Row) -> Result<ControlFlow<()>, Fault>,
) -> Result<(), Fault> {
    let (at, id) = from_key(start);
    let (before, tenant, limit) = (filter.before(), tenant(filter), i64::from(limit));
    let given: [Given<'_>; 6] = [
        (&at, Type::INT8),
        (&id, Type::UUID),
        (&before, Type::INT8),
        (&tenant, Type::TEXT),
        (&newest, Type::INT8),
        (&limit, Type::INT8),
    ];
    link.each(ADMITTED, &given, visit)
}

pub(super) fn admitted_before(
    link: &Link,
    filter: &Filter,
    newest: i64,
    end: &AdmissionKey,
    limit: u32,
) -> Result<Vec<(AdmissionKey, Record)>, Fault> {
    let (at, id) = from_key(end);
    let (since, before) = (filter.since(), filter.before());
    let (tenant, limit) = (tenant(filter), i64::from(limit));
    let given: [Given<'_>; 7] = [
        (&at, Type::INT8),
        (&id, Type::UUID),
        (&since, Type::INT8),
        (&before, Type::INT8),
        (&tenant, Type::TEXT),
        (&newest, Type::INT8),
        (&limit, Type::INT8),
    ];
    collect(link, ADMITTED_BEFORE, &given, |row| Ok((admission_key(row)?, record(row, 3, 4)?)))
}

pub(super) fn key_of_last(
    link: &Link,
    filter: &Filter,
    newest: i64,
    count: u32,
) -> Result<Option<AdmissionKey>, Fault> {
    let (since, before) = (filter.since(), filter.before());
    let (tenant, offset) = (tenant(filter), i64::from(count.saturating_sub(1)));
    let given: [Given<'_>; 5] = [
        (&since, Type::INT8),
        (&before, Type::INT8),
        (&tenant, Type::TEXT),
        (&newest, Type::INT8),
        (&offset, Type::INT8),
    ];
    Ok(collect(link, KEY_OF_LAST, &given, admission_key)?.pop())
}

pub(super) fn arrived(
    link: &Link,
    filter: &Filter,
    after: i64,
    newest: i64,
    limit: u32,
) -> Result<Vec<(i64, Record)>, Fault> {
    let (since, before) = (filter.since(), filter.before());
    let (tenant, limit) = (tenant(filter), i64::from(limit));
    let given: [Given<'_>; 6] = [
        (&after, Type::INT8),
        (&newest, Type::INT8),
        (&since, Type::INT8),
        (&before, Type::INT8),
        (&tenant, Type::TEXT),
        (&limit, Type::INT8),
    ];
    collect(link, ARRIVED, &given, |row| Ok((row.try_get(0)?, record(row, 2, 3)?)))
}

/// Text for a column: PostgreSQL keeps every character but one. The payload beside it is exact.
pub(super) fn storable(text: &str) -> Cow<'_, str> {
    if text.contains('\0') { text.replace('\0', "\u{fffd}").into() } else { text.into() }
}

/// Tokens, as they are kept: in 64 bits.
pub(super) fn tokens(row: &Row, column: usize) -> Result<Option<u64>, Fault> {
    Ok(row.try_get::<_, Option<i64>>(column)?.map(i64::cast_unsigned))
}

/// Asks about what was admitted in `period`, of one tenant or upstream or of all.
pub(super) fn ask(
    link: &Link,
    question: &str,
    period: Period,
    only: Option<&str>,
    visit: impl FnMut(&Row) -> Visited,
) -> Result<(), Fault> {
    let (from, to) = (period.from().as_microsecond(), period.to().as_microsecond());
    let only = only.map(storable);
    link.each(question, &[(&from, Type::INT8), (&to, Type::INT8), (&only, Type::TEXT)], visit)
}

fn collect<T>(
    link: &Link,
    question: &str,
    given: &[Given<'_>],
    mut read: impl FnMut(&Row) -> Result<T, Fault>,
) -> Result<Vec<T>, Fault> {
    let mut found = Vec::new();
    link.each(question, given, |row| {
        found.push(read(row)?);
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(found)
}

fn tenant(filter: &Filter) -> Option<Cow<'_, str>> {
    filter.tenant.as_deref().map(storable)
}

/// The first request that may be at `start` or behind it.
fn from_key(start: &AdmissionKey) -> (i64, Uuid) {
    let mut id = [0; 16];
    let known = start.id.len().min(id.len());
    for (to, from) in id.iter_mut().zip(&start.id) {
        *to = *from;
    }
    // Longer than an id: behind the one that it begins with.
    let behind = u128::from(start.id.len() > known);
    match u128::from_be_bytes(id).checked_add(behind) {
        Some(id) => (start.at, Uuid::from_u128(id)),
        None => (start.at.saturating_add(1), Uuid::nil()),
    }
}

fn admission_key(row: &Row) -> Result<AdmissionKey, Fault> {
    Ok(AdmissionKey { at: row.try_get(0)?, id: row.try_get::<_, Uuid>(1)?.as_bytes().to_vec() })
}

/// A post, from the first columns: its place in a journal, and its payload.
fn post(row: &Row) -> Result<Post<'_>, Fault> {
    Post::read(place(row, 0)?, row.try_get(2)?).map_err(Fault::unreadable)
}

/// Where an entry is in a journal, from two columns.
pub(super) fn place(row: &Row, ledger: usize) -> Result<Place, Fault> {
    let seq = row.try_get(ledger + 1).map(i64::cast_unsigned)?;
    Ok(Place { ledger: LedgerId(row.try_get(ledger)?), seq })
}

/// All of a record, from the same.
fn record(row: &Row, seq: usize, payload: usize) -> Result<Record, Fault> {
    let seq = row.try_get(seq).map(i64::cast_unsigned)?;
    Record::decode(seq, row.try_get(payload)?).map_err(Fault::unreadable)
}
