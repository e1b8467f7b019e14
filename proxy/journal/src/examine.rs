//! Reads every byte of a journal for `taximeter verify`, and reports everything that is wrong, not
//! only the first fault.
//!
//! One thread reads the bytes, checks them and computes the digests. Several threads parse the
//! entries.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use taximeter_ledger::{Entry, Fault, FramedEntry};
use taximeter_system::lanes::Lanes;

use super::disk::{Disk, Kernel};
use super::error::JournalError;
use super::files;
use super::lock::is_locked;
use super::promise;
use super::read::{Altered, Entries};

/// Entries that are read together.
const BATCH_ENTRIES: usize = 512;
/// Bytes of such entries, but for the last one.
const BATCH_BYTES: usize = 1 << 20;

/// What was found.
#[derive(Debug, Default)]
pub struct Examination {
    /// Files.
    pub segments: u64,
    /// Their lengths.
    pub bytes: u64,
    /// Entries that are whole.
    pub entries: u64,
    /// Sequence number of the first one.
    pub first: Option<u64>,
    /// Sequence number of the last one.
    pub last: Option<u64>,
    /// Who wrote them.
    pub gateways: BTreeSet<String>,
    /// What is wrong, with the file.
    pub faults: Vec<(PathBuf, Fault)>,
    /// Entries that are intact but cannot be understood. The store has none of them.
    pub unreadable: Vec<(PathBuf, Fault)>,
    /// Segments that pass their checks but differ from what was written.
    pub altered: Vec<Altered>,
    /// An incomplete entry at the end: it is being written, or was cut off.
    pub torn: Option<Torn>,
    /// Whether a gateway has the journal open.
    pub is_written: bool,
    /// The gateway removed segments that were not read yet, so what was read before them is not
    /// counted: `first` is the first entry behind them.
    pub passed_removed: bool,
}

/// What is shown of a journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seen<R> {
    /// An entry.
    Entry(R),
    /// The gateway removed segments that were not read yet. Behind them, it begins anew: what was
    /// shown so far is not part of what the journal has.
    BeginsAnew,
}

/// What was made of an entry, and whether the journal begins anew with it.
type Made<R> = (bool, Result<R, (PathBuf, Fault)>);

/// Bytes behind the last whole entry.
#[derive(Debug)]
pub struct Torn {
    /// Which file.
    pub path: PathBuf,
    /// End of the last whole entry.
    pub offset: u64,
    /// How many.
    pub bytes: u64,
}

/// Reads the journal in `dir` from its first byte to its last, and shows `visit` in order what `read`
/// makes of each whole entry. A directory without a journal has none. Meanwhile a gateway may write,
/// compress and remove segments.
///
/// Behind a fault it goes on with the next segment; what lies between is not guessed.
///
/// Errors: `Io`; `Segment` if the journal has another format.
pub fn examine<R: Send>(
    dir: &Path,
    read: impl Fn(&FramedEntry, Entry) -> R + Sync,
    mut visit: impl FnMut(Seen<R>),
) -> Result<Examination, JournalError> {
    let disk: &Arc<dyn Disk> = &(Arc::new(Kernel) as Arc<dyn Disk>);
    let is_written = is_locked(dir);
    let mut found = Examination { is_written, ..Examination::default() };
    let segments = match files::list(dir, &**disk) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(found),
        listed => listed.map_err(JournalError::io("list", dir))?,
    };
    files::check_format(dir, &**disk)?;
    found.count(&segments, &**disk)?;
    let mut next = segments.first().map(|(first, _)| *first);
    while let Some(from) = next {
        let mut entries = Entries::new(Arc::clone(disk), dir, from).digesting().passing_removed();
        next = match found.read(&mut entries, &read, &mut visit) {
            Ok(()) => None,
            Err(JournalError::Segment { path, fault })
                if !found.is_written
                    && promise::is_behind_all_synced(&**disk, dir, &path, &fault)? =>
            {
                None
            }
            Err(JournalError::Segment { path, fault }) => {
                let damaged = files::first_seq(&path);
                found.faults.push((path, fault));
                segments.iter().map(|(first, _)| *first).find(|first| Some(*first) > damaged)
            }
            Err(error) => return Err(error),
        };
        found.altered.append(&mut entries.take_altered());
        found.torn = entries.tail().filter(|tail| tail.torn_bytes > 0).map(|tail| Torn {
            path: tail.path,
            offset: tail.offset,
            bytes: tail.torn_bytes,
        });
    }
    // What was damaged has been told.
    let damaged = |torn: &Torn| found.faults.iter().any(|(path, _)| *path == torn.path);
    if found.torn.as_ref().is_some_and(damaged) {
        found.torn = None;
    }
    if found.passed_removed {
        let segments = files::list(dir, &**disk).map_err(JournalError::io("list", dir))?;
        found.count(&segments, &**disk)?;
    }
    Ok(found)
}

/// An entry that was read, and its file.
struct Gathered {
    framed: FramedEntry,
    path: Arc<Path>,
    begins_anew: bool,
}

impl Examination {
    /// Counts the files and their bytes. One that goes meanwhile is not counted.
    fn count(&mut self, segments: &[(u64, PathBuf)], disk: &dyn Disk) -> Result<(), JournalError> {
        (self.segments, self.bytes) = (0, 0);
        for (_, path) in segments {
            match files::status(path, disk) {
                Ok(status) => {
                    self.segments += 1;
                    self.bytes += status.length;
                }
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(JournalError::io("read", path)(error)),
            }
        }
        Ok(())
    }

    fn read<R: Send>(
        &mut self,
        entries: &mut Entries,
        read: &(impl Fn(&FramedEntry, Entry) -> R + Sync),
        visit: &mut impl FnMut(Seen<R>),
    ) -> Result<(), JournalError> {
        let work = |(): &mut (), batch: Vec<Gathered>| -> Vec<Made<R>> {
            let entry = |Gathered { framed, path, begins_anew }| match framed.entry() {
                Ok(entry) => (begins_anew, Ok(read(&framed, entry))),
                Err(fault) => (begins_anew, Err((path.to_path_buf(), fault))),
            };
            batch.into_iter().map(entry).collect()
        };
        thread::scope(|scope| {
            let mut lanes = Lanes::new(scope, &work);
            let mut end = Ok(true);
            while let Ok(true) = end {
                let mut batch = Vec::new();
                end = self.gather(entries, &mut batch);
                let done = lanes.push(batch);
                self.take(done.into_iter().flatten(), visit);
            }
            self.take(lanes.flatten(), visit);
            end.map(|_| ())
        })
    }

    /// Reads the next entries, as many as are read together. Whether more may follow.
    fn gather(
        &mut self,
        entries: &mut Entries,
        batch: &mut Vec<Gathered>,
    ) -> Result<bool, JournalError> {
        let (mut bytes, mut path) = (0, Arc::<Path>::from(entries.path()));
        while batch.len() < BATCH_ENTRIES && bytes < BATCH_BYTES {
            let Some(framed) = entries.next().transpose()? else { return Ok(false) };
            if let Some(gateway) = entries.gateway()
                && !self.gateways.contains(gateway)
            {
                self.gateways.insert(gateway.to_owned());
            }
            let begins_anew = entries.take_passed_removed() && self.first.is_some();
            if begins_anew {
                (self.entries, self.first, self.passed_removed) = (0, None, true);
            }
            self.entries += 1;
            self.first.get_or_insert(framed.seq);
            self.last = Some(framed.seq);
            if *path != *entries.path() {
                path = Arc::from(entries.path());
            }
            bytes += framed.payload.len();
            batch.push(Gathered { framed, path: path.clone(), begins_anew });
        }
        Ok(true)
    }

    /// Shows what was made of entries, and keeps those of which nothing could be made.
    fn take<R>(&mut self, entries: impl Iterator<Item = Made<R>>, visit: &mut impl FnMut(Seen<R>)) {
        for (begins_anew, entry) in entries {
            if begins_anew {
                visit(Seen::BeginsAnew);
            }
            match entry {
                Ok(read) => visit(Seen::Entry(read)),
                Err(unreadable) => self.unreadable.push(unreadable),
            }
        }
    }
}
