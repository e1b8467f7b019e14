//! Reads requests of the files of a day ahead, in order of admission.
//!
//! A file has the order of tenant and id, so that each reading looks at pages of all tenants. Who wants
//! some requests gets them by their keys. Who goes on gets those of a longer time, and of a longer one
//! again, until as many are read at once as may be in memory.

use jiff::Timestamp;
use taximeter_columnar::RowFilter;
use taximeter_database::database::{AdmissionKey, Filter};

use super::held::Held;
use super::list::LiveFile;
use super::open::Days;
use crate::sqlite::ask::KeyedRow;

/// Fewest requests of one file that are read by their keys.
const KEYS_MIN: usize = 64;
/// Bytes of requests that are in memory at most. Small in tests, so that few requests are too many.
const HELD_BYTES_MAX: usize = if cfg!(test) { 8 << 10 } else { 24 << 20 };
/// So many times longer at most is the time of the next reading.
const GROWTH_MAX: usize = 4;

/// Files of one day, and which of their requests are asked for.
#[derive(Clone, Copy)]
pub(super) struct OfDay<'a> {
    pub(super) filter: &'a Filter,
    pub(super) files: &'a [LiveFile],
}

impl OfDay<'_> {
    fn day(&self) -> i64 {
        self.files.first().map_or(0, |file| file.day)
    }

    /// Behind all of them.
    fn end(&self) -> i64 {
        let last = self.files.iter().map(|file| file.last).max().unwrap_or(i64::MIN);
        self.filter.before().min(last.saturating_add(1))
    }
}

/// The requests of the files of a day from one place in the order of admission up to another one.
pub(super) struct Window {
    filter: Filter,
    day: i64,
    from: AdmissionKey,
    /// What is from here on was not read. `None` at the end of the day.
    pub(super) until: Option<AdmissionKey>,
    rows: Held,
}

impl Window {
    /// Its requests from `start` on, at most so many.
    pub(super) fn rows(
        &self,
        start: &AdmissionKey,
        limit: usize,
    ) -> impl ExactSizeIterator<Item = KeyedRow> {
        self.rows.from(start, limit)
    }

    fn has(&self, asked: OfDay<'_>, start: &AdmissionKey) -> bool {
        self.is_of(asked)
            && self.from <= *start
            && self.until.as_ref().is_none_or(|until| start < until)
    }

    fn is_of(&self, asked: OfDay<'_>) -> bool {
        self.day == asked.day() && self.filter == *asked.filter
    }

    /// Up to when the next reading may go that begins where this one ends: if requests come as often as
    /// here, they are three quarters of what may be in memory.
    fn next_until(&self) -> Option<i64> {
        let until = self.until.as_ref()?.at;
        let began = self.rows.first_at().unwrap_or(self.from.at);
        let lasted = until.saturating_sub(began).max(1);
        let bytes = self.rows.bytes().max(HELD_BYTES_MAX / (GROWTH_MAX * 2));
        let next = i128::from(lasted) * (HELD_BYTES_MAX as i128 * 3 / 4) / bytes as i128;
        let longest = lasted.saturating_mul(GROWTH_MAX as i64);
        Some(until.saturating_add(i64::try_from(next).map_or(longest, |next| next.min(longest))))
    }
}

/// The requests of the files of a day from `start` on: some, at least, unless there are none up to
/// where they end.
pub(super) fn window<'d>(
    days: &'d mut Days,
    asked: OfDay<'_>,
    start: &AdmissionKey,
    limit: usize,
) -> rusqlite::Result<&'d Window> {
    let window = match days.window.take() {
        Some(known) if known.has(asked, start) => known,
        known => {
            let goes_on = known
                .filter(|known| known.is_of(asked) && known.until.as_ref() == Some(start))
                .and_then(|known| known.next_until());
            let of_time = match goes_on {
                Some(until) => of_time(days, asked, start, until)?,
                None => None,
            };
            match of_time {
                Some(window) => window,
                None => by_keys(days, asked, start, limit)?,
            }
        }
    };
    Ok(days.window.insert(window))
}

/// The first requests of each file, as far as all files are read.
fn by_keys(
    days: &mut Days,
    asked: OfDay<'_>,
    start: &AdmissionKey,
    limit: usize,
) -> rusqlite::Result<Window> {
    let OfDay { filter, files } = asked;
    let each = (limit / files.len().max(1)).max(KEYS_MIN);
    let rows_of = row_filter(filter, filter.since().max(start.at), filter.before());
    let (mut rows, mut until) = (Held::default(), None::<AdmissionKey>);
    for file in files {
        let (opened, mut shown, mut last) = (days.open(file)?, 0, None);
        let done = opened.first(&rows_of, Some(start), each, &mut |key, place, payload| {
            rows.push(key.at, &key.id, place, payload);
            shown += 1;
            last = (shown == each).then(|| key.clone());
        });
        done.map_err(|error| days.fault(&file.name, error))?;
        until = match (until, last.map(AdmissionKey::next)) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
    }
    if let Some(until) = &until {
        rows.retain(|key| key < (until.at, until.id.as_slice()));
    }
    rows.sort();
    Ok(Window { filter: filter.clone(), day: asked.day(), from: start.clone(), until, rows })
}

/// The requests up to a time: to an earlier one than `until` if there are too many. `None` if there are
/// too many of one instant.
fn of_time(
    days: &mut Days,
    asked: OfDay<'_>,
    start: &AdmissionKey,
    until: i64,
) -> rusqlite::Result<Option<Window>> {
    let OfDay { filter, files } = asked;
    let mut until = until.min(asked.end());
    let mut rows = Held::default();
    for file in files {
        let opened = days.open(file)?;
        let from = filter.since().max(start.at);
        let mut scan = opened.scan(row_filter(filter, from, until));
        while let Some(row) = scan.next_row().map_err(|error| days.fault(&file.name, error))? {
            let (at, id) = (row.record.started_at.as_microsecond(), row.record.id.0);
            if at >= until || (at, id.as_bytes().as_slice()) < (start.at, start.id.as_slice()) {
                continue;
            }
            rows.push(at, id.as_bytes(), row.place, row.payload);
            if rows.bytes() > HELD_BYTES_MAX {
                until = rows.middle();
                if until <= start.at {
                    return Ok(None);
                }
                rows.retain(|(at, _)| at < until);
            }
        }
    }
    rows.sort();
    let until = (until < asked.end()).then(|| AdmissionKey { at: until, id: Vec::new() });
    let (filter, from) = (filter.clone(), start.clone());
    Ok(Some(Window { filter, day: asked.day(), from, until, rows }))
}

/// The rows of a file that a filter takes, from `from` to before `to`.
pub(super) fn row_filter(filter: &Filter, from: i64, to: i64) -> RowFilter {
    // What is no time is before or behind all times.
    let time = |at| Timestamp::from_microsecond(at).ok();
    RowFilter { tenant: filter.tenant.clone(), from: time(from), to: time(to) }
}
