//! A request that is on record, as its series need it.

use taximeter_ledger::{PendingRequest, Record, RecordCost, RecordUsage, UnknownCost};
use taximeter_meter::Measurement;

use super::exemplar::Origin;
use super::fault::Fault;
use super::instruments::Instruments;
use super::wait::Wait;

/// A request with a record.
#[derive(Clone, Copy)]
pub(super) struct RecordedRequest<'a> {
    pub(super) to: &'a Instruments,
    pub(super) record: &'a Record,
    pub(super) measurement: &'a Measurement,
    /// From its head until its engine was called, in seconds.
    pub(super) waited: f64,
    pub(super) origin: Origin,
    /// Whose fault it is that it was not served.
    pub(super) fault: Option<Fault>,
    /// The wait for its first token, if it waited for one.
    pub(super) wait: Option<Wait>,
}

impl RecordedRequest<'_> {
    /// What is left of `seconds` from its head, from when its engine was called: as whoever calls an
    /// engine sees it, and as the span of the call has it.
    pub(super) fn called(&self, seconds: f64) -> f64 {
        (seconds - self.waited).max(0.0)
    }
}

/// A request whose usage was pending, and what it has used.
#[derive(Debug, Clone, Copy)]
pub struct Completed<'a> {
    /// The request.
    pub request: &'a PendingRequest,
    /// `model` of the answer.
    pub response_model: Option<&'a str>,
    /// What it has used.
    pub usage: &'a RecordUsage,
    /// Its cost. `None` if it is unknown.
    pub cost: Option<&'a RecordCost>,
    /// Why the cost is unknown.
    pub unknown: &'a [UnknownCost],
}
