//! What goes wrong with samples.

use std::io;
use std::path::Path;

use taximeter_columnar::{ReadError, WriteError};

/// What goes wrong with samples. Nothing of requests depends on them.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MemoryError {
    /// A file or a folder cannot be read or written.
    #[error("{path}: {why}")]
    Unavailable {
        /// Which one.
        path: String,
        /// Why.
        why: String,
    },
    /// What a file has is not what was written.
    #[error("{path} is damaged: {why}")]
    Damaged {
        /// Which one.
        path: String,
        /// What is wrong.
        why: String,
    },
}

impl MemoryError {
    pub(super) fn at(path: &Path, error: &io::Error) -> Self {
        Self::Unavailable { path: path.display().to_string(), why: error.to_string() }
    }

    pub(super) fn unwritable(path: &Path, error: &WriteError) -> Self {
        Self::Unavailable { path: path.display().to_string(), why: error.to_string() }
    }

    pub(super) fn unreadable(path: &Path, error: &ReadError) -> Self {
        let (path, why) = (path.display().to_string(), error.to_string());
        match error {
            ReadError::Damaged { .. } | ReadError::Format { .. } => Self::Damaged { path, why },
            _ => Self::Unavailable { path, why },
        }
    }
}
