//! Takes the sums of sessions of closed days out of their table, into a file beside that of the day's
//! requests.
//!
//! The file is whole and has been read again before a row leaves, and none leaves that has changed since it
//! was read. What comes later for such a day stays in the table beside the file.

use std::fs::File;
use std::io::BufWriter;

use rusqlite::Connection;
use sha2::{Digest as _, Sha256};
use taximeter_columnar::{ReadError, Sealed};
use taximeter_database::day::date_of;
use taximeter_sessions::{DaySum, SessionsWriter, check_sessions};

use super::ask::{bytes, unreadable};
use super::day_entries::DayEntries;
use super::days::{self, Days, Interrupt, LiveSessions, NewFile};

const DUE: &str = "
    SELECT day FROM days
    WHERE is_final = 1 AND EXISTS (SELECT 1 FROM sessions WHERE sessions.day = days.day)
        AND day NOT IN (SELECT day FROM session_files)
    ORDER BY day";
const ROWS: &str = "
    SELECT tenant, session, sum FROM sessions WHERE day = ?1 ORDER BY tenant, session";
const LEAVE: &str = "DELETE FROM sessions WHERE day = ?1";

/// A file that has sums which are still in the table.
#[derive(Debug)]
pub(super) struct SessionPart {
    pub(super) file: LiveSessions,
    rows: Rows,
}

/// Sees a row: tenant, session and sum.
type RowVisitor<'a> = dyn FnMut(&str, &str, &[u8]) -> rusqlite::Result<()> + 'a;

/// What the table has of a day.
#[derive(Debug, PartialEq, Eq)]
struct Rows {
    digest: [u8; 32],
    /// Another one if somebody built the tables anew.
    schema: i64,
}

/// The days that are closed and whose sums are in no file.
pub(super) fn due(connection: &Connection) -> rusqlite::Result<Vec<i64>> {
    connection.prepare_cached(DUE)?.query_map((), |row| row.get(0))?.collect()
}

/// Writes a file of the sums of a day that are in the table. `None` if `go_on` says no. Needs an open
/// transaction, as of which the files are listed.
pub(super) fn seal(
    connection: &Connection,
    days: &mut Days,
    (gateway, day): (&str, i64),
    go_on: &Interrupt<'_>,
) -> rusqlite::Result<Option<SessionPart>> {
    if !go_on() {
        return Ok(None);
    }
    let last_entries = DayEntries::of(connection, days, day)?.last;
    let (dir, name) = (days.dir(), days::sessions_name(day));
    let path = dir.join(&name);
    let (new, out) = NewFile::begin(dir, &name).map_err(|error| days.unwritable(&path, error))?;
    let writer = SessionsWriter::new(out, gateway, date_of(day), last_entries);
    let mut writer = writer.map_err(|error| days.unwritable(&path, error))?;
    let rows = rows_of(connection, day, &mut |tenant, session, sum| {
        let sum = DaySum::decode(sum).map_err(|error| unreadable(2, error))?;
        writer.add(tenant, session, &sum).map_err(|error| days.unwritable(&path, error))
    })?;
    let file = finish(days, &new, writer, day)?;
    if !go_on() {
        return Ok(None);
    }
    new.name().map_err(|error| days.unwritable(&path, error))?;
    Ok(Some(SessionPart { file, rows }))
}

/// Names the file, and lets its sums leave. Whether nothing has changed meanwhile. Needs an open
/// transaction.
pub(super) fn leave(connection: &Connection, part: &SessionPart) -> rusqlite::Result<bool> {
    let day = part.file.day;
    if rows_of(connection, day, &mut |_, _, _| Ok(()))? != part.rows {
        return Ok(false);
    }
    connection.execute(LEAVE, [day])?;
    days::name_sessions(connection, &part.file)?;
    Ok(true)
}

/// Ends a file and reads it again. It has no name yet.
fn finish(
    days: &Days,
    new: &NewFile,
    writer: SessionsWriter<BufWriter<File>>,
    day: i64,
) -> rusqlite::Result<LiveSessions> {
    let name = days::sessions_name(day);
    let path = days.dir().join(&name);
    let sealed = writer.finish().map_err(|error| days.unwritable(&path, error))?;
    let Sealed { out, bytes, sha256 } = sealed.file;
    NewFile::keep(out).map_err(|error| days.unwritable(&path, error))?;
    let opened = new.open().map_err(ReadError::Read);
    let findings = opened.and_then(check_sessions).map_err(|error| days.fault(&name, error))?;
    if let Some(finding) = findings.into_iter().next() {
        let (part, what) = (finding.part, finding.what);
        return Err(days.fault(&name, ReadError::Damaged { part, what }));
    }
    Ok(days::sessions_described(day, (bytes, sha256), sealed.footer))
}

/// Shows the rows of a day in order.
fn rows_of(
    connection: &Connection,
    day: i64,
    visit: &mut RowVisitor<'_>,
) -> rusqlite::Result<Rows> {
    let mut query = connection.prepare_cached(ROWS)?;
    let mut rows = query.query([day])?;
    let mut digest = Sha256::new();
    while let Some(row) = rows.next()? {
        let sum = bytes(row, 2)?;
        let [tenant, session] = [row.get_ref(0)?.as_str()?, row.get_ref(1)?.as_str()?];
        for bytes in [tenant.as_bytes(), session.as_bytes(), sum] {
            digest.update((bytes.len() as u64).to_le_bytes());
            digest.update(bytes);
        }
        visit(tenant, session, sum)?;
    }
    let schema = connection.pragma_query_value(None, "schema_version", |row| row.get(0))?;
    Ok(Rows { digest: digest.finalize().into(), schema })
}
