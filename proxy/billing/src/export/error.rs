//! Why an export cannot be written.

use std::io;

use taximeter_columnar::WriteError;

/// Why an export cannot be written. The message says what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExportError {
    /// A number that the format, or a decimal, cannot hold.
    #[error("{what} is too large to be kept exactly; export a shorter period")]
    TooLarge {
        /// The number.
        what: &'static str,
    },
    /// An entry that is not a record.
    #[error(
        "entry {seq} cannot be exported: {what}; `taximeter verify` shows what is wrong in the \
         store"
    )]
    Unreadable {
        /// Its sequence number.
        seq: u64,
        /// What is wrong.
        what: String,
    },
    /// The output cannot be written.
    #[error("cannot write the export: {0}")]
    Write(#[from] io::Error),
    /// The Parquet file cannot be written.
    #[error(transparent)]
    Parquet(WriteError),
}

impl From<WriteError> for ExportError {
    fn from(error: WriteError) -> Self {
        match error {
            WriteError::TooLarge { what } => Self::TooLarge { what },
            WriteError::Unreadable { seq, what } => Self::Unreadable { seq, what },
            WriteError::Write(error) => Self::Write(error),
            error => Self::Parquet(error),
        }
    }
}

/// Writing our own types as JSON fails only if the output fails.
impl From<serde_json::Error> for ExportError {
    fn from(error: serde_json::Error) -> Self {
        Self::Write(error.into())
    }
}
