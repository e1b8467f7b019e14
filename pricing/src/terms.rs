//! What a customer pays instead of the list: a factor on every price, fixed prices, and what is
//! free.

use std::collections::BTreeMap;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use rust_decimal::Decimal;

use crate::book::{PriceBook, Query};
use crate::currency::Currency;
use crate::dated::Dated;
use crate::meter::MeterName;

/// What one customer pays instead of list prices.
///
/// A model with a fixed price pays that and nothing else changes it; all others pay the list price
/// times a factor.
#[derive(Debug, Clone)]
pub struct Contract {
    name: String,
    factors: Dated<Decimal>,
    fixed: Option<PriceBook>,
}

impl Contract {
    /// The contract called `name` on records: list prices × the one of `factors` on the day of
    /// admission, UTC (0.9 is a discount of 10 %), and the rows of `fixed` before them. List prices
    /// as they are where no factor holds.
    #[must_use]
    pub fn new(name: &str, factors: Dated<Decimal>, fixed: Option<PriceBook>) -> Self {
        Self { name: name.to_owned(), factors, fixed }
    }

    /// Whether it, or else `book`, has a price for such a request.
    #[must_use]
    pub fn finds(&self, book: &PriceBook, query: &Query<'_>) -> bool {
        self.fixed(query).or_else(|| book.find(query).map(|_| book)).is_some()
    }

    /// The fixed prices, if they have one for such a request.
    pub(crate) fn fixed(&self, query: &Query<'_>) -> Option<&PriceBook> {
        self.fixed.as_ref().filter(|fixed| fixed.find(query).is_some())
    }

    /// What list prices are multiplied with for a request that was admitted `at`.
    pub(crate) fn factor(&self, at: Timestamp) -> Decimal {
        let factor = self.factors.on(TimeZone::UTC.to_datetime(at).date());
        factor.map_or(Decimal::ONE, Decimal::normalize)
    }

    /// Its part of a price's id; nothing where list prices stay as they are.
    pub(crate) fn mark(&self, at: Timestamp) -> String {
        let (name, factor) = (&self.name, self.factor(at));
        if factor == Decimal::ONE { String::new() } else { format!(";{name}*{factor}") }
    }
}

/// List prices as they are.
impl Default for Contract {
    fn default() -> Self {
        Self::new("", Dated::default(), None)
    }
}

/// What a customer need not pay in each calendar month.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Allowance {
    /// So much of what is owed.
    pub money: Option<Money>,
    /// So many tokens, by meter.
    pub tokens: BTreeMap<MeterName, u64>,
}

/// An amount in a currency.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Money {
    /// Exact.
    pub amount: Decimal,
    /// ISO 4217.
    pub currency: Currency,
}
