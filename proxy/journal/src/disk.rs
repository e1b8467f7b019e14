//! The file operations that the journal uses, behind a trait. So tests can use a disk that fails,
//! forgets and lies.

use std::fmt::Debug;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write as _};
use std::os::unix::fs::{FileExt, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Where files are. Each call is one operation that may fail by itself.
pub(super) trait Disk: Debug + Send + Sync {
    /// Makes a directory and those above it; that it is there already is no error.
    fn create_dir(&self, dir: &Path) -> io::Result<()>;
    /// What is in a directory, in any order.
    fn list(&self, dir: &Path) -> io::Result<Vec<PathBuf>>;
    /// Opens a file.
    fn open(&self, path: &Path, how: How) -> io::Result<Arc<dyn OpenFile>>;
    /// What a name leads to.
    fn status(&self, path: &Path) -> io::Result<Status>;
    /// Gives a file another name, and takes that name from what had it.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Takes its name from a file.
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Until the device has the names in a directory.
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;
}

/// A file that is open, whatever its name is by now.
pub(super) trait OpenFile: Debug + Send + Sync {
    /// Bytes from `offset` on, as many as one read gives; none at the end.
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize>;
    /// One write at the end, perhaps short.
    fn append(&self, bytes: &[u8]) -> io::Result<usize>;
    /// Cuts off what is behind `length`.
    fn set_len(&self, length: u64) -> io::Result<()>;
    /// Until the device has what is in it. After an error nobody knows what the device has, and
    /// asking again does not tell.
    fn sync(&self) -> io::Result<()>;
    /// Which file it is, and how long.
    fn status(&self) -> io::Result<Status>;
    /// Takes the file for this process, until it is closed.
    fn try_lock(&self) -> Result<(), TryLockError>;
}

/// How a file is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum How {
    /// To be read.
    Read,
    /// To be appended to.
    Append,
    /// As `Append`; made if there is none.
    AppendOrCreate,
    /// As `Append`; there must be none.
    Create,
}

/// What is known of a file without reading it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Status {
    pub(super) identity: Identity,
    /// In bytes.
    pub(super) length: u64,
}

/// Which file it is, whatever its name: device and inode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Identity(pub(super) u64, pub(super) u64);

/// Whether the volume has no room for what an operation adds: no blocks, no inodes, or no more of
/// them for this user or this file.
pub(super) fn is_without_room(error: &io::Error) -> bool {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded | FileTooLarge)
}

/// The disk as the kernel has it.
#[derive(Debug)]
pub(super) struct Kernel;

impl Disk for Kernel {
    fn create_dir(&self, dir: &Path) -> io::Result<()> {
        fs::create_dir_all(dir)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<PathBuf>> {
        fs::read_dir(dir)?.map(|entry| Ok(entry?.path())).collect()
    }

    fn open(&self, path: &Path, how: How) -> io::Result<Arc<dyn OpenFile>> {
        let mut options = OpenOptions::new();
        match how {
            How::Read => options.read(true),
            How::Append => options.append(true),
            How::AppendOrCreate => options.append(true).create(true),
            How::Create => options.append(true).create_new(true),
        };
        Ok(Arc::new(options.open(path)?))
    }

    fn status(&self, path: &Path) -> io::Result<Status> {
        fs::metadata(path).map(|metadata| Status::of(&metadata))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        File::open(dir)?.sync_all()
    }
}

impl OpenFile for File {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        FileExt::read_at(self, bytes, offset)
    }

    fn append(&self, bytes: &[u8]) -> io::Result<usize> {
        let mut file = self;
        file.write(bytes)
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        Self::set_len(self, length)
    }

    fn sync(&self) -> io::Result<()> {
        self.sync_data()
    }

    fn status(&self) -> io::Result<Status> {
        self.metadata().map(|metadata| Status::of(&metadata))
    }

    fn try_lock(&self) -> Result<(), TryLockError> {
        Self::try_lock(self)
    }
}

impl Status {
    fn of(metadata: &fs::Metadata) -> Self {
        let identity = Identity(metadata.dev(), metadata.ino());
        Self { identity, length: metadata.len() }
    }
}
