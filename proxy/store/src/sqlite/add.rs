//! Adds a batch to the SQLite tables.

use std::sync::LazyLock;

use rusqlite::{CachedStatement, Connection, ErrorCode, OptionalExtension, params};
use sha2::{Digest as _, Sha256};
use taximeter_ledger::{Correction, RequestId};

use super::ask::{self, unreadable};
use super::days::{self, Days};
use super::hours;
use super::known::{Known, Left};
use super::reached;
use super::refusals;
use crate::batch::{Added, Amendment, Batch, NewHours, NewPost};
use crate::forms::Form;
use crate::post::Post;

// A number that is not named is simply the next one: SQLite then keeps no copy of the pages that the
// statement changes.
const ADD_REQUEST: &str = "
    INSERT OR IGNORE INTO requests (started_at, id, form, seq, members) VALUES (?, ?, ?, ?, ?)";
/// Columns of a request that are given.
const COLUMNS: usize = 5;
/// So many requests are added at once: a third of the cost is that of the statement.
const AT_ONCE: usize = 32;
/// Adds those before the first one that is here already.
static ADD_REQUESTS: LazyLock<String> = LazyLock::new(|| {
    let rows = vec!["(?, ?, ?, ?, ?)"; AT_ONCE].join(", ");
    format!("INSERT OR FAIL INTO requests (started_at, id, form, seq, members) VALUES {rows}")
});
const REQUEST: &str = "
    SELECT ledger, seq, id, strings, members
    FROM requests CROSS JOIN forms ON forms.number = form
    WHERE started_at = ?1 AND id = ?2";

const FORM: &str = "SELECT number FROM forms WHERE digest = ?1 AND ledger = ?2 AND strings = ?3";
const ADD_FORM: &str = "INSERT INTO forms VALUES (NULL, ?1, ?2, ?3, ?4)";

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
pub(super) fn whole(
    connection: &Connection,
    days: &mut Days,
    new: &Batch<'_>,
) -> rusqlite::Result<Added> {
    let (mut known, mut hours) = (Known::default(), NewHours::default());
    let added = batch(connection, (&mut known, days), new, &mut hours)?;
    hours::add(connection, &mut known, hours)?;
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
    let mut added = Added::default();
    let waiting = connection.query_row(ANY_WAITING, [], |row| row.get(0))?;
    let mut forms = vec![None; batch.forms.len()];
    let mut add = connection.prepare_cached(ADD_REQUEST)?;
    let mut add_all = connection.prepare_cached(&ADD_REQUESTS)?;
    // In the order of the index, so that each one goes behind the one before.
    let times = batch.posts.iter().map(|post| post.numbers.started_at.as_microsecond());
    let mut posts: Vec<_> = times.zip(&batch.posts).collect();
    posts.sort_by_key(|(at, _)| *at);
    let sealed = days::sealed(days, posts.iter().map(|(at, post)| (*at, post.bytes.id)))?;
    posts.retain(|(at, post)| !sealed.contains(&post.bytes.id) && !left.gone.has(*at, post.place));
    let mut rows = Vec::with_capacity(AT_ONCE);
    for posts in posts.chunks(AT_ONCE) {
        rows.clear();
        for (at, post) in posts {
            rows.push((*at, *post, form_of(connection, known, batch, post, &mut forms)?));
        }
        let is_full = rows.len() == AT_ONCE;
        let first = if is_full { add_posts(connection, &mut add_all, &rows)? } else { 0 };
        for (index, row) in rows.iter().enumerate() {
            let alone = std::slice::from_ref(row);
            if index < first || add_posts(connection, &mut add, alone)? > 0 {
                let (at, post, _) = row;
                added.posts += 1;
                if !left.covers.has_request(*at, post.place) {
                    hours.add_post(batch, post);
                }
                if waiting {
                    add_waiting(connection, post, hours)?;
                }
            }
        }
    }
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

/// The number of the form of a post. `forms` has those of the batch that were asked for before.
fn form_of(
    connection: &Connection,
    known: &mut Known,
    batch: &Batch<'_>,
    post: &NewPost<'_>,
    forms: &mut [Option<i64>],
) -> rusqlite::Result<i64> {
    let place = forms.get_mut(post.form).ok_or(rusqlite::Error::InvalidQuery)?;
    if let Some(number) = place {
        return Ok(*number);
    }
    let form = batch.form(post).ok_or(rusqlite::Error::InvalidQuery)?;
    let known = &mut known.form(form).number;
    let number = match known {
        Some(number) => *number,
        None => *known.insert(form_number(connection, form)?),
    };
    Ok(*place.insert(number))
}

/// The number of a form in the table; a new one when it is new.
fn form_number(connection: &Connection, form: &Form) -> rusqlite::Result<i64> {
    let ledger = form.ledger.0.as_bytes();
    let digest = Sha256::new_with_prefix(ledger).chain_update(&form.strings).finalize();
    let (digest, _) = digest.split_first_chunk().unwrap_or((&[0; 8], &[]));
    let digest = i64::from_le_bytes(*digest);
    let found = connection
        .prepare_cached(FORM)?
        .query_row((digest, ledger, &*form.strings), |row| row.get(0))
        .optional()?;
    found.map_or_else(
        || {
            let mut add = connection.prepare_cached(ADD_FORM)?;
            add.insert((digest, ledger, &form.tenant, &*form.strings))
        },
        Ok,
    )
}

/// Adds requests, each with its time and the number of its form, by a statement for so many. How
/// many were added: the first ones.
fn add_posts(
    connection: &Connection,
    add: &mut CachedStatement<'_>,
    rows: &[(i64, &NewPost<'_>, i64)],
) -> rusqlite::Result<usize> {
    for (row, (started_at, post, form)) in rows.iter().enumerate() {
        let at = row * COLUMNS;
        add.raw_bind_parameter(at + 1, started_at)?;
        add.raw_bind_parameter(at + 2, post.bytes.id.0.as_bytes())?;
        add.raw_bind_parameter(at + 3, form)?;
        add.raw_bind_parameter(at + 4, post.place.seq.cast_signed())?;
        add.raw_bind_parameter(at + 5, post.bytes.members)?;
    }
    match add.raw_execute() {
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::ConstraintViolation) => {
            Ok(usize::try_from(connection.changes()).unwrap_or_default())
        }
        added => added,
    }
}

/// The corrections that came before their request.
fn add_waiting(
    connection: &Connection,
    post: &NewPost<'_>,
    hours: &mut NewHours,
) -> rusqlite::Result<()> {
    let key = request_key(post.numbers.started_at.as_microsecond(), &post.bytes.id);
    let mut waiting = connection.prepare_cached(WAITING)?;
    let mut rows = waiting.query(key)?;
    let mut payload = Vec::new();
    while let Some(row) = rows.next()? {
        let correction = Correction::decode(ask::bytes(row, 0)?);
        let correction = correction.map_err(|error| unreadable(0, error))?;
        let post = Post::read(post.place, post.payload(&mut payload));
        hours.add_correction(&post.map_err(|error| unreadable(0, error))?, &correction);
    }
    connection.prepare_cached(WAIT_NO_LONGER)?.execute(key).map(|_| ())
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
        Ok((ask::place(row, 0)?, payload))
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
    if added && !is_in_file {
        if let Some((place, payload)) = request {
            let post = Post::read(place, &payload).map_err(|error| unreadable(1, error))?;
            hours.add_correction(&post, correction);
        } else if is_gone {
            hours.add_gone_correction(correction);
        }
    }
    Ok(added)
}

const fn request_key(at: i64, id: &RequestId) -> (i64, &[u8; 16]) {
    (at, id.0.as_bytes())
}
