//! One charge: what an hour used of one meter at one price.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use rust_decimal::Decimal;

use crate::export::error::ExportError;
use crate::hours::{Hour, HourKey, LineKey};

/// Tokens are priced by the million, as price lists have them.
const TOKENS_PER_PRICE: u64 = 1_000_000;

/// One charge, all of it exact.
#[derive(Debug, Clone)]
pub struct Charge<'a> {
    /// Whose, and of which hour.
    pub(super) key: &'a HourKey,
    /// The meter and its price.
    pub(super) line: &'a LineKey,
    /// ISO 4217.
    pub currency: &'a str,
    /// As measured: tokens, seconds and so on; less than zero where a correction takes back.
    pub(super) consumed: Decimal,
    /// The same in the unit of the prices.
    pub(super) priced: Decimal,
    /// Price of one of that unit, as owed.
    pub(super) unit_price: Decimal,
    /// The same at list price.
    pub(super) list_unit_price: Decimal,
    /// Quantity × unit price.
    pub cost: Decimal,
    /// The same at list price.
    pub list_cost: Decimal,
    /// The month that it is billed with, UTC.
    pub(super) billing_period: (Timestamp, Timestamp),
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
        .map(move |(currency, (line, quantity))| Charge::of(key, line, *quantity, currency))
}

impl<'a> Charge<'a> {
    fn of(
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
        Ok(Self {
            key,
            line,
            currency,
            consumed: consumed.normalize(),
            priced,
            unit_price,
            list_unit_price,
            cost: cost(unit_price)?,
            list_cost: cost(list_unit_price)?,
            billing_period: month_of(key.hour),
        })
    }
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
    let first = at.to_zoned(TimeZone::UTC).date().first_of_month();
    let midnight = |date: jiff::civil::Date| {
        date.to_zoned(TimeZone::UTC).map_or(at, |midnight| midnight.timestamp())
    };
    // The calendar ends in the year 9999.
    (midnight(first), midnight(first.last_of_month().tomorrow().unwrap_or(first)))
}
