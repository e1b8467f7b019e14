//! Reads a journal, also while it is being written.

use std::io::ErrorKind;
use std::mem;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use taximeter_ledger::{
    Checkpoint, Digest, Digester, Entry, Fault, FramedEntry, Kind, Position, Reader, SegmentHeader,
};

use super::disk::{Disk, Identity, Kernel};
use super::error::JournalError;
use super::files::{self, SegmentFile};

/// Bytes read at once.
const PIECE_BYTES: usize = 64 << 10;
/// How often a segment is looked for that was compressed or removed between two looks.
const LOOKS_MAX: usize = 100;

/// The entries of a journal in order. `None` means the end so far. A later call continues with what
/// was written since.
///
/// A segment ends where the next one begins. What it has beyond that was written again there.
#[derive(Debug)]
pub struct Entries {
    disk: Arc<dyn Disk>,
    dir: PathBuf,
    from: u64,
    /// The last entry that was read, whether it was yielded or not.
    position: Option<Position>,
    segment: Option<SegmentReader>,
    is_digesting: bool,
    is_carrying: bool,
    is_passing_removed: bool,
    /// Segments that were not read yet are gone, and it goes on behind them.
    has_passed_removed: bool,
    wants: fn(Kind) -> bool,
    /// Segments that are not what the ones behind them say.
    altered: Vec<Altered>,
}

/// A segment that differs from what the header of the next segment says. Either the segment or that
/// header was changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Altered {
    /// The segment that differs.
    pub path: PathBuf,
    /// Its last entry.
    pub last: u64,
    /// The next segment, whose header has the digest.
    pub behind: PathBuf,
    /// The digest of the segment.
    pub digest: Digest,
    /// The digest in the header of the next segment.
    pub said: Digest,
}

#[derive(Debug)]
struct SegmentReader {
    path: PathBuf,
    file: SegmentFile,
    /// Bytes that were read.
    fed: u64,
    identity: Identity,
    reader: Reader,
    /// Its last entry, when a segment follows.
    last: Option<u64>,
    /// The one that was read before it, until they are compared.
    before: Option<(Extent, PathBuf)>,
}

/// The last checkpoint of a journal.
pub(super) struct LastCheckpoint {
    /// Its sequence number.
    pub(super) seq: u64,
    pub(super) checkpoint: Checkpoint,
    /// The number of the entry from which on all is known that the checkpoint does not say.
    pub(super) from: u64,
}

/// The last checkpoint of the journal in `dir`: of the last segment that has one.
///
/// What it does not say is known from the oldest reservation on that was open there, and from the
/// checkpoint on before which the segment carries over all that is open.
pub(super) fn last_checkpoint(
    disk: &Arc<dyn Disk>,
    dir: &Path,
) -> Result<Option<LastCheckpoint>, JournalError> {
    let segments = files::list(dir, &**disk).map_err(JournalError::io("list", dir))?;
    let mut end = u64::MAX;
    for (first, _) in segments.into_iter().rev() {
        let mut entries = Entries::new(Arc::clone(disk), dir, first).carrying();
        let (mut last, mut carried_at) = (None, 0);
        while let Some(framed) = entries.next().transpose()?.filter(|framed| framed.seq < end) {
            // One that cannot be read says nothing; those before it do.
            if framed.kind == Kind::Checkpoint
                && let Ok(entry) = framed.entry()
            {
                if entries.take_carried().is_some() {
                    carried_at = framed.seq;
                }
                last = Some((framed.seq, entry));
            }
        }
        if let Some((seq, Entry::Checkpoint(checkpoint))) = last {
            let oldest = checkpoint.oldest_open.map_or(seq, |open| open.min(seq));
            let from = oldest.max(carried_at);
            return Ok(Some(LastCheckpoint { seq, checkpoint: *checkpoint, from }));
        }
        end = first;
    }
    Ok(None)
}

/// Reads the segment that has the entry `seq` up to that, or else the last one before it to its end.
fn up_to(
    disk: &Arc<dyn Disk>,
    dir: &Path,
    seq: u64,
) -> Result<Option<SegmentReader>, JournalError> {
    let mut entries = Entries::new(Arc::clone(disk), dir, seq).digesting();
    entries.next().transpose()?;
    Ok(entries.segment)
}

/// What that segment is. `None` where there is none, or its header was cut off.
pub(super) fn digester(
    disk: &Arc<dyn Disk>,
    dir: &Path,
    seq: u64,
) -> Result<Option<Digester>, JournalError> {
    let segment = up_to(disk, dir, seq)?;
    Ok(segment.and_then(|segment| segment.reader.digester().cloned()))
}

/// The identity of a journal up to an entry, for others to keep.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Extent {
    /// The gateway that writes it.
    pub gateway: String,
    /// Its last entry.
    pub last: u64,
    /// The digest of the segment with that entry, up to that entry. Its header has the digest of
    /// the segment before it, and so on. So this digest covers everything before it.
    pub digest: Digest,
}

/// The journal in `dir` up to the entry `last`, or its end. `None` if it has no entry, or if its
/// beginning is unknown.
///
/// # Errors
/// `Io`, `SegmentReader`.
pub fn extent(dir: &Path, last: u64) -> Result<Option<Extent>, JournalError> {
    let disk: Arc<dyn Disk> = Arc::new(Kernel);
    Ok(up_to(&disk, dir, last)?.and_then(|segment| segment.extent()))
}

/// Where the last segment of a journal ends.
#[derive(Debug)]
pub(super) struct Tail {
    pub(super) path: PathBuf,
    /// `None` when the header itself was cut off.
    pub(super) header: Option<SegmentHeader>,
    pub(super) offset: u64,
    pub(super) torn_bytes: u64,
}

impl Iterator for Entries {
    type Item = Result<FramedEntry, JournalError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.read().transpose()
    }
}

impl Entries {
    /// The entries of the journal in `dir`, from `from` on. A directory that is not there is empty.
    #[must_use]
    pub(super) fn new(disk: Arc<dyn Disk>, dir: &Path, from: u64) -> Self {
        let dir = dir.to_owned();
        let (position, segment, altered) = (None, None, Vec::new());
        Self {
            disk,
            dir,
            from,
            position,
            segment,
            is_digesting: false,
            is_carrying: false,
            is_passing_removed: false,
            has_passed_removed: false,
            wants: |_| true,
            altered,
        }
    }

    /// The same; each segment is held against what the next one says of it.
    pub(super) fn digesting(self) -> Self {
        Self { is_digesting: true, ..self }
    }

    /// The same; the requests that a segment carries over are kept too.
    pub(super) fn carrying(self) -> Self {
        Self { is_carrying: true, ..self }
    }

    /// The same. If the gateway removes segments that were not read yet, it begins anew with the
    /// oldest one that is there.
    pub(super) fn passing_removed(self) -> Self {
        Self { is_passing_removed: true, ..self }
    }

    /// Whether it began anew, before the entry that was yielded last.
    pub(super) fn take_passed_removed(&mut self) -> bool {
        mem::take(&mut self.has_passed_removed)
    }

    /// The entries of the requests that were open at the checkpoint that was yielded last. `None` if
    /// the segment does not have all of them.
    pub(super) fn take_carried(&mut self) -> Option<Vec<FramedEntry>> {
        self.segment.as_mut().and_then(|segment| segment.reader.take_carried())
    }

    /// Only entries of these kinds, and the very first one. Behind the last of them, so far, the
    /// last entry of any kind is yielded, without its payload.
    #[must_use]
    pub fn only(self, kinds: fn(Kind) -> bool) -> Self {
        Self { wants: kinds, ..self }
    }

    /// Segments that are not what the ones behind them say, as far as it has been read.
    pub(super) fn take_altered(&mut self) -> Vec<Altered> {
        mem::take(&mut self.altered)
    }

    /// The last entry that was read.
    pub(super) fn position(&self) -> Position {
        self.position.unwrap_or(Position::START)
    }

    /// In which file the entry is that was yielded last.
    pub(super) fn path(&self) -> &Path {
        self.segment.as_ref().map_or(&self.dir, |segment| &segment.path)
    }

    /// Says in which file the entry is that was yielded last.
    pub(super) fn fault(&self, fault: Fault) -> JournalError {
        JournalError::Segment { path: self.path().to_owned(), fault }
    }

    /// Who wrote the segment of the entry that was yielded last.
    pub(super) fn gateway(&self) -> Option<&str> {
        let header = self.segment.as_ref()?.reader.header()?;
        Some(&header.gateway)
    }

    /// What is behind the last entry.
    pub(super) fn tail(&self) -> Option<Tail> {
        let SegmentReader { path, reader, .. } = self.segment.as_ref()?;
        let torn_bytes = match reader.finish() {
            Err(Fault::Torn { bytes, .. }) => bytes,
            _ => 0,
        };
        // A frame that is not an entry belongs to the entry behind it.
        let (header, offset) = (reader.header().cloned(), reader.entry_end());
        let torn_bytes = torn_bytes + (reader.offset() - offset);
        Some(Tail { path: path.clone(), header, offset, torn_bytes })
    }

    fn read(&mut self) -> Result<Option<FramedEntry>, JournalError> {
        loop {
            let outcome = match &mut self.segment {
                Some(segment) => segment.read(),
                None => Ok(None),
            };
            // A segment that was written anew begins before what has been read.
            if let Some(segment) = &self.segment
                && segment.reader.header().is_some()
                && self.position.is_none_or(|last| last.seq < segment.reader.position().seq)
            {
                self.position = Some(segment.reader.position());
            }
            if self.is_digesting {
                self.altered.extend(self.segment.as_mut().and_then(SegmentReader::altered));
            }
            match outcome {
                Ok(Some(framed)) => return Ok(Some(framed)),
                Ok(None) if self.advance()? => {}
                Ok(None) => {
                    let Some(segment) = &mut self.segment else { return Ok(None) };
                    match segment.rest() {
                        Ok(()) => return Ok(segment.reader.take_passed()),
                        // A segment that is compressed may be missing from one list.
                        Err(_) if self.advance()? => {}
                        Err(error) => return Err(error),
                    }
                }
                Err(_) if self.advance()? => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Turns to the segment that has the next entry, if that is another one. Whether there is
    /// reason to read again: what follows a segment was begun after its last entry was written.
    fn advance(&mut self) -> Result<bool, JournalError> {
        for _ in 0..LOOKS_MAX {
            if let Some(is_other) = self.advance_once()? {
                return Ok(is_other);
            }
        }
        Ok(false)
    }

    /// As `advance`. `None` if the segment was compressed or removed between two looks.
    fn advance_once(&mut self) -> Result<Option<bool>, JournalError> {
        let segments = match files::list(&self.dir, &*self.disk) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Some(false)),
            listed => listed.map_err(JournalError::io("list", &self.dir))?,
        };
        let mut wanted = self.position.map_or(self.from, |position| position.seq + 1);
        // The oldest ones go first, so what is there is whole.
        if let Some((oldest, _)) = segments.first().filter(|(oldest, _)| *oldest > wanted)
            && self.is_passing_removed
        {
            (self.position, self.segment, self.from) = (None, None, *oldest);
            (self.has_passed_removed, wanted) = (true, *oldest);
        }
        // Of a journal that is being converted, some files have another format.
        if let Some((u64::MAX, _)) = segments.last() {
            files::check_format(&self.dir, &*self.disk)?;
        }
        let later = segments.partition_point(|(first, _)| *first <= wanted);
        let Some((_, path)) = segments.get(later.saturating_sub(1)) else {
            return Ok(Some(false));
        };
        let (file, path) = match SegmentFile::open(path, &*self.disk) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            opened => opened.map_err(JournalError::io("open", path))?,
        };
        let status = file.file().status().map_err(JournalError::io("read", &path))?;
        let identity = status.identity;
        let last = segments.get(later.max(1)).map(|(first, _)| first.saturating_sub(1));
        if let Some(segment) = self.segment.as_mut().filter(|segment| segment.identity == identity)
        {
            return Ok(Some(mem::replace(&mut segment.last, last) != last));
        }
        let mut reader = Reader::new(self.position, self.from).only(self.wants);
        if self.is_digesting {
            reader = reader.digesting();
        }
        if self.is_carrying {
            reader = reader.carrying();
        }
        let before = self.segment.take();
        let before = before.and_then(|before| Some((before.extent()?, before.path)));
        self.segment = Some(SegmentReader { path, file, fed: 0, identity, reader, last, before });
        Ok(Some(true))
    }
}

impl SegmentReader {
    fn read(&mut self) -> Result<Option<FramedEntry>, JournalError> {
        loop {
            if self.last.is_some_and(|last| last <= self.reader.position().seq) {
                return Ok(None);
            }
            match self.reader.next_entry() {
                Ok(Some(framed)) => return Ok(Some(framed)),
                Ok(None) => {}
                Err(fault) => {
                    return Err(JournalError::Segment { path: self.path.clone(), fault });
                }
            }
            let read =
                self.reader.feed_from(PIECE_BYTES, |bytes| self.file.read_at(bytes, self.fed));
            let length = read.map_err(JournalError::io("read", &self.path))?;
            if length == 0 {
                return Ok(None);
            }
            self.fed += length as u64;
        }
    }

    /// What the journal is up to here.
    fn extent(&self) -> Option<Extent> {
        let digest = self.reader.digester()?.digest()?;
        let gateway = self.reader.header()?.gateway.clone();
        Some(Extent { gateway, last: self.reader.position().seq, digest })
    }

    /// Whether the one before it is what its header says, once that has been read.
    fn altered(&mut self) -> Option<Altered> {
        let header = self.reader.header()?;
        let (Extent { last, digest, .. }, path) = self.before.take()?;
        let said = header.follows?;
        // One that was read further than to where this one begins cannot be compared.
        let is_altered = last + 1 == header.first_seq() && digest != said;
        let behind = self.path.clone();
        is_altered.then_some(Altered { path, last, behind, digest, said })
    }

    /// A segment that another one follows must reach to it.
    fn rest(&self) -> Result<(), JournalError> {
        let found = self.reader.position().seq;
        let Some(expected) = self.last.filter(|last| found < *last) else { return Ok(()) };
        let gap = || {
            let offset = self.reader.offset();
            Fault::Damaged { offset, what: "last sequence", expected, found }
        };
        let fault = self.reader.finish().err().unwrap_or_else(gap);
        Err(JournalError::Segment { path: self.path.clone(), fault })
    }
}
