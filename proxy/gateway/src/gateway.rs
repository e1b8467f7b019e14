//! The state that requests share: of one configuration, and of the process.

use std::ops::Deref;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;

use http::HeaderValue;
use jiff::Timestamp;
use taximeter_config::{Config, Upstream};
use taximeter_dimensions::Names;
use taximeter_fleet::Board;
use taximeter_journal::Journal;
use taximeter_journal::disk_budget::DiskBudget;
use taximeter_ledger::TenantId;
use taximeter_meter::Dialect;
use taximeter_net::concurrency::ConcurrencyLimit;
use taximeter_net::upstream::Dialer;
use taximeter_store::feeder::Feeding;
use taximeter_system::clock;
use taximeter_system::memory::Memory;
use taximeter_telemetry::Telemetry;
use taximeter_telemetry::events::{CountSkipped, DialectGuessed, UpstreamRecognised};
use taximeter_tokenizer::Tokenizer;
use tokio::sync::{Semaphore, watch};

use crate::batch_files::BatchFiles;
use crate::chains::Chains;
use crate::contexts::Contexts;
use crate::health::Health;
use crate::heartbeat::WorkerHeartbeat;
pub use crate::held_bytes::HeldBytes;
pub(crate) use crate::held_bytes::HeldText;
use crate::journey::identify::tenant::Directory;
use crate::known_dialect::KnownDialect;
use crate::live::Live;
use crate::name_key::OwnNameKey;
use crate::permits::AdminPermits;
use crate::probes::Probes;
use crate::refusals::Refusals;
use crate::refused_questions::RefusedQuestions;
use crate::reload::InForce;
use crate::tariffs::Tariffs;
use crate::tokenizers::Tokenizers;

/// Prompts and answers that may wait to be counted; those beyond it are estimated by their bytes.
const COUNTS_PENDING_MAX: usize = 128;

/// Answers that are read on at once although their clients have left; the work for those beyond it
/// is cancelled.
const LEFT_ANSWERS_MAX: usize = 64;

/// What the requests share that were admitted under one configuration. A new one makes a new gateway;
/// requests that are running keep theirs.
///
/// It is also all of [`ProcessState`], which the gateways of one process share.
pub struct Gateway {
    /// The configuration.
    pub config: Config,
    /// Who may call, and as which tenant.
    pub directory: Directory,
    /// What a request costs each tenant.
    pub tariffs: Tariffs,
    /// The vocabularies that count.
    pub tokenizers: Tokenizers,
    /// By which names requests say what they are part of.
    pub names: Names,
    /// Opens connections to upstreams.
    pub dialer: Dialer,
    /// In the order of the configuration.
    upstream_states: Vec<Arc<UpstreamState>>,
    process: Arc<ProcessState>,
}

/// What lasts as long as the process.
pub struct ProcessState {
    /// Name of this gateway on records.
    pub id: String,
    /// The journal that every entry is written to.
    pub journal: Journal,
    /// How far the store is behind it.
    pub feeding: Arc<Feeding>,
    /// Requests that are running.
    pub live: Live,
    /// How large the contexts are that providers keep.
    pub contexts: Contexts,
    /// Which session earlier responses belong to.
    pub chains: Chains,
    /// The key of hashed names that the gateway has made itself, once it is needed.
    own_name_key: OwnNameKey,
    /// Which files have the results of batches.
    pub batch_files: BatchFiles,
    /// How many each tenant has, of those who may not have as many as they like.
    pub tenants: Arc<ConcurrencyLimit<TenantId>>,
    /// How much of it we may take, and whether there is little left.
    pub memory: Arc<Memory>,
    /// How full the data directory is.
    pub disk_budget: Arc<DiskBudget>,
    /// Whether the threads turn that carry requests.
    pub heartbeat: WorkerHeartbeat,
    /// Metrics, traces and logs.
    pub telemetry: Arc<Telemetry>,
    /// Where work runs that must not delay a token.
    pub background: tokio::runtime::Handle,
    /// A place for each answer that waits to be counted.
    pub counting: Arc<Semaphore>,
    /// A vocabulary is being loaded.
    loading: AtomicBool,
    /// A place for each answer that is read on although its client has left.
    pub(crate) left_answers: Arc<Semaphore>,
    /// What the admin address may do at once.
    pub admin: AdminPermits,
    /// What engines, GPUs and hosts tell.
    pub fleet: Arc<Board>,
    /// What is kept of that, once somebody has opened it.
    pub samples: OnceLock<Arc<taximeter_store::memory::Memory>>,
    /// Requests without a record.
    pub refusals: Refusals,
    /// When it started, by the monotonic clock.
    pub started: Instant,
    /// When it started, by the wall clock.
    pub started_at: Timestamp,
    /// Request bodies held in memory, in bytes.
    bodies_bytes: Arc<AtomicUsize>,
    leaving: AtomicBool,
    draining: AtomicBool,
    in_force: Mutex<InForce>,
    /// Those of the gateway that is in force.
    pub(crate) upstream_states: Mutex<Vec<Arc<UpstreamState>>>,
}

/// Parts that last as long as the process.
pub struct ProcessParts {
    /// The name of this gateway on records.
    pub id: String,
    /// The journal that every entry is written to.
    pub journal: Journal,
    /// Metrics, traces and logs.
    pub telemetry: Arc<Telemetry>,
    /// The runtime for work that must not delay a token.
    pub background: tokio::runtime::Handle,
}

/// What a configuration says, and what it was found to name.
pub struct Rules {
    /// The configuration.
    pub config: Config,
    /// What a request costs each tenant.
    pub tariffs: Tariffs,
    /// The vocabularies that count.
    pub tokenizers: Tokenizers,
}

/// An upstream as requests have found it, for as long as configurations leave it where it is.
#[derive(Debug, Default)]
pub(crate) struct UpstreamState {
    /// For its row among those that are running.
    pub(crate) name: Arc<str>,
    /// Requests that run there.
    running: Arc<AtomicUsize>,
    /// Its `host`.
    host: Option<HeaderValue>,
    pub(crate) health: Health,
    dialect: KnownDialect,
    refused_questions: RefusedQuestions,
    probes: Probes,
}

impl Gateway {
    /// A gateway that starts.
    pub fn new(rules: Rules, parts: ProcessParts) -> Self {
        let ProcessParts { id, journal, telemetry, background } = parts;
        let process = ProcessState {
            id,
            journal,
            feeding: Arc::default(),
            live: Live::default(),
            contexts: Contexts::default(),
            chains: Chains::default(),
            own_name_key: OwnNameKey::default(),
            batch_files: BatchFiles::default(),
            tenants: Arc::default(),
            memory: Arc::new(Memory::of_container()),
            disk_budget: Arc::default(),
            heartbeat: WorkerHeartbeat::new(rules.config.workers, clock::now()),
            telemetry,
            background,
            counting: Arc::new(Semaphore::new(COUNTS_PENDING_MAX)),
            loading: AtomicBool::new(false),
            left_answers: Arc::new(Semaphore::new(LEFT_ANSWERS_MAX)),
            admin: AdminPermits::default(),
            fleet: Arc::default(),
            samples: OnceLock::new(),
            refusals: Refusals::new(clock::now()),
            started: clock::now(),
            started_at: clock::wall(),
            bodies_bytes: Arc::default(),
            leaving: AtomicBool::new(false),
            draining: AtomicBool::new(false),
            in_force: Mutex::new(InForce::whole(clock::wall())),
            upstream_states: Mutex::default(),
        };
        Self::under(rules, Arc::new(process), |_| None)
    }

    /// The same gateway under other rules. What is known of an upstream stays known while its name,
    /// place and dialect stay.
    pub fn reconfigured(&self, rules: Rules) -> Self {
        let known = |upstream: &Upstream| self.upstream_states.get(self.same(upstream)?).cloned();
        Self::under(rules, self.process.clone(), known)
    }

    fn under(
        rules: Rules,
        process: Arc<ProcessState>,
        known: impl Fn(&Upstream) -> Option<Arc<UpstreamState>>,
    ) -> Self {
        let Rules { config, tariffs, tokenizers } = rules;
        let tls = config.upstreams.iter().any(|upstream| upstream.url.tls);
        let upstream_state = |upstream: &Upstream| {
            known(upstream).unwrap_or_else(|| {
                Arc::new(UpstreamState {
                    name: upstream.name.as_str().into(),
                    host: HeaderValue::try_from(upstream.url.authority()).ok(),
                    dialect: KnownDialect::new(upstream.dialect),
                    ..UpstreamState::default()
                })
            })
        };
        let upstream_states: Vec<_> = config.upstreams.iter().map(upstream_state).collect();
        process
            .upstream_states
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone_from(&upstream_states);
        let hasher = process.own_name_key.hasher(&config, &process.telemetry);
        Self {
            directory: Directory::new(&config),
            names: Names::new(&config.dimensions.settings(hasher)),
            dialer: Dialer::new(tls, config.limits.upstream_connect_timeout),
            upstream_states,
            tokenizers: tokenizers.within(config.limits.count_bytes_max),
            config,
            tariffs,
            process,
        }
    }

    /// The index here of an upstream of another configuration, if it is the same.
    pub fn same(&self, other: &Upstream) -> Option<usize> {
        self.config.upstreams.iter().position(|upstream| {
            upstream.name == other.name
                && upstream.url == other.url
                && upstream.dialect == other.dialect
        })
    }

    /// What outlasts its configuration.
    pub fn process(&self) -> &Arc<ProcessState> {
        &self.process
    }

    /// The upstream at an index that `route` gave out.
    #[expect(clippy::indexing_slicing, reason = "indices come from `position` over this very list")]
    pub fn upstream(&self, index: usize) -> &Upstream {
        &self.config.upstreams[index]
    }

    #[expect(clippy::indexing_slicing, reason = "as of `upstream`: there is one for each")]
    fn upstream_state(&self, index: usize) -> &UpstreamState {
        &self.upstream_states[index]
    }

    /// The name of an upstream, to be kept.
    pub(crate) fn upstream_name(&self, index: usize) -> Arc<str> {
        self.upstream_state(index).name.clone()
    }

    /// How many requests run at an upstream.
    pub fn running(&self, index: usize) -> &Arc<AtomicUsize> {
        &self.upstream_state(index).running
    }

    /// How an upstream does.
    pub fn health(&self, index: usize) -> &Health {
        &self.upstream_state(index).health
    }

    /// `host` of an upstream.
    pub fn host(&self, index: usize) -> Option<&HeaderValue> {
        self.upstream_state(index).host.as_ref()
    }

    /// The dialect of an upstream: as configured, or that of the engine that owns all its models.
    pub fn dialect(&self, index: usize) -> Dialect {
        self.known_dialect(index).named()
    }

    /// What is known of the dialect of an upstream.
    pub fn known_dialect(&self, index: usize) -> &KnownDialect {
        &self.upstream_state(index).dialect
    }

    /// Where an upstream has refused to be asked for usage.
    pub fn refused_questions(&self, index: usize) -> &RefusedQuestions {
        &self.upstream_state(index).refused_questions
    }

    /// What an upstream has just answered to probes.
    pub(crate) fn probes(&self, index: usize) -> &Probes {
        &self.upstream_state(index).probes
    }

    /// `gen_ai.provider.name` of an upstream: as configured, or by its dialect.
    pub fn provider(&self, index: usize) -> &str {
        let upstream = self.upstream(index);
        match self.known_dialect(index).recognised() {
            Some(dialect) if upstream.provider == Dialect::Auto.provider() => dialect.provider(),
            _ => &upstream.provider,
        }
    }

    /// An upstream has answered the question for its list of models, all of which `owner` owns.
    pub(crate) fn list_answered(&self, index: usize, owner: Option<Dialect>) {
        let known = self.known_dialect(index);
        if !known.list_answered(owner) {
            return;
        }
        match known.recognised() {
            Some(dialect) => {
                let upstream = &self.upstream(index).name;
                self.telemetry.emit(&UpstreamRecognised { upstream, provider: dialect.provider() });
            }
            None => self.guess(index, owner.unwrap_or_default()),
        }
    }

    /// An answer of an upstream had the marks of `dialect`. An aggregator's next one may have those
    /// of another.
    pub(crate) fn guess(&self, index: usize, dialect: Dialect) {
        if self.known_dialect(index).guess(dialect) {
            let upstream = &self.upstream(index).name;
            self.telemetry.emit(&DialectGuessed { upstream, dialect: dialect.as_str() });
        }
    }

    /// What the process may take of memory, in bytes, where anybody says so.
    pub fn memory_bytes_max(&self) -> Option<u64> {
        self.memory.limit(self.config.limits.memory_bytes_max)
    }

    /// All bodies held at once, in bytes.
    pub fn bodies_bytes_max(&self) -> usize {
        self.config.limits.bodies_total(self.memory_bytes_max())
    }

    /// Counts a body against `bodies_total_bytes_max` while it is held.
    pub(crate) fn hold(&self) -> HeldBytes {
        HeldBytes::of(self.bodies_bytes.clone(), self.bodies_bytes_max())
    }
}

impl Deref for Gateway {
    type Target = ProcessState;

    fn deref(&self) -> &ProcessState {
        &self.process
    }
}

impl ProcessState {
    /// Entries of the ledger that the store does not have yet.
    pub fn pending_entries(&self) -> u64 {
        self.journal.sequence().saturating_sub(self.feeding.state().stored)
    }

    /// Writes to the ledger how many requests had no record in the minutes that are over, or up to
    /// now.
    pub fn write_refusals(&self, up_to_now: bool) {
        self.refusals.write(&self.journal, &self.id, clock::wall(), up_to_now);
    }

    /// Loads a vocabulary where that delays no token. One at a time: whoever needs another one asks
    /// again.
    pub fn load(self: &Arc<Self>, tokenizer: Tokenizer) {
        if self.loading.swap(true, Relaxed) {
            return;
        }
        let process = self.clone();
        self.background.spawn_blocking(move || {
            process.guarded(|| tokenizer.load());
            process.loading.store(false, Relaxed);
        });
    }

    /// Counts; a panic in there ends no request, and is told of.
    pub(crate) fn guarded<T>(&self, count: impl FnOnce() -> T) -> Option<T> {
        guarded(&self.telemetry, count)
    }

    /// Whether requests can be reserved: what is written, and where to.
    pub fn takes_entries(&self) -> bool {
        self.journal.is_open() && !self.disk_budget.refuses()
    }

    /// Readiness off, and everything served.
    pub fn leave(&self) {
        self.leaving.store(true, Relaxed);
    }

    /// Whether nobody should come any more.
    pub fn is_leaving(&self) -> bool {
        self.leaving.load(Relaxed)
    }

    /// Readiness off, new requests refused.
    pub fn drain(&self) {
        self.leave();
        self.draining.store(true, Relaxed);
    }

    /// Whether new requests are refused.
    pub fn is_draining(&self) -> bool {
        self.draining.load(Relaxed)
    }

    /// What is known of the configuration.
    pub fn in_force(&self) -> MutexGuard<'_, InForce> {
        self.in_force.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Request bodies held in memory, in bytes.
    pub fn bodies_bytes(&self) -> usize {
        self.bodies_bytes.load(Relaxed)
    }
}

/// The gateway under the configuration that is in force.
#[derive(Clone)]
pub struct Current(watch::Receiver<Arc<Gateway>>);

impl Current {
    /// The first one, and where those after it are put.
    pub fn new(first: Arc<Gateway>) -> (watch::Sender<Arc<Gateway>>, Self) {
        let (replace, current) = watch::channel(first);
        (replace, Self(current))
    }

    /// The one that is in force now.
    pub fn get(&self) -> Arc<Gateway> {
        self.0.borrow().clone()
    }

    /// Whether there is another one than `newest` was last asked for.
    pub(crate) fn has_changed(&self) -> bool {
        self.0.has_changed().unwrap_or(false)
    }

    /// The one that is in force now.
    pub fn newest(&mut self) -> Arc<Gateway> {
        self.0.borrow_and_update().clone()
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
    use taximeter_telemetry::log::{Log, LogFormat};
    use taximeter_telemetry::{ExpositionFormat, Vitals};

    #[test]
    fn a_count_that_panics_is_none_and_told_of() {
        let config = Config::zero("http://127.0.0.1:1").unwrap();
        let (otel, _) = config.otel(&|_| None);
        let log = Log::quiet(LogFormat::Json).unwrap();
        let telemetry = Telemetry::new(log, &config, &otel, clock::wall());
        let skipped = || {
            let vitals = Vitals::default();
            let metrics = telemetry.metrics.exposition(&vitals, ExpositionFormat::Text, None);
            let metrics = String::from_utf8(metrics.flatten().collect()).unwrap();
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
