//! Requests in order of admission, from the tables and from the files.

use std::cmp::Reverse;
use std::ops::ControlFlow;

use rusqlite::Connection;
use taximeter_billing::Period;
use taximeter_database::database::{AdmissionKey, Filter, Written};
use taximeter_database::post::Post;
use taximeter_ledger::Record;

use super::open::Days;
use super::read_ahead::window;
use super::window::{OfDay, row_filter};
use crate::ask::{self, KeyedRow, unreadable};

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
        let asked = OfDay { filter, files: of_day };
        let (mut start, mut is_end) = (start.clone(), false);
        while found < limit && !is_end {
            let window = window(days, asked, &start, limit)?;
            let taken = window.rows(&start, limit - found);
            found += taken.len();
            rows.extend(taken);
            match &window.until {
                Some(until) => start = until.clone(),
                None => is_end = true,
            }
        }
    }
    taximeter_collections::sort_by(&mut rows, |a, b| a.key.cmp(&b.key));
    rows.truncate(limit);
    Ok(rows)
}

/// See [`Database::written`](taximeter_database::database::Database::written).
pub(crate) fn written(
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
pub(crate) fn admitted(
    connection: &Connection,
    days: &mut Days,
    asked: (&Filter, i64),
    start: &AdmissionKey,
    limit: u32,
) -> rusqlite::Result<Vec<(AdmissionKey, Record)>> {
    page(connection, days, asked, start, limit)?.into_iter().map(decoded).collect()
}

/// See [`Database::admitted_before`](taximeter_database::database::Database::admitted_before).
pub(crate) fn admitted_before(
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
            let shown = opened.last(&rows_of, Some(end), limit, &mut |key, place, payload| {
                found += 1;
                rows.push(KeyedRow { key: key.clone(), place, payload: payload.to_vec() });
            });
            shown.map_err(|error| days.fault(&file.name, error))?;
        }
    }
    taximeter_collections::sort_by(&mut rows, |a, b| Reverse(&a.key).cmp(&Reverse(&b.key)));
    rows.truncate(limit);
    rows.into_iter().map(decoded).collect()
}

/// See [`Database::posts`](taximeter_database::database::Database::posts).
pub(crate) fn posts(
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

fn decoded(row: KeyedRow) -> rusqlite::Result<(AdmissionKey, Record)> {
    let record = Record::decode(row.place.seq, &row.payload);
    Ok((row.key, record.map_err(|error| unreadable(2, error))?))
}
