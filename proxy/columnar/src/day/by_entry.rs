//! Finds rows by the entries of a journal that they come from.

use std::collections::{BTreeMap, BinaryHeap};

use parquet::file::statistics::Statistics;
use taximeter_ledger::LedgerId;

use super::file::DayFile;
use super::footer::LedgerRange;
use super::pick::{At, Least};
use super::scan::{Plan, Row};
use crate::error::ReadError;
use crate::kept::{ReadAt, RowRanges, batches, push};
use crate::record::place_of;

/// Where a row is in its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct RowAt {
    group: usize,
    row: usize,
}

impl<R: ReadAt + 'static> DayFile<R> {
    /// The first `limit` entries of a ledger behind the entry `after` and up to `until`, in order, each
    /// with its row. Reads no other columns.
    ///
    /// # Errors
    /// The file is damaged or cannot be read.
    pub fn entries(
        &self,
        ledger: LedgerId,
        (after, until): (u64, u64),
        limit: usize,
    ) -> Result<Vec<(u64, RowAt)>, ReadError> {
        let mut least = Least { heap: BinaryHeap::new(), limit };
        let is_in = |seq: u64| after < seq && seq <= until;
        if self.range_of(ledger).is_some_and(|range| range.last > after && range.first <= until) {
            for group in 0..self.kept.groups() {
                let lowest = self.lowest_entry(group)?.max(after.saturating_add(1));
                if lowest <= until && least.may_take(&lowest) {
                    self.each_entry(group, ledger, |seq, at| {
                        if is_in(seq) {
                            least.push(seq, at);
                        }
                    })?;
                }
            }
        }
        let rows = least.heap.into_sorted_vec().into_iter();
        Ok(rows.map(|(seq, (group, row))| (seq, RowAt { group, row })).collect())
    }

    /// How many rows are from entries of a ledger behind the entry `after`.
    ///
    /// # Errors
    /// The file is damaged or cannot be read.
    pub fn count_behind(&self, ledger: LedgerId, after: u64) -> Result<u64, ReadError> {
        match self.range_of(ledger) {
            None => Ok(0),
            Some(range) if range.last <= after => Ok(0),
            Some(range) if range.first > after => Ok(range.rows),
            Some(_) => {
                let mut count = 0;
                for group in 0..self.kept.groups() {
                    self.each_entry(group, ledger, |seq, _| count += u64::from(seq > after))?;
                }
                Ok(count)
            }
        }
    }

    /// Shows these rows in the order of the file, which sorts them.
    ///
    /// # Errors
    /// The file is damaged or cannot be read.
    pub fn rows_at(
        &self,
        rows: &mut [RowAt],
        visit: &mut dyn FnMut(RowAt, Row<'_>),
    ) -> Result<(), ReadError> {
        rows.sort_unstable();
        let mut wanted = BTreeMap::<usize, RowRanges>::new();
        for RowAt { group, row } in &*rows {
            push(wanted.entry(*group).or_default(), *row..*row + 1);
        }
        let mut scan = self.plan(Plan::Rows(wanted));
        for at in &*rows {
            let row = scan.next_row()?;
            visit(*at, row.ok_or_else(|| ReadError::group(at.group, "a row is missing"))?);
        }
        Ok(())
    }

    fn range_of(&self, ledger: LedgerId) -> Option<&LedgerRange> {
        self.footer().ledgers.iter().find(|range| range.ledger == ledger)
    }

    /// The lowest sequence number of a row group, of whichever ledger; 0 if that is not known.
    fn lowest_entry(&self, group: usize) -> Result<u64, ReadError> {
        let lowest = match self.kept.column(group, place_of("seq"))?.statistics() {
            Some(Statistics::Int64(it)) => it.min_opt().copied(),
            _ => None,
        };
        Ok(lowest.and_then(|lowest| u64::try_from(lowest).ok()).unwrap_or(0))
    }

    /// Shows the sequence number of each row of a group that is from this ledger, and its place.
    fn each_entry(
        &self,
        group: usize,
        ledger: LedgerId,
        mut visit: impl FnMut(u64, At),
    ) -> Result<(), ReadError> {
        let mut entries = self.cursor(group, "seq")?;
        let has_others = self.footer().ledgers.len() > 1;
        let mut ledgers = has_others.then(|| self.cursor(group, "ledger")).transpose()?;
        let missing = || ReadError::group(group, "a row has no entry");
        let mut all = RowRanges::new();
        push(&mut all, 0..self.kept.rows(group)?);
        for batch in batches(&all) {
            for cursor in [Some(&mut entries), ledgers.as_mut()].into_iter().flatten() {
                cursor.read(batch.start, batch.len())?;
            }
            for row in batch {
                let seq = entries.next_value().and_then(|it| it.int().ok()).ok_or_else(missing)?;
                let is_own = match &mut ledgers {
                    None => true,
                    Some(ledgers) => match ledgers.next_value() {
                        Some(id) => id.bytes().is_ok_and(|id| id == ledger.0.as_bytes()),
                        None => ledger == LedgerId::UNKNOWN,
                    },
                };
                if is_own {
                    visit(seq.cast_unsigned(), (group, row));
                }
            }
        }
        Ok(())
    }
}
