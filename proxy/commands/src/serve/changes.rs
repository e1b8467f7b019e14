//! Tells what changes of engines, GPUs and hosts, and of what the gateway itself rests on.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use taximeter_collections::Gather as _;
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
#[derive(Default)]
pub(super) struct Changes {
    /// Nothing before what was last known has been read.
    watcher: Option<Watcher>,
    claims: Claims<Gateway>,
    kept: Kept,
}

/// Which upstreams claim which GPUs.
struct Claims<G> {
    facts: Vec<Fact>,
    /// By which configuration, and in which minute that was looked at.
    by: Weak<G>,
    minute: i64,
}

/// What was written, and what waits for that.
#[derive(Default)]
struct Kept {
    /// When what is known was last kept, and in which minute.
    known: Option<(Instant, i64)>,
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
        let is_other = watcher.has_other();
        let claims = self.claims.look(gateway, is_other, at, || {
            let upstreams = gateway.config.upstreams.iter();
            let upstreams = upstreams.map(|one| one.name.as_str()).gather_set();
            watcher.claims(taximeter_admin::claims(gateway), targets, &upstreams, now)
        });
        let mut facts = gateway.in_force().facts.clone();
        facts.extend(built_in(gateway));
        facts.extend(claims.iter().cloned());
        let own = Own { facts: &facts, host: taximeter_admin::whereabouts(gateway).host };
        self.kept.take(watcher.note(targets, own, now, at));
        if gateway.disk_budget.is_full() {
            return Ok(());
        }
        self.kept.write(memory, watcher, (now, at), (keep, is_last))
    }
}

impl<G> Default for Claims<G> {
    fn default() -> Self {
        Self { facts: Vec::new(), by: Weak::new(), minute: i64::MIN }
    }
}

impl<G> Claims<G> {
    /// The claims as they are now. They are made anew for another configuration and each minute, and where
    /// sources tell something else: a GPU that comes or moves may be claimed by others.
    fn look(
        &mut self,
        by: &Arc<G>,
        is_other: bool,
        at: Timestamp,
        make: impl FnOnce() -> Vec<Fact>,
    ) -> &[Fact] {
        let minute = Grid::Minute.floor(at.as_second());
        if is_other || self.minute != minute || Weak::as_ptr(&self.by) != Arc::as_ptr(by) {
            (self.minute, self.by) = (minute, Arc::downgrade(by));
            self.facts = make();
        }
        &self.facts
    }
}

impl Kept {
    /// Takes as many as may wait.
    fn take(&mut self, events: Vec<Event>) {
        let room = WAITING_MAX.saturating_sub(self.waiting.len());
        self.waiting.extend(events.into_iter().take(room));
    }

    /// Writes what waits, and what is known where that is due.
    ///
    /// Errors: something cannot be written. It is tried again.
    fn write(
        &mut self,
        memory: &Memory,
        watcher: &mut Watcher,
        (now, at): (Instant, Timestamp),
        (keep, is_last): (&Keep, bool),
    ) -> Result<(), MemoryError> {
        if !self.waiting.is_empty() {
            memory.tell(&self.waiting)?;
            self.waiting.clear();
        }
        let minute = Grid::Minute.floor(at.as_second());
        let is_soon = self.known.is_some_and(|(kept, _)| now < kept + KEEP_PERIOD) && !is_last;
        let is_other_minute = is_last || self.known.is_none_or(|(_, kept)| kept != minute);
        if !is_soon && let Some(known) = watcher.known(at, is_other_minute) {
            self.known = Some((now, minute));
            let kept = memory.keep_known(&known, keep);
            kept.inspect_err(|_| watcher.not_kept())?;
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

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::fs;

    use taximeter_fleet::TargetKind;

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_795_132_800 + second).unwrap()
    }

    fn prices(date: &str) -> [Fact; 1] {
        [Fact::new(EventKind::Prices, BUILT_IN, date, Vec::new())]
    }

    #[test]
    fn claims_are_made_where_something_has_changed_also_while_nothing_can_be_written() {
        let (one, other) = (Arc::new(()), Arc::new(()));
        let (made, mut claims) = (Cell::new(0), Claims::default());
        let mut look = |by: &Arc<()>, is_other, second| {
            let make = || {
                made.set(made.get() + 1);
                vec![Fact::new(EventKind::GpuClaimed, "GPU-1", "a", Vec::new())]
            };
            assert_eq!(claims.look(by, is_other, at(second), make).len(), 1);
            made.get()
        };
        assert_eq!([0, 0, 1, 59].map(|second| look(&one, false, second)), [1; 4]);
        assert_eq!([60, 61].map(|second| look(&one, false, second)), [2; 2]);
        assert_eq!([look(&other, false, 62), look(&other, false, 62)], [3; 2]);
        assert_eq!([look(&other, true, 63), look(&other, false, 63)], [4; 2]);
        // What is known is not asked for here, as on a disk that is full.
        let target = Target::new("/proc", TargetKind::Host, Vec::new(), Duration::from_secs(1));
        let (mut watcher, targets) = (Watcher::default(), [Arc::new(target)]);
        let mut others = Vec::new();
        for second in 0..4 {
            let date = format!("2026-11-2{second}");
            let own = Own { facts: &prices(&date), host: None };
            watcher.note(&targets, own, clock::now(), at(second));
            others.push(watcher.has_other());
        }
        assert_eq!(others, [true, false, false, false], "a source has come, once");
    }

    #[test]
    fn what_cannot_be_written_is_tried_again() {
        let folder = tempfile::tempdir().unwrap();
        let memory = Memory::open(folder.path()).unwrap();
        let keep = Keep { times: [Duration::from_secs(86_400); 3], bytes_max: 1 << 30 };
        let (mut kept, mut watcher, begun) = (Kept::default(), Watcher::default(), clock::now());
        let note = |date: &str, watcher: &mut Watcher| {
            watcher.note(&[], Own { facts: &prices(date), host: None }, begun, at(0))
        };
        assert_eq!(note("2026-11-20", &mut watcher), []);
        let events = folder.path().join("samples/events");
        // A folder in its place, so that the file cannot be written.
        fs::create_dir_all(events.join("known.json.tmp")).unwrap();
        let write = |kept: &mut Kept, watcher: &mut Watcher, seconds| {
            let now = begun + Duration::from_secs(seconds);
            kept.write(&memory, watcher, (now, at(0)), (&keep, false))
        };
        assert!(write(&mut kept, &mut watcher, 0).is_err());
        fs::remove_dir(events.join("known.json.tmp")).unwrap();
        let known = events.join("known.json");
        write(&mut kept, &mut watcher, 1).unwrap();
        assert!(!known.exists(), "not yet again");
        write(&mut kept, &mut watcher, 2).unwrap();
        assert!(fs::read_to_string(&known).unwrap().contains("2026-11-20"));
        // Events wait, too.
        kept.take(note("2026-11-21", &mut watcher));
        let lines = events.join("2026-11-20T00-00-00.jsonl");
        fs::create_dir(&lines).unwrap();
        assert!(write(&mut kept, &mut watcher, 9).is_err());
        fs::remove_dir(&lines).unwrap();
        write(&mut kept, &mut watcher, 9).unwrap();
        assert!(fs::read_to_string(&lines).unwrap().contains("2026-11-21"));
        assert!(fs::read_to_string(&known).unwrap().contains("2026-11-21"));
    }
}
