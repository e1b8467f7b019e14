//! Finds the requests of a session.

use std::collections::BTreeMap;

use super::file::DayFile;
use super::scan::{Plan, Scan};
use crate::error::ReadError;
use crate::kept::{ReadAt, RowFilter, RowRanges, batches, push};
use crate::record::place_of;

impl<R: ReadAt + 'static> DayFile<R> {
    /// The rows of a session that `filter` takes, in the order of the file. Of a file that was written
    /// before sessions had a column, all rows that `filter` takes.
    ///
    /// # Errors
    /// The file is damaged or cannot be read.
    pub fn scan_session(
        &self,
        filter: &RowFilter,
        session: &str,
    ) -> Result<Scan<'_, R>, ReadError> {
        let column = place_of("session");
        let mut rows = BTreeMap::new();
        for group in 0..self.kept.groups() {
            let mut of_group = self.kept.matching(group, filter)?;
            if self.kept.has_column(column) && !of_group.is_empty() {
                of_group = self.of_session(group, column, &of_group, session)?;
            }
            rows.insert(group, of_group);
        }
        Ok(self.plan(Plan::Rows(rows)))
    }

    /// Those of `rows` that are of a session. No other column is read.
    fn of_session(
        &self,
        group: usize,
        column: usize,
        rows: &RowRanges,
        session: &str,
    ) -> Result<RowRanges, ReadError> {
        let (mut names, mut found) = (self.kept.cursor(group, column)?, RowRanges::new());
        for batch in batches(rows) {
            names.read(batch.start, batch.len())?;
            for row in batch {
                if names.next_value().is_some_and(|name| name.text() == Ok(session)) {
                    push(&mut found, row..row + 1);
                }
            }
        }
        Ok(found)
    }
}
