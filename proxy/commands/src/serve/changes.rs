//! Tells what changes of engines, GPUs and hosts, and of what the gateway itself rests on.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use taximeter_fleet::{EVENTS_MAX, Event, EventKind, Fact, Grid, Known, Own, Target, Watcher};
use taximeter_gateway::gateway::Gateway;
use taximeter_store::memory::{Keep, Memory, MemoryError};
use taximeter_system::clock;

/// Most events that wait to be written.
const WAITING_MAX: usize = 4 * EVENTS_MAX;
/// Time between two times that what is known is kept. Counts of engines are kept each minute.
const KEEP_PERIOD: Duration = Duration::from_secs(2);
/// The book of prices that comes with the program.
const BUILT_IN: &str = "builtin";

/// Compares what is so with what was last known.
#[derive(Debug, Default)]
pub(super) struct Changes {
    /// Nothing before what was last known has been read.
    watcher: Option<Watcher>,
    /// Which upstreams claim which GPUs, by which configuration, and in which minute that was looked at.
    claims: Vec<Fact>,
    claimed_by: Weak<Gateway>,
    claimed: i64,
    /// When what is known was last kept, and in which minute.
    kept: Option<(Instant, i64)>,
    waiting: Vec<Event>,
}

impl Changes {
    /// Finds what has changed, and writes it.
    ///
    /// Errors: something cannot be read or written. What cannot be written waits.
    pub(super) fn look(
        &mut self,
        gateway: &Arc<Gateway>,
        memory: &Memory,
        targets: &[Arc<Target>],
        (keep, is_last): (&Keep, bool),
    ) -> Result<(), MemoryError> {
        if gateway.config.fleet.is_none() {
            return Ok(());
        }
        let (now, at) = (clock::now(), clock::wall());
        let Some(watcher) = &mut self.watcher else {
            let (known, damaged) = memory.recall().unwrap_or_else(|fault| {
                // What cannot be read is as if it had never been known.
                (Known::default(), Some(fault))
            });
            self.watcher = Some(Watcher::new(known));
            return damaged.map_or(Ok(()), Err);
        };
        let minute = Grid::Minute.floor(at.as_second());
        if self.claimed != minute || Weak::as_ptr(&self.claimed_by) != Arc::as_ptr(gateway) {
            (self.claimed, self.claimed_by) = (minute, Arc::downgrade(gateway));
            self.claims = taximeter_admin::claims(gateway);
        }
        let mut own = gateway.in_force().facts.clone();
        own.extend(built_in(gateway));
        own.extend(self.claims.iter().cloned());
        let own = Own { facts: &own, host: taximeter_admin::whereabouts(gateway).host };
        let events = watcher.note(targets, own, now, at);
        // A GPU that comes or moves may be claimed by others.
        self.claimed = if watcher.has_changed() { i64::MIN } else { self.claimed };
        let room = WAITING_MAX.saturating_sub(self.waiting.len());
        self.waiting.extend(events.into_iter().take(room));
        if gateway.disk_budget.is_full() {
            return Ok(());
        }
        if !self.waiting.is_empty() {
            memory.tell(&self.waiting)?;
            self.waiting.clear();
        }
        let is_soon = self.kept.is_some_and(|(kept, _)| now < kept + KEEP_PERIOD) && !is_last;
        let is_other_minute = is_last || self.kept.is_none_or(|(_, kept)| kept != minute);
        if !is_soon && let Some(known) = watcher.known(at, is_other_minute) {
            self.kept = Some((now, minute));
            memory.keep_known(&known, keep)?;
        }
        Ok(())
    }
}

/// The date of the built-in prices.
fn built_in(gateway: &Gateway) -> Option<Fact> {
    let mut dates = gateway.tariffs.book.dates();
    let (name, date) = dates.find(|(name, _)| *name == BUILT_IN)?;
    Some(Fact::new(EventKind::Prices, name, &date.to_string(), Vec::new()))
}
