//! Makes the access log line and the spans of a request that has ended, where they are wanted.

use std::sync::Arc;
use std::time::{Duration, Instant};

use http::{Method, StatusCode};
use taximeter_ledger::{Record, VoidReason};
use taximeter_meter::Measurement;
use taximeter_system::clock;
use taximeter_telemetry::Telemetry;
use taximeter_telemetry::content::Captured;
use taximeter_telemetry::ended::Onward;
use taximeter_telemetry::ended::{Attempt, Ended};
use taximeter_telemetry::events::RequestEnded;
use taximeter_telemetry::spans::Spans;
use taximeter_telemetry::trace::{Fate, Found, RequestTrace};

use crate::gateway::Gateway;
use crate::journey::identify::Arrival;
use crate::journey::refuse::Refusal;
use crate::journey::settle::in_flight::InFlight;

/// The route's template, where there is one, and what the client was told, if it did not leave.
pub(super) type Answer = (Option<&'static str>, Option<StatusCode>);

/// A request that was not reserved.
#[derive(Clone, Copy)]
pub(super) struct Unsettled<'a> {
    pub(super) gateway: &'a Gateway,
    pub(super) arrival: &'a Arrival,
    pub(super) method: &'a Method,
    /// Who pays, if that is known.
    pub(super) tenant: Option<&'a str>,
    /// Where it went without an entry in the ledger.
    pub(super) onward: Option<Onward>,
}

/// Spans of a request that is still being written to the ledger; they end when this is dropped.
pub(crate) struct Closing {
    telemetry: Arc<Telemetry>,
    spans: Option<Spans>,
    /// What was said, where that is captured.
    said: Option<Captured>,
}

impl Drop for Closing {
    fn drop(&mut self) {
        if let Some(spans) = self.spans.take() {
            self.telemetry.queue_spans(spans.finish(clock::now()), self.said.take());
        }
    }
}

/// Where a request can be found again, and its spans where they are kept.
pub(super) struct Trace {
    pub(super) found: Option<Found>,
    pub(super) closing: Option<Closing>,
}

/// Of a request that ended with a record.
pub(super) fn settled(in_flight: &InFlight, record: &Record, measurement: &Measurement) -> Trace {
    let telemetry = &in_flight.gateway.telemetry;
    let (error, timing) = (record.error_type.as_deref(), Some(&record.timing));
    let fate = telemetry.fate(in_flight.call.id, in_flight.call.trace, error.is_some(), timing);
    let has_line = in_flight.gateway.config.telemetry.access_log.wants(error.is_some());
    if !fate.is_kept && !has_line {
        return Trace { found: fate.found, closing: None };
    }
    let over = in_flight.call.started + Duration::from_secs_f64(record.timing.duration.max(0.0));
    let said = in_flight
        .asked
        .captured
        .as_ref()
        .map(|said| said.answered(measurement.transcript.as_deref()));
    let ended =
        Ended { error, ..ended(in_flight, fate.request_trace, Some((record, measurement)), over) };
    tell(telemetry, fate, has_line, &ended, said)
}

/// Of a reserved request that ended without one.
pub(super) fn voided(in_flight: &InFlight, reason: VoidReason, error: &str, now: Instant) -> Trace {
    let telemetry = &in_flight.gateway.telemetry;
    let fate = telemetry.fate(in_flight.call.id, in_flight.call.trace, true, None);
    let has_line = in_flight.gateway.config.telemetry.access_log.wants(true);
    // One that did not come onto the ledger is told of where it is refused; who left is not refused.
    let is_refused =
        in_flight.call.stage_times.admitted.is_none() && reason != VoidReason::ClientLeft;
    if is_refused || !fate.is_kept && !has_line {
        return Trace { found: fate.found, closing: None };
    }
    let ended = Ended { error: Some(error), ..ended(in_flight, fate.request_trace, None, now) };
    tell(telemetry, fate, has_line, &ended, in_flight.asked.captured.clone())
}

/// Where a refused request can be found again whose settlement tells of it.
pub(super) fn found(request: Unsettled<'_>) -> Option<Found> {
    let arrival = request.arrival;
    request.gateway.telemetry.fate(arrival.id, arrival.trace, true, None).found
}

/// Tells of a request that is on no ledger: the span that faces the client, and what was done for it
/// before it was passed on, if it was.
pub(super) fn unsettled(
    request: Unsettled<'_>,
    (route, status): Answer,
    refusal: Option<&Refusal>,
) -> Option<Found> {
    let Unsettled { gateway, arrival, method, tenant, onward } = request;
    let telemetry = &gateway.telemetry;
    let status = status.map(|status| status.as_u16());
    // Without a status the client has left.
    let is_over = |limit| status.is_none_or(|status| status >= limit);
    let fate = telemetry.fate(arrival.id, arrival.trace, is_over(500), None);
    let has_line = gateway.config.telemetry.access_log.wants(is_over(400));
    let code = refusal.map(Refusal::code);
    if !fate.is_kept && !has_line {
        return fate.found;
    }
    let ended = Ended {
        request: arrival.id,
        request_id: &arrival.request_id,
        client: arrival.client,
        request_trace: fate.request_trace,
        started: arrival.started,
        started_at: arrival.started_at,
        ended_at: clock::now(),
        stage_times: onward.map(|onward| onward.stage_times).unwrap_or_default(),
        method,
        version: arrival.version,
        scheme: gateway.config.scheme(),
        path: arrival.uri.path(),
        route,
        tenant,
        status,
        error: if status.is_none() { Some("client_disconnect") } else { code },
        code,
        attempt: None,
        passed_to: onward.map(|onward| gateway.upstream(onward.upstream)),
    };
    tell(telemetry, fate, has_line, &ended, None).found
}

fn tell(
    telemetry: &Arc<Telemetry>,
    fate: Fate,
    has_line: bool,
    ended: &Ended<'_>,
    said: Option<Captured>,
) -> Trace {
    let Fate { found, is_kept, .. } = fate;
    if has_line {
        telemetry.emit(&RequestEnded { ended, trace: found });
    }
    let closing = || Closing { telemetry: telemetry.clone(), spans: telemetry.spans(ended), said };
    Trace { found, closing: is_kept.then(closing) }
}

/// What is known of a request, but for what went wrong; `answered` is its record, and what was
/// measured.
fn ended<'a>(
    in_flight: &'a InFlight,
    request_trace: RequestTrace,
    answered: Option<(&'a Record, &'a Measurement)>,
    ended_at: Instant,
) -> Ended<'a> {
    let call = &in_flight.call;
    let upstream = in_flight.gateway.upstream(in_flight.asked.upstream);
    Ended {
        request: call.id,
        request_id: &call.request_id,
        client: call.client,
        request_trace,
        started: call.started,
        started_at: call.started_at,
        ended_at,
        stage_times: call.stage_times,
        method: &call.method,
        version: call.version,
        scheme: in_flight.gateway.config.scheme(),
        path: call.uri.path(),
        route: Some(call.route.template),
        tenant: Some(call.caller.tenant.as_str()),
        status: in_flight.refused.map(|(status, _)| status).or(in_flight.status()),
        error: None,
        code: in_flight.refused.map(|(_, code)| code),
        // No engine had what did not come onto the ledger.
        attempt: call.stage_times.admitted.map(|_| Attempt {
            operation: call.route.operation.as_str(),
            wire: call.wire(),
            provider: in_flight.gateway.provider(in_flight.asked.upstream),
            upstream: &upstream.name,
            server: (&upstream.url.host, upstream.url.port),
            request_model: in_flight.asked.request_model.as_deref(),
            choices: in_flight.asked.choices,
            said: call.dimensions.as_deref(),
            parameters: &in_flight.asked.parameters,
            max_tokens: in_flight.asked.max_tokens,
            tries: &in_flight.tries,
            request_tier: in_flight.asked.service_tier.as_deref(),
            sent_at: in_flight.sent_at(),
            answered,
        }),
        passed_to: None,
    }
}
