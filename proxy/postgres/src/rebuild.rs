//! Rebuilds the rows from the journals, and keeps old rows that the journals no longer have.
//!
//! Counts of refusals stay where they are: those that the journals have take their own places.
//!
//! All of it is one transaction. Others read the old rows until it ends.

use taximeter_database::batch::{Amendment, Batch};
use taximeter_database::database::Rebuilt;
use taximeter_ledger::{Payload, Place};
use tokio_postgres::types::Type;

use super::add;
use super::ask;
use super::fault::Fault;
use super::link::Link;

/// Requests and corrections read at once.
const PAGE: i64 = 512;

/// Cursors of other gateways stay: all that their journals gave is kept. So do the hours of days without
/// details, which are all that is left of them, and what these name.
const SET_ASIDE: &str = "
    SET LOCAL statement_timeout = 0;
    CREATE TEMPORARY TABLE old_requests ON COMMIT DROP AS
        SELECT number, ledger, seq, payload FROM taximeter.requests;
    CREATE INDEX ON old_requests (number);
    CREATE TEMPORARY TABLE old_corrections ON COMMIT DROP AS
        SELECT number, id, seq, correction FROM taximeter.corrections;
    CREATE INDEX ON old_corrections (number);
    DELETE FROM taximeter.requests;
    DELETE FROM taximeter.ledgers;
    DELETE FROM taximeter.corrections;
    DELETE FROM taximeter.sessions;
    DELETE FROM taximeter.hours WHERE NOT EXISTS (
        SELECT 1 FROM taximeter.gone_days WHERE day <= hour AND hour < day + 86400000000);
    DELETE FROM taximeter.combinations
        WHERE NOT EXISTS (SELECT 1 FROM taximeter.hours WHERE combination = number);
    DELETE FROM taximeter.lines WHERE NOT EXISTS (SELECT 1 FROM taximeter.hours)";
const FORGET_CURSORS: &str = "DELETE FROM taximeter.cursors WHERE gateway = $1";
const OLD_REQUESTS: &str = "
    SELECT number, ledger, seq, payload FROM old_requests WHERE number > $1 ORDER BY number LIMIT $2";
const OLD_CORRECTIONS: &str = "
    SELECT number, id, seq, correction FROM old_corrections WHERE number > $1 ORDER BY number LIMIT $2";

/// Makes room. Needs an open change.
pub(super) fn set_aside(link: &Link, gateway: &str) -> Result<(), Fault> {
    link.run_on_all(SET_ASIDE)?;
    link.query(FORGET_CURSORS, &[(&gateway, Type::TEXT)]).map(|_| ())
}

/// Adds what was set aside and is not here again.
pub(super) fn keep(link: &Link, gateway: &str) -> Result<Rebuilt, Fault> {
    let mut kept = Rebuilt::default();
    each_page(link, OLD_REQUESTS, |rows| {
        let rows: Vec<_> =
            rows.iter().map(|(place, payload)| (*place, Payload::from(&**payload))).collect();
        let mut batch = Batch::default();
        for (place, payload) in &rows {
            payload
                .post()
                .and_then(|post| batch.push_post(*place, post))
                .map_err(Fault::unreadable)?;
        }
        let added = add::batch(link, gateway, &batch, true)?;
        kept.kept_records += added.posts;
        Ok(())
    })?;
    each_page(link, OLD_CORRECTIONS, |rows| {
        let mut batch = Batch::default();
        for (place, payload) in rows {
            let amendment = Amendment::read(*place, payload);
            batch.corrections.push(amendment.map_err(Fault::unreadable)?);
        }
        let added = add::batch(link, gateway, &batch, true)?;
        kept.kept_corrections += added.corrections;
        Ok(())
    })?;
    Ok(kept)
}

/// Shows `visit` where entries were, of corrections the number alone, and their payloads.
fn each_page(
    link: &Link,
    question: &str,
    mut visit: impl FnMut(&[(Place, Vec<u8>)]) -> Result<(), Fault>,
) -> Result<(), Fault> {
    let mut after = 0_i64;
    loop {
        let rows = link.query(question, &[(&after, Type::INT8), (&PAGE, Type::INT8)])?;
        let mut page = Vec::with_capacity(rows.len());
        for row in rows {
            after = row.try_get(0)?;
            page.push((ask::place(&row, 1)?, row.try_get(3)?));
        }
        if page.is_empty() {
            return Ok(());
        }
        visit(&page)?;
    }
}
