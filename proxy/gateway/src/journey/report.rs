//! Reports each request once to telemetry. `telemetry/events.rs` says how an event looks as a
//! metric and as a log line.

mod trace;

use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use http::{Method, StatusCode};
use taximeter_ledger::{Record, VoidReason};
use taximeter_meter::Measurement;
use taximeter_system::clock;
use taximeter_telemetry::ended::Onward;
use taximeter_telemetry::events::{
    Called, Http, OperationFailed, RequestPassed, RequestRefused, RequestSettled, RequestVoided,
};
use taximeter_telemetry::trace::Found;
use taximeter_telemetry::{Failed, Origin};

use super::identify::tenant::Caller;
use super::identify::{self, Arrival};
use super::refuse::Refusal;
use super::settle::in_flight::InFlight;
use crate::gateway::Gateway;
use trace::{Answer, Trace, Unsettled};

pub(crate) use trace::Closing;

/// The report of one request: how it ended is told once, by its one owner. Dropped while it owns
/// that, it tells that the client has left.
pub(super) struct Report<'a> {
    gateway: &'a Gateway,
    arrival: &'a Arrival,
    method: &'a Method,
    /// Who pays, once that is known.
    caller: Option<Arc<Caller>>,
    owner: Owner,
}

/// Who tells how a request ends.
enum Owner {
    /// The report. The request is on no ledger; it may go on to an upstream.
    Report(Option<Onward>),
    /// The request is being reserved: its settlement, if the client leaves, and else the report.
    Reservation,
    /// Its settlement.
    Settlement,
    /// Nobody: it is told.
    Nobody,
}

impl<'a> Report<'a> {
    pub(super) const fn new(
        gateway: &'a Gateway,
        arrival: &'a Arrival,
        method: &'a Method,
    ) -> Self {
        Self { gateway, arrival, method, caller: None, owner: Owner::Report(None) }
    }

    /// It is known who pays.
    pub(super) fn identified(&mut self, caller: &Arc<Caller>) {
        self.caller = Some(caller.clone());
    }

    /// It goes on to an upstream without an entry in the ledger.
    pub(super) const fn goes_on(&mut self, onward: Onward) {
        self.owner = Owner::Report(Some(onward));
    }

    /// It is being written to the ledger.
    pub(super) const fn is_being_reserved(&mut self) {
        self.owner = Owner::Reservation;
    }

    /// It is on the ledger: from now on its settlement tells how it ends.
    pub(super) const fn is_left_to_settlement(&mut self) {
        self.owner = Owner::Settlement;
    }

    /// It was refused by us.
    pub(super) fn refused(&mut self, refusal: &Refusal) {
        // Who has left is told nothing.
        let has_left = matches!(refusal, Refusal::ClientLeft);
        let status = (!has_left).then(|| refusal.status().0);
        let answer = (self.template(), status);
        let trace = match self.owner {
            // It has the spans and the line.
            Owner::Settlement => trace::found(self.unsettled()),
            Owner::Report(_) | Owner::Reservation | Owner::Nobody => {
                trace::told(self.unsettled(), answer, Some(refusal))
            }
        };
        self.gateway.telemetry.emit(&RequestRefused {
            http: self.told(answer, (Some(refusal.code()), trace)),
            request_id: &self.arrival.request_id,
            code: refusal.code(),
            message: refusal.to_string(),
        });
        self.owner = Owner::Nobody;
    }

    /// It is on no ledger, and has been answered or left by its client.
    pub(super) fn passed(&mut self, answer: Answer) {
        let trace = trace::told(self.unsettled(), answer, None);
        self.gateway.telemetry.emit(&RequestPassed(self.told(answer, (None, trace))));
        self.owner = Owner::Nobody;
    }

    /// The template of the route that it has asked for; `None` where there is none.
    fn template(&self) -> Option<&'static str> {
        identify::template(self.gateway, self.method, self.arrival.uri.path())
    }

    fn unsettled(&self) -> Unsettled<'_> {
        let &Self { gateway, arrival, method, .. } = self;
        let tenant = self.caller.as_ref().map(|caller| caller.tenant.as_str());
        let onward = match self.owner {
            Owner::Report(onward) => onward,
            Owner::Reservation | Owner::Settlement | Owner::Nobody => None,
        };
        Unsettled { gateway, arrival, method, tenant, onward }
    }

    /// What no settlement tells; `code` says why it was refused, if it was.
    fn told(
        &self,
        (route, status): Answer,
        (code, trace): (Option<&'static str>, Option<Found>),
    ) -> Http<'_> {
        let now = clock::now();
        let Unsettled { gateway, arrival, method, tenant, onward } = self.unsettled();
        let called = onward.map(|onward| Called {
            upstream: &gateway.upstream(onward.upstream).name,
            // What we answer in its place is not what it said.
            status: status.filter(|_| code.is_none()).map(|status| status.as_u16()),
            error: if status.is_none() { Some("client_disconnect") } else { code },
            duration: onward.stage_times.routed.map_or(Duration::ZERO, |routed| now - routed),
        });
        Http {
            method,
            version: arrival.version,
            route,
            status: status.map(|status| status.as_u16()),
            tenant,
            duration: now - arrival.started,
            called,
            origin: Origin { request: arrival.id, trace, at: clock::wall() },
        }
    }
}

/// The client has left before an answer.
impl Drop for Report<'_> {
    fn drop(&mut self) {
        if let Owner::Report(_) = self.owner {
            self.passed((self.template(), None));
        }
    }
}

/// A request ended with a record. Its spans, if they are kept, end when what is returned is dropped.
pub(super) fn settled(
    open: &InFlight,
    record: &Record,
    measurement: &Measurement,
) -> Option<Closing> {
    let (method, version) = (&open.call.method, open.call.version);
    let Trace { found: trace, closing } = trace::settled(open, record, measurement);
    let waited = open.call.stage_times.admitted.map_or(Duration::ZERO, |at| at - open.call.started);
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
pub(super) fn voided(open: &InFlight, reason: VoidReason) {
    let (error, now) = (error(open, reason), clock::now());
    let Trace { found: trace, closing } = trace::voided(open, reason, &error, now);
    open.gateway.telemetry.emit(&RequestVoided {
        http: Http {
            method: &open.call.method,
            version: open.call.version,
            route: Some(open.call.route.template),
            status: open.status(),
            tenant: Some(open.call.caller.tenant.as_str()),
            duration: now - open.call.started,
            called: None,
            origin: Origin { request: open.call.id, trace, at: clock::wall() },
        },
        reason,
        failed: failed(open, reason, &error, now),
    });
    if open.call.stage_times.admitted.is_some() {
        open.gateway.telemetry.emit(&operation_failed(open, open.status(), &error, trace));
    }
    drop(closing);
}

/// What an engine was called for, and what went wrong.
fn operation_failed<'a>(
    open: &'a InFlight,
    status: Option<u16>,
    error: &'a str,
    trace: Option<Found>,
) -> OperationFailed<'a> {
    OperationFailed {
        request: open.call.id,
        tenant: open.call.caller.tenant.as_str(),
        operation: open.call.route.operation.as_str(),
        provider: open.gateway.provider(open.asked.upstream),
        upstream: &open.gateway.upstream(open.asked.upstream).name,
        request_model: open.asked.request_model.as_deref(),
        status,
        error,
        trace,
    }
}

/// `error.type` of a request that used nothing.
fn error(open: &InFlight, reason: VoidReason) -> Cow<'static, str> {
    match (reason, open.status()) {
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
    open: &'a InFlight,
    reason: VoidReason,
    error: &'a str,
    now: Instant,
) -> Option<Failed<'a>> {
    let admitted = open.call.stage_times.admitted?;
    let status = match reason {
        VoidReason::UpstreamRefused => open.status(),
        VoidReason::UpstreamAuth => Some(StatusCode::UNAUTHORIZED.as_u16()),
        VoidReason::NotSent | VoidReason::ClientLeft => None,
    };
    Some(Failed {
        operation: open.call.route.operation.as_str(),
        upstream: &open.gateway.upstream(open.asked.upstream).name,
        provider: open.gateway.provider(open.asked.upstream),
        request_model: open.asked.request_model.as_deref(),
        status,
        error,
        called: now - admitted,
        sent: now - open.sent_at().unwrap_or(admitted),
    })
}
