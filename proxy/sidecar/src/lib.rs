//! A pod of Kubernetes → the same pod with the gateway in it, as a native sidecar.
//!
//! One function says what the pod should be ([`inject()`]); the difference to what it was is a JSON
//! Patch ([`patch`]), which answers an admission review ([`Reviewer`]) or is written into a
//! manifest's text where it belongs ([`manifest`]), so that comments and order stay. Injecting twice
//! changes nothing. Refuses to know sockets, files and clusters.

mod beside;
mod configuration;
mod container;
mod inject;
pub mod manifest;
mod options;
pub mod patch;
mod pod;
mod quantity;
mod review;
#[cfg(test)]
mod sample;
mod unfit;
mod yaml;

pub use inject::{Injected, inject};
pub use options::{Beside, Sidecar, Tenant, drain_seconds};
pub use quantity::{Bytes, Cpu, JournalSize, Memory};
pub use review::{Answered, Malformed, Reviewer};
pub use unfit::Unfit;
