//! A cost, or why it is unknown and what of it is known.

use jiff::civil::Date;
use rust_decimal::Decimal;

use crate::currency::Currency;
use crate::lookup::NoRow;
use crate::meter::MeterName;
use crate::rule::PriceMatch;
use crate::tariff::Combination;
use crate::usage::Condition;

/// The cost of one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cost {
    /// The currency of all amounts.
    pub currency: Currency,
    /// The cost: the sum of the lines, exact.
    pub amount: Decimal,
    /// The cost at list price.
    pub list_amount: Decimal,
    /// The row that priced the request, [`Row::price_id`](crate::Row::price_id). The exchange rate and the factor of the
    /// contract follow if there are any: `…;USD*0.92;acme*0.9`.
    pub price_id: String,
    /// What found that row.
    pub price_match: PriceMatch,
    /// One for each meter with a quantity. Lines of further model runs come last.
    pub lines: Vec<CostLine>,
}

/// One line of a cost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CostLine {
    /// What was counted.
    pub meter: MeterName,
    /// Model of a further model run. `None` for the request's own.
    pub model: Option<String>,
    /// What found the row of a further model run, if it differs from [`Cost::price_match`].
    pub price_match: Option<PriceMatch>,
    /// The quantity, in [`MeterName::unit`].
    pub quantity: Decimal,
    /// Price of one, exact.
    pub unit_price: Decimal,
    /// List price of one. If the book has none, the contracted price.
    pub list_unit_price: Decimal,
    /// `quantity` × `unit_price`, exact.
    pub amount: Decimal,
}

/// Why a cost is unknown. An unknown cost is never written as zero.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PriceError {
    /// No row prices the model.
    #[error(
        "the price book has no price in {currency} for model {model:?}; add it to the overrides"
    )]
    UnknownModel {
        /// The model of the answer, or else of the request.
        model: String,
        /// The currency of the bills.
        currency: Currency,
    },
    /// The last row of the model has ended.
    #[error("{price_id} has the last price of model {model:?}, and it ended on {until}")]
    Ended {
        /// The model.
        model: String,
        /// The first day without a price.
        until: Date,
        /// The row.
        price_id: String,
    },
    /// The first row of the model has not begun.
    #[error("{price_id} has the first price of model {model:?}, and it begins on {from}")]
    NotBegun {
        /// The model.
        model: String,
        /// The first day with a price.
        from: Date,
        /// The row.
        price_id: String,
    },
    /// There is no row for such a name, or none that says what its region costs.
    #[error("{}", reason.with_name(model))]
    NoRow {
        /// The model.
        model: String,
        /// What its name says, without the name.
        reason: NoRow<'static>,
    },
    /// The answer reports a condition, such as a region, and the row has prices for other values of it
    /// only.
    #[error(
        "{price_id} has no price for {} {value:?}; add it to `when` of the row",
        condition.as_str()
    )]
    UnknownCondition {
        /// The condition.
        condition: Condition,
        /// Its value.
        value: String,
        /// The row.
        price_id: String,
    },
    /// The row has no rate for a part of the usage.
    #[error("{price_id} has no rate for {part}{combination}; {}", combination.advice())]
    NoRate {
        /// The meter, or the name in records of a quantity without a meter.
        part: String,
        /// The tier, the context, the hours and the conditions in which it has none.
        combination: Combination,
        /// The row.
        price_id: String,
    },
    /// The row has prices by service tier, and the tier of the answer is not a known one.
    #[error("{price_id} has no price for service tier {tier:?}")]
    UnknownTier {
        /// The tier of the answer.
        tier: String,
        /// The row.
        price_id: String,
    },
    /// The quantity is unknown.
    #[error("the quantity of {meter}, in {}, is unknown", meter.unit())]
    UsageUnknown {
        /// The meter without a quantity.
        meter: MeterName,
    },
    /// The cost has more digits than a decimal holds.
    #[error("the cost is too large to be exact")]
    Overflow,
}

impl PriceError {
    /// There is no row, in a book for bills in `currency`.
    pub(crate) fn of(missing: &NoRow<'_>, currency: Currency) -> Self {
        match *missing {
            NoRow::Unknown(model) => Self::UnknownModel { model: model.to_owned(), currency },
            NoRow::Ended { name, until, ref price_id } => {
                Self::Ended { model: name.to_owned(), until, price_id: price_id.clone() }
            }
            NoRow::NotBegun { name, from, ref price_id } => {
                Self::NotBegun { model: name.to_owned(), from, price_id: price_id.clone() }
            }
            NoRow::Tuned(model)
            | NoRow::Variant(model)
            | NoRow::Deployment(model)
            | NoRow::Region { name: model, .. } => {
                Self::NoRow { model: model.to_owned(), reason: missing.with_name("") }
            }
        }
    }
}

/// A cost that is not known as a whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unpriced {
    /// Why: one for each part of the usage without a price, one at least.
    pub reasons: Vec<PriceError>,
    /// The parts that have a price: the request costs at least as much. `None` if there are none.
    pub known: Option<Box<Cost>>,
}

impl std::fmt::Display for Unpriced {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (position, reason) in self.reasons.iter().enumerate() {
            let before = if position == 0 { "" } else { "; " };
            write!(f, "{before}{reason}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Unpriced {}

impl From<PriceError> for Unpriced {
    fn from(reason: PriceError) -> Self {
        Self { reasons: vec![reason], known: None }
    }
}
