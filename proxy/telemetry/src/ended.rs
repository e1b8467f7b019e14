//! Everything that is known of a request when it has ended or was refused. Its spans and its log
//! line are made from it.

use std::net::IpAddr;
use std::time::Instant;

use http::{Method, Version};
use jiff::Timestamp;
use taximeter_config::Upstream;
use taximeter_ledger::{Dimensions, Record, RequestId};
use taximeter_meter::{Measurement, Wire};
use taximeter_request::Parameter;

use super::trace::RequestTrace;

/// The times at which the stages before the engine ended, as far as the request came.
#[derive(Debug, Clone, Copy, Default)]
pub struct StageTimes {
    /// When the tenant was known.
    pub identified: Option<Instant>,
    /// When the body was read.
    pub read: Option<Instant>,
    /// When the upstream was chosen.
    pub routed: Option<Instant>,
    /// When the reservation was on the ledger.
    pub admitted: Option<Instant>,
}

/// The upstream of a request that is not on the ledger, and the times of its stages.
#[derive(Debug, Clone, Copy)]
pub struct Onward {
    /// Index into the configured upstreams.
    pub upstream: usize,
    /// When each stage ended.
    pub stage_times: StageTimes,
}

/// A request that has ended, or was refused.
#[derive(Debug, Clone, Copy)]
pub struct Ended<'a> {
    /// The id of the request.
    pub request: RequestId,
    /// The client's `x-request-id`, or ours in its place.
    pub request_id: &'a str,
    /// The address of the client, as far as it is known.
    pub client: IpAddr,
    /// Its position in its trace.
    pub request_trace: RequestTrace,
    /// When its head was read.
    pub started: Instant,
    /// The same by the wall clock.
    pub started_at: Timestamp,
    /// When it ended.
    pub ended_at: Instant,
    /// When each stage ended.
    pub stage_times: StageTimes,
    /// The method of the request.
    pub method: &'a Method,
    /// The version of HTTP that the client speaks.
    pub version: Version,
    /// `http` or `https`.
    pub scheme: &'static str,
    /// Without the query.
    pub path: &'a str,
    /// Template; `None` where no route matched.
    pub route: Option<&'static str>,
    /// The tenant.
    pub tenant: Option<&'a str>,
    /// What the client saw; `None` when it left before.
    pub status: Option<u16>,
    /// `error.type`; `None` on success.
    pub error: Option<&'a str>,
    /// The error code, if the gateway refused the request.
    pub code: Option<&'static str>,
    /// The call of the engine, if there was one.
    pub attempt: Option<Attempt<'a>>,
    /// The upstream that it was passed on to without an entry in the ledger.
    pub passed_to: Option<&'a Upstream>,
}

/// A failed attempt to send a request.
#[derive(Debug, Clone, Copy)]
pub struct Try {
    /// When it ended.
    pub ended: Instant,
    /// The cause, a fixed word.
    pub cause: &'static str,
}

/// The call of an engine for a request.
#[derive(Debug, Clone, Copy)]
pub struct Attempt<'a> {
    /// The operation, as `gen_ai.operation.name` says it.
    pub operation: &'a str,
    /// The wire format of request and answer.
    pub wire: Wire,
    /// The provider, as `gen_ai.provider.name` says it.
    pub provider: &'a str,
    /// The name of the upstream.
    pub upstream: &'a str,
    /// Host and port of the upstream.
    pub server: (&'a str, u16),
    /// The model that the client asked for.
    pub request_model: Option<&'a str>,
    /// The number of answers that the request asks for.
    pub choices: u64,
    /// What the client says of the request.
    pub said: Option<&'a Dimensions>,
    /// Further parameters of the request. Numbers are as written.
    pub parameters: &'a [(Parameter, String)],
    /// The most tokens that each answer may have.
    pub max_tokens: Option<u64>,
    /// The service tier that the request asks for.
    pub request_tier: Option<&'a str>,
    /// The failed attempts before the last one.
    pub tries: &'a [Try],
    /// When its first byte was sent; `None` if nothing was sent.
    pub sent_at: Option<Instant>,
    /// Its record and its measurement; `None` if it used nothing.
    pub answered: Option<(&'a Record, &'a Measurement)>,
}

impl<'a> Attempt<'a> {
    /// Its record; `None` if it used nothing.
    pub fn record(&self) -> Option<&'a Record> {
        self.answered.map(|(record, _)| record)
    }
}
