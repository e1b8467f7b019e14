//! Segment files: their names, creating them and appending to them.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use taximeter_ledger::{
    Digest, Digester, Fault, HEADER_BYTES, LedgerId, Reader, SegmentHeader, SyncMark,
};

use super::disk::{Disk, How, Identity, OpenFile, Status};
use super::error::JournalError;

/// The segment that is written to.
#[derive(Debug)]
pub(super) struct Segment {
    file: Arc<dyn OpenFile>,
    path: PathBuf,
    identity: Identity,
    ledger: LedgerId,
    length: u64,
    /// A write failed half way: what is behind `length` is to be cut off.
    torn: bool,
    /// Of what is in it.
    digester: Digester,
}

impl Segment {
    /// Begins a segment with `frames` in it, which have the strings of `table`. It takes its name when it is whole, and synced if it is
    /// to be marked, replacing what had the name.
    pub(super) fn create(
        dir: &Path,
        header: &SegmentHeader,
        (table, frames): (&[u8], &[u8]),
        disk: &dyn Disk,
    ) -> io::Result<Self> {
        let path = path(dir, header.first_seq());
        let unnamed = path.with_extension(UNNAMED);
        let file = create_anew(&unnamed, disk)?;
        let identity = file.status()?.identity;
        let mut bytes = Vec::new();
        header.encode(&mut bytes);
        let mut digester = header.digester(&bytes);
        digester.hold(table);
        digester.add(frames);
        bytes.extend_from_slice(table);
        bytes.extend_from_slice(frames);
        let ledger = header.ledger;
        let mut segment = Self { file, path, identity, ledger, length: 0, torn: false, digester };
        segment.write(&bytes)?;
        if header.has_sync_marks {
            segment.file.sync()?;
        }
        disk.rename(&unnamed, &segment.path)?;
        if header.has_sync_marks {
            disk.sync_dir(dir)?;
        }
        Ok(segment)
    }

    /// Goes on with a segment whose whole entries, which `digester` has, end at `length`; what is
    /// behind is cut off.
    pub(super) fn open(
        path: &Path,
        (length, digester): (u64, Digester),
        ledger: LedgerId,
        disk: &dyn Disk,
    ) -> io::Result<Self> {
        let file = disk.open(path, How::Append)?;
        file.set_len(length)?;
        let (identity, digester) = (file.status()?.identity, digester.cut());
        Ok(Self { file, path: path.to_owned(), identity, ledger, length, torn: false, digester })
    }

    /// Appends all of `frames`, or nothing that outlives the next attempt.
    pub(super) fn append(&mut self, frames: &[u8]) -> io::Result<()> {
        self.write(frames)?;
        self.digester.add(frames);
        Ok(())
    }

    /// Digest of the segment that has the last entry, up to that.
    pub(super) fn digest(&self) -> Option<Digest> {
        self.digester.digest()
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.torn {
            self.file.set_len(self.length)?;
        }
        self.torn = true;
        write(&*self.file, bytes)?;
        self.torn = false;
        self.length += bytes.len() as u64;
        Ok(())
    }

    /// Says that all entries up to `synced` are on the disk.
    pub(super) fn mark(&mut self, synced: u64) -> io::Result<()> {
        let mut bytes = Vec::new();
        SyncMark { synced }.append(self.ledger, &mut bytes);
        self.write(&bytes)
    }

    /// Whether its name still leads to it, and it is as long as we left it.
    pub(super) fn is_intact(&self, disk: &dyn Disk) -> io::Result<bool> {
        match disk.status(&self.path) {
            Ok(Status { identity, length }) => {
                let as_left = length == self.length || (self.torn && length > self.length);
                Ok(as_left && identity == self.identity)
            }
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    pub(super) const fn file(&self) -> &Arc<dyn OpenFile> {
        &self.file
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) const fn length(&self) -> u64 {
        self.length
    }
}

const EXTENSION: &str = "tlj";
pub(super) const UNNAMED: &str = "tlj.new";

/// Files that are put aside by one name.
const ASIDE_MAX: u32 = 1000;

/// Where the segment is that begins with `first_seq`.
pub(super) fn path(dir: &Path, first_seq: u64) -> PathBuf {
    dir.join(format!("journal-{first_seq:020}.{EXTENSION}"))
}

/// Makes the journal's directory. `synced`, a power cut cannot take it away, whoever made it.
pub(super) fn create_dir(dir: &Path, disk: &dyn Disk, synced: bool) -> io::Result<()> {
    let is_missing = |dir: &&Path| !dir.as_os_str().is_empty() && disk.status(dir).is_err();
    let made = dir.ancestors().take_while(is_missing).count();
    disk.create_dir(dir)?;
    for above in dir.ancestors().skip(1).take(if synced { made.max(1) } else { 0 }) {
        disk.sync_dir(if above.as_os_str().is_empty() { Path::new(".") } else { above })?;
    }
    Ok(())
}

/// Makes a file in place of what has its name.
pub(super) fn create_anew(path: &Path, disk: &dyn Disk) -> io::Result<Arc<dyn OpenFile>> {
    match disk.remove(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => disk.open(path, How::Create),
    }
}

/// The last segment in `dir` must have the format that this program reads.
///
/// # Errors
/// `Segment` if it has another one; `Io`.
pub(super) fn check_format(dir: &Path, disk: &dyn Disk) -> Result<(), JournalError> {
    let segments = list(dir, disk).map_err(JournalError::io("list", dir))?;
    let Some((_, path)) = segments.last() else { return Ok(()) };
    let bytes = read(path, disk, HEADER_BYTES).map_err(JournalError::io("read", path))?;
    let mut reader = Reader::new(None, u64::MAX);
    reader.feed(&bytes);
    match reader.next_entry() {
        Err(fault @ Fault::Format { .. }) => {
            Err(JournalError::Segment { path: path.clone(), fault })
        }
        _ => Ok(()),
    }
}

/// The header of a segment, if it is whole.
pub(super) fn header(path: &Path, disk: &dyn Disk) -> io::Result<Option<SegmentHeader>> {
    let bytes = read(path, disk, HEADER_BYTES)?;
    let mut reader = Reader::new(None, u64::MAX);
    reader.feed(&bytes);
    let _ = reader.next_entry();
    Ok(reader.header().cloned())
}

/// The first bytes of a file, at most so many.
pub(super) fn read(path: &Path, disk: &dyn Disk, bytes_max: usize) -> io::Result<Vec<u8>> {
    let file = disk.open(path, How::Read)?;
    let length = usize::try_from(file.status()?.length).unwrap_or(usize::MAX);
    let mut bytes = vec![0; length.min(bytes_max)];
    let mut filled = 0;
    while let Some(rest) = bytes.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match file.read_at(rest, filled as u64)? {
            0 => break,
            read => filled += read,
        }
    }
    bytes.truncate(filled);
    Ok(bytes)
}

/// Makes sure that the device has what is in a file.
pub(super) fn sync(path: &Path, disk: &dyn Disk) -> io::Result<()> {
    disk.open(path, How::Read)?.sync()
}

/// Keeps what a segment is under a name by which no journal looks for it.
pub(super) fn put_aside(path: &Path, disk: &dyn Disk) -> io::Result<PathBuf> {
    let bytes = read(path, disk, usize::MAX)?;
    let (file, aside) = (0..ASIDE_MAX)
        .map(|number| path.with_extension(format!("{EXTENSION}.damaged-{number}")))
        .find_map(|aside| match disk.open(&aside, How::Create) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => None,
            opened => Some(opened.map(|file| (file, aside))),
        })
        .unwrap_or_else(|| Err(ErrorKind::AlreadyExists.into()))?;
    write(&*file, &bytes)?;
    file.sync()?;
    Ok(aside)
}

/// Appends all of `bytes` to a file.
pub(super) fn write(file: &dyn OpenFile, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match file.append(bytes) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(written) => bytes = bytes.get(written..).unwrap_or_default(),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// The segments of a journal by their first sequence number, in order.
pub(super) fn list(dir: &Path, disk: &dyn Disk) -> io::Result<Vec<(u64, PathBuf)>> {
    let mut segments = Vec::new();
    for path in disk.list(dir)? {
        let is_segment = path.extension().is_some_and(|extension| extension == EXTENSION);
        let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        if let Some(first) = stem.strip_prefix("journal-").filter(|_| is_segment)
            && let Ok(first) = first.parse()
        {
            segments.push((first, path));
        }
    }
    segments.sort_unstable();
    Ok(segments)
}
