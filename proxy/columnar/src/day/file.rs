//! A file that is open: its footer, its indexes, and where its columns are.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use parquet::errors::ParquetError;
use parquet::file::metadata::{
    ColumnChunkMetaData, ParquetMetaData, ParquetMetaDataReader, RowGroupMetaData,
};
use parquet::file::page_index::column_index::ColumnIndexMetaData;
use parquet::file::page_index::index_reader::{decode_column_index, decode_offset_index};
use parquet::file::page_index::offset_index::PageLocation;
use serde::Deserialize;

use super::blocks::{Blocks, ReadAt};
use super::column::Cursor;
use super::footer::{
    CHECK_LENGTH, FOOTER_BYTES_MAX, FOOTER_KEY, FORMAT, Footer, check_position, check_text,
};
use crate::error::ReadError;
use crate::record::{COUNT, Form, fields};

/// The last bytes of a file: the length of the footer, and `PAR1`.
const END_BYTES: usize = 8;

/// A file of a day, open for reading. Nothing of it is read ahead but footer and indexes: about
/// 3 MiB for a day of 100 requests a second.
pub struct DayFile<R> {
    pub(super) blocks: Arc<Blocks<R>>,
    metadata: ParquetMetaData,
    footer: Footer,
    /// What is between the row groups and the footer: checks, then indexes.
    index: Bytes,
    /// The place of each of our columns in the file.
    columns: Vec<usize>,
}

impl<R: ReadAt + 'static> DayFile<R> {
    /// Opens a file.
    ///
    /// # Errors
    /// The file cannot be read. Its footer is damaged. Its format is another one.
    pub fn open(reader: R) -> Result<Self, ReadError> {
        let length = reader.length()?;
        let tail = Tail::read(&reader, length)?;
        let parsed = tail.footer.get(..tail.footer.len() - END_BYTES).unwrap_or_default();
        let metadata = ParquetMetaDataReader::decode_metadata(parsed).map_err(ReadError::footer)?;
        let footer = footer_of(&metadata)?;
        let start = footer.body_bytes;
        let index_bytes = tail.start.checked_sub(start);
        let index_bytes = index_bytes.and_then(|bytes| usize::try_from(bytes).ok());
        let index_bytes = index_bytes.ok_or_else(|| ReadError::footer("the file is cut"))?;
        let mut index = vec![0; index_bytes];
        reader.read_at(start, &mut index)?;
        if check_text(crc32c::crc32c(&index)).as_bytes() != tail.of_index {
            return Err(ReadError::footer("the indexes are not those that were written"));
        }
        let index = Bytes::from(index);
        let blocks = Blocks::new(reader, start, index.clone());
        let names = metadata.file_metadata().schema_descr().columns();
        let columns = fields(Form::Day).map(|field| {
            names.iter().position(|column| column.name() == field.name).unwrap_or(usize::MAX)
        });
        let columns = columns.collect();
        let file = Self { blocks: Arc::new(blocks), metadata, footer, index, columns };
        file.fits()?;
        Ok(file)
    }

    /// What the file says about its rows.
    #[must_use]
    pub const fn footer(&self) -> &Footer {
        &self.footer
    }

    /// Number of row groups.
    #[must_use]
    pub fn groups(&self) -> usize {
        self.metadata.num_row_groups()
    }

    /// Whether the numbers of the footer fit each other.
    fn fits(&self) -> Result<(), ReadError> {
        let rows = self.metadata.row_groups().iter().map(RowGroupMetaData::num_rows);
        let rows = rows.map(u64::try_from).sum::<Result<u64, _>>();
        let is_sum = rows.is_ok_and(|rows| rows == self.footer.rows);
        if !is_sum || self.footer.groups.len() != self.groups() {
            return Err(ReadError::footer("the row groups are not those of the file"));
        }
        Ok(())
    }

    pub(super) fn group(&self, group: usize) -> Result<&RowGroupMetaData, ReadError> {
        let found = self.metadata.row_groups().get(group);
        found.ok_or_else(|| ReadError::group(group, "it is not in the footer"))
    }

    /// Rows of a row group.
    pub(super) fn rows(&self, group: usize) -> Result<usize, ReadError> {
        let rows = usize::try_from(self.group(group)?.num_rows());
        rows.map_err(|_| ReadError::group(group, "it has no number of rows"))
    }

    pub(super) fn column(
        &self,
        group: usize,
        column: usize,
    ) -> Result<&ColumnChunkMetaData, ReadError> {
        let place = self.columns.get(column).copied().unwrap_or(usize::MAX);
        let found = self.group(group)?.columns().get(place);
        found.ok_or_else(|| ReadError::group(group, "a column is missing"))
    }

    /// Where the pages of a column are.
    pub(super) fn pages(
        &self,
        group: usize,
        column: usize,
    ) -> Result<Vec<PageLocation>, ReadError> {
        let range = self.column(group, column)?.offset_index_range();
        let pages = decode_offset_index(self.index(range)?).map_err(ReadError::footer)?;
        Ok(pages.page_locations().clone())
    }

    /// The rows of each page of a column.
    pub(super) fn page_rows(
        &self,
        group: usize,
        column: usize,
    ) -> Result<Vec<Range<usize>>, ReadError> {
        let pages = self.pages(group, column)?;
        let starts = pages.iter().map(|page| usize::try_from(page.first_row_index));
        let mut starts = starts.collect::<Result<Vec<_>, _>>().map_err(ReadError::footer)?;
        starts.push(self.rows(group)?);
        Ok(starts.windows(2).filter_map(|pair| Some(*pair.first()?..*pair.last()?)).collect())
    }

    /// The smallest and the largest value of each page of a column.
    pub(super) fn page_values(
        &self,
        group: usize,
        column: usize,
    ) -> Result<ColumnIndexMetaData, ReadError> {
        let chunk = self.column(group, column)?;
        let bytes = self.index(chunk.column_index_range())?;
        decode_column_index(bytes, chunk.column_type()).map_err(ReadError::footer)
    }

    fn index(&self, range: Option<Range<u64>>) -> Result<&[u8], ReadError> {
        let place = |at: u64| usize::try_from(at.checked_sub(self.footer.body_bytes)?).ok();
        let found = range.and_then(|range| self.index.get(place(range.start)?..place(range.end)?));
        found.ok_or_else(|| ReadError::footer("an index is missing"))
    }

    /// A reader of a column, at its first row.
    pub(super) fn cursor(&self, group: usize, column: usize) -> Result<Cursor, ReadError> {
        let pages = self.pages(group, column)?;
        let (chunk, rows) = (self.column(group, column)?, self.rows(group)?);
        Cursor::new(&self.blocks, chunk, rows, pages).map_err(in_group(group))
    }

    /// Readers of all columns.
    pub(super) fn cursors(&self, group: usize) -> Result<Vec<Cursor>, ReadError> {
        (0..COUNT).map(|column| self.cursor(group, column)).collect()
    }
}

/// What an error in the bytes of a row group is to the caller.
pub(super) fn in_group(group: usize) -> impl Fn(ParquetError) -> ReadError {
    move |error| match error {
        ParquetError::External(error) => match error.downcast::<std::io::Error>() {
            Ok(error) => of_read(group, *error),
            Err(error) => ReadError::group(group, error),
        },
        error => ReadError::group(group, error),
    }
}

/// The same for bytes that are read directly.
pub(super) fn of_read(group: usize, error: std::io::Error) -> ReadError {
    use std::io::ErrorKind::{InvalidData, UnexpectedEof};
    match error.kind() {
        InvalidData => ReadError::group(group, error),
        UnexpectedEof => ReadError::group(group, "the file is cut"),
        _ => ReadError::Read(error),
    }
}

/// The end of a file.
struct Tail {
    /// Where the footer begins.
    start: u64,
    /// From there to the end of the file.
    footer: Vec<u8>,
    /// The check of what is before it.
    of_index: Vec<u8>,
}

impl Tail {
    /// Reads a footer and checks its bytes.
    fn read(reader: &impl ReadAt, length: u64) -> Result<Self, ReadError> {
        let cut = || ReadError::footer("the file is cut");
        let end_start = length.checked_sub(END_BYTES as u64).ok_or_else(cut)?;
        let mut end = [0; END_BYTES];
        reader.read_at(end_start, &mut end)?;
        let [a, b, c, d, magic @ ..] = end;
        if magic != *b"PAR1" {
            return Err(ReadError::footer("the file does not end as Parquet does: it is cut"));
        }
        let footer_bytes = u64::from(u32::from_le_bytes([a, b, c, d]));
        let start =
            end_start.checked_sub(footer_bytes).filter(|_| footer_bytes <= FOOTER_BYTES_MAX);
        let start = start.ok_or_else(cut)?;
        let mut footer = vec![0; usize::try_from(length - start).map_err(|_| cut())?];
        reader.read_at(start, &mut footer)?;
        let changed = || ReadError::footer("its bytes are not those that were written");
        let at = check_position(&footer).ok_or_else(changed)?;
        let of_index = footer.get(at - CHECK_LENGTH..at).ok_or_else(changed)?.to_vec();
        let place = footer.get_mut(at..at + CHECK_LENGTH).ok_or_else(changed)?;
        let check = place.to_vec();
        place.fill(b'0');
        if check_text(crc32c::crc32c(&footer)).as_bytes() != check {
            return Err(changed());
        }
        Ok(Self { start, footer, of_index })
    }
}

/// What a file says about its rows.
fn footer_of(metadata: &ParquetMetaData) -> Result<Footer, ReadError> {
    #[derive(Deserialize)]
    struct OfFormat {
        format: u32,
    }
    let pairs = metadata.file_metadata().key_value_metadata();
    let mut pairs = pairs.into_iter().flatten();
    let json = pairs.find(|pair| pair.key == FOOTER_KEY).and_then(|pair| pair.value.as_ref());
    let json = json.ok_or_else(|| ReadError::footer("it is not a file of records"))?;
    let OfFormat { format } = serde_json::from_str(json).map_err(ReadError::footer)?;
    if format != FORMAT {
        return Err(ReadError::Format { found: format, known: FORMAT });
    }
    serde_json::from_str(json).map_err(ReadError::footer)
}
