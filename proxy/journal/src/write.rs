//! The threads that write and sync: one write per batch, one sync at a time.

use std::io;
use std::mem;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use taximeter_config::Durability;
use taximeter_ledger::{Digest, LedgerId, Position, SegmentHeader, StringsSoFar};
use taximeter_system::clock;

use super::disk::{self, Disk};
use super::error::JournalError;
use super::files::{self, Segment};
use super::held::HeldDisk;
use super::identity::Named;
use super::lock::Lock;
use super::options::{Event, Options};
use super::queue::{Batch, Doubtful, Queue};

/// Where batches go.
#[derive(Clone)]
pub(super) struct JournalDir {
    pub(super) dir: PathBuf,
    pub(super) disk: Arc<dyn Disk>,
    pub(super) ledger: LedgerId,
    pub(super) named: Arc<Named>,
    /// Held until the writer has left.
    pub(super) lock: Arc<Lock>,
}

/// Writes what is queued, in order, each entry once.
pub(super) struct Writer {
    journal_dir: JournalDir,
    /// What the start could not write. It comes first.
    held: Option<Arc<HeldDisk>>,
    queue: Arc<Queue>,
    /// `None` until there is room for the first one since the start.
    segment: Option<Segment>,
    /// Digest of the segment that has the last entry of the last whole batch, up to that.
    digest: Option<Digest>,
}

impl JournalDir {
    /// Begins a segment with `frames`, which follow `before` and have the strings of `table`.
    /// `follows` is the digest of the segment that has `before`.
    pub(super) fn begin(
        &self,
        options: &Options,
        before: Position,
        follows: Option<Digest>,
        (table, frames): (&[u8], &[u8]),
    ) -> io::Result<Segment> {
        self.lock.make_file(&*self.disk)?;
        self.named.write(&self.dir, &*self.disk, options.is_synced())?;
        let header = SegmentHeader {
            gateway: options.gateway.clone(),
            ledger: self.ledger,
            before,
            lost: 0,
            has_sync_marks: options.is_synced(),
            follows,
            created: (options.now)(),
        };
        Segment::create(&self.dir, &header, (table, frames), &*self.disk)
    }

    /// Appends `frames` up to `last` and, as all that is in the segment is to be trusted from now
    /// on, syncs it. Returns the error if there is no room for the frames: then none is in it.
    pub(super) fn append(
        &self,
        options: &Options,
        segment: &mut Segment,
        frames: &[u8],
        last: Position,
    ) -> io::Result<Option<io::Error>> {
        let no_room = match frames {
            [] => None,
            frames => unless_no_room(segment.append(frames))?,
        };
        if options.is_synced() {
            segment.file().sync()?;
            if no_room.is_none() {
                // A mark that is not written is made up for by the next.
                unless_no_room(segment.mark(last.seq))?;
            }
        }
        Ok(no_room)
    }
}

/// The error of an operation for which there is no room.
///
/// Errors: all others.
fn unless_no_room(done: io::Result<()>) -> io::Result<Option<io::Error>> {
    match done {
        Ok(()) => Ok(None),
        Err(error) if disk::is_without_room(&error) => Ok(Some(error)),
        Err(error) => Err(error),
    }
}

impl Writer {
    /// Goes on with `segment`, or behind one with the digest `before`. What is held comes before that.
    pub(super) fn new(
        (journal_dir, held): (JournalDir, Option<Arc<HeldDisk>>),
        queue: Arc<Queue>,
        segment: Option<Segment>,
        before: Option<Digest>,
    ) -> Self {
        let digest = segment.as_ref().map_or(before, Segment::digest);
        if let Some(segment) = &segment {
            queue.opened(segment.first_seq());
        }
        Self { journal_dir, held, queue, segment, digest }
    }

    /// Writes until the queue is closed.
    pub(super) fn start(mut self) -> io::Result<JoinHandle<Result<(), JournalError>>> {
        let syncer = match self.queue.options.durability {
            Durability::Group => Some(self.start_syncer()?),
            Durability::Os | Durability::Sync => None,
        };
        let writer = move || {
            let written = self.write_all();
            self.queue.all_written();
            if syncer.is_some_and(|syncer| syncer.join().is_err()) {
                self.queue.doubt();
            }
            written?;
            let (last, strings) = self.queue.taken();
            self.settle(last, &strings).map_err(|error| self.failed(error))?;
            self.mark_synced();
            Ok(())
        };
        thread::Builder::new().name("journal".to_owned()).spawn(writer)
    }

    fn start_syncer(&self) -> io::Result<JoinHandle<()>> {
        let queue = Arc::clone(&self.queue);
        let syncer = move || {
            while let Some((files, seq)) = queue.take_unsynced() {
                let begun = clock::now();
                let result = files.iter().try_for_each(|file| file.sync());
                queue.tell_slow("sync", begun);
                queue.synced(seq, &result);
            }
        };
        thread::Builder::new().name("journal-sync".to_owned()).spawn(syncer)
    }

    fn write_all(&mut self) -> Result<(), JournalError> {
        let mut spare = Vec::new();
        while let Some(mut batch) = self.queue.take(spare) {
            batch.carry_over(self.journal_dir.ledger);
            while let Err(error) = self.commit(&batch) {
                self.queue.fail(self.path(), &error);
                if !self.queue.pause() {
                    self.commit(&batch).map_err(|error| self.failed(error))?;
                    break;
                }
            }
            spare = self.complete(batch);
        }
        Ok(())
    }

    /// Writes a batch as `durability` wants it. After an error nothing of it counts as written, and
    /// it may be tried again.
    pub(super) fn commit(&mut self, batch: &Batch) -> io::Result<()> {
        let begun = clock::now();
        self.settle(batch.before, &batch.strings)?;
        self.write(batch)?;
        self.queue.tell_slow("write", begun);
        Ok(())
    }

    fn write(&mut self, batch: &Batch) -> io::Result<()> {
        let begins_segment = batch.begins_segment || self.segment.is_none();
        if begins_segment && self.queue.options.durability == Durability::Group {
            // What follows a segment says that all of it is there.
            self.queue.wait_for_sync();
            self.settle(batch.before, &batch.strings)?;
        }
        if !begins_segment {
            self.mark_synced();
        }
        let Self { journal_dir, queue, digest, segment, .. } = self;
        let segment = match segment {
            Some(segment) if !begins_segment => {
                segment.append(&batch.bytes)?;
                segment
            }
            _ => {
                let frames = (&[][..], &batch.bytes[..]);
                let begun = journal_dir.begin(&queue.options, batch.before, *digest, frames)?;
                queue.opened(begun.first_seq());
                segment.insert(begun)
            }
        };
        if self.queue.options.durability == Durability::Sync {
            let synced = if begins_segment { Ok(()) } else { segment.file().sync() };
            self.queue.synced(batch.last.seq, &synced);
            synced?;
            self.mark_synced();
        }
        Ok(())
    }

    /// Says in the segment what is known to be synced, where that is news.
    fn mark_synced(&mut self) {
        if let Some(synced) = self.queue.take_unmarked() {
            // One that is not written is made up for by the next; until then a start takes less
            // for promised than there is.
            let _ = self.segment.as_mut().map(|segment| segment.mark(synced));
        }
    }

    /// Makes sure of all that was written up to `last`: what a file that could not be synced, or
    /// was taken from us, may have lost goes to a fresh one, together with all that follows. What
    /// follows has `strings`.
    fn settle(&mut self, last: Position, strings: &StringsSoFar) -> io::Result<()> {
        if let Some(held) = &self.held {
            held.write()?;
            self.held = None;
        }
        if let Some(segment) = &self.segment
            && !segment.is_intact(&*self.journal_dir.disk)?
            && self.queue.doubt()
        {
            self.queue.tell(&Event::SegmentLost { path: segment.path() });
        }
        let doubtful = self.queue.doubtful(last, self.digest, strings);
        let Some(Doubtful { before, follows, strings, frames }) = doubtful else { return Ok(()) };
        let table = strings.to_frame(self.journal_dir.ledger);
        let frames = (table.as_slice(), frames.as_slice());
        let begun = self.journal_dir.begin(&self.queue.options, before, follows, frames)?;
        self.queue.opened(begun.first_seq());
        let segment = self.segment.insert(begun);
        let JournalDir { dir, disk, .. } = &self.journal_dir;
        for (first, path) in files::list(dir, &**disk)? {
            if first > before.seq + 1 {
                files::remove(&path, &**disk)?;
            }
        }
        if self.queue.options.is_synced() {
            disk.sync_dir(dir)?;
        }
        self.queue.renewed(last);
        self.digest = segment.digest();
        Ok(())
    }

    fn complete(&mut self, mut batch: Batch) -> Vec<u8> {
        let digest = self.segment.as_ref().map_or(self.digest, Segment::digest);
        batch.follows = mem::replace(&mut self.digest, digest);
        let file = match self.queue.options.durability {
            Durability::Group => self.segment.as_ref().map(Segment::file),
            Durability::Os | Durability::Sync => None,
        };
        self.queue.complete(batch, file)
    }

    fn failed(&self, source: io::Error) -> JournalError {
        JournalError::io("write", self.path())(source)
    }

    /// What is written to.
    fn path(&self) -> &Path {
        self.segment.as_ref().map_or(&self.journal_dir.dir, Segment::path)
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.queue.end();
    }
}
