//! Removes old records of a store in a database, in steps that hold up nobody.

use std::sync::Arc;
use std::time::Duration;

use jiff::civil::Date;
use jiff::{SignedDuration, Timestamp};
use taximeter_gateway::gateway::Gateway;
use taximeter_store::{Location, StoreError};
use taximeter_system::clock;
use taximeter_telemetry::Telemetry;
use taximeter_telemetry::events::{DetailsRemoved, StoreFailed};
use tokio::task::spawn_blocking;

/// Time between two looks at what is old.
const PERIOD: Duration = Duration::from_secs(600);
/// The same where the database could not be asked.
const RETRY_PERIOD: Duration = Duration::from_secs(10);
/// Most records of a step, which is one transaction.
const STEP_RECORDS: u32 = 2_000;

/// Removes what is old from time to time. Nothing to do for a store in a data directory: what seals it
/// does this too.
pub(super) fn start(gateway: &Arc<Gateway>) {
    let location = Location::of(&gateway.config, &gateway.id);
    if matches!(location, Location::DataDir(_)) {
        return;
    }
    let own = gateway.config.ledger.records_keep_days;
    let (telemetry, wait) = (gateway.telemetry.clone(), gateway.journal.age_wait().clone());
    gateway.background.spawn(async move {
        let mut told = None;
        loop {
            let (location, now) = (location.clone(), wait.time());
            let period = match spawn_blocking(move || retire(&location, own, now)).await {
                Ok(Ok(removed)) => {
                    removed.iter().for_each(|removed| removed.tell(&telemetry));
                    told = None;
                    PERIOD
                }
                Ok(Err(fault)) => {
                    telemetry.emit(&StoreFailed::new(&fault, told.as_deref()));
                    told = Some(fault.to_string());
                    RETRY_PERIOD
                }
                // The runtime ends.
                Err(_) => return,
            };
            tokio::time::sleep(period).await;
        }
    });
}

/// Notes how long this gateway keeps records, and removes those that no gateway keeps at `now`: nothing
/// while the clock is in doubt.
fn retire(
    location: &Location,
    own: u32,
    now: Option<Timestamp>,
) -> Result<Option<Removed>, StoreError> {
    let mut store = location.open()?;
    let keep = SignedDuration::from_hours(24 * i64::from(store.keep_days(own)?));
    let Some(before) = now.and_then(|now| now.checked_sub(keep).ok()) else { return Ok(None) };
    let mut records = 0;
    loop {
        let step = store.remove_details(before, STEP_RECORDS, clock::wall())?;
        records += step;
        if step < STEP_RECORDS.into() {
            break;
        }
    }
    let days = store.gone_days()?;
    let ends = days.first().zip(days.last()).filter(|_| records > 0);
    Ok(ends.map(|(first, last)| Removed { records, days: (first.day, last.day) }))
}

/// What went.
struct Removed {
    records: u64,
    /// The first and the last day without records.
    days: (Date, Date),
}

impl Removed {
    fn tell(&self, telemetry: &Telemetry) {
        let requests = usize::try_from(self.records).unwrap_or(usize::MAX);
        let days = Some((&self.days.0, &self.days.1));
        telemetry.emit(&DetailsRemoved { filler: None, days, requests, files: 0 });
    }
}
