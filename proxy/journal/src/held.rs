//! A disk that changes nothing: it holds in memory what a start leaves out of a damaged journal,
//! while the volume has no room for that. Once there is room, the same changes are made on the disk
//! below, in the same order. A process that dies meanwhile finds the damage again.

use std::collections::{BTreeMap, VecDeque};
use std::fs::TryLockError;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::disk::{Disk, How, Identity, OpenFile, Status};

/// Most bytes that are held.
const BYTES_MAX: usize = 64 << 20;

/// The disk, and what is held.
#[derive(Debug)]
pub(super) struct HeldDisk {
    below: Arc<dyn Disk>,
    held: Arc<Held>,
}

/// What is still to be changed on the disk below.
#[derive(Debug, Default)]
struct Held(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// What has other names than below. `None` is a name that is gone.
    names: BTreeMap<PathBuf, Option<Arc<Content>>>,
    changes: VecDeque<Change>,
    bytes: usize,
}

#[derive(Debug)]
enum Change {
    Create(Arc<Content>),
    /// Writes the bytes of the file in this range.
    Append(Arc<Content>, usize, usize),
    Sync(Arc<Content>),
    Rename(PathBuf, PathBuf),
    Remove(PathBuf),
    SyncDir(PathBuf),
}

/// A file that is held.
#[derive(Debug)]
struct Content {
    /// The name that it is made with.
    path: PathBuf,
    bytes: Mutex<Vec<u8>>,
    /// The same file below, once it is made.
    below: Mutex<Option<Arc<dyn OpenFile>>>,
}

/// A file that is held, as who writes it has it.
#[derive(Debug)]
struct HeldFile {
    held: Arc<Held>,
    content: Arc<Content>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl HeldDisk {
    /// Nothing is held yet.
    pub(super) fn new(below: Arc<dyn Disk>) -> Self {
        Self { below, held: Arc::default() }
    }

    /// Makes the changes on the disk below. After an error the next call goes on with the change
    /// that failed.
    pub(super) fn write(&self) -> io::Result<()> {
        let mut state = lock(&self.held.0);
        while let Some(change) = state.changes.front_mut() {
            let done = change.make(&*self.below);
            if let (Change::Sync(content), Err(_)) = (&*change, &done) {
                // Nobody knows what the device has of it.
                let (content, length) = (Arc::clone(content), lock(&content.bytes).len());
                for change in [
                    Change::Append(Arc::clone(&content), 0, length),
                    Change::Create(Arc::clone(&content)),
                    Change::Remove(content.path.clone()),
                ] {
                    state.changes.push_front(change);
                }
            }
            done?;
            state.changes.pop_front();
        }
        Ok(())
    }

    fn change(&self, change: Change) {
        lock(&self.held.0).changes.push_back(change);
    }
}

impl Change {
    /// Makes it on `disk`. Of an append that fails, what is written is done.
    fn make(&mut self, disk: &dyn Disk) -> io::Result<()> {
        let open = |content: &Content| {
            lock(&content.below).clone().ok_or_else(|| io::Error::from(ErrorKind::NotFound))
        };
        match self {
            Self::Create(content) => {
                *lock(&content.below) = Some(disk.open(&content.path, How::Create)?);
            }
            Self::Append(content, from, to) => {
                let file = open(content)?;
                let bytes = lock(&content.bytes);
                while let Some(rest) = bytes.get(*from..*to).filter(|rest| !rest.is_empty()) {
                    match file.append(rest)? {
                        0 => return Err(ErrorKind::WriteZero.into()),
                        written => *from += written,
                    }
                }
            }
            Self::Sync(content) => open(content)?.sync()?,
            Self::Rename(from, to) => disk.rename(from, to)?,
            Self::Remove(path) => match disk.remove(path) {
                Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
                _ => {}
            },
            Self::SyncDir(dir) => disk.sync_dir(dir)?,
        }
        Ok(())
    }
}

impl Disk for HeldDisk {
    fn create_dir(&self, dir: &Path) -> io::Result<()> {
        self.below.create_dir(dir)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<PathBuf>> {
        let mut paths = self.below.list(dir)?;
        let state = lock(&self.held.0);
        paths.retain(|path| !state.names.contains_key(path));
        let held =
            state.names.iter().filter(|(path, file)| file.is_some() && path.parent() == Some(dir));
        paths.extend(held.map(|(path, _)| path.clone()));
        Ok(paths)
    }

    fn open(&self, path: &Path, how: How) -> io::Result<Arc<dyn OpenFile>> {
        let named = lock(&self.held.0).names.get(path).cloned();
        let content = match (named, how) {
            (None, How::Read) => return self.below.open(path, how),
            (Some(Some(content)), How::Read) => content,
            (Some(None), How::Read) => return Err(ErrorKind::NotFound.into()),
            (_, How::Create) => {
                if self.status(path).is_ok() {
                    return Err(ErrorKind::AlreadyExists.into());
                }
                let content = Arc::new(Content {
                    path: path.to_owned(),
                    bytes: Mutex::default(),
                    below: Mutex::default(),
                });
                let mut state = lock(&self.held.0);
                state.names.insert(path.to_owned(), Some(Arc::clone(&content)));
                state.changes.push_back(Change::Create(Arc::clone(&content)));
                content
            }
            (_, How::Append | How::AppendOrCreate) => return Err(ErrorKind::Unsupported.into()),
        };
        Ok(Arc::new(HeldFile { held: Arc::clone(&self.held), content }))
    }

    fn status(&self, path: &Path) -> io::Result<Status> {
        let named = lock(&self.held.0).names.get(path).cloned();
        match named {
            None => self.below.status(path),
            Some(Some(content)) => Ok(content.status()),
            Some(None) => Err(ErrorKind::NotFound.into()),
        }
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = lock(&self.held.0);
        // Of what is below nothing is renamed.
        let content = state.names.get_mut(from).and_then(Option::take);
        let content = content.ok_or_else(|| io::Error::from(ErrorKind::NotFound))?;
        state.names.insert(to.to_owned(), Some(content));
        state.changes.push_back(Change::Rename(from.to_owned(), to.to_owned()));
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.status(path)?;
        lock(&self.held.0).names.insert(path.to_owned(), None);
        self.change(Change::Remove(path.to_owned()));
        Ok(())
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.change(Change::SyncDir(dir.to_owned()));
        Ok(())
    }
}

impl Content {
    fn status(&self) -> Status {
        let address = std::ptr::from_ref(self).addr() as u64;
        Status { identity: Identity(u64::MAX, address), length: lock(&self.bytes).len() as u64 }
    }
}

impl OpenFile for HeldFile {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        let held = lock(&self.content.bytes);
        let from = usize::try_from(offset).unwrap_or(usize::MAX);
        let rest = held.get(from..).unwrap_or_default();
        let length = rest.len().min(bytes.len());
        if let (Some(to), Some(from)) = (bytes.get_mut(..length), rest.get(..length)) {
            to.copy_from_slice(from);
        }
        Ok(length)
    }

    fn append(&self, bytes: &[u8]) -> io::Result<usize> {
        let mut state = lock(&self.held.0);
        if state.bytes + bytes.len() > BYTES_MAX {
            return Err(ErrorKind::StorageFull.into());
        }
        state.bytes += bytes.len();
        let mut held = lock(&self.content.bytes);
        let from = held.len();
        held.extend_from_slice(bytes);
        state.changes.push_back(Change::Append(Arc::clone(&self.content), from, held.len()));
        Ok(bytes.len())
    }

    fn set_len(&self, _: u64) -> io::Result<()> {
        Err(ErrorKind::Unsupported.into())
    }

    fn sync(&self) -> io::Result<()> {
        lock(&self.held.0).changes.push_back(Change::Sync(Arc::clone(&self.content)));
        Ok(())
    }

    fn status(&self) -> io::Result<Status> {
        Ok(self.content.status())
    }

    fn try_lock(&self) -> Result<(), TryLockError> {
        Ok(())
    }
}
