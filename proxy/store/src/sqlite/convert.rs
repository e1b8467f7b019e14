//! Converts the tables of formats 2 and 3, whose rows are JSON, in place. Each row is moved: the
//! pages that the old ones leave have room for the new ones, which are smaller. So a conversion needs
//! little room, and one that was killed goes on.
//!
//! Nothing else needs this file.

use rusqlite::Connection;
use serde::de::DeserializeOwned;
use taximeter_ledger::{Correction, EncodedEntry, Entry, LedgerId, Payload, Record};

use super::add;
use super::ask::unreadable;
use super::schema;
use crate::batch::{Amendment, Batch};
use crate::database::Rebuilt;
use crate::post::Place;

/// The formats that are converted. Format 2 has no counts of refusals.
const OLD: [u32; 2] = [2, 3];
/// The format of tables that are being converted. Nobody else opens them.
const CONVERTING: u32 = 1_000;

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

/// A row: its number, that of its entry, and what it says.
type OldRow<T> = (i64, u64, T);

/// Whether tables of this format are old, or are being converted.
pub(super) fn is_old(version: u32) -> bool {
    OLD.contains(&version) || version == CONVERTING
}

/// Makes new tables, unless that is done. Needs an open transaction.
pub(super) fn begin(connection: &Connection) -> rusqlite::Result<()> {
    if !OLD.contains(&schema::version(connection)?) {
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
    let requests = page::<Record>(connection, REQUESTS)?;
    if let Some((last, ..)) = requests.last() {
        let last = *last;
        moved.kept_records += add_requests(connection, ledger, requests)?;
        connection.execute(MOVED_REQUESTS, (last,))?;
        return Ok(true);
    }
    let corrections = page::<Correction>(connection, CORRECTIONS)?;
    let Some((last, ..)) = corrections.last() else { return Ok(false) };
    let last = *last;
    moved.kept_corrections += add_corrections(connection, corrections)?;
    connection.execute(MOVED_CORRECTIONS, (last,))?;
    Ok(true)
}

/// Forgets the old tables. Needs an open transaction.
pub(super) fn end(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch(FORGET)?;
    connection.pragma_update(None, "user_version", schema::VERSION)
}

fn page<T: DeserializeOwned>(
    connection: &Connection,
    question: &str,
) -> rusqlite::Result<Vec<OldRow<T>>> {
    let mut query = connection.prepare_cached(question)?;
    let rows = query.query_map((PAGE,), |row| {
        let value = serde_json::from_str(row.get_ref(2)?.as_str()?);
        let value = value.map_err(|error| unreadable(2, error))?;
        Ok((row.get(0)?, row.get(1).map(i64::cast_unsigned)?, value))
    })?;
    rows.collect()
}

fn add_requests(
    connection: &Connection,
    ledger: LedgerId,
    rows: Vec<OldRow<Record>>,
) -> rusqlite::Result<u64> {
    let rows = rows.into_iter().map(|(_, seq, record)| (seq, Entry::Post(Box::new(record))));
    let payloads = payloads(rows)?;
    let payloads: Vec<_> =
        payloads.iter().map(|(seq, payload)| (*seq, Payload::from(&**payload))).collect();
    let mut batch = Batch::default();
    for (seq, payload) in &payloads {
        payload
            .post()
            .and_then(|post| batch.push_post(Place { ledger, seq: *seq }, post))
            .map_err(|error| unreadable(2, error))?;
    }
    add::batch(connection, &batch).map(|added| added.posts)
}

fn add_corrections(
    connection: &Connection,
    rows: Vec<OldRow<Correction>>,
) -> rusqlite::Result<u64> {
    let rows = rows.into_iter().map(|(_, seq, it)| (seq, Entry::Correction(Box::new(it))));
    let payloads = payloads(rows)?;
    let mut batch = Batch::default();
    for (seq, payload) in &payloads {
        let amendment = Amendment::read(*seq, payload);
        batch.corrections.push(amendment.map_err(|error| unreadable(2, error))?);
    }
    add::batch(connection, &batch).map(|added| added.corrections)
}

/// The complete payloads of entries.
fn payloads(entries: impl Iterator<Item = (u64, Entry)>) -> rusqlite::Result<Vec<(u64, Vec<u8>)>> {
    let payload = |(seq, entry)| {
        let mut payload = Vec::new();
        EncodedEntry::new(&entry, &mut payload).map_err(|error| unreadable(2, error))?;
        Ok((seq, payload))
    };
    entries.map(payload).collect()
}
