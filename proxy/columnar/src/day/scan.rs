//! Reads rows in the order of the file, one by one.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

use taximeter_ledger::{Place, Record};

use super::file::DayFile;
use crate::error::ReadError;
use crate::kept::{BATCH_ROWS, Cursor, ReadAt, RowFilter, RowRanges};
use crate::record::{Draft, late, place_of, setters};

/// A row.
#[derive(Debug, Clone, Copy)]
pub struct Row<'a> {
    /// Where its entry is.
    pub place: Place,
    /// The complete payload of its entry, as it was written.
    pub payload: &'a [u8],
    /// What it says.
    pub record: &'a Record,
}

/// Rows of a file in its order. Its memory is a page of each column, and [`BATCH_ROWS`] rows.
pub struct Scan<'f, R> {
    file: &'f DayFile<R>,
    plan: Plan,
    group: usize,
    ranges: VecDeque<Range<usize>>,
    /// `None` for a column that the file lacks.
    cursors: Vec<Option<Cursor>>,
    /// Rows that are read and not given out yet.
    batch: usize,
    /// The column of the client's ids.
    request_id: usize,
    place: Option<Place>,
    record: Option<Record>,
    payload: Vec<u8>,
}

/// Which rows to read.
pub(super) enum Plan {
    Matching(RowFilter),
    /// By their row group.
    Rows(BTreeMap<usize, RowRanges>),
}

impl<R: ReadAt + 'static> DayFile<R> {
    /// The rows that `filter` takes, in the order of the file: that of tenant and id.
    #[must_use]
    pub fn scan(&self, filter: RowFilter) -> Scan<'_, R> {
        self.plan(Plan::Matching(filter))
    }

    pub(super) fn plan(&self, plan: Plan) -> Scan<'_, R> {
        Scan {
            file: self,
            plan,
            group: 0,
            ranges: VecDeque::new(),
            cursors: Vec::new(),
            batch: 0,
            request_id: place_of("request_id"),
            place: None,
            record: None,
            payload: Vec::new(),
        }
    }

    /// How many rows `filter` takes.
    ///
    /// # Errors
    /// The file is damaged or cannot be read.
    pub fn count(&self, filter: &RowFilter) -> Result<u64, ReadError> {
        let counts = (0..self.kept.groups()).map(|group| {
            let rows: usize = self.kept.matching(group, filter)?.iter().map(Range::len).sum();
            Ok(rows as u64)
        });
        counts.sum()
    }
}

impl<R: ReadAt + 'static> Scan<'_, R> {
    /// The next row. `None` at the end.
    ///
    /// # Errors
    /// The file is damaged or cannot be read. The next call goes on with the next row group.
    pub fn next_row(&mut self) -> Result<Option<Row<'_>>, ReadError> {
        self.place = None;
        if !self.advance()? {
            return Ok(None);
        }
        let group = self.group;
        self.place = self.take_row();
        if self.place.is_none() {
            self.leave_group();
            return Err(ReadError::group(group, "a row is no record"));
        }
        Ok(self.row())
    }

    /// The row that was given out last.
    #[must_use]
    pub fn row(&self) -> Option<Row<'_>> {
        let (place, record) = self.place.zip(self.record.as_ref())?;
        Some(Row { place, payload: &self.payload, record })
    }

    /// The row group of the row that was given out last.
    #[must_use]
    pub const fn group(&self) -> usize {
        self.group
    }

    /// Reads ahead if nothing is left. Whether there is a next row.
    fn advance(&mut self) -> Result<bool, ReadError> {
        while self.batch == 0 {
            if self.ranges.is_empty() {
                if !self.cursors.is_empty() {
                    self.leave_group();
                }
                if self.group >= self.file.kept.groups() {
                    return Ok(false);
                }
                if let Err(error) = self.enter_group() {
                    self.leave_group();
                    return Err(error);
                }
            } else if let Err(error) = self.read_batch() {
                self.leave_group();
                return Err(error);
            }
        }
        Ok(true)
    }

    fn enter_group(&mut self) -> Result<(), ReadError> {
        let ranges = match &mut self.plan {
            Plan::Matching(filter) => self.file.kept.matching(self.group, filter)?,
            Plan::Rows(rows) => rows.remove(&self.group).unwrap_or_default(),
        };
        if ranges.is_empty() {
            self.group += 1;
            return Ok(());
        }
        self.ranges = ranges.into();
        let (kept, group) = (&self.file.kept, self.group);
        let open = |(column, is_late): (usize, bool)| {
            let is_there = !is_late || kept.has_column(column);
            is_there.then(|| kept.cursor(group, column)).transpose()
        };
        self.cursors = late().enumerate().map(open).collect::<Result<_, _>>()?;
        Ok(())
    }

    fn leave_group(&mut self) {
        self.group += 1;
        self.batch = 0;
        self.ranges.clear();
        self.cursors.clear();
    }

    fn read_batch(&mut self) -> Result<(), ReadError> {
        let Some(mut range) = self.ranges.pop_front() else { return Ok(()) };
        let (start, count) = (range.start, range.len().min(BATCH_ROWS));
        for cursor in self.cursors.iter_mut().flatten() {
            cursor.read(start, count)?;
        }
        self.batch = count;
        range.start += count;
        if !range.is_empty() {
            self.ranges.push_front(range);
        }
        Ok(())
    }

    /// Puts the next row together. `None` if it cannot be one.
    fn take_row(&mut self) -> Option<Place> {
        self.batch = self.batch.checked_sub(1)?;
        let (mut draft, mut is_whole) = (Draft::new(), true);
        let mut has_own_id = false;
        for (column, (cursor, set)) in self.cursors.iter_mut().zip(setters()).enumerate() {
            match cursor.as_mut().and_then(Cursor::next_value) {
                Some(value) => is_whole &= set(&mut draft, value).is_ok(),
                None => has_own_id |= column == self.request_id,
            }
        }
        let (ledger, seq) = draft.place();
        let kept = draft.take_payload();
        let record = match &kept {
            Some(payload) => Record::decode(seq, payload).ok()?,
            None if is_whole => draft.finish(has_own_id).ok()?,
            None => return None,
        };
        match kept {
            Some(payload) => self.payload = payload,
            None => record.encode(&mut self.payload),
        }
        self.record = Some(record);
        Some(Place { ledger, seq })
    }
}
