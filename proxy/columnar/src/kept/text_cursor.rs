//! Reads the texts of one column of a row group, forward and run by run: the cost is that of the runs, not
//! of the rows.

use bytes::Bytes;
use parquet::basic::{Encoding, Type};
use parquet::column::page::{Page, PageReader};
use parquet::errors::ParquetError;
use parquet::schema::types::ColumnDescPtr;

use super::errors::in_group;
use crate::error::ReadError;
use crate::hybrid;

/// The place of a reader in a column of texts.
pub struct TextCursor {
    pages: Box<dyn PageReader>,
    group: usize,
    nullable: bool,
    dictionary: Vec<Bytes>,
    /// The texts of the open page, if it has no numbers of texts in the dictionary.
    plain: Vec<Bytes>,
    /// The runs of the open page: the number of a text, or null, and its rows that are still to be read.
    runs: Vec<(Option<u32>, usize)>,
    run: usize,
    /// The row that comes next.
    at: usize,
}

impl TextCursor {
    /// At the first row.
    pub(super) fn new(
        pages: Box<dyn PageReader>,
        description: &ColumnDescPtr,
        group: usize,
    ) -> Result<Self, ReadError> {
        if description.physical_type() != Type::BYTE_ARRAY {
            return Err(ReadError::group(group, "a column of another type"));
        }
        Ok(Self {
            pages,
            group,
            nullable: description.max_def_level() > 0,
            dictionary: Vec::new(),
            plain: Vec::new(),
            runs: Vec::new(),
            run: 0,
            at: 0,
        })
    }

    /// Goes on to `row`, which is not before the next one.
    ///
    /// # Errors
    /// The file is damaged or cannot be read.
    pub fn skip_to(&mut self, row: usize) -> Result<(), ReadError> {
        while self.at < row {
            let (left, at_page_end) = (row - self.at, self.run >= self.runs.len());
            if at_page_end && self.skips_page(left).map_err(in_group(self.group))? {
                continue;
            }
            self.next_run(left)?;
        }
        Ok(())
    }

    /// The text of the next row, or null, and how many rows in a row have it: `most` at most. The same text
    /// may come again behind them.
    ///
    /// # Errors
    /// The file is damaged or cannot be read.
    pub fn next_run(&mut self, most: usize) -> Result<(Option<&[u8]>, usize), ReadError> {
        while self.run >= self.runs.len() {
            self.open_page().map_err(in_group(self.group))?;
        }
        let short = || ReadError::group(self.group, "a column has fewer rows than its row group");
        let (number, left) = self.runs.get_mut(self.run).ok_or_else(short)?;
        let rows = most.min(*left);
        *left -= rows;
        self.run += usize::from(*left == 0);
        self.at += rows;
        let texts = if self.plain.is_empty() { &self.dictionary } else { &self.plain };
        let text = number.map(|number| texts.get(usize::try_from(number).ok()?));
        match text {
            Some(None) => Err(ReadError::group(self.group, "a text is not in its dictionary")),
            text => Ok((text.flatten().map(|text| &**text), rows)),
        }
    }

    /// Leaves the next page out, if none of its rows is behind the next `rows`.
    fn skips_page(&mut self, rows: usize) -> Result<bool, ParquetError> {
        let next = self.pages.peek_next_page()?;
        let Some(of_page) = next.filter(|page| !page.is_dict).and_then(|page| page.num_rows) else {
            return Ok(false);
        };
        if of_page <= rows {
            self.pages.skip_next_page()?;
            self.at += of_page;
        }
        Ok(of_page <= rows)
    }

    fn open_page(&mut self) -> Result<(), ParquetError> {
        let page = self.pages.get_next_page()?;
        match page.ok_or_else(|| damaged("a column has fewer rows than its row group"))? {
            Page::DictionaryPage { buf, num_values, .. } => {
                self.dictionary = plain(&buf, num_values as usize)?;
            }
            Page::DataPage { buf, num_values, encoding, .. } => {
                (self.runs, self.plain) = self.page(&buf, num_values as usize, encoding)?;
                self.run = 0;
            }
            Page::DataPageV2 { .. } => return Err(damaged("a page of another version")),
        }
        Ok(())
    }

    /// The runs of a page, and its own texts.
    fn page(
        &self,
        page: &Bytes,
        rows: usize,
        encoding: Encoding,
    ) -> Result<PageRuns, ParquetError> {
        let cut = || damaged("a page ends too early");
        let mut rest = &**page;
        let mut levels = vec![(1, rows)];
        if self.nullable {
            let (length, behind) = rest.split_first_chunk::<4>().ok_or_else(cut)?;
            let length = usize::try_from(u32::from_le_bytes(*length))?;
            let (bytes, behind) = behind.split_at_checked(length).ok_or_else(cut)?;
            levels = hybrid::runs(bytes, 1, rows).ok_or_else(cut)?;
            rest = behind;
        }
        let texts: usize = levels.iter().filter(|level| level.0 == 1).map(|level| level.1).sum();
        let (numbers, own) = match encoding {
            Encoding::RLE_DICTIONARY | Encoding::PLAIN_DICTIONARY => {
                let (bits, bytes) = rest.split_first().ok_or_else(cut)?;
                let bits = Some(*bits).filter(|bits| u32::from(*bits) <= u32::BITS);
                let bits = bits.ok_or_else(|| damaged("a page has too many bits"))?;
                (hybrid::runs(bytes, bits, texts).ok_or_else(cut)?, Vec::new())
            }
            Encoding::PLAIN => {
                let own = plain(&page.slice_ref(rest), texts)?;
                ((0..u32::try_from(texts)?).map(|number| (number, 1)).collect(), own)
            }
            _ => return Err(damaged("a page of texts in another encoding")),
        };
        Ok((with_nulls(&levels, numbers), own))
    }
}

/// The runs of a page, and its own texts.
type PageRuns = (Vec<(Option<u32>, usize)>, Vec<Bytes>);

/// The runs of all rows: those of the `numbers` where a level is 1, and of nulls.
fn with_nulls(levels: &[(u32, usize)], numbers: Vec<(u32, usize)>) -> Vec<(Option<u32>, usize)> {
    let mut runs = Vec::with_capacity(levels.len() + numbers.len());
    let mut numbers = numbers.into_iter();
    let mut open = (0, 0);
    for &(level, mut rows) in levels {
        if level == 0 {
            runs.push((None, rows));
            continue;
        }
        while rows > 0 {
            if open.1 == 0 {
                let Some(next) = numbers.next() else { break };
                open = next;
            }
            let now = rows.min(open.1);
            runs.push((Some(open.0), now));
            rows -= now;
            open.1 -= now;
        }
    }
    runs
}

/// So many texts, each behind its length.
fn plain(bytes: &Bytes, count: usize) -> Result<Vec<Bytes>, ParquetError> {
    let cut = || damaged("a page ends too early");
    let mut texts = Vec::new();
    let mut at = 0;
    for _ in 0..count {
        let rest = bytes.get(at..).unwrap_or_default();
        let length = rest.first_chunk::<4>().ok_or_else(cut)?;
        let begin = at + length.len();
        let end = begin + usize::try_from(u32::from_le_bytes(*length))?;
        if end > bytes.len() {
            return Err(cut());
        }
        texts.push(bytes.slice(begin..end));
        at = end;
    }
    Ok(texts)
}

fn damaged(what: &str) -> ParquetError {
    ParquetError::General(what.to_owned())
}

#[cfg(test)]
mod tests;
