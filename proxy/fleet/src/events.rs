//! Changes of engines, GPUs and hosts, and of what the gateway itself rests on.
//!
//! `facts.rs` makes facts of what a source tells, `watcher.rs` compares them with those that were last
//! known, and `event.rs` is what comes of it.
//!
//! # Invariants
//!
//! - What is told for the first time is no event. A change is one, also if nobody looked while it happened:
//!   what was last known outlives the gateway.
//! - What nobody tells is not known, and no change.
//! - Whatever flaps, its events are bounded, and the next one says how many were left out.

pub(crate) mod event;
pub(crate) mod facts;
pub(crate) mod watcher;
