//! Removes files that do not count: those that were replaced, and those whose requests never left the
//! tables because the process ended.

use std::fs::File;

use rusqlite::{Connection, OptionalExtension};
use taximeter_columnar::{DayFile, ReadError, RowFilter};
use taximeter_database::day::first_of;

use super::folder::{self, UNFINISHED, is_day};
use super::known;
use super::open::Days;
use super::session_files::is_left_over;
use crate::gone::Gone;

const IS_THERE: &str = "SELECT 1 FROM requests WHERE started_at = ?1 AND id = ?2";

/// Files that nobody needs, and others whose requests are nowhere else.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Leftovers {
    pub(crate) useless: Vec<String>,
    pub(crate) unknown: Vec<String>,
}

/// Looks for files that the list does not name. Only who has the folder locked may ask.
pub(crate) fn leftovers(connection: &Connection, days: &mut Days) -> rusqlite::Result<Leftovers> {
    days.list(connection)?;
    let files = days.files();
    let is_live = |name: &String| files.iter().any(|file| file.name == *name);
    let dir = days.dir().to_owned();
    let names = folder::names(&dir).map_err(|error| days.unwritable(&dir, error))?;
    let mut leftovers = Leftovers::default();
    for name in names.into_iter().filter(|name| !is_live(name)) {
        let is_useless = name.ends_with(UNFINISHED)
            || is_left_over(connection, &name)?
            || (is_day(&name) && is_useless(connection, days, &name)?);
        if is_useless {
            leftovers.useless.push(name);
        } else if is_day(&name) {
            leftovers.unknown.push(name);
        }
    }
    Ok(leftovers)
}

/// Removes files. Needs an open transaction, so that nobody who copies the store misses them.
pub(crate) fn remove(days: &Days, names: &[String]) -> rusqlite::Result<()> {
    for name in names {
        let removed = folder::remove(days.dir(), name);
        removed.map_err(|error| days.unwritable(&days.dir().join(name), error))?;
    }
    Ok(())
}

/// Whether all requests of a file that is not named are elsewhere, or have gone with their day.
fn is_useless(connection: &Connection, days: &mut Days, name: &str) -> rusqlite::Result<bool> {
    let handle = File::open(days.dir().join(name)).map_err(ReadError::Read);
    // What cannot be read may have something that is needed.
    let Ok(file) = handle.and_then(DayFile::open) else { return Ok(false) };
    let Some(day) = first_of(file.footer().day) else { return Ok(false) };
    for live in days.files().iter().filter(|live| live.day == day) {
        let Ok(live) = days.open(live) else { return Ok(false) };
        if live.footer().replaces.iter().any(|replaced| replaced == name) {
            return Ok(true);
        }
    }
    let gone = Gone::read(connection)?;
    let mut scan = file.scan(RowFilter::default());
    let mut is_there = connection.prepare_cached(IS_THERE)?;
    loop {
        let Ok(row) = scan.next_row() else { return Ok(false) };
        let Some(row) = row else { return Ok(true) };
        let (at, id) = (row.record.started_at.as_microsecond(), row.record.id);
        if gone.has(at, row.place) {
            continue;
        }
        let found = is_there.query_row((at, id.0.as_bytes()), |_| Ok(())).optional()?;
        let is_sealed = |days: &mut Days| {
            // So may what has requests of the same time.
            known::sealed(days, std::iter::once((at, id))).is_ok_and(|known| !known.is_empty())
        };
        if found.is_none() && !is_sealed(days) {
            return Ok(false);
        }
    }
}
