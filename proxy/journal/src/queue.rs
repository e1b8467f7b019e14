//! The entries on their way to the disk, shared by callers, the writer and the syncer.
//!
//! There is one lock. It is held for a copy at most. An entry gets its place (sequence number and
//! chain) when it enters the queue, so the order of the queue is the order of the file.

mod frames;
mod mark;
mod ring;
mod settling;
mod tell;
mod unsynced;

use std::cell::RefCell;
use std::io;
use std::mem;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};
use std::time::{Duration, Instant};

use taximeter_config::OnUnavailable;
use taximeter_ledger::{Change, Digest, EncodedEntry, Entry, Position, StringsSoFar};
use taximeter_system::clock;

pub(super) use self::frames::{Batch, Frames};
use self::ring::after_turn;
pub(super) use self::unsynced::Doubtful;
use self::unsynced::Unsynced;
use super::disk::OpenFile;
use super::error::AppendError;
use super::options::{Event, Options};

/// Between two attempts to write what could not be written.
const RETRY_PAUSE: Duration = Duration::from_millis(100);

/// What takes the disk longer is told.
const SLOW: Duration = Duration::from_secs(1);

/// From an entry to its sync, with `durability: group`.
const SYNC_DELAY: Duration = Duration::from_millis(10);

/// Threads that have waited.
static LANES: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// Payload of the entry that this thread appends.
    static PAYLOAD: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    /// Tells this thread's waiters from those of others.
    static LANE: u64 = LANES.fetch_add(1, Relaxed);
}

#[derive(Debug)]
pub(super) struct Queue {
    pub(super) options: Options,
    state: Mutex<State>,
    work: Condvar,
    sync_work: Condvar,
    /// The number of the first entry of the segment that is written to.
    open_segment: AtomicU64,
}

#[derive(Debug)]
struct State {
    /// What the writer has not taken.
    frames: Frames,
    /// Bytes queued and being written.
    held_bytes: usize,
    written: u64,
    waiting: Vec<Waiter>,
    /// Their entries are written, and one of the same lane has been woken to wake them.
    ready: Vec<Waiter>,
    bell: Bell,
    stage: Stage,
    /// Writing failed, and has not succeeded since.
    failing: bool,
    /// Entries that nobody waited for and that were not taken.
    lost: u64,
    unsynced: Unsynced,
}

/// Who waits for an entry.
#[derive(Debug)]
struct Waiter {
    seq: u64,
    /// Its thread. To wake a task of another thread is a call to the system, to wake one of the
    /// same is not.
    lane: u64,
    waker: Waker,
}

/// Whether the writer is to take what is queued.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bell {
    Quiet,
    /// Who was told so by `push` will ring.
    Due,
    Rung,
}

/// The way to the end: each stage has all that the ones before it forbid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    Open,
    /// No more entries are taken.
    Closing,
    /// Nothing more is written; the syncer syncs a last time.
    Written,
    /// The writer has left.
    Ended,
}

impl Queue {
    /// A queue that goes on with `frames`.
    pub(super) fn new(options: Options, frames: Frames) -> Self {
        let written = frames.taken().0.seq;
        // A start syncs what it goes on with.
        let synced = if options.is_synced() { written } else { 0 };
        let open_segment = AtomicU64::new(0);
        let state = State {
            written,
            held_bytes: frames.queued_bytes(),
            waiting: Vec::new(),
            ready: Vec::new(),
            bell: if frames.is_empty() { Bell::Quiet } else { Bell::Rung },
            frames,
            stage: Stage::Open,
            failing: false,
            lost: 0,
            unsynced: Unsynced::new(synced),
        };
        let state = Mutex::new(state);
        Self { options, state, work: Condvar::new(), sync_work: Condvar::new(), open_segment }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn tell(&self, event: &Event<'_>) {
        (self.options.tell)(event);
    }

    /// Tells what has taken longer than it should.
    pub(super) fn tell_slow(&self, action: &'static str, begun: Instant) {
        let took = clock::now() - begun;
        if took > SLOW {
            self.tell(&Event::Slow { action, took });
        }
    }

    // For callers.

    /// Gives an entry its place. Half of the room is kept for settling what has been reserved.
    pub(super) fn push(self: &Arc<Self>, entry: &Entry) -> Result<u64, AppendError> {
        PAYLOAD.with_borrow_mut(|payload| {
            let draft = EncodedEntry::new(entry, payload).map_err(|_| AppendError::Invalid)?;
            let mut state = self.lock();
            if state.stage > Stage::Open {
                return Err(AppendError::Closed);
            }
            let room = match entry {
                Entry::Reserve(_) if !self.may_reserve(&state) => {
                    return Err(AppendError::Unavailable);
                }
                Entry::Progress(_) if state.failing => return Err(AppendError::Unavailable),
                Entry::Reserve(_) | Entry::Progress(_) => self.options.queue_bytes_max / 2,
                _ => self.options.queue_bytes_max,
            };
            if state.held_bytes + draft.frame_bytes() > room {
                return Err(AppendError::QueueFull);
            }
            if let Entry::Correction(correction) = entry
                && correction.completion.is_some()
                && !state.frames.pending().contains(correction.corrects)
            {
                return Err(AppendError::NotPending);
            }
            let dropped = state.frames.pending().dropped();
            state.held_bytes += state.frames.push(&draft, &Change::of(entry), self.options.now);
            let dropped = state.frames.pending().dropped() - dropped;
            let seq = state.frames.last().seq;
            let is_first = state.bell == Bell::Quiet;
            if is_first {
                state.bell = Bell::Due;
            }
            drop(state);
            if is_first {
                after_turn(Ring(Arc::clone(self)));
            }
            if dropped > 0 {
                self.tell(&Event::PendingDropped { requests: dropped });
            }
            Ok(seq)
        })
    }

    /// Whether entry `seq` is written; if not, `waker` is woken when it may be. `lane` is where it
    /// waits, once it does.
    pub(super) fn poll_written(
        &self,
        seq: u64,
        waker: &Waker,
        lane: &mut Option<u64>,
    ) -> Poll<Result<u64, AppendError>> {
        let mut state = self.lock();
        if state.written >= seq {
            let others = lane.take().map(|lane| state.take_ready(lane)).unwrap_or_default();
            drop(state);
            others.into_iter().for_each(Waker::wake);
            return Poll::Ready(Ok(seq));
        }
        if state.failing {
            return Poll::Ready(Err(AppendError::Unavailable));
        }
        if state.stage == Stage::Ended {
            return Poll::Ready(Err(AppendError::Closed));
        }
        // A failure that has passed by now may have taken the earlier waker.
        let earlier = state.waiting.iter_mut().find(|waiter| lane.is_some() && waiter.seq == seq);
        match earlier {
            Some(waiter) => waiter.waker.clone_from(waker),
            None => {
                let lane = *lane.get_or_insert_with(|| LANE.with(|lane| *lane));
                state.waiting.push(Waiter { seq, lane, waker: waker.clone() });
            }
        }
        Poll::Pending
    }

    /// Nobody waits for entry `seq` any longer; whom it was to wake are woken now.
    pub(super) fn leave(&self, seq: u64, lane: u64) {
        let mut state = self.lock();
        state.waiting.retain(|waiter| waiter.seq != seq);
        let others = state.take_ready(lane);
        drop(state);
        others.into_iter().for_each(Waker::wake);
    }

    /// Whether a failure to write is a reason to refuse.
    fn may_reserve(&self, state: &State) -> bool {
        !state.failing || self.options.unavailable == OnUnavailable::Serve
    }

    /// Whether reservations are taken.
    pub(super) fn is_open(&self) -> bool {
        let state = self.lock();
        let has_room = state.held_bytes < self.options.queue_bytes_max / 2;
        state.stage == Stage::Open && has_room && self.may_reserve(&state)
    }

    pub(super) fn is_healthy(&self) -> bool {
        let state = self.lock();
        !state.failing && state.stage == Stage::Open
    }

    /// Takes no more entries.
    pub(super) fn close(&self) {
        let mut state = self.lock();
        if state.stage == Stage::Open {
            state.held_bytes += state.frames.check(self.options.now);
            state.stage = Stage::Closing;
        }
        drop(state);
        self.work.notify_one();
    }

    // For the writer.

    /// Waits for entries, for a doubt to be settled or a sync to be told; `None` when closed and all
    /// is taken.
    pub(super) fn take(&self, spare: Vec<u8>) -> Option<Batch> {
        let mut state = self.lock();
        while !state.unsynced.doubtful && !state.unsynced.is_unmarked() && !state.is_due() {
            if state.stage > Stage::Open {
                return None;
            }
            state = self.work.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        let batch = state.frames.take(spare);
        if state.bell == Bell::Rung && state.frames.is_empty() {
            state.bell = Bell::Quiet;
        }
        Some(batch)
    }

    /// The last frame that was taken, and the strings that have numbers there.
    pub(super) fn taken(&self) -> (Position, StringsSoFar) {
        self.lock().frames.taken()
    }

    /// The batch is in the kernel, and on the disk unless `file` names what is to be synced.
    /// Returns room for another batch.
    pub(super) fn complete(&self, batch: Batch, file: Option<&Arc<dyn OpenFile>>) -> Vec<u8> {
        let mut state = self.lock();
        let written = batch.last.seq;
        state.written = written;
        let recovered = mem::take(&mut state.failing);
        let first = state.call(written);
        state.held_bytes -= batch.held_bytes();
        let mut wake_syncer = false;
        if let Some(file) = file.filter(|_| !batch.bytes.is_empty()) {
            state.unsynced.push(batch, file);
            wake_syncer = mem::take(&mut state.unsynced.syncer_sleeps);
        } else {
            state.unsynced.put_spare(batch.bytes);
        }
        let spare = state.unsynced.take_spare();
        drop(state);
        if wake_syncer {
            self.sync_work.notify_one();
        }
        first.into_iter().for_each(Waker::wake);
        if recovered {
            self.tell(&Event::Recovered);
        }
        spare
    }

    /// A write failed: nobody waits any longer, nothing more is reserved.
    pub(super) fn fail(&self, path: &Path, error: &io::Error) {
        let mut state = self.lock();
        let first = !mem::replace(&mut state.failing, true);
        let waiting = mem::take(&mut state.waiting);
        drop(state);
        for waiter in waiting {
            waiter.waker.wake();
        }
        if first {
            self.tell(&Event::WriteFailed { path, error });
        }
    }

    /// Waits before the next attempt; whether there is to be one.
    pub(super) fn pause(&self) -> bool {
        let state = self.lock();
        let (state, _) = self
            .work
            .wait_timeout_while(state, RETRY_PAUSE, |state| state.stage == Stage::Open)
            .unwrap_or_else(PoisonError::into_inner);
        state.stage == Stage::Open
    }

    /// What is written and not synced is to be written anew. Whether that is news.
    pub(super) fn doubt(&self) -> bool {
        let known = mem::replace(&mut self.lock().unsynced.doubtful, true);
        self.work.notify_one();
        !known
    }

    /// What is to be written anew, if there is a doubt. `last` is the last frame that was written,
    /// in a segment with this digest and with these strings.
    pub(super) fn doubtful(
        &self,
        last: Position,
        digest: Option<Digest>,
        strings: &StringsSoFar,
    ) -> Option<Doubtful> {
        self.lock().unsynced.doubtful(last, digest, strings)
    }

    /// They are written anew up to `last`, and synced if anything is.
    pub(super) fn renewed(&self, last: Position) {
        let mut state = self.lock();
        let synced = self.options.is_synced().then(|| (last.seq, (self.options.now)()));
        state.unsynced.renew(synced);
    }

    /// The last entry that is synced, where no mark says so yet.
    pub(super) fn take_unmarked(&self) -> Option<u64> {
        self.lock().unsynced.take_unmarked()
    }

    /// Waits until the syncer has synced all that is written, or has failed.
    pub(super) fn wait_for_sync(&self) {
        let mut state = self.lock();
        state.unsynced.hurried = true;
        self.sync_work.notify_one();
        let is_pending = |state: &mut State| {
            let Unsynced { files, syncing, doubtful, .. } = &state.unsynced;
            (*syncing || !files.is_empty()) && !doubtful
        };
        state = self.work.wait_while(state, is_pending).unwrap_or_else(PoisonError::into_inner);
        state.unsynced.hurried = false;
    }

    /// Nothing more will be written: the syncer is to sync a last time.
    pub(super) fn all_written(&self) {
        self.lock().stage = Stage::Written;
        self.sync_work.notify_one();
    }

    /// The writer leaves; what is not written now never will be.
    pub(super) fn end(&self) {
        let mut state = self.lock();
        state.stage = Stage::Ended;
        let waiting = mem::take(&mut state.waiting);
        drop(state);
        self.sync_work.notify_one();
        for waiter in waiting {
            waiter.waker.wake();
        }
    }

    // For the syncer.

    /// Waits for files to sync, and a little for company; `None` when there will be no more. In
    /// doubt there is nothing to sync: after a failure the kernel says that all is well.
    pub(super) fn take_unsynced(&self) -> Option<(Vec<Arc<dyn OpenFile>>, u64)> {
        let mut state = self.lock();
        while state.unsynced.files.is_empty() || state.unsynced.doubtful {
            if state.stage >= Stage::Written {
                return None;
            }
            state.unsynced.syncer_sleeps = true;
            state = self.sync_work.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        let (mut state, _) = self
            .sync_work
            .wait_timeout_while(state, SYNC_DELAY, |state| {
                state.stage < Stage::Written && !state.unsynced.hurried
            })
            .unwrap_or_else(PoisonError::into_inner);
        let files = mem::take(&mut state.unsynced.files);
        state.unsynced.syncing = true;
        Some((files, state.written))
    }

    /// All entries up to `seq` are on the disk, or it is in doubt which are.
    pub(super) fn synced(&self, seq: u64, result: &io::Result<()>) {
        let mut state = self.lock();
        state.unsynced.syncing = false;
        // What a file that was taken from us has does not count.
        if result.is_ok() && !state.unsynced.doubtful {
            state.unsynced.forget(|batch| batch.last.seq <= seq);
            state.unsynced.synced = seq;
            state.unsynced.synced_at = Some((self.options.now)());
        }
        drop(state);
        match result {
            Ok(()) => self.work.notify_one(),
            Err(error) => {
                self.tell(&Event::SyncFailed { error });
                self.doubt();
            }
        }
    }
}

impl State {
    /// Whether what is queued is to be written now.
    fn is_due(&self) -> bool {
        !self.frames.is_empty() && (self.bell == Bell::Rung || self.stage > Stage::Open)
    }
}

/// Rings for the writer when dropped.
struct Ring(Arc<Queue>);

impl Drop for Ring {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        // The writer may have been there already, to settle a doubt.
        state.bell = if state.frames.is_empty() { Bell::Quiet } else { Bell::Rung };
        drop(state);
        self.0.work.notify_one();
    }
}

impl State {
    /// Those whose entries are written: of each lane the first is to be woken, and wakes the
    /// others.
    fn call(&mut self, written: u64) -> Vec<Waker> {
        let mut first: Vec<Waiter> = Vec::new();
        for waiter in self.waiting.extract_if(.., |waiter| waiter.seq <= written) {
            if first.iter().any(|other| other.lane == waiter.lane) {
                self.ready.push(waiter);
            } else {
                first.push(waiter);
            }
        }
        first.into_iter().map(|waiter| waiter.waker).collect()
    }

    fn take_ready(&mut self, lane: u64) -> Vec<Waker> {
        if self.ready.is_empty() {
            return Vec::new();
        }
        let mine = self.ready.extract_if(.., |waiter| waiter.lane == lane);
        mine.map(|waiter| waiter.waker).collect()
    }
}
