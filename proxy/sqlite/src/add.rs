//! Adds a batch to the SQLite tables.

use rusqlite::{Connection, OptionalExtension, params};
use taximeter_database::batch::{Added, Amendment, Batch, NewHours, NewPost};
use taximeter_database::post::Post;

use super::ask::{self, unreadable};
use super::days::{self, Days};
use super::known::{Known, Left};
use super::ledgers::Ledgers;
use super::new_hours;
use super::reached;
use super::refusals;
use super::requests::{Requests, request_key};

const REQUEST: &str = "
    SELECT requests.number, seq, id, strings, members
    FROM requests CROSS JOIN forms ON forms.number = form
    WHERE started_at = ?1 AND id = ?2";

const ADD_CORRECTION: &str = "
    INSERT OR IGNORE INTO corrections VALUES (NULL, ?1, ?2, ?3, ?4, ?5, ?6, ?7)";
const ANY_WAITING: &str = "SELECT EXISTS (SELECT 1 FROM corrections WHERE waiting = 1)";
const SET_CURSOR: &str = "INSERT OR REPLACE INTO cursors VALUES (?1, ?2, ?3)";

/// Adds what is new, to the hours as well. Needs an open transaction.
pub(super) fn whole(
    connection: &Connection,
    days: &mut Days,
    new: &Batch<'_>,
) -> rusqlite::Result<Added> {
    let (mut known, mut hours) = (Known::default(), NewHours::default());
    let added = batch(connection, (&mut known, days), new, &mut hours)?;
    new_hours::add(connection, &mut known, hours)?;
    Ok(added)
}

/// Adds what is new. Its sums are added to `hours`, which must be written before the transaction ends.
/// Needs an open transaction.
pub(super) fn batch(
    connection: &Connection,
    (known, days): (&mut Known, &mut Days),
    batch: &Batch<'_>,
    hours: &mut NewHours,
) -> rusqlite::Result<Added> {
    known.check(connection)?;
    days.list(connection)?;
    let left = known.left(connection)?;
    let waiting = connection.query_row(ANY_WAITING, [], |row| row.get(0))?;
    let keys = batch.posts.iter();
    let keys = keys.map(|post| (post.numbers.started_at.as_microsecond(), post.bytes.id));
    let sealed = days::sealed(days, keys)?;
    let mut requests = Requests::of(connection, known, batch, (hours, left.clone()), waiting)?;
    let is_here = |post: &&NewPost<'_>| {
        let at = post.numbers.started_at.as_microsecond();
        sealed.contains(&post.bytes.id) || left.gone.has(at, post.place)
    };
    for post in batch.posts.iter().filter(|post| !is_here(post)) {
        requests.add(post)?;
    }
    let mut added = Added { posts: requests.finish()?, corrections: 0 };
    let journal = batch.end.map(|(journal, _)| journal);
    for amendment in &batch.corrections {
        let known = (&left, journal);
        added.corrections += u64::from(add_correction(connection, days, known, amendment, hours)?);
    }
    refusals::add(connection, &batch.refusals)?;
    if let Some((journal, end)) = batch.end {
        let mut set = connection.prepare_cached(SET_CURSOR)?;
        set.execute(params![journal, end.seq.cast_signed(), end.chain])?;
        reached::set(connection, journal, &batch.reach)?;
    }
    Ok(added)
}

/// Whether the correction was new.
fn add_correction(
    connection: &Connection,
    days: &mut Days,
    (left, journal): (&Left, Option<&str>),
    amendment: &Amendment<'_>,
    hours: &mut NewHours,
) -> rusqlite::Result<bool> {
    let Amendment { correction, place, payload } = amendment;
    let at = correction.started_at.as_microsecond();
    let key = request_key(at, &correction.corrects);
    let read = |row: &rusqlite::Row<'_>| {
        let mut payload = Vec::new();
        ask::payload(row, 2, &mut payload)?;
        Ok((ask::place(row, &mut Ledgers::new(connection), 0)?, payload))
    };
    let mut request = connection.prepare_cached(REQUEST)?.query_row(key, read).optional()?;
    if request.is_none() {
        let mut payload = Vec::new();
        let place = days::find(days, at, correction.corrects, &mut payload)?;
        request = place.map(|place| (place, payload));
    }
    let is_gone = request.is_none() && left.gone.has_day(at);
    let is_sealed =
        request.as_ref().map_or(is_gone, |(place, _)| left.covers.has_request(at, *place));
    let written = journal.map(|journal| (journal, *place));
    let key = (at, correction.id);
    let is_in_file = left.covers.has_correction(connection, key, written, is_sealed)?;
    let added = connection.prepare_cached(ADD_CORRECTION)?.execute(params![
        correction.id.0.as_bytes(),
        at,
        correction.corrects.0.as_bytes(),
        correction.made_at.as_microsecond(),
        request.is_none() && !is_gone && !is_in_file,
        place.seq.cast_signed(),
        payload,
    ])? > 0;
    if !added {
        return Ok(false);
    }
    if let Some((place, payload)) = request {
        let post = Post::read(place, &payload).map_err(|error| unreadable(1, error))?;
        hours.sessions.add_correction(&post, correction);
        if !is_in_file {
            hours.add_correction(&post, correction);
        }
    } else if is_gone && !is_in_file {
        hours.add_gone_correction(correction);
    }
    Ok(true)
}
