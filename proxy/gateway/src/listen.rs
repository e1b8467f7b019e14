//! Accepts client connections, applies their limits, and runs the threads that carry them.
//!
//! Each worker is one thread with its own runtime and its own pool of connections to engines. The
//! first worker accepts connections and hands each one to the worker that carries the fewest.

mod connection;
mod flood_guard;
mod interim;
mod peer;
mod socket;
mod unreadable;
mod worker;
mod workers;

pub use connection::Busy;
pub use peer::{Peer, Stream};
pub(crate) use worker::Worker;
pub use workers::Workers;
