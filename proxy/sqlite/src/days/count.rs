//! What all requests of the tables and of the files add up to.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use rusqlite::Connection;
use taximeter_billing::Period;
use taximeter_billing::export::{Entries, SequenceRange};
use taximeter_collections::Gather as _;
use taximeter_database::database::{AdmissionKey, Filter};
use taximeter_database::post::Post;
use taximeter_ledger::Correction;

use super::known;
use super::list::LiveFile;
use super::open::Days;
use super::page::{admitted, filter_of};
use super::window::row_filter;
use crate::ask::{self, unreadable};

/// Tenants that are counted.
const TENANTS_MAX: usize = 1000;

/// See [`Database::key_of_last`](taximeter_database::database::Database::key_of_last).
pub(crate) fn key_of_last(
    connection: &Connection,
    days: &mut Days,
    (filter, newest): (&Filter, i64),
    count: u32,
) -> rusqlite::Result<Option<AdmissionKey>> {
    let files = days.between(filter.since(), filter.before());
    let mut left = u64::from(count);
    let mut to = filter.before();
    for of_day in files.chunk_by(|a, b| a.day == b.day).rev() {
        // Behind the files of this day, and before those of the next one, all is in the tables.
        let first = of_day.iter().map(|file| file.first).min().unwrap_or(i64::MIN);
        let behind = of_day.iter().map(|file| file.last).max().unwrap_or(i64::MIN);
        let behind = behind.saturating_add(1).min(to);
        let counted = ask::count(connection, filter, newest, (behind, to))?;
        if counted >= left {
            return of_tables(connection, filter, newest, (behind, to), left);
        }
        left -= counted;
        let from = first.max(filter.since());
        let counted = counted_in(connection, days, (filter, newest), of_day, (from, behind))?;
        if counted >= left {
            let asked = (filter, newest);
            return of_day_files(connection, days, asked, of_day, (from, behind), left);
        }
        left -= counted;
        to = from;
    }
    of_tables(connection, filter, newest, (filter.since(), to), left)
}

/// Where the last `left` of the tables begin.
fn of_tables(
    connection: &Connection,
    filter: &Filter,
    newest: i64,
    between: (i64, i64),
    left: u64,
) -> rusqlite::Result<Option<AdmissionKey>> {
    let left = u32::try_from(left).unwrap_or(u32::MAX);
    ask::key_of_last(connection, filter, newest, between, left)
}

/// Where the last `left` begin, of which there are as many. The time is found by halves.
fn of_day_files(
    connection: &Connection,
    days: &mut Days,
    asked: (&Filter, i64),
    files: &[LiveFile],
    (from, to): (i64, i64),
    left: u64,
) -> rusqlite::Result<Option<AdmissionKey>> {
    // From `least` on there are enough, and from `most` on there are not.
    let (mut least, mut most) = (from, to);
    let mut there = counted_in(connection, days, asked, files, (least, to))?;
    while least.saturating_add(1) < most {
        let middle = least + (most - least) / 2;
        let counted = counted_in(connection, days, asked, files, (middle, to))?;
        if counted >= left {
            (least, there) = (middle, counted);
        } else {
            most = middle;
        }
    }
    let place = there.saturating_sub(left);
    let mut start = AdmissionKey { at: least, id: Vec::new() };
    let mut passed = 0;
    loop {
        let limit = u32::try_from((place - passed).saturating_add(1)).unwrap_or(u32::MAX).min(512);
        let page = admitted(connection, days, asked, &start, limit)?;
        passed += page.len() as u64;
        let Some((last, _)) = page.into_iter().next_back() else { return Ok(None) };
        if passed > place {
            return Ok(Some(last));
        }
        start = last.next();
    }
}

/// How many there are in the tables and in these files, from one time to before another one.
fn counted_in(
    connection: &Connection,
    days: &mut Days,
    (filter, newest): (&Filter, i64),
    files: &[LiveFile],
    (from, to): (i64, i64),
) -> rusqlite::Result<u64> {
    let mut counted = ask::count(connection, filter, newest, (from, to))?;
    let rows = row_filter(filter, from, to);
    for file in files.iter().filter(|file| file.last >= from && file.first < to) {
        let count = days.open(file)?.count(&rows);
        counted += count.map_err(|error| days.fault(&file.name, error))?;
    }
    Ok(counted)
}

/// See [`Database::entries`](taximeter_database::database::Database::entries).
pub(crate) fn entries(
    connection: &Connection,
    days: &mut Days,
    period: Period,
    tenant: Option<&str>,
) -> rusqlite::Result<Entries> {
    let mut entries = ask::entries(connection, period, tenant)?;
    let filter = filter_of(period, tenant);
    let rows = row_filter(&filter, filter.since(), filter.before());
    for file in days.between(filter.since(), filter.before()) {
        let opened = days.open(&file)?;
        let mut scan = opened.scan(rows.clone());
        while let Some(row) = scan.next_row().map_err(|error| days.fault(&file.name, error))? {
            let post = Post::read(row.place, row.payload).map_err(|e| unreadable(2, e))?;
            if !post.used_nothing() {
                SequenceRange::add(&mut entries.sequences, post.gateway(), post.place.seq);
            }
        }
    }
    Ok(entries)
}

/// See [`Database::tenants`](taximeter_database::database::Database::tenants).
pub(crate) fn tenants(
    connection: &Connection,
    days: &mut Days,
    period: Period,
    tenant: Option<&str>,
) -> rusqlite::Result<u64> {
    let filter = filter_of(period, tenant);
    let files = days.between(filter.since(), filter.before());
    if files.is_empty() {
        return ask::tenants(connection, period, tenant);
    }
    let mut tenants: BTreeSet<_> =
        ask::names_of_tenants(connection, period, tenant)?.into_iter().gather_set();
    let rows = row_filter(&filter, filter.since(), filter.before());
    for file in files {
        if tenants.len() >= TENANTS_MAX {
            break;
        }
        let shown = days.open(&file)?.tenants(&rows, &mut |tenant| {
            if tenants.len() < TENANTS_MAX && !tenants.contains(tenant) {
                tenants.insert(tenant.to_owned());
            }
        });
        shown.map_err(|error| days.fault(&file.name, error))?;
    }
    Ok(tenants.len() as u64)
}

/// See [`Database::corrections`](taximeter_database::database::Database::corrections).
pub(crate) fn corrections(
    connection: &Connection,
    days: &mut Days,
    period: Period,
    tenant: Option<&str>,
    visit: &mut dyn FnMut(&Post<'_>, &Correction) -> ControlFlow<()>,
) -> rusqlite::Result<()> {
    let filter = filter_of(period, tenant);
    if days.between(filter.since(), filter.before()).is_empty() {
        return ask::corrections(connection, period, tenant, visit);
    }
    let mut payload = Vec::new();
    ask::all_corrections(connection, period, tenant, &mut |in_tables, correction| {
        let Some(post) = in_tables else {
            let at = correction.started_at.as_microsecond();
            let Some(place) = known::find(days, at, correction.corrects, &mut payload)? else {
                return Ok(ControlFlow::Continue(()));
            };
            let post = Post::read(place, &payload).map_err(|error| unreadable(2, error))?;
            let is_asked = tenant.is_none_or(|tenant| post.view().tenant == tenant);
            let go_on = ControlFlow::Continue(());
            return Ok(if is_asked { visit(&post, correction) } else { go_on });
        };
        Ok(visit(post, correction))
    })
}

/// How many corrections there are of the requests that were admitted in a period.
pub(crate) fn count_corrections(
    connection: &Connection,
    days: &mut Days,
    period: Period,
    tenant: Option<&str>,
) -> rusqlite::Result<u64> {
    let filter = filter_of(period, tenant);
    if days.between(filter.since(), filter.before()).is_empty() {
        return ask::count_corrections(connection, period, tenant);
    }
    let mut count = 0;
    corrections(connection, days, period, tenant, &mut |_, _| {
        count += 1;
        ControlFlow::Continue(())
    })?;
    Ok(count)
}
