//! A pod of Kubernetes in, the same pod with the gateway as a native sidecar out.
//!
//! Begin with `inject.rs`: one function ([`inject()`]) says what the pod should be.
//!
//! # Invariants
//!
//! - Injecting twice changes nothing. An annotation keeps what was there before (the name of the
//!   engine's port, variables), and a further injection starts from it.
//! - A manifest keeps its comments, order and quotes. After the change the text is read again. If
//!   it does not say what [`inject()`] said, nothing is written.
//! - The webhook never blocks a pod. A pod that cannot have a sidecar passes without one, with a
//!   warning.
//!
//! This crate knows no sockets, files or clusters. `taximeter inject` and `taximeter webhook` call
//! it.
//!
//! The difference between the two pods is a JSON Patch ([`patch`]). It answers an admission review
//! ([`Reviewer`]), or it is written into the text of a manifest at the right places ([`manifest`],
//! `yaml/edit.rs`). The configuration of the sidecar is an annotation too, which the sidecar reads
//! as a file. So a pod is complete without further objects.
//!
//! The sidecar is an init container that restarts. It starts before the container that it meters
//! and ends after it. It has all its settings in its configuration file and none in flags, so that
//! Helm, Kustomize, `deploy/examples` and a setup without Kubernetes use the same words.

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

pub use inject::{Injected, Note, inject};
pub use options::{Beside, Sidecar, Tenant, drain_seconds};
pub use quantity::{Bytes, Cpu, JournalSize, Memory};
pub use review::{Answered, Malformed, Reviewer};
pub use unfit::Unfit;
