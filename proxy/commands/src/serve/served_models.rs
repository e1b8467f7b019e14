//! Tells telemetry which models were served before this start, so that errors about them have their
//! names. Then it tells of the requests that were open when the gateway died.

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use taximeter_gateway::gateway::Gateway;
use taximeter_ledger::Record;
use taximeter_store::{Location, StoreError};
use taximeter_system::clock;
use taximeter_telemetry::MODELS_MAX;
use taximeter_telemetry::events::RequestDied;
use tokio::task::spawn_blocking;
use tokio::time::sleep;

/// How far back a model counts as served.
const DAYS: i64 = 7;
/// Time between two attempts while the store cannot be asked. The feeder tells why.
const RETRY_PERIOD: Duration = Duration::from_secs(10);

/// Asks the store once, in the background.
pub(super) fn start(gateway: &Arc<Gateway>, mut died: Vec<Record>) {
    let location = Location::of(&gateway.config, &gateway.id);
    let telemetry = gateway.telemetry.clone();
    gateway.background.spawn(async move {
        loop {
            let (location, now) = (location.clone(), clock::wall());
            let asked = spawn_blocking(move || served(&location, now)).await;
            if let Ok(Ok(names)) = &asked {
                telemetry.metrics.know_models(names);
            }
            // A store that cannot be asked keeps nobody waiting.
            died.drain(..).for_each(|record| telemetry.emit(&RequestDied(&record)));
            match asked {
                Ok(Err(_)) => sleep(RETRY_PERIOD).await,
                // They are known, or the runtime ends.
                _ => return,
            }
        }
    });
}

fn served(location: &Location, now: Timestamp) -> Result<Vec<String>, StoreError> {
    let since = now.checked_sub(SignedDuration::from_hours(24 * DAYS)).unwrap_or(Timestamp::MIN);
    location.open()?.models_served(since, now, MODELS_MAX)
}
