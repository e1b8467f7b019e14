//! Writes entries that the store cannot read to files, for people to read. Each entry has a file of
//! its own, so that feeding the same journal again writes the same file again.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;
use taximeter_ledger::{Fault, FramedEntry};
use tempfile::NamedTempFile;

/// Their folder in the data directory.
const DIR: &str = "rejected";

#[derive(Serialize)]
struct RejectedEntry<'a> {
    journal: &'a str,
    seq: u64,
    kind: String,
    reason: String,
    /// With all of its strings, in hexadecimal digits.
    payload_hex: String,
}

/// Keeps an entry of `journal`, and why the store cannot read it, in the data directory `dir`; on
/// the disk when this returns. Where it is.
pub(crate) fn set_aside(
    dir: &Path,
    journal: &str,
    framed: &FramedEntry,
    fault: &Fault,
) -> io::Result<PathBuf> {
    let FramedEntry { seq, chain, kind, payload, .. } = framed;
    let rejected = RejectedEntry {
        journal,
        seq: *seq,
        kind: format!("{kind:?}").to_lowercase(),
        reason: fault.to_string(),
        payload_hex: payload.to_vec().iter().map(|byte| format!("{byte:02x}")).collect(),
    };
    let folder = dir.join(DIR);
    fs::create_dir_all(&folder)?;
    let file = NamedTempFile::new_in(&folder)?;
    serde_json::to_writer_pretty(&file, &rejected)?;
    file.as_file().sync_all()?;
    // The chain tells it from an entry of another journal that had the number before.
    let path = folder.join(format!("{journal}-{seq:020}-{chain:08x}.json"));
    file.persist(&path)?;
    fs::File::open(&folder)?.sync_all()?;
    Ok(path)
}
