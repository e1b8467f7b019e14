//! Writes rows to a Parquet file, column by column, with bounded memory.
//!
//! The caller gathers a few rows at a time, possibly on several threads. The writer encodes them at
//! once. Of an open row group it keeps the compressed pages and no rows.

mod column_buffer;
mod column_chunk;
mod column_writer;
mod field;
mod layout;
mod run_column;
mod run_writer;

use std::io::Write;
use std::sync::Arc;

use jiff::Timestamp;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::metadata::SortingColumn;
use parquet::file::properties::{
    BloomFilterProperties, EnabledStatistics, WriterProperties, WriterPropertiesPtr,
};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{ColumnPath, Type};
use rust_decimal::Decimal;

use self::column_buffer::ColumnBuffer;
pub use self::column_buffer::ROWS_MAX;
pub(crate) use self::column_buffer::decimal_bytes;
use self::column_chunk::ColumnChunk;
pub use self::field::{Field, FieldKind};
pub use self::layout::Layout;
use self::layout::{FAST_LEVEL, TRIED_DICTIONARY_BYTES};
pub use self::run_writer::RunWriter;
use crate::error::WriteError;
use crate::value::Value;

/// Bytes of one page of a column before compression. They stay in the processor's cache until they
/// are compressed.
const PAGE_BYTES: usize = 64 << 10;

/// Bytes of a dictionary of names that come for a while: those of a row group's sessions.
const NAMES_DICTIONARY_BYTES: usize = 512 << 10;

/// Bytes of the dictionaries of all columns of a row group that are written run by run: those of thousands of
/// series.
const RUN_DICTIONARIES_BYTES: usize = 4 << 20;

/// Some rows of a file, column by column.
pub struct Rows {
    columns: Vec<ColumnBuffer>,
    rows: usize,
    bytes: usize,
}

impl Rows {
    /// No rows yet, with these fields.
    pub fn new(fields: impl Iterator<Item = Field>) -> Self {
        let columns = fields.map(ColumnBuffer::new).collect();
        Self { columns, rows: 0, bytes: 0 }
    }

    /// The same for a layout with columns that are written run by run.
    pub fn of_runs(layout: &Layout, fields: impl Iterator<Item = Field>) -> Self {
        let column = |field: Field| match layout.repeated.contains(&field.name) {
            true => ColumnBuffer::of_runs(field),
            false => ColumnBuffer::new(field),
        };
        Self { columns: fields.map(column).collect(), rows: 0, bytes: 0 }
    }

    /// Begins so many rows that differ in 64-bit numbers only. The caller fills all their cells, in order.
    pub fn run(&mut self, times: usize) -> RunWriter<'_> {
        self.rows += times;
        RunWriter::new(self.columns.iter_mut(), &mut self.bytes, times)
    }

    /// Begins the next row. The caller fills all its cells, in order.
    pub fn row(&mut self) -> RowWriter<'_> {
        self.rows += 1;
        RowWriter { columns: self.columns.iter_mut(), bytes: &mut self.bytes }
    }

    /// Number of rows.
    pub const fn len(&self) -> usize {
        self.rows
    }

    /// Whether there are no rows.
    pub const fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// Bytes of their texts and numbers.
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    fn clear(&mut self) {
        self.columns.iter_mut().for_each(ColumnBuffer::clear);
        (self.rows, self.bytes) = (0, 0);
    }
}

/// Writes flat rows.
pub struct ParquetWriter<W: Write + Send> {
    writer: SerializedFileWriter<W>,
    properties: WriterPropertiesPtr,
    layout: Layout,
    /// The columns of the open row group. Empty if no group is open.
    group: Vec<ColumnChunk>,
    rows: usize,
    bytes: usize,
}

impl<W: Write + Send> ParquetWriter<W> {
    /// An empty file with these fields.
    pub fn new(
        out: W,
        name: &'static str,
        layout: &Layout,
        fields: impl Iterator<Item = Field>,
    ) -> Result<Self, WriteError> {
        let fields: Vec<_> = fields.collect();
        let types = fields.iter().map(Field::schema).collect::<Result<Vec<_>, _>>()?;
        let schema = Type::group_type_builder(name).with_fields(types).build()?;
        let properties = properties(layout, &fields)?;
        let writer = SerializedFileWriter::new(out, Arc::new(schema), Arc::clone(&properties))?;
        Ok(Self { writer, properties, layout: *layout, group: Vec::new(), rows: 0, bytes: 0 })
    }

    /// Writes rows with the same fields, and clears them.
    pub fn add(&mut self, rows: &mut Rows) -> Result<(), WriteError> {
        if rows.rows == 0 {
            return Ok(());
        }
        if self.group.is_empty() {
            let columns = self.writer.schema_descr().columns().iter();
            let chunk = |column| ColumnChunk::new(column, &self.layout, &self.properties);
            self.group = columns.map(chunk).collect::<Result<_, _>>()?;
        }
        for (chunk, column) in self.group.iter_mut().zip(&mut rows.columns) {
            chunk.write(column)?;
        }
        self.rows += rows.rows;
        self.bytes += rows.bytes;
        rows.clear();
        let dictionaries: usize = self.group.iter().map(ColumnChunk::dictionary_bytes).sum();
        if self.rows >= self.layout.group_rows
            || self.bytes >= self.layout.group_bytes
            || dictionaries >= RUN_DICTIONARIES_BYTES
        {
            self.end_group()?;
        }
        Ok(())
    }

    /// Row groups that are written.
    pub fn groups(&self) -> usize {
        self.writer.flushed_row_groups().len()
    }

    /// The Parquet writer, to write what follows the row groups.
    pub(crate) const fn inner(&mut self) -> &mut SerializedFileWriter<W> {
        &mut self.writer
    }

    /// Ends the open row group, whatever its size, and frees its memory.
    pub fn end_group(&mut self) -> Result<(), WriteError> {
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
    pub fn finish(mut self) -> Result<W, WriteError> {
        self.end_group()?;
        let mut out = self.writer.into_inner()?;
        out.flush()?;
        Ok(out)
    }
}

/// Fills one row. If a cell does not fit its field, writing the file fails.
pub struct RowWriter<'a> {
    columns: std::slice::IterMut<'a, ColumnBuffer>,
    bytes: &'a mut usize,
}

impl RowWriter<'_> {
    /// No value.
    pub fn null(&mut self) {
        self.push(0, ColumnBuffer::push_null);
    }

    /// UTF-8.
    pub fn text(&mut self, text: &[u8]) {
        self.push(text.len(), |column| column.push_bytes(text));
    }

    /// Microseconds, UTC.
    pub fn time(&mut self, at: Timestamp) {
        self.int64(at.as_microsecond());
    }

    /// A 64-bit number.
    pub fn int64(&mut self, value: i64) {
        self.push(8, |column| column.push_int64(value));
    }

    /// A 32-bit number.
    pub fn int32(&mut self, value: i32) {
        self.push(4, |column| column.push_int32(value));
    }

    /// True or false.
    pub fn bool(&mut self, value: bool) {
        self.push(1, |column| column.push_bool(value));
    }

    /// A 64-bit float.
    pub fn double(&mut self, value: f64) {
        self.push(8, |column| column.push_double(value));
    }

    /// Rounded to the decimal places of the field, half to even.
    ///
    /// # Errors
    /// [`WriteError::TooLarge`].
    pub fn decimal(&mut self, value: Decimal) -> Result<(), WriteError> {
        let mut outcome = Ok(());
        self.push(16, |column| match decimal_bytes(value, column.kind()) {
            Some((bytes, skip)) => column.push_bytes(bytes.get(skip..).unwrap_or_default()),
            None => outcome = Err(WriteError::TooLarge { what: "a decimal" }),
        });
        outcome
    }

    /// A value as a file has it.
    pub(crate) fn value(&mut self, kind: FieldKind, value: Value<'_>) {
        match value {
            Value::Bytes(bytes) => self.text(bytes),
            Value::Int(value) if kind == FieldKind::Int32 => {
                self.int32(i32::try_from(value).unwrap_or(i32::MAX));
            }
            Value::Int(value) => self.int64(value),
            Value::Bool(value) => self.bool(value),
        }
    }

    fn push(&mut self, bytes: usize, push: impl FnOnce(&mut ColumnBuffer)) {
        *self.bytes += bytes;
        if let Some(column) = self.columns.next() {
            push(column);
        }
    }
}

fn zstd(level: i32) -> Result<Compression, ParquetError> {
    Ok(Compression::ZSTD(ZstdLevel::try_new(level)?))
}

fn properties(layout: &Layout, fields: &[Field]) -> Result<Arc<WriterProperties>, ParquetError> {
    let column = |name: &str| fields.iter().position(|field| field.name == name);
    let sorted = layout.sorted.iter().filter_map(|name| {
        let column_idx = i32::try_from(column(name)?).ok()?;
        Some(SortingColumn { column_idx, descending: false, nulls_first: true })
    });
    let sorted = Some(sorted.collect::<Vec<_>>()).filter(|sorted| !sorted.is_empty());
    let mut builder = WriterProperties::builder()
        .set_created_by(concat!("taximeter version ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_compression(zstd(layout.zstd_level)?)
        .set_data_page_size_limit(PAGE_BYTES)
        .set_data_page_row_count_limit(layout.page_rows)
        .set_dictionary_page_size_limit(layout.dictionary_bytes)
        .set_sorting_columns(sorted)
        .set_statistics_enabled(EnabledStatistics::Chunk);
    if let Some(name) = layout.found {
        let filter = BloomFilterProperties::builder()
            .with_fpp(0.01)
            .with_max_ndv(layout.group_rows as u64)
            .try_build()?;
        builder = builder.set_column_bloom_filter_properties(ColumnPath::from(name), filter);
    }
    for field in fields {
        let path = ColumnPath::from(field.name);
        if layout.searched.contains(&field.name) {
            builder = builder.set_column_statistics_enabled(path.clone(), EnabledStatistics::Page);
        } else if !field.has_statistics() {
            builder = builder.set_column_statistics_enabled(path.clone(), EnabledStatistics::None);
        }
        let tries = layout.tries_dictionaries && field.may_repeat();
        if !field.is_bytes() {
            // Numbers are packed already. Their compressors stay small.
            builder = builder.set_column_compression(path.clone(), zstd(FAST_LEVEL)?);
        }
        if field.distinct {
            builder = builder
                .set_column_dictionary_enabled(path.clone(), tries)
                .set_column_dictionary_page_size_limit(path.clone(), TRIED_DICTIONARY_BYTES);
        }
        if layout.named.contains(&field.name) {
            let bytes = NAMES_DICTIONARY_BYTES;
            builder = builder.set_column_dictionary_page_size_limit(path.clone(), bytes);
        }
        if let Some(encoding) = field.encoding(layout.tries_dictionaries) {
            builder = builder.set_column_encoding(path, encoding);
        }
    }
    Ok(Arc::new(builder.build()))
}

#[cfg(test)]
mod tests;
