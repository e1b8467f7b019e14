//! HTTP as the gateway needs it: links to upstreams, strict framing, TLS, sockets, and a server for
//! the admin address and the webhook.
//!
//! It moves bytes and refuses bytes that two readers could read differently. It knows no tenants, no
//! tokens and no prices.

pub mod ask;
pub mod crowd;
pub mod fetch;
pub mod fields;
pub mod frames;
pub mod framing;
pub mod retry;
pub mod sending;
pub mod serving;
pub mod socket;
pub mod tls;
pub mod upstream;
pub mod visible;
