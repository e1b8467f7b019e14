//! Requests in order of admission, from the tables and from the files.

use std::cmp::Reverse;
use std::ops::ControlFlow;

use jiff::Timestamp;
use rusqlite::Connection;
use taximeter_billing::Period;
use taximeter_columnar::RowFilter;
use taximeter_database::database::{AdmissionKey, Filter, Written};
use taximeter_database::post::Post;
use taximeter_ledger::Record;

use super::list::LiveFile;
use super::open::Days;
use super::window::Window;
use crate::sqlite::ask::{self, KeyedRow, unreadable};

/// Most requests of a day that are read ahead for the next pages, and fewest of one file. The order of
/// a file is another one, so that each reading looks at all tenants.
const WINDOW_MAX: usize = 16 << 10;
const WINDOW_MIN: usize = 64;
/// So many times longer is the next reading of who goes on.
const WINDOW_GROWTH: usize = 4;
/// Requests that are read at once for who wants all.
const PAGE: u32 = 512;

/// The first `limit` requests from `start` on.
fn page(
    connection: &Connection,
    days: &mut Days,
    (filter, newest): (&Filter, i64),
    start: &AdmissionKey,
    limit: u32,
) -> rusqlite::Result<Vec<KeyedRow>> {
    let mut rows = ask::rows(connection, filter, newest, start, limit)?;
    let limit = limit as usize;
    // What is behind a full page is not asked for.
    let last = rows.last().filter(|_| rows.len() == limit).map(|row| row.key.at);
    let to = filter.before().min(last.map_or(i64::MAX, |last| last.saturating_add(1)));
    let files = days.between(filter.since().max(start.at), to);
    let mut found = 0;
    for of_day in files.chunk_by(|a, b| a.day == b.day) {
        let (mut start, mut is_end) = (start.clone(), false);
        while found < limit && !is_end {
            let window = window(days, filter, of_day, &start, limit)?;
            let first = window.rows.partition_point(|row| row.key < start);
            let rest = window.rows.get(first..).unwrap_or_default();
            let taken = rest.get(..limit - found).unwrap_or(rest);
            found += taken.len();
            rows.extend_from_slice(taken);
            match &window.until {
                Some(until) => start = until.clone(),
                None => is_end = true,
            }
        }
    }
    rows.sort_by(|a, b| a.key.cmp(&b.key));
    rows.truncate(limit);
    Ok(rows)
}

/// The requests of the files of a day from `start` on: some, at least.
fn window<'d>(
    days: &'d mut Days,
    filter: &Filter,
    files: &[LiveFile],
    start: &AdmissionKey,
    limit: usize,
) -> rusqlite::Result<&'d Window> {
    let day = files.first().map_or(0, |file| file.day);
    let known = days.window.take();
    let window = match known {
        Some(known) if known.has(filter, day, start) => known,
        known => {
            let before = known.filter(|known| known.is_of(filter, day));
            let goes_on = before.filter(|known| known.until.as_ref() == Some(start));
            let size = goes_on.map_or(limit, |known| known.size.saturating_mul(WINDOW_GROWTH));
            read(days, filter, files, start, size.min(WINDOW_MAX))?
        }
    };
    Ok(days.window.insert(window))
}

fn read(
    days: &mut Days,
    filter: &Filter,
    files: &[LiveFile],
    start: &AdmissionKey,
    size: usize,
) -> rusqlite::Result<Window> {
    let day = files.first().map_or(0, |file| file.day);
    let each = (size / files.len().max(1)).max(WINDOW_MIN);
    let rows_of = row_filter(filter, filter.since().max(start.at), filter.before());
    let (mut rows, mut until) = (Vec::new(), None::<AdmissionKey>);
    for file in files {
        let (opened, before) = (days.open(file)?, rows.len());
        let shown = opened.first(&rows_of, Some(start), each, &mut |key, row| {
            rows.push(KeyedRow {
                key: key.clone(),
                place: row.place,
                payload: row.payload.to_vec(),
            });
        });
        shown.map_err(|error| days.fault(&file.name, error))?;
        if rows.len() - before == each {
            let end = rows.last().map(|row| row.key.clone().next());
            until = match (until, end) {
                (Some(a), Some(b)) => Some(a.min(b)),
                (a, b) => a.or(b),
            };
        }
    }
    if let Some(until) = &until {
        rows.retain(|row| row.key < *until);
    }
    rows.sort_by(|a, b| a.key.cmp(&b.key));
    Ok(Window { filter: filter.clone(), day, from: start.clone(), until, rows, size })
}

/// See [`Database::written`](taximeter_database::database::Database::written).
pub(in crate::sqlite) fn written(
    connection: &Connection,
    days: &mut Days,
    asked: (&Filter, i64),
    (start, limit): (&AdmissionKey, u32),
    written: &mut Written,
) -> rusqlite::Result<Option<AdmissionKey>> {
    let rows = page(connection, days, asked, start, limit)?;
    written.clear();
    rows.iter().for_each(|row| written.push(row.place, &row.payload));
    let is_full = rows.len() == limit as usize;
    Ok(rows.into_iter().next_back().filter(|_| is_full).map(|row| row.key.next()))
}

/// See [`Database::admitted`](taximeter_database::database::Database::admitted).
pub(in crate::sqlite) fn admitted(
    connection: &Connection,
    days: &mut Days,
    asked: (&Filter, i64),
    start: &AdmissionKey,
    limit: u32,
) -> rusqlite::Result<Vec<(AdmissionKey, Record)>> {
    page(connection, days, asked, start, limit)?.into_iter().map(decoded).collect()
}

/// See [`Database::admitted_before`](taximeter_database::database::Database::admitted_before).
pub(in crate::sqlite) fn admitted_before(
    connection: &Connection,
    days: &mut Days,
    (filter, newest): (&Filter, i64),
    end: &AdmissionKey,
    limit: u32,
) -> rusqlite::Result<Vec<(AdmissionKey, Record)>> {
    let mut rows = ask::rows_before(connection, filter, newest, end, limit)?;
    let limit = limit as usize;
    let last = rows.last().filter(|_| rows.len() == limit).map(|row| row.key.at);
    let from = filter.since().max(last.unwrap_or(i64::MIN));
    let to = filter.before().min(end.at.saturating_add(1));
    let rows_of = row_filter(filter, from, to);
    let files = days.between(from, to);
    let of_days: Vec<_> = files.chunk_by(|a, b| a.day == b.day).collect();
    let mut found = 0;
    for of_day in of_days.into_iter().rev() {
        if found >= limit {
            break;
        }
        for file in of_day {
            let opened = days.open(file)?;
            let shown = opened.last(&rows_of, Some(end), limit, &mut |key, row| {
                found += 1;
                rows.push(KeyedRow {
                    key: key.clone(),
                    place: row.place,
                    payload: row.payload.to_vec(),
                });
            });
            shown.map_err(|error| days.fault(&file.name, error))?;
        }
    }
    rows.sort_by(|a, b| Reverse(&a.key).cmp(&Reverse(&b.key)));
    rows.truncate(limit);
    rows.into_iter().map(decoded).collect()
}

/// See [`Database::posts`](taximeter_database::database::Database::posts).
pub(in crate::sqlite) fn posts(
    connection: &Connection,
    days: &mut Days,
    period: Period,
    tenant: Option<&str>,
    visit: &mut dyn FnMut(&Post<'_>) -> ControlFlow<()>,
) -> rusqlite::Result<()> {
    let filter = filter_of(period, tenant);
    if days.between(filter.since(), filter.before()).is_empty() {
        return ask::posts(connection, period, tenant, visit);
    }
    let mut start = AdmissionKey { at: filter.since(), id: Vec::new() };
    loop {
        let rows = page(connection, days, (&filter, i64::MAX), &start, PAGE)?;
        for row in &rows {
            let post = Post::read(row.place, &row.payload).map_err(|e| unreadable(2, e))?;
            if visit(&post).is_break() {
                return Ok(());
            }
        }
        let is_full = rows.len() == PAGE as usize;
        let Some(last) = rows.into_iter().next_back().filter(|_| is_full) else { return Ok(()) };
        start = last.key.next();
    }
}

pub(super) fn filter_of(period: Period, tenant: Option<&str>) -> Filter {
    let (from, to) = (Some(period.from()), Some(period.to()));
    Filter { tenant: tenant.map(str::to_owned), from, to }
}

/// The rows of a file that a filter takes, from `from` to before `to`.
pub(super) fn row_filter(filter: &Filter, from: i64, to: i64) -> RowFilter {
    // What is no time is before or behind all times.
    let time = |at| Timestamp::from_microsecond(at).ok();
    RowFilter { tenant: filter.tenant.clone(), from: time(from), to: time(to) }
}

fn decoded(row: KeyedRow) -> rusqlite::Result<(AdmissionKey, Record)> {
    let record = Record::decode(row.place.seq, &row.payload);
    Ok((row.key, record.map_err(|error| unreadable(2, error))?))
}
