//! What sessions add up to by day, as rows.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::ControlFlow;

use rusqlite::{Connection, OptionalExtension, Rows, Statement};
use taximeter_database::sessions::{NewSessions, WhichSessions};
use taximeter_sessions::DaySum;

use super::ask::{bytes, unreadable};
use super::kept_tables;

const TABLE: &str = "
    CREATE TABLE IF NOT EXISTS sessions (
        day INTEGER NOT NULL,         -- its first instant, microseconds since 1970
        tenant TEXT NOT NULL,
        session TEXT NOT NULL,
        sum BLOB NOT NULL,            -- of its requests that were admitted on that day
        PRIMARY KEY (day, tenant, session)
    ) STRICT, WITHOUT ROWID";
const SUM: &str = "SELECT sum FROM sessions WHERE day = ?1 AND tenant = ?2 AND session = ?3";
const SET: &str = "INSERT OR REPLACE INTO sessions VALUES (?1, ?2, ?3, ?4)";
const FORGET: &str = "DELETE FROM sessions WHERE day = ?1";

const NEXT_DAY: &str = "SELECT min(day) FROM sessions WHERE day >= ?1 AND day < ?2";
const NEXT_TENANT: &str = "SELECT min(tenant) FROM sessions WHERE day = ?1 AND tenant > ?2";
const OF_DAY: &str = "
    SELECT tenant, session, sum FROM sessions WHERE day = ?1 ORDER BY tenant, session";
const OF_TENANT: &str = "
    SELECT tenant, session, sum FROM sessions WHERE day = ?1 AND tenant = ?2 ORDER BY session";

/// Sees a sum of a session.
pub(super) type Visitor<'a> = dyn FnMut(&str, &str, DaySum) -> ControlFlow<()> + 'a;

/// Whether the table is there.
pub(super) fn are_kept(connection: &Connection) -> rusqlite::Result<bool> {
    kept_tables::has(connection, "sessions")
}

/// Makes the table where it is missing.
pub(super) fn create(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch(TABLE)
}

/// Adds to the sums that are here. Needs an open transaction.
pub(super) fn add(connection: &Connection, new: NewSessions) -> rusqlite::Result<()> {
    for (of, mut sum) in new.into_sums() {
        let key = (of.day, &of.tenant, &of.session);
        let mut known = connection.prepare_cached(SUM)?;
        if let Some(mut known) = known.query_row(key, |row| read(bytes(row, 0)?)).optional()? {
            known.add(&sum);
            sum = known;
        }
        let key = (of.day, &of.tenant, &of.session, sum.encode());
        connection.prepare_cached(SET)?.execute(key)?;
    }
    Ok(())
}

/// Forgets the sums of a day. Needs an open transaction.
pub(super) fn forget(connection: &Connection, day: i64) -> rusqlite::Result<()> {
    connection.prepare_cached(FORGET)?.execute([day]).map(|_| ())
}

/// Shows the sums of sessions in the order of tenant and session: one for each of their days.
pub(super) fn visit(
    connection: &Connection,
    which: WhichSessions<'_>,
    visit: &mut Visitor<'_>,
) -> rusqlite::Result<()> {
    if !are_kept(connection)? {
        return Ok(());
    }
    let days = days(connection, which.days)?;
    match which.session {
        Some(session) => of_name(connection, &days, which.tenant, session, visit),
        None => all(connection, &days, which.tenant, visit),
    }
}

/// The days that have sums.
fn days(connection: &Connection, (mut from, to): (i64, i64)) -> rusqlite::Result<Vec<i64>> {
    let mut next = connection.prepare_cached(NEXT_DAY)?;
    let mut days = Vec::new();
    while let Some(day) = next.query_row((from, to), |row| row.get::<_, Option<i64>>(0))? {
        days.push(day);
        from = day.saturating_add(1);
    }
    Ok(days)
}

/// The sums of one name: of one tenant, or of each that has such a session.
fn of_name(
    connection: &Connection,
    days: &[i64],
    tenant: Option<&str>,
    session: &str,
    visit: &mut Visitor<'_>,
) -> rusqlite::Result<()> {
    let mut sum = connection.prepare_cached(SUM)?;
    let mut found = Vec::new();
    for day in days {
        let tenants = match tenant {
            Some(tenant) => vec![tenant.to_owned()],
            None => tenants(connection, *day)?,
        };
        for tenant in tenants {
            let read = |row: &rusqlite::Row<'_>| read(bytes(row, 0)?);
            let sum = sum.query_row((day, &tenant, session), read).optional()?;
            found.extend(sum.map(|sum| (tenant, sum)));
        }
    }
    // Those of a tenant stay in the order of their days.
    found.sort_by(|(a, _), (b, _)| a.cmp(b));
    let _ = found.into_iter().try_for_each(|(tenant, sum)| visit(&tenant, session, sum));
    Ok(())
}

/// The tenants that have sessions on a day.
fn tenants(connection: &Connection, day: i64) -> rusqlite::Result<Vec<String>> {
    let mut next = connection.prepare_cached(NEXT_TENANT)?;
    let mut tenants = Vec::<String>::new();
    loop {
        let last = tenants.last().map_or("", |last| last.as_str());
        match next.query_row((day, last), |row| row.get::<_, Option<String>>(0))? {
            Some(tenant) => tenants.push(tenant),
            None => return Ok(tenants),
        }
    }
}

/// All sums. Each day is in order, so only the next one of each is held.
fn all(
    connection: &Connection,
    days: &[i64],
    tenant: Option<&str>,
    visit: &mut Visitor<'_>,
) -> rusqlite::Result<()> {
    let statement = if tenant.is_some() { OF_TENANT } else { OF_DAY };
    let statements = days.iter().map(|_| connection.prepare(statement));
    let mut statements: Vec<Statement<'_>> = statements.collect::<rusqlite::Result<_>>()?;
    let mut sources: Vec<Rows<'_>> = Vec::with_capacity(days.len());
    for (statement, day) in statements.iter_mut().zip(days) {
        sources.push(match tenant {
            Some(tenant) => statement.query((day, tenant))?,
            None => statement.query([day])?,
        });
    }
    let mut next = BinaryHeap::with_capacity(sources.len());
    for (at, source) in sources.iter_mut().enumerate() {
        next.extend(take(source)?.map(|(key, sum)| Reverse((key, at, sum))));
    }
    while let Some(Reverse(((tenant, session), at, sum))) = next.pop() {
        if visit(&tenant, &session, read(&sum)?).is_break() {
            break;
        }
        if let Some(source) = sources.get_mut(at) {
            next.extend(take(source)?.map(|(key, sum)| Reverse((key, at, sum))));
        }
    }
    Ok(())
}

/// The next row of a day: tenant and session, and the sum as it is kept.
type NextSum = ((String, String), Vec<u8>);

fn take(rows: &mut Rows<'_>) -> rusqlite::Result<Option<NextSum>> {
    let Some(row) = rows.next()? else { return Ok(None) };
    Ok(Some(((row.get(0)?, row.get(1)?), bytes(row, 2)?.to_vec())))
}

fn read(sum: &[u8]) -> rusqlite::Result<DaySum> {
    DaySum::decode(sum).map_err(|error| unreadable(2, error))
}
