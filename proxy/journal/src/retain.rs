//! Decides which segments may be removed, and removes them.

use std::io::ErrorKind;
use std::mem;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};

use super::CORRECTIONS;
use super::disk::{Disk, Kernel};
use super::error::JournalError;
use super::files;
use super::read::last_checkpoint;

/// How often old segments are looked for.
const PERIOD: Duration = Duration::from_secs(3600);

/// Removes old segments from time to time, after the store has their entries.
#[derive(Debug)]
pub struct Retention {
    dir: PathBuf,
    keep: SignedDuration,
    /// The last entry that was written when the store was last fed.
    written: u64,
    due: Option<Instant>,
}

impl Retention {
    /// For the journals in the data directory `dir`. `written` is the last entry of the journal of
    /// requests, before the store is fed.
    pub fn new(dir: &Path, keep_days: u32, written: u64) -> Self {
        let keep = SignedDuration::from_hours(24 * i64::from(keep_days));
        Self { dir: dir.to_owned(), keep, written, due: None }
    }

    /// Removes segments after the store was fed, and returns their paths. `written` is the last
    /// entry now. `sent` returns the last request and the last correction that the receiver has, or
    /// `u64::MAX` without a receiver. `corrections` is the last correction that the store has. If
    /// the directory is `nearly_full`, age does not count and nothing is postponed.
    ///
    /// # Errors
    /// As `retire`.
    pub fn fed(
        &mut self,
        written: u64,
        sent: impl Fn() -> (u64, u64),
        corrections: u64,
        nearly_full: bool,
        (now, at): (Instant, Timestamp),
    ) -> Result<Vec<PathBuf>, JournalError> {
        let stored = mem::replace(&mut self.written, written);
        if !nearly_full && self.due.is_some_and(|due| now < due) {
            return Ok(Vec::new());
        }
        self.due = Some(now + PERIOD);
        let kept = at.checked_sub(self.keep).unwrap_or(Timestamp::MIN);
        let until = if nearly_full { Timestamp::MAX } else { kept };
        let (sent, sent_corrections) = sent();
        let mut removed = retire(&self.dir, until, stored.min(sent))?;
        let dir = self.dir.join(CORRECTIONS);
        removed.extend(retire(&dir, until, corrections.min(sent_corrections))?);
        Ok(removed)
    }
}

/// Removes the segments of the journal in `dir` whose last entry was written before `until`, also
/// while it is written. What it gives back are their paths.
///
/// A segment stays while it has an entry behind `done`, the last one that nobody else needs, and
/// while the next start needs it: from the last checkpoint on, or from the oldest reservation on that
/// was open there and that the segment of the checkpoint does not carry over.
///
/// # Errors
/// `Io`, `Segment`; what was not removed is there as before.
pub(super) fn retire(
    dir: &Path,
    until: Timestamp,
    done: u64,
) -> Result<Vec<PathBuf>, JournalError> {
    let disk: Arc<dyn Disk> = Arc::new(Kernel);
    let segments = match files::list(dir, &*disk) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        listed => listed.map_err(JournalError::io("list", dir))?,
    };
    let mut old = Vec::new();
    for ((_, path), (next, next_path)) in segments.iter().zip(segments.iter().skip(1)) {
        // A segment ends when the next one begins.
        let begun = files::header(next_path, &*disk)
            .map_err(JournalError::io("read", next_path))?
            .map(|header| header.created);
        if *next > done.saturating_add(1) || begun.is_none_or(|begun| begun >= until) {
            break;
        }
        old.push((*next, path));
    }
    if old.is_empty() {
        return Ok(Vec::new());
    }
    let needed = last_checkpoint(&disk, dir)?.map_or(0, |last| last.from);
    let mut removed = Vec::new();
    for (_, path) in old.into_iter().take_while(|(next, _)| *next <= needed) {
        files::remove(path, &*disk).map_err(JournalError::io("remove", path))?;
        removed.push(path.clone());
    }
    Ok(removed)
}
