//! What is taken off a bill.

use jiff::civil::Date;
use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};

use crate::sums::add_exactly;

/// What an allowance takes off what a tenant owes for a month. FOCUS: a charge of the category
/// `Credit`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Credit {
    /// Whose.
    pub tenant: String,
    /// First day of the month, in the bill's zone.
    pub month: Date,
    /// What is free.
    pub covered: Covered,
    /// Tokens that were free; `None` where money is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<Decimal>,
    /// What is taken off, above 0; exact.
    pub amount: Decimal,
    /// ISO 4217.
    pub currency: String,
}

/// What is free.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Covered {
    /// Tokens of a meter.
    Meter(String),
    /// Money, whatever it is owed for.
    Money,
}

impl Credit {
    /// Adds more of the same; `None` when a sum cannot be kept exactly.
    pub(crate) fn add(&mut self, tokens: Option<Decimal>, amount: Decimal) -> Option<()> {
        if let (Some(sum), Some(tokens)) = (&mut self.tokens, tokens) {
            *sum = add_exactly(*sum, tokens)?;
        }
        self.amount = add_exactly(self.amount, amount)?;
        Some(())
    }
}
