//! A request that is on record, as its series need it.

use taximeter_ledger::Record;
use taximeter_meter::Measurement;

use super::exemplar::Origin;
use super::instruments::Instruments;

/// A request with a record.
#[derive(Clone, Copy)]
pub(super) struct RecordedRequest<'a> {
    pub(super) to: &'a Instruments,
    pub(super) record: &'a Record,
    pub(super) measurement: &'a Measurement,
    /// From its head until its engine was called, in seconds.
    pub(super) waited: f64,
    pub(super) origin: Origin,
}

impl RecordedRequest<'_> {
    /// What is left of `seconds` from its head, from when its engine was called: as whoever calls an
    /// engine sees it, and as the span of the call has it.
    pub(super) fn called(&self, seconds: f64) -> f64 {
        (seconds - self.waited).max(0.0)
    }
}
