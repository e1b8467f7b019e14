//! What all requests share.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::Instant;

use dashmap::DashMap;
use http::HeaderValue;
use jiff::Timestamp;
use taximeter_config::{Config, Upstream};
use taximeter_meter::Dialect;
use taximeter_tokenizer::Tokenizer;
use tokio::sync::Semaphore;

use crate::edge::clock;
use crate::edge::feeder::Feeding;
use crate::edge::journal::Journal;
use crate::edge::process::Footprint;
use crate::edge::upstream::Dialer;
use crate::health::Health;
use crate::journey::identify::tenant::Directory;
use crate::journey::refuse::Refusal;
use crate::live::Live;
use crate::tariffs::Tariffs;
use crate::telemetry::events::CountSkipped;
use crate::telemetry::events::UpstreamRecognised;
use crate::telemetry::{Telemetry, Vitals};
use crate::tokenizers::Tokenizers;

/// Prompts and answers that may wait to be counted; those beyond it stay unknown.
const COUNTS_PENDING_MAX: usize = 128;

/// Answers that are read on at once although their clients have left; the work for those beyond it
/// is cancelled.
const LEFT_ANSWERS_MAX: usize = 64;

/// What all requests share.
pub(crate) struct Gateway {
    /// Name of this gateway on records.
    pub(crate) id: String,
    pub(crate) config: Config,
    pub(crate) directory: Directory,
    pub(crate) tariffs: Tariffs,
    pub(crate) tokenizers: Tokenizers,
    pub(crate) journal: Journal,
    /// How far the store is behind it.
    pub(crate) feeding: Arc<Feeding>,
    /// Requests that are running.
    pub(crate) live: Live,
    pub(crate) telemetry: Arc<Telemetry>,
    pub(crate) dialer: Dialer,
    /// Where work runs that must not delay a token.
    pub(crate) background: tokio::runtime::Handle,
    /// A place for each answer that waits to be counted.
    pub(crate) counting: Arc<Semaphore>,
    /// A vocabulary is being loaded.
    loading: AtomicBool,
    /// A place for each answer that is read on although its client has left.
    pub(crate) left_answers: Arc<Semaphore>,
    pub(crate) started: Instant,
    pub(crate) started_at: Timestamp,
    /// How each upstream does.
    health: Vec<Health>,
    /// `host` of each upstream.
    hosts: Vec<Option<HeaderValue>>,
    /// Dialects that upstreams configured as `auto` have shown, by index.
    recognised: DashMap<usize, Dialect>,
    /// Request bodies held in memory, in bytes.
    bodies_bytes: Arc<AtomicUsize>,
    draining: AtomicBool,
}

/// Parts that a gateway is made of.
pub(crate) struct Parts {
    pub(crate) id: String,
    pub(crate) config: Config,
    pub(crate) tariffs: Tariffs,
    pub(crate) tokenizers: Tokenizers,
    pub(crate) journal: Journal,
    pub(crate) telemetry: Arc<Telemetry>,
    pub(crate) background: tokio::runtime::Handle,
}

impl Gateway {
    /// Puts the parts together.
    pub(crate) fn new(parts: Parts) -> Self {
        let Parts { id, config, tariffs, tokenizers, journal, telemetry, background } = parts;
        let tls = config.upstreams.iter().any(|upstream| upstream.url.tls);
        let hosts = config
            .upstreams
            .iter()
            .map(|upstream| HeaderValue::try_from(upstream.url.authority()).ok());
        Self {
            id,
            directory: Directory::new(&config),
            dialer: Dialer::new(tls, config.limits.upstream_connect_timeout),
            counting: Arc::new(Semaphore::new(COUNTS_PENDING_MAX)),
            loading: AtomicBool::new(false),
            left_answers: Arc::new(Semaphore::new(LEFT_ANSWERS_MAX)),
            hosts: hosts.collect(),
            health: config.upstreams.iter().map(|_| Health::default()).collect(),
            started: clock::now(),
            started_at: clock::wall(),
            feeding: Arc::default(),
            live: Live::default(),
            recognised: DashMap::new(),
            bodies_bytes: Arc::default(),
            draining: AtomicBool::new(false),
            config,
            tariffs,
            tokenizers,
            journal,
            telemetry,
            background,
        }
    }

    /// The upstream at an index that `route` gave out.
    #[expect(clippy::indexing_slicing, reason = "indices come from `position` over this very list")]
    pub(crate) fn upstream(&self, index: usize) -> &Upstream {
        &self.config.upstreams[index]
    }

    /// How an upstream does.
    #[expect(clippy::indexing_slicing, reason = "as of `upstream`: there is one for each")]
    pub(crate) fn health(&self, index: usize) -> &Health {
        &self.health[index]
    }

    /// Entries of the ledger that the store does not have yet.
    pub(crate) fn pending_entries(&self) -> u64 {
        self.journal.sequence().saturating_sub(self.feeding.state().stored)
    }

    /// `host` of an upstream.
    pub(crate) fn host(&self, index: usize) -> Option<&HeaderValue> {
        self.hosts.get(index)?.as_ref()
    }

    /// The dialect of an upstream: as configured, or as it has shown.
    pub(crate) fn dialect(&self, index: usize) -> Dialect {
        match self.upstream(index).dialect {
            Dialect::Auto => self.recognised.get(&index).map_or(Dialect::Auto, |shown| *shown),
            known => known,
        }
    }

    /// `gen_ai.provider.name` of an upstream: as configured, or by the dialect that it has shown.
    pub(crate) fn provider(&self, index: usize) -> &str {
        let upstream = self.upstream(index);
        if upstream.dialect == Dialect::Auto && upstream.provider == Dialect::Auto.provider() {
            self.dialect(index).provider()
        } else {
            &upstream.provider
        }
    }

    /// An upstream has shown what it is, which is news where it is configured as `auto`.
    pub(crate) fn recognise(&self, index: usize, dialect: Dialect) {
        if dialect == Dialect::Auto || self.dialect(index) != Dialect::Auto {
            return;
        }
        if self.recognised.insert(index, dialect).is_none() {
            let upstream = &self.upstream(index).name;
            self.telemetry.emit(&UpstreamRecognised { upstream, provider: dialect.provider() });
        }
    }

    /// Loads a vocabulary where that delays no token. One at a time: whoever needs another one asks
    /// again.
    pub(crate) fn load(self: &Arc<Self>, tokenizer: Tokenizer) {
        if self.loading.swap(true, Relaxed) {
            return;
        }
        let gateway = self.clone();
        self.background.spawn_blocking(move || {
            gateway.guarded(|| tokenizer.load());
            gateway.loading.store(false, Relaxed);
        });
    }

    /// Counts; a panic in there ends no request, and is told of.
    pub(crate) fn guarded<T>(&self, count: impl FnOnce() -> T) -> Option<T> {
        guarded(&self.telemetry, count)
    }

    /// What is looked up when somebody asks for numbers.
    pub(crate) fn vitals(&self) -> Vitals {
        let (fed, entries) = (self.feeding.state(), self.journal.sequence());
        Vitals {
            entries,
            healthy: self.journal.is_healthy(),
            store_lag: fed.fed_at.map(|_| entries.saturating_sub(fed.stored)),
            log_lines_lost: self.telemetry.log.lost(),
            process: Footprint::now(),
        }
    }

    /// Readiness off, new requests refused.
    pub(crate) fn drain(&self) {
        self.draining.store(true, Relaxed);
    }

    /// Whether new requests are refused.
    pub(crate) fn is_draining(&self) -> bool {
        self.draining.load(Relaxed)
    }

    /// Request bodies held in memory, in bytes.
    pub(crate) fn bodies_bytes(&self) -> usize {
        self.bodies_bytes.load(Relaxed)
    }

    /// Counts a body against `bodies_total_bytes_max` while it is held.
    pub(crate) fn hold(&self) -> HeldBytes {
        HeldBytes {
            total: self.bodies_bytes.clone(),
            bytes_max: self.config.limits.bodies_total_bytes_max,
            bytes: 0,
        }
    }
}

/// Bytes of one body, counted while this lives.
#[derive(Debug, Default)]
pub(crate) struct HeldBytes {
    total: Arc<AtomicUsize>,
    bytes_max: usize,
    bytes: usize,
}

impl HeldBytes {
    /// More of the body has come.
    ///
    /// Errors: `Overloaded` when all bodies together are too large.
    pub(crate) fn add(&mut self, bytes: usize) -> Result<(), Refusal> {
        self.bytes += bytes;
        if self.total.fetch_add(bytes, Relaxed) + bytes > self.bytes_max {
            return Err(Refusal::Overloaded);
        }
        Ok(())
    }

    /// Hands the count on; nothing is left here.
    pub(crate) fn take(&mut self) -> Self {
        std::mem::take(self)
    }
}

impl Drop for HeldBytes {
    fn drop(&mut self) {
        self.total.fetch_sub(self.bytes, Relaxed);
    }
}

/// Runs `count`; a panic in there goes no further, and is told of.
fn guarded<T>(telemetry: &Telemetry, count: impl FnOnce() -> T) -> Option<T> {
    catch_unwind(AssertUnwindSafe(count))
        .inspect_err(|_| telemetry.emit(&CountSkipped { cause: "panic" }))
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::edge::clock;
    use crate::telemetry::Format as Exposed;
    use crate::telemetry::log::{Format, Log};

    #[test]
    fn a_count_that_panics_is_none_and_told_of() {
        let config = Config::zero("http://127.0.0.1:1").unwrap();
        let (emission, _) = config.emission(&|_| None);
        let log = Log::quiet(Format::Json).unwrap();
        let telemetry = Telemetry::new(log, &config, &emission, "g", clock::wall());
        let skipped = || {
            let vitals = Vitals::default();
            let metrics: String = telemetry.metrics.exposition(&vitals, Exposed::Text).collect();
            let mut lines = metrics.lines();
            lines.any(|line| {
                line.starts_with("taximeter_meter_counts_skipped_total{")
                    && line.ends_with("taximeter_cause=\"panic\"} 1")
            })
        };
        assert_eq!(guarded(&telemetry, || 7), Some(7));
        assert!(!skipped());
        assert_eq!(guarded(&telemetry, || -> u64 { panic!("the counter") }), None);
        assert!(skipped());
    }
}
