//! What is known of a request when it has ended, or was refused: its spans and its line are made of
//! it.

use std::net::IpAddr;
use std::time::Instant;

use http::{Method, Version};
use jiff::Timestamp;
use taximeter_config::Upstream;
use taximeter_ledger::{Record, RequestId};
use taximeter_meter::{Measurement, Parameter, Wire};

use super::trace::Place;

/// When the stages before the engine ended, as far as a request came.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Laps {
    pub(crate) identified: Option<Instant>,
    /// The body is read.
    pub(crate) read: Option<Instant>,
    pub(crate) routed: Option<Instant>,
    /// It is on the ledger.
    pub(crate) admitted: Option<Instant>,
}

/// Where a request went that is on no ledger, and when its stages before that ended.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Onward {
    /// Index into the configured upstreams.
    pub(crate) upstream: usize,
    pub(crate) laps: Laps,
}

/// A request that has ended, or was refused.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ended<'a> {
    pub(crate) request: RequestId,
    /// The client's `x-request-id`, or ours in its place.
    pub(crate) request_id: &'a str,
    /// Who asks, as far as it is known.
    pub(crate) client: IpAddr,
    pub(crate) place: Place,
    /// When its head was read.
    pub(crate) started: Instant,
    /// The same on the wall.
    pub(crate) started_at: Timestamp,
    /// When it was over.
    pub(crate) ended_at: Instant,
    pub(crate) laps: Laps,
    pub(crate) method: &'a Method,
    /// The version of HTTP that the client speaks.
    pub(crate) version: Version,
    /// `http` or `https`.
    pub(crate) scheme: &'static str,
    /// Without the query.
    pub(crate) path: &'a str,
    /// Template; `None` where no route matched.
    pub(crate) route: Option<&'static str>,
    pub(crate) tenant: Option<&'a str>,
    /// What the client saw; `None` when it left before.
    pub(crate) status: Option<u16>,
    /// `error.type`; `None` on success.
    pub(crate) error: Option<&'a str>,
    /// Our own word, where we refused it.
    pub(crate) code: Option<&'static str>,
    /// What an engine had of it.
    pub(crate) attempt: Option<Attempt<'a>>,
    /// The upstream that it was passed on to without an entry in the ledger.
    pub(crate) passed_to: Option<&'a Upstream>,
}

/// An attempt to send a request that brought it nowhere.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Try {
    pub(crate) ended: Instant,
    /// A fixed word.
    pub(crate) cause: &'static str,
}

/// What an engine had of a request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Attempt<'a> {
    pub(crate) operation: &'a str,
    pub(crate) wire: Wire,
    pub(crate) provider: &'a str,
    pub(crate) upstream: &'a str,
    pub(crate) server: (&'a str, u16),
    pub(crate) request_model: Option<&'a str>,
    /// How many answers were asked for at once.
    pub(crate) choices: u64,
    /// What else the request states; numbers as they are written.
    pub(crate) parameters: &'a [(Parameter, String)],
    /// The most tokens that each answer may have.
    pub(crate) max_tokens: Option<u64>,
    /// Service tier that was asked for.
    pub(crate) request_tier: Option<&'a str>,
    /// Attempts before the last one, which brought it nowhere.
    pub(crate) tries: &'a [Try],
    /// When its first byte was sent; `None` where nothing was.
    pub(crate) sent_at: Option<Instant>,
    /// Its record, and what was measured; `None` where it used nothing.
    pub(crate) answered: Option<(&'a Record, &'a Measurement)>,
}

impl<'a> Attempt<'a> {
    /// `None` where it used nothing.
    pub(crate) fn record(&self) -> Option<&'a Record> {
        self.answered.map(|(record, _)| record)
    }
}
