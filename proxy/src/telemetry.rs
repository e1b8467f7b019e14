//! What is told to operators: metrics and log lines. The journey says what happened; `events.rs` says how that
//! looks; `names.rs` has every name.

pub(crate) mod events;
mod instruments;
pub(crate) mod log;
mod names;
mod prometheus;
mod series;

use metrics::{CounterFn as _, GaugeFn as _, Label};
use taximeter_config::Config;

use events::Event;
use instruments::Instruments;
use log::Log;
use names::Instrument;
use series::{Requests, Server};

/// Everything that is told.
pub(crate) struct Telemetry {
    log: Log,
    instruments: Instruments,
    requests: Requests,
    open: std::sync::Arc<instruments::Number>,
}

/// What the ledger looks like at a scrape.
pub(crate) struct LedgerState {
    /// Sequence number of the last entry.
    pub(crate) entries: u64,
    /// Whether it can be written.
    pub(crate) healthy: bool,
}

impl Telemetry {
    /// Nothing told yet.
    pub(crate) fn new(log: Log, config: &Config) -> Self {
        let servers = config.upstreams.iter().map(|upstream| Server {
            name: upstream.name.clone(),
            address: upstream.url.host.clone(),
            port: upstream.url.port,
        });
        let instruments = Instruments::new();
        let open = instruments.number(Instrument::RequestsOpen, Vec::new());
        Self {
            log,
            requests: Requests::new(config.telemetry.tenants_max, servers.collect()),
            open,
            instruments,
        }
    }

    /// Log lines.
    pub(crate) const fn log(&self) -> &Log {
        &self.log
    }

    /// Something happened.
    pub(crate) fn emit(&self, event: &impl Event) {
        event.count(self);
        event.line(&self.log);
    }

    /// A request was reserved.
    pub(crate) fn fare_opened(&self) {
        self.open.increment(1.0);
    }

    /// A reserved request has ended.
    pub(crate) fn fare_closed(&self) {
        self.open.decrement(1.0);
    }

    /// One more of something, by fixed words.
    fn count(&self, instrument: Instrument, by: usize, labels: &[(&'static str, &str)]) {
        let labels = labels.iter().map(|(key, value)| Label::new(*key, (*value).to_owned()));
        self.instruments.count(instrument, labels.collect()).increment(by as u64);
    }

    /// The Prometheus exposition.
    pub(crate) fn render(&self, ledger: &LedgerState) -> String {
        self.instruments.count(Instrument::LedgerEntries, Vec::new()).absolute(ledger.entries);
        let healthy = f64::from(u8::from(ledger.healthy));
        self.instruments.number(Instrument::LedgerHealthy, Vec::new()).set(healthy);
        prometheus::render(self.instruments.snapshot())
    }
}
