//! A file → one valid `Config`, or every mistake with its line and column.
//!
//! `Raw*` is what the file says, with places; `Config` is what the program may trust. The way goes
//! text → tree (`yaml`) → `Raw*` (`reader`, `schema`, `values`) → `Config` (`check`); none of the
//! steps stops at a first mistake. Refuses to know sockets and the runtime: the environment and
//! files are functions that the caller gives.

mod check;
mod file;
mod flags;
mod mistake;
mod model;
mod money;
mod postgres;
mod prices;
mod reader;
mod schema;
mod terms;
#[cfg(test)]
mod tests;
mod upstream;
mod values;
mod yaml;

pub use file::CONFIG_BYTES_MAX;
pub use flags::Overrides;
pub use mistake::{Invalid, Mistake, Mistakes, Place};
pub use model::{
    ApiKey, Config, Durability, Export, Ledger, Limits, ModelPattern, OnClientLeft, OnDamage,
    OnUnavailable, PostgresTls, PostgresUrl, Prices, Push, Secret, Store, Telemetry, Tenant,
    Tenants, TokenizerFile, TrustedHeader, UnknownCaller, UnknownPrice, Upstream, UpstreamUrl,
};
pub use values::is_tenant_name;
