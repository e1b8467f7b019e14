//! Removes what may go of the data directory: after each feeding of the store, while the store cannot
//! be fed, and before a start writes anything.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use taximeter_config::Config;
use taximeter_database::database::AtRest;
use taximeter_database::error::StoreError;
use taximeter_journal::disk_budget::DiskBudget;
use taximeter_journal::room::RoomLimits;
use taximeter_journal::{
    InStore, JournalError, Removed, Retention, WaitTurn, is_written, make_room,
};
use taximeter_ledger::Position;
use taximeter_sqlite::{DaysForRoom, Sealer, Sqlite};
use taximeter_system::clock;

use super::Location;
use super::feed::Fed;
use super::journals::feeds;
use super::memory::{Memory, SAMPLES};

/// A start removes days for so long. The thread that seals removes others.
const DAYS_TIME_MAX: Duration = Duration::from_secs(2);

/// Removes what may go of the data directory of a gateway.
#[derive(Debug)]
pub struct Cleaner {
    dir: PathBuf,
    location: Location,
    budget: Arc<DiskBudget>,
    retention: Retention,
}

impl Cleaner {
    /// For the gateway with this configuration, whose store is at `location`.
    pub fn new(
        config: &Config,
        location: Location,
        budget: Arc<DiskBudget>,
        retention: Retention,
    ) -> Self {
        Self { dir: config.data_dir.clone(), location, budget, retention }
    }

    /// Makes room before a start of `gateway` writes to its journal. `now` is noted.
    ///
    /// Segments go first, because that needs no room, and samples before days. A day goes when its hours are in a file and the
    /// store knows of it: what these need may have come with the segments. Where it has not, the thread
    /// that seals goes on.
    ///
    /// Changes nothing where another process writes the directory, and where the store is a database
    /// elsewhere: what that has is known once it is connected.
    ///
    /// # Errors
    /// As [`make_room`]. A start tells more of what it cannot read.
    pub fn at_start(
        config: &Config,
        location: &Location,
        (gateway, now): (&str, Timestamp),
    ) -> Result<AtStart, JournalError> {
        let (dir, budget) = (&config.data_dir, DiskBudget::default());
        let mut made = AtStart::default();
        let looked = !is_written(dir) && budget.look(dir, &RoomLimits::of(config)).is_ok();
        if !looked || !budget.is_short() {
            return Ok(made);
        }
        let Some(AtRest { cursors, free_bytes }) = location.look() else { return Ok(made) };
        made.free_bytes = free_bytes;
        budget.reusable(free_bytes);
        if budget.is_short() {
            made.segments.for_room = make_room(dir, stored(dir, cursors), &budget)?;
        }
        if budget.needs_days() && dir.join(SAMPLES).is_dir() {
            // What they cannot give is looked for in the days.
            let _ = Memory::open(dir).and_then(|samples| samples.make_room(&budget));
        }
        if budget.needs_days() {
            made.days = days_for_room(dir, gateway, &budget, now);
        }
        Ok(made)
    }

    /// Looks at the clocks: see [`Retention::look`].
    pub fn look(&mut self, at: (Instant, Timestamp)) -> Option<WaitTurn> {
        self.retention.look(at)
    }

    /// Removes what may go after a feeding, and makes room where it has failed. `written` is the last
    /// entry of the journal now.
    ///
    /// # Errors
    /// As [`Retention::fed`].
    pub fn fed(
        &mut self,
        fed: &Result<Fed, StoreError>,
        written: u64,
        at: (Instant, Timestamp),
    ) -> Result<Removed, JournalError> {
        let Self { dir, location, budget, retention } = self;
        if let Ok(Fed { sealed, stored_corrections, free_bytes, .. }) = *fed {
            budget.reusable(free_bytes);
            let in_store = InStore { sealed, corrections: stored_corrections };
            return retention.fed(written, in_store, budget, at);
        }
        // What the store has may have been moved away, so it is asked itself.
        let now = || location.look().map(|store| stored(dir, store.cursors));
        let for_room = retention.make_room(now, budget, at.0)?;
        Ok(Removed { for_room, ..Removed::default() })
    }
}

/// What a start removed to make room.
#[derive(Debug, Default)]
pub struct AtStart {
    /// Of the journals.
    pub segments: Removed,
    /// Details of the oldest days.
    pub days: Option<DaysForRoom>,
    /// The bytes of free pages of the store, as far as they were looked for.
    pub free_bytes: u64,
}

/// Removes the oldest days for some time. What fails is told by the thread that seals.
fn days_for_room(
    dir: &Path,
    gateway: &str,
    budget: &DiskBudget,
    now: Timestamp,
) -> Option<DaysForRoom> {
    let until = clock::now() + DAYS_TIME_MAX;
    let mut sealer = Sealer::open(dir, gateway).ok()??;
    sealer.make_room(budget, now, &|| clock::now() < until).ok()?
}

impl Location {
    /// What the store has, where that can be told without a change, a copy or a network.
    fn look(&self) -> Option<AtRest> {
        match self {
            Self::DataDir(dir) => Sqlite::look(dir),
            Self::Postgres { .. } => None,
        }
    }
}

/// The last request and the last correction of the journals in `dir` that a store with these cursors
/// has. It may be the store of other journals.
fn stored(dir: &Path, cursors: [Option<Position>; 2]) -> (u64, u64) {
    let [requests, corrections] = &mut feeds(dir);
    let [at_requests, at_corrections] = cursors;
    (requests.stored_at(at_requests), corrections.stored_at(at_corrections))
}
