//! Reads the values of one column of a row group, forward.

use parquet::basic::Type;
use parquet::column::page::PageReader;
use parquet::column::reader::ColumnReaderImpl;
use parquet::data_type::{
    BoolType, ByteArray, ByteArrayType, FixedLenByteArray, FixedLenByteArrayType, Int32Type,
    Int64Type,
};
use parquet::errors::ParquetError;
use parquet::schema::types::ColumnDescPtr;

use super::errors::in_group;
use crate::error::ReadError;
use crate::value::Value;

/// The place of a reader in a column, and the values of some rows.
pub struct Cursor {
    column: Column,
    group: usize,
    /// The row that comes next in the file.
    at: usize,
    nullable: bool,
    /// 1 for a value and 0 for null, of each row that was read, if the column is nullable.
    levels: Vec<i16>,
    next_level: usize,
    next_value: usize,
}

/// Parquet's readers of the types that columns have, and what they have read. Its own list of readers has more
/// types, whose code would be in the program.
enum Column {
    Bytes(ColumnReaderImpl<ByteArrayType>, Vec<ByteArray>),
    Fixed(ColumnReaderImpl<FixedLenByteArrayType>, Vec<FixedLenByteArray>),
    Int64(ColumnReaderImpl<Int64Type>, Vec<i64>),
    Int32(ColumnReaderImpl<Int32Type>, Vec<i32>),
    Bool(ColumnReaderImpl<BoolType>, Vec<bool>),
}

impl Cursor {
    /// At the first row.
    pub(super) fn new(
        pages: Box<dyn PageReader>,
        description: ColumnDescPtr,
        group: usize,
    ) -> Result<Self, ReadError> {
        let nullable = description.max_def_level() > 0;
        let column = match description.physical_type() {
            Type::BYTE_ARRAY => {
                Column::Bytes(ColumnReaderImpl::new(description, pages), Vec::new())
            }
            Type::FIXED_LEN_BYTE_ARRAY => {
                Column::Fixed(ColumnReaderImpl::new(description, pages), Vec::new())
            }
            Type::INT64 => Column::Int64(ColumnReaderImpl::new(description, pages), Vec::new()),
            Type::INT32 => Column::Int32(ColumnReaderImpl::new(description, pages), Vec::new()),
            Type::BOOLEAN => Column::Bool(ColumnReaderImpl::new(description, pages), Vec::new()),
            _ => return Err(ReadError::group(group, "a column of another type")),
        };
        let levels = Vec::new();
        Ok(Self { column, group, at: 0, nullable, levels, next_level: 0, next_value: 0 })
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
        let is_whole = match &mut self.column {
            Column::Bytes(reader, values) => read!(reader, values),
            Column::Fixed(reader, values) => read!(reader, values),
            Column::Int64(reader, values) => read!(reader, values),
            Column::Int32(reader, values) => read!(reader, values),
            Column::Bool(reader, values) => read!(reader, values),
        };
        self.at = start + count;
        if is_whole { Ok(()) } else { Err(short()) }
    }

    /// The 64-bit numbers of the rows that were read, of a column without nulls.
    #[must_use]
    pub fn int64s(&self) -> &[i64] {
        match &self.column {
            Column::Int64(_, values) => values,
            _ => &[],
        }
    }

    /// The same of 32-bit numbers.
    #[must_use]
    pub fn int32s(&self) -> &[i32] {
        match &self.column {
            Column::Int32(_, values) => values,
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
        match &self.column {
            Column::Bytes(_, values) => values.get(at).map(|value| Value::Bytes(value.data())),
            Column::Fixed(_, values) => values.get(at).map(|value| Value::Bytes(value.data())),
            Column::Int64(_, values) => values.get(at).map(|value| Value::Int(*value)),
            Column::Int32(_, values) => values.get(at).map(|value| Value::Int((*value).into())),
            Column::Bool(_, values) => values.get(at).map(|value| Value::Bool(*value)),
        }
    }
}

fn short() -> ParquetError {
    ParquetError::EOF("a column has fewer rows than its row group".to_owned())
}
