//! A file that is open: its footer, its indexes, and where its columns are.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use parquet::column::page::PageReader;
use parquet::file::metadata::{
    ColumnChunkMetaData, ParquetMetaData, ParquetMetaDataReader, RowGroupMetaData,
};
use parquet::file::page_index::column_index::ColumnIndexMetaData;
use parquet::file::page_index::index_reader::{decode_column_index, decode_offset_index};
use parquet::file::page_index::offset_index::PageLocation;
use parquet::file::serialized_reader::SerializedPageReader;
use parquet::schema::types::ColumnDescPtr;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::blocks::{BLOCK_BYTES, Blocks, ReadAt};
use super::checks::{BODY_KEY, CHECK_LENGTH, FOOTER_BYTES_MAX, check_position, check_text};
use super::cursor::Cursor;
use super::errors::{in_group, of_read};
use super::text_cursor::TextCursor;
use crate::error::{Part, ReadError};

/// The last bytes of a file: the length of the footer, and `PAR1`.
const END_BYTES: usize = 8;

/// What kind of file is expected.
pub struct FileKind<'a> {
    /// The key of the JSON in its footer.
    pub key: &'a str,
    /// The format that the JSON has to name.
    pub format: u32,
    /// The names of the columns.
    pub columns: Vec<&'static str>,
    /// The columns by which rows are selected: the tenant, and the time.
    pub selected: [&'static str; 2],
}

/// A file that is open for reading. Nothing of it is read ahead but footer and indexes: about 3 MiB
/// for a day of 100 requests a second.
pub struct KeptFile<R> {
    blocks: Arc<Blocks<R>>,
    metadata: ParquetMetaData,
    /// Length of the file.
    length: u64,
    /// Length of the row groups.
    body: u64,
    /// What is between the row groups and the footer: checks, then indexes.
    index: Bytes,
    /// The place of each column in the file.
    columns: Vec<usize>,
    /// The columns of the tenant and of the time.
    pub(super) tenant: usize,
    pub(super) time: usize,
}

impl<R: ReadAt + 'static> KeptFile<R> {
    /// Opens a file, and what its footer says about its rows: `rows` is how many that are.
    ///
    /// # Errors
    /// The file cannot be read. Its footer is damaged. It is of another kind or format.
    pub fn open<F: DeserializeOwned>(
        reader: R,
        kind: &FileKind<'_>,
        rows: impl FnOnce(&F) -> u64,
    ) -> Result<(Self, F), ReadError> {
        let (file, json) = Self::with_json(reader, kind)?;
        let footer = footer_of(&json, kind.format)?;
        if file.all_rows()? != rows(&footer) {
            return Err(ReadError::footer("the row groups are not those of the file"));
        }
        Ok((file, footer))
    }

    /// Opens a file, and the JSON of its footer.
    fn with_json(reader: R, kind: &FileKind<'_>) -> Result<(Self, String), ReadError> {
        let length = reader.length()?;
        let tail = Tail::read(&reader, length)?;
        let parsed = tail.footer.get(..tail.footer.len() - END_BYTES).unwrap_or_default();
        let metadata = ParquetMetaDataReader::decode_metadata(parsed).map_err(ReadError::footer)?;
        let json = value_of(&metadata, kind.key);
        let json = json.ok_or_else(|| ReadError::footer("it is a file of another kind"))?.clone();
        let body = value_of(&metadata, BODY_KEY).and_then(|body| body.parse::<u64>().ok());
        let index_bytes = body.and_then(|body| tail.start.checked_sub(body));
        let index_bytes = index_bytes.and_then(|bytes| usize::try_from(bytes).ok());
        let (Some(body), Some(index_bytes)) = (body, index_bytes) else {
            return Err(ReadError::footer("the file is cut"));
        };
        let mut index = vec![0; index_bytes];
        reader.read_at(body, &mut index)?;
        if check_text(crc32c::crc32c(&index)).as_bytes() != tail.of_index {
            return Err(ReadError::footer("the indexes are not those that were written"));
        }
        let index = Bytes::from(index);
        let blocks = Arc::new(Blocks::new(reader, body, index.clone()));
        let there = metadata.file_metadata().schema_descr().columns();
        let place = |name: &&str| there.iter().position(|column| column.name() == *name);
        let columns = kind.columns.iter().map(|name| place(name).unwrap_or(usize::MAX)).collect();
        let own = |name| kind.columns.iter().position(|it| *it == name).unwrap_or(usize::MAX);
        let [tenant, time] = kind.selected.map(own);
        Ok((Self { blocks, metadata, length, body, index, columns, tenant, time }, json))
    }

    /// Length of the file in bytes.
    #[must_use]
    pub const fn bytes_of_file(&self) -> u64 {
        self.length
    }

    /// Rows of the file.
    fn all_rows(&self) -> Result<u64, ReadError> {
        let rows = self.metadata.row_groups().iter().map(|group| u64::try_from(group.num_rows()));
        rows.sum::<Result<u64, _>>().map_err(ReadError::footer)
    }

    /// Length of the row groups.
    #[cfg(test)]
    pub(crate) fn body_bytes(&self) -> usize {
        usize::try_from(self.body).unwrap()
    }

    /// Some bytes of the row groups.
    pub(crate) fn bytes(&self, group: usize, at: u64, length: usize) -> Result<Bytes, ReadError> {
        self.blocks.range(at, length).map_err(|error| of_read(group, error))
    }

    /// Reads all row groups without decoding them. Of each that is damaged the first damage is shown.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn check_groups(&self, find: &mut dyn FnMut(Part, String)) -> Result<(), ReadError> {
        let mut damaged = BTreeMap::new();
        for block in 0..self.blocks.count() {
            let Err(error) = self.blocks.block(block) else { continue };
            let end = (block + 1) * BLOCK_BYTES;
            let first = self.group_at(block * BLOCK_BYTES);
            let last = self.group_at(end.saturating_sub(1));
            match of_read(first, error) {
                ReadError::Damaged { what, .. } => {
                    for group in first..=last {
                        damaged.entry(group).or_insert_with(|| what.clone());
                    }
                }
                error => return Err(error),
            }
        }
        damaged.into_iter().for_each(|(group, what)| find(Part::Group(group), what));
        Ok(())
    }

    /// The last row group that begins at or before `offset`: a Bloom filter is behind its group.
    fn group_at(&self, offset: u64) -> usize {
        let begin = |group: &RowGroupMetaData| {
            group.columns().first().map_or(0, |column| column.byte_range().0)
        };
        let groups = self.metadata.row_groups();
        groups.iter().rposition(|group| begin(group) <= offset).unwrap_or(0)
    }

    /// Number of row groups.
    #[must_use]
    pub fn groups(&self) -> usize {
        self.metadata.num_row_groups()
    }

    pub(crate) fn group(&self, group: usize) -> Result<&RowGroupMetaData, ReadError> {
        let found = self.metadata.row_groups().get(group);
        found.ok_or_else(|| ReadError::group(group, "it is not in the footer"))
    }

    /// Rows of a row group.
    ///
    /// # Errors
    /// There is no such group.
    pub fn rows(&self, group: usize) -> Result<usize, ReadError> {
        let rows = usize::try_from(self.group(group)?.num_rows());
        rows.map_err(|_| ReadError::group(group, "it has no number of rows"))
    }

    /// Whether the file has a column.
    pub(crate) fn has_column(&self, column: usize) -> bool {
        self.columns.get(column).is_some_and(|place| *place != usize::MAX)
    }

    pub(crate) fn column(
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
        let place = |at: u64| usize::try_from(at.checked_sub(self.body)?).ok();
        let found = range.and_then(|range| self.index.get(place(range.start)?..place(range.end)?));
        found.ok_or_else(|| ReadError::footer("an index is missing"))
    }

    /// A reader of a column, at its first row.
    ///
    /// # Errors
    /// The file is damaged or cannot be read.
    pub fn cursor(&self, group: usize, column: usize) -> Result<Cursor, ReadError> {
        let (pages, description) = self.pages_of(group, column)?;
        Cursor::new(pages, description, group)
    }

    /// A reader of a column of texts of which most rows have the same as the row before.
    ///
    /// # Errors
    /// The file is damaged, or the column has no texts.
    pub fn text_cursor(&self, group: usize, column: usize) -> Result<TextCursor, ReadError> {
        let (pages, description) = self.pages_of(group, column)?;
        TextCursor::new(pages, &description, group)
    }

    /// The pages of a column of a row group, and what it is.
    fn pages_of(
        &self,
        group: usize,
        column: usize,
    ) -> Result<(Box<dyn PageReader>, ColumnDescPtr), ReadError> {
        let pages = Some(self.pages(group, column)?);
        let (chunk, rows) = (self.column(group, column)?, self.rows(group)?);
        let pages = SerializedPageReader::new(Arc::clone(&self.blocks), chunk, rows, pages);
        Ok((Box::new(pages.map_err(in_group(group))?), chunk.column_descr_ptr()))
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

/// A value among the key-values of a footer.
fn value_of<'a>(metadata: &'a ParquetMetaData, key: &str) -> Option<&'a String> {
    let pairs = metadata.file_metadata().key_value_metadata()?;
    pairs.iter().find(|pair| pair.key == key)?.value.as_ref()
}

/// Reads the JSON of a footer, if it is of this format.
fn footer_of<F: DeserializeOwned>(json: &str, known: u32) -> Result<F, ReadError> {
    #[derive(Deserialize)]
    struct OfFormat {
        #[serde(default)]
        format: u32,
    }
    let OfFormat { format: found } =
        serde_json::from_slice(json.as_bytes()).map_err(ReadError::footer)?;
    if found != known {
        return Err(ReadError::Format { found, known });
    }
    serde_json::from_slice(json.as_bytes()).map_err(ReadError::footer)
}
