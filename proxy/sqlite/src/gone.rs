//! Days whose details are gone: the table of them.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension as _, Row, params};
use serde::{Deserialize, Serialize};
use taximeter_collections::Gather as _;
use taximeter_database::day::{DAY_MICROS, date_of, day_of};
use taximeter_database::gone::{GoneCause, GoneDay, GoneFile};
use taximeter_ledger::{Correction, LedgerId, Place};

use super::ask::{bytes, unreadable};
use super::kept_tables;

const LIST: &str = "
    SELECT day, requests, first_at, last_at, files, ledgers, gone_at, cause
    FROM gone_days ORDER BY day";
const LAST: &str = "SELECT max(day) FROM gone_days";
const CORRECTIONS: &str = "
    SELECT correction FROM corrections WHERE started_at >= ?1 AND started_at < ?2 ORDER BY started_at";
const SET: &str = "INSERT OR REPLACE INTO gone_days VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";

/// The last entries of requests whose details are gone, by the first instant of their day and by ledger.
#[derive(Debug, Default)]
pub(super) struct Gone(BTreeMap<i64, BTreeMap<LedgerId, u64>>);

impl Gone {
    pub(super) fn read(connection: &Connection) -> rusqlite::Result<Self> {
        let days = all(connection)?.into_iter();
        Ok(Self(days.map(|row| (row.day, row.ledgers)).gather()))
    }

    /// Whether this request was here and has gone. It was admitted at `at`.
    pub(super) fn has(&self, at: i64, place: Place) -> bool {
        let last = self.0.get(&day_of(at)).and_then(|ledgers| ledgers.get(&place.ledger));
        last.is_some_and(|last| place.seq <= *last)
    }

    /// Whether the day of `at` has no details, but for requests that came late.
    pub(super) fn has_day(&self, at: i64) -> bool {
        self.0.contains_key(&day_of(at))
    }
}

/// A row of the table.
#[derive(Debug, Clone)]
pub(super) struct GoneRow {
    /// First instant of the day, in microseconds since 1970.
    pub(super) day: i64,
    pub(super) requests: u64,
    /// First and last admission, in microseconds since 1970.
    pub(super) times: (i64, i64),
    pub(super) files: Vec<FileOf>,
    pub(super) ledgers: BTreeMap<LedgerId, u64>,
    pub(super) gone_at: i64,
    pub(super) cause: GoneCause,
}

/// A file that is gone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FileOf {
    pub(super) name: String,
    pub(super) bytes: u64,
    pub(super) sha256: String,
}

impl GoneRow {
    /// The same for people.
    pub(super) fn shown(self) -> GoneDay {
        let time = |at| Timestamp::from_microsecond(at).unwrap_or_default();
        let files = self.files.into_iter();
        GoneDay {
            day: date_of(self.day),
            requests: self.requests,
            first: time(self.times.0),
            last: time(self.times.1),
            files: files
                .map(|FileOf { name, bytes, sha256 }| GoneFile { name, bytes, sha256 })
                .collect(),
            last_entries: self.ledgers,
            gone_at: time(self.gone_at),
            cause: self.cause,
        }
    }

    /// Adds what went later of the same day.
    fn add(&mut self, later: Self) {
        self.requests += later.requests;
        self.times = (self.times.0.min(later.times.0), self.times.1.max(later.times.1));
        self.files.extend(later.files);
        for (ledger, last) in later.ledgers {
            let known = self.ledgers.entry(ledger).or_default();
            *known = last.max(*known);
        }
        (self.gone_at, self.cause) = (later.gone_at, later.cause);
    }
}

/// All days, in order; none in a store that has no such table.
pub(super) fn all(connection: &Connection) -> rusqlite::Result<Vec<GoneRow>> {
    if !kept_tables::has(connection, "gone_days")? {
        return Ok(Vec::new());
    }
    connection.prepare_cached(LIST)?.query_map((), gone)?.collect()
}

/// The row of a day.
pub(super) fn of_day(connection: &Connection, day: i64) -> rusqlite::Result<Option<GoneRow>> {
    Ok(all(connection)?.into_iter().find(|row| row.day == day))
}

/// The names of the files of all days.
pub(super) fn names(connection: &Connection) -> rusqlite::Result<BTreeSet<String>> {
    let files = all(connection)?.into_iter().flat_map(|row| row.files);
    Ok(files.map(|file| file.name).collect())
}

/// The first instant with details, if any are gone.
pub(super) fn details_from(connection: &Connection) -> rusqlite::Result<Option<i64>> {
    if !kept_tables::has(connection, "gone_days")? {
        return Ok(None);
    }
    let mut last = connection.prepare_cached(LAST)?;
    let last: Option<i64> = last.query_row((), |row| row.get(0)).optional()?.flatten();
    Ok(last.map(|day| day.saturating_add(DAY_MICROS)))
}

/// Shows each correction of a request of those days.
pub(super) fn corrections(
    connection: &Connection,
    visit: &mut dyn FnMut(&Correction),
) -> rusqlite::Result<()> {
    let mut query = connection.prepare_cached(CORRECTIONS)?;
    for GoneRow { day, .. } in all(connection)? {
        let mut rows = query.query((day, day.saturating_add(DAY_MICROS)))?;
        while let Some(row) = rows.next()? {
            let correction = Correction::decode(bytes(row, 0)?);
            visit(&correction.map_err(|error| unreadable(0, error))?);
        }
    }
    Ok(())
}

/// Notes a day, or what went later of a day that is noted. Needs an open transaction.
pub(super) fn note(connection: &Connection, new: GoneRow) -> rusqlite::Result<()> {
    let row = match of_day(connection, new.day)? {
        None => new,
        Some(mut known) => {
            known.add(new);
            known
        }
    };
    connection.prepare_cached(SET)?.execute(params![
        row.day,
        row.requests.cast_signed(),
        row.times.0,
        row.times.1,
        json(&row.files)?,
        json(&row.ledgers)?,
        row.gone_at,
        row.cause.name(),
    ])?;
    Ok(())
}

fn gone(row: &Row<'_>) -> rusqlite::Result<GoneRow> {
    let text = |column| row.get_ref(column).map_err(|error| unreadable(column, error));
    let (files, ledgers) = (text(4)?.as_str()?, text(5)?.as_str()?);
    Ok(GoneRow {
        day: row.get(0)?,
        requests: row.get(1).map(i64::cast_unsigned)?,
        times: (row.get(2)?, row.get(3)?),
        files: serde_json::from_slice(files.as_bytes()).map_err(|error| unreadable(4, error))?,
        ledgers: serde_json::from_slice(ledgers.as_bytes())
            .map_err(|error| unreadable(5, error))?,
        gone_at: row.get(6)?,
        cause: GoneCause::of(text(7)?.as_str()?),
    })
}

fn json(value: &impl Serialize) -> rusqlite::Result<String> {
    serde_json::to_string(value).map_err(|e| rusqlite::Error::ToSqlConversionFailure(Box::new(e)))
}
