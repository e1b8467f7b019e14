//! Whether a store that was made anew has all requests again that its journal counts.

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension as _};
use taximeter_billing::LostRequests;

use super::ask::unreadable;
use super::kept_tables;

const LOOK_LATER: &str = "INSERT OR IGNORE INTO lost_requests VALUES (1, NULL, 0)";
const IS_DUE: &str = "SELECT EXISTS (SELECT 1 FROM lost_requests WHERE before IS NULL)";
const FOUND: &str = "
    SELECT (SELECT count(*) FROM requests CROSS JOIN forms ON forms.number = form)
        + (SELECT coalesce(sum(requests), 0) FROM days)
        + (SELECT coalesce(sum(requests), 0) FROM gone_days)";
const NONE_LOST: &str = "DELETE FROM lost_requests";
const LOST: &str = "UPDATE lost_requests SET before = ?1, requests = ?2";
const ASK: &str = "SELECT before, requests FROM lost_requests WHERE before IS NOT NULL";

/// Notes that a store is new: when its journal is fed, it is asked whether that was all. Needs an open
/// transaction.
pub(super) fn look_later(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute(LOOK_LATER, ()).map(drop)
}

/// Whether nobody has looked yet.
pub(super) fn is_due(connection: &Connection) -> rusqlite::Result<bool> {
    Ok(kept_tables::has(connection, "lost_requests")?
        && connection.query_row(IS_DUE, (), |row| row.get(0))?)
}

/// Looks whether the store has as many requests as there were. What it lacks ended before this time.
/// Needs an open transaction.
pub(super) fn look(connection: &Connection, posts: u64, before: Timestamp) -> rusqlite::Result<()> {
    let found: i64 = connection.query_row(FOUND, (), |row| row.get(0))?;
    match posts.checked_sub(found.cast_unsigned()).filter(|lost| *lost > 0) {
        None => connection.execute(NONE_LOST, ()),
        Some(lost) => connection.execute(LOST, (before.as_microsecond(), lost.cast_signed())),
    }
    .map(drop)
}

/// What is lost, if anything is.
pub(super) fn lost(connection: &Connection) -> rusqlite::Result<Option<LostRequests>> {
    if !kept_tables::has(connection, "lost_requests")? {
        return Ok(None);
    }
    let read = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get::<_, i64>(1)?));
    let found = connection.prepare_cached(ASK)?.query_row((), read).optional()?;
    let Some((before, requests)) = found else { return Ok(None) };
    let before = Timestamp::from_microsecond(before).map_err(|error| unreadable(0, error))?;
    Ok(Some(LostRequests { before, requests: requests.cast_unsigned() }))
}
