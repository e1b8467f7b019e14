//! The valid configuration, which the program may trust. Only `check` builds it, from a file or
//! from flags.

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
use crate::addresses::Addresses;
use crate::admin_tokens::{AdminRight, AdminToken};
use crate::content::Content;
use crate::cors::Cors;
use crate::dimensions::Dimensions;
use crate::forward::{Forward, ForwardCredential};
use crate::ledger::{Durability, OnDamage, OnUnavailable};
use crate::limits::Limits;
use crate::otlp::{HistogramBuckets, OtlpProtocol, Temporality};
use crate::sampling::TraceKeys;
use crate::secret::Secret;

/// The default admin address.
pub const ADMIN_DEFAULT: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 9464);

/// A valid configuration.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// Where clients connect.
    pub listen: Addresses,
    /// TLS for client connections.
    pub tls: Option<Tls>,
    /// The addresses of metrics, health checks, API and console.
    pub admin: Addresses,
    /// The token of callers of the admin address. An address that is not loopback has a token, or
    /// `admin_tls` with `client_ca`.
    pub admin_token: Option<Secret>,
    /// Further tokens, with what each of them may do. `admin_token` may read.
    pub admin_tokens: Vec<AdminToken>,
    /// TLS for the admin address. A caller with a certificate that its `client_ca` has signed needs
    /// no token.
    pub admin_tls: Option<Tls>,
    /// The folder of the journal and the SQLite store.
    pub data_dir: PathBuf,
    /// Threads that carry requests; by default one per core, at most 4.
    pub workers: usize,
    /// In order of preference. The first whose `models` match serves.
    pub upstreams: Vec<Upstream>,
    /// Who may call.
    pub tenants: Tenants,
    /// In order of preference. The first whose `models` match counts.
    pub tokenizers: Vec<TokenizerFile>,
    /// Where requests say what they are part of.
    pub dimensions: Dimensions,
    /// What tokens cost.
    pub prices: Prices,
    /// How bills are made.
    pub billing: Billing,
    /// How the ledger is written.
    pub ledger: Ledger,
    /// Where records are sent.
    pub export: Export,
    /// Metrics, traces and logs.
    pub telemetry: Telemetry,
    /// Whether answers carry `x-taximeter-tokens` and `x-taximeter-cost`.
    pub receipts: bool,
    /// Whether unknown paths are forwarded, and recorded as unknown.
    pub passthrough: bool,
    /// The headers that stay behind, where an upstream says nothing else.
    pub forward: Forward,
    /// The web pages of other origins that may use the gateway. `None`: as the engines say.
    pub cors: Option<Cors>,
    /// What is read of engines, GPUs and hosts; `None` reads nothing.
    pub fleet: Option<crate::fleet::Fleet>,
    /// Labels on every record, such as `k8s.pod.name`.
    pub resource: BTreeMap<String, String>,
    /// Named limits.
    pub limits: Limits,
}

impl Config {
    /// The value of `url.scheme` for client requests.
    #[must_use]
    pub const fn scheme(&self) -> &'static str {
        if self.tls.is_some() { "https" } else { "http" }
    }

    /// Whether callers of the admin address need a token or a certificate.
    pub(crate) fn admin_is_guarded(&self) -> bool {
        let by_certificate = self.admin_tls.as_ref().is_some_and(|tls| tls.client_ca.is_some());
        self.reading_needs_token() || by_certificate
    }

    /// Whether callers of the admin address need a token that may read, unless they have a
    /// certificate.
    #[must_use]
    pub fn reading_needs_token(&self) -> bool {
        let may_read = |token: &AdminToken| token.may(AdminRight::Read);
        self.admin_token.is_some() || self.admin_tokens.iter().any(may_read)
    }

    /// The defaults with these upstreams.
    pub(crate) fn before(upstreams: Vec<Upstream>) -> Self {
        // One thread per core. One engine does not keep more than this busy.
        const WORKERS_MAX: usize = 4;
        let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        Self {
            listen: Addresses::one(SocketAddr::from((Ipv4Addr::LOCALHOST, 8080))),
            tls: None,
            admin: Addresses::one(ADMIN_DEFAULT),
            admin_token: None,
            admin_tokens: Vec::new(),
            admin_tls: None,
            data_dir: PathBuf::from("./taximeter-data"),
            workers: cores.min(WORKERS_MAX),
            upstreams,
            tenants: Tenants::default(),
            tokenizers: Vec::new(),
            dimensions: Dimensions::default(),
            prices: Prices::default(),
            billing: Billing::default(),
            ledger: Ledger::default(),
            export: Export::default(),
            telemetry: Telemetry::default(),
            receipts: true,
            passthrough: false,
            forward: Forward::default(),
            cors: None,
            fleet: None,
            resource: BTreeMap::new(),
            limits: Limits::default(),
        }
    }
}

/// The PEM files of a TLS server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tls {
    /// The certificate, and those between it and its authority.
    pub cert: PathBuf,
    /// The certificate's key.
    pub key: PathBuf,
    /// The authorities of callers' certificates. `None`: callers need no certificate.
    pub client_ca: Option<PathBuf>,
}

/// One engine or provider.
#[derive(Debug, Clone, PartialEq)]
pub struct Upstream {
    /// Unique name.
    pub name: String,
    /// Its base URL.
    pub url: UpstreamUrl,
    /// The engine's kind, as the key or the host of the URL names it.
    pub dialect: Dialect,
    /// `gen_ai.provider.name`.
    pub provider: String,
    /// The usage that its streams are asked for, if the dialect supports it.
    pub usage: UsageAsk,
    /// The models that it serves.
    pub models: Vec<ModelPattern>,
    /// The API key that Taximeter sends to it.
    pub credential: Option<Secret>,
    /// Whether the client's own credential is sent to it.
    pub forward_credential: ForwardCredential,
    /// The headers that stay behind, where it differs from the others.
    pub forward: Option<Forward>,
    /// Whether Taximeter also counts what it reports, where that count is exact.
    pub recount: bool,
    /// What happens to an answer whose client has left.
    pub on_client_left: OnClientLeft,
    /// Its GPUs, in the order of their days. Its requests owe a share of them in place of a price
    /// per token.
    pub gpus: Vec<GpuPrice>,
}

/// What happens to an answer whose client has left.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OnClientLeft {
    /// Taximeter cancels the engine's work.
    #[default]
    Cancel,
    /// Taximeter reads on, for the usage at its end.
    Drain,
}

/// The parts of `http://host:port/prefix` or `https://…`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct UpstreamUrl {
    /// TLS or not.
    pub tls: bool,
    /// Name or address, without brackets.
    pub host: String,
    /// Port.
    pub port: u16,
    /// Path in front of the route, without a final slash and without a final `/v1`: routes begin
    /// with `/v1`.
    pub prefix: String,
}

/// A glob over model names. `*` stands for any run of characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelPattern(pub(crate) String);

/// A vocabulary, and the models that it counts for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenizerFile {
    /// The models that it counts for.
    pub models: Vec<ModelPattern>,
    /// The file, or a folder with it.
    pub path: PathBuf,
    /// Whether the models have another vocabulary, so that counts are estimates.
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
    /// The terms of single tenants.
    pub list: Vec<Tenant>,
}

/// Every caller is the tenant `default`.
impl Default for Tenants {
    fn default() -> Self {
        let unknown = UnknownCaller::Tenant("default".to_owned());
        Self { unknown, keys: Vec::new(), header: None, list: Vec::new() }
    }
}

/// Callers without a credential.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UnknownCaller {
    /// Taximeter answers 401.
    Refuse,
    /// Served as this tenant.
    Tenant(String),
}

/// One API key.
#[derive(Debug, Clone, PartialEq)]
pub struct ApiKey {
    /// Unique, shown in records.
    pub id: String,
    /// The tenant that pays.
    pub tenant: String,
    /// SHA-256 of the key.
    pub sha256: [u8; 32],
    /// Labels on its records.
    pub labels: BTreeMap<String, String>,
}

/// The terms of one tenant.
#[derive(Debug, Clone, PartialEq)]
pub struct Tenant {
    /// Unique.
    pub name: String,
    /// The factors on list prices: 0.9 is a discount of 10 %.
    pub factors: Dated<Decimal>,
    /// A file of fixed prices.
    pub prices: Option<PathBuf>,
    /// What is free in each month, in the zone of the bills.
    pub allowance: Option<Dated<Allowance>>,
    /// The most requests that run at once; `None` leaves it to the general limit.
    pub concurrency: Option<usize>,
}

/// A header that names the tenant, from trusted peers only.
#[derive(Debug, Clone, PartialEq)]
pub struct TrustedHeader {
    /// Its name in lower case.
    pub name: String,
    /// The networks of these peers.
    pub trusted_peers: Vec<IpNet>,
}

/// What tokens cost.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Prices {
    /// The currency of costs and bills.
    pub currency: Currency,
    /// Exchange rates from other currencies.
    pub exchange: Vec<ExchangeRate>,
    /// Files whose prices replace those of the built-in book, or folders of them.
    pub overrides: Vec<PathBuf>,
    /// Models without a price.
    pub unknown: UnknownPrice,
}

/// How bills are made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Billing {
    /// The time zone of bills; it has an IANA name.
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
    /// Taximeter serves them at unknown cost.
    #[default]
    Meter,
    /// Taximeter answers 400 `unknown_price`.
    Refuse,
}

/// How the ledger is written.
#[derive(Debug, Clone, PartialEq)]
pub struct Ledger {
    /// When an entry counts as written.
    pub durability: Durability,
    /// What a start does with a journal that is damaged before its end.
    pub recovery: OnDamage,
    /// What happens to requests while the ledger cannot be written.
    pub unavailable: OnUnavailable,
    /// How long records of requests are kept, in days.
    pub records_keep_days: u32,
    /// The most bytes of the data directory; `None` is no limit.
    pub dir_bytes_max: Option<usize>,
    /// The database for questions and bills.
    pub store: Store,
}

impl Default for Ledger {
    fn default() -> Self {
        Self {
            durability: Durability::default(),
            recovery: OnDamage::default(),
            unavailable: OnUnavailable::default(),
            // A year, and a month to notice that a record is needed.
            records_keep_days: 400,
            dir_bytes_max: None,
            store: Store::default(),
        }
    }
}

/// Where records are sent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Export {
    /// A receiver of CloudEvents.
    pub push: Option<Push>,
}

/// A receiver of CloudEvents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Push {
    /// The URL for batches; `prefix` is the whole path.
    pub url: UpstreamUrl,
    /// The token that Taximeter sends.
    pub token: Option<Secret>,
    /// The most events in one batch.
    pub batch_max: usize,
}

/// The database for questions and bills.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Store {
    /// A file in the data directory.
    #[default]
    Sqlite,
    /// A database that several gateways share.
    Postgres(Box<PostgresUrl>),
}

/// The URL of a PostgreSQL database. Messages show it without the password.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PostgresUrl {
    /// Role.
    pub user: String,
    /// `None` where the server needs none.
    pub password: Option<Secret>,
    /// A name, an address without brackets, or the folder of a socket, which begins with `/`.
    pub host: String,
    /// Port, for a socket too.
    pub port: u16,
    /// Database.
    pub database: String,
    /// Whether the connection is encrypted, and the server's certificate checked.
    pub tls: PostgresTls,
    /// A PEM file with authorities; `None` trusts the system's.
    pub root_certificates: Option<PathBuf>,
}

/// `sslmode`, with libpq's meaning.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum PostgresTls {
    /// Never encrypted.
    Disable,
    /// Encrypted if the server can. The certificate is not checked.
    #[default]
    Prefer,
    /// Encrypted. The certificate is not checked.
    Require,
    /// Encrypted, and the server's certificate is for its name.
    VerifyFull,
}

/// `telemetry` as the file has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Telemetry {
    /// The generation of the GenAI conventions; `None` leaves it to the environment.
    pub genai: Option<GenAi>,
    /// The most tenants with their own label. Further ones share `other`.
    pub tenants_max: usize,
    /// Whether each series of `/metrics` names its instrumentation scope.
    pub scope_labels: bool,
    /// Whether histograms also have native buckets.
    pub native_histograms: bool,
    /// Which requests get a line in the log.
    pub access_log: AccessLog,
    /// The collector. What is `None` is left to the environment.
    pub otlp: OtlpKeys,
    /// Which requests have spans; `None` leaves it to the environment.
    pub traces: Option<TraceKeys>,
    /// Which texts of prompts and answers are captured.
    pub content: Arc<Content>,
}

impl Default for Telemetry {
    fn default() -> Self {
        Self {
            genai: None,
            tenants_max: 500,
            scope_labels: false,
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
    /// Release v1.41.
    #[default]
    V1_41,
    /// The current state of the conventions' repository.
    Latest,
    /// Both generations side by side.
    Both,
}

/// The PEM files of a TLS client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientCertificate {
    /// The certificate, and those between it and its authority.
    pub cert: PathBuf,
    /// The certificate's key.
    pub key: PathBuf,
}

/// `telemetry.otlp` as the file has it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OtlpKeys {
    /// The collector's URL; over HTTP, without `/v1/metrics` and the like.
    pub endpoint: Option<UpstreamUrl>,
    /// The protocol.
    pub protocol: Option<OtlpProtocol>,
    /// Headers of each push.
    pub headers: Option<BTreeMap<String, Secret>>,
    /// Whether pushes are compressed.
    pub gzip: Option<bool>,
    /// The time for one push and its answer.
    pub timeout: Option<Duration>,
    /// A file with the authorities to trust in place of the system's.
    pub ca: Option<PathBuf>,
    /// The client certificate for the collector.
    pub client: Option<ClientCertificate>,
    /// The time between two pushes of metrics.
    pub interval: Option<Duration>,
    /// What pushed numbers count from.
    pub temporality: Option<Temporality>,
    /// The buckets of pushed histograms.
    pub histograms: Option<HistogramBuckets>,
    /// Whether log lines are pushed too.
    pub logs: Option<bool>,
}
