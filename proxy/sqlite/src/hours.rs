//! Reads the sums per hour. `new_hours` writes them.

use std::collections::{BTreeMap, HashMap};

use jiff::Timestamp;
use rusqlite::{CachedStatement, Connection, Row, Rows, Statement, params};
use taximeter_billing::{Hour, HourKey, LineKey, Sums};
use taximeter_database::granularity::Numbered;

use super::ask::{money, tokens, unreadable};

const LINE: &str = "SELECT line FROM lines WHERE number = ?1";

/// Hours are picked by time, and come in order.
const HOURS: &str = "
    SELECT requests, input_tokens, cache_read_input_tokens, output_tokens, reasoning_output_tokens,
        cost, list_cost, unknown_cost_requests, counted_requests, unknown_usage_requests,
        quantities, hour, combination
    FROM hours
    WHERE hour >= ?1 AND hour < ?2
        AND (?3 IS NULL OR combination IN (SELECT number FROM combinations WHERE tenant = ?3))
    ORDER BY hour, combination, part";
const DIMENSIONS: &str = "SELECT dimensions FROM combinations WHERE number = ?1";

/// What the numbers of lines stand for, as far as they were met since the question began: another
/// process may number them anew.
#[derive(Default)]
pub(super) struct Lines(HashMap<i64, LineKey>);

/// A row: its hour, the number of its combination, and its sums.
pub(super) type NumberedHour = (Timestamp, i64, Numbered);

/// Rows of whole hours, in order of time.
pub(super) struct HourRows<'a> {
    rows: Rows<'a>,
    next: Option<NumberedHour>,
}

/// The question for [`HourRows`].
pub(super) fn query(connection: &Connection) -> rusqlite::Result<CachedStatement<'_>> {
    connection.prepare_cached(HOURS)
}

impl<'a> HourRows<'a> {
    /// The hours from one time to before another one, of one tenant or of all.
    pub(super) fn begin(
        query: &'a mut Statement<'_>,
        (from, to): (i64, i64),
        tenant: Option<&str>,
    ) -> rusqlite::Result<Self> {
        let mut rows = Self { rows: query.query(params![from, to, tenant])?, next: None };
        rows.read()?;
        Ok(rows)
    }

    /// The next row.
    pub(super) fn next(&mut self) -> rusqlite::Result<Option<NumberedHour>> {
        let row = self.next.take();
        if row.is_some() {
            self.read()?;
        }
        Ok(row)
    }

    /// The same if its hour is before this time.
    pub(super) fn next_before(&mut self, time: i64) -> rusqlite::Result<Option<NumberedHour>> {
        let is_before = self.next.as_ref().is_some_and(|(hour, ..)| hour.as_microsecond() < time);
        if is_before { self.next() } else { Ok(None) }
    }

    fn read(&mut self) -> rusqlite::Result<()> {
        self.next = match self.rows.next()? {
            None => None,
            Some(row) => {
                let hour = Timestamp::from_microsecond(row.get(11)?);
                let hour = hour.map_err(|error| unreadable(11, error))?;
                Some((hour, row.get(12)?, numbered(row)?))
            }
        };
        Ok(())
    }
}

/// An hour, from the first columns of `row`.
pub(super) fn numbered(row: &Row<'_>) -> rusqlite::Result<Numbered> {
    let count = |column| row.get(column).map(i64::cast_unsigned);
    let sums = Sums {
        requests: count(0)?,
        input_tokens: tokens(row, 1)?,
        cache_read_input_tokens: tokens(row, 2)?,
        output_tokens: tokens(row, 3)?,
        reasoning_output_tokens: tokens(row, 4)?,
        cost: money(row, 5)?,
        list_cost: money(row, 6)?,
        unknown_cost_requests: row.get(7)?,
        counted_requests: count(8)?,
        unknown_usage_requests: row.get(9)?,
    };
    let json = row.get_ref(10)?.as_str().map_err(|error| unreadable(10, error))?;
    Numbered::new(sums, json).map_err(|error| unreadable(10, error))
}

/// What the number of a combination stands for.
pub(super) fn dimensions(connection: &Connection, number: i64) -> rusqlite::Result<HourKey> {
    let mut query = connection.prepare_cached(DIMENSIONS)?;
    let json: String = query.query_row([number], |row| row.get(0))?;
    serde_json::from_slice(json.as_bytes()).map_err(|error| unreadable(0, error))
}

impl Lines {
    /// A row with its lines in place of their numbers.
    pub(super) fn hour(
        &mut self,
        connection: &Connection,
        row: Numbered,
    ) -> rusqlite::Result<Hour> {
        let Numbered { sums, quantities } = row;
        let mut hour = Hour { sums, lines: BTreeMap::new() };
        for (number, quantity) in quantities {
            hour.lines.insert(self.line(connection, number)?.clone(), quantity);
        }
        Ok(hour)
    }

    /// Names a line that has no number in the table.
    pub(super) fn name(&mut self, number: i64, line: LineKey) {
        self.0.insert(number, line);
    }

    /// What `number` stands for.
    fn line(&mut self, connection: &Connection, number: i64) -> rusqlite::Result<&LineKey> {
        use std::collections::hash_map::Entry;
        match self.0.entry(number) {
            Entry::Occupied(line) => Ok(line.into_mut()),
            Entry::Vacant(place) => {
                let mut query = connection.prepare_cached(LINE)?;
                let json: String = query.query_row([number], |row| row.get(0))?;
                Ok(place
                    .insert(serde_json::from_slice(json.as_bytes()).map_err(|e| unreadable(0, e))?))
            }
        }
    }
}
