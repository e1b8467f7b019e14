//! One charge: what an hour used of one meter at one price, or what is taken off.

use jiff::{SignedDuration, Timestamp};
use rust_decimal::Decimal;

use super::pricing::Pricing;
use crate::credit::Credit;
use crate::export::error::ExportError;
use crate::hours::{Hour, HourKey, LineKey, hour_of};
use crate::period::Period;
use crate::zone::Zone;

/// Tokens are priced by the million, as price lists have them.
const TOKENS_PER_PRICE: u64 = 1_000_000;

/// One charge, all of it exact.
#[derive(Debug, Clone)]
pub struct Charge<'a> {
    /// Who pays.
    pub(super) tenant: &'a str,
    /// What it is for.
    pub(super) of: Of<'a>,
    /// ISO 4217.
    pub currency: &'a str,
    /// What is owed; less than zero where something is taken off.
    pub cost: Decimal,
    /// The same at list price. A credit has none: FOCUS wants what is owed.
    pub list_cost: Decimal,
    /// ISO 4217; of the price list.
    pub(super) pricing_currency: &'a str,
    /// What is owed, in that.
    pub(super) pricing_cost: Decimal,
    /// When, in whole hours; start included, end not.
    pub(super) time: (Timestamp, Timestamp),
    /// The month that it is billed with, UTC.
    pub(super) billing_period: (Timestamp, Timestamp),
}

/// What a charge is for.
#[derive(Debug, Clone)]
pub(super) enum Of<'a> {
    Usage(Usage<'a>),
    Credit(&'a Credit),
}

/// What was used of one meter at one price.
#[derive(Debug, Clone)]
pub(super) struct Usage<'a> {
    /// Whose, and of which hour.
    pub(super) key: &'a HourKey,
    /// The meter and its price.
    pub(super) line: &'a LineKey,
    /// As measured: tokens, seconds and so on; less than zero where a correction takes back.
    pub(super) consumed: Decimal,
    /// The same in the unit of the prices.
    pub(super) priced: Decimal,
    /// Price of one of that unit, as owed.
    pub(super) unit_price: Decimal,
    /// The same at list price.
    pub(super) list_unit_price: Decimal,
    /// The price as owed, in the currency of the price list.
    pub(super) pricing_unit_price: Decimal,
    /// The same at list price.
    pub(super) pricing_list_unit_price: Decimal,
}

/// The charges of one hour, in the order of its lines.
///
/// None where the cost is unknown, and none where corrections take back and charge the same.
///
/// # Errors
/// [`ExportError::TooLarge`] for an amount with more digits than a decimal keeps.
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
        let pricing_unit_price = pricing.told(unit_price);
        let usage = Usage {
            key,
            line,
            consumed,
            priced,
            unit_price,
            list_unit_price,
            pricing_unit_price,
            pricing_list_unit_price: pricing.told(list_unit_price),
        };
        // Of an hour that the period cuts, the key has the first instant inside.
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
            of: Of::Usage(usage),
        })
    }

    /// What an allowance takes off what is owed for `period`.
    #[must_use]
    pub fn of_credit(credit: &'a Credit, period: Period) -> Self {
        let (start, end) = month_of(Zone::UTC.start_of(credit.month).unwrap_or(period.from()));
        let (first, last) = (hour_of(period.from()), hour_of(period.to()));
        let last = if last < period.to() { hour_after(last) } else { last };
        Self {
            tenant: &credit.tenant,
            of: Of::Credit(credit),
            currency: &credit.currency,
            cost: -credit.amount,
            list_cost: -credit.amount,
            pricing_currency: &credit.currency,
            pricing_cost: -credit.amount,
            time: (first.max(start), last.min(end)),
            billing_period: (start, end),
        }
    }

    /// What was used, and at which price; a credit is for nothing that was.
    pub(super) const fn usage(&self) -> Option<&Usage<'a>> {
        match &self.of {
            Of::Usage(usage) => Some(usage),
            Of::Credit(_) => None,
        }
    }
}

/// The hour behind `hour`; the calendar ends in the year 9999.
fn hour_after(hour: Timestamp) -> Timestamp {
    hour.saturating_add(SignedDuration::from_hours(1)).unwrap_or(hour)
}

/// `a` × `b`, exactly; `None` where a decimal would round.
fn product(a: Decimal, b: Decimal) -> Option<Decimal> {
    let (a, b) = (a.normalize(), b.normalize());
    let (mut digits, mut places) = (a.mantissa().checked_mul(b.mantissa())?, a.scale() + b.scale());
    while places > 0 && digits % 10 == 0 {
        (digits, places) = (digits / 10, places - 1);
    }
    Decimal::try_from_i128_with_scale(digits, places).ok()
}

/// First instant of the month in UTC that `at` lies in, and of the next.
fn month_of(at: Timestamp) -> (Timestamp, Timestamp) {
    // The calendar ends in the year 9999.
    Period::month_of(at, &Zone::UTC).map_or((at, at), |month| (month.from(), month.to()))
}
