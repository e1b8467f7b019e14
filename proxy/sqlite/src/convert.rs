//! Converts the tables of older formats in place. Each row is moved: the pages that the old ones leave
//! have room for the new ones. So a conversion needs little room, and one that was killed goes on.
//!
//! The rows of formats 2 and 3 are JSON. Those of formats 4 and 5 are as today, but not in the order of
//! their keys, and each form has the id of its ledger. Their corrections and sums stay as they are.
//!
//! Nothing else needs this file.

use std::collections::{BTreeMap, HashMap};
use std::ops::RangeInclusive;

use rusqlite::{Connection, Row};
use taximeter_database::batch::{Amendment, Batch};
use taximeter_database::database::Rebuilt;
use taximeter_database::old_rows::{self, CONVERTING};
use taximeter_ledger::{LedgerId, Payload, Place};

use super::add;
use super::columns::{self, bytes, unreadable};
use super::days::{self, Days};
use super::ledgers::End;
use super::requests::form_number;
use super::schema;

/// Formats that have the id of its ledger in each form.
const WITH_FORMS: RangeInclusive<u32> = 4..=5;
/// The format of their tables while they are converted. Nobody else opens them.
const CONVERTING_FORMS: u32 = 1_001;

/// Rows that are moved together, and rows of which these have the first entries. No two rows that are
/// not in the order of their entries are further apart: a batch has half as many.
const STEP: u32 = 2048;
const WINDOW: u32 = 8192;

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
/// A row without an id kept the number of a request that had left.
const SET_FORMS_ASIDE: &str = "
    DELETE FROM requests WHERE started_at = -9223372036854775808 AND id = x'';
    DROP INDEX admission;
    ALTER TABLE requests RENAME TO old_requests;
    DROP INDEX digests;
    ALTER TABLE forms RENAME TO old_forms";
const ENTRIES: &str = "SELECT number, seq, NULL FROM old_requests ORDER BY number LIMIT ?1";
const ENTRIES_OF_FORMS: &str = "
    SELECT old_requests.number, seq, ledger
    FROM old_requests LEFT JOIN old_forms ON old_forms.number = form
    ORDER BY old_requests.number LIMIT ?1";
const REQUEST: &str = "SELECT record FROM old_requests WHERE number = ?1";
const FORM: &str = "
    SELECT form, tenant, strings
    FROM old_requests JOIN old_forms ON old_forms.number = form
    WHERE old_requests.number = ?1";
const MOVE_REQUEST: &str = "
    INSERT INTO requests (started_at, id, form, seq, members)
    SELECT started_at, id, ?2, seq, members FROM old_requests WHERE number = ?1";
const CORRECTIONS: &str =
    "SELECT number, seq, correction FROM old_corrections ORDER BY number LIMIT ?1";
const MOVED_REQUEST: &str = "DELETE FROM old_requests WHERE number = ?1";
const MOVED_CORRECTIONS: &str = "DELETE FROM old_corrections WHERE number <= ?1";
const FORGET: &str = "DROP TABLE old_requests; DROP TABLE old_corrections";
const FORGET_FORMS: &str = "DROP TABLE old_requests; DROP TABLE old_forms";

/// Whether tables of this format must be converted, or their conversion has not ended.
pub(super) fn is_old(version: u32) -> bool {
    old_rows::is_old(version) || WITH_FORMS.contains(&version) || version == CONVERTING_FORMS
}

/// Makes new tables, unless that is done. Needs an open transaction.
pub(super) fn begin(connection: &Connection) -> rusqlite::Result<()> {
    let version = schema::version(connection)?;
    if old_rows::is_unconverted(version) {
        connection.execute_batch(SET_ASIDE)?;
        schema::create(connection)?;
        connection.pragma_update(None, "user_version", CONVERTING)?;
    } else if WITH_FORMS.contains(&version) {
        connection.execute_batch(SET_FORMS_ASIDE)?;
        schema::create_requests(connection)?;
        schema::complete(connection)?;
        connection.pragma_update(None, "user_version", CONVERTING_FORMS)?;
    }
    Ok(())
}

/// Moves the next rows: requests, which are those of `ledger` where they do not say it, then
/// corrections. Whether there were any. Needs an open transaction.
pub(super) fn go_on(
    connection: &Connection,
    ledger: LedgerId,
    moved: &mut Rebuilt,
) -> rusqlite::Result<bool> {
    let has_forms = schema::version(connection)? == CONVERTING_FORMS;
    let question = if has_forms { ENTRIES_OF_FORMS } else { ENTRIES };
    let requests = next(connection, question, ledger)?;
    if !requests.is_empty() {
        moved.kept_records += if has_forms {
            move_requests(connection, &requests)?
        } else {
            add_requests(connection, &requests)?
        };
        let mut delete = connection.prepare_cached(MOVED_REQUEST)?;
        for (number, _) in &requests {
            delete.execute([number])?;
        }
        return Ok(true);
    }
    if has_forms {
        return Ok(false);
    }
    let rows = corrections(connection)?;
    let Some((last, ..)) = rows.last() else { return Ok(false) };
    let mut batch = Batch::default();
    for (_, seq, payload) in &rows {
        let place = Place { ledger: LedgerId::UNKNOWN, seq: *seq };
        let amendment = Amendment::read(place, payload);
        batch.corrections.push(amendment.map_err(|error| unreadable(2, error))?);
    }
    moved.kept_corrections += add::whole(connection, &mut Days::default(), &batch)?.corrections;
    connection.execute(MOVED_CORRECTIONS, (last,))?;
    Ok(true)
}

/// Forgets the old tables. Needs an open transaction.
pub(super) fn end(connection: &Connection, days: &mut Days) -> rusqlite::Result<()> {
    let has_forms = schema::version(connection)? == CONVERTING_FORMS;
    connection.execute_batch(if has_forms { FORGET_FORMS } else { FORGET })?;
    connection.pragma_update(None, "user_version", schema::VERSION)?;
    days.list(connection)?;
    days::keep_first_number(connection, days)
}

/// The next rows in the order of their entries: their numbers, and where these are.
fn next(
    connection: &Connection,
    question: &str,
    ledger: LedgerId,
) -> rusqlite::Result<Vec<(i64, Place)>> {
    let mut query = connection.prepare_cached(question)?;
    let place = |row: &Row<'_>| {
        let is_said = row.get_ref(2)?.as_blob().is_ok();
        let ledger = if is_said { columns::ledger(row, 2)? } else { ledger };
        Ok((row.get(0)?, Place { ledger, seq: columns::seq(row, 1)? }))
    };
    let rows = query.query_map([WINDOW], place)?;
    let mut rows = rows.collect::<rusqlite::Result<Vec<(i64, Place)>>>()?;
    let mut ledgers = BTreeMap::new();
    for (number, place) in &rows {
        ledgers.entry(place.ledger).or_insert(*number);
    }
    rows.sort_by_key(|(number, place)| (ledgers.get(&place.ledger).copied(), place.seq, *number));
    rows.truncate(STEP as usize);
    Ok(rows)
}

/// Moves requests as they are. How many.
fn move_requests(connection: &Connection, rows: &[(i64, Place)]) -> rusqlite::Result<u64> {
    let mut end = End::read(connection)?;
    let mut forms: HashMap<i64, i64> = HashMap::new();
    let mut form = connection.prepare_cached(FORM)?;
    let mut add = connection.prepare_cached(MOVE_REQUEST)?;
    for (number, place) in rows {
        let form = form.query_row([number], |row| {
            let old = row.get(0)?;
            if let Some(form) = forms.get(&old) {
                return Ok(*form);
            }
            let form = form_number(connection, row.get_ref(1)?.as_str()?, bytes(row, 2)?)?;
            forms.insert(old, form);
            Ok(form)
        })?;
        if !end.takes(*place) {
            end.begin(connection, place.ledger)?;
        }
        end.expect(*place);
        end.added(add.insert((number, form))?);
    }
    Ok(rows.len() as u64)
}

/// Adds requests whose rows are JSON. How many were new.
fn add_requests(connection: &Connection, rows: &[(i64, Place)]) -> rusqlite::Result<u64> {
    let mut query = connection.prepare_cached(REQUEST)?;
    let mut payloads = Vec::with_capacity(rows.len());
    for (number, place) in rows {
        let payload = query.query_row([number], |row| {
            old_rows::request(row.get_ref(0)?.as_str()?).map_err(|error| unreadable(0, error))
        })?;
        payloads.push((*place, Payload::from(&*payload)));
    }
    let mut batch = Batch::default();
    for (place, payload) in &payloads {
        payload
            .post()
            .and_then(|post| batch.push_post(*place, post))
            .map_err(|error| unreadable(0, error))?;
    }
    add::whole(connection, &mut Days::default(), &batch).map(|added| added.posts)
}

/// The next corrections: their numbers, those of their entries, and the complete payloads of these.
fn corrections(connection: &Connection) -> rusqlite::Result<Vec<(i64, u64, Vec<u8>)>> {
    let mut query = connection.prepare_cached(CORRECTIONS)?;
    let rows = query.query_map([STEP], |row| {
        let payload = old_rows::correction(row.get_ref(2)?.as_str()?);
        let payload = payload.map_err(|error| unreadable(2, error))?;
        Ok((row.get(0)?, columns::seq(row, 1)?, payload))
    })?;
    rows.collect()
}
