//! Makes one file of the files of a month.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use jiff::{SignedDuration, Timestamp};
use rusqlite::Connection;
use taximeter_billing::{HoursCover, HoursWriter, Period};
use taximeter_database::batch::Hours;
use taximeter_database::error::StoreError;

use super::folder;
use super::list::{self, LiveHours};
use super::open::{HourFiles, unwritable};
use super::seal::finish;
use crate::ask::unreadable;
use crate::days::{self, Interrupt, NewFile};
use crate::digest::is_whole;

/// Files beside the one of a month from which on all of them become one.
const LATE_FILES_MIN: usize = 8;
const HOUR: SignedDuration = SignedDuration::from_hours(1);

/// The files of the first month that ends up to `until` and should have one file. Those of a month stay
/// as they are if one cannot be read.
pub(crate) fn due(
    files: &[LiveHours],
    until: i64,
    is_damaged: impl Fn(i64) -> bool,
) -> Option<Vec<LiveHours>> {
    files.iter().filter(|first| !is_damaged(first.month)).find_map(|first| {
        let of_month: Vec<_> = files.iter().filter(|it| it.month == first.month).cloned().collect();
        let has_whole = of_month.iter().any(|file| folder::is_month(&file.name));
        let is_due = if has_whole { of_month.len() > LATE_FILES_MIN } else { true };
        (is_due && folder::month_of(first.month).1 <= until).then_some(of_month)
    })
}

/// Writes one file that has all hours of `files`, which are of one month and are listed. `None` if
/// `go_on` says no.
pub(crate) fn merge(
    files: &mut HourFiles,
    gateway: &str,
    of_month: &[LiveHours],
    go_on: &Interrupt<'_>,
) -> rusqlite::Result<Option<LiveHours>> {
    let month = of_month.first().map_or(0, |file| file.month);
    let name = folder::month_name(month, &files.taken(month)?);
    let dir = files.dir().to_owned();
    let path = dir.join(&name);
    let (mut replaces, mut covers) = (Vec::new(), BTreeMap::<_, HoursCover>::new());
    for file in of_month {
        // What is merged goes: nobody could look at it again.
        let is_whole = is_whole(&dir.join(&file.name), file.bytes, file.sha256);
        if !is_whole.map_err(|error| files.fault(&file.name, error.into()))? {
            return Err(files.other_file(&file.name));
        }
        replaces.push(file.name.clone());
        replaces.extend_from_slice(&files.open(file)?.footer().replaces);
        for cover in &file.covers {
            let known = covers.entry(cover.day);
            known
                .or_insert_with(|| HoursCover { day: cover.day, ..HoursCover::default() })
                .add(cover);
        }
    }
    let covers = covers.into_values().collect();
    let (new, out) = NewFile::begin(&dir, &name).map_err(|error| unwritable(&path, error))?;
    let writer = HoursWriter::new(out, gateway, covers, replaces);
    let mut writer = writer.map_err(|error| unwritable(&path, error))?;
    let first = of_month.iter().map(|file| file.first).min().unwrap_or(0);
    let last = of_month.iter().map(|file| file.last).max().unwrap_or(0);
    let time = |at| Timestamp::from_microsecond(at).map_err(|error| unreadable(0, error));
    let (mut hour, last) = (time(first)?, time(last)?);
    while hour <= last {
        if !go_on() {
            return Ok(None);
        }
        let end = hour.saturating_add(HOUR).unwrap_or(Timestamp::MAX);
        for (key, parts) in of_hour(files, of_month, (hour, end))?.take() {
            for part in parts {
                writer.add(&key, &part).map_err(|error| unwritable(&path, error))?;
            }
        }
        hour = end;
    }
    let mut file = finish(files, &new, writer, (name, month))?;
    file.is_adopted = of_month.iter().any(|file| file.is_adopted);
    if !go_on() {
        return Ok(None);
    }
    new.name().map_err(|error| unwritable(&path, error))?;
    Ok(Some(file))
}

/// The rows of some files in one hour.
pub(super) fn of_hour(
    files: &mut HourFiles,
    of_month: &[LiveHours],
    (hour, end): (Timestamp, Timestamp),
) -> rusqlite::Result<Hours> {
    let mut hours = Hours::default();
    let period = Period::new(hour, end).map_err(|error| unreadable(0, error))?;
    let at = hour.as_microsecond();
    for file in of_month.iter().filter(|file| file.first <= at && at <= file.last) {
        let scanned = files.open(file)?.scan(Some(period), None, &mut |key, hour| {
            hours.add(key, hour);
            ControlFlow::Continue(())
        });
        scanned.map_err(|error| files.fault(&file.name, error))?;
    }
    Ok(hours)
}

/// Names the merged file in place of `files`. Needs an open transaction.
pub(crate) fn replace(
    connection: &Connection,
    files: &[LiveHours],
    by: &LiveHours,
) -> rusqlite::Result<()> {
    for file in files {
        if !list::remove(connection, &file.name)? {
            let source = "a file of its hours was replaced meanwhile".into();
            let store = file.name.clone();
            return Err(days::lifted(StoreError::Unavailable { store, source }));
        }
    }
    list::add(connection, by)
}
