//! Reads the values of one column of a row group, forward.

use std::sync::Arc;

use parquet::column::reader::{ColumnReader, get_column_reader};
use parquet::data_type::{ByteArray, FixedLenByteArray};
use parquet::errors::ParquetError;
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::page_index::offset_index::PageLocation;
use parquet::file::serialized_reader::SerializedPageReader;

use super::blocks::{Blocks, ReadAt};
use super::errors::in_group;
use crate::error::ReadError;
use crate::value::Value;

/// The place of a reader in a column, and the values of some rows.
pub struct Cursor {
    reader: ColumnReader,
    group: usize,
    /// The row that comes next in the file.
    at: usize,
    nullable: bool,
    /// 1 for a value and 0 for null, of each row that was read, if the column is nullable.
    levels: Vec<i16>,
    values: Values,
    next_level: usize,
    next_value: usize,
}

enum Values {
    Bytes(Vec<ByteArray>),
    Fixed(Vec<FixedLenByteArray>),
    Int64(Vec<i64>),
    Int32(Vec<i32>),
    Bool(Vec<bool>),
}

impl Cursor {
    /// At the first row. `pages` has the place of each page in the file.
    pub(super) fn new<R: ReadAt + 'static>(
        blocks: &Arc<Blocks<R>>,
        column: &ColumnChunkMetaData,
        (group, rows): (usize, usize),
        pages: Vec<PageLocation>,
    ) -> Result<Self, ReadError> {
        let pages = SerializedPageReader::new(Arc::clone(blocks), column, rows, Some(pages));
        let pages = pages.map_err(in_group(group))?;
        let description = column.column_descr_ptr();
        let nullable = description.max_def_level() > 0;
        let reader = get_column_reader(description, Box::new(pages));
        let values = match &reader {
            ColumnReader::ByteArrayColumnReader(_) => Values::Bytes(Vec::new()),
            ColumnReader::FixedLenByteArrayColumnReader(_) => Values::Fixed(Vec::new()),
            ColumnReader::Int64ColumnReader(_) => Values::Int64(Vec::new()),
            ColumnReader::Int32ColumnReader(_) => Values::Int32(Vec::new()),
            ColumnReader::BoolColumnReader(_) => Values::Bool(Vec::new()),
            _ => return Err(ReadError::group(group, "a column of another type")),
        };
        let levels = Vec::new();
        Ok(Self { reader, group, at: 0, nullable, levels, values, next_level: 0, next_value: 0 })
    }

    /// Reads `count` rows from row `start` on, which is not before the last one that was read.
    ///
    /// # Errors
    /// The file is damaged or cannot be read.
    pub fn read(&mut self, start: usize, count: usize) -> Result<(), ReadError> {
        let group = self.group;
        self.try_read(start, count).map_err(in_group(group))
    }

    /// Reads `count` rows from row `start` on, which is not before the last one that was read.
    fn try_read(&mut self, start: usize, count: usize) -> Result<(), ParquetError> {
        (self.next_level, self.next_value) = (0, 0);
        self.levels.clear();
        let skip = start.checked_sub(self.at).ok_or_else(short)?;
        let levels = &mut self.levels;
        let levels = self.nullable.then_some(levels);
        macro_rules! read {
            ($reader:expr, $values:expr) => {{
                $values.clear();
                let skipped = if skip > 0 { $reader.skip_records(skip)? } else { 0 };
                let read = $reader.read_records(count, levels, None, $values)?.0;
                skipped == skip && read == count
            }};
        }
        let is_whole = match (&mut self.reader, &mut self.values) {
            (ColumnReader::ByteArrayColumnReader(reader), Values::Bytes(values)) => {
                read!(reader, values)
            }
            (ColumnReader::FixedLenByteArrayColumnReader(reader), Values::Fixed(values)) => {
                read!(reader, values)
            }
            (ColumnReader::Int64ColumnReader(reader), Values::Int64(values)) => {
                read!(reader, values)
            }
            (ColumnReader::Int32ColumnReader(reader), Values::Int32(values)) => {
                read!(reader, values)
            }
            (ColumnReader::BoolColumnReader(reader), Values::Bool(values)) => read!(reader, values),
            _ => false,
        };
        self.at = start + count;
        if is_whole { Ok(()) } else { Err(short()) }
    }

    /// The 64-bit numbers of the rows that were read, of a column without nulls.
    #[must_use]
    pub fn int64s(&self) -> &[i64] {
        match &self.values {
            Values::Int64(values) => values,
            _ => &[],
        }
    }

    /// The same of 32-bit numbers.
    #[must_use]
    pub fn int32s(&self) -> &[i32] {
        match &self.values {
            Values::Int32(values) => values,
            _ => &[],
        }
    }

    /// The value of the next row. `None` is null.
    pub fn next_value(&mut self) -> Option<Value<'_>> {
        if self.nullable {
            let level = self.levels.get(self.next_level).copied().unwrap_or(0);
            self.next_level += 1;
            if level == 0 {
                return None;
            }
        }
        let at = self.next_value;
        self.next_value += 1;
        match &self.values {
            Values::Bytes(values) => values.get(at).map(|value| Value::Bytes(value.data())),
            Values::Fixed(values) => values.get(at).map(|value| Value::Bytes(value.data())),
            Values::Int64(values) => values.get(at).map(|value| Value::Int(*value)),
            Values::Int32(values) => values.get(at).map(|value| Value::Int((*value).into())),
            Values::Bool(values) => values.get(at).map(|value| Value::Bool(*value)),
        }
    }
}

fn short() -> ParquetError {
    ParquetError::EOF("a column has fewer rows than its row group".to_owned())
}
