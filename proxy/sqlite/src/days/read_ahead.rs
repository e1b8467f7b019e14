//! Reads requests of the files of a day ahead, in order of admission.
//!
//! A file has the order of tenant and id, so that each reading looks at pages of all tenants. Who wants
//! some requests gets them by their keys. Who goes on gets those of a longer time, and of a longer one
//! again, until as many are read at once as may be in memory.

use taximeter_database::database::AdmissionKey;

use super::held::Held;
use super::open::Days;
use super::window::{OfDay, Window, row_filter};

/// Fewest requests of one file that are read by their keys.
const KEYS_MIN: usize = 64;

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
                .and_then(|known| known.next_until(days.ahead_bytes_max));
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
    let (mut rows, bytes_max) = (Held::default(), days.ahead_bytes_max);
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
            if rows.bytes() > bytes_max {
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
