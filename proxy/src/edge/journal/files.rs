//! Segment files: names, creation, appending.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use taximeter_ledger::SegmentHeader;

/// What is done to the disk for each batch; a seam for faults.
pub(super) trait Disk: Send + Sync {
    /// One write, perhaps short.
    fn write(&self, file: &File, bytes: &[u8]) -> io::Result<usize>;
    /// Until the device has it.
    fn sync(&self, file: &File) -> io::Result<()>;
}

/// The disk as the kernel has it.
#[derive(Debug)]
pub(super) struct Kernel;

impl Disk for Kernel {
    fn write(&self, mut file: &File, bytes: &[u8]) -> io::Result<usize> {
        file.write(bytes)
    }

    fn sync(&self, file: &File) -> io::Result<()> {
        file.sync_data()
    }
}

/// Which file it is, whatever its name: device and inode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Identity(u64, u64);

impl Identity {
    pub(super) fn of(metadata: &Metadata) -> Self {
        Self(metadata.dev(), metadata.ino())
    }
}

/// The segment that is written to.
#[derive(Debug)]
pub(super) struct Segment {
    file: Arc<File>,
    path: PathBuf,
    identity: Identity,
    length: u64,
    /// A write failed half way: what is behind `length` is to be cut off.
    torn: bool,
}

impl Segment {
    /// Begins a segment with `frames` in it. It takes its name when it is whole, replacing what had
    /// it.
    pub(super) fn create(
        dir: &Path,
        header: &SegmentHeader,
        frames: &[u8],
        disk: &dyn Disk,
        synced: bool,
    ) -> io::Result<Self> {
        let path = path(dir, header.before.seq + 1);
        let unnamed = path.with_extension(UNNAMED);
        match fs::remove_file(&unnamed) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let file = OpenOptions::new().append(true).create_new(true).open(&unnamed)?;
        let identity = Identity::of(&file.metadata()?);
        let mut segment = Self { file: Arc::new(file), path, identity, length: 0, torn: false };
        let mut bytes = Vec::new();
        header.encode(&mut bytes);
        bytes.extend_from_slice(frames);
        segment.append(&bytes, disk)?;
        if synced {
            disk.sync(&segment.file)?;
        }
        fs::rename(&unnamed, &segment.path)?;
        if synced {
            File::open(dir)?.sync_all()?;
        }
        Ok(segment)
    }

    /// Goes on with a segment whose whole entries end at `length`; what is behind is cut off.
    pub(super) fn open(path: &Path, length: u64) -> io::Result<Self> {
        let file = OpenOptions::new().append(true).open(path)?;
        file.set_len(length)?;
        let identity = Identity::of(&file.metadata()?);
        let path = path.to_owned();
        Ok(Self { file: Arc::new(file), path, identity, length, torn: false })
    }

    /// Appends all of `bytes`, or nothing that outlives the next attempt.
    pub(super) fn append(&mut self, mut bytes: &[u8], disk: &dyn Disk) -> io::Result<()> {
        if self.torn {
            self.file.set_len(self.length)?;
        }
        let length = self.length + bytes.len() as u64;
        self.torn = true;
        while !bytes.is_empty() {
            match disk.write(&self.file, bytes) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(written) => bytes = bytes.get(written..).unwrap_or_default(),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.torn = false;
        self.length = length;
        Ok(())
    }

    /// Whether its name still leads to it, and it is as long as we left it.
    pub(super) fn is_intact(&self) -> io::Result<bool> {
        match fs::metadata(&self.path) {
            Ok(metadata) => {
                let length = metadata.len();
                let as_left = length == self.length || (self.torn && length > self.length);
                Ok(as_left && Identity::of(&metadata) == self.identity)
            }
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    pub(super) const fn file(&self) -> &Arc<File> {
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
const UNNAMED: &str = "tlj.new";

/// Where the segment is that begins with `first_seq`.
pub(super) fn path(dir: &Path, first_seq: u64) -> PathBuf {
    dir.join(format!("journal-{first_seq:020}.{EXTENSION}"))
}

/// The segments of a journal by their first sequence number, in order.
pub(super) fn list(dir: &Path) -> io::Result<Vec<(u64, PathBuf)>> {
    let mut segments = Vec::new();
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
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
