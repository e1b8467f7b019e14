//! Connections to engines: dialling, TLS, the keep-alive pool, and one exchange driven inside the
//! caller's task.
//!
//! hyper's connection future is polled by whoever waits for the answer: no spawned task and no
//! channel between two tasks, so that a chunk costs one read and one write. Pools belong to one
//! worker: a connection stays on the runtime that opened it.

mod anyone;
mod dial;
mod exchange;
mod pool;
mod wire;

pub use anyone::Anyone;
pub use dial::{DialFault, Dialer, EngineSocket, HTTP_1, HTTP_2, Pair};
pub use exchange::{Exchange, ExchangeBody, Link, RequestBody, SendFault};
pub use pool::Pool;
