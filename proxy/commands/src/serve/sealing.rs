//! Seals requests of the store: they leave its tables for files of their days.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::SignedDuration;
use taximeter_gateway::gateway::Gateway;
use taximeter_journal::room::Filler;
use taximeter_store::feeder::Bell;
use taximeter_store::seal_thread::{Look, SealThread};
use taximeter_store::{GoneDay, Location, SealPolicy, SealWork, Sealer, StoreError};
use taximeter_system::clock;
use taximeter_telemetry::Telemetry;
use taximeter_telemetry::events::{DetailsRemoved, NotSealed, SamplesNotKept, Sealed};

/// Time between two looks at what is due.
const LOOK_PERIOD: Duration = Duration::from_secs(10);
/// The same while there is too little room.
const SHORT_PERIOD: Duration = Duration::from_secs(1);

/// Starts the thread that seals; it carries no requests. `None` for a store in a database, which keeps
/// them. Segments of the journal go after a feeding, so `bell` is rung when their requests have left.
pub(super) fn start(gateway: &Arc<Gateway>, bell: Bell) -> anyhow::Result<Option<SealThread>> {
    let Location::DataDir(dir) = Location::of(&gateway.config, &gateway.id) else {
        return Ok(None);
    };
    let (budget, id) = (gateway.disk_budget.clone(), gateway.id.clone());
    let wait = gateway.journal.age_wait().clone();
    let keep = SignedDuration::from_hours(24 * i64::from(gateway.config.ledger.records_keep_days));
    let told = Arc::new(Told { telemetry: gateway.telemetry.clone(), reason: Mutex::default() });
    let (faults, process) = (told.clone(), gateway.process().clone());
    let work = move |sealer: &mut Sealer, look: &Look<'_>| {
        // Samples go before records of requests.
        if let Some(Err(fault)) = process.samples.get().map(|samples| samples.make_room(&budget)) {
            told.telemetry.emit(&SamplesNotKept { reason: &fault.to_string() });
        }
        if let Some(made) = sealer.make_room(&budget, clock::wall(), look.go_on)? {
            told.removed(&made.days, Some(made.filler));
        }
        if let Some(newest) = look.seen {
            let room = budget.room().unwrap_or_default();
            let policy = SealPolicy {
                room: room.bytes_max,
                left: room.bytes_until_full,
                closed_until: sealer.closed_until(clock::wall())?,
            };
            let done = sealer.work(&policy, newest, look.go_on)?;
            told.done(&done);
            if done.sealed > 0 {
                bell.ring();
            }
        }
        budget.details(sealer.details(clock::wall())?);
        // Nothing goes by age while the clock is in doubt.
        if let Some(until) = wait.time().and_then(|now| now.checked_sub(keep).ok()) {
            let old = sealer.remove_old_days(until, clock::wall(), look.go_on)?;
            told.removed(&old, None);
        }
        Ok(if budget.is_short() { SHORT_PERIOD } else { LOOK_PERIOD })
    };
    let open = move || Sealer::open(&dir, &id);
    let on_fault = move |fault: &StoreError| faults.reason(Some(fault.to_string()));
    Ok(Some(SealThread::start(open, work, on_fault)?))
}

/// Tells what was done, and each reason against it once in a row.
struct Told {
    telemetry: Arc<Telemetry>,
    reason: Mutex<Option<String>>,
}

impl Told {
    fn done(&self, work: &SealWork) {
        self.telemetry.emit(&Sealed { requests: work.sealed, files_merged: work.merged });
        self.reason(work.fault());
    }

    fn removed(&self, days: &[GoneDay], filler: Option<Filler>) {
        tell_removed(&self.telemetry, days, filler);
    }

    fn reason(&self, now: Option<String>) {
        let mut told = self.reason.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(reason) = now.as_deref().filter(|_| now != *told) {
            self.telemetry.emit(&NotSealed { reason });
        }
        *told = now;
    }
}

/// Tells which days lost their details: because of their age, or to make room that was taken by `filler`.
pub(super) fn tell_removed(telemetry: &Telemetry, days: &[GoneDay], filler: Option<Filler>) {
    let ends = days.first().zip(days.last()).map(|(first, last)| (&first.day, &last.day));
    let requests = days.iter().map(|day| day.requests).sum::<u64>();
    let requests = usize::try_from(requests).unwrap_or(usize::MAX);
    let files = days.iter().map(|day| day.files.len()).sum();
    telemetry.emit(&DetailsRemoved { filler, days: ends, requests, files });
}
