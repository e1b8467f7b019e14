//! All numbers that are told, and how they are read.

use std::sync::Arc;

use ::metrics::{CounterFn as _, GaugeFn as _, Label};
use taximeter_config::Config;

use super::instruments::{Instruments, Number};
use super::names::Instrument;
use super::prometheus;
use super::series::{Requests, Server};

/// All numbers that are told.
pub(crate) struct Metrics {
    pub(super) instruments: Instruments,
    pub(super) requests: Requests,
    open: Arc<Number>,
}

/// What the ledger looks like at a scrape.
pub(crate) struct LedgerState {
    /// Sequence number of the last entry.
    pub(crate) entries: u64,
    /// Whether it can be written.
    pub(crate) healthy: bool,
}

impl Metrics {
    pub(super) fn new(config: &Config) -> Self {
        let servers = config.upstreams.iter().map(|upstream| Server {
            name: upstream.name.clone(),
            address: upstream.url.host.clone(),
            port: upstream.url.port,
        });
        let instruments = Instruments::new();
        let open = instruments.number(Instrument::RequestsOpen, Vec::new());
        let requests = Requests::new(config.telemetry.tenants_max, servers.collect());
        Self { instruments, requests, open }
    }

    /// A request was reserved.
    pub(crate) fn fare_opened(&self) {
        self.open.increment(1.0);
    }

    /// A reserved request is settled: its last entry is with the journal.
    pub(crate) fn fare_closed(&self) {
        self.open.decrement(1.0);
    }

    /// Whether a reserved request is not settled yet.
    pub(crate) fn has_open_fares(&self) -> bool {
        self.open.value() > 0.0
    }

    /// More of something, by fixed words.
    pub(super) fn count(&self, instrument: Instrument, by: usize, labels: &[(&'static str, &str)]) {
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
