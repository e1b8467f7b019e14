//! Rows into a Parquet file, column by column, with a bound on what is held.

mod field;
mod values;

use std::io::Write;
use std::sync::Arc;

use jiff::Timestamp;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{ColumnPath, Type};
use rust_decimal::Decimal;
use serde::Serialize;

pub(super) use self::field::{Field, FieldKind};
use self::values::{Column, decimal_bytes};
use super::error::ExportError;

/// Rows held before they are written as one group.
const GROUP_ROWS_MAX: usize = 128 << 10;
/// Bytes of texts and numbers held before they are written as one group.
const GROUP_BYTES_MAX: usize = 64 << 20;

/// Writes flat rows.
pub(super) struct ParquetWriter<W: Write + Send> {
    writer: SerializedFileWriter<W>,
    columns: Vec<Column>,
    rows: usize,
    bytes: usize,
}

impl<W: Write + Send> ParquetWriter<W> {
    /// An empty file with these fields.
    pub(super) fn new(
        out: W,
        name: &'static str,
        fields: impl Iterator<Item = Field>,
    ) -> Result<Self, ExportError> {
        let fields: Vec<_> = fields.collect();
        let types = fields.iter().map(Field::schema).collect::<Result<Vec<_>, _>>()?;
        let schema = Type::group_type_builder(name).with_fields(types).build()?;
        let writer = SerializedFileWriter::new(out, Arc::new(schema), properties(&fields)?)?;
        let columns = fields.iter().map(|field| Column::new(field.kind, field.nullable)).collect();
        Ok(Self { writer, columns, rows: 0, bytes: 0 })
    }

    /// The cells of the next row, to be filled in order.
    pub(super) fn row(&mut self) -> Row<'_> {
        Row { columns: self.columns.iter_mut(), bytes: &mut self.bytes }
    }

    /// Ends the row.
    pub(super) fn end_row(&mut self) -> Result<(), ExportError> {
        self.rows += 1;
        if self.rows >= GROUP_ROWS_MAX || self.bytes >= GROUP_BYTES_MAX {
            self.write_group()?;
        }
        Ok(())
    }

    /// Bytes of rows that are held and not written yet.
    pub(super) const fn held(&self) -> usize {
        self.bytes
    }

    /// Writes what is held as a group, whatever its size, and gives its memory back.
    pub(super) fn write_held(&mut self) -> Result<(), ExportError> {
        if self.rows > 0 {
            self.write_group()?;
            self.columns.iter_mut().for_each(Column::release);
        }
        Ok(())
    }

    pub(super) fn finish(mut self) -> Result<W, ExportError> {
        self.write_held()?;
        let mut out = self.writer.into_inner()?;
        out.flush()?;
        Ok(out)
    }

    fn write_group(&mut self) -> Result<(), ExportError> {
        let mut group = self.writer.next_row_group()?;
        for column in &mut self.columns {
            let missing = || ParquetError::General("a column too many".to_owned());
            column.write(group.next_column()?.ok_or_else(missing)?)?;
        }
        group.close()?;
        (self.rows, self.bytes) = (0, 0);
        Ok(())
    }
}

/// One row while it is filled. A cell that does not fit its field makes the file fail when it is
/// written.
pub(super) struct Row<'a> {
    columns: std::slice::IterMut<'a, Column>,
    bytes: &'a mut usize,
}

impl Row<'_> {
    pub(super) fn null(&mut self) {
        self.push(0, Column::push_null);
    }

    pub(super) fn text(&mut self, text: &str) {
        self.push(text.len(), |column| column.push_bytes(text.as_bytes()));
    }

    pub(super) fn maybe_text(&mut self, text: Option<&str>) {
        match text {
            Some(text) => self.text(text),
            None => self.null(),
        }
    }

    /// A document; `None` is null.
    pub(super) fn json<T: Serialize>(&mut self, value: Option<&T>) -> Result<(), ExportError> {
        let Some(value) = value else {
            self.null();
            return Ok(());
        };
        let mut outcome = Ok(0);
        self.push(0, |column| outcome = column.push_json(value));
        *self.bytes += outcome?;
        Ok(())
    }

    pub(super) fn time(&mut self, at: Timestamp) {
        self.int64(at.as_microsecond());
    }

    pub(super) fn int64(&mut self, value: i64) {
        self.push(8, |column| column.push_int64(value));
    }

    /// A count; `None` is null.
    pub(super) fn count(&mut self, value: Option<u64>) -> Result<(), ExportError> {
        let too_large = |_| ExportError::TooLarge { what: "a count" };
        match value {
            Some(value) => self.int64(i64::try_from(value).map_err(too_large)?),
            None => self.null(),
        }
        Ok(())
    }

    pub(super) fn maybe_int32(&mut self, value: Option<i32>) {
        match value {
            Some(value) => self.push(4, |column| column.push_int32(value)),
            None => self.null(),
        }
    }

    pub(super) fn bool(&mut self, value: bool) {
        self.push(1, |column| column.push_bool(value));
    }

    pub(super) fn maybe_double(&mut self, value: Option<f64>) {
        match value {
            Some(value) => self.push(8, |column| column.push_double(value)),
            None => self.null(),
        }
    }

    /// Rounded to the field's places, half to even.
    pub(super) fn decimal(&mut self, value: Decimal) -> Result<(), ExportError> {
        let mut outcome = Ok(());
        self.push(16, |column| match decimal_bytes(value, column.kind()) {
            Some((bytes, skip)) => column.push_bytes(bytes.get(skip..).unwrap_or_default()),
            None => outcome = Err(ExportError::TooLarge { what: "a decimal" }),
        });
        outcome
    }

    fn push(&mut self, bytes: usize, push: impl FnOnce(&mut Column)) {
        *self.bytes += bytes;
        if let Some(column) = self.columns.next() {
            push(column);
        }
    }
}

fn properties(fields: &[Field]) -> Result<Arc<WriterProperties>, ParquetError> {
    let mut builder = WriterProperties::builder()
        .set_created_by(concat!("taximeter version ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(1)?))
        .set_statistics_enabled(EnabledStatistics::Chunk);
    for field in fields {
        let path = ColumnPath::from(field.name);
        if !field.is_looked_up() {
            builder = builder.set_column_statistics_enabled(path.clone(), EnabledStatistics::None);
        }
        if !field.distinct {
            continue;
        }
        builder = builder.set_column_dictionary_enabled(path.clone(), false);
        if matches!(field.kind, FieldKind::Time | FieldKind::Int64) {
            builder = builder.set_column_encoding(path, Encoding::DELTA_BINARY_PACKED);
        }
    }
    Ok(Arc::new(builder.build()))
}

#[cfg(test)]
mod tests;
