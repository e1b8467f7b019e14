//! The position of a request in a trace: the ids of the trace and of its spans.
//!
//! Ids are made from the request's own id, whose last 62 bits are random. A trace that begins here
//! has the request's id as its id. Spans have its last 64 bits, counted on.

use taximeter_ledger::RequestId;

use super::trace_context::TraceContext;

/// The ids by which a request can be found in a tracing system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Found {
    pub(crate) trace_id: [u8; 16],
    /// `None` where its spans are not ours.
    pub(crate) span_id: Option<SpanId>,
}

/// Whether the spans of an ended request are kept.
#[derive(Debug, Clone, Copy)]
pub struct Fate {
    /// Its position in its trace.
    pub request_trace: RequestTrace,
    /// Where it can be found: by its own spans, or in its caller's trace if the caller keeps that.
    pub found: Option<Found>,
    /// Whether its spans are kept.
    pub is_kept: bool,
}

/// The id of a span; never zero.
pub(crate) type SpanId = [u8; 8];

/// The span of a request, facing its client.
pub(crate) const SERVER: u64 = 0;
/// The number of the span of the engine's call.
pub const CLIENT: u64 = 1;
/// The first of its stages.
pub(super) const STAGES: u64 = 2;

/// The position of a request in a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestTrace {
    request: RequestId,
    /// The id of the trace.
    pub trace_id: [u8; 16],
    /// The caller's span.
    pub parent: Option<SpanId>,
    /// Whether it is kept whatever becomes of it: what engines are told.
    pub(crate) sampled: bool,
}

impl RequestTrace {
    /// In the caller's trace, or in one that begins here; the other decides whether that is kept.
    pub(super) fn new(
        request: RequestId,
        caller: Option<TraceContext>,
        sampled: impl FnOnce(Option<bool>, [u8; 16]) -> bool,
    ) -> Self {
        let trace_id = caller.map_or_else(|| request.0.into_bytes(), |caller| caller.trace_id);
        let sampled = sampled(caller.map(|caller| caller.sampled), trace_id);
        Self { request, trace_id, parent: caller.map(|caller| caller.parent), sampled }
    }

    /// The id of this span of the request.
    pub fn span(&self, number: u64) -> SpanId {
        let (_, low) = self.request.0.as_u64_pair();
        low.wrapping_add(number).max(1).to_be_bytes()
    }

    /// The `traceparent` of requests that `span` sends.
    pub fn traceparent(&self, span: u64) -> String {
        let (trace, span) =
            (u128::from_be_bytes(self.trace_id), u64::from_be_bytes(self.span(span)));
        format!("00-{trace:032x}-{span:016x}-{:02x}", u8::from(self.sampled))
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn an_engine_is_told_the_span_that_calls_it() {
        let request = RequestId(Uuid::from_u128(u128::MAX));
        let request_trace = RequestTrace::new(request, None, |caller, _| caller.is_none());
        let trace = "ffffffffffffffffffffffffffffffff";
        assert_eq!(request_trace.traceparent(SERVER), format!("00-{trace}-ffffffffffffffff-01"));
        // Zero is no id.
        assert_eq!(request_trace.traceparent(CLIENT), format!("00-{trace}-0000000000000001-01"));
        assert_eq!(
            TraceContext::parse(&request_trace.traceparent(SERVER)).map(|it| it.sampled),
            Some(true)
        );
    }
}
