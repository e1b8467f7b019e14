//! An answer that shows what an earlier request has used: a response that was generated in the
//! background. The first one that shows its final usage completes the request, by a correction.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use taximeter_journal::AppendError;
use taximeter_ledger::{
    Completion, Correction, Entry, PendingRequest, RecordCost, RecordUsage, TenantId,
};
use taximeter_meter::{Delivery, Hidden, Measurement, Meter, Setup, StreamEnd, Wire};
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
use crate::journey::identify::Call;
use crate::journey::route::Chosen;
use crate::tariffs::PriceScope;

/// The reason on corrections, for people.
const REASON: &str = "usage of the answer in the background";

/// An answer that may show the usage of a pending request.
pub(super) struct Shown {
    gateway: Arc<Gateway>,
    tenant: TenantId,
    /// Index into the configured upstreams.
    upstream: usize,
    wire: Wire,
    pub(super) meter: Meter,
    /// Whether the engine has answered that it succeeded.
    pub(super) is_success: bool,
}

impl Shown {
    /// Reads the answer to a request; `None` if its route shows no usage.
    pub(super) fn new(gateway: &Arc<Gateway>, call: &Call, chosen: &Chosen) -> Option<Self> {
        let wire = call.route.shows_usage()?;
        let setup = Setup {
            wire,
            dialect: chosen.dialect,
            started_at: call.started,
            hidden: Hidden::default(),
            has_one_prompt: false,
        };
        Some(Self {
            gateway: gateway.clone(),
            tenant: call.caller.tenant.clone(),
            upstream: chosen.index,
            wire,
            meter: Meter::new(setup).decoding(gateway.config.limits.decode_ratio_max),
            is_success: false,
        })
    }

    /// Bytes of the answer. What it says was generated for another request, and is not counted.
    pub(super) fn on_bytes(&mut self, now: Instant, data: Bytes) -> Delivery {
        let delivery = self.meter.on_bytes(now, data);
        self.meter.fold_text(|_| {});
        delivery
    }

    /// Completes the request whose usage the answer has shown, if it is pending.
    pub(super) fn settle(self, end: StreamEnd) -> Settling {
        let Self { gateway, tenant, upstream, wire, meter, is_success } = self;
        let measurement = meter.finish(clock::now(), end);
        let Some(response_id) = measurement.response_id.as_deref().filter(|_| is_success) else {
            return Settling::done();
        };
        let upstream = &gateway.upstream(upstream).name;
        let pending = gateway.journal.pending(&tenant, upstream, response_id);
        let completion =
            pending.as_ref().and_then(|pending| completion(pending, wire, &measurement));
        match pending.zip(completion) {
            Some((pending, completion)) => complete(&gateway, &pending, completion),
            None => Settling::done(),
        }
    }
}

/// What an answer says that the request has used; `None` while that may change, or where it does not
/// say.
fn completion(
    pending: &PendingRequest,
    wire: Wire,
    measurement: &Measurement,
) -> Option<Completion> {
    if measurement.is_pending || measurement.finish_reasons.is_empty() {
        return None;
    }
    let mut usage = if measurement.reports_usage() {
        usage::usage(TokenParts::of(wire), measurement, &Count::default()).0
    } else if record::owes_nothing(measurement) {
        RecordUsage { source: Source::None, ..RecordUsage::default() }
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
        usage,
        reported_cost: measurement.reported_cost.clone(),
    })
}

/// Writes the correction that completes a request. Another one may have been faster.
fn complete(gateway: &Gateway, pending: &PendingRequest, completion: Completion) -> Settling {
    let made_at = record::micros(clock::wall());
    let cost = cost(gateway, pending, &completion);
    let correction = Correction {
        id: pending.completion_id(),
        corrects: pending.id,
        started_at: pending.started_at,
        tenant: pending.tenant.clone(),
        made_at,
        reason: REASON.to_owned(),
        before: None,
        after: cost,
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
            },
            at: made_at,
        });
        if let Some(size) = ContextTokens::behind(&completion.usage) {
            let response = Context::Response(pending.response_id.clone());
            gateway.contexts.put(&pending.tenant, &pending.upstream, &response, size);
        }
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

/// The price at the time of the request's admission.
fn cost(
    gateway: &Gateway,
    pending: &PendingRequest,
    completion: &Completion,
) -> Option<RecordCost> {
    let either = |new: &Option<String>, old: &Option<String>| new.clone().or_else(|| old.clone());
    let response_model = either(&completion.response_model, &pending.response_model);
    let service_tier = either(&completion.service_tier, &pending.service_tier);
    let query = Query {
        provider: Some(&pending.provider),
        response_model: response_model.as_deref(),
        request_model: pending.request_model.as_deref(),
        service_tier: service_tier.as_deref(),
        at: pending.started_at,
    };
    let scope = PriceScope { tenant: &pending.tenant.0, upstream: &pending.upstream };
    gateway.tariffs.charge(scope, &query, &Usage::from(&completion.usage)).cost
}
