//! One column of texts in the open row group, of which most rows have the same as the row before. It is
//! written run by run: Parquet's own writer looks for each row's text in its dictionary.
//!
//! A page has the levels of its rows where the column is nullable, and then the numbers of their texts in
//! the dictionary, both in runs of Parquet's hybrid encoding. The dictionary is never given up: the writer
//! of the file ends the row group before it is too large.

use std::collections::HashMap;

use foldhash::fast::FixedState;
use parquet::basic::{BoundaryOrder, Compression, Encoding, PageType, ZstdLevel};
use parquet::column::page::{CompressedPage, Page, PageWriter};
use parquet::column::writer::ColumnCloseResult;
use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;
use parquet::file::metadata::{
    ColumnChunkMetaData, ColumnIndexBuilder, OffsetIndexBuilder, PageEncodingStats,
};
use parquet::file::statistics::Statistics;
use parquet::file::writer::{SerializedPageWriter, TrackedWrite};
use parquet::schema::types::ColumnDescPtr;

use super::column_buffer::Run;
use super::layout::Layout;
use crate::hybrid::{bits_of, push_run};

/// The texts of one column.
pub(super) struct RunColumn {
    description: ColumnDescPtr,
    zstd_level: i32,
    page_rows: usize,
    is_searched: bool,
    numbers: HashMap<Box<[u8]>, u32, FixedState>,
    /// The texts of the dictionary, as its page has them.
    dictionary: Vec<u8>,
    /// The runs of the open page: the number of a text, or null, and how many rows have it.
    runs: Vec<(Option<u32>, usize)>,
    rows: usize,
    pages: Vec<RunPage>,
}

/// A page that is whole.
struct RunPage {
    compressed: Vec<u8>,
    length: usize,
    rows: usize,
    nulls: usize,
    /// The smallest and the largest text.
    bounds: Option<(Vec<u8>, Vec<u8>)>,
}

impl RunColumn {
    pub(super) fn new(description: &ColumnDescPtr, layout: &Layout) -> Self {
        Self {
            description: description.clone(),
            zstd_level: layout.zstd_level,
            page_rows: layout.page_rows,
            is_searched: layout.searched.contains(&description.name()),
            numbers: HashMap::default(),
            dictionary: Vec::new(),
            runs: Vec::new(),
            rows: 0,
            pages: Vec::new(),
        }
    }

    /// Bytes of the dictionary.
    pub(super) const fn dictionary_bytes(&self) -> usize {
        self.dictionary.len()
    }

    /// Adds rows with these texts of `all`.
    pub(super) fn write(&mut self, all: &[u8], runs: &[Run]) -> Result<(), ParquetError> {
        for run in runs {
            let text = run.text.clone().map(|place| all.get(place).unwrap_or_default());
            let number = text.map(|text| self.number(text)).transpose()?;
            match self.runs.last_mut() {
                Some((last, rows)) if *last == number => *rows += run.times,
                _ => self.runs.push((number, run.times)),
            }
            self.rows += run.times;
        }
        if self.rows >= self.page_rows { self.end_page() } else { Ok(()) }
    }

    /// The number of a text in the dictionary.
    fn number(&mut self, text: &[u8]) -> Result<u32, ParquetError> {
        if let Some(number) = self.numbers.get(text) {
            return Ok(*number);
        }
        let number = u32::try_from(self.numbers.len())?;
        self.numbers.insert(text.into(), number);
        self.dictionary.extend(u32::try_from(text.len())?.to_le_bytes());
        self.dictionary.extend_from_slice(text);
        Ok(number)
    }

    fn end_page(&mut self) -> Result<(), ParquetError> {
        if self.rows == 0 {
            return Ok(());
        }
        let mut page = Vec::new();
        if self.description.max_def_level() > 0 {
            let mut levels = Vec::new();
            for of_level in self.runs.chunk_by(|a, b| a.0.is_some() == b.0.is_some()) {
                let is_there = of_level.first().is_some_and(|run| run.0.is_some());
                let rows = of_level.iter().map(|run| run.1).sum();
                push_run(&mut levels, 1, u32::from(is_there), rows);
            }
            page.extend(u32::try_from(levels.len())?.to_le_bytes());
            page.append(&mut levels);
        }
        let bits = bits_of(self.numbers.len());
        page.push(bits);
        for (number, rows) in &self.runs {
            if let Some(number) = number {
                push_run(&mut page, bits, *number, *rows);
            }
        }
        let compressed = compressed(&page, self.zstd_level)?;
        let nulls = self.runs.iter().filter(|run| run.0.is_none()).map(|run| run.1).sum();
        let bounds = if self.is_searched { self.bounds() } else { None };
        let (length, rows) = (page.len(), std::mem::take(&mut self.rows));
        self.pages.push(RunPage { compressed, length, rows, nulls, bounds });
        self.runs.clear();
        Ok(())
    }

    /// The smallest and the largest text of the open page.
    fn bounds(&self) -> Option<(Vec<u8>, Vec<u8>)> {
        let mut is_there = vec![false; self.numbers.len()];
        for (number, _) in &self.runs {
            let place = number.and_then(|number| is_there.get_mut(usize::try_from(number).ok()?));
            place.into_iter().for_each(|is_there| *is_there = true);
        }
        let is_there =
            |number: u32| usize::try_from(number).is_ok_and(|at| is_there.get(at) == Some(&true));
        let texts = || self.numbers.iter().filter(|one| is_there(*one.1)).map(|(text, _)| text);
        Some((texts().min()?.to_vec(), texts().max()?.to_vec()))
    }

    /// Ends the column: its bytes, and what the file says of them.
    pub(super) fn close(mut self) -> Result<(Vec<u8>, ColumnCloseResult), ParquetError> {
        self.end_page()?;
        let mut out = Out::default();
        let dictionary = Page::DictionaryPage {
            buf: compressed(&self.dictionary, self.zstd_level)?.into(),
            num_values: u32::try_from(self.numbers.len())?,
            encoding: Encoding::PLAIN,
            is_sorted: false,
        };
        let at = out.write(CompressedPage::new(dictionary, self.dictionary.len()))?;
        let first = out.bytes.bytes_written();
        let mut offsets = OffsetIndexBuilder::new();
        for page in &mut self.pages {
            let data = Page::DataPage {
                buf: std::mem::take(&mut page.compressed).into(),
                num_values: u32::try_from(page.rows)?,
                encoding: Encoding::RLE_DICTIONARY,
                def_level_encoding: Encoding::RLE,
                rep_level_encoding: Encoding::RLE,
                statistics: None,
            };
            let (offset, length) = out.write(CompressedPage::new(data, page.length))?;
            offsets.append_row_count(i64::try_from(page.rows)?);
            offsets.append_offset_and_size(offset, length);
        }
        let rows: usize = self.pages.iter().map(|page| page.rows).sum();
        let stats = |page_type, encoding, count| PageEncodingStats { page_type, encoding, count };
        let data_pages = i32::try_from(self.pages.len())?;
        let mut metadata = ColumnChunkMetaData::builder(self.description.clone())
            .set_compression(Compression::ZSTD(ZstdLevel::try_new(self.zstd_level)?))
            .set_encodings(vec![Encoding::PLAIN, Encoding::RLE, Encoding::RLE_DICTIONARY])
            .set_page_encoding_stats(vec![
                stats(PageType::DICTIONARY_PAGE, Encoding::PLAIN, 1),
                stats(PageType::DATA_PAGE, Encoding::RLE_DICTIONARY, data_pages),
            ])
            .set_num_values(i64::try_from(rows)?)
            .set_total_compressed_size(i64::try_from(out.bytes.bytes_written())?)
            .set_total_uncompressed_size(i64::try_from(out.uncompressed)?)
            .set_dictionary_page_offset(Some(at.0))
            .set_data_page_offset(i64::try_from(first)?);
        if self.is_searched {
            metadata = metadata.set_statistics(self.statistics());
        }
        let bytes = out.bytes.into_inner()?;
        let closed = ColumnCloseResult {
            bytes_written: bytes.len() as u64,
            rows_written: rows as u64,
            metadata: metadata.build()?,
            bloom_filter: None,
            column_index: if self.is_searched { Some(self.index()?.build()?) } else { None },
            offset_index: Some(offsets.build()),
        };
        Ok((bytes, closed))
    }

    /// The smallest and the largest text of all.
    fn statistics(&self) -> Statistics {
        let bounds = || self.pages.iter().filter_map(|page| page.bounds.as_ref());
        let text = |text: &Vec<u8>| ByteArray::from(text.clone());
        let least = bounds().map(|bounds| &bounds.0).min().map(text);
        let most = bounds().map(|bounds| &bounds.1).max().map(text);
        let nulls = self.pages.iter().map(|page| page.nulls as u64).sum();
        Statistics::byte_array(least, most, None, Some(nulls), false)
    }

    /// The same of each page.
    fn index(&self) -> Result<ColumnIndexBuilder, ParquetError> {
        let mut index = ColumnIndexBuilder::new(self.description.physical_type());
        for page in &self.pages {
            let (least, most) = page.bounds.clone().unwrap_or_default();
            index.append(page.bounds.is_none(), least, most, i64::try_from(page.nulls)?, None);
        }
        let bounds = || self.pages.iter().filter_map(|page| page.bounds.as_ref());
        let ascends = bounds().is_sorted_by(|a, b| a.0 <= b.0 && a.1 <= b.1);
        let order = if ascends { BoundaryOrder::ASCENDING } else { BoundaryOrder::UNORDERED };
        index.set_boundary_order(order);
        Ok(index)
    }
}

/// Pages one after the other.
struct Out {
    bytes: TrackedWrite<Vec<u8>>,
    /// Their bytes before compression, and their headers.
    uncompressed: usize,
}

impl Default for Out {
    fn default() -> Self {
        Self { bytes: TrackedWrite::new(Vec::new()), uncompressed: 0 }
    }
}

impl Out {
    /// Writes a page: its place and its length.
    fn write(&mut self, page: CompressedPage) -> Result<(i64, i32), ParquetError> {
        let written = SerializedPageWriter::new(&mut self.bytes).write_page(page)?;
        self.uncompressed += written.uncompressed_size;
        Ok((i64::try_from(written.offset)?, i32::try_from(written.compressed_size)?))
    }
}

fn compressed(bytes: &[u8], level: i32) -> Result<Vec<u8>, ParquetError> {
    Ok(zstd::bulk::compress(bytes, level)?)
}
