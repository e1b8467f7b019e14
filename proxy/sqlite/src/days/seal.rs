//! Writes requests of a day to a file, and takes them out of the tables.
//!
//! Only numbers, ids and tenants are sorted in memory. The file is whole and has been read again before
//! a request leaves.

use std::collections::HashMap;
use std::fs::File;
use std::io::BufWriter;
use std::ops::RangeInclusive;
use std::sync::Arc;

use foldhash::fast::RandomState;
use rusqlite::{Connection, params};
use taximeter_columnar::{self as columnar, DayWriter, Expected, WriteError};
use taximeter_database::day::{DAY_MICROS, date_of};
use taximeter_database::error::StoreError;
use taximeter_ledger::RequestId;
use uuid::Uuid;

use super::folder::{self, NewFile, UNFINISHED};
use super::list::{self, LiveFile};
use super::open::{Days, lifted};
use crate::ask::{self, bytes, unreadable};
use crate::ledgers::{self, Ledgers};

/// Most requests of a file: bounds the memory in which they are sorted.
pub(crate) const PART_ROWS_MAX: usize = 256 << 10;
/// After so many requests it is asked whether to go on.
const LOOK_ROWS: usize = 1024;

const KEYS: &str = "
    SELECT requests.number, started_at, id, tenant
    FROM requests CROSS JOIN forms ON forms.number = form
    WHERE started_at >= ?1 AND started_at < ?2 AND requests.number <= ?3
    ORDER BY started_at, id
    LIMIT ?4";
const REQUEST: &str = "
    SELECT requests.number, seq, id, strings, members
    FROM requests CROSS JOIN forms ON forms.number = form
    WHERE requests.number = ?1";
const LEAVE: &str = "DELETE FROM requests WHERE number BETWEEN ?1 AND ?2";

/// Asked now and then whether to go on. What was done before stays.
pub(crate) type Interrupt<'a> = dyn Fn() -> bool + 'a;

/// Which requests are sealed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sealing<'a> {
    /// The gateway whose store it is.
    pub(crate) gateway: &'a str,
    /// First instant of the day, in microseconds since 1970.
    pub(crate) day: i64,
    /// The highest number of a request that may leave.
    pub(crate) newest: i64,
    /// Most requests of the file.
    pub(crate) rows_max: usize,
}

/// A file that has requests which are still in the tables.
#[derive(Debug)]
pub(crate) struct Part {
    pub(crate) file: LiveFile,
    numbers: Vec<RangeInclusive<i64>>,
    schema: i64,
}

/// A request that is sorted.
struct Key {
    tenant: Arc<str>,
    id: RequestId,
    number: i64,
    at: i64,
}

/// Writes a file of requests of a day. `None` if there are none, or if `go_on` says no. Requests that no
/// file can have are added to `misfits`: they stay.
pub(crate) fn seal(
    connection: &Connection,
    days: &Days,
    sealing: Sealing<'_>,
    misfits: &mut u64,
    go_on: &Interrupt<'_>,
) -> rusqlite::Result<Option<Part>> {
    let Sealing { gateway, day, .. } = sealing;
    let schema = schema_of(connection)?;
    let keys = keys(connection, sealing)?;
    if keys.is_empty() || !go_on() {
        return Ok(None);
    }
    let dir = days.dir();
    let live = list::all(connection)?;
    let name = folder::part_name(dir, day, &live).map_err(|error| days.unwritable(dir, error))?;
    let path = dir.join(&name);
    let unwritable = |error: WriteError| days.unwritable(&path, error);
    let (new, out) = NewFile::begin(dir, &name).map_err(|error| days.unwritable(&path, error))?;
    let writer = DayWriter::new(out, gateway, date_of(day), Vec::new());
    let mut writer = writer.map_err(unwritable)?;
    let Some(written) = write(connection, &keys, &mut writer, go_on, &unwritable)? else {
        return Ok(None);
    };
    *misfits += written.misfits;
    if written.numbers.is_empty() {
        drop(writer);
        let removed = folder::remove(dir, &format!("{name}{UNFINISHED}"));
        removed.map_err(|error| days.unwritable(&path, error))?;
        return Ok(None);
    }
    let sealed = new.finish(writer).map_err(unwritable)?;
    let is_whole = (sealed.file.bytes, sealed.file.sha256);
    let file = list::described(name, day, written.times, is_whole, &sealed.footer);
    check(days, &new, &file, gateway)?;
    if !go_on() {
        return Ok(None);
    }
    new.name().map_err(|error| days.unwritable(&path, error))?;
    let numbers = ranges(written.numbers);
    Ok(Some(Part { file, numbers, schema }))
}

/// Names the file, and lets its requests leave. Needs an open transaction.
pub(crate) fn leave(connection: &Connection, part: &Part) -> rusqlite::Result<()> {
    // Somebody built the tables anew, and their numbers are others.
    let refuse = |why: &str| {
        let store = part.file.name.clone();
        Err(lifted(StoreError::Unavailable { store, source: why.into() }))
    };
    if schema_of(connection)? != part.schema {
        return refuse("the store was built anew meanwhile");
    }
    let last = ledgers::newest(connection)?;
    let mut gone = 0;
    let mut leave = connection.prepare_cached(LEAVE)?;
    for numbers in &part.numbers {
        gone += leave.execute(params![numbers.start(), numbers.end()])?;
    }
    if part.numbers.last().is_some_and(|numbers| numbers.contains(&last)) {
        ledgers::keep_numbers(connection, last)?;
    }
    ledgers::forget(connection)?;
    if gone as u64 != part.file.requests {
        return refuse("requests left it meanwhile");
    }
    list::add(connection, &part.file)
}

/// Compares a file that has no name yet with what was written.
pub(super) fn check(
    days: &Days,
    new: &NewFile,
    file: &LiveFile,
    gateway: &str,
) -> rusqlite::Result<()> {
    let expected = Expected {
        gateway: Some(gateway.to_owned()),
        day: Some(date_of(file.day)),
        sha256: Some(file.sha256),
    };
    let opened = new.open().map_err(columnar::ReadError::Read);
    let checked = opened.and_then(|opened| columnar::check(opened, &expected));
    let checked = checked.map_err(|error| days.fault(&file.name, error))?;
    match checked.findings.into_iter().next() {
        None => Ok(()),
        Some(columnar::Finding { part, what }) => {
            Err(days.fault(&file.name, columnar::ReadError::Damaged { part, what }))
        }
    }
}

fn schema_of(connection: &Connection) -> rusqlite::Result<i64> {
    connection.pragma_query_value(None, "schema_version", |row| row.get(0))
}

/// The requests, in the order of the file.
fn keys(connection: &Connection, sealing: Sealing<'_>) -> rusqlite::Result<Vec<Key>> {
    let Sealing { day, newest, rows_max, .. } = sealing;
    let mut tenants: HashMap<Box<str>, Arc<str>, RandomState> = HashMap::default();
    let mut query = connection.prepare_cached(KEYS)?;
    let limit = i64::try_from(rows_max.min(PART_ROWS_MAX)).unwrap_or(i64::MAX);
    let mut rows = query.query(params![day, day.saturating_add(DAY_MICROS), newest, limit])?;
    let mut keys = Vec::new();
    while let Some(row) = rows.next()? {
        let name = row.get_ref(3)?.as_str()?;
        let tenant = match tenants.get(name) {
            Some(tenant) => Arc::clone(tenant),
            None => Arc::clone(tenants.entry(name.into()).or_insert_with(|| name.into())),
        };
        let id = Uuid::from_slice(bytes(row, 2)?).map_err(|error| unreadable(2, error))?;
        keys.push(Key { tenant, id: RequestId(id), number: row.get(0)?, at: row.get(1)? });
    }
    keys.sort_unstable_by(|a, b| (&a.tenant, a.id, a.number).cmp(&(&b.tenant, b.id, b.number)));
    Ok(keys)
}

/// What a file has.
struct Contents {
    numbers: Vec<i64>,
    /// First and last admission.
    times: (i64, i64),
    misfits: u64,
}

/// `None` if `go_on` says no.
fn write(
    connection: &Connection,
    keys: &[Key],
    writer: &mut DayWriter<BufWriter<File>>,
    go_on: &Interrupt<'_>,
    unwritable: &dyn Fn(WriteError) -> rusqlite::Error,
) -> rusqlite::Result<Option<Contents>> {
    let mut contents = Contents {
        numbers: Vec::with_capacity(keys.len()),
        times: (i64::MAX, i64::MIN),
        misfits: 0,
    };
    let (mut ledgers, mut payload) = (Ledgers::new(connection), Vec::new());
    for (count, key) in keys.iter().enumerate() {
        if count % LOOK_ROWS == 0 && !go_on() {
            return Ok(None);
        }
        let mut request = connection.prepare_cached(REQUEST)?;
        let place = request.query_row([key.number], |row| {
            ask::payload(row, 2, &mut payload)?;
            ask::place(row, &mut ledgers, 0)
        })?;
        match writer.add(place, &payload) {
            Ok(()) => {}
            // It stays where it is, and those who read it there are told.
            Err(WriteError::Unreadable { .. } | WriteError::Misplaced { .. }) => {
                contents.misfits += 1;
                continue;
            }
            Err(error) => return Err(unwritable(error)),
        }
        contents.numbers.push(key.number);
        let (first, last) = contents.times;
        contents.times = (first.min(key.at), last.max(key.at));
    }
    Ok(Some(contents))
}

/// The same numbers, of which those that follow each other are together.
fn ranges(mut numbers: Vec<i64>) -> Vec<RangeInclusive<i64>> {
    numbers.sort_unstable();
    numbers
        .chunk_by(|a, b| a.checked_add(1) == Some(*b))
        .filter_map(|run| Some(*run.first()?..=*run.last()?))
        .collect()
}
