//! What is looked up when somebody asks for numbers.

use std::sync::PoisonError;

use taximeter_system::clock;
use taximeter_system::process::Footprint;
use taximeter_telemetry::{UpstreamVitals, Vitals};

use crate::fleet_vitals;
use crate::gateway::ProcessState;

impl ProcessState {
    /// The numbers now.
    pub fn vitals(&self) -> Vitals {
        let (fed, entries) = (self.feeding.state(), self.journal.sequence());
        Vitals {
            entries,
            healthy: self.journal.is_healthy() && !self.disk_budget.is_full(),
            dir_bytes: self.disk_budget.bytes(),
            room: self.disk_budget.room(),
            days_left: self.disk_budget.growth().and_then(|growth| growth.days_left),
            room_left: self.disk_budget.room_left(),
            days_held: self.disk_budget.days_held(),
            oldest_age: self.live.oldest_age(clock::now()),
            store_lag: fed.fed_at.map(|_| entries.saturating_sub(fed.stored)),
            log_lines_lost: self.telemetry.log.lost(),
            process: Footprint::now(),
            upstreams: self.upstreams(),
            fleet: fleet_vitals::of(
                &self.fleet,
                self.samples.get().map(|samples| samples.counts()),
                clock::now(),
            ),
        }
    }

    /// How each upstream does.
    fn upstreams(&self) -> Vec<UpstreamVitals> {
        let upstream_states = self.upstream_states.lock().unwrap_or_else(PoisonError::into_inner);
        upstream_states.iter().map(|state| state.health.vitals(state.name.clone())).collect()
    }
}
