//! Converts the journals of a data directory from format 4, one segment after the other.
//!
//! A segment is read, written to a new file and synced. Then the new file takes the name of the old
//! one, in one step. So at each moment all entries are in the directory, and no more than one
//! segment is there twice. A conversion that was killed goes on at the first segment that is still
//! old. The new files depend on the old ones alone, so it writes the same bytes.
//!
//! Meanwhile a file without entries stands behind the last segment. Its format is read by no
//! program, so neither the program of today nor an older one opens a journal that has two formats.
//! Who reads a journal from its end, as a start does, finds that file first.
//!
//! All old segments are read before anything is changed. If something in them is damaged, nothing
//! is changed, unless that is to be left out.

mod rewrite;
mod walk;

use std::io;
use std::mem;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;
use taximeter_ledger::{Digest, Fault, LedgerId, Position, Reader, SegmentHeader, format4};

use self::rewrite::Rewrite;
use self::walk::{End, Form, Found, Left, OldSegment, form, header};
use super::disk::{Disk, How, Kernel};
use super::error::{JournalError, Loss};
use super::files;
use super::identity;
use super::lock::Lock;
use super::read::Altered;
use super::{CORRECTIONS, REQUESTS};

/// Bytes read at once.
const PIECE_BYTES: usize = 64 << 10;

/// A data directory whose journals can be converted. No other process opens them meanwhile.
#[derive(Debug)]
pub struct Conversion {
    disk: Arc<dyn Disk>,
    journals: Vec<OldJournal>,
    _locks: Vec<Lock>,
}

/// One journal.
#[derive(Debug)]
struct OldJournal {
    name: &'static str,
    dir: PathBuf,
    segments: Vec<(u64, PathBuf, Form)>,
    /// A conversion was begun.
    is_converting: bool,
}

/// What is wrong with old segments.
#[derive(Debug, Default)]
pub struct Damage {
    /// Places that cannot be read.
    pub losses: Vec<Loss>,
    /// Segments that pass their checks but differ from what was written.
    pub altered: Vec<Altered>,
    /// Entries that are intact but cannot be understood. They keep their numbers, and the new
    /// segments contain them as they are.
    pub unreadable: Vec<(PathBuf, Fault)>,
}

/// What a conversion did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Converted {
    /// Segments.
    pub segments: u64,
    /// Entries.
    pub entries: u64,
    /// Their bytes before.
    pub bytes_before: u64,
    /// Their bytes now.
    pub bytes: u64,
}

/// What somebody keeps of a journal elsewhere, and what follows the conversion.
pub trait Follow {
    /// The numbers of the entries in the journal of this name whose new position is of interest.
    fn watched(&self, journal: &str) -> Vec<u64>;
    /// An entry has a new position. Its segment takes its place after this.
    ///
    /// # Errors
    /// The conversion ends.
    fn moved(&self, journal: &str, from: Position, to: Position) -> io::Result<()>;
    /// An entry was read. There are many.
    fn entry(&mut self, what: &'static str);
}

impl Damage {
    /// Whether nothing is lost and nothing was altered. A torn end is no loss: what is in it was
    /// never confirmed.
    #[must_use]
    pub fn is_none(&self) -> bool {
        self.altered.is_empty() && self.losses.iter().all(|loss| loss.torn_bytes.is_some())
    }
}

impl Conversion {
    /// Takes the journals of `data_dir`.
    ///
    /// # Errors
    /// `InUse` while another process has one of them. `Segment` if a format is not known. `Io`.
    pub fn begin(data_dir: &Path) -> Result<Self, JournalError> {
        Self::begin_on(data_dir, Arc::new(Kernel))
    }

    pub(super) fn begin_on(data_dir: &Path, disk: Arc<dyn Disk>) -> Result<Self, JournalError> {
        let (mut journals, mut locks) = (Vec::new(), Vec::new());
        // The requests come last: until they are converted, no gateway starts.
        for (name, dir) in [(CORRECTIONS, data_dir.join(CORRECTIONS)), (REQUESTS, data_dir.into())]
        {
            let listed = match files::list(&dir, &*disk) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                listed => listed.map_err(JournalError::io("list", &dir))?,
            };
            if listed.is_empty() && journals.is_empty() {
                continue;
            }
            // A gateway that starts meanwhile reads the corrections too.
            locks.push(Lock::take(&dir, &*disk)?);
            let mut segments = Vec::new();
            for (first, path) in listed {
                let form = form(&path, &*disk)?;
                segments.push((first, path, form));
            }
            let all = segments.len();
            segments.retain(|(.., form)| *form != Form::Converting);
            let is_converting = segments.len() < all;
            journals.push(OldJournal { name, dir, segments, is_converting });
        }
        Ok(Self { disk, journals, _locks: locks })
    }

    /// Whether a segment is to be converted, or a conversion to be ended.
    #[must_use]
    pub fn is_needed(&self) -> bool {
        self.journals.iter().any(OldJournal::is_needed)
    }

    /// What is wrong with the segments that are to be converted. Changes nothing.
    ///
    /// # Errors
    /// `Io`. `Segment` if a segment belongs to another journal. `Encode` if an entry is too long.
    pub fn examine(&self, follow: &mut dyn Follow) -> Result<Damage, JournalError> {
        let mut damage = Damage::default();
        for journal in &self.journals {
            journal.examine(&*self.disk, follow, &mut damage)?;
        }
        Ok(damage)
    }

    /// Converts the journals. What is damaged is left out, and the damaged segment is kept under
    /// another name. `now` is the time of segments whose own is lost.
    ///
    /// # Errors
    /// `Io`; what was converted stays so, and the next conversion goes on there.
    pub fn run(self, now: Timestamp, follow: &mut dyn Follow) -> Result<Converted, JournalError> {
        let disk = &*self.disk;
        let mut converted = Converted::default();
        let needed = || self.journals.iter().filter(|journal| journal.is_needed());
        // That of the requests comes first.
        for journal in needed().rev() {
            journal.close(disk)?;
        }
        for journal in needed() {
            journal.convert(disk, now, follow, &mut converted)?;
            journal.open(disk)?;
        }
        Ok(converted)
    }
}

impl OldJournal {
    fn is_needed(&self) -> bool {
        self.is_converting || self.segments.iter().any(|(.., form)| *form == Form::Old)
    }

    /// The old segments, and the entry before the next segment.
    fn old<'a>(&'a self, disk: &'a dyn Disk) -> impl Iterator<Item = (usize, OldSegment<'a>)> {
        let old = self.segments.iter().enumerate().filter(|(_, (.., form))| *form == Form::Old);
        old.map(move |(index, (first, path, _))| {
            let until = self.segments.get(index + 1).map(|(next, ..)| next.saturating_sub(1));
            (index, OldSegment { disk, path, first: *first, until, before: None })
        })
    }

    fn examine(
        &self,
        disk: &dyn Disk,
        follow: &mut dyn Follow,
        damage: &mut Damage,
    ) -> Result<(), JournalError> {
        let mut before: Option<(usize, PathBuf, End)> = None;
        let mut payload = Vec::new();
        for (index, segment) in self.old(disk) {
            let path = segment.path;
            let known = before.take().filter(|(at, ..)| at + 1 == index);
            let segment =
                OldSegment { before: known.as_ref().and_then(|(.., end)| end.join()), ..segment };
            let end = segment.read(&mut |found| {
                follow.entry("entries read");
                match found {
                    Found::Header(header) => {
                        let altered = known
                            .as_ref()
                            .and_then(|(_, path, end)| altered(path, end, segment.path, &header));
                        damage.altered.extend(altered);
                    }
                    Found::Entry(entry) => {
                        let (_, fault) = entry.encode(&mut payload)?;
                        damage.unreadable.extend(fault.map(|fault| (path.to_owned(), fault)));
                    }
                    Found::Left(left) => damage.losses.push(left.loss(path)),
                }
                Ok(())
            })?;
            before = Some((index, path.to_owned(), end));
        }
        Ok(())
    }

    fn convert(
        &self,
        disk: &dyn Disk,
        now: Timestamp,
        follow: &mut dyn Follow,
        converted: &mut Converted,
    ) -> Result<(), JournalError> {
        self.remove_unnamed(disk).map_err(JournalError::io("clean", &self.dir))?;
        let synced = true;
        let ledger = identity::own(&self.dir, disk, synced)
            .map(|named| named.identity.id)
            .map_err(JournalError::io("write the identity of the ledger in", &self.dir))?;
        let watched = follow.watched(self.name);
        let mut rewrite = Rewrite {
            disk,
            dir: &self.dir,
            ledger,
            last: None,
            header: self.known_header(disk, now),
            watched: &watched,
            moved: Vec::new(),
            written: Vec::new(),
            current: None,
            entries: 0,
            payload: Vec::new(),
        };
        let mut before: Option<(usize, PathBuf, End)> = None;
        for (index, segment) in self.old(disk) {
            let known = before.take().filter(|(at, ..)| at + 1 == index);
            if known.is_none() {
                rewrite.last = self.new_end(disk, index, segment.first)?;
            }
            let segment =
                OldSegment { before: known.as_ref().and_then(|(.., end)| end.join()), ..segment };
            let end = self.convert_segment(&segment, known, &mut rewrite, follow, converted);
            if end.is_err() {
                rewrite.give_up();
            }
            before = Some((index, segment.path.to_owned(), end?));
        }
        converted.entries += rewrite.entries;
        Ok(())
    }

    fn convert_segment(
        &self,
        segment: &OldSegment<'_>,
        before: Option<(usize, PathBuf, End)>,
        rewrite: &mut Rewrite<'_>,
        follow: &mut dyn Follow,
        converted: &mut Converted,
    ) -> Result<End, JournalError> {
        let OldSegment { path, disk, .. } = *segment;
        let length = disk.status(path).map_err(JournalError::io("read", path))?.length;
        let mut is_damaged = false;
        let end = segment.read(&mut |found| {
            follow.entry("entries converted");
            match &found {
                Found::Left(left) => is_damaged |= left.torn_bytes.is_none(),
                Found::Header(header) => {
                    let before = before.as_ref();
                    is_damaged |=
                        before.is_some_and(|(_, at, end)| altered(at, end, path, header).is_some());
                }
                Found::Entry(_) => {}
            }
            rewrite.add(&found).map(drop)
        })?;
        rewrite.end_file()?;
        if is_damaged || self.has_left_rest(segment, &end)? {
            files::put_aside(path, disk).map_err(JournalError::io("keep", path))?;
        }
        for (from, to) in mem::take(&mut rewrite.moved) {
            let moved = follow.moved(self.name, from, to);
            moved.map_err(JournalError::io("say where an entry is of", path))?;
        }
        if rewrite.written.is_empty() {
            // Its header was cut off, so it has no entry.
            disk.remove(path).map_err(JournalError::io("remove", path))?;
        }
        let bytes = rewrite.name_files().map_err(JournalError::io("replace", path))?;
        converted.segments += 1;
        converted.bytes_before += length;
        converted.bytes += bytes;
        Ok(end)
    }

    /// Whether a salvage has left out the rest of a segment.
    fn has_left_rest(&self, segment: &OldSegment<'_>, end: &End) -> Result<bool, JournalError> {
        let OldSegment { path, disk, until, .. } = *segment;
        let next = until.map(|until| files::path(&self.dir, until + 1));
        if next.and_then(|next| header(&next, disk)).is_none_or(|next| next.lost == 0) {
            return Ok(false);
        }
        let bytes = files::read(path, disk, usize::MAX).map_err(JournalError::io("read", path))?;
        let offset = usize::try_from(end.offset).unwrap_or(usize::MAX);
        let rest = bytes.get(offset..).unwrap_or_default();
        Ok(format4::skip_marks(rest) < rest.len())
    }

    /// The end of the segment before the one at `index`, which is new and goes on at `first`.
    fn new_end(
        &self,
        disk: &dyn Disk,
        index: usize,
        first: u64,
    ) -> Result<Option<(Position, Option<Digest>)>, JournalError> {
        let before = index.checked_sub(1).and_then(|at| self.segments.get(at));
        let Some((_, path, _)) = before else { return Ok(None) };
        let failed = || JournalError::io("read", path);
        let file = disk.open(path, How::Read).map_err(failed())?;
        let mut reader = Reader::new(None, u64::MAX).digesting();
        let (mut piece, mut read) = (vec![0; PIECE_BYTES], 0);
        loop {
            // What cannot be read is found by the next start.
            let _ = reader.next_entry();
            let length = file.read_at(&mut piece, read).map_err(failed())?;
            if length == 0 {
                break;
            }
            read += length as u64;
            reader.feed(piece.get(..length).unwrap_or_default());
        }
        let end = reader.digester().map(|digester| (reader.position(), digester.digest()));
        Ok(end.filter(|(position, _)| position.seq + 1 == first))
    }

    /// Removes files of a conversion that was killed.
    fn remove_unnamed(&self, disk: &dyn Disk) -> io::Result<()> {
        let is_unnamed = |path: &PathBuf| {
            files::first_seq(&path.with_extension(""))
                .is_some_and(|first| files::unnamed(&files::path(&self.dir, first)) == *path)
        };
        disk.list(&self.dir)?
            .iter()
            .filter(|path| is_unnamed(path))
            .try_for_each(|path| disk.remove(path))
    }

    /// What a segment says whose own header cannot be read.
    fn known_header(&self, disk: &dyn Disk, now: Timestamp) -> SegmentHeader {
        let known = self.old(disk).find_map(|(_, segment)| header(segment.path, disk));
        known.unwrap_or_else(|| SegmentHeader {
            gateway: String::new(),
            ledger: LedgerId::default(),
            before: Position::START,
            lost: 0,
            has_sync_marks: true,
            follows: None,
            created: now,
        })
    }

    /// Makes sure that nobody opens the journal until it is converted.
    fn close(&self, disk: &dyn Disk) -> Result<(), JournalError> {
        let path = self.mark();
        let close = || {
            let unnamed = files::unnamed(&path);
            let file = files::create_anew(&unnamed, disk)?;
            files::append(&*file, &format4::converting())?;
            file.sync()?;
            disk.rename(&unnamed, &path)?;
            disk.sync_dir(&self.dir)
        };
        if self.is_converting { Ok(()) } else { close().map_err(JournalError::io("write", &path)) }
    }

    /// Lets others open the journal.
    fn open(&self, disk: &dyn Disk) -> Result<(), JournalError> {
        let path = self.mark();
        let open = || {
            disk.remove(&path)?;
            disk.sync_dir(&self.dir)
        };
        open().map_err(JournalError::io("remove", &path))
    }

    /// The file behind the last segment.
    fn mark(&self) -> PathBuf {
        files::path(&self.dir, u64::MAX)
    }
}

impl End {
    /// The frame that the next segment follows, if it is known.
    fn join(&self) -> Option<Position> {
        self.is_read.then_some(self.position)
    }
}

impl Left {
    fn loss(self, path: &Path) -> Loss {
        let Self { fault, last, next, torn_bytes } = self;
        let (first_seq, entries) = (last.seq + 1, next.seq - last.seq);
        let path = path.to_owned();
        Loss { kept: path.clone(), path, fault, first_seq, entries, torn_bytes }
    }
}

/// Whether the segment at `path` is what the header of the next one says.
fn altered(path: &Path, end: &End, behind: &Path, header: &SegmentHeader) -> Option<Altered> {
    let (digest, said) = (end.digest?, header.follows?);
    let last = end.position.seq;
    let is_altered = last + 1 == header.first_seq() && digest != said;
    let (path, behind) = (path.to_owned(), behind.to_owned());
    is_altered.then_some(Altered { path, last, behind, digest, said })
}
