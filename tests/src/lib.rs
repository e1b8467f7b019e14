//! What tests and benches start beside the gateway. Black-box tests live in `it/`.

pub mod postgres;
