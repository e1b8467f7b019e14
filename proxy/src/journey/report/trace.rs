//! The spans of a request that has ended: whether they are kept, and what they are made of.

use std::sync::Arc;
use std::time::{Duration, Instant};

use http::Method;
use taximeter_ledger::{Record, VoidReason};

use crate::edge::clock;
use crate::gateway::Gateway;
use crate::journey::identify::Arrival;
use crate::journey::refuse::Refusal;
use crate::journey::settle::open::Open;
use crate::telemetry::spans::{Attempt, Ended, Laps, Spans};
use crate::telemetry::trace::{Found, Place, SERVER};
use crate::telemetry::{Telemetry, Traces};

/// Spans of a request that is still being written to the ledger; they end when this is dropped.
pub(crate) struct Closing {
    telemetry: Arc<Telemetry>,
    spans: Option<Spans>,
}

impl Drop for Closing {
    fn drop(&mut self) {
        if let Some(spans) = self.spans.take() {
            self.telemetry.queue_spans(spans.finish(clock::now()));
        }
    }
}

/// Where a request can be found again, and its spans where they are kept.
#[derive(Default)]
pub(super) struct Trace {
    pub(super) found: Option<Found>,
    pub(super) closing: Option<Closing>,
}

/// Of a request that ended with a record.
pub(super) fn settled(open: &Open, record: &Record) -> Trace {
    let Some(traces) = &open.gateway.telemetry.traces else { return callers(open) };
    let place = traces.place(open.call.id, open.call.trace);
    let failed = record.error_type.is_some();
    if !traces.keeps(&place, failed, Some(&record.timing)) {
        return Trace::default();
    }
    let over = open.call.started + Duration::from_secs_f64(record.timing.duration.max(0.0));
    kept(
        traces,
        open,
        &Ended { error: record.error_type.as_deref(), ..ended(open, place, Some(record), over) },
    )
}

/// Of a reserved request that ended without one.
pub(super) fn voided(open: &Open, reason: VoidReason) -> Trace {
    let Some(traces) = &open.gateway.telemetry.traces else { return callers(open) };
    // One that did not come onto the ledger is told of where it is refused.
    if open.call.laps.admitted.is_none() {
        return Trace::default();
    }
    let place = traces.place(open.call.id, open.call.trace);
    if !traces.keeps(&place, true, None) {
        return Trace::default();
    }
    let status = open.status.map(|status| status.to_string());
    let error = match reason {
        VoidReason::NotSent => open.refused.map_or("not_sent", |(_, code)| code),
        VoidReason::UpstreamRefused => status.as_deref().unwrap_or("upstream_refused"),
        VoidReason::UpstreamAuth => "401",
        VoidReason::ClientLeft => "client_disconnect",
    };
    kept(traces, open, &Ended { error: Some(error), ..ended(open, place, None, clock::now()) })
}

/// Tells of a request that is on no ledger: one span, which faces the client.
pub(super) fn told(
    gateway: &Gateway,
    arrival: &Arrival,
    method: &Method,
    (route, status): (Option<&'static str>, u16),
    refusal: Option<&Refusal>,
) {
    let Some(traces) = &gateway.telemetry.traces else { return };
    let place = traces.place(arrival.id, arrival.trace);
    let code = refusal.map(Refusal::code);
    if !traces.keeps(&place, status >= 500, None) {
        return;
    }
    let ended = Ended {
        request: arrival.id,
        place,
        started: arrival.started,
        started_at: arrival.started_at,
        laps: Laps::default(),
        method,
        path: arrival.uri.path(),
        route,
        tenant: None,
        status: Some(status),
        error: code,
        code,
        attempt: None,
    };
    gateway.telemetry.queue_spans(ended.spans(traces.genai).finish(clock::now()));
}

/// Where the caller has it, if it keeps it.
fn callers(open: &Open) -> Trace {
    let found =
        |caller: crate::telemetry::TraceContext| Found { trace_id: caller.trace_id, span_id: None };
    Trace { found: open.call.trace.filter(|caller| caller.sampled).map(found), closing: None }
}

fn kept(traces: &Traces, open: &Open, ended: &Ended<'_>) -> Trace {
    let place = &ended.place;
    Trace {
        found: Some(Found { trace_id: place.trace_id, span_id: Some(place.span(SERVER)) }),
        closing: Some(Closing {
            telemetry: open.gateway.telemetry.clone(),
            spans: Some(ended.spans(traces.genai)),
        }),
    }
}

/// What is known of a request, but for what went wrong.
fn ended<'a>(
    open: &'a Open,
    place: Place,
    record: Option<&'a Record>,
    ended_at: Instant,
) -> Ended<'a> {
    let call = &open.call;
    let upstream = open.gateway.upstream(open.upstream);
    Ended {
        request: call.id,
        place,
        started: call.started,
        started_at: call.started_at,
        laps: call.laps,
        method: &call.method,
        path: call.uri.path(),
        route: Some(call.route.template),
        tenant: Some(call.caller.tenant.as_str()),
        status: open.refused.map(|(status, _)| status).or(open.status),
        error: None,
        code: open.refused.map(|(_, code)| code),
        attempt: Some(Attempt {
            operation: call.route.operation.as_str(),
            provider: open.gateway.provider(open.upstream),
            upstream: &upstream.name,
            server: (&upstream.url.host, upstream.url.port),
            request_model: open.request_model.as_deref(),
            choices: open.choices,
            sent_at: open.sent_at,
            ended_at,
            record,
        }),
    }
}
