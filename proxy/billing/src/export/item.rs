//! The items of a bill besides single requests: corrections, shares of GPUs, and credits. With
//! them, events add up to the bill.

use std::borrow::Cow;
use std::collections::BTreeMap;

use jiff::Timestamp;
use rust_decimal::Decimal;
use serde::Serialize;
use sha2::{Digest as _, Sha256};
use taximeter_ledger::{Completion, Correction, RecordCost, RequestId};
use uuid::Uuid;

use super::error::ExportError;
use super::window::Window;
use crate::credit::{Covered, Credit};
use crate::gpu::IDLE;
use crate::hours::{Hour, HourKey, LineKey};
use crate::period::Period;
use crate::sums::{add_exactly, exact_product};
use crate::zone::Zone;

/// One item. Its id stays the same for the same data, so an item that is sent twice counts once.
#[derive(Debug, Clone)]
pub struct BillItem<'a> {
    pub(super) id: Cow<'a, str>,
    pub(super) kind: BillItemKind,
    /// The time that decides the period: the admission of the corrected request, the hour of the
    /// GPUs, or the start of the month of an allowance. A late correction can have its own time.
    pub(super) at: Timestamp,
    /// The tenant that pays.
    pub(super) tenant: &'a str,
    /// ISO 4217. Empty if the cost is unknown.
    pub(super) currency: &'a str,
    /// The amount that it adds to the bill. Below zero if it reduces the bill.
    pub(super) cost: Decimal,
    /// The same at list price. A credit has no list price.
    pub(super) list_cost: Decimal,
    /// The quantity, if something is measured.
    pub(super) quantity: Option<Decimal>,
    pub(super) details: ItemDetails<'a>,
}

/// The kind of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BillItemKind {
    Correction,
    /// A correction that says what a request used.
    Completion,
    Gpu,
    IdleGpu,
    Credit,
}

/// Further members of an item, if they are known.
#[derive(Debug, Clone, Default, Serialize)]
pub(super) struct ItemDetails<'a> {
    /// The request whose cost is corrected.
    #[serde(skip_serializing_if = "Option::is_none")]
    corrects: Option<RequestId>,
    /// Admission of the request, if the time of the event is that of the correction.
    #[serde(skip_serializing_if = "Option::is_none")]
    request_at: Option<Timestamp>,
    /// Time of the correction.
    #[serde(skip_serializing_if = "Option::is_none")]
    made_at: Option<Timestamp>,
    /// The reason, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) key_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    upstream: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) provider: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) model: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    price_id: Option<&'a str>,
    /// The meter whose tokens are free.
    #[serde(skip_serializing_if = "Option::is_none")]
    meter: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    usage_source: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    input_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_read_input_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_write_input_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_output_tokens: Option<u64>,
    /// Quantities besides tokens.
    #[serde(flatten)]
    units: Option<&'a BTreeMap<String, Decimal>>,
}

impl<'a> ItemDetails<'a> {
    /// With what a request used that a correction completes.
    fn with_usage(self, completion: &'a Completion) -> Self {
        let usage = &completion.usage;
        Self {
            model: completion.response_model.as_deref(),
            usage_source: Some(usage.source.as_str()),
            input_tokens: usage.input_tokens,
            cache_read_input_tokens: usage.cache_read_input_tokens,
            cache_write_input_tokens: usage.cache_write_input_tokens,
            output_tokens: usage.output_tokens,
            reasoning_output_tokens: usage.reasoning_output_tokens,
            units: Some(&usage.units),
            ..self
        }
    }
}

impl BillItemKind {
    /// The event type for CloudEvents and Orb.
    pub(super) const fn event_type(self) -> &'static str {
        match self {
            Self::Correction => "taximeter.correction",
            Self::Completion => "taximeter.completion",
            Self::Gpu | Self::IdleGpu => "taximeter.gpu_share",
            Self::Credit => "taximeter.credit",
        }
    }

    /// Whether it is usage, and not only money.
    pub(super) const fn is_usage(self) -> bool {
        matches!(self, Self::Gpu | Self::IdleGpu)
    }

    /// The name of the meter for Stripe and Lago.
    pub(super) const fn meter(self) -> &'static str {
        match self {
            Self::Correction => "correction",
            Self::Completion => "completion",
            Self::Gpu => "gpu_hours",
            Self::IdleGpu => "idle_gpu_hours",
            Self::Credit => "credit",
        }
    }
}

impl<'a> BillItem<'a> {
    /// The change of cost in a correction: one item, or one for each currency if the currency
    /// changes. None if both costs are unknown, unless the correction completes its request: then
    /// one that has no currency.
    ///
    /// # Errors
    /// [`ExportError::TooLarge`] for a difference that cannot be kept exactly.
    pub fn of_correction(correction: &'a Correction) -> Result<Vec<Self>, ExportError> {
        let too_large = ExportError::TooLarge { what: "the difference of a correction" };
        let (before, after) = (correction.before.as_ref(), correction.after.as_ref());
        let details = ItemDetails {
            corrects: Some(correction.corrects),
            made_at: Some(correction.made_at),
            reason: Some(&correction.reason),
            price_id: after.or(before).map(|cost| cost.price_id.as_str()),
            ..ItemDetails::default()
        };
        let of = |currency: &'a str, cost, list_cost| Self {
            id: correction.id.to_string().into(),
            kind: match correction.completion {
                Some(_) => BillItemKind::Completion,
                None => BillItemKind::Correction,
            },
            at: correction.started_at,
            tenant: &correction.tenant.0,
            currency,
            cost,
            list_cost,
            quantity: None,
            details: match &correction.completion {
                Some(completion) => details.clone().with_usage(completion),
                None => details.clone(),
            },
        };
        let taken = |cost: &'a RecordCost| of(&cost.currency, -cost.amount, -cost.list_amount);
        let owed = |cost: &'a RecordCost| of(&cost.currency, cost.amount, cost.list_amount);
        Ok(match (before, after) {
            (Some(before), Some(after)) if before.currency == after.currency => {
                let cost = add_exactly(after.amount, -before.amount);
                let list_cost = add_exactly(after.list_amount, -before.list_amount);
                let (cost, list_cost) = cost.zip(list_cost).ok_or(too_large)?;
                vec![of(&after.currency, cost, list_cost)]
            }
            (Some(before), Some(after)) => {
                let taken = taken(before);
                let id = format!("{}:{}", taken.id, taken.currency).into();
                vec![Self { id, ..taken }, owed(after)]
            }
            (None, None) if correction.completion.is_some() => {
                vec![of("", Decimal::ZERO, Decimal::ZERO)]
            }
            (before, after) => before.map(taken).into_iter().chain(after.map(owed)).collect(),
        })
    }

    /// The same item with the time that the receiver takes, if it is of a correction.
    pub(super) fn within(self, window: Window) -> Self {
        let Some(made_at) = self.details.made_at else { return self };
        let at = window.time_of_correction(self.at, made_at);
        let request_at = (at != self.at).then_some(self.at);
        Self { at, details: ItemDetails { request_at, ..self.details }, ..self }
    }

    /// The shares of GPUs in an hour. Shares of zero are left out.
    ///
    /// # Errors
    /// [`ExportError::TooLarge`].
    pub fn of_gpus(key: &'a HourKey, hour: &'a Hour) -> Result<Vec<Self>, ExportError> {
        let lines = hour.lines.iter().filter(|(_, quantity)| !quantity.is_zero());
        lines.map(|(line, quantity)| Self::of_share(key, line, *quantity)).collect()
    }

    fn of_share(
        key: &'a HourKey,
        line: &'a LineKey,
        quantity: Decimal,
    ) -> Result<Self, ExportError> {
        let cost = |price| exact_product(quantity, price);
        let costs = cost(line.unit_price).zip(cost(line.list_unit_price));
        let (cost, list_cost) = costs.ok_or(ExportError::TooLarge { what: "a share of GPUs" })?;
        Ok(Self {
            id: digest(&(key, key.hour, &line.meter, &line.price_id))?,
            kind: if line.meter == IDLE { BillItemKind::IdleGpu } else { BillItemKind::Gpu },
            at: key.hour,
            tenant: &key.tenant,
            currency: key.currency.as_deref().unwrap_or_default(),
            cost,
            list_cost,
            quantity: Some(quantity),
            details: ItemDetails {
                key_id: key.key_id.as_deref(),
                upstream: Some(&key.upstream),
                provider: Some(&key.provider),
                model: key.model.as_deref(),
                price_id: Some(&line.price_id),
                ..ItemDetails::default()
            },
        })
    }

    /// The credit of an allowance in a bill for `period`.
    ///
    /// # Errors
    /// None in practice.
    pub fn of_credit(credit: &'a Credit, period: Period) -> Result<Self, ExportError> {
        let Credit { tenant, month, covered, tokens, amount, currency } = credit;
        let start = Zone::UTC.start_of(*month).unwrap_or(period.from());
        Ok(Self {
            id: digest(&(tenant, month, covered, currency, period.from(), period.to()))?,
            kind: BillItemKind::Credit,
            at: start.max(period.from()),
            tenant,
            currency,
            cost: -amount,
            list_cost: Decimal::ZERO,
            quantity: *tokens,
            details: ItemDetails {
                meter: match covered {
                    Covered::Meter(meter) => Some(meter),
                    Covered::Money => None,
                },
                ..ItemDetails::default()
            },
        })
    }
}

/// An id that is made from the data: the same for the same data, and different for any other.
fn digest(of: &impl Serialize) -> Result<Cow<'static, str>, ExportError> {
    let hash = Sha256::digest(serde_json::to_vec(of)?);
    let mut bytes = [0; 16];
    bytes.iter_mut().zip(hash).for_each(|(byte, of)| *byte = of);
    Ok(Uuid::from_bytes(bytes).to_string().into())
}

#[cfg(test)]
mod tests;
