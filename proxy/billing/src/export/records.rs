//! Writes requests as typed columns of a Parquet file.

mod columns;

use std::io::Write;

use taximeter_ledger::Record;

use self::columns::{COLUMNS, Cell};
use super::columns::{Field, FieldKind, ParquetWriter, ROWS_MAX, RowWriter, Rows};
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

    /// Adds one row.
    ///
    /// # Errors
    /// [`ExportError::TooLarge`]. After an error none of the rows may be written.
    pub fn add(&mut self, record: &Record) -> Result<(), ExportError> {
        self.totals.add_request(record, 1)?;
        let mut row = self.rows.row();
        COLUMNS
            .iter()
            .try_for_each(|column| fill(&mut row, column.field.kind, (column.cell)(record)))
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

/// Writes the next cell of a row.
fn fill(row: &mut RowWriter<'_>, kind: FieldKind, cell: Cell<'_>) -> Result<(), ExportError> {
    match cell {
        Cell::Null => row.null(),
        Cell::Text(text) => row.text(text.as_bytes()),
        Cell::Written(text) => row.text(text.as_bytes()),
        Cell::Json(json) => row.text(&json?),
        Cell::Time(at) => row.time(at),
        Cell::Count(count) => {
            let too_large = |_| ExportError::TooLarge { what: "a count" };
            let count = i64::try_from(count).map_err(too_large)?;
            match kind {
                FieldKind::Int32 => row.int32(i32::try_from(count).map_err(too_large)?),
                _ => row.int64(count),
            }
        }
        Cell::Bool(value) => row.bool(value),
        Cell::Double(value) => row.double(value),
        Cell::Money(amount) => row.decimal(amount)?,
    }
    Ok(())
}

fn fields() -> impl Iterator<Item = Field> {
    COLUMNS.iter().map(|column| column.field)
}
