//! Opening a journal: what is in it, what was cut off, who was on the way when we died.

use std::fs::{File, TryLockError};
use std::path::Path;
use std::sync::Arc;

use taximeter_config::Durability;
use taximeter_ledger::{Contradiction, Draft, Entry, Fault, Position, Record, Replay, died};

use super::disk::{Disk, How, OpenFile};
use super::error::JournalError;
use super::files::{self, Segment};
use super::options::Options;
use super::queue::Queue;
use super::read::{Entries, Tail};
use super::write::{Place, Writer};

/// Contradictions that are kept to be told; further ones are only counted.
const CONTRADICTIONS_MAX: usize = 16;

/// The file that a writer holds locked.
const LOCK: &str = "journal.lock";

/// What was found when the journal was opened.
#[derive(Debug, Default)]
pub(crate) struct Recovery {
    /// Entries read.
    pub(crate) entries: u64,
    /// Requests that were posted before.
    pub(crate) posts: u64,
    /// Requests that were voided before.
    pub(crate) voids: u64,
    /// Entries that said again what was known.
    pub(crate) repeats: u64,
    /// Bytes of an entry that was cut off while it was written; they are cut off now.
    pub(crate) torn_bytes: u64,
    /// Requests that were open: their records are posted now, with `seq`.
    pub(crate) died: Vec<Record>,
    /// Entries that cannot all be true, the first few; the earlier one of each pair is believed.
    pub(crate) contradictions: Vec<Contradiction>,
    /// How many there are.
    pub(crate) contradictions_count: u64,
    /// Sequence number of the next entry.
    pub(crate) next_seq: u64,
}

/// Reads the journal in `dir`, cuts off a torn end and posts what was open.
pub(super) fn open(
    dir: &Path,
    options: Options,
    disk: Arc<dyn Disk>,
    segment_bytes: u64,
) -> Result<(Arc<Queue>, Writer, Recovery), JournalError> {
    let synced = options.durability != Durability::Os;
    files::create_dir(dir, &*disk, synced).map_err(JournalError::io("create", dir))?;
    let lock = lock(dir, &*disk)?;
    let mut entries = Entries::new(Arc::clone(&disk), dir, 1);
    let place = Place { dir: dir.to_owned(), disk, segment_bytes, _lock: lock };
    let mut recovery = Recovery::default();
    let replay = recovery.replay(&mut entries)?;
    let before = entries.position();
    let tail = entries.tail();
    recovery.torn_bytes = tail.as_ref().map_or(0, |tail| tail.torn_bytes);
    let mut segment = match tail {
        None => place.begin(&options, before, &[]).map_err(JournalError::io("write", dir))?,
        Some(Tail { header: Some(_), path, offset, .. }) => {
            Segment::open(&path, offset, &*place.disk).map_err(JournalError::io("open", &path))?
        }
        // Its header was cut off, so nothing was in it; its name must be the next, or more is gone.
        Some(Tail { path, .. }) if path == files::path(dir, before.seq + 1) => {
            place.begin(&options, before, &[]).map_err(JournalError::io("write", &path))?
        }
        Some(Tail { path, torn_bytes: bytes, .. }) => {
            return Err(JournalError::Segment { path, fault: Fault::Torn { offset: 0, bytes } });
        }
    };
    let (frames, last) = recovery.close_open(&replay, before, &options.gateway)?;
    place
        .append(&options, &mut segment, &frames)
        .map_err(JournalError::io("write", segment.path()))?;
    let queue = Arc::new(Queue::new(options, last));
    let writer = Writer::new(place, Arc::clone(&queue), segment);
    Ok((queue, writer, recovery))
}

impl Recovery {
    fn replay(&mut self, entries: &mut Entries) -> Result<Replay, JournalError> {
        let mut replay = Replay::default();
        while let Some(framed) = entries.next().transpose()? {
            self.entries += 1;
            let entry = framed.entry().map_err(|fault| entries.fault(fault))?;
            if let Err(contradiction) = replay.apply(framed.seq, &entry) {
                self.contradictions_count += 1;
                if self.contradictions.len() < CONTRADICTIONS_MAX {
                    self.contradictions.push(contradiction);
                }
            }
        }
        self.posts = replay.posts();
        self.voids = replay.voids();
        self.repeats = replay.repeats();
        Ok(replay)
    }

    /// Records of what was open, and their frames. They end when the gateway was last known to
    /// live: a later time could move the charge into another month.
    fn close_open(
        &mut self,
        replay: &Replay,
        before: Position,
        gateway: &str,
    ) -> Result<(Vec<u8>, Position), JournalError> {
        let (mut frames, mut payload, mut last) = (Vec::new(), Vec::new(), before);
        let at = replay.last_sign_of_life().unwrap_or_default();
        for open in replay.open() {
            let mut record = died(&open.reserve, open.progress.as_ref(), at, gateway);
            let entry = Entry::Post(Box::new(record.clone()));
            last = Draft::new(&entry, &mut payload)?.seal(last, &mut frames);
            record.seq = last.seq;
            self.died.push(record);
        }
        self.next_seq = last.seq + 1;
        Ok((frames, last))
    }
}

/// Whether a process has the journal in `dir` open for writing.
pub(super) fn is_locked(dir: &Path) -> bool {
    let file = File::open(dir.join(LOCK));
    file.is_ok_and(|file| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)))
}

fn lock(dir: &Path, disk: &dyn Disk) -> Result<Arc<dyn OpenFile>, JournalError> {
    let path = dir.join(LOCK);
    let file = disk.open(&path, How::AppendOrCreate).map_err(JournalError::io("open", &path))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(JournalError::InUse { dir: dir.to_owned() }),
        Err(TryLockError::Error(source)) => Err(JournalError::io("lock", &path)(source)),
    }
}
