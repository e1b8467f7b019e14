//! One column of a group that is open: its values are encoded as they come, and its pages held until
//! the columns before it are whole.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use parquet::column::page::{CompressedPage, PageWriteSpec, PageWriter};
use parquet::column::writer::{ColumnWriter, get_column_writer};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterPropertiesPtr;
use parquet::file::writer::{SerializedPageWriter, SerializedRowGroupWriter, TrackedWrite};
use parquet::schema::types::ColumnDescPtr;

use super::values::{Column, Texts};
use crate::export::error::ExportError;

/// Pages of one column.
pub(super) struct Chunk {
    writer: ColumnWriter<'static>,
    texts: Texts,
    pages: Held,
}

impl Chunk {
    pub(super) fn new(column: &ColumnDescPtr, properties: &WriterPropertiesPtr) -> Self {
        let pages = Held::default();
        let writer = Box::new(Pages(TrackedWrite::new(pages.clone())));
        let writer = get_column_writer(Arc::clone(column), Arc::clone(properties), writer);
        Self { writer, texts: Texts::default(), pages }
    }

    /// Writes the column of some rows.
    pub(super) fn write(&mut self, column: &mut Column) -> Result<(), ExportError> {
        column.write(&mut self.writer, &mut self.texts)
    }

    /// Ends it, as the next column of `group`.
    pub(super) fn append_to<W: Write + Send>(
        self,
        group: &mut SerializedRowGroupWriter<'_, W>,
    ) -> Result<(), ParquetError> {
        let closed = self.writer.close()?;
        group.append_column(&Bytes::from(self.pages.take()), closed)
    }
}

/// Bytes that the writer of a column puts away, and its chunk takes.
#[derive(Clone, Default)]
struct Held(Arc<Mutex<Vec<u8>>>);

impl Held {
    fn take(&self) -> Vec<u8> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Write for Held {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Parquet's own writer of pages, without a loan of what it writes to.
struct Pages(TrackedWrite<Held>);

impl PageWriter for Pages {
    fn write_page(&mut self, page: CompressedPage) -> Result<PageWriteSpec, ParquetError> {
        SerializedPageWriter::new(&mut self.0).write_page(page)
    }

    fn close(&mut self) -> Result<(), ParquetError> {
        SerializedPageWriter::new(&mut self.0).close()
    }
}
