//! The journal's files: what was admitted and what it used, in order, never lost and never twice.
//!
//! Callers give an entry its place in a queue; one thread writes whatever is queued, once, and
//! wakes all who wait. What cannot be written stays queued and is tried again at the same place. A
//! segment is a file; it ends where the next one begins.

mod disk;
pub mod disk_budget;
mod error;
mod examine;
mod files;
mod options;
mod promise;
mod pushed;
mod queue;
mod read;
mod recover;
mod retain;
mod salvage;
mod state;
#[cfg(test)]
mod tests;
mod write;

use std::future::Future;
use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::thread::JoinHandle;

use taximeter_ledger::{Entry, Record, RecordCost};

pub use self::error::{AppendError, JournalError, Loss};
pub use self::examine::{Examination, examine};
pub use self::options::{Event, Options};
pub use self::pushed::PushOutcome;
pub use self::read::{Altered, Entries, Extent, extent};
pub use self::recover::Recovery;
pub use self::retain::Retention;
pub use self::state::{JournalState, Segments};

use self::disk::{Disk, Kernel};
use self::queue::Queue;

/// What the store and statements call the journal of requests.
pub const REQUESTS: &str = "journal";
/// The directory inside the data directory of the journal that corrections are written to, also
/// while the gateway writes its own.
pub const CORRECTIONS: &str = "corrections";

/// What a request owes whose record was made at start; `None` is unknown.
pub type Price<'a> = dyn Fn(&Record) -> Option<RecordCost> + 'a;

/// The journal of this gateway, open for writing. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Journal(Arc<Handle>);

#[derive(Debug)]
struct Handle {
    queue: Arc<Queue>,
    writer: Mutex<Option<JoinHandle<Result<(), JournalError>>>>,
    dir: PathBuf,
}

impl Journal {
    /// Opens the journal in `dir`, which is made if needed: reads it from the oldest entry that
    /// still matters, cuts off one that was being written when we died, and posts the requests that
    /// were open then, at what `price` makes of what they had used.
    ///
    /// # Errors
    /// `InUse` when another process writes it (exit 75); `Segment` when what was read is newer than
    /// we are, or damaged before its end and that is not to be salvaged; `Io`. Nothing is changed
    /// then.
    pub fn open(
        dir: &Path,
        options: Options,
        price: &Price<'_>,
    ) -> Result<(Self, Recovery), JournalError> {
        Self::open_on(dir, options, price, Arc::new(Kernel))
    }

    fn open_on(
        dir: &Path,
        options: Options,
        price: &Price<'_>,
        disk: Arc<dyn Disk>,
    ) -> Result<(Self, Recovery), JournalError> {
        let (queue, writer, recovery) = recover::open(dir, options, price, disk)?;
        let writer = writer.start().map_err(JournalError::io("start the writer of", dir))?;
        let handle = Handle { queue, writer: Mutex::new(Some(writer)), dir: dir.to_owned() };
        Ok((Self(Arc::new(handle)), recovery))
    }

    /// Queues an entry. The future is done when it is written, and need not be waited for.
    ///
    /// # Errors
    /// The entry was not taken. Once it was, it will be written: if waiting for a reservation fails
    /// or takes too long, it is to be settled all the same.
    pub fn append(&self, entry: &Entry) -> Result<Append, AppendError> {
        let seq = self.0.queue.push(entry)?;
        Ok(Append { queue: Arc::clone(&self.0.queue), seq, lane: None })
    }

    /// Queues an entry where nobody can wait. One that is not taken is counted and told.
    pub fn append_detached(&self, entry: &Entry) {
        if let Err(error) = self.0.queue.push(entry) {
            self.0.queue.lose(error);
        }
    }

    /// Queues an entry that those behind it make up for: it is left out where there is no room.
    pub fn append_if_room(&self, entry: &Entry) {
        let _ = self.0.queue.push(entry);
    }

    /// Entries lost by `append_detached`.
    #[cfg(test)]
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.0.queue.lost()
    }

    /// Whether reservations are taken.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.0.queue.is_open()
    }

    /// Whether entries are written.
    #[must_use]
    pub fn is_healthy(&self) -> bool {
        self.0.queue.is_healthy()
    }

    /// Sequence number of the last entry that is written.
    #[must_use]
    pub fn sequence(&self) -> u64 {
        self.0.queue.sequence()
    }

    /// How it does.
    #[must_use]
    pub fn state(&self) -> JournalState {
        self.0.queue.tell_state()
    }

    /// Its files. Asks the disk.
    ///
    /// # Errors
    /// The directory cannot be read.
    pub fn segments(&self) -> io::Result<Segments> {
        state::segments(&self.0.dir, &Kernel)
    }

    /// Takes no more entries, writes and syncs what is queued. Blocks.
    ///
    /// # Errors
    /// `Io` when the last entries could not be written or synced.
    pub fn close(&self) -> Result<(), JournalError> {
        self.0.close()
    }
}

impl Handle {
    fn close(&self) -> Result<(), JournalError> {
        self.queue.close();
        let writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(writer) = writer else { return Ok(()) };
        let panicked = |_| io::Error::other("the writer has panicked");
        writer.join().map_err(panicked).map_err(JournalError::io("write", &self.dir))?
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // Who wants to know whether it was written has called `close`.
        let _ = self.close();
    }
}

/// An entry on its way: done, with its sequence number, when it is where `durability` wants it.
/// Dropped, the entry is written all the same.
#[derive(Debug)]
#[must_use = "the entry is not written yet"]
pub struct Append {
    queue: Arc<Queue>,
    seq: u64,
    /// Where it waits, while it does.
    lane: Option<u64>,
}

impl Future for Append {
    type Output = Result<u64, AppendError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Self { queue, seq, lane } = &mut *self;
        queue.poll_written(*seq, context.waker(), lane)
    }
}

impl Drop for Append {
    fn drop(&mut self) {
        if let Some(lane) = self.lane {
            self.queue.leave(self.seq, lane);
        }
    }
}

/// Where a journal of `data_dir` is, by the name that the store and statements have for it.
pub fn place(data_dir: &Path, name: &str) -> Option<PathBuf> {
    match name {
        REQUESTS => Some(data_dir.to_owned()),
        CORRECTIONS => Some(data_dir.join(CORRECTIONS)),
        _ => None,
    }
}

/// The entries of the journal in `dir` from `from_seq` on, also while it is written.
#[must_use]
pub fn read(dir: &Path, from_seq: u64) -> Entries {
    Entries::new(Arc::new(Kernel), dir, from_seq)
}
