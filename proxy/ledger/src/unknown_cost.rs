//! Why a cost is unknown, in the words of records.

use jiff::civil::Date;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Longest name in a reason, in bytes.
const NAME_BYTES_MAX: usize = 128;

/// Why a part of a cost is unknown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct UnknownCost {
    /// The kind of reason.
    pub reason: UnknownCostReason,
    /// What has no price: the model, the meter or unit, the service tier, or the region. At most
    /// 128 bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<String>,
    /// Version and row of the price book that has no price for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price_id: Option<String>,
    /// The first day without a price, or with one, if the row is of another time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = Date)]
    pub day: Option<Date>,
    /// Where the row has no rate, if it has one elsewhere: `in tier priority with long context`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub combination: Option<String>,
}

/// The kind of reason.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum UnknownCostReason {
    /// The price book has no row for the model.
    NoPrice,
    /// The last row of the model has ended.
    Ended,
    /// The first row of the model has not begun.
    NotBegun,
    /// The row has no rate for the meter, or for the calls of a hosted tool.
    NoRate,
    /// The row has no prices for the service tier.
    NoTier,
    /// The row has no prices for a condition, such as `region jp`.
    NoCondition,
    /// The quantity of the meter is unknown.
    NoQuantity,
    /// The cost has more digits than can be kept exactly.
    TooLarge,
}

impl UnknownCostReason {
    /// The word in records.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NoPrice => "no_price",
            Self::Ended => "ended",
            Self::NotBegun => "not_begun",
            Self::NoRate => "no_rate",
            Self::NoTier => "no_tier",
            Self::NoCondition => "no_condition",
            Self::NoQuantity => "no_quantity",
            Self::TooLarge => "too_large",
        }
    }
}

impl UnknownCost {
    /// A reason of this kind that is about `of`.
    #[must_use]
    pub fn new(reason: UnknownCostReason, of: Option<&str>) -> Self {
        let of = of.filter(|of| !of.is_empty());
        let of = of.and_then(|of| of.get(..of.floor_char_boundary(NAME_BYTES_MAX)));
        Self { reason, of: of.map(str::to_owned), price_id: None, day: None, combination: None }
    }
}
