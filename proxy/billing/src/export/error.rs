//! Why an export cannot be written.

use std::io;

use parquet::errors::ParquetError;

/// What went wrong; its text says what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExportError {
    /// A number that the format, or a decimal, cannot hold.
    #[error("{what} is too large to be kept exactly; export a shorter period")]
    TooLarge {
        /// Which number.
        what: &'static str,
    },
    /// An entry that is no record.
    #[error(
        "entry {seq} cannot be exported: {what}; `taximeter verify` tells what of the store is not as \
         it was written"
    )]
    Unreadable {
        /// Its number.
        seq: u64,
        /// What is wrong.
        what: String,
    },
    /// What is written to says no.
    #[error("cannot write the export: {0}")]
    Write(#[from] io::Error),
    /// The same, from inside a Parquet file.
    #[error("cannot write the Parquet file: {0}")]
    Parquet(#[from] ParquetError),
}

/// JSON of our own types fails only where it is written to.
impl From<serde_json::Error> for ExportError {
    fn from(error: serde_json::Error) -> Self {
        Self::Write(error.into())
    }
}
