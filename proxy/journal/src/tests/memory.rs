//! A disk in memory. It fails at the operation that a test names. At a power cut it forgets what
//! was not synced, in the ways in which real disks forget.

mod device;

use std::fs::TryLockError;
use std::io::{self, ErrorKind};
use std::mem;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard};

use self::device::{Change, File, Names};
use super::super::disk::{Disk, How, OpenFile, Status};
use super::random::Random;

pub(super) use self::device::Cut;

/// What goes wrong at one operation, counted from when it was planned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Fault {
    pub(super) at: usize,
    pub(super) kind: Kind,
    /// At each operation from then on.
    pub(super) is_permanent: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// The operation fails with this number; of an append, a part may have been written.
    Error(i32),
    /// There is no room: an append takes a part at most, and no file can be made. Other operations
    /// are as ever.
    Full,
    /// An append takes only a part. Other operations are as ever.
    Short,
    /// The process dies, perhaps within an append.
    Death,
}

/// The disk, and what the kernel knows better than the device. Clones are the same disk.
#[derive(Debug, Clone, Default)]
pub(super) struct Memory(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    /// Processes that have used it; only the last one lives.
    life: u32,
    operations: usize,
    fault: Option<Fault>,
    /// There is no room for what this operation adds.
    is_full: bool,
    files: Vec<File>,
    names: Names,
    /// As the device has them.
    synced_names: Names,
    /// What the device does not have yet.
    changes: Vec<Change>,
    /// Syncs of files whose sync had failed before, within one life.
    syncs_repeated: usize,
}

/// What is to happen to one operation.
enum Step {
    Whole,
    /// Every so many quarters of an append.
    Short(usize),
    Fails(io::Error, usize),
    /// Fails if it needs room, after so many quarters of an append.
    Full(usize),
}

/// ENOSPC, for blocks and for inodes.
fn no_room() -> io::Error {
    io::Error::from_raw_os_error(28)
}

/// The disk as one process sees it.
#[derive(Debug)]
struct Mounted {
    disk: Memory,
    /// Which one; none only looks.
    life: Option<u32>,
}

#[derive(Debug)]
struct Opened {
    disk: Memory,
    life: Option<u32>,
    file: usize,
    locked: AtomicBool,
}

impl Memory {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    /// For the process that lives now.
    pub(super) fn mount(&self) -> Arc<dyn Disk> {
        Arc::new(Mounted { disk: self.clone(), life: Some(self.lock().life) })
    }

    /// For who only looks: nothing fails, nothing is counted.
    pub(super) fn look(&self) -> Arc<dyn Disk> {
        Arc::new(Mounted { disk: self.clone(), life: None })
    }

    /// Plans a fault, or none; operations are counted from here.
    pub(super) fn plan(&self, fault: Option<Fault>) {
        let mut state = self.lock();
        (state.fault, state.operations) = (fault, 0);
    }

    /// Operations since the last plan.
    pub(super) fn operations(&self) -> usize {
        self.lock().operations
    }

    /// SIGKILL: what the process did is with the kernel, it does nothing any more.
    pub(super) fn die(&self) {
        self.lock().life += 1;
    }

    /// A power cut: the process dies, and the device is all that is left.
    pub(super) fn cut(&self, cut: Cut, random: &mut Random) {
        let mut state = self.lock();
        state.life += 1;
        for file in &mut state.files {
            file.bytes = file.after(cut, random);
            file.forgotten.clear();
            file.settle();
        }
        let changes = mem::take(&mut state.changes);
        let kept = random.index(changes.len() + 1);
        for (index, change) in changes.into_iter().enumerate() {
            let is_kept = match cut {
                Cut::Lost => false,
                Cut::Kept => true,
                Cut::Begun | Cut::Zeros => index < kept,
                Cut::Shuffled | Cut::Garbled => random.one_in(2),
            };
            if is_kept {
                change.apply(&mut state.synced_names);
            }
        }
        let names = state.synced_names.clone();
        let is_reached = |name: &Path| {
            let mut above = name.ancestors().skip(1);
            above.all(|dir| dir == Path::new("/") || names.contains_key(dir))
        };
        state.synced_names.retain(|name, _| is_reached(name));
        state.names = state.synced_names.clone();
    }

    /// Syncs of files whose sync had failed before: there should be none.
    pub(super) fn syncs_repeated(&self) -> usize {
        self.lock().syncs_repeated
    }

    /// The file behind a name, to look at or to damage.
    pub(super) fn with_file<T>(&self, path: &Path, look: impl FnOnce(&mut Vec<u8>) -> T) -> T {
        let mut state = self.lock();
        let file = state.names[path];
        look(&mut state.files[file].bytes)
    }
}

impl State {
    fn step(&mut self, life: Option<u32>) -> Step {
        let Some(life) = life else { return Step::Whole };
        if life != self.life {
            return Step::Fails(ErrorKind::BrokenPipe.into(), 0);
        }
        let at = self.operations;
        self.operations += 1;
        self.is_full = false;
        match self.fault {
            Some(fault) if at == fault.at || (fault.is_permanent && at > fault.at) => match fault
                .kind
            {
                Kind::Error(number) => Step::Fails(io::Error::from_raw_os_error(number), at % 4),
                Kind::Full => {
                    self.is_full = true;
                    Step::Full(at % 4)
                }
                Kind::Short => Step::Short(1 + at % 3),
                Kind::Death => {
                    self.life += 1;
                    Step::Fails(ErrorKind::BrokenPipe.into(), at % 4)
                }
            },
            _ => Step::Whole,
        }
    }

    fn named(&self, path: &Path) -> io::Result<usize> {
        self.names.get(path).copied().ok_or_else(|| ErrorKind::NotFound.into())
    }

    fn add(&mut self, path: &Path) -> usize {
        let file = self.files.len();
        self.files.push(File::default());
        self.change(Change::Added(path.to_owned(), file));
        file
    }

    fn change(&mut self, change: Change) {
        change.apply(&mut self.names);
        self.changes.push(change);
    }
}

impl Mounted {
    fn operate<T>(&self, act: impl FnOnce(&mut State) -> io::Result<T>) -> io::Result<T> {
        let mut state = self.disk.lock();
        match state.step(self.life) {
            Step::Whole | Step::Short(_) | Step::Full(_) => act(&mut state),
            Step::Fails(error, _) => Err(error),
        }
    }
}

impl Disk for Mounted {
    fn create_dir(&self, dir: &Path) -> io::Result<()> {
        self.operate(|state| {
            let mut missing: Vec<_> =
                dir.ancestors().filter(|dir| !state.names.contains_key(*dir)).collect();
            missing.retain(|dir| *dir != Path::new("/"));
            for dir in missing.into_iter().rev() {
                state.add(dir);
            }
            Ok(())
        })
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<PathBuf>> {
        self.operate(|state| {
            state.named(dir)?;
            let names = state.names.keys().filter(|path| path.parent() == Some(dir));
            Ok(names.cloned().collect())
        })
    }

    fn open(&self, path: &Path, how: How) -> io::Result<Arc<dyn OpenFile>> {
        let file = self.operate(|state| {
            state.named(path.parent().unwrap())?;
            match (state.names.get(path), how) {
                (Some(_), How::Create) => Err(ErrorKind::AlreadyExists.into()),
                (Some(file), _) => Ok(*file),
                (None, How::Create | How::AppendOrCreate) if state.is_full => Err(no_room()),
                (None, How::Create | How::AppendOrCreate) => Ok(state.add(path)),
                (None, How::Read | How::Append) => Err(ErrorKind::NotFound.into()),
            }
        })?;
        let (disk, life, locked) = (self.disk.clone(), self.life, AtomicBool::default());
        Ok(Arc::new(Opened { disk, life, file, locked }))
    }

    fn status(&self, path: &Path) -> io::Result<Status> {
        self.operate(|state| {
            let file = state.named(path)?;
            Ok(state.files[file].status(file))
        })
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.operate(|state| {
            state.named(from)?;
            state.change(Change::Renamed { from: from.to_owned(), to: to.to_owned() });
            Ok(())
        })
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.operate(|state| {
            state.named(path)?;
            state.change(Change::Removed(path.to_owned()));
            Ok(())
        })
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.operate(|state| {
            let (synced, left): (Vec<_>, Vec<_>) =
                mem::take(&mut state.changes).into_iter().partition(|change| change.is_in(dir));
            synced.iter().for_each(|change| change.apply(&mut state.synced_names));
            state.changes = left;
            Ok(())
        })?;
        Ok(())
    }
}

impl Opened {
    fn operate<T>(&self, act: impl FnOnce(&mut File, Step) -> io::Result<T>) -> io::Result<T> {
        let mut state = self.disk.lock();
        match state.step(self.life) {
            Step::Fails(error, 0) => Err(error),
            step => act(&mut state.files[self.file], step),
        }
    }

    fn whole<T>(&self, act: impl FnOnce(&mut File) -> io::Result<T>) -> io::Result<T> {
        self.operate(|file, step| match step {
            Step::Fails(error, _) => Err(error),
            Step::Whole | Step::Short(_) | Step::Full(_) => act(file),
        })
    }
}

impl OpenFile for Opened {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        self.whole(|file| {
            let from = file.bytes.len().min(usize::try_from(offset).unwrap());
            let length = bytes.len().min(file.bytes.len() - from);
            bytes[..length].copy_from_slice(&file.bytes[from..from + length]);
            Ok(length)
        })
    }

    fn append(&self, bytes: &[u8]) -> io::Result<usize> {
        self.operate(|file, step| {
            let part = |quarters: usize| (bytes.len() * quarters).div_ceil(4).min(bytes.len());
            let (written, result) = match step {
                Step::Whole => (bytes.len(), Ok(bytes.len())),
                Step::Short(quarters) => (part(quarters), Ok(part(quarters))),
                Step::Fails(error, quarters) => (part(quarters), Err(error)),
                Step::Full(quarters) => (part(quarters), Err(no_room())),
            };
            file.bytes.extend_from_slice(&bytes[..written]);
            result
        })
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        self.whole(|file| {
            let length = usize::try_from(length).unwrap();
            file.bytes.resize(length, 0);
            file.untouched = file.untouched.min(length);
            file.forgotten.retain(|range| range.start < length);
            Ok(())
        })
    }

    fn sync(&self) -> io::Result<()> {
        let mut state = self.disk.lock();
        let (step, life) = (state.step(self.life), self.life);
        let is_alive = life == Some(state.life);
        let file = &mut state.files[self.file];
        let is_repeated = file.doubtful_in.is_some() && file.doubtful_in == life;
        if let Step::Fails(error, _) = step {
            if is_alive {
                file.forgotten.push(file.untouched..file.bytes.len());
                file.doubtful_in = life;
            }
            return Err(error);
        }
        file.settle();
        let mut synced = mem::take(&mut file.synced);
        file.forget(&mut synced);
        file.synced = synced;
        state.syncs_repeated += usize::from(is_repeated);
        Ok(())
    }

    fn status(&self) -> io::Result<Status> {
        self.whole(|file| Ok(file.status(self.file)))
    }

    fn try_lock(&self) -> Result<(), TryLockError> {
        let life = self.life;
        let free = self.whole(|file| {
            let is_free = file.locked_in != life;
            file.locked_in = life;
            Ok(is_free)
        });
        if !free.map_err(TryLockError::Error)? {
            return Err(TryLockError::WouldBlock);
        }
        self.locked.store(true, Relaxed);
        Ok(())
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        if self.locked.load(Relaxed)
            && let Ok(mut state) = self.disk.0.lock()
        {
            let file = &mut state.files[self.file];
            file.locked_in = file.locked_in.filter(|life| Some(*life) != self.life);
        }
    }
}
