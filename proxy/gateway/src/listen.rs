//! Accepting clients: connections, their limits, and the threads that carry them.
//!
//! Each worker is one thread with its own runtime and its own pool of engine connections; the first
//! accepts and hands each connection to the worker that carries the fewest.

mod calm;
mod connection;
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
