//! Which rows of a row group are asked for.

use std::ops::Range;

use parquet::file::page_index::column_index::ColumnIndexMetaData;
use parquet::file::statistics::Statistics;

use super::blocks::ReadAt;
use super::file::KeptFile;
use super::filter::RowFilter;
use crate::error::ReadError;

/// Rows that are read at once.
pub const BATCH_ROWS: usize = 256;

/// Rows of a row group, in order.
pub type RowRanges = Vec<Range<usize>>;

/// The smallest and the largest value of a column, if they are known.
pub(crate) type Bounds<'a> = Option<(&'a [u8], &'a [u8])>;

/// Whether all rows of a group are asked for, none, or some.
enum Share {
    All,
    None,
    Some,
}

impl<R: ReadAt + 'static> KeptFile<R> {
    /// The rows of a group that `filter` takes.
    ///
    /// # Errors
    /// The file is damaged or cannot be read.
    pub fn matching(&self, group: usize, filter: &RowFilter) -> Result<RowRanges, ReadError> {
        let candidates = self.candidates(group, filter)?;
        match self.share(group, filter)? {
            Share::All | Share::None => return Ok(candidates),
            Share::Some => {}
        }
        let open =
            |is_wanted: bool, column| is_wanted.then(|| self.cursor(group, column)).transpose();
        let mut tenants = open(filter.tenant.is_some(), self.tenant)?;
        let mut times = open(filter.has_times(), self.time)?;
        let mut found = RowRanges::new();
        for batch in batches(&candidates) {
            for cursor in [&mut tenants, &mut times].into_iter().flatten() {
                cursor.read(batch.start, batch.len())?;
            }
            for row in batch {
                let tenant = tenants.as_mut().and_then(|it| it.next_value()?.bytes().ok());
                let time = times.as_mut().and_then(|it| it.next_value()?.int().ok());
                if tenant.is_none_or(|tenant| filter.takes_tenant(tenant))
                    && time.is_none_or(|time| filter.takes_time(time))
                {
                    push(&mut found, row..row + 1);
                }
            }
        }
        Ok(found)
    }

    /// Of these rows those of pages that may have a text or an id in a column.
    ///
    /// # Errors
    /// The file is damaged.
    pub fn may_have(
        &self,
        group: usize,
        rows: &RowRanges,
        column: usize,
        value: &[u8],
    ) -> Result<RowRanges, ReadError> {
        let has = |least: &[u8], most: &[u8]| least <= value && value <= most;
        Ok(common(rows, &self.pages_between(group, column, has)?))
    }

    /// The rows of a group that `filter` may take, by the smallest and largest values of its pages.
    pub(crate) fn candidates(
        &self,
        group: usize,
        filter: &RowFilter,
    ) -> Result<RowRanges, ReadError> {
        if matches!(self.share(group, filter)?, Share::None) {
            return Ok(RowRanges::new());
        }
        let mut ranges = RowRanges::new();
        push(&mut ranges, 0..self.rows(group)?);
        if filter.tenant.is_some() {
            let pages = self.pages_between(group, self.tenant, |least, most| {
                filter.may_take_tenants(least, most)
            })?;
            ranges = common(&ranges, &pages);
        }
        if filter.has_times() {
            let mut pages = RowRanges::new();
            for (rows, least, most) in self.times_of_pages(group)? {
                if filter.may_take_times(least, most) {
                    push(&mut pages, rows);
                }
            }
            ranges = common(&ranges, &pages);
        }
        Ok(ranges)
    }

    /// The rows of each page of the times of admission, with the first and the last time in it.
    pub(crate) fn times_of_pages(
        &self,
        group: usize,
    ) -> Result<Vec<(Range<usize>, i64, i64)>, ReadError> {
        let column = self.time;
        let ColumnIndexMetaData::INT64(times) = self.page_values(group, column)? else {
            return Err(ReadError::footer("the times have no index"));
        };
        let least = times.min_values_iter().map(|time| time.copied().unwrap_or(i64::MIN));
        let most = times.max_values_iter().map(|time| time.copied().unwrap_or(i64::MAX));
        let rows = self.page_rows(group, column)?;
        Ok(rows.into_iter().zip(least).zip(most).map(|((rows, a), b)| (rows, a, b)).collect())
    }

    /// The rows of those pages of a column of which `takes` the smallest and the largest value.
    pub(crate) fn pages_between(
        &self,
        group: usize,
        column: usize,
        takes: impl Fn(&[u8], &[u8]) -> bool,
    ) -> Result<RowRanges, ReadError> {
        let index = self.page_values(group, column)?;
        let (ColumnIndexMetaData::BYTE_ARRAY(values)
        | ColumnIndexMetaData::FIXED_LEN_BYTE_ARRAY(values)) = index
        else {
            return Err(ReadError::footer("a column has no index"));
        };
        let pages = values.min_values_iter().zip(values.max_values_iter());
        let mut found = RowRanges::new();
        for (rows, (least, most)) in self.page_rows(group, column)?.into_iter().zip(pages) {
            if least.zip(most).is_none_or(|(least, most)| takes(least, most)) {
                push(&mut found, rows);
            }
        }
        Ok(found)
    }

    /// The smallest and the largest value of a column of texts or ids in a group. The exact ones,
    /// unless a text is very long.
    pub(crate) fn bounds(&self, group: usize, column: usize) -> Result<Bounds<'_>, ReadError> {
        let statistics = self.column(group, column)?.statistics();
        Ok(statistics.and_then(|it| it.min_bytes_opt().zip(it.max_bytes_opt())))
    }

    /// The first and the last time of admission in a group.
    pub(crate) fn times(&self, group: usize) -> Result<Option<(i64, i64)>, ReadError> {
        Ok(match self.column(group, self.time)?.statistics() {
            Some(Statistics::Int64(it)) => it.min_opt().copied().zip(it.max_opt().copied()),
            _ => None,
        })
    }

    fn share(&self, group: usize, filter: &RowFilter) -> Result<Share, ReadError> {
        let (tenants, times) = (self.bounds(group, self.tenant)?, self.times(group)?);
        let has_none = tenants.is_some_and(|(least, most)| !filter.may_take_tenants(least, most))
            || times.is_some_and(|(least, most)| !filter.may_take_times(least, most));
        let all_tenants = filter.tenant.is_none()
            || tenants.is_some_and(|(least, most)| least == most && filter.takes_tenant(least));
        let all_times = !filter.has_times()
            || times.is_some_and(|(a, b)| filter.takes_time(a) && filter.takes_time(b));
        Ok(match (has_none, all_tenants && all_times) {
            (true, _) => Share::None,
            (false, true) => Share::All,
            (false, false) => Share::Some,
        })
    }
}

/// Appends rows that are behind all of `ranges`.
pub(crate) fn push(ranges: &mut RowRanges, rows: Range<usize>) {
    match ranges.last_mut() {
        _ if rows.is_empty() => {}
        Some(last) if last.end == rows.start => last.end = rows.end,
        _ => ranges.push(rows),
    }
}

/// The rows that are in both.
pub(crate) fn common(a: &RowRanges, b: &RowRanges) -> RowRanges {
    let mut found = RowRanges::new();
    let (mut a, mut b) = (a.iter().peekable(), b.iter().peekable());
    while let (Some(one), Some(other)) = (a.peek(), b.peek()) {
        push(&mut found, one.start.max(other.start)..one.end.min(other.end));
        if one.end < other.end {
            a.next()
        } else {
            b.next()
        };
    }
    found
}

/// The same rows in pieces that are read at once.
pub fn batches(ranges: &RowRanges) -> impl Iterator<Item = Range<usize>> + '_ {
    pieces(ranges, BATCH_ROWS)
}

/// The same rows in pieces of so many rows at most.
pub fn pieces(ranges: &RowRanges, rows: usize) -> impl Iterator<Item = Range<usize>> + '_ {
    ranges.iter().flat_map(move |range| {
        range.clone().step_by(rows).map(move |at| at..range.end.min(at + rows))
    })
}
