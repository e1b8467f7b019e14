//! `/api/v1/status`: how the gateway does. Answers whatever else does not.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use jiff::Timestamp;
use serde::Serialize;
use serde_json::Number;
use taximeter_config::{Durability, Store, UpstreamUrl};
use taximeter_gateway::gateway::Gateway;
use taximeter_gateway::live::Ride;
use taximeter_gateway::reload::{InForce, Rejected};
use taximeter_journal::Segments;
use taximeter_meter::Dialect;
use taximeter_system::clock;
use taximeter_telemetry::exports::Export;
use utoipa::ToSchema;

use super::problem::Refused;
use super::query::{Asked, Nothing};

/// How the gateway does.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Status {
    pub(super) version: &'static str,
    /// Its name on records.
    pub(super) gateway: String,
    pub(super) started_at: Timestamp,
    pub(super) uptime_seconds: f64,
    /// Whether it was told to end: it is not ready, and refuses requests once its grace is over.
    pub(super) draining: bool,
    /// Whether they are because memory is short.
    pub(super) short_of_memory: bool,
    pub(super) config: ConfigStatus,
    pub(super) requests: RequestsStatus,
    /// In order of preference.
    pub(super) upstreams: Vec<UpstreamStatus>,
    pub(super) ledger: LedgerStatus,
    pub(super) store: StoreStatus,
    /// Where requests are sent to as they end.
    pub(super) exporters: Vec<Exporter>,
    /// Where telemetry is pushed to, by signal.
    pub(super) collectors: Vec<Collector>,
    /// In force, by their names in the configuration: bytes, seconds or how many.
    #[schema(value_type = BTreeMap<String, f64>)]
    pub(super) limits: BTreeMap<&'static str, Number>,
}

/// Whether what is in the configuration's file is in force.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ConfigStatus {
    /// Since when the one in force is.
    pub(super) since: Timestamp,
    /// Keys that have other values in the file, and wait for a restart.
    #[schema(value_type = Vec<String>)]
    pub(super) waiting: Vec<&'static str>,
    /// Why what is in the file now is not in force; null when it is.
    pub(super) rejected: Option<ConfigRejection>,
}

/// A file that was not taken.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ConfigRejection {
    pub(super) at: Timestamp,
    /// What is wrong with it, each with its place.
    pub(super) problems: Vec<String>,
}

/// What is running.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct RequestsStatus {
    /// All that are on the ledger and not settled.
    pub(super) open: usize,
    /// Those that asked for a stream.
    pub(super) open_streams: usize,
    /// Request bodies held in memory.
    pub(super) bodies_bytes: usize,
}

/// How one upstream does, by what requests have met: it is not asked.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct UpstreamStatus {
    pub(super) name: String,
    /// Without what is secret.
    pub(super) url: String,
    /// `gen_ai.provider.name`.
    pub(super) provider: String,
    /// As configured.
    #[schema(value_type = String)]
    pub(super) dialect: Dialect,
    /// What an upstream configured as `auto` has shown itself to be; null before, and elsewhere.
    #[schema(value_type = Option<String>)]
    pub(super) recognised: Option<Dialect>,
    pub(super) open_requests: usize,
    /// `unknown` before the first request, `answering` when the last one was answered, `failing`
    /// when it was not.
    pub(super) health: &'static str,
    /// The last answer below 500; null before.
    pub(super) answered_at: Option<Timestamp>,
    /// Failures in a row, up to now.
    pub(super) failures: u64,
    /// The last failure, however long ago.
    pub(super) last_failure: Option<UpstreamFailure>,
}

/// A request that an upstream has failed.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct UpstreamFailure {
    pub(super) at: Timestamp,
    /// `upstream_connect`, `upstream_timeout`, `upstream_reset`, `upstream_protocol`, `status_5xx`;
    /// within an answer how it ended, `upstream_stalled` and so on.
    pub(super) cause: &'static str,
}

/// How the ledger does.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct LedgerStatus {
    /// When an entry counts as written: `os`, `group` or `sync`.
    pub(super) durability: &'static str,
    /// Whether requests can be reserved.
    pub(super) is_open: bool,
    /// Whether entries are written.
    pub(super) is_healthy: bool,
    /// Sequence number of the last entry that is written.
    pub(super) entries: u64,
    /// The last of them that the disk is known to have; null before the first sync and with
    /// `durability: os`.
    pub(super) synced_entries: Option<u64>,
    pub(super) last_sync_at: Option<Timestamp>,
    /// Entries that wait to be written, in bytes.
    pub(super) queued_bytes: usize,
    /// Entries since the start that were not taken: their requests are missing on bills.
    pub(super) lost_entries: u64,
    /// Files; null where the directory cannot be read.
    pub(super) segments: Option<u64>,
    /// Of all files.
    pub(super) bytes: Option<u64>,
}

/// How the store does, which answers questions and makes bills.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct StoreStatus {
    /// `sqlite` or `postgres`.
    pub(super) kind: &'static str,
    /// Without what is secret.
    pub(super) place: String,
    /// Entries of this gateway's ledger that it does not have yet.
    pub(super) pending_entries: u64,
    /// When it last had all that there was.
    pub(super) fed_at: Option<Timestamp>,
    /// Why it does not take what is new; null when it does.
    pub(super) fault: Option<String>,
}

/// A receiver.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Exporter {
    /// `cloudevents`.
    pub(super) kind: &'static str,
    /// Without what is secret.
    pub(super) url: String,
}

/// How the pushing of one signal does, by OTLP.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Collector {
    /// `metrics`, `traces` or `logs`.
    pub(super) signal: &'static str,
    /// Without what is secret.
    pub(super) url: String,
    /// `grpc` or `http/protobuf`.
    pub(super) protocol: &'static str,
    /// When it last took something; null before.
    pub(super) sent_at: Option<Timestamp>,
    /// Data points, spans or log records since the start: those that it took.
    pub(super) sent_items: u64,
    /// Those that it did not want.
    pub(super) rejected_items: u64,
    /// Those that were not sent.
    pub(super) dropped_items: u64,
    /// Requests with spans, or log records, that wait for it.
    pub(super) waiting: usize,
    /// Times in a row, up to now, that it could not be reached or took nothing.
    pub(super) failures: u64,
    /// The last of them, however long ago.
    pub(super) last_failure: Option<CollectorFailure>,
}

/// A push that a collector did not take.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct CollectorFailure {
    pub(super) at: Timestamp,
    pub(super) reason: String,
}

/// How the gateway does
#[utoipa::path(get, path = "/api/v1/status", tag = "status", responses(
    (status = 200, description = "How it does", body = Status),
    Refused,
))]
pub(super) async fn status(
    State(gateway): State<Arc<Gateway>>,
    Asked(Nothing {}): Asked<Nothing>,
) -> Json<Status> {
    let rides = gateway.live.rides();
    let config = &gateway.config;
    let upstreams = 0..config.upstreams.len();
    // The disk may be slow, and this thread has others to answer.
    let journal = gateway.journal.clone();
    let segments = tokio::task::spawn_blocking(move || journal.segments().ok()).await;
    let push = config.export.push.as_ref();
    let url = |url: &UpstreamUrl| Exporter { kind: "cloudevents", url: shown(url) };
    Json(Status {
        version: env!("CARGO_PKG_VERSION"),
        gateway: gateway.id.clone(),
        started_at: gateway.started_at,
        uptime_seconds: (clock::now() - gateway.started).as_secs_f64(),
        draining: gateway.is_leaving(),
        short_of_memory: gateway.memory.is_tight(),
        config: config_status(&gateway),
        requests: RequestsStatus {
            open: rides.len(),
            open_streams: rides.iter().filter(|ride| ride.boarding.stream).count(),
            bodies_bytes: gateway.bodies_bytes(),
        },
        upstreams: upstreams.map(|index| upstream(&gateway, index, &rides)).collect(),
        ledger: ledger(&gateway, segments.ok().flatten()),
        store: store(&gateway),
        exporters: push.map(|push| url(&push.url)).into_iter().collect(),
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
    let InForce { since, waiting, rejected } = gateway.in_force().clone();
    let rejected = rejected.map(|Rejected { at, problems }| ConfigRejection { at, problems });
    ConfigStatus { since, waiting, rejected }
}

fn upstream(gateway: &Gateway, index: usize, rides: &[Arc<Ride>]) -> UpstreamStatus {
    let (upstream, known) = (gateway.upstream(index), gateway.health(index).known());
    let shown_dialect = gateway.dialect(index);
    let recognised = upstream.dialect == Dialect::Auto && shown_dialect != Dialect::Auto;
    let is_here = |ride: &&Arc<Ride>| *ride.boarding.upstream == *upstream.name;
    UpstreamStatus {
        name: upstream.name.clone(),
        url: shown(&upstream.url),
        provider: gateway.provider(index).to_owned(),
        dialect: upstream.dialect,
        recognised: recognised.then_some(shown_dialect),
        open_requests: rides.iter().filter(is_here).count(),
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

fn shown(url: &UpstreamUrl) -> String {
    let scheme = if url.tls { "https" } else { "http" };
    format!("{scheme}://{}{}", url.authority(), url.prefix)
}

fn ledger(gateway: &Gateway, segments: Option<Segments>) -> LedgerStatus {
    let (journal, state) = (&gateway.journal, gateway.journal.state());
    let entries = journal.sequence();
    LedgerStatus {
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
        segments: segments.map(|segments| segments.count),
        bytes: segments.map(|segments| segments.bytes),
    }
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
    let mut limits: BTreeMap<_, _> = gateway.config.limits.values().into_iter().collect();
    // Where the file does not set these two, the memory of the container does.
    limits.insert("bodies_total_bytes_max", Some(Number::from(gateway.bodies_bytes_max())));
    limits.insert("memory_bytes_max", gateway.memory_bytes_max().map(Number::from));
    limits.into_iter().filter_map(|(name, limit)| Some((name, limit?))).collect()
}
