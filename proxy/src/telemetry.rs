//! What is told to operators: metrics and log lines. The journey says what happened; `events.rs`
//! says how that looks; `names.rs` has every name.

pub(crate) mod events;
mod instruments;
pub(crate) mod log;
mod metrics;
mod names;
mod prometheus;
mod series;

use taximeter_config::Config;

use events::Event;
use log::Log;

pub(crate) use metrics::{LedgerState, Metrics};

/// Everything that is told.
pub(crate) struct Telemetry {
    pub(crate) log: Log,
    pub(crate) metrics: Metrics,
}

impl Telemetry {
    /// Nothing told yet.
    pub(crate) fn new(log: Log, config: &Config) -> Self {
        Self { log, metrics: Metrics::new(config) }
    }

    /// Something happened.
    pub(crate) fn emit(&self, event: &impl Event) {
        event.count(&self.metrics);
        event.line(&self.log);
    }
}
