//! Requests as typed columns of a Parquet file, from the entries that they were written as.
//!
//! Most of an entry goes into its column as it stands: nothing is made of a request but its row.

mod cells;
mod members;
mod row;
mod values;

use std::io::Write;

use self::members::MEMBERS;
pub use self::row::RecordRow;
use super::columns::{Field, ParquetWriter, ROWS_MAX, Rows};
use super::error::ExportError;
use super::manifest::Tally;

/// Some requests as rows, in the order in which they are added.
pub struct RecordRows {
    rows: Rows,
    tally: Tally,
}

impl RecordRows {
    /// How many are to be gathered at most before they are written.
    pub const MAX: usize = ROWS_MAX;

    /// None yet.
    #[must_use]
    pub fn new() -> Self {
        Self { rows: Rows::new(fields()), tally: Tally::default() }
    }

    /// Takes entries apart and adds them.
    ///
    /// # Errors
    /// [`ExportError::Unreadable`], [`ExportError::TooLarge`]; then none of them is to be written.
    pub fn add_entries<'a>(
        &mut self,
        entries: impl IntoIterator<Item = (u64, &'a str)>,
    ) -> Result<(), ExportError> {
        for (seq, entry) in entries {
            self.add(&RecordRow::read(seq, entry, &mut Vec::new())?)?;
        }
        Ok(())
    }

    /// Adds one.
    ///
    /// # Errors
    /// [`ExportError::Unreadable`], [`ExportError::TooLarge`]; then none of them is to be written.
    pub fn add(&mut self, record: &RecordRow<'_>) -> Result<(), ExportError> {
        record.add_to(&mut self.tally, &mut self.rows)
    }

    /// How many.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there is none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of what they hold.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.rows.bytes()
    }

    /// What they add up to, since that was last asked.
    pub fn take_tally(&mut self) -> Tally {
        std::mem::take(&mut self.tally)
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
    /// Nothing written yet.
    ///
    /// # Errors
    /// `out`'s.
    pub fn new(out: W) -> Result<Self, ExportError> {
        ParquetWriter::new(out, "record", fields()).map(Self)
    }

    /// Writes some, of which none is left then.
    ///
    /// # Errors
    /// `out`'s.
    pub fn add(&mut self, rows: &mut RecordRows) -> Result<(), ExportError> {
        self.0.add(&mut rows.rows)
    }

    /// Writes what is held as a group of its own, whatever its size.
    ///
    /// # Errors
    /// `out`'s.
    pub fn end_group(&mut self) -> Result<(), ExportError> {
        self.0.end_group()
    }

    /// Writes what is left; what was written to comes back.
    ///
    /// # Errors
    /// `out`'s.
    pub fn finish(self) -> Result<W, ExportError> {
        self.0.finish()
    }
}

fn fields() -> impl Iterator<Item = Field> {
    MEMBERS.iter().map(|member| member.field)
}
