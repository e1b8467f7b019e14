//! Keeps the data directory in order: feeds the store, deletes old journal files, and watches the
//! size of the directory.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use taximeter_config::Config;
use taximeter_gateway::gateway::{Current, Gateway};
use taximeter_journal::disk_budget;
use taximeter_journal::room::{Room, RoomLimits};
use taximeter_journal::{Event, Retention};
use taximeter_ledger::{Fault, FramedEntry};
use taximeter_store::feeder::Feeder;
use taximeter_store::seal_thread::SealThread;
use taximeter_store::{AtStart, Cleaner, Fed, Location, StoreError, feeds_with};
use taximeter_system::clock;
use taximeter_telemetry::Telemetry;
use taximeter_telemetry::events::{
    ClockTurned, EntryRejected, HistoryRemoved, JournalChanged, RoomTurned, StoreFailed,
};
use tokio::task::spawn_blocking;
use tokio::time::sleep;

use super::sealing;

/// Time between two searches for files to delete, if space is short and nothing is written.
const RETENTION_PERIOD: Duration = Duration::from_secs(10);
/// Time between two looks at the clock and at old files, if nothing is written.
const IDLE_PERIOD: Duration = Duration::from_secs(600);
/// Time between two checks whether a minute of counts is over.
const REFUSALS_PERIOD: Duration = Duration::from_secs(1);
/// Time between two attempts to store entries that the start could not understand.
const REJECTED_PERIOD: Duration = Duration::from_secs(2);
/// Time between two checks whether the journal has new entries for the store.
const FEED_PERIOD: Duration = Duration::from_millis(500);

/// Makes room in the data directory before the ledger is opened. The bytes that the store has free.
pub(super) fn make_room(config: &Config, id: &str, telemetry: &Telemetry) -> u64 {
    // Who opens the ledger tells what is wrong with it.
    let at_start = Cleaner::at_start(config, &Location::of(config, id), (id, clock::wall()));
    let AtStart { segments, days, free_bytes } = at_start.unwrap_or_default();
    telemetry.emit(&HistoryRemoved(&segments));
    if let Some(made) = days {
        sealing::tell_removed(telemetry, &made.days, Some(made.filler));
    }
    free_bytes
}

/// Watches the room of the data directory.
pub(super) fn watch_disk_budget(gateway: &Arc<Gateway>) {
    let (config, process) = (&gateway.config, gateway.process().clone());
    let (budget, dir) = (process.disk_budget.clone(), config.data_dir.clone());
    let on_change = move |turn, room: &Room| {
        let bytes = process.disk_budget.bytes();
        process.telemetry.emit(&RoomTurned { turn, bytes, room });
    };
    let watch = disk_budget::watch(budget, dir, RoomLimits::of(config), on_change);
    gateway.background.spawn(watch);
}

/// Writes once a minute how many requests had no record. At the end, [`finish`](super::Running)
/// writes the rest.
pub(super) fn write_refusals(gateway: &Arc<Gateway>) {
    let weak = Arc::downgrade(gateway.process());
    gateway.background.spawn(async move {
        let mut period = tokio::time::interval(REFUSALS_PERIOD);
        loop {
            period.tick().await;
            let Some(process) = weak.upgrade() else { return };
            process.write_refusals(false);
        }
    });
}

/// Stores entries that the start could not understand as files, and tries again while the volume has
/// no room for them. If the process dies before that, `taximeter verify` still names them.
pub(super) fn set_rejected_aside(gateway: &Arc<Gateway>, mut entries: Vec<(FramedEntry, Fault)>) {
    let (dir, telemetry) = (gateway.config.data_dir.clone(), gateway.telemetry.clone());
    let (rejected, place) = (telemetry.clone(), dir.clone());
    let mut set_aside = move || {
        let told = |fault: &Fault, path: &Path| rejected.emit(&EntryRejected { fault, path });
        taximeter_store::set_rejected_aside(&place, &mut entries, told)
    };
    let Err(error) = set_aside() else { return };
    telemetry.emit(&JournalChanged(&Event::WriteFailed { path: &dir, error: &error }));
    gateway.background.spawn(async move {
        loop {
            sleep(REJECTED_PERIOD).await;
            let attempt = spawn_blocking(move || (set_aside().is_ok(), set_aside));
            match attempt.await {
                Ok((false, next)) => set_aside = next,
                _ => return,
            }
        }
    });
}

/// The threads that keep the store. They carry no requests.
#[derive(Debug)]
pub(super) struct StoreThreads {
    feeder: Feeder,
    sealer: Option<SealThread>,
}

impl StoreThreads {
    /// Starts them.
    pub(super) fn start(gateway: &Arc<Gateway>, current: Current) -> anyhow::Result<Self> {
        let feeder = feeder(gateway, current)?;
        let sealer = sealing::start(gateway, feeder.bell())?;
        Ok(Self { feeder, sealer })
    }

    /// Asks them to end. Does not wait for them. What the sealer has begun is begun anew by the next
    /// start.
    pub(super) fn stop(&self) {
        self.feeder.stop();
        self.sealer.iter().for_each(SealThread::stop);
    }

    /// Waits until the store has the rest of the journal.
    pub(super) async fn fed(self) {
        self.feeder.ended().await;
    }
}

/// Feeds the store from the journal.
fn feeder(gateway: &Arc<Gateway>, current: Current) -> anyhow::Result<Feeder> {
    let location = Location::of(&gateway.config, &gateway.id);
    let dir = &gateway.config.data_dir;
    let (telemetry, journal) = (gateway.telemetry.clone(), gateway.journal.clone());
    let feeding = gateway.feeding.clone();
    let keep_days = gateway.config.ledger.records_keep_days;
    let clocks = || (clock::now(), clock::wall());
    let (newest, wait) = (journal.newest_before(), journal.age_wait().clone());
    let retention = Retention::new(dir, keep_days, journal.sequence(), newest, clocks(), wait);
    let budget = gateway.disk_budget.clone();
    let mut cleaner = Cleaner::new(&gateway.config, location.clone(), budget, retention);
    let rejected = telemetry.clone();
    let feeds = feeds_with(dir, move |fault, path| rejected.emit(&EntryRejected { fault, path }));
    let on_fed = move |fed: Result<Fed, StoreError>| {
        let before = feeding.state().fault;
        feeding.note(&fed, clock::wall());
        if let Some(turn) = cleaner.look(clocks()) {
            telemetry.emit(&ClockTurned(turn));
        }
        journal.mark(clock::now(), current.get().config.limits.request_timeout);
        match cleaner.fed(&fed, journal.sequence(), clocks()) {
            Ok(removed) => telemetry.emit(&HistoryRemoved(&removed)),
            Err(fault) => telemetry.emit(&StoreFailed::new(&fault, None)),
        }
        if let Err(fault) = fed {
            telemetry.emit(&StoreFailed::new(&fault, before.as_deref()));
        }
    };
    let noted_in = dir.clone();
    let feeder = Feeder::start(move || location.open_noted(&noted_in), feeds, on_fed)?;
    let (bell, weak) = (feeder.bell(), Arc::downgrade(gateway.process()));
    gateway.background.spawn(async move {
        let (mut fed, mut rung) = (0, clock::now());
        let mut period = tokio::time::interval(FEED_PERIOD);
        loop {
            period.tick().await;
            let Some(gateway) = weak.upgrade() else { return };
            let written = gateway.journal.sequence();
            // Files are deleted after a feeding. A full gateway writes nothing that starts one.
            let period = match gateway.disk_budget.is_short() {
                true => RETENTION_PERIOD,
                false => IDLE_PERIOD,
            };
            if written > fed || clock::now() >= rung + period {
                (fed, rung) = (written, clock::now());
                bell.ring();
            }
        }
    });
    Ok(feeder)
}
