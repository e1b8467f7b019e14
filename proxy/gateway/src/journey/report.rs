//! What happened, told once to telemetry. How it looks as metric and log line is
//! `telemetry/events.rs`.

mod trace;

use std::borrow::Cow;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use http::{Method, StatusCode};
use taximeter_ledger::{Record, VoidReason};
use taximeter_meter::Measurement;
use taximeter_system::clock;
use taximeter_telemetry::events::{
    Called, Http, OperationFailed, RequestPassed, RequestRefused, RequestSettled, RequestVoided,
};
use taximeter_telemetry::trace::Found;
use taximeter_telemetry::{Failed, Origin};

use super::identify::{self, Arrival};
use super::refuse::Refusal;
use super::settle::open::Open;
use crate::gateway::Gateway;
use trace::{Answer, Trace};

pub(crate) use trace::Closing;

/// A request that has no answer yet. Dropped without one, its client has left: where no fare tells of
/// that, this does.
pub(super) struct Unanswered<'a> {
    gateway: &'a Gateway,
    arrival: &'a Arrival,
    method: &'a Method,
    is_answered: bool,
}

impl<'a> Unanswered<'a> {
    pub(super) const fn new(
        gateway: &'a Gateway,
        arrival: &'a Arrival,
        method: &'a Method,
    ) -> Self {
        Self { gateway, arrival, method, is_answered: false }
    }

    pub(super) const fn is_answered(&mut self) {
        self.is_answered = true;
    }
}

impl Drop for Unanswered<'_> {
    fn drop(&mut self) {
        let Self { gateway, arrival, method, is_answered } = self;
        if *is_answered || arrival.is_leaving_told.load(Relaxed) {
            return;
        }
        passed(gateway, arrival, method, (template(gateway, arrival, method), None));
    }
}

/// A request was refused by us.
pub(super) fn refused(gateway: &Gateway, arrival: &Arrival, method: &Method, refusal: &Refusal) {
    // Who has left is told nothing.
    let has_left = matches!(refusal, Refusal::ClientLeft);
    let status = (!has_left).then(|| refusal.status().0);
    let answer = (template(gateway, arrival, method), status);
    let trace = trace::refused(gateway, arrival, method, answer, refusal);
    gateway.telemetry.emit(&RequestRefused {
        http: told(gateway, arrival, method, answer, (Some(refusal.code()), trace)),
        request_id: &arrival.request_id,
        code: refusal.code(),
        message: refusal.to_string(),
    });
}

/// A request that is not on the ledger was passed on and has been answered, or its client has left.
pub(super) fn passed(gateway: &Gateway, arrival: &Arrival, method: &Method, answer: Answer) {
    let trace = trace::told(gateway, arrival, method, answer, None);
    gateway.telemetry.emit(&RequestPassed(told(gateway, arrival, method, answer, (None, trace))));
}

/// The template of the route that a request has asked for; `None` where there is none.
fn template(gateway: &Gateway, arrival: &Arrival, method: &Method) -> Option<&'static str> {
    identify::template(gateway, method, arrival.uri.path())
}

/// A request that no fare tells of; `code` says why it was refused, if it was.
fn told<'a>(
    gateway: &'a Gateway,
    arrival: &'a Arrival,
    method: &'a Method,
    (route, status): Answer,
    (code, trace): (Option<&'static str>, Option<Found>),
) -> Http<'a> {
    let now = clock::now();
    let called = arrival.onward.get().map(|onward| Called {
        upstream: &gateway.upstream(onward.upstream).name,
        // What we answer in its place is not what it said.
        status: status.filter(|_| code.is_none()).map(|status| status.as_u16()),
        error: if status.is_none() { Some("client_disconnect") } else { code },
        duration: onward.laps.routed.map_or(Duration::ZERO, |routed| now - routed),
    });
    Http {
        method,
        version: arrival.version,
        route,
        status: status.map(|status| status.as_u16()),
        tenant: arrival.tenant(),
        duration: now - arrival.started,
        called,
        origin: Origin { request: arrival.id, trace, at: clock::wall() },
    }
}

/// A request ended with a record. Its spans, if they are kept, end when what is returned is dropped.
pub(super) fn settled(open: &Open, record: &Record, measurement: &Measurement) -> Option<Closing> {
    let (method, version) = (&open.call.method, open.call.version);
    let Trace { found: trace, closing } = trace::settled(open, record, measurement);
    let waited = open.call.laps.admitted.map_or(Duration::ZERO, |at| at - open.call.started);
    open.gateway.telemetry.emit(&RequestSettled {
        method,
        version,
        record,
        measurement,
        waited,
        trace,
    });
    if let Some(error) = record.error_type.as_deref() {
        open.gateway.telemetry.emit(&operation_failed(open, record.status, error, trace));
    }
    closing
}

/// A reserved request ended without one.
pub(super) fn voided(open: &Open, reason: VoidReason) {
    let (error, now) = (error(open, reason), clock::now());
    let Trace { found: trace, closing } = trace::voided(open, reason, &error, now);
    open.gateway.telemetry.emit(&RequestVoided {
        http: Http {
            method: &open.call.method,
            version: open.call.version,
            route: Some(open.call.route.template),
            status: open.status,
            tenant: Some(open.call.caller.tenant.as_str()),
            duration: now - open.call.started,
            called: None,
            origin: Origin { request: open.call.id, trace, at: clock::wall() },
        },
        reason,
        failed: failed(open, reason, &error, now),
    });
    if open.call.laps.admitted.is_some() {
        open.gateway.telemetry.emit(&operation_failed(open, open.status, &error, trace));
    }
    drop(closing);
}

/// What an engine was called for, and what went wrong.
fn operation_failed<'a>(
    open: &'a Open,
    status: Option<u16>,
    error: &'a str,
    trace: Option<Found>,
) -> OperationFailed<'a> {
    OperationFailed {
        request: open.call.id,
        tenant: open.call.caller.tenant.as_str(),
        operation: open.call.route.operation.as_str(),
        provider: open.gateway.provider(open.upstream),
        upstream: &open.gateway.upstream(open.upstream).name,
        request_model: open.request_model.as_deref(),
        status,
        error,
        trace,
    }
}

/// `error.type` of a request that used nothing.
fn error(open: &Open, reason: VoidReason) -> Cow<'static, str> {
    match (reason, open.status) {
        (VoidReason::NotSent, _) => open.refused.map_or("not_sent", |(_, code)| code).into(),
        (VoidReason::UpstreamRefused, Some(status)) => status.to_string().into(),
        (VoidReason::UpstreamRefused, None) => "upstream_refused".into(),
        (VoidReason::UpstreamAuth, _) => "401".into(),
        (VoidReason::ClientLeft, _) => "client_disconnect".into(),
    }
}

/// What was to be asked of an engine by a request that used nothing; `None` where it did not come
/// onto the ledger, so that no engine was asked for anything.
fn failed<'a>(
    open: &'a Open,
    reason: VoidReason,
    error: &'a str,
    now: Instant,
) -> Option<Failed<'a>> {
    let admitted = open.call.laps.admitted?;
    let status = match reason {
        VoidReason::UpstreamRefused => open.status,
        VoidReason::UpstreamAuth => Some(StatusCode::UNAUTHORIZED.as_u16()),
        VoidReason::NotSent | VoidReason::ClientLeft => None,
    };
    Some(Failed {
        operation: open.call.route.operation.as_str(),
        upstream: &open.gateway.upstream(open.upstream).name,
        provider: open.gateway.provider(open.upstream),
        request_model: open.request_model.as_deref(),
        status,
        error,
        called: now - admitted,
        sent: now - open.sent_at.unwrap_or(admitted),
    })
}
