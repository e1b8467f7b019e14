//! The lock of who writes a journal: on the file `journal.lock`, and on the directory.
//!
//! A volume without inodes has no room for a new file. Then the lock on the directory alone keeps
//! others away, and the file is made before the first segment is. A file system that knows no lock on
//! directories has that on the file.

use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;

use super::disk::{Disk, How, OpenFile, is_without_room};
use super::error::JournalError;

/// How often a start asks for the lock that another process holds.
const TRIES_MAX: usize = 5;
/// Time between two of these.
const WAIT: Duration = Duration::from_millis(20);

/// The file that a writer holds locked. It belongs to the user of the gateway.
pub const LOCK: &str = "journal.lock";

/// Held by who writes the journal, until it is dropped.
#[derive(Debug)]
pub(super) struct Lock {
    path: PathBuf,
    file: OnceLock<Arc<dyn OpenFile>>,
    _dir: Option<Arc<dyn OpenFile>>,
}

impl Lock {
    /// Takes the lock of the journal in `dir`.
    ///
    /// # Errors
    /// `InUse` while another process has it; `Io`.
    pub(super) fn take(dir: &Path, disk: &dyn Disk) -> Result<Self, JournalError> {
        let lock = |file: Arc<dyn OpenFile>| match try_lock(&*file) {
            Ok(()) => Ok(file),
            Err(TryLockError::WouldBlock) => Err(JournalError::InUse { dir: dir.to_owned() }),
            Err(TryLockError::Error(source)) => Err(JournalError::io("lock", dir)(source)),
        };
        let locked =
            disk.open(dir, How::Read).map_err(JournalError::io("open", dir)).and_then(lock);
        let locked = match locked {
            Err(JournalError::Io { .. }) => None,
            locked => Some(locked?),
        };
        let path = dir.join(LOCK);
        let file = match disk.open(&path, How::AppendOrCreate) {
            Err(error) if locked.is_some() && is_without_room(&error) => OnceLock::new(),
            opened => lock(opened.map_err(JournalError::io("open", &path))?)?.into(),
        };
        Ok(Self { path, file, _dir: locked })
    }

    /// Makes the file if there was no room for it.
    pub(super) fn make_file(&self, disk: &dyn Disk) -> io::Result<()> {
        if self.file.get().is_none() {
            let file = disk.open(&self.path, How::AppendOrCreate)?;
            try_lock(&*file)?;
            let _ = self.file.set(file);
        }
        Ok(())
    }
}

/// Locks a file or a directory. Who asks whether it is locked holds it for a moment.
fn try_lock(file: &dyn OpenFile) -> Result<(), TryLockError> {
    for _ in 1..TRIES_MAX {
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => thread::park_timeout(WAIT),
            done => return done,
        }
    }
    file.try_lock()
}

/// Whether a process has the journal in `dir` open for writing. Makes no file.
pub(super) fn is_locked(dir: &Path) -> bool {
    [dir, &dir.join(LOCK)].into_iter().any(|path| {
        let file = File::open(path);
        file.is_ok_and(|file| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)))
    })
}
