//! A file → one valid `Config`, or every mistake with its line and column.
//!
//! `Raw*` is what the file says, with spans; `Config` is what the program may trust. Refuses to know sockets and
//! the runtime.

mod model;

pub use model::{
    ApiKey, Config, Durability, Ledger, Limits, ModelPattern, Prices, Secret, Telemetry, Tenants,
    TrustedHeader, UnknownCaller, UnknownPrice, Upstream, UpstreamUrl,
};
