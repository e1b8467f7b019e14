//! Reads a configuration file. The result is one valid `Config`, or every mistake with its line and
//! column.
//!
//! A file passes through three steps: text → tree (`yaml`) → `Raw*` structs (`reader`, `schema`,
//! `values`) → `Config` (`check`). `Raw*` structs hold what the file says, with locations. `Config`
//! holds what the program may trust. No step stops at the first mistake.
//!
//! Each key is declared once: in `schema` and the files below it, `tls`, and, for limits, `limits`.
//! The JSON Schema (`json_schema`) and the reference page (`reference`) are made from these tables.
//!
//! The crate does no I/O: the caller passes functions that read environment variables and files.

mod access_log;
mod addresses;
mod admin_tokens;
mod check;
mod content;
mod cors;
mod described;
mod dimensions;
mod file;
mod flags;
mod fleet;
mod forward;
mod json_schema;
mod ledger;
mod limits;
mod literal;
mod mistake;
mod model;
mod money;
mod numbers;
mod otel;
mod otlp;
mod places;
mod postgres;
mod prices;
mod reader;
#[cfg(test)]
mod reference;
mod running;
mod sampling;
mod schema;
mod scrape_url;
mod secret;
mod terms;
#[cfg(test)]
mod tests;
mod tls;
mod upstream;
mod value;
mod values;
mod versions;

pub use access_log::AccessLog;
pub use addresses::Addresses;
pub use admin_tokens::{AdminRight, AdminToken};
pub use content::{Capture, Content, Pattern};
pub use cors::{Cors, Origin};
pub use dimensions::Dimensions;
pub use file::CONFIG_BYTES_MAX;
pub use flags::Overrides;
pub use fleet::{Engines, Fleet, FleetMemory, ScrapeUrl};
pub use forward::{Forward, ForwardCredential, HeaderPattern};
pub use ledger::{Durability, OnDamage, OnUnavailable};
pub use limits::Limits;
pub use mistake::{Invalid, Mistake, Mistakes, Position};
pub use model::{
    ADMIN_DEFAULT, ApiKey, Billing, ClientCertificate, Config, Export, GenAi, Ledger, ModelPattern,
    OnClientLeft, OtlpKeys, PostgresTls, PostgresUrl, Prices, Push, Store, Telemetry, Tenant,
    Tenants, Tls, TokenizerFile, TrustedHeader, UnknownCaller, UnknownPrice, Upstream, UpstreamUrl,
};
pub use otel::{Exporter, IgnoredVariable, LogsExport, MetricsExport, OtelSettings, TracesExport};
pub use otlp::{HistogramBuckets, OtlpProtocol, Temporality};
pub use sampling::{Always, Ratio, Sampling, TraceKeys};
pub use secret::Secret;
pub use upstream::is_public_host;
pub use values::is_tenant_name;
