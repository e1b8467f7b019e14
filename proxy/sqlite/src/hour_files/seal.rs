//! Writes the hours of a day to a file, and takes them out of the table.
//!
//! The file is whole and has been read again before a row leaves, and none leaves that has changed
//! since it was read.

use std::fs::File;
use std::io::BufWriter;

use jiff::Timestamp;
use rusqlite::Connection;
use rusqlite::types::ValueRef;
use sha2::{Digest as _, Sha256};
use taximeter_billing::{
    Hour, HourKey, HoursCover, HoursFooter, HoursWriter, JournalEnd, check_hours,
};
use taximeter_columnar::{ReadError, Sealed, WriteError};
use taximeter_database::day::{DAY_MICROS, date_of, day_of};
use taximeter_journal::{CORRECTIONS, REQUESTS};

use super::covers::Covers;
use super::folder;
use super::list::{self, LiveHours};
use super::open::{HourFiles, unwritable};
use crate::ask;
use crate::day_entries::DayEntries;
use crate::days::{Days, Interrupt, NewFile};
use crate::hours::{self, HourRows, Lines};

const NEXT: &str = "SELECT min(hour) FROM hours WHERE hour >= ?1 AND hour < ?2";
const ROWS: &str = "
    SELECT * FROM hours WHERE hour >= ?1 AND hour < ?2 ORDER BY hour, combination, part";
const LEAVE: &str = "DELETE FROM hours WHERE hour >= ?1 AND hour < ?2";
const COUNT_CORRECTIONS: &str = "
    INSERT OR IGNORE INTO counted_corrections
    SELECT id FROM corrections WHERE started_at >= ?1 AND started_at < ?2 AND waiting = 0";

/// Which hours are sealed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HourSealing<'a> {
    /// The gateway whose store it is.
    pub(crate) gateway: &'a str,
    /// First instant of the day, in microseconds since 1970.
    pub(crate) day: i64,
}

/// A file that has hours which are still in the table.
#[derive(Debug)]
pub(crate) struct HourPart {
    pub(crate) file: LiveHours,
    day: i64,
    rows: Rows,
}

/// What a table has of a day.
#[derive(Debug, PartialEq, Eq)]
struct Rows {
    digest: [u8; 32],
    count: u64,
    /// Another one if somebody built the tables anew.
    schema: i64,
}

/// The days from `from` to before `to` that have hours in the table and none in a file.
pub(crate) fn old_days(connection: &Connection, to: i64) -> rusqlite::Result<Vec<i64>> {
    let covers = Covers::read(connection)?;
    let mut next = connection.prepare_cached(NEXT)?;
    let (mut days, mut from) = (Vec::new(), i64::MIN);
    while let Some(hour) = next.query_row((from, to), |row| row.get::<_, Option<i64>>(0))? {
        let day = day_of(hour);
        if covers.of_day(day).is_none() {
            days.push(day);
        }
        from = day.saturating_add(DAY_MICROS);
    }
    Ok(days)
}

/// Whether a file has hours of a day.
pub(crate) fn has_day(connection: &Connection, day: i64) -> rusqlite::Result<bool> {
    Ok(Covers::read(connection)?.of_day(day).is_some())
}

/// Whether the table has hours of a day.
pub(crate) fn are_left(connection: &Connection, day: i64) -> rusqlite::Result<bool> {
    let mut next = connection.prepare_cached(NEXT)?;
    let end = day.saturating_add(DAY_MICROS);
    next.query_row((day, end), |row| Ok(row.get::<_, Option<i64>>(0)?.is_some()))
}

/// Writes a file of the hours of a day that are in the table. `None` if there are none, or if `go_on`
/// says no. Needs an open transaction, as of which the files are listed.
pub(crate) fn seal(
    connection: &Connection,
    days: &mut Days,
    files: &mut HourFiles,
    sealing: HourSealing<'_>,
    go_on: &Interrupt<'_>,
) -> rusqlite::Result<Option<HourPart>> {
    let HourSealing { gateway, day, .. } = sealing;
    if !are_left(connection, day)? || !go_on() {
        return Ok(None);
    }
    let (month, _) = folder::month_of(day);
    let dir = files.dir().to_owned();
    folder::make(&dir).map_err(|error| unwritable(&dir, error))?;
    let name = folder::day_name(day, &files.taken(month)?);
    let path = dir.join(&name);
    let covers = vec![cover(connection, days, &dir, sealing)?];
    let (new, out) = NewFile::begin(&dir, &name).map_err(|error| unwritable(&path, error))?;
    let writer = HoursWriter::new(out, gateway, covers, Vec::new());
    let mut writer = writer.map_err(|error| unwritable(&path, error))?;
    each_hour(connection, day, &mut |key, hour| {
        writer.add(key, hour).map_err(|error| unwritable(&path, error))
    })?;
    let file = finish(files, &new, writer, (name, month))?;
    let rows = rows_of(connection, day)?;
    if !go_on() {
        return Ok(None);
    }
    new.name().map_err(|error| unwritable(&path, error))?;
    Ok(Some(HourPart { file, day, rows }))
}

/// Names the file, and lets its hours leave. Needs an open transaction.
pub(crate) fn leave(connection: &Connection, part: &HourPart) -> rusqlite::Result<bool> {
    let HourPart { file, day, rows } = part;
    if rows_of(connection, *day)? != *rows {
        return Ok(false);
    }
    let end = day.saturating_add(DAY_MICROS);
    connection.execute(COUNT_CORRECTIONS, (day, end))?;
    connection.execute(LEAVE, (day, end))?;
    list::add(connection, file)?;
    Ok(true)
}

/// Ends a file and reads it again. It has no name yet.
pub(super) fn finish(
    files: &HourFiles,
    new: &NewFile,
    writer: HoursWriter<BufWriter<File>>,
    (name, month): (String, i64),
) -> rusqlite::Result<LiveHours> {
    let path = files.dir().join(&name);
    let sealed = writer.finish().map_err(|error: WriteError| unwritable(&path, error))?;
    let Sealed { out, bytes, sha256 } = sealed.file;
    NewFile::keep(out).map_err(|error| unwritable(&path, error))?;
    let opened = new.open().map_err(ReadError::Read);
    let findings = opened.and_then(check_hours).map_err(|error| files.fault(&name, error))?;
    if let Some(finding) = findings.into_iter().next() {
        let (part, what) = (finding.part, finding.what);
        return Err(files.fault(&name, ReadError::Damaged { part, what }));
    }
    Ok(described(name, month, (bytes, sha256), sealed.footer))
}

/// What the table says about a file that is written whole.
pub(super) fn described(
    name: String,
    month: i64,
    (bytes, sha256): (u64, [u8; 32]),
    footer: HoursFooter,
) -> LiveHours {
    let micros = |hour: Option<Timestamp>| hour.map_or(month, Timestamp::as_microsecond);
    let (first, last) = (micros(footer.first), micros(footer.last));
    let HoursFooter { rows, covers, .. } = footer;
    let (number, is_adopted) = (0, false);
    LiveHours { number, name, month, first, last, rows, bytes, sha256, covers, is_adopted }
}

/// Shows the hours of a day in the order of their keys.
fn each_hour(
    connection: &Connection,
    day: i64,
    visit: &mut dyn FnMut(&HourKey, &Hour) -> rusqlite::Result<()>,
) -> rusqlite::Result<()> {
    let mut query = hours::query(connection)?;
    let mut rows = HourRows::begin(&mut query, (day, day.saturating_add(DAY_MICROS)), None)?;
    let (mut lines, mut of_hour) = (Lines::default(), Vec::<(HourKey, Hour)>::new());
    let mut show = |of_hour: &mut Vec<(HourKey, Hour)>| {
        of_hour.sort_by(|(a, _), (b, _)| a.cmp(b));
        of_hour.drain(..).try_for_each(|(key, hour)| visit(&key, &hour))
    };
    while let Some((hour, combination, row)) = rows.next()? {
        if of_hour.last().is_some_and(|(key, _)| key.hour != hour) {
            show(&mut of_hour)?;
        }
        let key = HourKey { hour, ..hours::dimensions(connection, combination)? };
        of_hour.push((key, lines.hour(connection, row)?));
    }
    show(&mut of_hour)
}

fn rows_of(connection: &Connection, day: i64) -> rusqlite::Result<Rows> {
    let mut query = connection.prepare_cached(ROWS)?;
    let columns = query.column_count();
    let mut rows = query.query((day, day.saturating_add(DAY_MICROS)))?;
    let (mut digest, mut count) = (Sha256::new(), 0);
    while let Some(row) = rows.next()? {
        count += 1;
        for column in 0..columns {
            match row.get_ref(column)? {
                ValueRef::Null => digest.update([0]),
                ValueRef::Integer(number) => digest.update(number.to_le_bytes()),
                ValueRef::Real(number) => digest.update(number.to_le_bytes()),
                ValueRef::Text(bytes) | ValueRef::Blob(bytes) => {
                    digest.update((bytes.len() as u64).to_le_bytes());
                    digest.update(bytes);
                }
            }
        }
    }
    let schema = connection.pragma_query_value(None, "schema_version", |row| row.get(0))?;
    Ok(Rows { digest: digest.finalize().into(), count, schema })
}

/// What the hours of a day are made of.
fn cover(
    connection: &Connection,
    days: &mut Days,
    dir: &std::path::Path,
    sealing: HourSealing<'_>,
) -> rusqlite::Result<HoursCover> {
    let HourSealing { day, .. } = sealing;
    let DayEntries { records, last } = DayEntries::of(connection, days, day)?;
    let mut cover =
        HoursCover { day: date_of(day), records, requests: last, ..HoursCover::default() };
    let data_dir = dir.parent().unwrap_or(dir);
    for journal in [REQUESTS, CORRECTIONS] {
        let Some(end) = ask::cursor(connection, journal)? else { continue };
        let of_journal = taximeter_journal::journal_dir(data_dir, journal);
        let identity = of_journal.map(|dir| taximeter_journal::identity(&dir)).transpose();
        let identity = identity.map_err(|error| unwritable(data_dir, error))?.flatten();
        let identity = identity.unwrap_or_default();
        let ledgers = std::iter::once(identity.id).chain(identity.copy_of).collect();
        cover.corrections.push(JournalEnd { journal: journal.to_owned(), ledgers, last: end.seq });
    }
    Ok(cover)
}
