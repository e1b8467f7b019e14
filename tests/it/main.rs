//! Black box: the real binary between bare clients and a scripted engine, on loopback.
//!
//! A test reads from top to bottom: what the client says, what the engine gets and answers, what
//! the client hears, what the ledger has. No sleeps; each wait ends with the event waited for, or
//! fails after `PATIENCE`.
#![cfg(test)]

mod apart;
mod backup;
mod balancer;
mod client;
mod collector;
mod engine;
mod fixtures;
mod frames;
mod gateway;
mod http;
mod pacing;
mod patience;
mod sidecar;
mod simulated;

mod access_log;
mod admin_tls;
mod against;
mod api;
mod bytes_pass;
mod captured;
mod counting;
mod crowds;
mod cuts;
mod drain;
mod encoded;
mod encoded_requests;
mod endings;
mod export_sums;
mod exports;
mod full_disk;
mod given_up;
mod hanging;
mod hostile_names;
mod http1_edge;
mod http2;
mod http2_edge;
mod http2_floods;
mod identity;
mod inject;
mod kill;
mod leaving;
mod ledger;
mod limits;
mod memory;
mod money;
mod operations;
mod otlp;
mod otlp_logs;
mod postgres;
mod providers;
mod push;
mod readme;
mod recognise;
mod record_docs;
mod refusals;
mod reload;
mod request_framing;
mod rerate;
mod rerate_shared;
mod robust_answers;
mod robust_connections;
mod rolling;
mod running_usage;
mod sockets;
mod streams;
mod telemetry;
mod terms;
mod tidy;
mod tls;
mod tls_clients;
mod tokenizers;
mod top;
mod traces;
mod unreachable;
mod upstream_faults;
mod upstream_framing;
mod verify;
mod webhook;
mod wires;
mod zones;
