//! Credits: amounts that reduce a bill.

use jiff::civil::Date;
use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};

use crate::sums::add_exactly;

/// The amount by which an allowance reduces the bill of a tenant for a month. In FOCUS it is a
/// charge of the category `Credit`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Credit {
    /// The tenant.
    pub tenant: String,
    /// First day of the month, in the bill's zone.
    pub month: Date,
    /// What is free.
    pub covered: Covered,
    /// Number of free tokens. `None` for an allowance of money.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<Decimal>,
    /// The amount, above 0 and exact.
    pub amount: Decimal,
    /// ISO 4217.
    pub currency: String,
}

/// What an allowance covers.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Covered {
    /// Tokens of a meter.
    Meter(String),
    /// An amount of money, for any usage.
    Money,
}

impl Credit {
    /// Adds another credit of the same kind. `None` if a sum cannot be kept exactly.
    pub(crate) fn add(&mut self, tokens: Option<Decimal>, amount: Decimal) -> Option<()> {
        if let (Some(sum), Some(tokens)) = (&mut self.tokens, tokens) {
            *sum = add_exactly(*sum, tokens)?;
        }
        self.amount = add_exactly(self.amount, amount)?;
        Some(())
    }
}
