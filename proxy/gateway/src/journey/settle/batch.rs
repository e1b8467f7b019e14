//! A batch: many requests that a provider answers later. Its object tells what they used together,
//! and its results tell what each of them used.

mod line;
mod object;
mod results;
mod sums;

use taximeter_ledger::{Charge, Completion, PendingRequest, RecordUsage};
use taximeter_meter::{Dialect, Wire};
use taximeter_pricing::{Source, Usage};

use super::completing::{charge, complete, completion, query, scope};
use super::settling::Settling;
use crate::batch_files::{BatchFile, BatchFiles};
use crate::gateway::{Gateway, HeldText};

use object::BatchObject;
use results::BatchUsage;
pub(super) use results::Results;

/// Longest object of a batch and longest line of its results that is read, in bytes. Some objects
/// have the results in them.
const READ_BYTES_MAX: usize = 16 << 20;

/// Holds an object or a line until it is whole.
pub(super) fn held_text(gateway: &Gateway) -> HeldText {
    HeldText::new(gateway.hold(), READ_BYTES_MAX)
}

/// Begins to read the results of a batch.
pub(super) fn results(gateway: &Gateway, pending: &PendingRequest, dialect: Dialect) -> Results {
    Results::new(dialect, pending.conditions.clone(), held_text(gateway))
}

/// The price of one request of a batch, by the model that its answer names.
pub(super) fn price<'a>(
    gateway: &'a Gateway,
    pending: &'a PendingRequest,
) -> impl Fn(Option<&str>, &Usage) -> Charge + 'a {
    move |model, usage| charge(gateway, pending, (model, None), usage)
}

/// Completes a batch by its object, which is `text`. `None` if that does not say what all its
/// requests have used, or that of a batch which is not pending.
pub(super) fn settle_object(
    gateway: &Gateway,
    dialect: Dialect,
    find: impl Fn(&str) -> Option<PendingRequest>,
    text: &[u8],
) -> Option<Settling> {
    let measurement = line::measure(Wire::Batches, dialect, text);
    if measurement.is_pending || measurement.finish_reasons.is_empty() {
        return None;
    }
    let pending = find(measurement.response_id.as_deref()?)?;
    let object = BatchObject::read(text)?;
    note_file(&gateway.batch_files, &pending, &object);
    let by_results = object.results.as_ref().and_then(|inline| {
        let mut results = results(gateway, &pending, dialect);
        for one in inline {
            results.read(one.as_str().as_bytes(), &price(gateway, &pending));
        }
        settle_results(gateway, &pending, results, object.answered)
    });
    if by_results.is_some() {
        return by_results;
    }
    let reported = measurement.reported.as_ref().map(|reported| &reported.usage);
    let is_zero = reported.is_none_or(|usage| {
        usage.input_tokens.unwrap_or(0) == 0 && usage.output_tokens.unwrap_or(0) == 0
    });
    let mut completion = match is_zero {
        true if object.is_nothing_answered(&measurement.finish_reasons) => nothing(&pending),
        // Nobody asks for nothing.
        true => return None,
        false => completion(&pending, Wire::Batches, &measurement)?,
    };
    completion.requests = Some(object.requests.unwrap_or(1));
    completion.finish_reasons = measurement.finish_reasons;
    let query = query(&pending, completion.response_model.as_deref());
    if is_zero {
        let cost = gateway.tariffs.nothing(scope(&pending), &query);
        let charge = Charge { cost, unknown: Vec::new() };
        return Some(complete(gateway, &pending, completion, charge));
    }
    // Without a model there is no price: the results say which models were at work.
    query.response_model.or(query.request_model)?;
    // Where the price depends on the length of each request, the results tell it.
    let usage = Usage::from(&completion.usage);
    let charge = gateway.tariffs.charge_of_many(scope(&pending), &query, &usage)?;
    Some(complete(gateway, &pending, completion, charge))
}

/// Completes a batch by its results. `None` if they do not say what all its requests have used:
/// `answered` of them were answered, as far as the object of the batch has told.
pub(super) fn settle_results(
    gateway: &Gateway,
    pending: &PendingRequest,
    results: Results,
    answered: Option<u64>,
) -> Option<Settling> {
    let batch = results.finish(&price(gateway, pending))?;
    if answered > Some(batch.answered) {
        return None;
    }
    let BatchUsage { response_model, usage, models, charge, requests, reported_cost, .. } = batch;
    let charge = match usage.source {
        Source::None => {
            let cost = gateway.tariffs.nothing(scope(pending), &query(pending, None));
            Charge { cost, unknown: Vec::new() }
        }
        _ => charge,
    };
    let completion = Completion {
        response_model,
        requests: Some(requests),
        models,
        usage,
        reported_cost,
        ..nothing(pending)
    };
    Some(complete(gateway, pending, completion, charge))
}

/// A batch whose requests have used nothing.
fn nothing(pending: &PendingRequest) -> Completion {
    Completion {
        response_id: pending.response_id.clone(),
        response_model: None,
        service_tier: None,
        finish_reasons: Vec::new(),
        error: None,
        requests: None,
        models: Vec::new(),
        usage: RecordUsage { source: Source::None, ..RecordUsage::default() },
        reported_cost: None,
    }
}

/// Remembers which file has the results.
fn note_file(files: &BatchFiles, pending: &PendingRequest, object: &BatchObject<'_>) {
    if let Some(file) = &object.file {
        files.put(BatchFile {
            tenant: pending.tenant.clone(),
            upstream: pending.upstream.clone(),
            file: file.clone(),
            batch: pending.response_id.clone(),
            answered: object.answered,
        });
    }
}
