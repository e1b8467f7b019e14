//! The ledger on disk: this crate writes entries to files in order, recovers them after a crash,
//! and removes old files.
//!
//! Begin with `queue.rs` (what callers, writer and syncer share), then `recover.rs` (a start).
//!
//! # Invariants
//!
//! - A confirmed entry survives the death of the process, and is in the journal once. What survives
//!   a power cut depends on `ledger.durability`.
//! - One queue, one writer thread, one write per batch. An entry gets its sequence number and its
//!   place in the CRC chain when it enters the queue. So the order of the queue is the order of the
//!   file.
//! - What cannot be written stays in the queue, and the writer tries again at the same place.
//! - Nothing is ever written over. A segment is a file, and it ends where the next one begins. If
//!   something must be said anew (a sync that failed, a file that somebody removed, a damaged
//!   entry), the journal says it in a further file.
//!
//! This crate knows no databases and no HTTP. What an entry is, how it is framed and
//! what entries add up to is in `ledger`.
//!
//! # Writing
//!
//! The sums are kept where entries enter the queue (`RunningTotals` in `ledger`). A segment ends
//! there too: the next one begins with a checkpoint of the sums.
//!
//! `ledger.durability` says when the journal confirms an entry. `os` and `group` confirm it when
//! the kernel has it; with `group` a thread syncs what was written at most 10 ms later. `sync`
//! confirms it when it is synced. A file whose sync failed gets no further write.
//!
//! # Start
//!
//! A segment begins with the entries of all requests that are open there (`carried` in `ledger`),
//! so a start reads from the checkpoint behind them up to the end. Where they are missing or
//! damaged, it reads from the oldest reservation that was open at the last checkpoint. Of each
//! entry it reads only what changes a sum. It cuts off a torn tail. It posts the requests that were
//! open as `gateway_died`, at the price of their admission: with their last progress, or, if they
//! had reported none, with a prompt that is estimated from the length of the body. Then it writes a
//! checkpoint. If the volume has no room for these, they are the first entries of the queue, and
//! the writer tries until there is room. What a start writes in place of damage is held in memory
//! until then (`held.rs`). `taximeter verify` reads everything (`examine.rs`).
//!
//! # Pending requests
//!
//! A request whose answer goes on in the background is posted before its usage is known. The sums
//! keep what is needed to complete it (`PendingRequests` in `ledger`), and so does each checkpoint.
//! The correction that completes it is in this journal. It enters the queue under the lock that the
//! sums are kept under, and only while the request is pending. So a request is completed once,
//! however many answers show its usage at the same time. Requests that are too old are given up when a
//! segment begins, unless the wall clock is ahead (`clock_trust.rs`).
//!
//! # Marks
//!
//! After each sync the file gets a mark: it says up to which entry everything is on disk
//! (`SyncMark` in `ledger`). Damage after the last mark is a torn end, because a power cut may
//! leave any blocks of what was not synced (`promise.rs`). The start leaves the damage out and
//! keeps the whole entries after it. With `durability: os` nothing is synced, so the damage may as
//! well be rot. It stops the start.
//!
//! # Digests
//!
//! A CRC shows accidents, not forgery. So the header of a segment contains the SHA-256 of the
//! segment before it, up to where that one ends. The writer computes it while it writes, and a
//! start computes it from the file. It is in the header and not in the checkpoint after it, because
//! the checkpoint gets its place in the chain before the writer has come that far. `verify`
//! compares each segment with the next one. A signed statement contains the digest of the journal
//! that it was made from. Whoever keeps a statement can check the journal against it.
//!
//! # Damage
//!
//! Damage before the end stops the start. With `recovery: salvage` the start leaves the damage out
//! (`salvage.rs`): it accepts an entry after the damage again once the entry's payload passes its
//! check and its head follows from the chain of the entry before it (`find_resume_point` in
//! `ledger`). A segment that is only a header says how many entries it replaces. Their numbers are
//! not given again.
//!
//! # Compression
//!
//! A thread compresses closed segments, one at a time and at the lowest priority (`compress.rs`).
//! Nobody waits for it. A compressed segment is read through `SegmentFile` (`files.rs`), which gives
//! the bytes of the plain one. So digests, offsets and the search behind damage are the same.
//! Damage costs the entries of a piece of 32 KiB (`compressed.rs`).
//!
//! # Rejected entries
//!
//! An entry that is intact but that this version cannot understand is not damage. A start continues
//! as if it were not there: what it reserved, reported or settled is not known. The start sets it
//! aside in the folder `rejected` with the reason. The store and a push do the same. `verify` names
//! it each time.
//!
//! # Retention
//!
//! After the store was fed, the journal removes segments (`retain.rs`). A segment goes if the requests
//! up to its last entry are in files of days, and if no start needs it. A receiver of `export.push` that
//! lacks them gets them from the store. Segments of corrections stay. Where a database elsewhere has all
//! of it, segments of both go when they are older than `records_keep_days`. If the wall clock is more
//! than a day ahead of the newest entry, nothing goes by age until it was steady for a day
//! (`clock_trust.rs`).
//!
//! # Room
//!
//! `disk_budget.rs` measures the data directory and its volume each second. `room.rs` decides: with
//! less than a fifth of the room left, the oldest segments that may go do so before their time, as
//! many as are needed. Where other files fill the volume, that is a tenth of them a day. With less
//! than a twentieth left the gateway refuses new requests, unless it is to serve on. Room is made after
//! each feeding, while the store cannot be fed, and before a start writes anything
//! (`make_room`). Nothing is ever removed from the store, because bills and repricing read it.
//!
//! # Time
//!
//! A checkpoint says up to when everything is settled (`queue/settling.rs`), so that others know when
//! a day is closed. While a gateway is open it writes one about once an hour, also if it is idle.
//!
//! # Faults in tests
//!
//! All code asks `disk.rs` for file operations. In tests that is a disk in memory that fails, dies
//! or loses its power at any operation. A power cut with `os` may take what the kernel has not
//! written, also from the middle.

mod clock_trust;
mod compress;
mod compressed;
pub mod convert;
mod disk;
pub mod disk_budget;
mod error;
mod examine;
mod files;
mod foresight;
mod held;
mod identity;
mod lock;
mod options;
mod pace;
mod promise;
mod push_cursor;
mod pushed;
mod queue;
mod read;
mod recover;
mod retain;
pub mod room;
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
use std::time::{Duration, Instant};

use jiff::Timestamp;
use taximeter_ledger::{Charge, Entry, PendingRequest, Record, TenantId};

pub use self::clock_trust::ClockAhead;
pub use self::compress::compress;
pub use self::error::{AppendError, JournalError, Loss, remedy};
pub use self::examine::{Examination, Seen, examine};
pub use self::identity::{Identity, LEDGER, identity, in_copy};
pub use self::lock::LOCK;
pub use self::options::{Event, Options};
pub use self::push_cursor::{Found, PUSHED, PUSHED_CORRECTIONS, PushCursor, follow_push, pushed};
pub use self::pushed::{PushBacklog, PushOutcome};
pub use self::read::{Altered, Entries, Extent, extent};
pub use self::recover::Recovery;
pub use self::retain::{AgeWait, InStore, MadeRoom, Removed, Retention, WaitTurn, make_room};
pub use self::state::{JournalState, Segments};

use self::compress::Background;
use self::disk::{Disk, Kernel};
use self::queue::Queue;

/// The name of the journal of requests in the store and in statements.
pub const REQUESTS: &str = "journal";
/// The directory inside the data directory of the journal that corrections are written to, also
/// while the gateway writes its own.
pub const CORRECTIONS: &str = "corrections";

/// Prices a request whose record is made at a start.
pub type Price<'a> = dyn Fn(&Record) -> Charge + 'a;

/// The journal of this gateway, open for writing. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Journal(Arc<Handle>);

#[derive(Debug)]
struct Handle {
    queue: Arc<Queue>,
    writer: Mutex<Option<JoinHandle<Result<(), JournalError>>>>,
    compressor: Mutex<Option<Background>>,
    dir: PathBuf,
    identity: Identity,
    newest_before: Option<Timestamp>,
    age_wait: Arc<AgeWait>,
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
        let (journal, recovery) = Self::open_on(dir, options, price, Arc::new(Kernel))?;
        let compressor = Background::start(dir, &journal.0.queue)
            .map_err(JournalError::io("start to compress the segments of", dir))?;
        *journal.0.compressor.lock().unwrap_or_else(PoisonError::into_inner) = Some(compressor);
        Ok((journal, recovery))
    }

    /// Opens it without the thread that compresses closed segments.
    fn open_on(
        dir: &Path,
        options: Options,
        price: &Price<'_>,
        disk: Arc<dyn Disk>,
    ) -> Result<(Self, Recovery), JournalError> {
        let (queue, writer, recovery) = recover::open(dir, options, price, disk)?;
        let writer = writer.start().map_err(JournalError::io("start the writer of", dir))?;
        let (writer, compressor) = (Mutex::new(Some(writer)), Mutex::new(None));
        let (identity, newest_before) = (recovery.identity.clone(), recovery.newest);
        let (dir, age_wait) = (dir.to_owned(), Arc::clone(&recovery.ages));
        let handle = Handle { queue, writer, compressor, dir, identity, newest_before, age_wait };
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

    /// Queues an entry for which nobody can wait. An entry that the queue refuses is counted and
    /// reported.
    pub fn append_detached(&self, entry: &Entry) {
        if let Err(error) = self.0.queue.push(entry) {
            self.0.queue.lose(error);
        }
    }

    /// Queues an entry that later entries replace. It is left out if the queue is full.
    pub fn append_if_room(&self, entry: &Entry) {
        let _ = self.0.queue.push(entry);
    }

    /// Entries lost by `append_detached`.
    #[cfg(test)]
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.0.queue.lost()
    }

    /// Which ledger it is.
    #[must_use]
    pub fn identity(&self) -> &Identity {
        &self.0.identity
    }

    /// The time of the newest entry before this start. `None` if there was none.
    #[must_use]
    pub fn newest_before(&self) -> Option<Timestamp> {
        self.0.newest_before
    }

    /// Says in the journal that time has passed, about once an hour and also while nothing else is
    /// written. To be called often, after a look at the clock ([`Retention::look`]): while the wall
    /// clock is in doubt, the time is said that is known without it. `request_max` is the longest time that a request may take.
    pub fn mark(&self, now: Instant, request_max: Duration) {
        self.0.queue.mark(now, request_max);
    }

    /// Whether removal by age waits for the wall clock.
    #[must_use]
    pub fn age_wait(&self) -> &Arc<AgeWait> {
        &self.0.age_wait
    }

    /// Whether the journal accepts reservations.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.0.queue.is_open()
    }

    /// Whether writing succeeds.
    #[must_use]
    pub fn is_healthy(&self) -> bool {
        self.0.queue.is_healthy()
    }

    /// Sequence number of the last entry that is written.
    #[must_use]
    pub fn sequence(&self) -> u64 {
        self.0.queue.sequence()
    }

    /// The state of the journal.
    #[must_use]
    pub fn state(&self) -> JournalState {
        self.0.queue.tell_state()
    }

    /// The request of this tenant whose answer by this upstream has this `id`, while its usage is
    /// pending. The correction that completes it is appended at most once.
    #[must_use]
    pub fn pending(
        &self,
        tenant: &TenantId,
        upstream: &str,
        response_id: &str,
    ) -> Option<PendingRequest> {
        self.0.queue.pending(tenant, upstream, response_id)
    }

    /// The number and size of its files. Reads the directory.
    ///
    /// # Errors
    /// The directory cannot be read.
    pub fn segments(&self) -> io::Result<Segments> {
        state::segments(&self.0.dir, &Kernel)
    }

    /// Accepts no more entries, and writes and syncs what is queued. Blocks.
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
        // Another process may open the journal as soon as the writer has left.
        if let Some(compressor) =
            self.compressor.lock().unwrap_or_else(PoisonError::into_inner).take()
        {
            compressor.stop();
        }
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

/// An entry that is being written. The future is ready, with the sequence number, when the entry is
/// as durable as `durability` says. The entry is written even if this is dropped.
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

/// The directory of a journal in `data_dir`, by its name in the store and in statements.
pub fn journal_dir(data_dir: &Path, name: &str) -> Option<PathBuf> {
    match name {
        REQUESTS => Some(data_dir.to_owned()),
        CORRECTIONS => Some(data_dir.join(CORRECTIONS)),
        _ => None,
    }
}

/// Whether a process has the journal in `dir` open for writing. Makes no file.
#[must_use]
pub fn is_written(dir: &Path) -> bool {
    lock::is_locked(dir)
}

/// The gateway that wrote the last segment of the journal in `dir`. `None` if there is no segment.
///
/// # Errors
/// The directory or the segment cannot be read.
pub fn gateway(dir: &Path) -> io::Result<Option<String>> {
    let segments = files::list(dir, &Kernel)?;
    for (_, path) in segments.iter().rev() {
        if let Some(header) = files::header(path, &Kernel)? {
            return Ok(Some(header.gateway));
        }
    }
    Ok(None)
}

/// The entries of the journal in `dir` from `from_seq` on, also while it is written.
#[must_use]
pub fn read(dir: &Path, from_seq: u64) -> Entries {
    Entries::new(Arc::new(Kernel), dir, from_seq)
}
