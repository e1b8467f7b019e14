//! One column of the open row group. Its values are encoded at once, and its pages are kept until
//! the columns before it are written.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use parquet::column::page::{CompressedPage, PageWriteSpec, PageWriter};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterPropertiesPtr;
use parquet::file::writer::{SerializedPageWriter, SerializedRowGroupWriter, TrackedWrite};
use parquet::schema::types::ColumnDescPtr;

use super::column_buffer::{ColumnBuffer, Texts};
use super::column_writer::ColumnWriter;
use super::layout::Layout;
use super::run_column::RunColumn;
use crate::error::WriteError;

/// The pages of one column.
#[expect(clippy::large_enum_variant, reason = "there are as many as columns")]
pub(super) enum ColumnChunk {
    /// Parquet's own writer encodes them.
    Values { writer: ColumnWriter, texts: Texts, pages: SharedBuffer },
    /// They are written run by run.
    Runs(RunColumn),
}

impl ColumnChunk {
    pub(super) fn new(
        column: &ColumnDescPtr,
        layout: &Layout,
        properties: &WriterPropertiesPtr,
    ) -> Result<Self, ParquetError> {
        if layout.repeated.contains(&column.name()) {
            return Ok(Self::Runs(RunColumn::new(column, layout)));
        }
        let pages = SharedBuffer::default();
        let writer = Box::new(OwnedPageWriter(TrackedWrite::new(pages.clone())));
        let writer = ColumnWriter::new(column, properties, writer)?;
        Ok(Self::Values { writer, texts: Texts::default(), pages })
    }

    /// Writes the values of one column.
    pub(super) fn write(&mut self, column: &mut ColumnBuffer) -> Result<(), WriteError> {
        match self {
            Self::Values { writer, texts, .. } => column.write(writer, texts),
            Self::Runs(to) => {
                let (all, runs) = column.runs()?;
                Ok(to.write(all, runs)?)
            }
        }
    }

    /// Bytes of a dictionary that has no bound of its own.
    pub(super) const fn dictionary_bytes(&self) -> usize {
        match self {
            Self::Values { .. } => 0,
            Self::Runs(runs) => runs.dictionary_bytes(),
        }
    }

    /// Ends the column and appends it to `group`.
    pub(super) fn append_to<W: Write + Send>(
        self,
        group: &mut SerializedRowGroupWriter<'_, W>,
    ) -> Result<(), ParquetError> {
        let (bytes, closed) = match self {
            Self::Values { writer, pages, .. } => {
                let closed = writer.close()?;
                (pages.take(), closed)
            }
            Self::Runs(runs) => runs.close()?,
        };
        group.append_column(&Bytes::from(bytes), closed)
    }
}

/// A buffer that is shared by the writer of a column and its chunk.
#[derive(Clone, Default)]
pub(super) struct SharedBuffer(Arc<Mutex<Vec<u8>>>);

impl SharedBuffer {
    fn take(&self) -> Vec<u8> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Write for SharedBuffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Parquet's writer of pages. It owns its output and does not borrow it.
struct OwnedPageWriter(TrackedWrite<SharedBuffer>);

impl PageWriter for OwnedPageWriter {
    fn write_page(&mut self, page: CompressedPage) -> Result<PageWriteSpec, ParquetError> {
        SerializedPageWriter::new(&mut self.0).write_page(page)
    }

    fn close(&mut self) -> Result<(), ParquetError> {
        SerializedPageWriter::new(&mut self.0).close()
    }
}
