//! Writes requests as typed columns of a Parquet file, and adds them up.

use std::io::Write;

use taximeter_columnar as columnar;
use taximeter_ledger::{LedgerId, Record};

use super::error::ExportError;
use super::manifest::ExportTotals;

/// Some requests as rows, in the order in which they are added.
#[derive(Default)]
pub struct RecordRows {
    rows: columnar::RecordRows,
    totals: ExportTotals,
}

impl RecordRows {
    /// Most rows to gather before they are written.
    pub const MAX: usize = columnar::RecordRows::MAX;

    /// No rows yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds one row. Its entry is in the ledger with this id.
    ///
    /// # Errors
    /// [`ExportError::TooLarge`]. After an error none of the rows may be written.
    pub fn add(&mut self, ledger: LedgerId, record: &Record) -> Result<(), ExportError> {
        self.totals.add_request(record, 1)?;
        Ok(self.rows.add(ledger, record)?)
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

/// Writes requests to a Parquet file.
pub struct RecordsParquet<W: Write + Send>(columnar::RecordsParquet<W>);

impl<W: Write + Send> RecordsParquet<W> {
    /// A file without rows.
    ///
    /// # Errors
    /// The output cannot be written.
    pub fn new(out: W) -> Result<Self, ExportError> {
        Ok(Self(columnar::RecordsParquet::new(out)?))
    }

    /// Writes rows, and clears them.
    ///
    /// # Errors
    /// The output cannot be written.
    pub fn add(&mut self, rows: &mut RecordRows) -> Result<(), ExportError> {
        Ok(self.0.add(&mut rows.rows)?)
    }

    /// Writes the gathered rows as a row group of their own, whatever its size.
    ///
    /// # Errors
    /// The output cannot be written.
    pub fn end_group(&mut self) -> Result<(), ExportError> {
        Ok(self.0.end_group()?)
    }

    /// Writes the rest and returns the output.
    ///
    /// # Errors
    /// The output cannot be written.
    pub fn finish(self) -> Result<W, ExportError> {
        Ok(self.0.finish()?)
    }
}
