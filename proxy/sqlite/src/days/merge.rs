//! Makes one file of several of a day.

use std::fs::File;
use std::io;

use rusqlite::Connection;
use taximeter_columnar::{self as columnar, DayFile, DayWriter, MergeError};
use taximeter_database::day::date_of;
use taximeter_database::error::StoreError;

use super::folder::{self, NewFile};
use super::list::{self, LiveFile};
use super::open::{Days, lifted};
use super::seal::{Interrupt, check};
use crate::digest::is_whole;

/// Writes one file that has all requests of `files`, which are of one day. `is_final` if it will be the
/// one file of the day. `None` if `go_on` says no.
pub(crate) fn merge(
    connection: &Connection,
    days: &Days,
    gateway: &str,
    files: &[LiveFile],
    is_final: bool,
    go_on: &Interrupt<'_>,
) -> rusqlite::Result<Option<LiveFile>> {
    let dir = days.dir();
    let day = files.first().map_or(0, |file| file.day);
    let name = if is_final {
        folder::final_name(day)
    } else {
        let live = list::all(connection)?;
        folder::part_name(dir, day, &live).map_err(|error| days.unwritable(dir, error))?
    };
    let path = dir.join(&name);
    let (mut opened, mut replaces) = (Vec::new(), Vec::new());
    for file in files {
        // What is merged goes: nobody could look at it again.
        let path = dir.join(&file.name);
        let is_whole = is_whole(&path, file.bytes, file.sha256);
        if !is_whole.map_err(|error| days.fault(&file.name, error.into()))? {
            return Err(days.other_file(&file.name));
        }
        let handle = File::open(dir.join(&file.name)).map_err(columnar::ReadError::Read);
        let day = handle.and_then(DayFile::open).map_err(|e| days.fault(&file.name, e))?;
        replaces.push(file.name.clone());
        replaces.extend_from_slice(&day.footer().replaces);
        opened.push(day);
    }
    let (new, out) = NewFile::begin(dir, &name).map_err(|error| days.unwritable(&path, error))?;
    let writer = DayWriter::new(out, gateway, date_of(day), replaces);
    let mut writer = writer.map_err(|error| days.unwritable(&path, error))?;
    columnar::merge(&opened, &mut writer).map_err(|error| match error {
        MergeError::Read { file, error } => {
            let name = files.get(file).map_or(&*name, |file| &file.name);
            days.fault(name, error)
        }
        error @ MergeError::Contradiction { .. } => {
            let name = files.first().map_or(&*name, |file| &file.name);
            days.fault(name, io::Error::other(error).into())
        }
        error => days.unwritable(&path, error),
    })?;
    let sealed = new.finish(writer).map_err(|error| days.unwritable(&path, error))?;
    let first = files.iter().map(|file| file.first).min().unwrap_or(i64::MAX);
    let last = files.iter().map(|file| file.last).max().unwrap_or(i64::MIN);
    let is_whole = (sealed.file.bytes, sealed.file.sha256);
    let mut file = list::described(name, day, (first, last), is_whole, &sealed.footer);
    file.is_final = is_final;
    check(days, &new, &file, gateway)?;
    if !go_on() {
        return Ok(None);
    }
    new.name().map_err(|error| days.unwritable(&path, error))?;
    Ok(Some(file))
}

/// Names the merged file in place of `files`. Needs an open transaction.
pub(crate) fn replace(
    connection: &Connection,
    files: &[LiveFile],
    by: &LiveFile,
) -> rusqlite::Result<()> {
    for file in files {
        if !list::remove(connection, &file.name)? {
            let source = "a file of it was replaced meanwhile".into();
            let store = file.name.clone();
            return Err(lifted(StoreError::Unavailable { store, source }));
        }
    }
    list::add(connection, by)
}
