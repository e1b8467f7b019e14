//! Adds what is new to the sums per hour. `hours` reads them.

use std::collections::BTreeMap;

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, Statement, params};
use taximeter_billing::{Hour, HourKey, LineKey, RunningTotals};
use taximeter_database::batch::{FormHour, NewHours};
use taximeter_database::forms::Form;
use taximeter_database::granularity::Numbered;

use super::hours::numbered;
use super::known::Known;
use super::sessions;

const COMBINATION: &str = "SELECT number FROM combinations WHERE dimensions = ?1";
const ADD_COMBINATION: &str = "INSERT INTO combinations VALUES (NULL, ?1, ?2)";
const LINE_NUMBER: &str = "SELECT number FROM lines WHERE line = ?1";
const ADD_LINE: &str = "INSERT INTO lines VALUES (NULL, ?1)";

const LAST_PART: &str = "
    SELECT requests, input_tokens, cache_read_input_tokens, output_tokens, reasoning_output_tokens,
        cost, list_cost, unknown_cost_requests, counted_requests, unknown_usage_requests,
        quantities, part
    FROM hours
    WHERE hour = ?1 AND combination = ?2
    ORDER BY part DESC
    LIMIT 1";
const SET_PART: &str = "
    INSERT OR REPLACE INTO hours VALUES
        (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)";

/// Sums by hour and combination. In the order of the table, so that new rows go behind the others.
#[derive(Default)]
struct NewSums(BTreeMap<(i64, i64), Vec<Numbered>>);

impl NewSums {
    fn add(&mut self, hour: Timestamp, combination: i64, sum: Numbered) {
        let parts = self.0.entry((hour.as_microsecond(), combination)).or_default();
        if parts.last_mut().and_then(|last| last.add(&sum)).is_none() {
            parts.push(sum);
        }
    }
}

/// Adds `added` to the hours and to the sessions that are here. Needs an open transaction.
pub(super) fn add(
    connection: &Connection,
    known: &mut Known,
    mut added: NewHours,
) -> rusqlite::Result<()> {
    sessions::add(connection, std::mem::take(&mut added.sessions))?;
    let mut sums = NewSums::default();
    let (running, mut others) = added.split();
    for (key, parts) in others.take() {
        let hour = key.hour;
        let combination = known.combination(key, |key| combination(connection, key))?;
        for part in parts {
            sums.add(hour, combination, with_numbers(connection, known, part)?);
        }
    }
    for FormHour { form, first, running } in running {
        let rows = match known.form(&form).sums.take() {
            Some(rows) => rows,
            None => sums_of(connection, known, &form, first)?,
        };
        let (combination, lines) = &rows;
        let (totals, rest) = running.totals(&form.lines);
        for RunningTotals { sums: total, quantities } in std::iter::once(totals).chain(rest) {
            let quantities = lines.iter().copied().zip(quantities).collect();
            sums.add(first, *combination, Numbered { sums: total, quantities });
        }
        known.form(&form).sums = Some(rows);
    }
    write_all(connection, known, sums)
}

/// The numbers of the combination and of the lines of a form's sums; new ones for what is new.
fn sums_of(
    connection: &Connection,
    known: &mut Known,
    form: &Form,
    at: Timestamp,
) -> rusqlite::Result<(i64, Vec<i64>)> {
    let combination = known.combination(form.key_in(at), |key| combination(connection, key))?;
    let lines = form.lines.keys().iter().map(|line| line_number(connection, known, line));
    Ok((combination, lines.collect::<rusqlite::Result<_>>()?))
}

/// Adds sums to the last part of each hour that is here, or behind it.
fn write_all(connection: &Connection, known: &mut Known, sums: NewSums) -> rusqlite::Result<()> {
    let mut ask = connection.prepare_cached(LAST_PART)?;
    let mut set = connection.prepare_cached(SET_PART)?;
    for ((hour, combination), parts) in sums.0 {
        for added in parts {
            let last = match known.parts.remove(&(hour, combination)) {
                None => last_part(&mut ask, hour, combination)?,
                last => last,
            };
            let (part, sum) = match last {
                None => (0, added),
                Some((part, mut sum)) => match sum.add(&added) {
                    Some(()) => (part, sum),
                    None => (part + 1, added),
                },
            };
            write(&mut set, (hour, combination, part), &sum)?;
            known.parts.insert((hour, combination), (part, sum));
        }
    }
    Ok(())
}

fn last_part(
    ask: &mut Statement<'_>,
    hour: i64,
    combination: i64,
) -> rusqlite::Result<Option<(i64, Numbered)>> {
    ask.query_row((hour, combination), |row| Ok((row.get(11)?, numbered(row)?))).optional()
}

/// An hour with numbers in place of its lines; new ones for new lines.
fn with_numbers(
    connection: &Connection,
    known: &mut Known,
    hour: Hour,
) -> rusqlite::Result<Numbered> {
    let mut numbered = Numbered { sums: hour.sums, quantities: Vec::new() };
    for (line, quantity) in hour.lines {
        numbered.quantities.push((line_number(connection, known, &line)?, quantity));
    }
    Ok(numbered)
}

/// The number of a line; a new one when it is new.
fn line_number(
    connection: &Connection,
    known: &mut Known,
    line: &LineKey,
) -> rusqlite::Result<i64> {
    if let Some(number) = known.lines.get(line) {
        return Ok(*number);
    }
    let json = json(line)?;
    let number = match number(connection, LINE_NUMBER, &json)? {
        Some(number) => number,
        None => connection.prepare_cached(ADD_LINE)?.insert([&json])?,
    };
    known.lines.insert(line.clone(), number);
    Ok(number)
}

fn write(
    set: &mut Statement<'_>,
    (hour, combination, part): (i64, i64, i64),
    sum: &Numbered,
) -> rusqlite::Result<()> {
    let sums = &sum.sums;
    let cost = sums.cost.map(|cost| cost.to_string());
    // Most are alike, and writing one costs as much as half of the rest.
    let list_cost = match sums.list_cost {
        list_cost if list_cost == sums.cost => cost.clone(),
        list_cost => list_cost.map(|cost| cost.to_string()),
    };
    set.execute(params![
        hour,
        combination,
        part,
        sums.requests.cast_signed(),
        sums.input_tokens.map(u64::cast_signed),
        sums.cache_read_input_tokens.map(u64::cast_signed),
        sums.output_tokens.map(u64::cast_signed),
        sums.reasoning_output_tokens.map(u64::cast_signed),
        cost,
        list_cost,
        sums.unknown_cost_requests,
        sums.counted_requests.cast_signed(),
        sums.unknown_usage_requests,
        sum.quantities_json(),
    ])?;
    Ok(())
}

fn combination(connection: &Connection, key: &HourKey) -> rusqlite::Result<i64> {
    let dimensions = json(key)?;
    let found = number(connection, COMBINATION, &dimensions)?;
    found.map_or_else(
        || connection.prepare_cached(ADD_COMBINATION)?.insert((key.tenant.as_str(), &dimensions)),
        Ok,
    )
}

fn number(connection: &Connection, question: &str, json: &str) -> rusqlite::Result<Option<i64>> {
    connection.prepare_cached(question)?.query_row([json], |row| row.get(0)).optional()
}

fn json(value: &impl serde::Serialize) -> rusqlite::Result<String> {
    serde_json::to_string(value).map_err(unwritable)
}

fn unwritable(error: serde_json::Error) -> rusqlite::Error {
    rusqlite::Error::ToSqlConversionFailure(error.into())
}
