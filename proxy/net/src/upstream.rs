//! Connections to engines: dialling, TLS, the keep-alive pool, and one exchange that runs in the
//! caller's task.
//!
//! The future that waits for the answer also polls hyper's connection. There is no spawned task and
//! no channel, so a chunk costs one read and one write. Each worker has its own pools: a connection
//! stays on the runtime that opened it.

mod anyone;
mod dial;
mod exchange;
mod pool;
mod wire;

pub use anyone::Anyone;
pub use dial::{DialFault, Dialer, EngineSocket, HTTP_1, HTTP_2, Pair, dial_path};
pub use exchange::{Exchange, ExchangeBody, Link, RequestBody, SendFault};
pub use pool::Pool;
