//! Keeps samples of what engines, GPUs and hosts tell, on a thread of its own.

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use taximeter_fleet::{Grid, Recorder};
use taximeter_gateway::gateway::{Current, Gateway};
use taximeter_store::memory::{Keep, Memory, MemoryError, SAMPLES};
use taximeter_system::clock;
use taximeter_system::thread::{Share, Started, yield_to_others};
use taximeter_telemetry::events::SamplesNotKept;

use super::changes::Changes;

/// Time between two looks at what sources tell.
const LOOK_PERIOD: Duration = Duration::from_millis(500);
/// So many seconds after a minute its last samples are there.
const LATE_SECONDS: i64 = 2;
/// Of so many parts of the room, samples may take one where the configuration does not say more.
const ROOM_OF: u64 = 20;
/// What they may take where nothing limits the room.
const BYTES_MAX: u64 = 1 << 30;

/// The thread, once there is anything to keep.
#[derive(Debug, Clone)]
pub(super) struct Remembering(Arc<State>);

#[derive(Debug, Default)]
struct State {
    stop: AtomicBool,
    thread: Mutex<Option<Started>>,
    /// The fault of the start, which is told.
    told: Option<String>,
}

fn open(gateway: &Gateway) -> Result<(), MemoryError> {
    let memory = Memory::open(&gateway.config.data_dir)?;
    // Whoever was first has opened the same.
    let _ = gateway.samples.set(Arc::new(memory));
    Ok(())
}

impl Remembering {
    /// Opens the samples of a start, also where nothing more is read: they may be asked for, or have to go.
    /// What cannot be opened is told, and tried again by the thread.
    pub(super) fn of(gateway: &Gateway) -> Self {
        let is_kept = gateway.config.fleet.is_some();
        let are_wanted = is_kept || gateway.config.data_dir.join(SAMPLES).is_dir();
        let opened = if are_wanted { open(gateway) } else { Ok(()) };
        let told = opened.err().map(|fault| fault.to_string());
        if let Some(reason) = &told {
            gateway.telemetry.emit(&SamplesNotKept { reason });
        }
        Self(Arc::new(State { told, ..State::default() }))
    }

    /// Starts the thread. Whether there is one.
    pub(super) fn start(&self, current: Current) -> bool {
        let mut thread = self.0.thread.lock().unwrap_or_else(PoisonError::into_inner);
        if thread.is_none() && !self.0.stop.load(Ordering::Acquire) {
            let state = self.0.clone();
            let keeper = Keeper { told: state.told.clone(), ..Keeper::of(current) };
            *thread = Started::new("samples", move || keeper.run(&state.stop)).ok();
        }
        thread.is_some()
    }

    /// Asks it to write what it has, and to end.
    pub(super) fn stop(&self) {
        self.0.stop.store(true, Ordering::Release);
        let thread = self.0.thread.lock().unwrap_or_else(PoisonError::into_inner);
        thread.iter().for_each(|started| started.thread.unpark());
    }

    /// Waits until it has.
    pub(super) async fn ended(self) {
        let thread = self.0.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            thread.ended().await;
        }
    }
}

struct Keeper {
    current: Current,
    /// Borrowed for a look only. While files are merged, which may take long, somebody looks now and then.
    taken: RefCell<Taken>,
    /// The last fault, which is told once.
    told: Option<String>,
}

/// What waits to be written.
struct Taken {
    recorder: Recorder,
    changes: Changes,
    looked: Instant,
    /// The minute that was last written.
    written: i64,
}

impl Keeper {
    fn of(current: Current) -> Self {
        let (recorder, changes) = (Recorder::default(), Changes::default());
        let taken = Taken { recorder, changes, looked: clock::now(), written: i64::MIN };
        Self { current, taken: RefCell::new(taken), told: None }
    }

    fn run(mut self, stop: &AtomicBool) {
        yield_to_others(Share::Least);
        loop {
            let is_last = stop.load(Ordering::Acquire);
            let gateway = self.current.get();
            let looked = AssertUnwindSafe(|| self.look(&gateway, is_last, stop));
            match catch_unwind(looked) {
                Ok(Ok(false)) => {}
                Ok(Ok(true)) => self.told = None,
                Ok(Err(fault)) => self.tell(&gateway, &fault),
                // Who watches panics tells of it. What waits may be what cannot be written.
                Err(_) => self = Self { told: self.told, ..Self::of(self.current) },
            }
            if is_last {
                return;
            }
            drop(gateway);
            thread::park_timeout(LOOK_PERIOD);
        }
    }

    /// Whether a minute was written, and what was due was done.
    fn look(
        &self,
        gateway: &Arc<Gateway>,
        is_last: bool,
        stop: &AtomicBool,
    ) -> Result<bool, MemoryError> {
        let Some(memory) = gateway.samples.get() else { return open(gateway).map(|()| false) };
        let is_written = self.taken.borrow_mut().look(gateway, memory, is_last)?;
        if is_written && !is_last {
            let fault = Cell::new(None);
            let go_on = || {
                if let Ok(mut taken) = self.taken.try_borrow_mut()
                    && clock::now() - taken.looked >= LOOK_PERIOD
                    && let Err(error) = taken.look(gateway, memory, false)
                {
                    fault.set(Some(error));
                }
                !stop.load(Ordering::Acquire)
            };
            while go_on() && memory.merge_next(clock::wall(), &go_on)? {}
            memory.bound(gateway.journal.age_wait().time(), &keep(gateway))?;
            return fault.take().map_or(Ok(true), Err);
        }
        Ok(is_written)
    }

    /// Tells a fault, once in a row.
    fn tell(&mut self, gateway: &Gateway, fault: &MemoryError) {
        let reason = fault.to_string();
        if self.told.as_ref() != Some(&reason) {
            gateway.telemetry.emit(&SamplesNotKept { reason: &reason });
        }
        self.told = Some(reason);
    }
}

impl Taken {
    /// Takes what is new, and writes the minutes that are over. Whether one was.
    fn look(
        &mut self,
        gateway: &Arc<Gateway>,
        memory: &Memory,
        is_last: bool,
    ) -> Result<bool, MemoryError> {
        let now = clock::wall();
        self.looked = clock::now();
        let targets = gateway.fleet.targets();
        self.recorder.note(&targets);
        let changed = self.changes.look(gateway, memory, &targets, (&keep(gateway), is_last));
        let until = match is_last {
            true => now.as_second() + Grid::Minute.seconds(),
            false => now.as_second() - LATE_SECONDS,
        };
        let minute = Grid::Minute.floor(until);
        // The clock may have been set back.
        if minute == self.written || gateway.disk_budget.is_full() {
            return changed.map(|()| false);
        }
        self.written = minute;
        let until = Timestamp::from_second(until).unwrap_or(now);
        let written = memory.write(&mut self.recorder, until);
        memory.note(self.recorder.series(), self.recorder.left_out());
        written.and(changed).map(|()| true)
    }
}

/// How long samples are kept, and how much they may take.
fn keep(gateway: &Gateway) -> Keep {
    let asked = gateway.config.fleet.as_ref().map(|fleet| fleet.memory.clone());
    let asked = asked.unwrap_or_default();
    let room = gateway.disk_budget.room().and_then(|room| room.bytes_max);
    let of_room = room.map_or(BYTES_MAX, |bytes| bytes / ROOM_OF);
    Keep { times: asked.keep, bytes_max: asked.bytes_max.unwrap_or(of_room) }
}
