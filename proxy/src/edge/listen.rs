//! Accepting clients: connections, their limits, and the threads that carry them.
//!
//! Each worker is one thread with its own runtime and its own pool of engine connections; the first
//! accepts and hands each connection to the worker that carries the fewest.

mod calm;
mod connection;
mod interim;
mod peer;
mod socket;
mod worker;
mod workers;

pub(crate) use connection::Busy;
pub(crate) use peer::{Peer, Stream};
pub(crate) use worker::Worker;
pub(crate) use workers::Workers;
