//! What can go wrong with the journal.

use std::io;
use std::path::{Path, PathBuf};

use taximeter_ledger::{EncodeError, Fault};

/// A journal that cannot be opened, read or closed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum JournalError {
    /// Another process writes it; exit 75.
    #[error("{} is in use by another process; stop it, or choose another data_dir", dir.display())]
    InUse {
        /// The journal's directory.
        dir: PathBuf,
    },
    /// The file system refused.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// With which file.
        path: PathBuf,
        /// What it said.
        source: io::Error,
    },
    /// A segment is not as it was written.
    #[error("{}: {fault}; nothing was changed: restore it, or move it away", path.display())]
    Segment {
        /// Which file.
        path: PathBuf,
        /// Where, expected, found.
        fault: Fault,
    },
    /// An entry made at start cannot be written.
    #[error(transparent)]
    Encode(#[from] EncodeError),
}

impl JournalError {
    /// For `map_err`: `action` on `path` failed.
    pub(super) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { action, path: path.to_owned(), source }
    }
}

/// An entry that is not written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum AppendError {
    /// Too many bytes wait to be written.
    #[error("the ledger's queue is full")]
    QueueFull,
    /// Writing fails; it is tried again until it succeeds.
    #[error("the ledger cannot be written")]
    Unavailable,
    /// The journal was closed.
    #[error("the ledger is closed")]
    Closed,
    /// The entry is too long or no JSON.
    #[error("the entry cannot be encoded")]
    Invalid,
}
