//! The state that the journal reports about itself.

use std::io;
use std::path::Path;

use jiff::Timestamp;

use super::disk::Disk;
use super::files;

/// The state of the journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JournalState {
    /// The last entry that was synced since the start, and when.
    pub synced: Option<(u64, Timestamp)>,
    /// Entries queued and being written, in bytes.
    pub queued_bytes: usize,
    /// Entries since the start for which nobody waited and that the queue refused.
    pub lost: u64,
    /// Posted requests whose usage is not known yet.
    pub pending: usize,
}

/// The files of a journal.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Segments {
    /// The number of segments.
    pub count: u64,
    /// The size of all segments.
    pub bytes: u64,
}

/// The segments in `dir`; one that goes meanwhile is not counted.
///
/// Errors: `dir` cannot be read.
pub(super) fn segments(dir: &Path, disk: &dyn Disk) -> io::Result<Segments> {
    let mut segments = Segments::default();
    for (_, path) in files::list(dir, disk)? {
        if let Ok(status) = files::status(&path, disk) {
            segments.count += 1;
            segments.bytes += status.length;
        }
    }
    Ok(segments)
}
