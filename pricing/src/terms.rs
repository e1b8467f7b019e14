//! What a customer pays instead of list prices: a factor on every price, fixed prices, and
//! allowances.

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
/// A model with a fixed price costs that price, without a factor. All other models cost the list
/// price times the factor.
#[derive(Debug, Clone)]
pub struct Contract {
    name: String,
    factors: Dated<Decimal>,
    fixed: Option<PriceBook>,
}

impl Contract {
    /// The contract called `name` in records. The customer pays the fixed prices of `fixed`, and
    /// otherwise list price × the one of `factors` that is in force on the day of admission, UTC.
    /// 0.9 is a discount of 10 %. Without a factor, list prices apply.
    #[must_use]
    pub fn new(name: &str, factors: Dated<Decimal>, fixed: Option<PriceBook>) -> Self {
        Self { name: name.to_owned(), factors, fixed }
    }

    /// Whether the contract or `book` has a price for a request.
    #[must_use]
    pub fn finds(&self, book: &PriceBook, query: &Query<'_>) -> bool {
        self.fixed(query).or_else(|| book.find(query).map(|_| book)).is_some()
    }

    /// The fixed prices, if they have one for a request.
    pub(crate) fn fixed(&self, query: &Query<'_>) -> Option<&PriceBook> {
        self.fixed.as_ref().filter(|fixed| fixed.find(query).is_some())
    }

    /// The factor on list prices for a request that was admitted at `at`.
    pub(crate) fn factor(&self, at: Timestamp) -> Decimal {
        let factor = self.factors.on(TimeZone::UTC.to_datetime(at).date());
        factor.map_or(Decimal::ONE, Decimal::normalize)
    }

    /// The part of a price id that names the contract. Empty if list prices apply unchanged.
    pub(crate) fn mark(&self, at: Timestamp) -> String {
        let (name, factor) = (&self.name, self.factor(at));
        if factor == Decimal::ONE { String::new() } else { format!(";{name}*{factor}") }
    }
}

/// List prices without changes.
impl Default for Contract {
    fn default() -> Self {
        Self::new("", Dated::default(), None)
    }
}

/// What is free for a customer in each calendar month.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Allowance {
    /// An amount of money.
    pub money: Option<Money>,
    /// Numbers of tokens, by meter.
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
