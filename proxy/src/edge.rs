//! Where the outside world is touched: sockets, files, the clock.

pub(crate) mod admin;
pub(crate) mod ask;
pub(crate) mod clock;
pub(crate) mod export;
pub(crate) mod feeder;
pub(crate) mod fetch;
mod frames;
pub(crate) mod framing;
pub(crate) mod journal;
pub(crate) mod lines;
pub(crate) mod listen;
pub(crate) mod look;
pub(crate) mod memory;
pub(crate) mod otlp;
pub(crate) mod process;
pub(crate) mod push;
pub(crate) mod recognise;
pub(crate) mod retry;
mod sending;
pub(crate) mod serving;
pub(crate) mod signals;
pub(crate) mod signing;
pub(crate) mod socket;
pub(crate) mod store;
pub(crate) mod tls;
pub(crate) mod upstream;
pub(crate) mod webhook;
