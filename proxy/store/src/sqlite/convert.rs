//! Converts the tables of formats 2 and 3, whose rows are JSON, in place. Each row is moved: the
//! pages that the old ones leave have room for the new ones, which are smaller. So a conversion needs
//! little room, and one that was killed goes on.
//!
//! Nothing else needs this file.

use rusqlite::Connection;
use taximeter_ledger::{LedgerId, Payload, Place};

use super::add;
use super::ask::unreadable;
use super::days::Days;
use super::schema;
use crate::batch::{Amendment, Batch};
use crate::database::Rebuilt;
use crate::error::ReadError;
use crate::old_rows::{self, CONVERTING};

/// Rows that are moved together.
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
const REQUESTS: &str = "SELECT number, seq, record FROM old_requests ORDER BY number LIMIT ?1";
const CORRECTIONS: &str =
    "SELECT number, seq, correction FROM old_corrections ORDER BY number LIMIT ?1";
const MOVED_REQUESTS: &str = "DELETE FROM old_requests WHERE number <= ?1";
const MOVED_CORRECTIONS: &str = "DELETE FROM old_corrections WHERE number <= ?1";
const FORGET: &str = "DROP TABLE old_requests; DROP TABLE old_corrections";

/// A row: its number, that of its entry, and the complete payload of that.
type OldRow = (i64, u64, Vec<u8>);

/// Makes new tables, unless that is done. Needs an open transaction.
pub(super) fn begin(connection: &Connection) -> rusqlite::Result<()> {
    if !old_rows::is_unconverted(schema::version(connection)?) {
        return Ok(());
    }
    connection.execute_batch(SET_ASIDE)?;
    schema::create(connection)?;
    connection.pragma_update(None, "user_version", CONVERTING)
}

/// Moves the next rows: requests, which are those of `ledger`, then corrections. Whether there were
/// any. Needs an open transaction.
pub(super) fn go_on(
    connection: &Connection,
    ledger: LedgerId,
    moved: &mut Rebuilt,
) -> rusqlite::Result<bool> {
    let requests = page(connection, REQUESTS, old_rows::request)?;
    if let Some((last, ..)) = requests.last() {
        let last = *last;
        moved.kept_records += add_requests(connection, ledger, &requests)?;
        connection.execute(MOVED_REQUESTS, (last,))?;
        return Ok(true);
    }
    let corrections = page(connection, CORRECTIONS, old_rows::correction)?;
    let Some((last, ..)) = corrections.last() else { return Ok(false) };
    let last = *last;
    moved.kept_corrections += add_corrections(connection, &corrections)?;
    connection.execute(MOVED_CORRECTIONS, (last,))?;
    Ok(true)
}

/// Forgets the old tables. Needs an open transaction.
pub(super) fn end(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch(FORGET)?;
    connection.pragma_update(None, "user_version", schema::VERSION)
}

fn page(
    connection: &Connection,
    question: &str,
    payload: fn(&str) -> Result<Vec<u8>, ReadError>,
) -> rusqlite::Result<Vec<OldRow>> {
    let mut query = connection.prepare_cached(question)?;
    let rows = query.query_map((PAGE,), |row| {
        let payload = payload(row.get_ref(2)?.as_str()?).map_err(|error| unreadable(2, error))?;
        Ok((row.get(0)?, row.get(1).map(i64::cast_unsigned)?, payload))
    })?;
    rows.collect()
}

fn add_requests(
    connection: &Connection,
    ledger: LedgerId,
    rows: &[OldRow],
) -> rusqlite::Result<u64> {
    let payloads: Vec<_> =
        rows.iter().map(|(_, seq, payload)| (*seq, Payload::from(&**payload))).collect();
    let mut batch = Batch::default();
    for (seq, payload) in &payloads {
        payload
            .post()
            .and_then(|post| batch.push_post(Place { ledger, seq: *seq }, post))
            .map_err(|error| unreadable(2, error))?;
    }
    add::whole(connection, &mut Days::default(), &batch).map(|added| added.posts)
}

fn add_corrections(connection: &Connection, rows: &[OldRow]) -> rusqlite::Result<u64> {
    let mut batch = Batch::default();
    for (_, seq, payload) in rows {
        let place = Place { ledger: LedgerId::UNKNOWN, seq: *seq };
        let amendment = Amendment::read(place, payload);
        batch.corrections.push(amendment.map_err(|error| unreadable(2, error))?);
    }
    add::whole(connection, &mut Days::default(), &batch).map(|added| added.corrections)
}
