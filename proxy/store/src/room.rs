//! Removes what may go of the data directory: after each feeding of the store, while the store cannot
//! be fed, and before a start writes anything.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

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

use super::Location;
use super::feed::Fed;
use super::journals::feeds;
use super::sqlite::Sqlite;

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

    /// Makes room before a start writes anything. Returns what was removed, and the bytes of free pages
    /// of the store as far as they were looked for.
    ///
    /// Changes nothing where another process writes the directory, and where the store is a database
    /// elsewhere: what that has is known once it is connected.
    ///
    /// # Errors
    /// As [`make_room`]. A start tells more of what it cannot read.
    pub fn at_start(config: &Config, location: &Location) -> Result<(Removed, u64), JournalError> {
        let (dir, budget) = (&config.data_dir, DiskBudget::default());
        let looked = !is_written(dir) && budget.look(dir, &RoomLimits::of(config)).is_ok();
        if !looked || !budget.is_short() {
            return Ok((Removed::default(), 0));
        }
        let Some(AtRest { cursors, free_bytes }) = location.look() else {
            return Ok((Removed::default(), 0));
        };
        budget.reusable(free_bytes);
        if !budget.is_short() {
            return Ok((Removed::default(), free_bytes));
        }
        let for_room = make_room(dir, stored(dir, cursors), &budget)?;
        Ok((Removed { for_room, ..Removed::default() }, free_bytes))
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
