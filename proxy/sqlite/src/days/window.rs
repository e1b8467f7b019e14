//! Requests of files that were read ahead.

use jiff::Timestamp;
use taximeter_columnar::RowFilter;
use taximeter_database::database::{AdmissionKey, Filter};

use super::held::Held;
use super::list::LiveFile;
use crate::ask::KeyedRow;

/// Bytes of requests that are in memory at most.
pub(super) const AHEAD_BYTES_MAX: usize = 24 << 20;
/// So many times longer at most is the time of the next reading.
const GROWTH_MAX: usize = 4;

/// Files of one day, and which of their requests are asked for.
#[derive(Clone, Copy)]
pub(super) struct OfDay<'a> {
    pub(super) filter: &'a Filter,
    pub(super) files: &'a [LiveFile],
}

impl OfDay<'_> {
    pub(super) fn day(&self) -> i64 {
        self.files.first().map_or(0, |file| file.day)
    }

    /// Behind all of them.
    pub(super) fn end(&self) -> i64 {
        let last = self.files.iter().map(|file| file.last).max().unwrap_or(i64::MIN);
        self.filter.before().min(last.saturating_add(1))
    }
}

/// The requests of the files of a day from one place in the order of admission up to another one.
pub(super) struct Window {
    pub(super) filter: Filter,
    pub(super) day: i64,
    pub(super) from: AdmissionKey,
    /// What is from here on was not read. `None` at the end of the day.
    pub(super) until: Option<AdmissionKey>,
    pub(super) rows: Held,
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

    pub(super) fn has(&self, asked: OfDay<'_>, start: &AdmissionKey) -> bool {
        self.is_of(asked)
            && self.from <= *start
            && self.until.as_ref().is_none_or(|until| start < until)
    }

    pub(super) fn is_of(&self, asked: OfDay<'_>) -> bool {
        self.day == asked.day() && self.filter == *asked.filter
    }

    /// Up to when the next reading may go that begins where this one ends: if requests come as often as
    /// here, they are three quarters of `bytes_max`.
    pub(super) fn next_until(&self, bytes_max: usize) -> Option<i64> {
        let until = self.until.as_ref()?.at;
        let began = self.rows.first_at().unwrap_or(self.from.at);
        let lasted = until.saturating_sub(began).max(1);
        let bytes = self.rows.bytes().max(bytes_max / (GROWTH_MAX * 2));
        let next = i128::from(lasted) * (bytes_max as i128 * 3 / 4) / bytes as i128;
        let longest = lasted.saturating_mul(GROWTH_MAX as i64);
        Some(until.saturating_add(i64::try_from(next).map_or(longest, |next| next.min(longest))))
    }
}

/// The rows of a file that a filter takes, from `from` to before `to`.
pub(super) fn row_filter(filter: &Filter, from: i64, to: i64) -> RowFilter {
    // What is no time is before or behind all times.
    let time = |at| Timestamp::from_microsecond(at).ok();
    RowFilter { tenant: filter.tenant.clone(), from: time(from), to: time(to) }
}
