//! The table that names the files.

use rusqlite::{Connection, Row, params};
use taximeter_columnar::Footer;

use crate::ask::unreadable;

const GENERATION: &str = "SELECT coalesce(max(number), 0), count(*) FROM days";
const LIST: &str = "
    SELECT number, name, day, requests, first_at, last_at, bytes, sha256, is_final
    FROM days ORDER BY day, number";
const ADD: &str = "INSERT INTO days VALUES (NULL, ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
const REMOVE: &str = "DELETE FROM days WHERE name = ?1";

/// A file whose requests count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LiveFile {
    pub(crate) number: i64,
    pub(crate) name: String,
    /// First instant of the day, in microseconds since 1970.
    pub(crate) day: i64,
    pub(crate) requests: u64,
    /// First and last admission, in microseconds since 1970.
    pub(crate) first: i64,
    pub(crate) last: i64,
    pub(crate) bytes: u64,
    pub(crate) sha256: [u8; 32],
    pub(crate) is_final: bool,
}

/// What is another one after each change of the list.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Generation(i64, i64);

pub(super) fn generation(connection: &Connection) -> rusqlite::Result<Generation> {
    let mut query = connection.prepare_cached(GENERATION)?;
    query.query_row((), |row| Ok(Generation(row.get(0)?, row.get(1)?)))
}

/// Whether there are any files.
pub(crate) fn are_there(connection: &Connection) -> rusqlite::Result<bool> {
    Ok(generation(connection)? != Generation::default())
}

/// All files, in order of day and number.
pub(crate) fn all(connection: &Connection) -> rusqlite::Result<Vec<LiveFile>> {
    let mut query = connection.prepare_cached(LIST)?;
    query.query_map((), live)?.collect()
}

/// The names of all files; none in a store of an older format that has no list.
pub(crate) fn names_of(connection: &Connection) -> rusqlite::Result<Vec<String>> {
    if !connection.table_exists(None, "days")? {
        return Ok(Vec::new());
    }
    Ok(all(connection)?.into_iter().map(|file| file.name).collect())
}

fn live(row: &Row<'_>) -> rusqlite::Result<LiveFile> {
    let sha256 = row.get_ref(7)?.as_blob()?;
    Ok(LiveFile {
        number: row.get(0)?,
        name: row.get(1)?,
        day: row.get(2)?,
        requests: row.get(3).map(i64::cast_unsigned)?,
        first: row.get(4)?,
        last: row.get(5)?,
        bytes: row.get(6).map(i64::cast_unsigned)?,
        sha256: sha256.try_into().map_err(|error| unreadable(7, error))?,
        is_final: row.get(8)?,
    })
}

/// Names a file. It gets a number of its own. Needs an open transaction.
pub(crate) fn add(connection: &Connection, file: &LiveFile) -> rusqlite::Result<()> {
    let mut add = connection.prepare_cached(ADD)?;
    add.execute(params![
        file.name,
        file.day,
        file.requests.cast_signed(),
        file.first,
        file.last,
        file.bytes.cast_signed(),
        file.sha256,
        file.is_final,
    ])?;
    Ok(())
}

/// Names a file no longer: whether it was named. Needs an open transaction.
pub(crate) fn remove(connection: &Connection, name: &str) -> rusqlite::Result<bool> {
    Ok(connection.prepare_cached(REMOVE)?.execute([name])? > 0)
}

/// What the table says about a file that is written whole.
pub(super) fn described(
    name: String,
    day: i64,
    (first, last): (i64, i64),
    (bytes, sha256): (u64, [u8; 32]),
    footer: &Footer,
) -> LiveFile {
    let is_final = false;
    LiveFile { number: 0, name, day, requests: footer.rows, first, last, bytes, sha256, is_final }
}
