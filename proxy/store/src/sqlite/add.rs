//! Adds a batch to the SQLite tables.

use rusqlite::{CachedStatement, Connection, OptionalExtension, params};
use taximeter_ledger::{Correction, RequestId};

use super::ask::unreadable;
use super::hours;
use super::refusals;
use crate::batch::{Added, Amendment, Batch, Hours};
use crate::post::Post;

const ADD_REQUEST: &str = "
    INSERT OR IGNORE INTO requests VALUES (NULL, ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)";
const REQUEST: &str = "SELECT seq, record FROM requests WHERE started_at = ?1 AND id = ?2";

const ADD_CORRECTION: &str = "
    INSERT OR IGNORE INTO corrections VALUES (NULL, ?1, ?2, ?3, ?4, ?5, ?6, ?7)";
const ANY_WAITING: &str = "SELECT EXISTS (SELECT 1 FROM corrections WHERE waiting = 1)";
const WAITING: &str = "
    SELECT correction FROM corrections
    WHERE waiting = 1 AND started_at = ?1 AND corrects = ?2";
const WAIT_NO_LONGER: &str = "
    UPDATE corrections SET waiting = 0
    WHERE waiting = 1 AND started_at = ?1 AND corrects = ?2";

const SET_CURSOR: &str = "INSERT OR REPLACE INTO cursors VALUES (?1, ?2, ?3)";

/// Adds what is new, to the hours as well. Needs an open transaction.
pub(super) fn batch(connection: &Connection, batch: &Batch<'_>) -> rusqlite::Result<Added> {
    let mut hours = Hours::default();
    let mut added = Added::default();
    let waiting = connection.query_row(ANY_WAITING, [], |row| row.get(0))?;
    let mut add = connection.prepare_cached(ADD_REQUEST)?;
    for post in &batch.posts {
        if add_post(&mut add, post)? {
            added.posts += 1;
            hours.add_post(post);
            if waiting {
                add_waiting(connection, post, &mut hours)?;
            }
        }
    }
    for amendment in &batch.corrections {
        added.corrections += u64::from(add_correction(connection, amendment, &mut hours)?);
    }
    hours::add(connection, &mut hours)?;
    refusals::add(connection, &batch.refusals)?;
    if let Some((journal, end)) = batch.end {
        let mut set = connection.prepare_cached(SET_CURSOR)?;
        set.execute(params![journal, end.seq.cast_signed(), end.chain])?;
    }
    Ok(added)
}

/// Whether the request was new.
fn add_post(add: &mut CachedStatement<'_>, post: &Post<'_>) -> rusqlite::Result<bool> {
    let added = add.execute(params![
        post.started_at.as_microsecond(),
        post.id.0.as_bytes(),
        post.ended_at.as_microsecond(),
        post.tenant,
        post.upstream,
        post.model(),
        post.usage.input_tokens.map(u64::cast_signed),
        post.usage.output_tokens.map(u64::cast_signed),
        post.seq.cast_signed(),
        post.record,
    ])?;
    Ok(added > 0)
}

/// The corrections that came before their request.
fn add_waiting(
    connection: &Connection,
    post: &Post<'_>,
    hours: &mut Hours,
) -> rusqlite::Result<()> {
    let key = request_key(post.started_at.as_microsecond(), &post.id);
    let mut waiting = connection.prepare_cached(WAITING)?;
    let mut rows = waiting.query(key)?;
    while let Some(row) = rows.next()? {
        let json = row.get_ref(0)?.as_str().map_err(|error| unreadable(0, error))?;
        let correction: Correction =
            serde_json::from_str(json).map_err(|error| unreadable(0, error))?;
        hours.add_correction(post, &correction);
    }
    connection.prepare_cached(WAIT_NO_LONGER)?.execute(key).map(|_| ())
}

/// Whether the correction was new.
fn add_correction(
    connection: &Connection,
    amendment: &Amendment<'_>,
    hours: &mut Hours,
) -> rusqlite::Result<bool> {
    let Amendment { correction, seq, json } = amendment;
    let at = correction.started_at.as_microsecond();
    let key = request_key(at, &correction.corrects);
    let read = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?));
    let request: Option<(i64, String)> =
        connection.prepare_cached(REQUEST)?.query_row(key, read).optional()?;
    let added = connection.prepare_cached(ADD_CORRECTION)?.execute(params![
        correction.id.0.as_bytes(),
        at,
        correction.corrects.0.as_bytes(),
        correction.made_at.as_microsecond(),
        request.is_none(),
        seq.cast_signed(),
        json,
    ])? > 0;
    if let Some((seq, record)) = request.filter(|_| added) {
        let post = Post::read(seq.cast_unsigned(), &record).map_err(|e| unreadable(1, e))?;
        hours.add_correction(&post, correction);
    }
    Ok(added)
}

const fn request_key(at: i64, id: &RequestId) -> (i64, &[u8; 16]) {
    (at, id.0.as_bytes())
}
