//! Events for Stripe, Lago and Orb. Each event has an id that stays the same, so an event that is
//! sent twice counts once.

use std::borrow::Cow;

use jiff::Timestamp;
use rust_decimal::Decimal;
use serde::Serialize;
use taximeter_ledger::{Correction, Record, RecordCost, RecordUsage, RequestId};

use super::cloudevents::{ItemData, RequestData};
use super::item::BillItem;
use super::window::Window;
use crate::billed_request::BilledRequest;

/// The quantity of one meter in one request.
pub(super) struct MeterQuantity<'a> {
    /// Its index in the request.
    index: usize,
    /// `input_tokens`, `cache_read_tokens`, `output_tokens`, `audio_seconds` and so on. No meter is
    /// a part of another.
    meter: Cow<'a, str>,
    model: Option<&'a str>,
    quantity: Decimal,
    /// Its cost, if known.
    amount: Option<Decimal>,
}

/// A request whose quantities are events, or a correction that says what a request used.
pub(super) struct Metered<'a> {
    id: RequestId,
    tenant: &'a str,
    pub(super) at: Timestamp,
    operation: &'a str,
    provider: &'a str,
    key_id: Option<&'a str>,
    model: Option<&'a str>,
    usage: &'a RecordUsage,
    cost: Option<&'a RecordCost>,
}

impl<'a> Metered<'a> {
    /// A request. `None` while its usage is pending: a correction will say it.
    pub(super) fn of(record: &'a Record) -> Option<Self> {
        (!record.is_pending()).then(|| Self {
            id: record.id,
            tenant: &record.tenant.0,
            at: record.started_at,
            operation: &record.operation,
            provider: &record.provider,
            key_id: record.key_id.as_deref(),
            model: record.response_model.as_deref().or(record.request_model.as_deref()),
            usage: &record.usage,
            cost: record.owed(),
        })
    }

    /// What the request `row` used, if the correction completes it.
    pub(super) fn of_completion(
        row: &BilledRequest<'a>,
        correction: &'a Correction,
        window: Window,
    ) -> Option<Self> {
        let completion = correction.completion.as_ref()?;
        Some(Self {
            id: correction.id,
            tenant: row.tenant,
            at: window.time_of_correction(row.started_at, correction.made_at),
            operation: row.operation,
            provider: row.provider,
            key_id: row.key_id,
            model: completion.response_model.as_deref().or(row.model),
            usage: &completion.usage,
            cost: correction.after.as_ref(),
        })
    }
}

/// The quantities of a request by meter: as they were priced and, as far as the cost is unknown, as
/// they were counted. An unknown quantity makes no event, and neither does a zero.
pub(super) fn meter_quantities<'a>(metered: &Metered<'a>) -> Vec<MeterQuantity<'a>> {
    let Metered { model, usage, cost, .. } = *metered;
    let mut meter_quantities = cost.map(|cost| priced(cost, model)).unwrap_or_default();
    if RecordCost::is_unknown(cost) {
        let counted: Vec<_> = counted(usage, model)
            .into_iter()
            .filter(|used| !meter_quantities.iter().any(|priced| priced.is_of(used)))
            .collect();
        meter_quantities.extend(counted);
    }
    let meter_quantities = meter_quantities.into_iter().filter(|used| !used.quantity.is_zero());
    meter_quantities.enumerate().map(|(index, used)| MeterQuantity { index, ..used }).collect()
}

impl MeterQuantity<'_> {
    /// Whether it has what `counted` counts of the same model: modalities are parts of the input
    /// and the output.
    fn is_of(&self, counted: &Self) -> bool {
        let side = |meter: &str| match meter.strip_suffix("_tokens") {
            Some(tokens) if tokens.starts_with("input") => "input",
            Some(tokens) if tokens.starts_with("output") || tokens == "reasoning" => "output",
            Some(tokens) if tokens.starts_with("cache_read") => "cache_read",
            Some(tokens) if tokens.starts_with("cache_write") => "cache_write",
            _ => "",
        };
        let side_of_counted = side(&counted.meter);
        self.model == counted.model
            && (self.meter == counted.meter
                || !side_of_counted.is_empty() && side(&self.meter) == side_of_counted)
    }
}

fn priced<'a>(cost: &'a RecordCost, model: Option<&'a str>) -> Vec<MeterQuantity<'a>> {
    let lines = cost.lines.iter();
    lines
        .map(|line| MeterQuantity {
            index: 0,
            meter: match line.counted_in() {
                unit if line.meter.ends_with(unit) => line.meter.as_str().into(),
                unit => format!("{}_{unit}", line.meter).into(),
            },
            model: line.model.as_deref().or(model),
            quantity: line.count().normalize(),
            amount: Some(line.amount.normalize()),
        })
        .collect()
}

fn counted<'a>(usage: &'a RecordUsage, model: Option<&'a str>) -> Vec<MeterQuantity<'a>> {
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
    tokens
        .map(used)
        .chain(units.map(|(name, count)| (Cow::Owned(name.to_owned()), count)))
        .map(|(meter, quantity)| MeterQuantity { index: 0, meter, model, quantity, amount: None })
        .collect()
}

/// `0193…:2`: the id of the request or correction and the index of the meter.
fn identifier(metered: &Metered<'_>, used: &MeterQuantity<'_>) -> String {
    format!("{}:{}", metered.id, used.index)
}

/// An event of `POST /v2/billing/meter_event_stream`: `{"events": […]}`.
#[derive(Debug, Serialize)]
pub(super) struct StripeEvent<'a> {
    event_name: &'a str,
    identifier: Cow<'a, str>,
    timestamp: Timestamp,
    payload: StripePayload<'a>,
}

/// Stripe takes payloads as texts.
#[derive(Debug, Serialize)]
struct StripePayload<'a> {
    stripe_customer_id: &'a str,
    value: Decimal,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    provider: Option<&'a str>,
}

impl<'a> StripeEvent<'a> {
    pub(super) fn of(metered: &Metered<'a>, used: &'a MeterQuantity<'_>) -> Self {
        Self {
            event_name: &used.meter,
            identifier: identifier(metered, used).into(),
            timestamp: metered.at,
            payload: StripePayload {
                stripe_customer_id: metered.tenant,
                value: used.quantity,
                model: used.model,
                provider: Some(metered.provider),
            },
        }
    }

    /// The event of a share of GPUs. Stripe has prices of its own, so items that are only money
    /// make no event.
    pub(super) fn of_item(item: &'a BillItem<'_>) -> Option<Self> {
        let value = item.quantity.filter(|_| item.kind.is_usage())?.normalize();
        let (model, provider) = (item.details.model, item.details.provider);
        Some(Self {
            event_name: item.kind.meter(),
            identifier: Cow::Borrowed(&item.id),
            timestamp: item.at,
            payload: StripePayload { stripe_customer_id: item.tenant, value, model, provider },
        })
    }
}

/// An event of `POST /api/v1/events/batch`: `{"events": […]}`.
#[derive(Debug, Serialize)]
pub(super) struct LagoEvent<'a> {
    transaction_id: Cow<'a, str>,
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
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<Decimal>,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    operation: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    provider: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    key_id: Option<&'a str>,
}

impl<'a> LagoEvent<'a> {
    pub(super) fn of(metered: &Metered<'a>, used: &'a MeterQuantity<'_>) -> Self {
        Self {
            transaction_id: identifier(metered, used).into(),
            external_subscription_id: metered.tenant,
            code: &used.meter,
            timestamp: seconds(metered.at),
            precise_total_amount_cents: used.amount.and_then(cents),
            properties: LagoProperties {
                value: Some(used.quantity),
                model: used.model,
                operation: Some(metered.operation),
                provider: Some(metered.provider),
                key_id: metered.key_id,
            },
        }
    }

    /// The event of an item, with its cost.
    pub(super) fn of_item(item: &'a BillItem<'_>) -> Self {
        Self {
            transaction_id: Cow::Borrowed(&item.id),
            external_subscription_id: item.tenant,
            code: item.kind.meter(),
            timestamp: seconds(item.at),
            precise_total_amount_cents: cents(item.cost),
            properties: LagoProperties {
                value: item.quantity.map(|quantity| quantity.normalize()),
                model: item.details.model,
                operation: None,
                provider: item.details.provider,
                key_id: item.details.key_id,
            },
        }
    }
}

/// Lago's form of money.
fn cents(amount: Decimal) -> Option<Decimal> {
    amount.checked_mul(Decimal::ONE_HUNDRED).map(|cents| cents.normalize())
}

/// Lago's form of time.
fn seconds(at: Timestamp) -> String {
    at.strftime("%s.%6f").to_string()
}

/// An event of `POST /v1/ingest`: `{"events": […]}`.
#[derive(Debug, Serialize)]
pub(super) struct OrbEvent<'a, K, P> {
    event_name: &'static str,
    idempotency_key: K,
    timestamp: Timestamp,
    external_customer_id: &'a str,
    properties: P,
}

impl<'a> OrbEvent<'a, RequestId, RequestData<'a>> {
    pub(super) fn of(record: &'a Record) -> Self {
        Self {
            event_name: "taximeter.request",
            idempotency_key: record.id,
            timestamp: record.started_at,
            external_customer_id: &record.tenant.0,
            properties: RequestData::of(record),
        }
    }
}

impl<'a> OrbEvent<'a, &'a str, ItemData<'a>> {
    pub(super) fn of_item(item: &'a BillItem<'_>) -> Self {
        Self {
            event_name: item.kind.event_type(),
            idempotency_key: &item.id,
            timestamp: item.at,
            external_customer_id: item.tenant,
            properties: ItemData::of(item),
        }
    }
}
