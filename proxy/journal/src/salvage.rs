//! Leaves out what cannot be read, so that the rest of the journal can be read.
//!
//! A segment ends where the next one begins. So nothing is rewritten. After the last entry before
//! the damage comes a new segment that says how many entries are lost. After that comes a copy of
//! the whole entries. The damaged file stays as it is. If its own name is needed, it becomes
//! `….tlj.damaged-0`, or `….tlj.zst.damaged-0`.

use std::path::{Path, PathBuf};

use taximeter_ledger::{
    Digest, FRAME_BYTES_MIN, Fault, LedgerId, Position, Reader, ResumePoint, SegmentHeader,
    find_resume_point,
};

use super::disk::Disk;
use super::error::{JournalError, Loss};
use super::files::{self, Segment};
use super::options::Options;
use super::write::JournalDir;

/// Where the journal goes on behind the damage.
struct Next {
    /// The ledger of what is to be copied.
    ledger: LedgerId,
    /// The frame before it.
    before: Position,
    /// What is to be copied; nothing where it goes on with another segment.
    frames: Option<Vec<u8>>,
    /// Segments of which nothing can be read.
    unreadable: Vec<PathBuf>,
}

/// Leaves out what is damaged at `fault` in the segment `path`, up to the next entry that surely is
/// whole. Where there is none behind what was not synced, the journal ends before it, as it does
/// before an entry that was cut off.
///
/// # Errors
/// `Segment` when the journal is newer than we are, or was mixed with another one; `Io`. What was
/// not written then is written by the next attempt.
pub(super) fn leave_out(
    journal_dir: &JournalDir,
    options: &Options,
    path: &Path,
    fault: Fault,
    is_unsynced: bool,
) -> Result<Loss, JournalError> {
    let damage = Damage::find(journal_dir, path, &fault)?;
    let Some(damage) = damage else {
        return Err(JournalError::Segment { path: path.to_owned(), fault });
    };
    if options.is_synced() {
        // What is left of it is not the end of the journal any longer.
        files::sync(path, &*journal_dir.disk).map_err(JournalError::io("sync", path))?;
    }
    let mut next = damage.next(&*journal_dir.disk)?;
    // A power cut may have taken both entries that have the bytes of a string. Nothing of what was
    // not synced is promised, so the journal ends there.
    if is_unsynced
        && next.frames.as_ref().is_some_and(|frames| !next.can_read(frames, &damage.table))
    {
        next = damage.nothing(damage.rest() as u64, Vec::new());
    }
    let Next { ledger, before, frames, unreadable } = next;
    let first_seq = damage.first_seq();
    let entries = (before.seq + 1).saturating_sub(first_seq);
    let rest = damage.rest() - frames.as_ref().map_or(0, Vec::len).min(damage.rest());
    let mut kept = path.to_owned();
    let mut write = |before: Position, lost: u64, frames: &[u8]| {
        let mut header = SegmentHeader {
            gateway: options.gateway.clone(),
            ledger,
            before,
            lost,
            has_sync_marks: options.is_synced(),
            follows: None,
            created: (options.now)(),
        };
        if header.first_seq() == first_seq {
            header.follows = damage.digest;
        }
        let name = files::path(&journal_dir.dir, header.first_seq());
        // Of both forms the plain one is read.
        let named = [&name, &files::compressed(&name)].map(PathBuf::clone);
        if let Some(named) = named.iter().find(|name| journal_dir.disk.status(name).is_ok()) {
            kept = files::put_aside(named, &*journal_dir.disk)?;
        }
        let table: &[u8] = if frames.is_empty() { &[] } else { &damage.table };
        Segment::create(&journal_dir.dir, &header, (table, frames), &*journal_dir.disk).map(drop)
    };
    match (frames, damage.last) {
        // In one step: behind another segment it would be no torn end any longer.
        (Some(frames), _) if is_unsynced => write(before, entries, &frames),
        (None, Some(last)) if is_unsynced => write(last, 0, &[]),
        // First the copy: until the other is there too, the damage is found and left out again.
        (frames, _) => frames
            .map_or(Ok(()), |frames| write(before, 0, &frames))
            .and_then(|()| if entries > 0 { write(before, entries, &[]) } else { Ok(()) }),
    }
    .map_err(JournalError::io("write", &journal_dir.dir))?;
    for path in unreadable.iter().filter(|path| files::first_seq(path) != Some(first_seq)) {
        kept =
            files::put_aside(path, &*journal_dir.disk).map_err(JournalError::io("keep", path))?;
        files::remove(path, &*journal_dir.disk).map_err(JournalError::io("remove", path))?;
    }
    let torn_bytes = is_unsynced.then_some(rest as u64);
    Ok(Loss { path: path.to_owned(), fault, first_seq, entries, torn_bytes, kept })
}

/// A place in a segment that cannot be read.
struct Damage {
    /// All segments, by their first sequence number.
    segments: Vec<(u64, PathBuf)>,
    /// The one that is damaged.
    index: usize,
    bytes: Vec<u8>,
    offset: u64,
    /// Those of all segments: where a copy went on, there are several.
    ledgers: Vec<LedgerId>,
    /// The entry before it, where that is known.
    last: Option<Position>,
    /// The frame before it, where that is known.
    last_frame: Option<Position>,
    /// Digest of the segment that has the entry, up to that.
    digest: Option<Digest>,
    /// The strings of the entries before it in its segment.
    table: Vec<u8>,
}

/// Where the readable beginning of a segment ends.
struct End {
    last: Position,
    last_frame: Position,
    digest: Option<Digest>,
    table: Vec<u8>,
}

impl Damage {
    /// `None` when it is none that can be left out.
    fn find(
        journal_dir: &JournalDir,
        path: &Path,
        fault: &Fault,
    ) -> Result<Option<Self>, JournalError> {
        let JournalDir { dir, disk, .. } = journal_dir;
        let offset = match fault {
            Fault::Damaged { what: "joining chain", .. } => return Ok(None),
            Fault::Damaged { offset, .. }
            | Fault::Torn { offset, .. }
            | Fault::Unreadable { offset, .. } => *offset,
            _ => return Ok(None),
        };
        let segments = files::list(dir, &**disk).map_err(JournalError::io("list", dir))?;
        let Some(index) = segments.iter().position(|(_, other)| other == path) else {
            return Ok(None);
        };
        let bytes = read(path, &**disk)?;
        let end = if offset > 0 {
            end(bytes.get(..usize::try_from(offset).unwrap_or(usize::MAX)).unwrap_or(&bytes))
        } else if let Some((_, before)) = index.checked_sub(1).and_then(|at| segments.get(at)) {
            let end = end(&read(before, &**disk)?);
            let first = segments.get(index).map_or(0, |(first, _)| *first);
            // What it has beyond where this one begins was written anew.
            // And strings begin anew in each segment.
            end.filter(|end| end.last.seq < first).map(|end| End { table: Vec::new(), ..end })
        } else {
            None
        };
        let (last, last_frame) =
            (end.as_ref().map(|end| end.last), end.as_ref().map(|end| end.last_frame));
        let (digest, table) = end.map_or((None, Vec::new()), |end| (end.digest, end.table));
        let ledgers = ledgers(&segments, index, journal_dir)?;
        Ok(Some(Self { segments, index, bytes, offset, ledgers, last, last_frame, digest, table }))
    }

    /// Sequence number of the first entry that is lost: by the entry before it, else by the name of
    /// the segment.
    fn first_seq(&self) -> u64 {
        let named = self.segments.get(self.index).map_or(1, |(first, _)| *first);
        self.last.map_or(named, |last| last.seq + 1)
    }

    /// Bytes of the segment from the damage on.
    fn rest(&self) -> usize {
        self.bytes.len() - usize::try_from(self.offset).map_or(0, |at| at.min(self.bytes.len()))
    }

    /// The next place that can be read.
    fn next(&self, disk: &dyn Disk) -> Result<Next, JournalError> {
        let mut segments = self.segments.iter().skip(self.index);
        let Some((_, path)) = segments.next() else { return Ok(self.nothing(0, Vec::new())) };
        let later = segments.clone().next().map_or(u64::MAX, |(first, _)| *first);
        // Perhaps nothing is wrong with it but that others are missing before it.
        let own = if self.offset == 0 { header(path, disk)? } else { None };
        if let Some(header) = own {
            return Ok(Next::segment(&header));
        }
        let found = self.resume_in(&self.bytes, self.offset, self.last_frame);
        if let Some(found) = found.filter(|(_, found)| found.before.seq + 1 < later) {
            return Ok(Next::copy(found, &self.bytes));
        }
        let mut beyond = self.rest() as u64;
        let mut unreadable = Vec::new();
        if self.offset == 0 {
            unreadable.push(path.clone());
        }
        for (_, path) in segments {
            if let Some(header) = header(path, disk)? {
                return Ok(Next::segment(&header));
            }
            let bytes = read(path, disk)?;
            if let Some(found) = self.resume_in(&bytes, 0, None) {
                return Ok(Next::copy(found, &bytes));
            }
            beyond += bytes.len() as u64;
            unreadable.push(path.clone());
        }
        Ok(self.nothing(beyond, unreadable))
    }

    /// Where a segment can be read again, and of which ledger it is there.
    fn resume_in(
        &self,
        bytes: &[u8],
        offset: u64,
        last: Option<Position>,
    ) -> Option<(LedgerId, ResumePoint)> {
        let found =
            |ledger: &LedgerId| Some((*ledger, find_resume_point(bytes, *ledger, offset, last)?));
        self.ledgers.iter().find_map(found)
    }

    /// Nothing can be read behind the damage: numbers that may have been given to so many bytes are
    /// not given again.
    fn nothing(&self, bytes: u64, unreadable: Vec<PathBuf>) -> Next {
        let last = self.last.unwrap_or(Position { seq: self.first_seq() - 1, chain: 0 });
        let seq = last.seq + bytes / FRAME_BYTES_MIN + 1;
        let ledger = self.ledgers.first().copied().unwrap_or_default();
        Next { ledger, before: Position { seq, ..last }, frames: None, unreadable }
    }
}

impl Next {
    /// With this segment as it is.
    const fn segment(header: &SegmentHeader) -> Self {
        let SegmentHeader { ledger, before, .. } = *header;
        Self { ledger, before, frames: None, unreadable: Vec::new() }
    }

    /// With these frames of a segment.
    fn copy((ledger, found): (LedgerId, ResumePoint), segment: &[u8]) -> Self {
        let offset = usize::try_from(found.offset).unwrap_or(usize::MAX);
        let frames = segment.get(offset..).unwrap_or_default().to_vec();
        Self { ledger, before: found.before, frames: Some(frames), unreadable: Vec::new() }
    }

    /// Whether all strings of the entries in `frames` are known.
    fn can_read(&self, frames: &[u8], table: &[u8]) -> bool {
        let mut reader = Reader::resuming(self.ledger, self.before, table);
        reader.feed(frames);
        // What is wrong with the frames themselves is found when they are read.
        let mut entries = std::iter::from_fn(|| reader.next_entry().ok().flatten());
        entries.all(|framed| framed.fault.is_none())
    }
}

/// Where the readable part of these bytes of a segment ends. `None` if they have no header.
fn end(bytes: &[u8]) -> Option<End> {
    let mut reader = Reader::new(None, u64::MAX).digesting();
    reader.feed(bytes);
    let _ = reader.next_entry();
    let digest = reader.digester()?.digest();
    let (last, last_frame) = (reader.position(), reader.last_frame());
    Some(End { last, last_frame, digest, table: reader.table() })
}

/// The ledgers of the segments and of the journal, that of the segment at `index` first.
fn ledgers(
    segments: &[(u64, PathBuf)],
    index: usize,
    journal_dir: &JournalDir,
) -> Result<Vec<LedgerId>, JournalError> {
    let mut ledgers = Vec::new();
    let (before, from) = segments.split_at(index.min(segments.len()));
    for (_, path) in from.iter().chain(before.iter().rev()) {
        let header = header(path, &*journal_dir.disk)?;
        ledgers.extend(header.map(|header| header.ledger).filter(|it| !ledgers.contains(it)));
    }
    let own = journal_dir.ledger;
    ledgers.extend((!ledgers.contains(&own)).then_some(own));
    Ok(ledgers)
}

fn read(path: &Path, disk: &dyn Disk) -> Result<Vec<u8>, JournalError> {
    files::read(path, disk, usize::MAX).map_err(JournalError::io("read", path))
}

fn header(path: &Path, disk: &dyn Disk) -> Result<Option<SegmentHeader>, JournalError> {
    files::header(path, disk).map_err(JournalError::io("read", path))
}
