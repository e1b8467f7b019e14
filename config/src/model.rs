//! What the program may trust. Built only by the reader of the file, or from flags by the same
//! checks.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use ipnet::IpNet;
use jiff::tz::TimeZone;
use rust_decimal::Decimal;
use taximeter_meter::{Dialect, UsageAsk};
use taximeter_pricing::{Allowance, Currency, Dated, ExchangeRate, GpuPrice};

use crate::access_log::AccessLog;
use crate::content::Content;
use crate::ledger::{Durability, OnDamage, OnUnavailable};
use crate::limits::Limits;
use crate::sampling::TraceKeys;
use crate::secret::Secret;

/// Where metrics and health are, unless somebody says so.
pub const ADMIN_DEFAULT: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 9464);

/// A valid configuration.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// Where clients connect.
    pub listen: SocketAddr,
    /// What their connections are secured with.
    pub tls: Option<Tls>,
    /// Metrics, health.
    pub admin: SocketAddr,
    /// What callers of the admin address must show, unless they have a certificate. One of the two is
    /// there when that address is not loopback.
    pub admin_token: Option<Secret>,
    /// What connections to the admin address are secured with; who shows a certificate of its
    /// `client_ca` needs no token.
    pub admin_tls: Option<Tls>,
    /// Journal and store.
    pub data_dir: PathBuf,
    /// Threads that carry requests; by default one per core, at most 4.
    pub workers: usize,
    /// In order of preference: the first whose `models` match serves.
    pub upstreams: Vec<Upstream>,
    /// Who may call.
    pub tenants: Tenants,
    /// In order of preference: the first whose `models` match counts.
    pub tokenizers: Vec<TokenizerFile>,
    /// What tokens cost.
    pub prices: Prices,
    /// How bills are made.
    pub billing: Billing,
    /// How the ledger is written.
    pub ledger: Ledger,
    /// Where the ledger is sent to.
    pub export: Export,
    /// What is emitted.
    pub telemetry: Telemetry,
    /// `x-taximeter-tokens`, `x-taximeter-cost` on answers.
    pub receipts: bool,
    /// Forward unknown paths, recorded as unknown.
    pub passthrough: bool,
    /// Labels of the place, put on every record (`k8s.pod.name` …).
    pub resource: BTreeMap<String, String>,
    /// Named limits.
    pub limits: Limits,
}

impl Config {
    /// `url.scheme` of what clients ask.
    #[must_use]
    pub const fn scheme(&self) -> &'static str {
        if self.tls.is_some() { "https" } else { "http" }
    }

    /// Whether the admin address asks who somebody is.
    pub(crate) fn admin_is_guarded(&self) -> bool {
        let by_certificate = self.admin_tls.as_ref().is_some_and(|tls| tls.client_ca.is_some());
        self.admin_token.is_some() || by_certificate
    }

    /// The defaults, in front of `upstreams`.
    pub(crate) fn before(upstreams: Vec<Upstream>) -> Self {
        // One thread a core, but not more than what one engine gives can use.
        const WORKERS_MAX: usize = 4;
        let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 8080)),
            tls: None,
            admin: ADMIN_DEFAULT,
            admin_token: None,
            admin_tls: None,
            data_dir: PathBuf::from("./taximeter-data"),
            workers: cores.min(WORKERS_MAX),
            upstreams,
            tenants: Tenants::default(),
            tokenizers: Vec::new(),
            prices: Prices::default(),
            billing: Billing::default(),
            ledger: Ledger::default(),
            export: Export::default(),
            telemetry: Telemetry::default(),
            receipts: true,
            passthrough: false,
            resource: BTreeMap::new(),
            limits: Limits::default(),
        }
    }
}

/// Files, in PEM, that connections are secured with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tls {
    /// Our certificate, and those between it and its authority.
    pub cert: PathBuf,
    /// Its key.
    pub key: PathBuf,
    /// Authorities of callers' certificates; `None` asks for none.
    pub client_ca: Option<PathBuf>,
}

/// One engine or provider.
#[derive(Debug, Clone, PartialEq)]
pub struct Upstream {
    /// Unique name.
    pub name: String,
    /// Where it is.
    pub url: UpstreamUrl,
    /// Its habits.
    pub dialect: Dialect,
    /// `gen_ai.provider.name`.
    pub provider: String,
    /// What its streams are asked to say of usage, where the dialect can be asked so.
    pub usage: UsageAsk,
    /// Which models it serves.
    pub models: Vec<ModelPattern>,
    /// What we show it; `None` sends none.
    pub credential: Option<Secret>,
    /// Hand the client's own credential on.
    pub forward_credential: bool,
    /// Count what it reports too, where our count is exact.
    pub recount: bool,
    /// What becomes of an answer whose client leaves within it.
    pub on_client_left: OnClientLeft,
    /// What it runs on, where its requests owe a share of that in place of a price a token: one
    /// after the other.
    pub gpus: Vec<GpuPrice>,
}

/// What becomes of an answer whose client leaves within it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OnClientLeft {
    /// The engine's work is cancelled.
    #[default]
    Cancel,
    /// It is read on, for the usage at its end.
    Drain,
}

/// `http://host:port/prefix` or `https://…`, taken apart.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct UpstreamUrl {
    /// TLS or not.
    pub tls: bool,
    /// Name or address, without brackets.
    pub host: String,
    /// Port.
    pub port: u16,
    /// Path in front of the route, without a final slash; a final `/v1` is dropped since routes
    /// bring it.
    pub prefix: String,
}

/// A glob over model names: `*` is any run of characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelPattern(pub(crate) String);

/// A vocabulary, and for whom it counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenizerFile {
    /// Which models it counts for.
    pub models: Vec<ModelPattern>,
    /// A file, or a folder with one in it.
    pub path: PathBuf,
    /// Whether the models' own vocabulary is another.
    pub estimated: bool,
}

/// Who may call.
#[derive(Debug, Clone, PartialEq)]
pub struct Tenants {
    /// Callers without a credential.
    pub unknown: UnknownCaller,
    /// API keys, by hash.
    pub keys: Vec<ApiKey>,
    /// A header that trusted peers may set.
    pub header: Option<TrustedHeader>,
    /// With whom something is agreed.
    pub list: Vec<Tenant>,
}

/// Everyone is the tenant `default`.
impl Default for Tenants {
    fn default() -> Self {
        let unknown = UnknownCaller::Tenant("default".to_owned());
        Self { unknown, keys: Vec::new(), header: None, list: Vec::new() }
    }
}

/// Callers without a credential.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UnknownCaller {
    /// 401.
    Refuse,
    /// Served as this tenant.
    Tenant(String),
}

/// One API key.
#[derive(Debug, Clone, PartialEq)]
pub struct ApiKey {
    /// Unique, shown in records.
    pub id: String,
    /// Who pays.
    pub tenant: String,
    /// SHA-256 of the key.
    pub sha256: [u8; 32],
    /// Kept on records.
    pub labels: BTreeMap<String, String>,
}

/// What is agreed with one tenant.
#[derive(Debug, Clone, PartialEq)]
pub struct Tenant {
    /// Unique.
    pub name: String,
    /// What list prices are multiplied with: 0.9 is a discount of 10 %.
    pub factors: Dated<Decimal>,
    /// File of fixed prices.
    pub prices: Option<PathBuf>,
    /// What is free each month that begins on a day, in the zone of the bills.
    pub allowance: Option<Dated<Allowance>>,
    /// Requests that run at once; `None` leaves it to the limit for everybody.
    pub concurrency: Option<usize>,
}

/// A header that names the tenant, believed from these peers only.
#[derive(Debug, Clone, PartialEq)]
pub struct TrustedHeader {
    /// Lower case.
    pub name: String,
    /// Networks.
    pub trusted_peers: Vec<IpNet>,
}

/// What tokens cost.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Prices {
    /// Of costs and bills.
    pub currency: Currency,
    /// What other currencies are worth in it.
    pub exchange: Vec<ExchangeRate>,
    /// Files laid over the built-in book, or folders of them.
    pub overrides: Vec<PathBuf>,
    /// Models without a price.
    pub unknown: UnknownPrice,
}

/// How bills are made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Billing {
    /// Whose months, days and hours bills are of; it has a name.
    pub zone: TimeZone,
}

impl Default for Billing {
    fn default() -> Self {
        Self { zone: TimeZone::UTC }
    }
}

/// Models without a price.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum UnknownPrice {
    /// Served; cost unknown.
    #[default]
    Meter,
    /// 400 `unknown_price`.
    Refuse,
}

/// How the ledger is written.
#[derive(Debug, Clone, PartialEq)]
pub struct Ledger {
    /// When an entry counts as written.
    pub durability: Durability,
    /// A journal that is damaged before its end.
    pub recovery: OnDamage,
    /// A ledger that cannot be written.
    pub unavailable: OnUnavailable,
    /// How long the journal is kept once the store has it, in days.
    pub keep_days: u32,
    /// What the data directory may take, in bytes; `None` where nobody says.
    pub dir_bytes_max: Option<usize>,
    /// Where requests can be asked for and bills come from.
    pub store: Store,
}

impl Default for Ledger {
    fn default() -> Self {
        Self {
            durability: Durability::default(),
            recovery: OnDamage::default(),
            unavailable: OnUnavailable::default(),
            // A year, and a month to find out that it is needed.
            keep_days: 400,
            dir_bytes_max: None,
            store: Store::default(),
        }
    }
}

/// Where the ledger is sent to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Export {
    /// A receiver of CloudEvents.
    pub push: Option<Push>,
}

/// A receiver of CloudEvents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Push {
    /// Where batches are posted; `prefix` is the whole path.
    pub url: UpstreamUrl,
    /// What it is shown.
    pub token: Option<Secret>,
    /// Events in one batch.
    pub batch_max: usize,
}

/// Where requests can be asked for and bills come from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Store {
    /// A file in the data directory.
    #[default]
    Sqlite,
    /// A database that several gateways share.
    Postgres(Box<PostgresUrl>),
}

/// Where a PostgreSQL database is, and how to get in. Shown without the password.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PostgresUrl {
    /// Role.
    pub user: String,
    /// None where the server asks for none.
    pub password: Option<Secret>,
    /// Name or address without brackets; the folder of the server's socket begins with `/`.
    pub host: String,
    /// Port, also of a socket.
    pub port: u16,
    /// Database.
    pub database: String,
    /// Whether the connection is encrypted, and the server known.
    pub tls: PostgresTls,
    /// Whom to trust, in PEM; the system's authorities by default.
    pub root_certificates: Option<PathBuf>,
}

/// `sslmode`, as libpq means it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum PostgresTls {
    /// Never encrypted.
    Disable,
    /// Encrypted where the server can; whoever it is.
    #[default]
    Prefer,
    /// Encrypted; whoever the server is.
    Require,
    /// Encrypted, and the server has a certificate for its name.
    VerifyFull,
}

/// What is emitted, as far as the file says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Telemetry {
    /// Generation of the GenAI conventions; `None` leaves it to the environment.
    pub genai: Option<GenAi>,
    /// Tenants that get a label of their own; the rest share `other`.
    pub tenants_max: usize,
    /// Whether `/metrics` names the instrumentation scope on each series.
    pub scope_labels: bool,
    /// Whether histograms have native buckets too, for scrapes in Prometheus' protobuf.
    pub native_histograms: bool,
    /// Which requests have a line in the log.
    pub access_log: AccessLog,
    /// Where it is pushed to; what is `None` is left to the environment.
    pub otlp: OtlpKeys,
    /// Which requests have spans; `None` leaves it to the environment.
    pub traces: Option<TraceKeys>,
    /// What of prompts and answers is put on spans.
    pub content: Arc<Content>,
}

impl Default for Telemetry {
    fn default() -> Self {
        Self {
            genai: None,
            tenants_max: 500,
            scope_labels: true,
            native_histograms: false,
            access_log: AccessLog::default(),
            otlp: OtlpKeys::default(),
            traces: None,
            content: Arc::default(),
        }
    }
}

/// A generation of the OpenTelemetry GenAI conventions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum GenAi {
    /// As released with v1.41: what most dashboards read today.
    #[default]
    V1_41,
    /// As their own repository has them since.
    Latest,
    /// Each under its own names.
    Both,
}

/// How OTLP travels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OtlpProtocol {
    /// gRPC over HTTP/2.
    Grpc,
    /// Protobuf over HTTP/1.1.
    HttpProtobuf,
}

/// What a pushed number counts from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Temporality {
    /// The start of the gateway.
    #[default]
    Cumulative,
    /// The push before.
    Delta,
}

/// Which buckets pushed histograms have.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum HistogramBuckets {
    /// Those of the conventions.
    #[default]
    Explicit,
    /// Those whose bounds grow by a factor.
    Exponential,
}

/// A certificate that is shown to a server, and its key: files in PEM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientCertificate {
    /// The certificate, with those between it and one that is trusted.
    pub cert: PathBuf,
    /// Its key.
    pub key: PathBuf,
}

/// `telemetry.otlp`, as far as the file says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OtlpKeys {
    /// The collector; over HTTP, what stands in front of `/v1/metrics` and the like.
    pub endpoint: Option<UpstreamUrl>,
    /// How it travels.
    pub protocol: Option<OtlpProtocol>,
    /// Sent with each push.
    pub headers: Option<BTreeMap<String, Secret>>,
    /// Whether it is compressed.
    pub gzip: Option<bool>,
    /// Time for one push.
    pub timeout: Option<Duration>,
    /// A file of certificates that are trusted in place of the system's.
    pub ca: Option<PathBuf>,
    /// What is shown to a collector that asks who pushes.
    pub client: Option<ClientCertificate>,
    /// Time between two pushes of metrics.
    pub interval: Option<Duration>,
    /// What their numbers count from.
    pub temporality: Option<Temporality>,
    /// Which buckets their histograms have.
    pub histograms: Option<HistogramBuckets>,
    /// Whether log lines are pushed as well.
    pub logs: Option<bool>,
}
