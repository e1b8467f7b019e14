//! Completes a pending request: writes the correction that says what it has used.

use taximeter_journal::AppendError;
use taximeter_ledger::{Charge, Completion, Correction, Entry, PendingRequest, RecordUsage};
use taximeter_meter::{Measurement, Wire};
use taximeter_pricing::{Query, Source, Usage};
use taximeter_request::Context;
use taximeter_system::clock;
use taximeter_telemetry::Completed;
use taximeter_telemetry::events::{CompletionDelayed, LedgerSlow, RequestCompleted};

use super::count::Count;
use super::record;
use super::settling::{Settling, Written};
use super::usage::{self, TokenParts};
use crate::contexts::ContextTokens;
use crate::gateway::Gateway;
use crate::tariffs::PriceScope;

/// The reason on corrections, for people.
const REASON: &str = "usage of the answer in the background";

/// What an answer says that the request has used; `None` while that may change, or where it does not
/// say.
pub(super) fn completion(
    pending: &PendingRequest,
    wire: Wire,
    measurement: &Measurement,
) -> Option<Completion> {
    if measurement.is_pending || measurement.finish_reasons.is_empty() {
        return None;
    }
    let mut usage = if record::owes_nothing(measurement) {
        RecordUsage { source: Source::None, ..RecordUsage::default() }
    } else if measurement.reports_usage() {
        usage::usage(TokenParts::of(wire), measurement, &Count::default()).0
    } else {
        return None;
    };
    for (condition, value) in &pending.conditions {
        usage.conditions.entry(*condition).or_insert_with(|| value.clone());
    }
    Some(Completion {
        response_id: pending.response_id.clone(),
        response_model: measurement.response_model.clone(),
        service_tier: measurement.service_tier.clone(),
        finish_reasons: measurement.finish_reasons.clone(),
        error: measurement.error.as_ref().and_then(record::named),
        requests: None,
        models: Vec::new(),
        usage,
        reported_cost: measurement.reported_cost.clone(),
    })
}

/// What `usage` of a pending request costs, at the prices of its admission. The answer names
/// `response_model` and `service_tier`.
pub(super) fn charge(
    gateway: &Gateway,
    pending: &PendingRequest,
    (response_model, service_tier): (Option<&str>, Option<&str>),
    usage: &Usage,
) -> Charge {
    let query = Query {
        service_tier: service_tier.or(pending.service_tier.as_deref()),
        ..query(pending, response_model)
    };
    gateway.tariffs.charge(scope(pending), &query, usage)
}

/// Who pays for a pending request.
pub(super) fn scope(pending: &PendingRequest) -> PriceScope<'_> {
    PriceScope { tenant: &pending.tenant.0, upstream: &pending.upstream }
}

/// What decides the price of a pending request whose answer names this model.
pub(super) fn query<'a>(pending: &'a PendingRequest, response_model: Option<&'a str>) -> Query<'a> {
    Query {
        provider: Some(&pending.provider),
        response_model: response_model.or(pending.response_model.as_deref()),
        request_model: pending.request_model.as_deref(),
        service_tier: pending.service_tier.as_deref(),
        at: pending.started_at,
    }
}

/// Writes the correction. Another answer may have been faster.
pub(super) fn complete(
    gateway: &Gateway,
    pending: &PendingRequest,
    completion: Completion,
    charge: Charge,
) -> Settling {
    let made_at = record::micros(clock::wall());
    let correction = Correction {
        id: pending.completion_id(),
        corrects: pending.id,
        started_at: pending.started_at,
        tenant: pending.tenant.clone(),
        made_at,
        reason: REASON.to_owned(),
        before: None,
        after: charge.cost,
        completion: Some(Box::new(completion)),
        completed: None,
    };
    let entry = Entry::Correction(Box::new(correction));
    let append = match gateway.journal.append(&entry) {
        Ok(append) => append,
        Err(AppendError::NotPending) => return Settling::done(),
        Err(fault) => {
            let (id, reason) = (pending.id, fault.to_string());
            gateway.telemetry.emit(&CompletionDelayed { id, reason });
            return Settling::done();
        }
    };
    if let Entry::Correction(correction) = &entry
        && let Some(completion) = &correction.completion
    {
        let response_model = completion.response_model.as_deref();
        gateway.telemetry.emit(&RequestCompleted {
            completed: Completed {
                request: pending,
                response_model: response_model.or(pending.response_model.as_deref()),
                usage: &completion.usage,
                cost: correction.after.as_ref(),
                unknown: &charge.unknown,
            },
            at: made_at,
        });
        remember(gateway, pending, completion);
    }
    let limit = gateway.config.limits.ledger_write_timeout;
    let telemetry = gateway.telemetry.clone();
    let written: Written = Box::pin(async move {
        if tokio::time::timeout(limit, append).await.is_err() {
            telemetry.emit(&LedgerSlow { action: "settle", took: limit });
        }
    });
    Settling::posted((written, record::Receipt::default()))
}

/// Remembers how long the answer is, for requests that go on from it. Nothing goes on from a batch.
fn remember(gateway: &Gateway, pending: &PendingRequest, completion: &Completion) {
    if completion.requests.is_some() {
        return;
    }
    if let Some(size) = ContextTokens::behind(&completion.usage) {
        let response = Context::Response(pending.response_id.clone());
        gateway.contexts.put(&pending.tenant, &pending.upstream, &response, size);
    }
}
