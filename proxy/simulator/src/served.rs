//! The record of one answer, as the engine saw it.

use serde::Serialize;

/// One answer, as the engine saw it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Served {
    /// `x-request-id`, as received.
    pub request_id: Option<String>,
    /// Id of the answer.
    pub id: String,
    /// Path of the request.
    pub route: &'static str,
    /// Model of the request, and of the answer.
    pub model: String,
    /// Whether it was a stream.
    pub stream: bool,
    /// Status of the answer; `None` if it never had a head.
    pub status: Option<u16>,
    /// Tokens of the prompt, the cached ones included.
    pub input_tokens: u64,
    /// Of them, from the cache.
    pub cached_tokens: u64,
    /// Of them, into the cache.
    pub cache_write_tokens: u64,
    /// Tokens generated until the end, the reasoning ones included.
    pub output_tokens: u64,
    /// Of them, reasoning.
    pub reasoning_tokens: u64,
    /// Who ended it.
    pub end: End,
    /// Unix time in seconds when the request had been read.
    pub started_at: f64,
    /// Unix time in seconds of the end: for `Cancelled`, when the engine noticed.
    pub ended_at: f64,
    /// Seconds from start to first token, if there was one.
    pub time_to_first_token: Option<f64>,
}

/// Who ended an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// All of it was generated.
    Finished,
    /// The client left first.
    Cancelled,
    /// The engine broke off, refused or erred, as it was told to.
    Failed,
}
