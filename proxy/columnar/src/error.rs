//! Why a file cannot be written or read.

use std::io;

use parquet::errors::ParquetError;

/// Why a file cannot be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// A number that the format, or a decimal, cannot hold.
    #[error("{what} is too large to be kept exactly")]
    TooLarge {
        /// The number.
        what: &'static str,
    },
    /// An entry that is not a record.
    #[error("entry {seq} is not a record: {what}")]
    Unreadable {
        /// Its sequence number.
        seq: u64,
        /// What is wrong.
        what: String,
    },
    /// A row does not belong where it comes.
    #[error("entry {seq} does not belong here: {what}")]
    Misplaced {
        /// Its sequence number.
        seq: u64,
        /// What is wrong.
        what: String,
    },
    /// The output cannot be written.
    #[error(transparent)]
    Write(#[from] io::Error),
    /// The Parquet file cannot be written.
    #[error("cannot write the Parquet file: {0}")]
    Parquet(#[from] ParquetError),
}

/// Writing our own types as JSON fails only if the output fails.
impl From<serde_json::Error> for WriteError {
    fn from(error: serde_json::Error) -> Self {
        Self::Write(error.into())
    }
}

/// Where in a file something is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// The footer, or what lies between it and the row groups.
    Footer,
    /// A row group, from 0 on.
    Group(usize),
}

impl std::fmt::Display for Part {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Footer => f.write_str("footer"),
            Self::Group(number) => write!(f, "row group {number}"),
        }
    }
}

/// Why a file cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// Its bytes are not those that were written.
    #[error("{part}: {what}")]
    Damaged {
        /// Where.
        part: Part,
        /// What is wrong.
        what: String,
    },
    /// A newer version wrote it.
    #[error("format {found} is not {known}, the one that this version reads")]
    Format {
        /// Format of the file.
        found: u32,
        /// The format that this version reads.
        known: u32,
    },
    /// The file cannot be read.
    #[error(transparent)]
    Read(#[from] io::Error),
}

impl ReadError {
    pub(crate) fn footer(what: impl ToString) -> Self {
        Self::Damaged { part: Part::Footer, what: what.to_string() }
    }

    pub(crate) fn group(group: usize, what: impl ToString) -> Self {
        Self::Damaged { part: Part::Group(group), what: what.to_string() }
    }
}
