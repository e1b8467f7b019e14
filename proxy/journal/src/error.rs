//! The errors of the journal.

use std::borrow::Cow;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use taximeter_ledger::{EncodeError, Fault, format4};

use super::CORRECTIONS;

/// A journal that cannot be opened, read or closed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JournalError {
    /// Another process writes it; exit 75.
    #[error("{} is in use by another process; stop it, or choose another data_dir", dir.display())]
    InUse {
        /// The journal's directory.
        dir: PathBuf,
    },
    /// The file system refused.
    #[error("cannot {action} {}: {source}{}", path.display(), suggestion(source))]
    Io {
        /// What was tried.
        action: &'static str,
        /// With which file.
        path: PathBuf,
        /// What it said.
        source: io::Error,
    },
    /// A segment differs from what was written.
    #[error("{}: {fault}; nothing was changed: {}", path.display(), advice(path, fault))]
    Segment {
        /// Which file.
        path: PathBuf,
        /// Where, expected, found.
        fault: Fault,
    },
    /// An entry that a start made cannot be written.
    #[error(transparent)]
    Encode(#[from] EncodeError),
}

/// What to do about a volume that cannot be written. `None` if the error says too little for that.
#[must_use]
pub fn remedy(error: &io::Error) -> Option<&'static str> {
    match error.kind() {
        ErrorKind::StorageFull => Some(
            "make room on the volume: `df -h` shows its free blocks and `df -i` its free inodes",
        ),
        ErrorKind::QuotaExceeded => Some("make room, or raise the quota of the gateway's user"),
        ErrorKind::FileTooLarge => Some("raise the limit of the length of files (`ulimit -f`)"),
        ErrorKind::ReadOnlyFilesystem => Some("mount the volume so that it can be written"),
        _ => None,
    }
}

fn suggestion(error: &io::Error) -> String {
    remedy(error).map(|remedy| format!("; {remedy}")).unwrap_or_default()
}

/// What to do about a segment that cannot be read.
fn advice(path: &Path, fault: &Fault) -> Cow<'static, str> {
    let advice = match fault {
        Fault::Format { found: found @ (format4::VERSION | format4::CONVERTING), .. } => {
            return convert(path, *found).into();
        }
        Fault::Format { found, known } if *found > *known => {
            "use the newer taximeter that wrote it"
        }
        Fault::Format { .. } => "use the older taximeter that wrote it, or another data_dir",
        _ => {
            "restore it, or set `ledger.recovery: salvage` to leave out what cannot be read and go on"
        }
    };
    advice.into()
}

/// The command that makes the journal of this segment readable.
fn convert(path: &Path, format: u16) -> String {
    let dir = path.parent().unwrap_or(path);
    let dir = dir.parent().filter(|_| dir.ends_with(CORRECTIONS)).unwrap_or(dir).display();
    let command = format!("taximeter convert --data-dir {dir}");
    if format == format4::CONVERTING {
        format!("a conversion has not ended, so run `{command}` again")
    } else {
        format!("run `{command}`, which converts the ledger of an older taximeter")
    }
}

impl JournalError {
    /// For `map_err`: `action` on `path` failed.
    pub(super) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { action, path: path.to_owned(), source }
    }
}

/// Entries that cannot be read.
#[derive(Debug)]
pub struct Loss {
    /// The damaged segment.
    pub path: PathBuf,
    /// Where, expected, found.
    pub fault: Fault,
    /// Sequence number of the first entry that is lost.
    pub first_seq: u64,
    /// How many entries are lost. It is an upper bound if nothing after them could be read.
    pub entries: u64,
    /// Set if the damage is only in bytes that were not synced: how many bytes of the segment are
    /// left out. A power cut may lose them, and they were not confirmed as synced.
    pub torn_bytes: Option<u64>,
    /// Where the damaged segment is now.
    pub kept: PathBuf,
}

/// Why an entry is not written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AppendError {
    /// Too many bytes wait to be written.
    #[error("the ledger's queue is full")]
    QueueFull,
    /// Writing fails; it is tried again until it succeeds.
    #[error("the ledger cannot be written")]
    Unavailable,
    /// The journal was closed.
    #[error("the ledger is closed")]
    Closed,
    /// The entry completes a request that is not pending: it was completed before, or it is no
    /// longer kept.
    #[error("the request is not pending")]
    NotPending,
    /// The entry is too long or no JSON.
    #[error("the entry cannot be encoded")]
    Invalid,
}
