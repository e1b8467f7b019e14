//! Replaces old tables by new ones after the journals have filled these.
//!
//! Counts of refusals stay where they are: those that the journals have take their own places.

use rusqlite::Connection;

use super::add;
use super::ask::unreadable;
use super::schema;
use crate::batch::{Amendment, Batch};
use crate::database::Rebuilt;
use crate::post::Post;

/// Requests and corrections read at once.
const PAGE: u32 = 512;

const SET_ASIDE: &str = "
    DROP INDEX admission;
    ALTER TABLE requests RENAME TO old_requests;
    DROP INDEX corrected;
    DROP INDEX waiting;
    ALTER TABLE corrections RENAME TO old_corrections;
    DROP TABLE hours;
    DROP TABLE combinations;
    DROP TABLE lines;
    DROP TABLE cursors";
const OLD_REQUESTS: &str = "
    SELECT number, seq, record FROM old_requests WHERE number > ?1 ORDER BY number LIMIT ?2";
const OLD_CORRECTIONS: &str = "
    SELECT number, seq, correction FROM old_corrections WHERE number > ?1 ORDER BY number LIMIT ?2";
const FORGET: &str = "DROP TABLE old_requests; DROP TABLE old_corrections";

/// Makes room for new tables, and makes them.
pub(super) fn set_aside(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch(SET_ASIDE)?;
    schema::create(connection)
}

/// Adds what was set aside and is not here again, and drops the rest.
pub(super) fn keep(connection: &Connection) -> rusqlite::Result<Rebuilt> {
    let mut kept = Rebuilt::default();
    each_page(connection, OLD_REQUESTS, |rows| {
        let posts = rows.iter().map(|(seq, record)| Post::read(*seq, record));
        let posts = posts.collect::<Result<_, _>>().map_err(|error| unreadable(2, error))?;
        let added = add::batch(connection, &Batch { posts, ..Batch::default() })?;
        kept.kept_records += added.posts;
        Ok(())
    })?;
    each_page(connection, OLD_CORRECTIONS, |rows| {
        let corrections = rows.iter().map(|(seq, json)| Amendment::read(*seq, json));
        let corrections =
            corrections.collect::<Result<_, _>>().map_err(|error| unreadable(2, error))?;
        let added = add::batch(connection, &Batch { corrections, ..Batch::default() })?;
        kept.kept_corrections += added.corrections;
        Ok(())
    })?;
    connection.execute_batch(FORGET)?;
    Ok(kept)
}

/// Shows `visit` sequence numbers and JSON.
fn each_page(
    connection: &Connection,
    question: &str,
    mut visit: impl FnMut(&[(u64, String)]) -> rusqlite::Result<()>,
) -> rusqlite::Result<()> {
    let mut query = connection.prepare(question)?;
    let mut after = 0_i64;
    loop {
        let mut page = Vec::new();
        let mut rows = query.query((after, PAGE))?;
        while let Some(row) = rows.next()? {
            after = row.get(0)?;
            page.push((row.get(1).map(i64::cast_unsigned)?, row.get(2)?));
        }
        drop(rows);
        if page.is_empty() {
            return Ok(());
        }
        visit(&page)?;
    }
}
