//! Decides whether damage lies only in bytes that were never confirmed as synced.
//!
//! A power cut may leave any blocks of unsynced data. Then whole entries can follow a hole, as they
//! do if a synced entry has rotted. The marks decide which of the two it is. Segments that are
//! synced carry marks, and each of them but the last was synced to its end before the next one
//! began. For segments written with `durability: os` nobody can know.

use std::path::Path;

use taximeter_ledger::{Fault, HEADER_BYTES, Reader, SyncMark};

use super::disk::Disk;
use super::error::JournalError;
use super::files;

/// Whether nothing from `fault` on, in the segment `path` of the journal in `dir`, is known to have
/// been synced.
///
/// # Errors
/// `Io`.
pub(super) fn is_behind_all_synced(
    disk: &dyn Disk,
    dir: &Path,
    path: &Path,
    fault: &Fault,
) -> Result<bool, JournalError> {
    let (Fault::Damaged { offset, .. } | Fault::Torn { offset, .. }) = fault else {
        return Ok(false);
    };
    let offset = usize::try_from(*offset).unwrap_or(usize::MAX);
    let segments = files::list(dir, disk).map_err(JournalError::io("list", dir))?;
    if offset < HEADER_BYTES || segments.last().is_none_or(|(_, last)| last != path) {
        return Ok(false);
    }
    let bytes = files::read(path, disk, usize::MAX).map_err(JournalError::io("read", path))?;
    let (before, behind) = bytes.split_at(offset.min(bytes.len()));
    let mut reader = Reader::new(None, u64::MAX);
    reader.feed(before);
    let _ = reader.next_entry();
    let Some(header) = reader.header().filter(|header| header.has_sync_marks) else {
        return Ok(false);
    };
    let damaged = reader.position().seq + 1;
    Ok(SyncMark::last_in(behind, header.ledger).is_none_or(|synced| synced < damaged))
}
