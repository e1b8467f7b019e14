//! Writes requests as typed columns of a Parquet file, from their journal entries.
//!
//! Most values are copied from the entry to their column. No record is built.

mod entry_values;
mod members;
mod row;
mod values;

use std::io::Write;

use self::members::MEMBERS;
pub use self::row::RecordRow;
use super::columns::{Field, ParquetWriter, ROWS_MAX, Rows};
use super::error::ExportError;
use super::manifest::ExportTotals;

/// Some requests as rows, in the order in which they are added.
pub struct RecordRows {
    rows: Rows,
    totals: ExportTotals,
}

impl RecordRows {
    /// Most rows to gather before they are written.
    pub const MAX: usize = ROWS_MAX;

    /// No rows yet.
    #[must_use]
    pub fn new() -> Self {
        Self { rows: Rows::new(fields()), totals: ExportTotals::default() }
    }

    /// Splits entries into their members and adds them as rows.
    ///
    /// # Errors
    /// [`ExportError::Unreadable`], [`ExportError::TooLarge`]. After an error none of the rows may
    /// be written.
    pub fn add_entries<'a>(
        &mut self,
        entries: impl IntoIterator<Item = (u64, &'a str)>,
    ) -> Result<(), ExportError> {
        for (seq, entry) in entries {
            self.add(&RecordRow::read(seq, entry, &mut Vec::new())?)?;
        }
        Ok(())
    }

    /// Adds one row.
    ///
    /// # Errors
    /// [`ExportError::Unreadable`], [`ExportError::TooLarge`]. After an error none of the rows may
    /// be written.
    pub fn add(&mut self, record: &RecordRow<'_>) -> Result<(), ExportError> {
        record.add_to(&mut self.totals, &mut self.rows)
    }

    /// Number of rows.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there are no rows.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of their values.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.rows.bytes()
    }

    /// The sums of the rows since the last call.
    pub fn take_totals(&mut self) -> ExportTotals {
        std::mem::take(&mut self.totals)
    }
}

impl Default for RecordRows {
    fn default() -> Self {
        Self::new()
    }
}

/// Writes requests to a Parquet file.
pub struct RecordsParquet<W: Write + Send>(ParquetWriter<W>);

impl<W: Write + Send> RecordsParquet<W> {
    /// A file without rows.
    ///
    /// # Errors
    /// The output cannot be written.
    pub fn new(out: W) -> Result<Self, ExportError> {
        ParquetWriter::new(out, "record", fields()).map(Self)
    }

    /// Writes rows, and clears them.
    ///
    /// # Errors
    /// The output cannot be written.
    pub fn add(&mut self, rows: &mut RecordRows) -> Result<(), ExportError> {
        self.0.add(&mut rows.rows)
    }

    /// Writes the gathered rows as a row group of their own, whatever its size.
    ///
    /// # Errors
    /// The output cannot be written.
    pub fn end_group(&mut self) -> Result<(), ExportError> {
        self.0.end_group()
    }

    /// Writes the rest and returns the output.
    ///
    /// # Errors
    /// The output cannot be written.
    pub fn finish(self) -> Result<W, ExportError> {
        self.0.finish()
    }
}

fn fields() -> impl Iterator<Item = Field> {
    MEMBERS.iter().map(|member| member.field)
}
