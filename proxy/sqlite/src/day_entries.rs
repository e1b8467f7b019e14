//! Which entries the requests of a day are of, wherever they are.

use std::collections::BTreeMap;

use rusqlite::{Connection, params};
use taximeter_database::day::DAY_MICROS;
use taximeter_ledger::LedgerId;
use uuid::Uuid;

use super::ask::{bytes, unreadable};
use super::days::Days;
use super::gone;

const LEDGERS: &str = "
    SELECT
        (SELECT ledgers.ledger FROM ledgers WHERE first <= number ORDER BY first DESC LIMIT 1) AS ledger,
        max(seq), count(*)
    FROM requests
    WHERE started_at >= ?1 AND started_at < ?2
    GROUP BY 1";

/// The requests of a day.
#[derive(Debug, Default)]
pub(super) struct DayEntries {
    /// How many there are.
    pub(super) records: u64,
    /// The last entry of one, by ledger.
    pub(super) last: BTreeMap<LedgerId, u64>,
}

impl DayEntries {
    /// Those that are in the tables and in files, and those that have gone. Needs an open transaction, as of
    /// which the files are listed.
    pub(super) fn of(connection: &Connection, days: &mut Days, day: i64) -> rusqlite::Result<Self> {
        let mut entries = Self::default();
        if let Some(gone) = gone::of_day(connection, day)? {
            entries.records += gone.requests;
            gone.ledgers.iter().for_each(|(ledger, last)| entries.add(*ledger, *last));
        }
        for file in days.files().iter().filter(|file| file.day == day) {
            entries.records += file.requests;
            for range in &days.open(file)?.footer().ledgers {
                entries.add(range.ledger, range.last);
            }
        }
        let mut query = connection.prepare_cached(LEDGERS)?;
        let mut rows = query.query(params![day, day.saturating_add(DAY_MICROS)])?;
        while let Some(row) = rows.next()? {
            let ledger = Uuid::from_slice(bytes(row, 0)?).map_err(|error| unreadable(0, error))?;
            entries.add(LedgerId(ledger), row.get(1).map(i64::cast_unsigned)?);
            entries.records += row.get(2).map(i64::cast_unsigned)?;
        }
        Ok(entries)
    }

    fn add(&mut self, ledger: LedgerId, last: u64) {
        let known = self.last.entry(ledger).or_default();
        *known = last.max(*known);
    }
}
