//! Finds files that do not count: those that were replaced, and those whose hours never left the table
//! because the process ended.

use std::collections::BTreeSet;
use std::fs::File;
use std::ops::ControlFlow;

use jiff::{SignedDuration, Timestamp};
use rusqlite::Connection;
use taximeter_billing::{HourKey, HoursFile, Period};
use taximeter_columnar::ReadError;
use taximeter_database::granularity::Granularity;

use super::folder::is_file;
use super::open::{HourFiles, unwritable};
use super::visit::visit;
use crate::ask::unreadable;
use crate::days::{self, UNFINISHED};

/// Files that nobody needs, and those that have hours which are nowhere else. The files are listed as of
/// the open transaction. Only who seals may ask.
pub(crate) fn leftovers(
    connection: &Connection,
    files: &mut HourFiles,
) -> rusqlite::Result<(Vec<String>, Vec<String>)> {
    let listed = files.files();
    let dir = files.dir().to_owned();
    let names = days::names(&dir).map_err(|error| unwritable(&dir, error))?;
    let (mut useless, mut unknown) = (Vec::new(), Vec::new());
    for name in names.into_iter().filter(|name| listed.iter().all(|file| file.name != **name)) {
        if name.ends_with(UNFINISHED) || (is_file(&name) && is_useless(connection, files, &name)?) {
            useless.push(name);
        } else if is_file(&name) {
            unknown.push(name);
        }
    }
    Ok((useless, unknown))
}

/// Whether another file replaces a file that is not named, or all of its hours are elsewhere.
fn is_useless(
    connection: &Connection,
    files: &mut HourFiles,
    name: &str,
) -> rusqlite::Result<bool> {
    let handle = File::open(files.dir().join(name)).map_err(ReadError::Read);
    // What cannot be read may have something that is needed.
    let Ok(file) = handle.and_then(HoursFile::open) else { return Ok(false) };
    let footer = file.footer();
    let (Some(first), Some(last)) = (footer.first, footer.last) else { return Ok(true) };
    for live in files.files().iter() {
        let Ok(live) = files.open(live) else { return Ok(false) };
        if live.footer().replaces.iter().any(|replaced| replaced == name) {
            return Ok(true);
        }
    }
    let mut hour = first;
    while hour <= last {
        let end = hour.saturating_add(SignedDuration::from_hours(1)).unwrap_or(Timestamp::MAX);
        let period = Period::new(hour, end).map_err(|error| unreadable(0, error))?;
        let mut missing = BTreeSet::<HourKey>::new();
        let scanned = file.scan(Some(period), None, &mut |key, _| {
            missing.insert(key);
            ControlFlow::Continue(())
        });
        if scanned.is_err() {
            return Ok(false);
        }
        visit(connection, files, (period, None), Granularity::HOURS, &mut |key, _| {
            missing.remove(&key);
            ControlFlow::Continue(())
        })?;
        if !missing.is_empty() {
            return Ok(false);
        }
        hour = end;
    }
    Ok(true)
}
