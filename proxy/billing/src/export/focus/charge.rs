//! One charge: the usage of one meter at one price in an hour, or a credit.

use jiff::{SignedDuration, Timestamp};
use rust_decimal::Decimal;

use super::pricing::Pricing;
use crate::credit::Credit;
use crate::export::error::ExportError;
use crate::hours::{Hour, HourKey, LineKey, hour_of};
use crate::period::Period;
use crate::zone::Zone;

/// Token prices are per million, as on price lists.
const TOKENS_PER_PRICE: u64 = 1_000_000;

/// One charge. All numbers are exact.
#[derive(Debug, Clone)]
pub struct Charge<'a> {
    /// The tenant that pays.
    pub(super) tenant: &'a str,
    /// The kind of charge.
    pub(super) kind: ChargeKind<'a>,
    /// ISO 4217.
    pub currency: &'a str,
    /// The billed cost. A credit is below zero.
    pub cost: Decimal,
    /// The cost at list price. A credit has no list price. Its list cost is its cost, as FOCUS
    /// requires.
    pub list_cost: Decimal,
    /// Currency of the price list, ISO 4217.
    pub(super) pricing_currency: &'a str,
    /// The billed cost in that currency.
    pub(super) pricing_cost: Decimal,
    /// Start and end of the charge in whole hours. The end is not included.
    pub(super) time: (Timestamp, Timestamp),
    /// Start and end of the billing month, UTC.
    pub(super) billing_period: (Timestamp, Timestamp),
}

/// The kind of charge.
#[derive(Debug, Clone)]
pub(super) enum ChargeKind<'a> {
    Usage(UsageCharge<'a>),
    Credit(&'a Credit),
}

/// The usage of one meter at one price.
#[derive(Debug, Clone)]
pub(super) struct UsageCharge<'a> {
    /// The requests and the hour.
    pub(super) key: &'a HourKey,
    /// The meter and its price.
    pub(super) line: &'a LineKey,
    /// The quantity as measured: tokens, seconds and so on. Below zero if a correction takes it
    /// back.
    pub(super) consumed: Decimal,
    /// The quantity in the unit of the price.
    pub(super) priced: Decimal,
    /// Contracted price of one such unit.
    pub(super) unit_price: Decimal,
    /// List price of one such unit.
    pub(super) list_unit_price: Decimal,
    /// Contracted price in the currency of the price list.
    pub(super) pricing_unit_price: Decimal,
    /// List price in the currency of the price list.
    pub(super) pricing_list_unit_price: Decimal,
}

/// The charges of one hour, in the order of its lines.
///
/// There are none if nothing of the cost is known, or if corrections take back and charge the same quantity.
///
/// # Errors
/// [`ExportError::TooLarge`] for an amount with more digits than a decimal holds.
pub fn charges<'a>(
    key: &'a HourKey,
    hour: &'a Hour,
) -> impl Iterator<Item = Result<Charge<'a>, ExportError>> {
    let lines = key.currency.as_deref().map(|currency| (currency, &hour.lines));
    lines
        .into_iter()
        .flat_map(|(currency, lines)| lines.iter().map(move |line| (currency, line)))
        .filter(|(_, (_, quantity))| !(key.correction && quantity.is_zero()))
        .map(move |(currency, (line, quantity))| Charge::of_usage(key, line, *quantity, currency))
}

impl<'a> Charge<'a> {
    fn of_usage(
        key: &'a HourKey,
        line: &'a LineKey,
        consumed: Decimal,
        currency: &'a str,
    ) -> Result<Self, ExportError> {
        let scale = if line.unit == "tokens" { TOKENS_PER_PRICE } else { 1 };
        let too_large = |what| ExportError::TooLarge { what };
        let (inverse, scale) = (Decimal::ONE / Decimal::from(scale), Decimal::from(scale));
        let of_unit = |price| product(price, scale).ok_or(too_large("a price"));
        let (unit_price, list_unit_price) =
            (of_unit(line.unit_price)?, of_unit(line.list_unit_price)?);
        let priced = product(consumed, inverse).ok_or(too_large("a quantity"))?;
        let cost = |price| product(priced, price).ok_or(too_large("the cost of an hour"));
        let consumed = consumed.normalize();
        let pricing = Pricing::of(line, &key.tenant, currency);
        let pricing_unit_price = pricing.in_list_currency(unit_price);
        let usage = UsageCharge {
            key,
            line,
            consumed,
            priced,
            unit_price,
            list_unit_price,
            pricing_unit_price,
            pricing_list_unit_price: pricing.in_list_currency(list_unit_price),
        };
        // If the period cuts the hour, the key has the first instant inside the period.
        let hour = hour_of(key.hour);
        Ok(Self {
            tenant: &key.tenant,
            currency,
            cost: cost(unit_price)?,
            list_cost: cost(list_unit_price)?,
            pricing_currency: pricing.currency,
            pricing_cost: cost(pricing_unit_price)?,
            time: (hour, hour_after(hour)),
            billing_period: month_of(hour),
            kind: ChargeKind::Usage(usage),
        })
    }

    /// The charge of a credit in `period`.
    #[must_use]
    pub fn of_credit(credit: &'a Credit, period: Period) -> Self {
        let (start, end) = month_of(Zone::UTC.start_of(credit.month).unwrap_or(period.from()));
        let (first, last) = (hour_of(period.from()), hour_of(period.to()));
        let last = if last < period.to() { hour_after(last) } else { last };
        Self {
            tenant: &credit.tenant,
            kind: ChargeKind::Credit(credit),
            currency: &credit.currency,
            cost: -credit.amount,
            list_cost: -credit.amount,
            pricing_currency: &credit.currency,
            pricing_cost: -credit.amount,
            time: (first.max(start), last.min(end)),
            billing_period: (start, end),
        }
    }

    /// The usage of the charge. `None` for a credit.
    pub(super) const fn usage(&self) -> Option<&UsageCharge<'a>> {
        match &self.kind {
            ChargeKind::Usage(usage) => Some(usage),
            ChargeKind::Credit(_) => None,
        }
    }
}

/// The end of `hour`. The calendar ends in the year 9999.
fn hour_after(hour: Timestamp) -> Timestamp {
    hour.saturating_add(SignedDuration::from_hours(1)).unwrap_or(hour)
}

/// `a` × `b`, exactly. `None` if a decimal would round.
fn product(a: Decimal, b: Decimal) -> Option<Decimal> {
    let (a, b) = (a.normalize(), b.normalize());
    let (mut digits, mut places) = (a.mantissa().checked_mul(b.mantissa())?, a.scale() + b.scale());
    while places > 0 && digits % 10 == 0 {
        (digits, places) = (digits / 10, places - 1);
    }
    Decimal::try_from_i128_with_scale(digits, places).ok()
}

/// First instant of the UTC month of `at`, and of the next month.
fn month_of(at: Timestamp) -> (Timestamp, Timestamp) {
    // The calendar ends in the year 9999.
    Period::month_of(at, &Zone::UTC).map_or((at, at), |month| (month.from(), month.to()))
}
