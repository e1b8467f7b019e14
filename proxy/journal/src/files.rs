//! Segment files: their names, creating them, appending to them and reading them in either form.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use taximeter_ledger::{
    Digest, Digester, Fault, HEADER_BYTES, LedgerId, Reader, SegmentHeader, SyncMark,
};

use super::compressed::CompressedFile;
use super::disk::{Disk, How, Identity, OpenFile, Status, is_without_room};
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
        let unnamed = unnamed(&path);
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
        // A file system that copies on write may have no room for it. The next write cuts it off.
        let torn = match file.set_len(length) {
            Err(error) if is_without_room(&error) => true,
            done => done.map(|()| false)?,
        };
        let (identity, digester) = (file.status()?.identity, digester.cut());
        Ok(Self { file, path: path.to_owned(), identity, ledger, length, torn, digester })
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
        append(&*self.file, bytes)?;
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

    /// The number of its first entry.
    pub(super) fn first_seq(&self) -> u64 {
        first_seq(&self.path).unwrap_or(0)
    }

    pub(super) const fn length(&self) -> u64 {
        self.length
    }
}

const EXTENSION: &str = "tlj";
/// Behind the extension of a compressed segment.
const COMPRESSED: &str = "zst";
/// Behind the name of a file that is not whole yet.
const UNNAMED: &str = "new";

/// Files that are put aside by one name.
const ASIDE_MAX: u32 = 1000;

/// Where the segment is that begins with `first_seq`.
pub(super) fn path(dir: &Path, first_seq: u64) -> PathBuf {
    dir.join(format!("journal-{first_seq:020}.{EXTENSION}"))
}

/// The compressed form of the segment `path`.
pub(super) fn compressed(path: &Path) -> PathBuf {
    with_suffix(path, COMPRESSED)
}

/// Whether the segment `path` is compressed.
pub(super) fn is_compressed(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == COMPRESSED)
}

/// The name of a file until it is whole.
pub(super) fn unnamed(path: &Path) -> PathBuf {
    with_suffix(path, UNNAMED)
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(suffix);
    name.into()
}

/// The number of the first entry of the segment `path`. `None` if it is something else.
pub(super) fn first_seq(path: &Path) -> Option<u64> {
    let name = path.file_name()?.to_str()?.strip_prefix("journal-")?;
    let plain = name.strip_suffix(COMPRESSED).and_then(|name| name.strip_suffix('.'));
    let number = plain.unwrap_or(name).strip_suffix(EXTENSION)?.strip_suffix('.')?;
    number.parse().ok()
}

/// A segment that is read, whatever its form.
#[derive(Debug)]
pub(super) enum SegmentFile {
    Plain(Arc<dyn OpenFile>),
    Compressed(CompressedFile),
}

impl SegmentFile {
    /// Opens the segment `path`, or its compressed form if it was compressed meanwhile. Returns the
    /// path of what was opened too.
    pub(super) fn open(path: &Path, disk: &dyn Disk) -> io::Result<(Self, PathBuf)> {
        match disk.open(path, How::Read) {
            Err(error) if error.kind() == ErrorKind::NotFound && !is_compressed(path) => {
                let path = compressed(path);
                Ok((Self::compressed(disk.open(&path, How::Read)?)?, path))
            }
            Ok(file) if is_compressed(path) => Ok((Self::compressed(file)?, path.to_owned())),
            opened => Ok((Self::Plain(opened?), path.to_owned())),
        }
    }

    /// Reads a compressed file.
    pub(super) fn compressed(file: Arc<dyn OpenFile>) -> io::Result<Self> {
        CompressedFile::open(file).map(Self::Compressed)
    }

    /// The file itself.
    pub(super) fn file(&self) -> &dyn OpenFile {
        match self {
            Self::Plain(file) => &**file,
            Self::Compressed(file) => file.file(),
        }
    }

    /// Length of the segment, in bytes that are not compressed.
    fn length(&self) -> io::Result<u64> {
        match self {
            Self::Plain(file) => Ok(file.status()?.length),
            Self::Compressed(file) => Ok(file.length()),
        }
    }

    /// Bytes of the segment from `offset` on, as many as one read gives; none at the end.
    pub(super) fn read_at(&mut self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        match self {
            Self::Plain(file) => file.read_at(bytes, offset),
            Self::Compressed(file) => file.read_at(bytes, offset),
        }
    }
}

/// What the name of a segment leads to, or that of its compressed form.
pub(super) fn status(path: &Path, disk: &dyn Disk) -> io::Result<Status> {
    match disk.status(path) {
        Err(error) if error.kind() == ErrorKind::NotFound && !is_compressed(path) => {
            disk.status(&compressed(path))
        }
        known => known,
    }
}

/// Removes a segment in every form, also while it is compressed. That it is gone is no error.
pub(super) fn remove(path: &Path, disk: &dyn Disk) -> io::Result<()> {
    let remove = |path: &Path| match disk.remove(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    };
    if is_compressed(path) {
        return remove(path);
    }
    let compressed = &compressed(path);
    // The compressed form goes first: it must not be read in place of one that is newer.
    remove(compressed)?;
    remove(path)?;
    // Who compresses it would else name its file now, or has named it since.
    remove(&unnamed(compressed))?;
    remove(compressed)
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

/// The first bytes of a segment, or of another file, at most so many.
pub(super) fn read(path: &Path, disk: &dyn Disk, bytes_max: usize) -> io::Result<Vec<u8>> {
    let (file, _) = SegmentFile::open(path, disk)?;
    read_all(file, bytes_max)
}

fn read_all(mut file: SegmentFile, bytes_max: usize) -> io::Result<Vec<u8>> {
    let length = usize::try_from(file.length()?).unwrap_or(usize::MAX);
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

/// Keeps what a segment is, as it is, under a name by which no journal looks for it.
pub(super) fn put_aside(path: &Path, disk: &dyn Disk) -> io::Result<PathBuf> {
    let bytes = read_all(SegmentFile::Plain(disk.open(path, How::Read)?), usize::MAX)?;
    let is_free = |aside: &PathBuf| matches!(disk.status(aside), Err(error) if error.kind() == ErrorKind::NotFound);
    let mut names = (0..ASIDE_MAX).map(|number| with_suffix(path, &format!("damaged-{number}")));
    let aside = names.find(is_free).ok_or(ErrorKind::AlreadyExists)?;
    let unnamed = unnamed(&aside);
    let file = create_anew(&unnamed, disk)?;
    let kept = append(&*file, &bytes).and_then(|()| file.sync());
    if kept.is_err() {
        // A part of it is of no use, and takes room.
        let _ = disk.remove(&unnamed);
    }
    kept?;
    disk.rename(&unnamed, &aside)?;
    Ok(aside)
}

/// Appends all of `bytes` to a file.
pub(super) fn append(file: &dyn OpenFile, mut bytes: &[u8]) -> io::Result<()> {
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

/// The segments of a journal by their first sequence number, in order. Of one that is there in both
/// forms, the plain one.
pub(super) fn list(dir: &Path, disk: &dyn Disk) -> io::Result<Vec<(u64, PathBuf)>> {
    let segment = |path: PathBuf| Some((first_seq(&path)?, path));
    let mut segments: Vec<_> = disk.list(dir)?.into_iter().filter_map(segment).collect();
    taximeter_collections::sort_by_key(&mut segments, |(first, path)| {
        (*first, is_compressed(path))
    });
    segments.dedup_by_key(|(first, _)| *first);
    Ok(segments)
}
