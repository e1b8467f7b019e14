//! HTTP as the gateway needs it: connections to upstreams, strict framing checks, TLS, sockets, and
//! a server for the admin address and the webhook.
//!
//! Begin with `upstream.rs` (one exchange with an engine) and `framing.rs` (where a message ends).
//!
//! # Invariants
//!
//! - Bytes that two readers could understand differently are a fault (request smuggling, RFC 9112).
//!   hyper alone is more lenient.
//! - An exchange runs in the task of its caller. It needs no further task and no channel.
//! - Each wait and each buffer has a limit.
//!
//! This crate knows no tenants, tokens or prices. From `config` it uses two value types: the URL of
//! an upstream and the limits of a head. A second type for the same URL would be worse.
//!
//! # Connection pool
//!
//! `upstream/pool.rs` hands out the connection that was used last, and looks at its socket first.
//! The connection that has idled longest is the one that the engine closes first. That is why
//! `pingora-pool`, which hands out the oldest and needs a task for each idle connection, does not
//! fit. `pingora-timeout` does not fit either: its clock thread wakes an idle process a hundred
//! times a second. `pingora-proxy` does not fit: its body filter cannot wait for the ledger.
//!
//! # TLS
//!
//! `tls.rs` serves with a certificate and key from files that may change. It compares the contents
//! of the files twice a second. Modification times and inodes would miss changes: Kubernetes swaps
//! a secret by a symbolic link, and tools set old times on new files. A connection after a change
//! sees all of the new files or all of the old ones. Connections that are open stay. On the admin
//! address a client may connect without a certificate, because the kubelet has none. Whether the
//! client showed one is a fact about the connection, and the admin address asks for it.
//!
//! # Server
//!
//! `serving.rs` is the server below the admin address and the webhook: TLS, HTTP/1.1 and HTTP/2. It
//! limits the number of connections (also per address), the size of heads, and each wait.

pub mod ask;
pub mod concurrency;
pub mod fetch;
pub mod fields;
pub mod frames;
pub mod framing;
pub mod grpc;
pub mod listening;
pub mod retry;
pub mod sending;
pub mod serving;
pub mod socket;
pub mod tls;
pub mod upstream;
pub mod visible;
