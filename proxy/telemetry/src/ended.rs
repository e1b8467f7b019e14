//! Everything that is known of a request when it has ended or was refused. Its spans and its log
//! line are made from it.

use std::net::IpAddr;
use std::time::Instant;

use http::{Method, Version};
use jiff::Timestamp;
use taximeter_config::Upstream;
use taximeter_ledger::{Record, RequestId};
use taximeter_meter::{Measurement, Parameter, Wire};

use super::trace::RequestTrace;

/// When the stages before the engine ended, as far as a request came.
#[derive(Debug, Clone, Copy, Default)]
pub struct Laps {
    /// When the tenant was known.
    pub identified: Option<Instant>,
    /// The body is read.
    pub read: Option<Instant>,
    /// When the upstream was chosen.
    pub routed: Option<Instant>,
    /// It is on the ledger.
    pub admitted: Option<Instant>,
}

/// Where a request went that is on no ledger, and when its stages before that ended.
#[derive(Debug, Clone, Copy)]
pub struct Onward {
    /// Index into the configured upstreams.
    pub upstream: usize,
    /// When each stage ended.
    pub laps: Laps,
}

/// A request that has ended, or was refused.
#[derive(Debug, Clone, Copy)]
pub struct Ended<'a> {
    /// The id of the request.
    pub request: RequestId,
    /// The client's `x-request-id`, or ours in its place.
    pub request_id: &'a str,
    /// Who asks, as far as it is known.
    pub client: IpAddr,
    /// Where it stands in its trace.
    pub place: RequestTrace,
    /// When its head was read.
    pub started: Instant,
    /// The same on the wall.
    pub started_at: Timestamp,
    /// When it was over.
    pub ended_at: Instant,
    /// When each stage ended.
    pub laps: Laps,
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
    /// Our own word, where we refused it.
    pub code: Option<&'static str>,
    /// What an engine had of it.
    pub attempt: Option<Attempt<'a>>,
    /// The upstream that it was passed on to without an entry in the ledger.
    pub passed_to: Option<&'a Upstream>,
}

/// An attempt to send a request that brought it nowhere.
#[derive(Debug, Clone, Copy)]
pub struct Try {
    /// When it ended.
    pub ended: Instant,
    /// A fixed word.
    pub cause: &'static str,
}

/// What an engine had of a request.
#[derive(Debug, Clone, Copy)]
pub struct Attempt<'a> {
    /// The operation, as `gen_ai.operation.name` says it.
    pub operation: &'a str,
    /// The shape of requests and answers.
    pub wire: Wire,
    /// The provider, as `gen_ai.provider.name` says it.
    pub provider: &'a str,
    /// The name of the upstream.
    pub upstream: &'a str,
    /// Host and port of the upstream.
    pub server: (&'a str, u16),
    /// The model that the client asked for.
    pub request_model: Option<&'a str>,
    /// How many answers were asked for at once.
    pub choices: u64,
    /// What else the request states; numbers as they are written.
    pub parameters: &'a [(Parameter, String)],
    /// The most tokens that each answer may have.
    pub max_tokens: Option<u64>,
    /// Service tier that was asked for.
    pub request_tier: Option<&'a str>,
    /// Attempts before the last one, which brought it nowhere.
    pub tries: &'a [Try],
    /// When its first byte was sent; `None` where nothing was.
    pub sent_at: Option<Instant>,
    /// Its record, and what was measured; `None` where it used nothing.
    pub answered: Option<(&'a Record, &'a Measurement)>,
}

impl<'a> Attempt<'a> {
    /// `None` where it used nothing.
    pub fn record(&self) -> Option<&'a Record> {
        self.answered.map(|(record, _)| record)
    }
}
