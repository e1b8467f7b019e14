//! What happened, told once to telemetry. How it looks as metric and log line is
//! `telemetry/events.rs`.

use http::{Method, StatusCode};
use taximeter_ledger::{Record, VoidReason};
use taximeter_meter::Measurement;

use super::identify::Arrival;
use super::refuse::Refusal;
use super::settle::open::Open;
use crate::edge::clock;
use crate::gateway::Gateway;
use crate::telemetry::events::{
    Http, RequestPassed, RequestRefused, RequestSettled, RequestVoided,
};

/// A request was refused by us.
pub(super) fn refused(gateway: &Gateway, arrival: &Arrival, method: &Method, refusal: &Refusal) {
    gateway.telemetry.emit(&RequestRefused {
        http: Http {
            method,
            route: None,
            status: Some(refusal.status().0.as_u16()),
            tenant: None,
            duration: clock::now() - arrival.started,
        },
        request_id: &arrival.request_id,
        code: refusal.code(),
        message: refusal.to_string(),
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
    gateway.telemetry.emit(&RequestPassed(Http {
        method,
        route,
        status: Some(status.as_u16()),
        tenant: None,
        duration: clock::now() - arrival.started,
    }));
}

/// A request ended with a record.
pub(super) fn settled(open: &Open, record: &Record, measurement: &Measurement) {
    let method = &open.call.method;
    open.gateway.telemetry.emit(&RequestSettled { method, record, measurement });
}

/// A reserved request ended without one.
pub(super) fn voided(open: &Open, reason: VoidReason) {
    open.gateway.telemetry.emit(&RequestVoided { http: http(open), reason });
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
