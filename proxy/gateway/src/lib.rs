//! The data plane: the only place where a request is carried. `journey` is one request, top to bottom;
//! read it first.
//!
//! Every admitted request ends in exactly one post or void, whatever ends it. Bytes pass unchanged and
//! at once; a fault in the meter never reaches the client.

pub mod counting;
pub mod gateway;
pub mod health;
pub mod journey;
pub mod listen;
pub mod live;
pub mod permits;
pub mod pulse;
pub mod recognise;
pub mod reload;
pub mod tariffs;
pub mod tokenizers;
