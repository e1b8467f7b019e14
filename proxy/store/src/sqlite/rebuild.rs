//! Replaces old tables by new ones after the journals have filled these.
//!
//! A row of the old tables goes in the moment in which the new ones get it, and its page is used
//! again. So neither the database nor its log takes much more room than one store meanwhile. All of
//! it is one transaction: others see the store as it was, also after a crash.
//!
//! Counts of refusals stay where they are: those that the journals have take their own places.

use rusqlite::{Connection, Row};
use taximeter_ledger::{Payload, Place};

use super::add;
use super::ask::{self, unreadable};
use super::schema;
use crate::batch::{Amendment, Batch};
use crate::database::Rebuilt;

/// Requests and corrections read at once.
const PAGE: u32 = 512;

const SET_ASIDE: &str = "
    DROP INDEX digests;
    ALTER TABLE forms RENAME TO old_forms;
    DROP INDEX admission;
    ALTER TABLE requests RENAME TO old_requests;
    DROP INDEX corrected;
    DROP INDEX waiting;
    ALTER TABLE corrections RENAME TO old_corrections;
    DROP TABLE hours;
    DROP TABLE combinations;
    DROP TABLE lines;
    DROP TABLE cursors;
    CREATE INDEX old_admission ON old_requests (started_at, id)";
const REPLACE: &str = "
    CREATE TRIGGER request_is_new AFTER INSERT ON requests BEGIN
        DELETE FROM old_requests WHERE started_at = NEW.started_at AND id = NEW.id;
    END;
    CREATE TRIGGER correction_is_new AFTER INSERT ON corrections BEGIN
        DELETE FROM old_corrections WHERE id = NEW.id;
    END";
const OLD_REQUESTS: &str = "
    SELECT old_requests.number, ledger, seq, id, strings, members
    FROM old_requests CROSS JOIN old_forms ON old_forms.number = form
    WHERE old_requests.number > ?1
    ORDER BY old_requests.number
    LIMIT ?2";
const OLD_CORRECTIONS: &str = "
    SELECT number, zeroblob(16), seq, correction FROM old_corrections WHERE number > ?1 ORDER BY number LIMIT ?2";
const FORGET: &str = "
    DROP TRIGGER request_is_new; DROP TRIGGER correction_is_new;
    DROP TABLE old_requests; DROP TABLE old_forms; DROP TABLE old_corrections";

/// Makes room for new tables, and makes them.
pub(super) fn set_aside(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch(SET_ASIDE)?;
    schema::create(connection)?;
    connection.execute_batch(REPLACE)
}

/// Adds what was set aside and did not come again.
pub(super) fn keep(connection: &Connection) -> rusqlite::Result<Rebuilt> {
    let mut kept = Rebuilt::default();
    let whole = |row: &Row<'_>, payload: &mut Vec<u8>| ask::payload(row, 3, payload);
    each_page(connection, OLD_REQUESTS, whole, |rows| {
        let rows: Vec<_> =
            rows.iter().map(|(place, payload)| (*place, Payload::from(&**payload))).collect();
        let mut batch = Batch::default();
        for (place, payload) in &rows {
            payload
                .post()
                .and_then(|post| batch.push_post(*place, post))
                .map_err(|error| unreadable(2, error))?;
        }
        let added = add::whole(connection, &batch)?;
        kept.kept_records += added.posts;
        Ok(())
    })?;
    let whole = |row: &Row<'_>, payload: &mut Vec<u8>| {
        payload.extend_from_slice(ask::bytes(row, 3)?);
        Ok(())
    };
    each_page(connection, OLD_CORRECTIONS, whole, |rows| {
        let mut batch = Batch::default();
        for (place, payload) in rows {
            let amendment = Amendment::read(place.seq, payload);
            batch.corrections.push(amendment.map_err(|error| unreadable(2, error))?);
        }
        let added = add::whole(connection, &batch)?;
        kept.kept_corrections += added.corrections;
        Ok(())
    })?;
    connection.execute_batch(FORGET)?;
    Ok(kept)
}

/// Shows `visit` where entries were and the payloads that `read` appends.
fn each_page(
    connection: &Connection,
    question: &str,
    read: impl Fn(&Row<'_>, &mut Vec<u8>) -> rusqlite::Result<()>,
    mut visit: impl FnMut(&[(Place, Vec<u8>)]) -> rusqlite::Result<()>,
) -> rusqlite::Result<()> {
    let mut query = connection.prepare(question)?;
    let mut after = 0_i64;
    loop {
        let mut page = Vec::new();
        let mut rows = query.query((after, PAGE))?;
        while let Some(row) = rows.next()? {
            after = row.get(0)?;
            let mut payload = Vec::new();
            read(row, &mut payload)?;
            page.push((ask::place(row, 1)?, payload));
        }
        drop(rows);
        if page.is_empty() {
            return Ok(());
        }
        visit(&page)?;
    }
}
