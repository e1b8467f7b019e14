//! What happened, told once to telemetry. How it looks as metric and log line is
//! `telemetry/events.rs`.

mod trace;

use std::sync::atomic::Ordering::Relaxed;

use http::{Method, StatusCode};
use taximeter_ledger::{Record, VoidReason};
use taximeter_meter::Measurement;

use super::identify::{self, Arrival};
use super::refuse::Refusal;
use super::settle::open::Open;
use crate::edge::clock;
use crate::gateway::Gateway;
use crate::telemetry::Failed;
use crate::telemetry::events::{
    Http, RequestPassed, RequestRefused, RequestSettled, RequestVoided,
};
use trace::Trace;

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
        let route = identify::template(gateway, method, arrival.uri.path());
        trace::told(gateway, arrival, method, (route, None), None);
        gateway.telemetry.emit(&RequestPassed(Http {
            method,
            route,
            status: None,
            tenant: None,
            duration: clock::now() - arrival.started,
        }));
    }
}

/// A request was refused by us.
pub(super) fn refused(gateway: &Gateway, arrival: &Arrival, method: &Method, refusal: &Refusal) {
    // Who has left is told nothing.
    let has_left = matches!(refusal, Refusal::ClientLeft);
    let status = (!has_left).then(|| refusal.status().0.as_u16());
    let route = identify::template(gateway, method, arrival.uri.path()).filter(|_| has_left);
    let trace = trace::refused(gateway, arrival, method, (route, status), refusal);
    gateway.telemetry.emit(&RequestRefused {
        http: Http {
            method,
            route,
            status,
            tenant: None,
            duration: clock::now() - arrival.started,
        },
        request_id: &arrival.request_id,
        code: refusal.code(),
        message: refusal.to_string(),
        trace,
    });
}

/// A request that is not on the ledger was passed on and has been answered.
pub(super) fn passed(
    gateway: &Gateway,
    arrival: &Arrival,
    method: &Method,
    route: Option<&'static str>,
    status: StatusCode,
) {
    trace::told(gateway, arrival, method, (route, Some(status.as_u16())), None);
    gateway.telemetry.emit(&RequestPassed(Http {
        method,
        route,
        status: Some(status.as_u16()),
        tenant: None,
        duration: clock::now() - arrival.started,
    }));
}

/// A request ended with a record. Its spans, if they are kept, end when what is returned is dropped.
pub(super) fn settled(open: &Open, record: &Record, measurement: &Measurement) -> Option<Closing> {
    let method = &open.call.method;
    let Trace { found: trace, closing } = trace::settled(open, record, measurement);
    open.gateway.telemetry.emit(&RequestSettled { method, record, measurement, trace });
    closing
}

/// A reserved request ended without one.
pub(super) fn voided(open: &Open, reason: VoidReason) {
    let Trace { found: trace, closing } = trace::voided(open, reason);
    open.gateway.telemetry.emit(&RequestVoided {
        http: http(open),
        reason,
        request: open.call.id,
        trace,
        at: clock::wall(),
        failed: failed(open, reason),
    });
    drop(closing);
}

/// What an engine had of a request that used nothing.
fn failed(open: &Open, reason: VoidReason) -> Option<Failed<'_>> {
    let status = match reason {
        VoidReason::UpstreamRefused => open.status,
        VoidReason::UpstreamAuth => Some(StatusCode::UNAUTHORIZED.as_u16()),
        VoidReason::NotSent | VoidReason::ClientLeft => return None,
    };
    Some(Failed {
        operation: open.call.route.operation.as_str(),
        upstream: &open.gateway.upstream(open.upstream).name,
        provider: open.gateway.provider(open.upstream),
        request_model: open.request_model.as_deref(),
        status,
        duration: clock::now() - open.sent_at?,
    })
}

fn http(open: &Open) -> Http<'_> {
    Http {
        method: &open.call.method,
        route: Some(open.call.route.template),
        status: open.status,
        tenant: Some(open.call.caller.tenant.as_str()),
        duration: clock::now() - open.call.started,
    }
}
