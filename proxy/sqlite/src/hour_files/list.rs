//! The table that names the files.

use rusqlite::{Connection, Row, params};
use taximeter_billing::HoursCover;

use crate::ask::unreadable;
use crate::kept_tables;

const GENERATION: &str = "SELECT coalesce(max(number), 0), count(*) FROM hour_files";
const LIST: &str = "
    SELECT number, name, month, first_hour, last_hour, rows, bytes, sha256, covers, is_adopted
    FROM hour_files ORDER BY first_hour, number";
const ADD: &str = "INSERT INTO hour_files VALUES (NULL, ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
const REMOVE: &str = "DELETE FROM hour_files WHERE name = ?1";

/// A file whose hours count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LiveHours {
    pub(crate) number: i64,
    pub(crate) name: String,
    /// First instant of the month, in microseconds since 1970.
    pub(crate) month: i64,
    /// First and last hour, in microseconds since 1970.
    pub(crate) first: i64,
    pub(crate) last: i64,
    pub(crate) rows: u64,
    pub(crate) bytes: u64,
    pub(crate) sha256: [u8; 32],
    /// What its hours are made of.
    pub(crate) covers: Vec<HoursCover>,
    /// Whether the store was lost after it was written.
    pub(crate) is_adopted: bool,
}

/// What is another one after each change of the list.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Generation(i64, i64);

/// None in a store that has no list.
pub(super) fn generation(connection: &Connection) -> rusqlite::Result<Generation> {
    if !kept_tables::has(connection, "hour_files")? {
        return Ok(Generation::default());
    }
    let mut query = connection.prepare_cached(GENERATION)?;
    query.query_row((), |row| Ok(Generation(row.get(0)?, row.get(1)?)))
}

/// All files, in the order of their first hours; none in a store that has no list.
pub(crate) fn all(connection: &Connection) -> rusqlite::Result<Vec<LiveHours>> {
    if !kept_tables::has(connection, "hour_files")? {
        return Ok(Vec::new());
    }
    connection.prepare_cached(LIST)?.query_map((), live)?.collect()
}

/// The names of all files.
pub(crate) fn names_of(connection: &Connection) -> rusqlite::Result<Vec<String>> {
    Ok(all(connection)?.into_iter().map(|file| file.name).collect())
}

fn live(row: &Row<'_>) -> rusqlite::Result<LiveHours> {
    let sha256 = row.get_ref(7)?.as_blob()?;
    let covers = row.get_ref(8)?.as_str()?;
    Ok(LiveHours {
        number: row.get(0)?,
        name: row.get(1)?,
        month: row.get(2)?,
        first: row.get(3)?,
        last: row.get(4)?,
        rows: row.get(5).map(i64::cast_unsigned)?,
        bytes: row.get(6).map(i64::cast_unsigned)?,
        sha256: sha256.try_into().map_err(|error| unreadable(7, error))?,
        covers: serde_json::from_slice(covers.as_bytes()).map_err(|error| unreadable(8, error))?,
        is_adopted: row.get(9)?,
    })
}

/// Names a file. It gets a number of its own. Needs an open transaction.
pub(super) fn add(connection: &Connection, file: &LiveHours) -> rusqlite::Result<()> {
    let covers = serde_json::to_string(&file.covers);
    let covers =
        covers.map_err(|error| rusqlite::Error::ToSqlConversionFailure(Box::new(error)))?;
    connection.prepare_cached(ADD)?.execute(params![
        file.name,
        file.month,
        file.first,
        file.last,
        file.rows.cast_signed(),
        file.bytes.cast_signed(),
        file.sha256,
        covers,
        file.is_adopted,
    ])?;
    Ok(())
}

/// Names a file no longer: whether it was named. Needs an open transaction.
pub(super) fn remove(connection: &Connection, name: &str) -> rusqlite::Result<bool> {
    Ok(connection.prepare_cached(REMOVE)?.execute([name])? > 0)
}
