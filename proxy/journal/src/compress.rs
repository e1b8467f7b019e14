//! Compresses closed segments, one at a time, on a thread that nobody waits for.
//!
//! A segment is compressed into a file without a name that anyone looks for. That is synced, read
//! again and compared. Then it takes its name, and the plain file goes. So at every moment one of
//! the two is whole. Where both are there, the plain one is read, and compressed again.

use std::io::{self, ErrorKind};
use std::mem;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use taximeter_ledger::frame_bytes;
use taximeter_system::clock;
use taximeter_system::thread::{Share, yield_to_others};

use super::compressed::{PIECE_BYTES, PIECE_BYTES_MAX, Packer, piece_length};
use super::disk::{Disk, How, Kernel};
use super::files::{self, SegmentFile};
use super::options::Event;
use super::queue::Queue;

/// Time between two looks for closed segments.
const LOOK_PERIOD: Duration = Duration::from_secs(2);
/// Time after a failure until the next attempt.
const RETRY_PERIOD: Duration = Duration::from_secs(60);
/// The thread rests so many times as long as it works. A CPU that is limited is for requests.
const REST: u32 = 3;

/// Whether the work is to go on. It is asked after each piece.
type GoOn<'a> = dyn FnMut() -> bool + 'a;

/// Compresses all segments of the journal in `dir` but the last one. Nobody may write it meanwhile.
/// Returns the compressed files.
///
/// # Errors
/// A file cannot be read or written. The plain file of that segment is as it was.
pub fn compress(dir: &Path) -> io::Result<Vec<PathBuf>> {
    closed(dir, u64::MAX, &Kernel, &mut || true).map_err(|(_, error)| error)
}

/// Compresses the closed segments of the journal in `dir`: those before the one that begins with
/// `open`, and never the last one.
///
/// # Errors
/// The first segment that could not be compressed, which is as it was. The others are, unless the
/// disk is full.
pub(super) fn closed(
    dir: &Path,
    open: u64,
    disk: &dyn Disk,
    go_on: &mut GoOn<'_>,
) -> Result<Vec<PathBuf>, (PathBuf, io::Error)> {
    let mut segments = files::list(dir, disk).map_err(|error| (dir.to_owned(), error))?;
    segments.pop();
    segments.retain(|(first, path)| *first < open && !files::is_compressed(path));
    let (mut done, mut failed) = (Vec::new(), None);
    for (_, path) in segments {
        match segment(dir, &path, disk, go_on) {
            Ok(Some(compressed)) => done.push(compressed),
            Ok(None) => {}
            // It was removed meanwhile.
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) if error.kind() == ErrorKind::StorageFull => return Err((path, error)),
            Err(error) => {
                failed.get_or_insert((path, error));
            }
        }
        if !go_on() {
            break;
        }
    }
    failed.map_or(Ok(done), Err)
}

/// Removes what was being compressed when the process died.
fn remove_unfinished(dir: &Path, disk: &dyn Disk) -> io::Result<()> {
    for path in disk.list(dir)? {
        let whole = path.with_extension("");
        if files::unnamed(&whole) == path
            && files::is_compressed(&whole)
            && files::first_seq(&whole).is_some()
        {
            disk.remove(&path)?;
        }
    }
    Ok(())
}

/// Compresses one segment. `None` if it was changed meanwhile, or if there was no time for it.
fn segment(
    dir: &Path,
    path: &Path,
    disk: &dyn Disk,
    go_on: &mut GoOn<'_>,
) -> io::Result<Option<PathBuf>> {
    let compressed = files::compressed(path);
    let unnamed = files::unnamed(&compressed);
    let result = write(path, &unnamed, disk, go_on).and_then(|is_whole| {
        if is_whole {
            disk.rename(&unnamed, &compressed)?;
            disk.sync_dir(dir)?;
        }
        Ok(is_whole)
    });
    if !matches!(result, Ok(true)) {
        let _ = disk.remove(&unnamed);
        return result.map(|_| None);
    }
    match disk.remove(path) {
        // It was removed as an old one: so is this.
        Err(error) if error.kind() == ErrorKind::NotFound => {
            disk.remove(&compressed).map(|()| None)
        }
        removed => removed.map(|()| Some(compressed)),
    }
}

/// Writes the compressed file, and compares it with the plain one. Whether it is whole and says the
/// same.
fn write(path: &Path, unnamed: &Path, disk: &dyn Disk, go_on: &mut GoOn<'_>) -> io::Result<bool> {
    match disk.remove(unnamed) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut plain = SegmentFile::Plain(disk.open(path, How::Read)?);
    let status = plain.file().status()?;
    let file = disk.open(unnamed, How::Create)?;
    let (mut packer, mut pieces) = (Packer::new()?, Pieces::default());
    while let Some(piece) = pieces.next(&mut plain)? {
        files::append(&*file, &packer.pack(piece)?)?;
        if !go_on() {
            return Ok(false);
        }
    }
    files::append(&*file, &packer.table())?;
    file.sync()?;
    let mut compressed = SegmentFile::compressed(disk.open(unnamed, How::Read)?)?;
    let (mut of_plain, mut of_compressed) = (Pieces::default(), Pieces::default());
    loop {
        let piece = of_plain.next(&mut plain)?;
        if piece != of_compressed.next(&mut compressed)? {
            return Err(io::Error::new(ErrorKind::InvalidData, "it does not decompress"));
        }
        if piece.is_none() {
            return Ok(disk.status(path)? == status);
        }
        if !go_on() {
            return Ok(false);
        }
    }
}

/// Cuts a segment into pieces.
#[derive(Default)]
struct Pieces {
    bytes: Vec<u8>,
    /// Length of the last piece, which is at the start of `bytes`.
    last: usize,
    /// Bytes that were read.
    read: u64,
}

impl Pieces {
    /// The next piece. `None` at the end.
    fn next(&mut self, from: &mut SegmentFile) -> io::Result<Option<&[u8]>> {
        let is_header = self.read == 0;
        self.bytes.drain(..self.last);
        self.fill(from, PIECE_BYTES)?;
        // Longer ones are rare.
        let frame = frame_bytes(&self.bytes).filter(|_| !is_header);
        if frame.is_some_and(|frame| frame > self.bytes.len()) {
            self.fill(from, PIECE_BYTES_MAX)?;
        }
        self.last = piece_length(&self.bytes, is_header);
        Ok(self.bytes.get(..self.last).filter(|piece| !piece.is_empty()))
    }

    /// Reads until there are so many bytes, or no more.
    fn fill(&mut self, from: &mut SegmentFile, length: usize) -> io::Result<()> {
        let mut filled = self.bytes.len();
        self.bytes.resize(length.max(filled), 0);
        while let Some(rest) = self.bytes.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            match from.read_at(rest, self.read)? {
                0 => break,
                read => (filled, self.read) = (filled + read, self.read + read as u64),
            }
        }
        self.bytes.truncate(filled);
        Ok(())
    }
}

/// The thread that compresses what the writer has closed.
#[derive(Debug)]
pub(super) struct Background {
    is_over: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl Background {
    pub(super) fn start(dir: &Path, queue: &Arc<Queue>) -> io::Result<Self> {
        let is_over = Arc::new(AtomicBool::new(false));
        let (over, dir, queue) = (Arc::clone(&is_over), dir.to_owned(), Arc::clone(queue));
        let thread = thread::Builder::new().name("compress".to_owned()).spawn(move || {
            yield_to_others(Share::Least);
            let _ = remove_unfinished(&dir, &Kernel);
            let mut is_failing = false;
            while !over.load(Relaxed) {
                let mut begun = clock::now();
                let mut go_on = || {
                    thread::park_timeout((clock::now() - begun) * REST);
                    begun = clock::now();
                    !over.load(Relaxed)
                };
                let period = match closed(&dir, queue.open_segment(), &Kernel, &mut go_on) {
                    Ok(done) => {
                        is_failing &= done.is_empty();
                        LOOK_PERIOD
                    }
                    Err((path, error)) => {
                        if !mem::replace(&mut is_failing, true) {
                            queue.tell(&Event::NotCompressed { path: &path, error: &error });
                        }
                        RETRY_PERIOD
                    }
                };
                if !over.load(Relaxed) {
                    thread::park_timeout(period);
                }
            }
        })?;
        Ok(Self { is_over, thread })
    }

    /// Ends the work after the piece that is at hand. What is left is done after the next start.
    pub(super) fn stop(self) {
        self.is_over.store(true, Relaxed);
        self.thread.thread().unpark();
        let _ = self.thread.join();
    }
}
