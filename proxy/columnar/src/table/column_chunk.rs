//! One column of the open row group. Its values are encoded at once, and its pages are kept until
//! the columns before it are written.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use parquet::column::page::{CompressedPage, PageWriteSpec, PageWriter};
use parquet::column::writer::{ColumnWriter, get_column_writer};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterPropertiesPtr;
use parquet::file::writer::{SerializedPageWriter, SerializedRowGroupWriter, TrackedWrite};
use parquet::schema::types::ColumnDescPtr;

use super::column_buffer::{ColumnBuffer, Texts};
use crate::error::WriteError;

/// The pages of one column.
pub(super) struct ColumnChunk {
    writer: ColumnWriter<'static>,
    texts: Texts,
    pages: SharedBuffer,
}

impl ColumnChunk {
    pub(super) fn new(column: &ColumnDescPtr, properties: &WriterPropertiesPtr) -> Self {
        let pages = SharedBuffer::default();
        let writer = Box::new(OwnedPageWriter(TrackedWrite::new(pages.clone())));
        let writer = get_column_writer(Arc::clone(column), Arc::clone(properties), writer);
        Self { writer, texts: Texts::default(), pages }
    }

    /// Writes the values of one column.
    pub(super) fn write(&mut self, column: &mut ColumnBuffer) -> Result<(), WriteError> {
        column.write(&mut self.writer, &mut self.texts)
    }

    /// Ends the column and appends it to `group`.
    pub(super) fn append_to<W: Write + Send>(
        self,
        group: &mut SerializedRowGroupWriter<'_, W>,
    ) -> Result<(), ParquetError> {
        let closed = self.writer.close()?;
        group.append_column(&Bytes::from(self.pages.take()), closed)
    }
}

/// A buffer that is shared by the writer of a column and its chunk.
#[derive(Clone, Default)]
struct SharedBuffer(Arc<Mutex<Vec<u8>>>);

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
