//! Events in the shapes of Stripe, Lago and Orb. All have ids of their own that stay the same, so
//! that what is sent twice counts once.

use std::borrow::Cow;

use jiff::Timestamp;
use rust_decimal::Decimal;
use serde::Serialize;
use taximeter_ledger::{Record, RequestId};

use super::cloudevents::Data;

/// What one request used of one meter.
pub(super) struct Use<'a> {
    /// Which of its request's.
    index: usize,
    /// `input_tokens`, `cache_read_tokens`, `output_tokens`, `audio_seconds` and so on; none of them
    /// is a part of another.
    meter: Cow<'a, str>,
    model: Option<&'a str>,
    quantity: Decimal,
    /// What it costs, where that is known.
    amount: Option<Decimal>,
}

/// What a request used, meter by meter: as it was priced or, at unknown cost, as it was counted.
/// What is unknown makes no event, and neither does a zero.
pub(super) fn uses(record: &Record) -> Vec<Use<'_>> {
    let uses = if record.cost.is_some() { priced(record) } else { counted(record) };
    let uses = uses.into_iter().filter(|used| !used.quantity.is_zero());
    uses.enumerate().map(|(index, used)| Use { index, ..used }).collect()
}

fn model(record: &Record) -> Option<&str> {
    record.response_model.as_deref().or(record.request_model.as_deref())
}

fn priced(record: &Record) -> Vec<Use<'_>> {
    let lines = record.cost.iter().flat_map(|cost| &cost.lines);
    lines
        .map(|line| Use {
            index: 0,
            meter: match line.counted_in() {
                unit if line.meter.ends_with(unit) => line.meter.as_str().into(),
                unit => format!("{}_{unit}", line.meter).into(),
            },
            model: line.model.as_deref().or(model(record)),
            quantity: line.count().normalize(),
            amount: Some(line.amount.normalize()),
        })
        .collect()
}

fn counted(record: &Record) -> Vec<Use<'_>> {
    let usage = &record.usage;
    let (read, write) = (usage.cache_read_input_tokens, usage.cache_write_input_tokens);
    let cached = read.unwrap_or(0).saturating_add(write.unwrap_or(0));
    let tokens = [
        ("input_tokens", usage.input_tokens.map(|tokens| tokens.saturating_sub(cached))),
        ("cache_read_tokens", read),
        ("cache_write_tokens", write),
        ("output_tokens", usage.output_tokens),
    ];
    let tokens = tokens.into_iter().filter_map(|(name, tokens)| Some((name, tokens?.into())));
    let units = usage.units.iter().map(|(name, count)| (name.as_str(), *count));
    let used = |(meter, quantity): (&'static str, Decimal)| (Cow::Borrowed(meter), quantity);
    let model = model(record);
    tokens
        .map(used)
        .chain(units.map(|(name, count)| (Cow::Owned(name.to_owned()), count)))
        .map(|(meter, quantity)| Use { index: 0, meter, model, quantity, amount: None })
        .collect()
}

/// `0193…:2`: the request, and which of its uses.
fn identifier(record: &Record, used: &Use<'_>) -> String {
    format!("{}:{}", record.id, used.index)
}

/// An event of `POST /v2/billing/meter_event_stream`: `{"events": […]}`.
#[derive(Debug, Serialize)]
pub(super) struct StripeEvent<'a> {
    event_name: &'a str,
    identifier: String,
    timestamp: Timestamp,
    payload: StripePayload<'a>,
}

/// Stripe's payloads are texts.
#[derive(Debug, Serialize)]
struct StripePayload<'a> {
    stripe_customer_id: &'a str,
    value: Decimal,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<&'a str>,
    provider: &'a str,
}

impl<'a> StripeEvent<'a> {
    pub(super) fn of(record: &'a Record, used: &'a Use<'_>) -> Self {
        Self {
            event_name: &used.meter,
            identifier: identifier(record, used),
            timestamp: record.started_at,
            payload: StripePayload {
                stripe_customer_id: &record.tenant.0,
                value: used.quantity,
                model: used.model,
                provider: &record.provider,
            },
        }
    }
}

/// An event of `POST /api/v1/events/batch`: `{"events": […]}`.
#[derive(Debug, Serialize)]
pub(super) struct LagoEvent<'a> {
    transaction_id: String,
    external_subscription_id: &'a str,
    code: &'a str,
    /// Seconds since 1970, with microseconds.
    timestamp: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    precise_total_amount_cents: Option<Decimal>,
    properties: LagoProperties<'a>,
}

#[derive(Debug, Serialize)]
struct LagoProperties<'a> {
    value: Decimal,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<&'a str>,
    operation: &'a str,
    provider: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    key_id: Option<&'a str>,
}

impl<'a> LagoEvent<'a> {
    pub(super) fn of(record: &'a Record, used: &'a Use<'_>) -> Self {
        let cents = |amount: Decimal| amount.checked_mul(Decimal::ONE_HUNDRED);
        Self {
            transaction_id: identifier(record, used),
            external_subscription_id: &record.tenant.0,
            code: &used.meter,
            timestamp: record.started_at.strftime("%s.%6f").to_string(),
            precise_total_amount_cents: used.amount.and_then(cents).map(|cents| cents.normalize()),
            properties: LagoProperties {
                value: used.quantity,
                model: used.model,
                operation: &record.operation,
                provider: &record.provider,
                key_id: record.key_id.as_deref(),
            },
        }
    }
}

/// An event of `POST /v1/ingest`: `{"events": […]}`.
#[derive(Debug, Serialize)]
pub(super) struct OrbEvent<'a> {
    event_name: &'static str,
    idempotency_key: RequestId,
    timestamp: Timestamp,
    external_customer_id: &'a str,
    properties: Data<'a>,
}

impl<'a> OrbEvent<'a> {
    pub(super) fn of(record: &'a Record) -> Self {
        Self {
            event_name: "taximeter.request",
            idempotency_key: record.id,
            timestamp: record.started_at,
            external_customer_id: &record.tenant.0,
            properties: Data::of(record),
        }
    }
}
