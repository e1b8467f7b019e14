//! Merges files of one day.

use std::cmp::Ordering;
use std::io::Write;

use taximeter_ledger::{Place, RequestId};

use super::file::DayFile;
use super::scan::{Row, Scan};
use super::writer::DayWriter;
use crate::error::{ReadError, WriteError};
use crate::kept::{ReadAt, RowFilter};

/// Why files are not merged.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MergeError {
    /// A file is damaged or cannot be read.
    #[error("file {file}: {error}")]
    Read {
        /// Its place among the files, from 0 on.
        file: usize,
        /// What is wrong.
        error: ReadError,
    },
    /// Two entries say different things about one request.
    #[error(
        "request {id} is entry {} of ledger {} and, with other content, entry {} of ledger {}",
        .one.seq, .one.ledger, .other.seq, .other.ledger
    )]
    Contradiction {
        /// The request.
        id: RequestId,
        /// One of the entries.
        one: Place,
        /// The other.
        other: Place,
    },
    /// The output cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
}

/// The next row of a file.
struct Head<'f, R> {
    scan: Scan<'f, R>,
    has_row: bool,
}

impl<R: ReadAt + 'static> Head<'_, R> {
    fn advance(&mut self) -> Result<(), ReadError> {
        self.has_row = self.scan.next_row()?.is_some();
        Ok(())
    }

    fn row(&self) -> Option<Row<'_>> {
        self.scan.row().filter(|_| self.has_row)
    }
}

/// Adds the rows of `files` to `to`, in order. A request that several of them have is added once.
///
/// Of each file a page of each column is in memory.
///
/// # Errors
/// Then `to` must not be finished.
pub fn merge<R: ReadAt + 'static, W: Write + Send>(
    files: &[DayFile<R>],
    to: &mut DayWriter<W>,
) -> Result<(), MergeError> {
    let mut heads: Vec<_> = files
        .iter()
        .map(|file| Head { scan: file.scan(RowFilter::default()), has_row: false })
        .collect();
    for (file, head) in heads.iter_mut().enumerate() {
        head.advance().map_err(|error| MergeError::Read { file, error })?;
    }
    // Few files are merged at once, so that looking at each is as cheap as a heap.
    while let Some(least) = least(&heads)? {
        let head = heads.get_mut(least);
        let Some(head) = head else { return Ok(()) };
        if let Some(row) = head.row() {
            to.add_record(row.place, row.record, row.payload)?;
        }
        let written = head.row().map(|row| (row.record.tenant.clone(), row.record.id));
        for (file, head) in heads.iter_mut().enumerate() {
            let is_written = head.row().zip(written.as_ref()).is_some_and(|(row, written)| {
                row.record.id == written.1 && row.record.tenant == written.0
            });
            if is_written {
                head.advance().map_err(|error| MergeError::Read { file, error })?;
            }
        }
    }
    Ok(())
}

/// The place of the head that comes first. `None` at the end.
fn least<R: ReadAt + 'static>(heads: &[Head<'_, R>]) -> Result<Option<usize>, MergeError> {
    let mut least: Option<(usize, Row<'_>)> = None;
    for (place, head) in heads.iter().enumerate() {
        let Some(row) = head.row() else { continue };
        let order = least.map_or(Ordering::Less, |(_, first)| {
            (&row.record.tenant, row.record.id).cmp(&(&first.record.tenant, first.record.id))
        });
        match (order, least) {
            (Ordering::Less, _) => least = Some((place, row)),
            (Ordering::Equal, Some((_, first))) if first.payload != row.payload => {
                let (id, one, other) = (row.record.id, first.place, row.place);
                return Err(MergeError::Contradiction { id, one, other });
            }
            // The lower place, so that the result does not depend on the order of the files.
            (Ordering::Equal, Some((_, first))) if row.place < first.place => {
                least = Some((place, row));
            }
            _ => {}
        }
    }
    Ok(least.map(|(place, _)| place))
}
