//! All metrics of the gateway, and how they are read.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use ::metrics::{CounterFn as _, GaugeFn as _, Label};
use http::Method;
use jiff::Timestamp;
use taximeter_config::{Config, GenAi, HistogramBuckets, ModelPattern, OtelSettings, Upstream};
use taximeter_journal::room::Room;
use taximeter_ledger::LedgerId;
use taximeter_system::clock;
use taximeter_system::process::Footprint;

use super::active::{Active, ActiveRequests};
use super::attributes::{RequestNames, Server};
use super::exemplar::Origin;
use super::fleet::{FleetSeries, FleetVital};
use super::instruments::{Instruments, Number, Reading, Series};
use super::names::{Instrument, key};
use super::prometheus::{Exposition, ExpositionFormat, Scrape};
use super::requests::Requests;
use super::resource::resource;
use super::scrapers::{Scraper, Scrapers};
use super::streams::StreamSeries;
use super::wait::Wait;

/// All metrics of a gateway.
pub struct Metrics {
    pub(super) instruments: Instruments,
    pub(super) requests: Requests,
    /// The configured attributes of the resource that they describe.
    configured: BTreeMap<String, String>,
    /// The ledger of the gateway, once it is open.
    ledger: OnceLock<LedgerId>,
    /// The start of counting.
    pub since: Timestamp,
    open: Arc<Series<Number>>,
    active: ActiveRequests,
    fleet: FleetSeries,
    scheme: &'static str,
    /// The generation of the GenAI conventions that names follow.
    pub genai: GenAi,
    scope_labels: bool,
    /// Who scrapes them.
    scrapers: Arc<Scrapers>,
    /// Whether histograms have native buckets too.
    pub has_native: bool,
    /// Whether scrapes may have native buckets.
    pub scrapes_native: bool,
}

/// Values that are read only when metrics are read.
#[derive(Debug, Default)]
pub struct Vitals {
    /// Sequence number of the ledger's last entry.
    pub entries: u64,
    /// Whether the ledger can be written.
    pub healthy: bool,
    /// The size of the data directory in bytes; `None` before the first measurement.
    pub dir_bytes: Option<u64>,
    /// The room of the data directory; `None` before the first measurement.
    pub room: Option<Room>,
    /// Days until it has none for new requests; `None` while nobody knows.
    pub days_left: Option<f64>,
    /// Bytes until it has none, if all goes that may go; `None` while nobody knows.
    pub room_left: Option<u64>,
    /// Days of details that it holds; `None` while nobody knows.
    pub days_held: Option<f64>,
    /// How long the oldest open request has run.
    pub oldest_age: Duration,
    /// Journal entries that the store lacks; `None` until it was fed.
    pub store_lag: Option<u64>,
    /// Lines of the log that could not be written since the start.
    pub log_lines_lost: u64,
    /// The resources that the process uses.
    pub process: Footprint,
    /// The upstreams.
    pub upstreams: Vec<UpstreamVitals>,
    /// What engines, GPUs and hosts tell.
    pub fleet: Vec<FleetVital>,
}

/// How an upstream does.
#[derive(Debug)]
pub struct UpstreamVitals {
    /// Its name.
    pub name: Arc<str>,
    /// Whether its last request was answered; `None` before the first.
    pub healthy: Option<bool>,
    /// How many requests it has answered and failed.
    pub counts: UpstreamCounts,
}

/// How many requests an upstream has answered and failed since the start.
#[derive(Debug, Clone, Copy)]
pub struct UpstreamCounts {
    /// Answers that began well.
    pub answered: u64,
    /// Requests that got none, or one that refuses whatever is asked.
    pub failed: u64,
    /// Answers that began well and broke off.
    pub broke_off: u64,
}

impl Metrics {
    /// Nothing told yet.
    pub(super) fn new(config: &Config, otel: &OtelSettings, since: Timestamp) -> Self {
        let pushed = otel.metrics.as_ref().map(|export| export.histograms);
        let has_native =
            config.telemetry.native_histograms || pushed == Some(HistogramBuckets::Exponential);
        let series_max = config.limits.series_per_metric_max;
        let instruments = Instruments::new(otel.genai, has_native).within(series_max);
        for counter in Instrument::ALL.iter().filter(|instrument| instrument.spec().is_bare_count())
        {
            if instruments.tells(*counter) {
                instruments.count(*counter, Vec::new());
            }
        }
        let open = instruments.number(Instrument::RequestsOpen, Vec::new());
        instruments.number(Instrument::ConfigValid, Vec::new()).set(1.0);
        let requests = Requests::new(
            config.telemetry.tenants_max,
            config.limits.series_per_metric_max,
            servers(config),
            config.scheme(),
        );
        requests.know_models(named_models(config));
        Self {
            requests,
            configured: otel.resource.clone(),
            ledger: OnceLock::new(),
            since,
            open,
            active: ActiveRequests::default(),
            fleet: FleetSeries::new(instruments.births.clone(), series_max),
            scheme: config.scheme(),
            instruments,
            genai: otel.genai,
            scope_labels: otel.scope_labels,
            scrapers: Arc::new(Scrapers::new(clock::now())),
            has_native,
            scrapes_native: config.telemetry.native_histograms,
        }
    }

    /// The ledger is open. Before, nothing is told to anybody.
    pub fn describe(&self, ledger: LedgerId) {
        // A process opens one ledger.
        let _ = self.ledger.set(ledger);
    }

    /// The attributes of the resource that they describe.
    pub fn resource(&self) -> BTreeMap<String, String> {
        resource(&self.configured, self.ledger.get().copied())
    }

    /// Another configuration is in force.
    pub(super) fn reconfigured(&self, config: &Config) {
        self.requests.served_by(servers(config));
        self.requests.know_models(named_models(config));
    }

    /// Models that were served before this start: errors about them have their names.
    pub fn know_models(&self, names: &[String]) {
        self.requests.know_models(names.iter().map(String::as_str));
    }

    /// Whether what is in the configuration's file is in force.
    pub(super) fn config_is_valid(&self, valid: bool) {
        let valid = f64::from(u8::from(valid));
        self.instruments.number(Instrument::ConfigValid, Vec::new()).set(valid);
    }

    /// Notes that a client's request begins. It counts as running until the returned value is
    /// dropped.
    pub fn request_began(&self, method: &Method) -> Active {
        self.active.begin(&self.instruments, method, self.scheme)
    }

    /// The series of a stream that an engine has answered well and that still runs.
    pub fn stream(&self, names: RequestNames<'_>) -> Arc<StreamSeries> {
        self.requests.stream(names)
    }

    /// The first token of a stream has come, after this wait.
    pub fn first_token_came(&self, stream: &StreamSeries, wait: Wait, origin: Origin) {
        stream.waited(&self.instruments, wait, origin);
    }

    /// A stream has generated so many more tokens.
    pub fn generated(&self, stream: &StreamSeries, tokens: u64) {
        stream.generated(&self.instruments, tokens);
    }

    /// Notes that a request was reserved.
    pub fn settlement_opened(&self) {
        self.open.increment(1.0);
    }

    /// Notes that a reserved request is settled: its last entry is in the journal's queue.
    pub fn settlement_closed(&self) {
        self.open.decrement(1.0);
    }

    /// Sets whether removal by age waits, because the clock is ahead of the newest entry.
    pub fn clock_is_ahead(&self, is_ahead: bool) {
        let number = self.instruments.number(Instrument::LedgerClockAhead, Vec::new());
        number.set(f64::from(u8::from(is_ahead)));
    }

    /// Sets how many requests a receiver of events lacks, and whether they are about to go.
    pub fn push_lacks(&self, requests: u64, is_at_risk: bool) {
        let set = |instrument, value| self.instruments.number(instrument, Vec::new()).set(value);
        set(Instrument::PushPending, float(requests));
        set(Instrument::PushAtRisk, f64::from(u8::from(is_at_risk)));
    }

    /// Whether any reserved request is not settled yet.
    pub fn has_unsettled_requests(&self) -> bool {
        Number::value(&self.open) > 0.0
    }

    /// More of something, by fixed words.
    pub(super) fn count(&self, instrument: Instrument, by: usize, labels: &[(&'static str, &str)]) {
        let labels = labels.iter().map(|(key, value)| Label::new(*key, (*value).to_owned()));
        self.instruments.count(instrument, labels.collect()).increment(by as u64);
    }

    /// Every series, ordered by instrument and then by attributes. `vitals` are the current values.
    pub fn readings(&self, vitals: &Vitals) -> Vec<(Instrument, Reading)> {
        self.note_vitals(vitals);
        self.read(vitals)
    }

    /// Notes the current values.
    fn note_vitals(&self, vitals: &Vitals) {
        let Vitals { entries, healthy, store_lag, log_lines_lost, process, upstreams, .. } = vitals;
        self.instruments.count(Instrument::LedgerEntries, Vec::new()).absolute(*entries);
        self.instruments.count(Instrument::LogLinesLost, Vec::new()).absolute(*log_lines_lost);
        for (instrument, value) in [
            (Instrument::LedgerHealthy, Some(f64::from(u8::from(*healthy)))),
            (Instrument::LedgerSize, vitals.dir_bytes.map(float)),
            (Instrument::LedgerSizeMax, vitals.room.and_then(|room| room.bytes_max).map(float)),
            (Instrument::LedgerInodesLeft, vitals.room.and_then(|room| room.files_left).map(float)),
            (Instrument::LedgerDaysLeft, vitals.days_left),
            (Instrument::LedgerRoomLeft, vitals.room_left.map(float)),
            (Instrument::DetailsHeld, vitals.days_held),
            (Instrument::OldestAge, Some(vitals.oldest_age.as_secs_f64())),
            (Instrument::StoreLag, store_lag.map(float)),
            (Instrument::ProcessMemory, process.memory_bytes.map(float)),
            (Instrument::ProcessFiles, process.file_descriptors.map(float)),
        ] {
            if let Some(value) = value {
                self.instruments.number(instrument, Vec::new()).set(value);
            }
        }
        for (mode, seconds) in [("user", process.user_seconds), ("system", process.system_seconds)]
        {
            if let Some(seconds) = seconds {
                let mode = vec![Label::new(key::CPU_MODE, mode)];
                self.instruments.number(Instrument::ProcessCpuTime, mode).set(seconds);
            }
        }
        for UpstreamVitals { name, healthy, counts } in upstreams {
            let name = || Label::new(key::UPSTREAM, name.to_string());
            if let Some(healthy) = healthy {
                let healthy = f64::from(u8::from(*healthy));
                self.instruments.number(Instrument::UpstreamHealthy, vec![name()]).set(healthy);
            }
            for (outcome, count) in [
                ("answered", counts.answered),
                ("failed", counts.failed),
                ("broke_off", counts.broke_off),
            ] {
                let labels = vec![name(), Label::new(key::OUTCOME, outcome)];
                self.instruments.count(Instrument::UpstreamAnswers, labels).absolute(count);
            }
        }
    }

    /// Every series of which something is known.
    fn read(&self, vitals: &Vitals) -> Vec<(Instrument, Reading)> {
        let mut readings = self.instruments.readings();
        // Of one that is no longer configured nothing is known.
        let is_there = |reading: &Reading| {
            let mut names = vitals.upstreams.iter().map(|upstream| &*upstream.name);
            names.any(|name| reading.labels().iter().any(|label| label.value() == name))
        };
        readings.retain(|(instrument, reading)| match instrument {
            Instrument::UpstreamHealthy => is_there(reading),
            Instrument::LedgerDaysLeft => vitals.days_left.is_some(),
            Instrument::LedgerRoomLeft => vitals.room_left.is_some(),
            Instrument::DetailsHeld => vitals.days_held.is_some(),
            _ => true,
        });
        // Their instruments come behind all others.
        readings.extend(self.fleet.readings(&vitals.fleet));
        readings
    }

    /// Starts a scrape, of a scraper where it is one.
    pub fn exposition(
        &self,
        vitals: &Vitals,
        format: ExpositionFormat,
        scraper: Option<Scraper>,
    ) -> Exposition {
        self.note_vitals(vitals);
        // Before the series are read: what is made meanwhile is new to the next scrape.
        let newest = self.instruments.last_birth();
        let scrape = scraper.map(|by| {
            let scrapers = self.scrapers.clone();
            Scrape { seen: scrapers.seen(by, clock::now()), scrapers, by, newest }
        });
        let scope = self.scope_labels.then_some(self.genai);
        Exposition::new(format, scope, &self.resource(), self.read(vitals)).to(scrape)
    }
}

/// Models that a configuration names, each by its whole name.
fn named_models(config: &Config) -> impl Iterator<Item = &str> {
    let upstreams = config.upstreams.iter().flat_map(|upstream| &upstream.models);
    let vocabularies = config.tokenizers.iter().flat_map(|vocabulary| &vocabulary.models);
    upstreams.chain(vocabularies).filter_map(ModelPattern::name)
}

/// Where the upstreams of a configuration are.
fn servers(config: &Config) -> Vec<Server> {
    let server = |upstream: &Upstream| Server {
        name: upstream.name.clone(),
        address: upstream.url.host.clone(),
        port: upstream.url.port,
    };
    config.upstreams.iter().map(server).collect()
}

#[expect(clippy::cast_precision_loss, reason = "gauges are floats")]
const fn float(whole: u64) -> f64 {
    whole as f64
}
