//! A simulated engine on a socket: the APIs of OpenAI and Anthropic, with settable times, counts
//! and failures.
//!
//! Begin with `behaviour.rs` (the settings) and `job.rs` (one answer, decided before its first
//! byte).
//!
//! The demo, `taximeter simulate`, tests and benches use it. It knows nothing of the gateway.
//!
//! - It is deterministic: the same request gets the same text, and each word is one token. So every
//!   count can be checked.
//! - It records what it did ([`Simulator::journal`], `GET /simulate/served`). Tests compare the
//!   gateway's ledger with this record.
//! - A request can change any setting for itself with the header `x-simulate`, for example
//!   `x-simulate: gap_ms=5,output_tokens=64,die_after=10`. [`Behaviour::with`] lists all settings.

mod ask;
mod behaviour;
mod broken;
mod clock;
mod job;
mod journal;
mod metrics;
mod prefix;
mod reply;
mod route;
mod routes;
mod served;
mod server;
mod shapes;
mod stream;
mod text;

#[cfg(test)]
mod tests;

pub use behaviour::{Behaviour, BehaviourError, Fault};
pub use served::{End, Served};
pub use server::Simulator;
