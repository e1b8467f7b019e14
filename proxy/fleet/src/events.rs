//! Changes of engines, GPUs and hosts, and of what the gateway itself rests on.
//!
//! `facts.rs` makes facts of what a source tells, `watcher.rs` compares them with those that were last
//! known, which are in `held.rs`, and `event.rs` is what comes of it. `owners.rs` has whose each GPU is, which several sources tell,
//! and `claims.rs` which upstreams claim it.
//!
//! # Invariants
//!
//! - What is told for the first time is no event. A change is one, also if nobody looked while it happened:
//!   what was last known outlives the gateway.
//! - What nobody tells is not known, and no change.
//! - A GPU that moves is one event, however many sources tell it, and in whatever order.
//! - Whatever flaps, its events are bounded, and the next one says how many were left out.

mod claims;
pub(crate) mod event;
pub(crate) mod facts;
pub(crate) mod held;
mod owners;
#[cfg(test)]
mod tests;
pub(crate) mod watcher;
