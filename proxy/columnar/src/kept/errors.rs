//! What errors of Parquet and of reading mean to the caller.

use parquet::errors::ParquetError;

use crate::error::ReadError;

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
