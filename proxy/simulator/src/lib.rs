//! A simulated engine on a socket: the shapes of OpenAI and Anthropic, settable times, counts and
//! failures.
//!
//! For the demo, for `taximeter simulate`, for tests and benches. What it says is deterministic:
//! the same request gets the same text, and one word of it is one token, so every count can be
//! checked. What it did is on record ([`Simulator::journal`], `GET /simulate/served`): the truth to
//! hold a ledger against. It knows nothing of the gateway.
//!
//! A request may change any setting for itself with the header `x-simulate`
//! (`x-simulate: gap_ms=5,output_tokens=64,die_after=10`); [`Behaviour::with`] lists them all.

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
