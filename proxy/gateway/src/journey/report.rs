//! Reports each request once to telemetry. `telemetry/events.rs` says how an event looks as a
//! metric and as a log line.

mod blame;
mod trace;

use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use http::{Method, StatusCode};
use taximeter_ledger::{End, Record, RecordTiming, VoidReason};
use taximeter_meter::Measurement;
use taximeter_system::clock;
use taximeter_telemetry::ended::Onward;
use taximeter_telemetry::events::{
    Called, Http, OperationFailed, RequestPassed, RequestRefused, RequestSettled, RequestVoided,
};
use taximeter_telemetry::trace::Found;
use taximeter_telemetry::{Failed, Origin, StreamSeries};

use super::identify::tenant::Caller;
use super::identify::{self, Arrival};
use super::refuse::Refusal;
use super::settle::in_flight::InFlight;
use crate::gateway::Gateway;
use crate::refusals::RefusedRequest;
use blame::Failure;
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
                trace::unsettled(self.unsettled(), answer, Some(refusal))
            }
        };
        // What was admitted has a record, or is counted by its settlement.
        if !matches!(self.owner, Owner::Settlement) {
            self.count(refusal, answer);
        }
        self.gateway.telemetry.emit(&RequestRefused {
            http: self.http(answer, (Some(refusal.code()), trace)),
            request_id: &self.arrival.request_id,
            code: refusal.code(),
            limit: refusal.limit(),
            message: refusal.to_string(),
        });
        self.owner = Owner::Nobody;
    }

    /// Counts it among the requests that have no record.
    fn count(&self, refusal: &Refusal, (route, status): Answer) {
        let upstream = self.unsettled().onward.map(|onward| onward.upstream);
        self.gateway.refusals.refused(RefusedRequest {
            id: self.arrival.id,
            at: clock::wall(),
            tenant: self.caller.as_ref().map(|caller| caller.tenant.clone()),
            key_id: self.caller.as_ref().and_then(|caller| caller.key_id.clone()),
            route,
            upstream: upstream.map(|upstream| self.gateway.upstream_name(upstream)),
            status: status.map(|status| status.as_u16()),
            reason: refusal.code(),
        });
    }

    /// It is on no ledger, and has been answered or left by its client.
    pub(super) fn passed(&mut self, answer: Answer) {
        let trace = trace::unsettled(self.unsettled(), answer, None);
        self.gateway.telemetry.emit(&RequestPassed(self.http(answer, (None, trace))));
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
    fn http(
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

/// How a request ended that has used nothing.
#[derive(Debug, Clone, Copy)]
pub(super) struct UnusedOutcome {
    pub(super) end: End,
    /// The status that the client got.
    pub(super) told: Option<u16>,
}

/// The first token of a stream has come. Whether its wait was told: it may wait for none.
pub(super) fn first_token_came(
    in_flight: &InFlight,
    series: &StreamSeries,
    first: Duration,
) -> bool {
    let Some(wait) = in_flight.wait((End::Complete, None), Some(first), first) else {
        return false;
    };
    let (call, telemetry) = (&in_flight.call, &in_flight.gateway.telemetry);
    let timing =
        RecordTiming { time_to_first_token: Some(first.as_secs_f64()), ..RecordTiming::default() };
    let trace = telemetry.fate(call.id, call.trace, false, Some(&timing)).found;
    let origin = Origin { request: call.id, trace, at: clock::wall() };
    telemetry.metrics.first_token_came(series, wait, origin);
    true
}

/// A request ended with a record. Its spans, if they are kept, end when what is returned is dropped.
pub(super) fn settled(
    in_flight: &InFlight,
    record: &Record,
    measurement: &Measurement,
) -> Option<Closing> {
    let (method, version) = (&in_flight.call.method, in_flight.call.version);
    let Trace { found: trace, closing } = trace::settled(in_flight, record, measurement);
    let waited = in_flight
        .call
        .stage_times
        .admitted
        .map_or(Duration::ZERO, |at| at - in_flight.call.started);
    let failure = Failure {
        end: record.end,
        status: record.status,
        error: record.error.as_ref(),
        credential_is_ours: in_flight.credential_is_ours(),
    };
    let fault = failure.fault();
    let wait = in_flight.settled_wait((record.end, fault), measurement);
    in_flight.gateway.telemetry.emit(&RequestSettled {
        method,
        version,
        record,
        measurement,
        waited,
        fault,
        wait,
        trace,
    });
    if let Some(error) = record.error_type.as_deref() {
        in_flight.gateway.telemetry.emit(&operation_failed(in_flight, record.status, error, trace));
    }
    closing
}

/// A reserved request ended and has used nothing. `outcome` is there if an engine was to be asked.
pub(super) fn voided(in_flight: &InFlight, reason: VoidReason, outcome: Option<UnusedOutcome>) {
    let (error, now) = (unused_error(in_flight, reason), clock::now());
    let Trace { found: trace, closing } = trace::voided(in_flight, reason, &error, now);
    in_flight.gateway.telemetry.emit(&RequestVoided {
        http: Http {
            method: &in_flight.call.method,
            version: in_flight.call.version,
            route: Some(in_flight.call.route.template),
            status: in_flight.status(),
            tenant: Some(in_flight.call.caller.tenant.as_str()),
            duration: now - in_flight.call.started,
            called: None,
            origin: Origin { request: in_flight.call.id, trace, at: clock::wall() },
        },
        reason,
        failed: failed(in_flight, (reason, outcome), &error, now),
    });
    if in_flight.call.stage_times.admitted.is_some() {
        in_flight.gateway.telemetry.emit(&operation_failed(
            in_flight,
            in_flight.status(),
            &error,
            trace,
        ));
    }
    drop(closing);
}

/// What an engine was called for, and what went wrong.
fn operation_failed<'a>(
    in_flight: &'a InFlight,
    status: Option<u16>,
    error: &'a str,
    trace: Option<Found>,
) -> OperationFailed<'a> {
    OperationFailed {
        request: in_flight.call.id,
        tenant: in_flight.call.caller.tenant.as_str(),
        operation: in_flight.call.route.operation.as_str(),
        provider: in_flight.gateway.provider(in_flight.asked.upstream),
        upstream: &in_flight.gateway.upstream(in_flight.asked.upstream).name,
        request_model: in_flight.asked.request_model.as_deref(),
        status,
        error,
        trace,
    }
}

/// `error.type` of a request that used nothing.
pub(super) fn unused_error(in_flight: &InFlight, reason: VoidReason) -> Cow<'static, str> {
    match (reason, in_flight.status()) {
        (VoidReason::NotSent, _) => in_flight.refused.map_or("not_sent", |(_, code)| code).into(),
        (VoidReason::UpstreamRefused, Some(status)) => status.to_string().into(),
        (VoidReason::UpstreamRefused, None) => "upstream_refused".into(),
        (VoidReason::UpstreamAuth, _) => "401".into(),
        (VoidReason::ClientLeft, _) => "client_disconnect".into(),
    }
}

/// What was to be asked of an engine by a request that used nothing; `None` where it did not come
/// onto the ledger, so that no engine was asked for anything.
fn failed<'a>(
    in_flight: &'a InFlight,
    (reason, outcome): (VoidReason, Option<UnusedOutcome>),
    error: &'a str,
    now: Instant,
) -> Option<Failed<'a>> {
    let admitted = in_flight.call.stage_times.admitted?;
    let UnusedOutcome { end, told } = outcome?;
    let status = match reason {
        VoidReason::UpstreamRefused => in_flight.status(),
        VoidReason::UpstreamAuth => Some(StatusCode::UNAUTHORIZED.as_u16()),
        VoidReason::NotSent | VoidReason::ClientLeft => None,
    };
    let credential_is_ours = in_flight.credential_is_ours();
    let fault = Failure { end, status, error: None, credential_is_ours }.fault();
    Some(Failed {
        operation: in_flight.call.route.operation.as_str(),
        upstream: &in_flight.gateway.upstream(in_flight.asked.upstream).name,
        provider: in_flight.gateway.provider(in_flight.asked.upstream),
        request_model: in_flight.asked.request_model.as_deref(),
        status,
        error,
        end,
        told,
        fault,
        wait: in_flight.wait((end, fault), None, now - in_flight.call.started),
        called: now - admitted,
        sent: now - in_flight.sent_at().unwrap_or(admitted),
    })
}
