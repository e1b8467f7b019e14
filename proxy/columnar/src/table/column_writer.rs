//! Parquet's writers of the types that columns have. Its own list of writers has more types, whose code would
//! be in the program.

use std::sync::Arc;

use parquet::basic::Type;
use parquet::column::page::PageWriter;
use parquet::column::writer::{ColumnCloseResult, ColumnWriterImpl};
use parquet::data_type::{
    BoolType, ByteArrayType, DoubleType, FixedLenByteArrayType, Int32Type, Int64Type,
};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterPropertiesPtr;
use parquet::schema::types::ColumnDescPtr;

/// The writer of a column.
pub(super) enum ColumnWriter {
    Bytes(ColumnWriterImpl<'static, ByteArrayType>),
    Fixed(ColumnWriterImpl<'static, FixedLenByteArrayType>),
    Int64(ColumnWriterImpl<'static, Int64Type>),
    Int32(ColumnWriterImpl<'static, Int32Type>),
    Bool(ColumnWriterImpl<'static, BoolType>),
    Double(ColumnWriterImpl<'static, DoubleType>),
}

impl ColumnWriter {
    pub(super) fn new(
        column: &ColumnDescPtr,
        properties: &WriterPropertiesPtr,
        pages: Box<dyn PageWriter>,
    ) -> Result<Self, ParquetError> {
        let (column, properties) = (Arc::clone(column), Arc::clone(properties));
        Ok(match column.physical_type() {
            Type::BYTE_ARRAY => Self::Bytes(ColumnWriterImpl::new(column, properties, pages)),
            Type::FIXED_LEN_BYTE_ARRAY => {
                Self::Fixed(ColumnWriterImpl::new(column, properties, pages))
            }
            Type::INT64 => Self::Int64(ColumnWriterImpl::new(column, properties, pages)),
            Type::INT32 => Self::Int32(ColumnWriterImpl::new(column, properties, pages)),
            Type::BOOLEAN => Self::Bool(ColumnWriterImpl::new(column, properties, pages)),
            Type::DOUBLE => Self::Double(ColumnWriterImpl::new(column, properties, pages)),
            Type::INT96 | Type::FLOAT => {
                return Err(ParquetError::General("a column of another type".to_owned()));
            }
        })
    }

    pub(super) fn close(self) -> Result<ColumnCloseResult, ParquetError> {
        match self {
            Self::Bytes(writer) => writer.close(),
            Self::Fixed(writer) => writer.close(),
            Self::Int64(writer) => writer.close(),
            Self::Int32(writer) => writer.close(),
            Self::Bool(writer) => writer.close(),
            Self::Double(writer) => writer.close(),
        }
    }
}
