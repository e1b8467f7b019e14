//! Converts the ledger of an older version: the journals, the cursors of pushes, then the store.

use std::io::{self, Write};
use std::path::Path;

use jiff::Timestamp;
use taximeter_journal::convert::{Conversion, Damage, Follow};
use taximeter_journal::{CORRECTIONS, JournalError, Loss, REQUESTS};
use taximeter_ledger::Position;

use super::error::StoreError;
use super::keeper::check_keeper;
use super::push;
use super::sqlite::Sqlite;

/// Most faults of a kind that are told.
const TOLD_MAX: usize = 100;

/// Why a ledger cannot be converted.
#[derive(Debug, thiserror::Error)]
pub enum ConvertError {
    /// A journal cannot be read or written.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The store cannot be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The directory or the output cannot be written.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Converts the ledger in `data_dir`, and says to `out` what was done, and to `err` what is damaged.
/// With damage it changes nothing, unless that is to be left out by a `salvage`. Whether nothing is
/// left to do. It calls `steps` for each entry.
///
/// # Errors
/// What was converted before stays so, and the next call goes on there.
pub fn convert(
    data_dir: &Path,
    salvage: bool,
    now: Timestamp,
    steps: &mut dyn FnMut(&'static str),
    (out, err): (&mut dyn Write, &mut dyn Write),
) -> Result<bool, ConvertError> {
    check_keeper(data_dir)?;
    let conversion = Conversion::begin(data_dir)?;
    if !conversion.is_needed() {
        if !convert_store(data_dir, out)? {
            writeln!(out, "{} needs no conversion", data_dir.display())?;
        }
        return Ok(true);
    }
    let mut follow = Cursors { data_dir, steps };
    let damage = conversion.examine(&mut follow)?;
    tell(&damage, err)?;
    if !damage.is_none() && !salvage {
        writeln!(
            err,
            "nothing was changed: restore what is damaged from a backup, or run this with --salvage \
             to leave it out"
        )?;
        return Ok(false);
    }
    let converted = conversion.run(now, &mut follow)?;
    writeln!(
        out,
        "{} segments with {} entries converted: {} bytes before, {} now",
        converted.segments, converted.entries, converted.bytes_before, converted.bytes
    )?;
    convert_store(data_dir, out)?;
    Ok(true)
}

/// Converts the store in `data_dir`, if it is old. Whether it was. What it lacks it gets when it is fed.
fn convert_store(data_dir: &Path, out: &mut dyn Write) -> Result<bool, ConvertError> {
    let Some(moved) = Sqlite::convert(data_dir)? else { return Ok(false) };
    writeln!(
        out,
        "the store is converted: {} records and {} corrections",
        moved.kept_records, moved.kept_corrections
    )?;
    Ok(true)
}

/// Says what is wrong.
fn tell(damage: &Damage, err: &mut dyn Write) -> io::Result<()> {
    let Damage { losses, altered, unreadable } = damage;
    for Loss { path, fault, first_seq, entries, torn_bytes, .. } in losses.iter().take(TOLD_MAX) {
        write!(err, "{}: {fault}; ", path.display())?;
        match (torn_bytes, entries) {
            (Some(bytes), 0) => {
                writeln!(err, "{bytes} bytes that were not known to be on the disk are left out")
            }
            (_, 0) => writeln!(err, "no entry is lost"),
            (_, 1) => writeln!(err, "entry {first_seq} cannot be read"),
            (_, entries) => {
                writeln!(err, "entries {first_seq} to {} cannot be read", first_seq + entries - 1)
            }
        }?;
    }
    for altered in altered.iter().take(TOLD_MAX) {
        writeln!(
            err,
            "{} differs from what was written: its SHA-256 up to entry {} is {}, and {} says {}",
            altered.path.display(),
            altered.last,
            altered.digest,
            altered.behind.display(),
            altered.said
        )?;
    }
    for (path, fault) in unreadable.iter().take(TOLD_MAX) {
        writeln!(err, "{}: {fault}; it is kept as it is", path.display())?;
    }
    let counts = [losses.len(), altered.len(), unreadable.len()];
    let more: usize = counts.into_iter().map(|count| count.saturating_sub(TOLD_MAX)).sum();
    if more > 0 {
        writeln!(err, "and {more} more")?;
    }
    Ok(())
}

/// The cursors of pushes in the data directory.
struct Cursors<'a> {
    data_dir: &'a Path,
    steps: &'a mut dyn FnMut(&'static str),
}

impl Follow for Cursors<'_> {
    fn watched(&self, journal: &str) -> Vec<u64> {
        let (requests, corrections) = push::sent(self.data_dir);
        match journal {
            REQUESTS => vec![requests],
            CORRECTIONS => vec![corrections],
            _ => Vec::new(),
        }
    }

    fn moved(&self, journal: &str, from: Position, to: Position) -> io::Result<()> {
        push::follow(self.data_dir, journal, from, to)
    }

    fn entry(&mut self, what: &'static str) {
        (self.steps)(what);
    }
}
