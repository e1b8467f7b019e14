//! Converts the tables of formats 2 and 3, whose rows are JSON.
//!
//! Each month of requests gets a new table, and its rows move there, the last ones first. So the old
//! table becomes shorter at its end, where a VACUUM can cut it off, and it is dropped when all its
//! rows have moved. Corrections change where they are. Hours stay as they are: they also have what
//! was used in months that somebody has dropped.
//!
//! Each step is one change, and a table says where the next one begins. So a conversion that was
//! killed goes on, and several at the same time take turns.
//!
//! Older programs do not open a database of this version, and a change of one that is running fails.
//!
//! Nothing else needs this file.

use std::ops::ControlFlow;

use jiff::Timestamp;
use taximeter_database::database::Rebuilt;
use taximeter_database::error::ReadError;
use taximeter_database::old_rows::{self, CONVERTING};
use taximeter_database::post::Post;
use taximeter_ledger::{LedgerId, Place, Position};
use tokio_postgres::types::Type;
use uuid::Uuid;

use super::ask::storable;
use super::fault::Fault;
use super::link::{Given, Link};
use super::schema::{self, Month, REFUSALS, VERSION};

/// Bytes of old rows of one step, but for its last row: bounds its memory.
const STEP_BYTES_MAX: usize = 8 << 20;

/// Months of requests that are in use. Somebody may have detached others, which then stay as they are.
const MONTHS: &str = "
    SELECT relname::text
    FROM pg_inherits JOIN pg_class ON pg_class.oid = inhrelid
    WHERE inhparent = 'taximeter.requests'::regclass";
/// Without its months, `requests` has no rows. If a view needs a column that is dropped here or at the
/// end, nothing is done: the type of such a column cannot be set.
const SET_ASIDE: &str = "
    CREATE TABLE taximeter.conversion (
        old text PRIMARY KEY,         -- a table that has old rows
        started_at bigint NOT NULL,   -- of its rows that are left, each is before this admission
        id uuid NOT NULL              -- and this id
    );
    ALTER TABLE taximeter.requests
        DROP COLUMN record,
        ADD COLUMN ledger uuid NOT NULL,
        ADD COLUMN series bigint NOT NULL DEFAULT 0,
        ADD COLUMN gateway text NOT NULL,
        ADD COLUMN billed boolean NOT NULL,
        ADD COLUMN payload bytea NOT NULL;
    ALTER TABLE taximeter.corrections ALTER COLUMN correction TYPE text;
    ALTER TABLE taximeter.corrections RENAME COLUMN correction TO old_correction;
    ALTER TABLE taximeter.corrections
        ALTER COLUMN old_correction DROP NOT NULL,
        ADD COLUMN correction bytea";
const NOTE: &str = "INSERT INTO taximeter.conversion VALUES ($1, $2, $3)";

/// Months from the last one on, then corrections.
const NEXT: &str = "
    SELECT old, started_at, id FROM taximeter.conversion ORDER BY old = 'corrections', old DESC LIMIT 1";
const GO_ON: &str = "UPDATE taximeter.conversion SET started_at = $2, id = $3 WHERE old = $1";
const FORGET: &str = "DELETE FROM taximeter.conversion WHERE old = $1";

/// The name of this table of old rows.
const CORRECTIONS: &str = "corrections";
const OLD_CORRECTIONS: &str = "
    SELECT started_at, id, seq, old_correction
    FROM taximeter.corrections
    WHERE id < $1
    ORDER BY id DESC
    LIMIT $2";
const SET_CORRECTIONS: &str = "
    UPDATE taximeter.corrections SET correction = payload, old_correction = NULL
    FROM unnest($1::uuid[], $2::bytea[]) AS converted (correction_id, payload)
    WHERE id = correction_id";

const END: &str = "
    ALTER TABLE taximeter.corrections
        DROP COLUMN old_correction,
        ALTER COLUMN correction SET NOT NULL;
    DROP TABLE taximeter.conversion";

const MOVE_CURSOR: &str = "
    UPDATE taximeter.cursors SET seq = $5, chain = $6
    WHERE gateway = $1 AND journal = $2 AND seq = $3 AND chain = $4";

/// A row: the admission of its request, its id, and the complete payload of its entry.
struct Converted {
    started_at: i64,
    id: Uuid,
    place: Place,
    payload: Vec<u8>,
}

/// Where the old rows of a table end that are left.
struct Left {
    old: String,
    started_at: i64,
    id: Uuid,
}

/// Makes the next step; how many rows it has converted, at most `rows_max`. `None` if nothing is left
/// to do. Needs an open change.
pub(super) fn step(link: &Link, rows_max: u32) -> Result<Option<Rebuilt>, Fault> {
    let found = schema::version(link)?;
    if old_rows::is_unconverted(found) {
        return set_aside(link).map(|()| Some(Rebuilt::default()));
    }
    match found {
        0 | VERSION => return Ok(None),
        _ if i64::from(found) != CONVERTING => return Err(Fault::Format { found, known: VERSION }),
        _ => {}
    }
    let rows = link.query(NEXT, &[])?;
    let Some(row) = rows.first() else {
        return end(link).map(|()| Some(Rebuilt::default()));
    };
    let left = Left { old: row.try_get(0)?, started_at: row.try_get(1)?, id: row.try_get(2)? };
    let mut converted = Rebuilt::default();
    if left.old == CORRECTIONS {
        converted.kept_corrections = corrections(link, &left, rows_max)?;
    } else {
        converted.kept_records = requests(link, &left, rows_max)?;
    }
    Ok(Some(converted))
}

/// The entry of a journal of `gateway` that was at `from` is at `to` now.
pub(super) fn move_cursor(
    link: &Link,
    gateway: &str,
    journal: &str,
    from: Position,
    to: Position,
) -> Result<(), Fault> {
    let seq = |position: Position| position.seq.cast_signed();
    let chain = |position: Position| i64::from(position.chain);
    let given = [
        (&gateway as _, Type::TEXT),
        (&journal as _, Type::TEXT),
        (&seq(from) as _, Type::INT8),
        (&chain(from) as _, Type::INT8),
        (&seq(to) as _, Type::INT8),
        (&chain(to) as _, Type::INT8),
    ];
    link.query(MOVE_CURSOR, &given).map(|_| ())
}

/// Makes room for new rows, and notes where the old ones are.
fn set_aside(link: &Link) -> Result<(), Fault> {
    let mut left = vec![CORRECTIONS.to_owned()];
    for row in link.query(MONTHS, &[])? {
        let month: String = row.try_get(0)?;
        let old = format!("old_{month}");
        let (month, renamed) = (table(&month), quoted(&old));
        link.run(&format!(
            "ALTER TABLE taximeter.requests DETACH PARTITION {month};
             ALTER TABLE {month} RENAME TO {renamed}"
        ))?;
        left.push(old);
    }
    link.run(SET_ASIDE)?;
    link.run(REFUSALS)?;
    for old in left {
        note(link, NOTE, &Left { old, started_at: i64::MAX, id: Uuid::max() })?;
    }
    set_version(link, CONVERTING)
}

/// Moves the last of the requests that are left in a table, or drops the table if none are. How many
/// they were.
fn requests(link: &Link, left: &Left, rows_max: u32) -> Result<u64, Fault> {
    let old = table(&left.old);
    let question = format!(
        "SELECT started_at, id, seq, record FROM {old}
         WHERE started_at <= $1 AND (started_at, id) < ($1, $2)
         ORDER BY started_at DESC, id DESC
         LIMIT $3"
    );
    let limit = i64::from(rows_max);
    let given = [
        (&left.started_at as _, Type::INT8),
        (&left.id as _, Type::UUID),
        (&limit as _, Type::INT8),
    ];
    let rows = page(link, &question, &given, old_rows::request)?;
    let Some(last) = rows.last() else {
        link.run(&format!("DROP TABLE {old}"))?;
        link.query(FORGET, &[(&left.old, Type::TEXT)])?;
        return Ok(0);
    };
    let admission = |row: &Converted| Timestamp::from_microsecond(row.started_at);
    let admissions = rows.iter().map(admission).collect::<Result<Vec<_>, _>>();
    let admissions = admissions.map_err(Fault::unreadable)?;
    Month::of(admissions.into_iter()).iter().try_for_each(|month| month.make(link))?;

    let (mut gateways, mut billed) = (Vec::new(), Vec::new());
    for row in &rows {
        let post = Post::read(row.place, &row.payload).map_err(Fault::unreadable)?;
        gateways.push(storable(post.gateway()));
        billed.push(!post.used_nothing());
    }
    let started: Vec<_> = rows.iter().map(|row| row.started_at).collect();
    let ids: Vec<_> = rows.iter().map(|row| row.id).collect();
    let payloads: Vec<_> = rows.iter().map(|row| &*row.payload).collect();
    let ledger = LedgerId::UNKNOWN.0;
    let move_rows = format!(
        "WITH moved AS (
            DELETE FROM {old}
            USING unnest($2::bigint[], $3::uuid[], $4::text[], $5::boolean[], $6::bytea[])
                AS converted (admission, request, gateway, billed, payload)
            WHERE started_at = admission AND id = request
            RETURNING number, started_at, id, ended_at, tenant, upstream, model, input_tokens,
                output_tokens, seq, gateway, billed, payload)
         INSERT INTO taximeter.requests (
            number, started_at, id, ended_at, tenant, upstream, model, input_tokens, output_tokens,
            seq, gateway, billed, payload, ledger)
         SELECT *, $1 FROM moved"
    );
    link.query(
        &move_rows,
        &[
            (&ledger, Type::UUID),
            (&started, Type::INT8_ARRAY),
            (&ids, Type::UUID_ARRAY),
            (&gateways, Type::TEXT_ARRAY),
            (&billed, Type::BOOL_ARRAY),
            (&payloads, Type::BYTEA_ARRAY),
        ],
    )?;
    go_on(link, left, last)?;
    Ok(rows.len() as u64)
}

/// Converts the last of the corrections that are left. How many they were.
fn corrections(link: &Link, left: &Left, rows_max: u32) -> Result<u64, Fault> {
    let limit = i64::from(rows_max);
    let given = [(&left.id as _, Type::UUID), (&limit as _, Type::INT8)];
    let rows = page(link, OLD_CORRECTIONS, &given, old_rows::correction)?;
    let Some(last) = rows.last() else {
        return link.query(FORGET, &[(&left.old, Type::TEXT)]).map(|_| 0);
    };
    let ids: Vec<_> = rows.iter().map(|row| row.id).collect();
    let payloads: Vec<_> = rows.iter().map(|row| &*row.payload).collect();
    link.query(SET_CORRECTIONS, &[(&ids, Type::UUID_ARRAY), (&payloads, Type::BYTEA_ARRAY)])?;
    go_on(link, left, last)?;
    Ok(rows.len() as u64)
}

fn end(link: &Link) -> Result<(), Fault> {
    link.run("SET LOCAL statement_timeout = 0")?;
    link.run_on_all(END)?;
    set_version(link, VERSION.into())
}

/// The rows that a question finds, from the last one on.
fn page(
    link: &Link,
    question: &str,
    given: &[Given<'_>],
    payload: fn(&str) -> Result<Vec<u8>, ReadError>,
) -> Result<Vec<Converted>, Fault> {
    let (mut rows, mut bytes) = (Vec::new(), 0);
    link.each(question, given, |row| {
        let json: &str = row.try_get(3)?;
        bytes += json.len();
        let seq = row.try_get(2).map(i64::cast_unsigned)?;
        rows.push(Converted {
            started_at: row.try_get(0)?,
            id: row.try_get(1)?,
            place: Place { ledger: LedgerId::UNKNOWN, seq },
            payload: payload(json).map_err(Fault::unreadable)?,
        });
        Ok(if bytes < STEP_BYTES_MAX { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
    })?;
    Ok(rows)
}

/// The rows before `last` are left.
fn go_on(link: &Link, left: &Left, last: &Converted) -> Result<(), Fault> {
    let left = Left { old: left.old.clone(), started_at: last.started_at, id: last.id };
    note(link, GO_ON, &left)
}

fn note(link: &Link, statement: &str, left: &Left) -> Result<(), Fault> {
    let Left { old, started_at, id } = left;
    let given = [(old as _, Type::TEXT), (started_at as _, Type::INT8), (id as _, Type::UUID)];
    link.query(statement, &given).map(|_| ())
}

fn set_version(link: &Link, version: i64) -> Result<(), Fault> {
    link.run(&format!("UPDATE taximeter.format SET version = {version}"))
}

/// The name of a table in a statement.
fn table(name: &str) -> String {
    format!("taximeter.{}", quoted(name))
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
