//! A file → one valid `Config`, or every mistake with its line and column.
//!
//! `Raw*` is what the file says, with places; `Config` is what the program may trust. The way goes
//! text → tree (`yaml`) → `Raw*` (`reader`, `schema`, `values`) → `Config` (`check`); none of the
//! steps stops at a first mistake. Refuses to know sockets and the runtime: the environment and
//! files are functions that the caller gives.

mod access_log;
mod check;
mod content;
mod described;
mod file;
mod flags;
mod json_schema;
mod ledger;
mod limits;
mod mistake;
mod model;
mod money;
mod numbers;
mod otel;
mod postgres;
mod prices;
mod reader;
#[cfg(test)]
mod reference;
mod running;
mod sampling;
mod schema;
mod secret;
mod terms;
#[cfg(test)]
mod tests;
mod tls;
mod upstream;
mod value;
mod values;
mod versions;
mod yaml;

pub use access_log::AccessLog;
pub use content::{Capture, Content, Pattern};
pub use file::CONFIG_BYTES_MAX;
pub use flags::Overrides;
pub use ledger::{Durability, OnDamage, OnUnavailable};
pub use limits::Limits;
pub use mistake::{Invalid, Mistake, Mistakes, Position};
pub use model::{
    ADMIN_DEFAULT, ApiKey, Billing, ClientCertificate, Config, Export, GenAi, HistogramBuckets,
    Ledger, ModelPattern, OnClientLeft, OtlpKeys, OtlpProtocol, PostgresTls, PostgresUrl, Prices,
    Push, Store, Telemetry, Temporality, Tenant, Tenants, Tls, TokenizerFile, TrustedHeader,
    UnknownCaller, UnknownPrice, Upstream, UpstreamUrl,
};
pub use otel::{Emission, Exporter, IgnoredVariable, LogsExport, MetricsExport, TracesExport};
pub use sampling::{Always, Ratio, Sampling, TraceKeys};
pub use secret::Secret;
pub use values::is_tenant_name;
