//! What a customer pays instead of the list: a factor on every price, fixed prices, and what is free.

use std::collections::BTreeMap;

use rust_decimal::Decimal;

use crate::meter::MeterName;

/// What a customer need not pay in each calendar month, UTC.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Allowance {
    /// Money; exact, at least 0.
    pub money: Option<Money>,
    /// Tokens, by meter.
    pub tokens: BTreeMap<MeterName, u64>,
}

/// An amount in a currency.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Money {
    /// Exact.
    pub amount: Decimal,
    /// ISO 4217.
    pub currency: String,
}
