//! Writes rows to a Parquet file, column by column, with bounded memory.
//!
//! The caller gathers a few rows at a time, possibly on several threads. The writer encodes them at
//! once. Of an open row group it keeps the compressed pages and no rows.

mod column_buffer;
mod column_chunk;
mod field;

use std::io::Write;
use std::sync::Arc;

use jiff::Timestamp;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesPtr};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{ColumnPath, Type};
use rust_decimal::Decimal;

pub(super) use self::column_buffer::ROWS_MAX;
use self::column_buffer::{ColumnBuffer, decimal_bytes};
use self::column_chunk::ColumnChunk;
pub(super) use self::field::{Field, FieldKind};
use super::error::ExportError;

/// Rows of one row group. A group can have up to as many more as are added at once.
const GROUP_ROWS_MAX: usize = 128 << 10;
/// Bytes of texts and numbers in one row group. A reader of a group holds a whole column of it.
const GROUP_BYTES_MAX: usize = 64 << 20;
/// Bytes of one page of a column before compression. They stay in the processor's cache until they
/// are compressed.
const PAGE_BYTES: usize = 64 << 10;
/// Another level needs its strategy in the image's zstd (`deploy/image/program.sh`).
const ZSTD_LEVEL: i32 = 1;

/// Some rows of a file, column by column.
pub(super) struct Rows {
    columns: Vec<ColumnBuffer>,
    rows: usize,
    bytes: usize,
}

impl Rows {
    /// No rows yet, with these fields.
    pub(super) fn new(fields: impl Iterator<Item = Field>) -> Self {
        let columns = fields.map(ColumnBuffer::new).collect();
        Self { columns, rows: 0, bytes: 0 }
    }

    /// Begins the next row. The caller fills all its cells, in order.
    pub(super) fn row(&mut self) -> RowWriter<'_> {
        self.rows += 1;
        RowWriter { columns: self.columns.iter_mut(), bytes: &mut self.bytes }
    }

    /// Number of rows.
    pub(super) const fn len(&self) -> usize {
        self.rows
    }

    /// Bytes of their texts and numbers.
    pub(super) const fn bytes(&self) -> usize {
        self.bytes
    }

    fn clear(&mut self) {
        self.columns.iter_mut().for_each(ColumnBuffer::clear);
        (self.rows, self.bytes) = (0, 0);
    }
}

/// Writes flat rows.
pub(super) struct ParquetWriter<W: Write + Send> {
    writer: SerializedFileWriter<W>,
    properties: WriterPropertiesPtr,
    /// The columns of the open row group. Empty if no group is open.
    group: Vec<ColumnChunk>,
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
        let properties = properties(&fields)?;
        let writer = SerializedFileWriter::new(out, Arc::new(schema), Arc::clone(&properties))?;
        Ok(Self { writer, properties, group: Vec::new(), rows: 0, bytes: 0 })
    }

    /// Writes rows with the same fields, and clears them.
    pub(super) fn add(&mut self, rows: &mut Rows) -> Result<(), ExportError> {
        if rows.rows == 0 {
            return Ok(());
        }
        if self.group.is_empty() {
            let columns = self.writer.schema_descr().columns();
            self.group =
                columns.iter().map(|column| ColumnChunk::new(column, &self.properties)).collect();
        }
        for (chunk, column) in self.group.iter_mut().zip(&mut rows.columns) {
            chunk.write(column)?;
        }
        self.rows += rows.rows;
        self.bytes += rows.bytes;
        rows.clear();
        if self.rows >= GROUP_ROWS_MAX || self.bytes >= GROUP_BYTES_MAX {
            self.end_group()?;
        }
        Ok(())
    }

    /// Ends the open row group, whatever its size, and frees its memory.
    pub(super) fn end_group(&mut self) -> Result<(), ExportError> {
        if self.group.is_empty() {
            return Ok(());
        }
        let mut group = self.writer.next_row_group()?;
        for chunk in self.group.drain(..) {
            chunk.append_to(&mut group)?;
        }
        group.close()?;
        (self.rows, self.bytes) = (0, 0);
        Ok(())
    }

    /// Ends the file and returns the output.
    pub(super) fn finish(mut self) -> Result<W, ExportError> {
        self.end_group()?;
        let mut out = self.writer.into_inner()?;
        out.flush()?;
        Ok(out)
    }
}

/// Fills one row. If a cell does not fit its field, writing the file fails.
pub(super) struct RowWriter<'a> {
    columns: std::slice::IterMut<'a, ColumnBuffer>,
    bytes: &'a mut usize,
}

impl RowWriter<'_> {
    pub(super) fn null(&mut self) {
        self.push(0, ColumnBuffer::push_null);
    }

    /// UTF-8.
    pub(super) fn text(&mut self, text: &[u8]) {
        self.push(text.len(), |column| column.push_bytes(text));
    }

    pub(super) fn time(&mut self, at: Timestamp) {
        self.int64(at.as_microsecond());
    }

    pub(super) fn int64(&mut self, value: i64) {
        self.push(8, |column| column.push_int64(value));
    }

    pub(super) fn int32(&mut self, value: i32) {
        self.push(4, |column| column.push_int32(value));
    }

    pub(super) fn bool(&mut self, value: bool) {
        self.push(1, |column| column.push_bool(value));
    }

    pub(super) fn double(&mut self, value: f64) {
        self.push(8, |column| column.push_double(value));
    }

    /// Rounded to the decimal places of the field, half to even.
    pub(super) fn decimal(&mut self, value: Decimal) -> Result<(), ExportError> {
        let mut outcome = Ok(());
        self.push(16, |column| match decimal_bytes(value, column.kind()) {
            Some((bytes, skip)) => column.push_bytes(bytes.get(skip..).unwrap_or_default()),
            None => outcome = Err(ExportError::TooLarge { what: "a decimal" }),
        });
        outcome
    }

    fn push(&mut self, bytes: usize, push: impl FnOnce(&mut ColumnBuffer)) {
        *self.bytes += bytes;
        if let Some(column) = self.columns.next() {
            push(column);
        }
    }
}

fn properties(fields: &[Field]) -> Result<Arc<WriterProperties>, ParquetError> {
    let mut builder = WriterProperties::builder()
        .set_created_by(concat!("taximeter version ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(ZSTD_LEVEL)?))
        .set_data_page_size_limit(PAGE_BYTES)
        .set_statistics_enabled(EnabledStatistics::Chunk);
    for field in fields {
        let path = ColumnPath::from(field.name);
        if !field.has_statistics() {
            builder = builder.set_column_statistics_enabled(path.clone(), EnabledStatistics::None);
        }
        if field.distinct {
            builder = builder.set_column_dictionary_enabled(path.clone(), false);
        }
        match field.kind {
            FieldKind::Time | FieldKind::Int64 if field.distinct => {
                builder = builder.set_column_encoding(path, Encoding::DELTA_BINARY_PACKED);
            }
            // The last bytes of such numbers are noise if hardly any two are alike. Apart from the
            // first bytes, the compressor soon gives up on them and does not search for
            // repetitions.
            FieldKind::Double => {
                builder = builder.set_column_encoding(path, Encoding::BYTE_STREAM_SPLIT);
            }
            _ => {}
        }
    }
    Ok(Arc::new(builder.build()))
}

#[cfg(test)]
mod tests;
