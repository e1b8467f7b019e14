//! Seals requests of the store: they leave its tables for files of their days.

use std::sync::Arc;

use taximeter_gateway::gateway::Gateway;
use taximeter_store::feeder::Bell;
use taximeter_store::seal_thread::SealThread;
use taximeter_store::{Location, SealPolicy, SealWork, Sealer, StoreError};
use taximeter_system::clock;
use taximeter_telemetry::Telemetry;
use taximeter_telemetry::events::{NotSealed, Sealed};

/// Starts the thread that seals; it carries no requests. `None` for a store in a database, which keeps
/// them. Segments of the journal go after a feeding, so `bell` is rung when their requests have left.
pub(super) fn start(gateway: &Arc<Gateway>, bell: Bell) -> anyhow::Result<Option<SealThread>> {
    let Location::DataDir(dir) = Location::of(&gateway.config, &gateway.id) else {
        return Ok(None);
    };
    let budget = gateway.disk_budget.clone();
    let policy = move |sealer: &mut Sealer| {
        let room = budget.room().and_then(|room| room.bytes_max);
        Ok(SealPolicy { room, closed_until: sealer.closed_until(clock::wall())? })
    };
    let (id, mut told) = (gateway.id.clone(), Told::default());
    let telemetry = gateway.telemetry.clone();
    let on_done = move |done: Result<SealWork, StoreError>| {
        told.tell(&telemetry, &done);
        if done.is_ok_and(|work| work.sealed > 0) {
            bell.ring();
        }
    };
    Ok(Some(SealThread::start(move || Sealer::open(&dir, &id), policy, on_done)?))
}

/// Tells what was done, and each reason against it once in a row.
#[derive(Debug, Default)]
struct Told(Option<String>);

impl Told {
    fn tell(&mut self, telemetry: &Telemetry, done: &Result<SealWork, StoreError>) {
        let reason = match done {
            Ok(work) => {
                telemetry.emit(&Sealed { requests: work.sealed, files_merged: work.merged });
                work.fault()
            }
            Err(fault) => Some(fault.to_string()),
        };
        if let Some(reason) = reason.as_deref().filter(|reason| self.0.as_deref() != Some(reason)) {
            telemetry.emit(&NotSealed { reason });
        }
        self.0 = reason;
    }
}
