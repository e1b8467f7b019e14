//! `/api/v1/status`: the state of the gateway, its upstreams, its ledger and its store. It needs
//! neither the ledger nor the store to answer.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use jiff::Timestamp;
use serde::Serialize;
use serde_json::Number;
use taximeter_collections::Gather as _;
use taximeter_config::{Durability, Store, UpstreamUrl};
use taximeter_gateway::gateway::Gateway;
use taximeter_gateway::live::RunningRequest;
use taximeter_gateway::refused_questions::{Asked, RefusedMember};
use taximeter_gateway::reload::{InForce, Rejected};
use taximeter_journal::{ClockAhead, Identity, Segments};
use taximeter_meter::Dialect;
use taximeter_system::clock;
use taximeter_telemetry::exports::Export;
use utoipa::ToSchema;

use super::problem::ApiError;
use super::query::{NoParams, Params};

/// The state of the gateway.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Status {
    /// The version of Taximeter.
    pub(super) version: &'static str,
    /// The name of the gateway. Records have it too.
    pub(super) gateway: String,
    /// The start of the process.
    pub(super) started_at: Timestamp,
    /// Seconds since the start.
    pub(super) uptime_seconds: f64,
    /// Whether the gateway shuts down. It is not ready then. It refuses new requests after
    /// `drain_grace_seconds`.
    pub(super) draining: bool,
    /// Whether the gateway refuses requests because memory is short.
    pub(super) short_of_memory: bool,
    /// The configuration in force.
    pub(super) config: ConfigStatus,
    /// The requests that run now.
    pub(super) requests: RequestsStatus,
    /// The upstreams in order of preference.
    pub(super) upstreams: Vec<UpstreamStatus>,
    /// The ledger.
    pub(super) ledger: LedgerStatus,
    /// The store.
    pub(super) store: StoreStatus,
    /// Receivers of `export.push`. The gateway sends each request to them when it ends.
    pub(super) exporters: Vec<Exporter>,
    /// OTLP collectors, one for each signal.
    pub(super) collectors: Vec<Collector>,
    /// In force, by their names in the configuration: bytes, seconds or how many.
    #[schema(value_type = BTreeMap<String, f64>)]
    pub(super) limits: BTreeMap<&'static str, Number>,
}

/// The configuration in force.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ConfigStatus {
    /// Since when this configuration is in force.
    pub(super) since: Timestamp,
    /// Keys with a new value in the file that need a restart to take effect.
    #[schema(value_type = Vec<String>)]
    pub(super) waiting: Vec<&'static str>,
    /// Why the gateway rejects the file as it is now. Null if the file is in force.
    pub(super) rejected: Option<ConfigRejection>,
}

/// A configuration file that the gateway rejected.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ConfigRejection {
    /// When the gateway read the file.
    pub(super) at: Timestamp,
    /// Every mistake in the file, with its line and column.
    pub(super) problems: Vec<String>,
}

/// The requests that run now.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct RequestsStatus {
    /// Requests that are in the ledger and not settled.
    pub(super) open: usize,
    /// Those of them that ask for a stream.
    pub(super) open_streams: usize,
    /// Memory for request bodies, in bytes.
    pub(super) bodies_bytes: usize,
}

/// The state of an upstream. It comes from requests; the gateway sends no health checks.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct UpstreamStatus {
    /// The name of the upstream.
    pub(super) name: String,
    /// Its URL, without secrets.
    pub(super) url: String,
    /// `gen_ai.provider.name`.
    pub(super) provider: String,
    /// The dialect that the configuration names, by its key or by the host of the URL. `auto` if it
    /// names none.
    #[schema(value_type = String)]
    pub(super) dialect: Dialect,
    /// The engine that owns every model in the list of models, if the dialect is `auto`. Answers are
    /// read and priced as this dialect. Null if there is none.
    #[schema(value_type = Option<String>)]
    pub(super) recognised: Option<Dialect>,
    /// The dialect whose marks the answers have, if nothing names one. It decides only how streams
    /// are asked for usage, and later answers may change it. Null if there is none.
    #[schema(value_type = Option<String>)]
    pub(super) guessed: Option<Dialect>,
    /// Requests that the gateway does not ask for usage, because the engine refused that.
    pub(super) refused_questions: Vec<RefusedQuestion>,
    /// Requests to this upstream that run now.
    pub(super) open_requests: usize,
    /// `unknown` before the first request, `answering` if the last request got an answer,
    /// `failing` if it got none.
    pub(super) health: &'static str,
    /// The time of the last answer with a status below 500. Null before the first one.
    pub(super) answered_at: Option<Timestamp>,
    /// Failures since the last answer.
    pub(super) failures: u64,
    /// The last failure. Null before the first one.
    pub(super) last_failure: Option<UpstreamFailure>,
}

/// Requests whose engine refused the member by which the gateway asks for usage.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct RefusedQuestion {
    /// The path of the requests.
    pub(super) path: String,
    /// The model that they name. Null if they name none.
    pub(super) model: Option<String>,
    /// The member that the engine refused.
    pub(super) member: &'static str,
    /// When the gateway asks again.
    pub(super) until: Timestamp,
}

/// A request that failed at an upstream.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct UpstreamFailure {
    /// The time of the failure.
    pub(super) at: Timestamp,
    /// `upstream_connect`, `upstream_timeout`, `upstream_reset`, `upstream_protocol`, `status_429`,
    /// `status_5xx` or `credential`. If the answer had begun, the `end` of the request: `upstream_stalled` and so on.
    pub(super) cause: &'static str,
}

/// The state of the ledger.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct LedgerStatus {
    /// The id of the ledger: a UUID that is made with the data directory.
    pub(super) id: String,
    /// The ledgers that it is a copy of, by `taximeter backup`, the last one first.
    pub(super) copy_of: Vec<String>,
    /// When an entry counts as written: `os`, `group` or `sync`.
    pub(super) durability: &'static str,
    /// Whether the ledger takes entries of new requests.
    pub(super) is_open: bool,
    /// Whether the gateway can write entries to the disk.
    pub(super) is_healthy: bool,
    /// Sequence number of the last entry in the file.
    pub(super) entries: u64,
    /// Sequence number of the last entry that a sync covers. Null before the first sync, and with
    /// `durability: os`.
    pub(super) synced_entries: Option<u64>,
    /// The time of the last sync.
    pub(super) last_sync_at: Option<Timestamp>,
    /// Bytes of entries that wait for the disk.
    pub(super) queued_bytes: usize,
    /// Entries since the start that the gateway could not write. Bills lack their requests.
    pub(super) lost_entries: u64,
    /// Requests in the background whose usage is not known yet.
    pub(super) pending_requests: usize,
    /// Why nothing is removed because of `records_keep_days` at present. Null if it is.
    pub(super) retention_waits: Option<String>,
    /// Journal files. Null if the gateway cannot read the directory.
    pub(super) segments: Option<u64>,
    /// Bytes of all journal files. Null if the gateway cannot read the directory.
    pub(super) bytes: Option<u64>,
    /// Bytes that the data directory takes. Null until it was measured.
    pub(super) dir_bytes: Option<u64>,
    /// The most bytes that it may take: `ledger.dir_bytes_max`, or what it takes and the volume has
    /// left, whichever is less. Null until it is known, and if nothing limits it.
    pub(super) dir_bytes_max: Option<u64>,
    /// What is left of them, with the pages that the store has free. Null if that is not known.
    pub(super) dir_bytes_left: Option<u64>,
    /// Inodes that the volume has left. Null if it does not limit them.
    pub(super) inodes_left: Option<u64>,
    /// Bytes by which the data directory grows in a day, at the rate of the last one or two days;
    /// less than 0 if it shrinks. Null until that is known, which takes an hour.
    pub(super) bytes_a_day: Option<f64>,
    /// Days until it has no room for new requests, at that rate. Null while that is not known, while
    /// the directory does not grow, and if nothing limits it.
    pub(super) days_left: Option<f64>,
}

/// The state of the store. Bills, usage and records come from it.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct StoreStatus {
    /// `sqlite` or `postgres`.
    pub(super) kind: &'static str,
    /// The data directory, or the URL of the database without secrets.
    pub(super) place: String,
    /// Entries of this gateway's ledger that the store does not have yet.
    pub(super) pending_entries: u64,
    /// The last time at which the store had every entry.
    pub(super) fed_at: Option<Timestamp>,
    /// Why the store takes no new entries. Null if it does.
    pub(super) fault: Option<String>,
}

/// A receiver of `export.push`.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Exporter {
    /// The format: `cloudevents`.
    pub(super) kind: &'static str,
    /// The URL, without secrets.
    pub(super) url: String,
    /// What it lacks, counted once a minute while it is away or late. Null if it has all.
    pub(super) backlog: Option<Backlog>,
}

/// Requests that a receiver lacks.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Backlog {
    /// How many, at most: those that have used nothing are not sent.
    pub(super) requests: u64,
    /// The admission of the oldest one.
    pub(super) since: Timestamp,
    /// When the details of that one go, by its age or because the room ends, as far as that can be said
    /// now.
    pub(super) goes_at: Timestamp,
    /// Whether less than a week is left until then.
    pub(super) at_risk: bool,
}

/// An OTLP collector for one signal.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Collector {
    /// `metrics`, `traces` or `logs`.
    pub(super) signal: &'static str,
    /// The URL, without secrets.
    pub(super) url: String,
    /// `grpc` or `http/protobuf`.
    pub(super) protocol: &'static str,
    /// The last time that it accepted something. Null before the first time.
    pub(super) sent_at: Option<Timestamp>,
    /// Data points, spans or log records that it accepted since the start.
    pub(super) sent_items: u64,
    /// Items that it rejected.
    pub(super) rejected_items: u64,
    /// Items that the gateway dropped without sending them.
    pub(super) dropped_items: u64,
    /// Spans or log records that wait to be sent.
    pub(super) waiting: usize,
    /// Failed attempts since the last successful one.
    pub(super) failures: u64,
    /// The last failure. Null before the first one.
    pub(super) last_failure: Option<CollectorFailure>,
}

/// A failed attempt to send to a collector.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct CollectorFailure {
    /// The time of the attempt.
    pub(super) at: Timestamp,
    /// Why it failed.
    pub(super) reason: String,
}

/// The state of the gateway, its upstreams, its ledger and its store
#[utoipa::path(get, path = "/api/v1/status", tag = "status", responses(
    (status = 200, description = "The state", body = Status),
    ApiError,
))]
pub(super) async fn status(
    State(gateway): State<Arc<Gateway>>,
    Params(NoParams {}): Params<NoParams>,
) -> Json<Status> {
    let running = gateway.live.requests();
    let config = &gateway.config;
    let upstreams = 0..config.upstreams.len();
    // The disk may be slow, and this thread answers other clients too.
    let journal = gateway.journal.clone();
    let segments = tokio::task::spawn_blocking(move || journal.segments().ok()).await;
    let push = config.export.push.as_ref();
    let receiver = |url: &UpstreamUrl| {
        let backlog = gateway.telemetry.exports.push_backlog().map(|it| Backlog {
            requests: it.requests,
            since: it.since,
            goes_at: it.goes_at,
            at_risk: it.is_at_risk,
        });
        Exporter { kind: "cloudevents", url: shown(url), backlog }
    };
    Json(Status {
        version: env!("CARGO_PKG_VERSION"),
        gateway: gateway.id.clone(),
        started_at: gateway.started_at,
        uptime_seconds: (clock::now() - gateway.started).as_secs_f64(),
        draining: gateway.is_leaving(),
        short_of_memory: gateway.memory.is_tight(),
        config: config_status(&gateway),
        requests: RequestsStatus {
            open: running.len(),
            open_streams: running.iter().filter(|request| request.info.stream).count(),
            bodies_bytes: gateway.bodies_bytes(),
        },
        upstreams: upstreams.map(|index| upstream(&gateway, index, &running)).collect(),
        ledger: ledger(&gateway, segments.ok().flatten()),
        store: store(&gateway),
        exporters: push.map(|push| receiver(&push.url)).into_iter().collect(),
        collectors: collectors(&gateway),
        limits: limits(&gateway),
    })
}

fn collectors(gateway: &Gateway) -> Vec<Collector> {
    let collector = |export: Export| Collector {
        waiting: gateway.telemetry.waiting(export.signal),
        signal: export.signal,
        url: export.url,
        protocol: export.protocol,
        sent_at: export.sent_at,
        sent_items: export.sent,
        rejected_items: export.rejected,
        dropped_items: export.dropped,
        failures: export.failures,
        last_failure: export.last_failure.map(|(at, reason)| CollectorFailure { at, reason }),
    };
    gateway.telemetry.exports.all().into_iter().map(collector).collect()
}

fn config_status(gateway: &Gateway) -> ConfigStatus {
    let InForce { since, waiting, rejected, facts: _ } = gateway.in_force().clone();
    let rejected = rejected.map(|Rejected { at, problems }| ConfigRejection { at, problems });
    ConfigStatus { since, waiting, rejected }
}

fn upstream(gateway: &Gateway, index: usize, running: &[Arc<RunningRequest>]) -> UpstreamStatus {
    let (upstream, known) = (gateway.upstream(index), gateway.health(index).known());
    let dialect = gateway.known_dialect(index);
    let is_here = |request: &&Arc<RunningRequest>| *request.info.upstream == *upstream.name;
    UpstreamStatus {
        name: upstream.name.clone(),
        url: shown(&upstream.url),
        provider: gateway.provider(index).to_owned(),
        dialect: upstream.dialect,
        recognised: dialect.recognised(),
        guessed: dialect.guessed(),
        refused_questions: refused_questions(gateway, index),
        open_requests: running.iter().filter(is_here).count(),
        health: match known.is_healthy() {
            None => "unknown",
            Some(true) => "answering",
            Some(false) => "failing",
        },
        answered_at: known.answered_at,
        failures: known.failures,
        last_failure: known
            .last_failure
            .map(|failure| UpstreamFailure { at: failure.at, cause: failure.cause }),
    }
}

fn refused_questions(gateway: &Gateway, index: usize) -> Vec<RefusedQuestion> {
    let (now, wall) = (clock::now(), clock::wall());
    let told = |(Asked { path, model }, refused): (Asked, RefusedMember)| RefusedQuestion {
        path,
        model,
        member: refused.member,
        until: wall + refused.left(now),
    };
    gateway.refused_questions(index).all(now).into_iter().map(told).collect()
}

fn shown(url: &UpstreamUrl) -> String {
    let scheme = if url.tls { "https" } else { "http" };
    format!("{scheme}://{}{}", url.authority(), url.prefix)
}

fn ledger(gateway: &Gateway, segments: Option<Segments>) -> LedgerStatus {
    let (journal, state) = (&gateway.journal, gateway.journal.state());
    let entries = journal.sequence();
    let Identity { id, copy_of } = journal.identity();
    let (room, growth) = (gateway.disk_budget.room(), gateway.disk_budget.growth());
    LedgerStatus {
        id: id.to_string(),
        copy_of: copy_of.iter().map(ToString::to_string).collect(),
        durability: match gateway.config.ledger.durability {
            Durability::Os => "os",
            Durability::Group => "group",
            Durability::Sync => "sync",
        },
        is_open: gateway.takes_entries(),
        is_healthy: journal.is_healthy(),
        entries,
        synced_entries: state.synced.map(|(seq, _)| seq),
        last_sync_at: state.synced.map(|(_, at)| at),
        queued_bytes: state.queued_bytes,
        lost_entries: state.lost,
        pending_requests: state.pending,
        retention_waits: journal.age_wait().ahead().map(retention_waits),
        segments: segments.map(|segments| segments.count),
        bytes: segments.map(|segments| segments.bytes),
        dir_bytes: gateway.disk_budget.bytes(),
        dir_bytes_max: room.and_then(|room| room.bytes_max),
        dir_bytes_left: room.and_then(|room| room.bytes_left),
        inodes_left: room.and_then(|room| room.files_left),
        bytes_a_day: growth.map(|growth| growth.bytes_a_day.round()),
        days_left: growth.and_then(|growth| growth.days_left),
    }
}

fn retention_waits(ahead: ClockAhead) -> String {
    let ClockAhead { clock, newest, remaining } = ahead;
    let minutes = remaining.as_secs().div_ceil(60);
    format!(
        "the clock says {clock}, and the newest entry of the ledger is from {newest}: nothing is \
         removed by age until the clock was steady for another {minutes} minutes; check the clock"
    )
}

fn store(gateway: &Gateway) -> StoreStatus {
    let state = gateway.feeding.state();
    let (kind, place) = match &gateway.config.ledger.store {
        Store::Sqlite => ("sqlite", gateway.config.data_dir.display().to_string()),
        Store::Postgres(url) => ("postgres", url.to_string()),
    };
    let pending_entries = gateway.pending_entries();
    StoreStatus { kind, place, pending_entries, fed_at: state.fed_at, fault: state.fault }
}

/// Every limit in force by its name.
fn limits(gateway: &Gateway) -> BTreeMap<&'static str, Number> {
    let mut limits: BTreeMap<_, _> = gateway.config.limits.values().into_iter().gather();
    // Where the file does not set these two, the memory of the container does.
    limits.insert("bodies_total_bytes_max", Some(Number::from(gateway.bodies_bytes_max())));
    limits.insert("memory_bytes_max", gateway.memory_bytes_max().map(Number::from));
    limits.into_iter().filter_map(|(name, limit)| Some((name, limit?))).gather()
}
