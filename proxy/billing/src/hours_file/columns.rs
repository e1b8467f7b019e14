//! The columns of an hour.

use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};
use taximeter_columnar::{Field, FieldKind};

use crate::hours::{Hour, HourKey, LineKey};
use crate::sums::{Sums, add_exactly};

/// The key of the JSON of what a file says about its rows.
pub(super) const FOOTER_KEY: &str = "taximeter.hours";
/// The format of the files that this version writes and reads.
pub(super) const FORMAT: u32 = 1;

/// Digits of money, and digits after its point.
pub(super) const COST_PRECISION: u32 = 38;
pub(super) const COST_SCALE: u32 = 18;
const COST: FieldKind = FieldKind::Decimal { precision: COST_PRECISION, scale: COST_SCALE };

const fn field(name: &'static str, kind: FieldKind, nullable: bool) -> Field {
    Field { name, kind, nullable, distinct: false }
}

const fn distinct(name: &'static str, kind: FieldKind, nullable: bool) -> Field {
    Field { distinct: true, ..field(name, kind, nullable) }
}

/// The columns, in the order in which rows are written and read.
pub(super) const FIELDS: [Field; 25] = [
    field("hour", FieldKind::Time, false),
    field("tenant", FieldKind::Text, false),
    field("model", FieldKind::Text, true),
    field("provider", FieldKind::Text, false),
    field("upstream", FieldKind::Text, false),
    field("operation", FieldKind::Text, false),
    field("route", FieldKind::Text, false),
    field("key_id", FieldKind::Text, true),
    field("labels", FieldKind::Json, true),
    field("currency", FieldKind::Text, true),
    field("correction", FieldKind::Bool, false),
    field("late", FieldKind::Bool, false),
    distinct("requests", FieldKind::Int64, false),
    distinct("input_tokens", FieldKind::Int64, true),
    distinct("cache_read_input_tokens", FieldKind::Int64, true),
    distinct("output_tokens", FieldKind::Int64, true),
    distinct("reasoning_output_tokens", FieldKind::Int64, true),
    distinct("cost", COST, true),
    // What the list price is above the cost.
    field("discount", COST, true),
    field("unknown_cost_requests", FieldKind::Int64, false),
    field("counted_requests", FieldKind::Int64, false),
    field("unknown_usage_requests", FieldKind::Int64, false),
    // What is counted, and at which prices; the quantities are in the next column, in this order.
    field("lines", FieldKind::Json, true),
    distinct("line_quantities", FieldKind::Json, true),
    field("exact", FieldKind::Json, true),
];

/// The sums of a row whose columns cannot hold them exactly.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ExactSums {
    requests: u64,
    input_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    reasoning_output_tokens: Option<u64>,
    cost: Option<Decimal>,
    list_cost: Option<Decimal>,
    unknown_cost_requests: i64,
    counted_requests: u64,
    unknown_usage_requests: i64,
}

impl From<&Sums> for ExactSums {
    fn from(sums: &Sums) -> Self {
        let normal = |amount: Option<Decimal>| amount.map(|amount| amount.normalize());
        Self {
            requests: sums.requests,
            input_tokens: sums.input_tokens,
            cache_read_input_tokens: sums.cache_read_input_tokens,
            output_tokens: sums.output_tokens,
            reasoning_output_tokens: sums.reasoning_output_tokens,
            cost: normal(sums.cost),
            list_cost: normal(sums.list_cost),
            unknown_cost_requests: sums.unknown_cost_requests,
            counted_requests: sums.counted_requests,
            unknown_usage_requests: sums.unknown_usage_requests,
        }
    }
}

impl From<ExactSums> for Sums {
    fn from(sums: ExactSums) -> Self {
        Self {
            requests: sums.requests,
            input_tokens: sums.input_tokens,
            cache_read_input_tokens: sums.cache_read_input_tokens,
            output_tokens: sums.output_tokens,
            reasoning_output_tokens: sums.reasoning_output_tokens,
            cost: sums.cost,
            list_cost: sums.list_cost,
            unknown_cost_requests: sums.unknown_cost_requests,
            counted_requests: sums.counted_requests,
            unknown_usage_requests: sums.unknown_usage_requests,
        }
    }
}

/// Whether columns can hold these sums exactly.
pub(super) fn fits(sums: &Sums) -> bool {
    let counts = [
        Some(sums.requests),
        sums.input_tokens,
        sums.cache_read_input_tokens,
        sums.output_tokens,
        sums.reasoning_output_tokens,
        Some(sums.counted_requests),
    ];
    let costs = [sums.cost, discount(sums)];
    let is_exact = |amount: Decimal| amount.normalize().scale() <= COST_SCALE && has_room(amount);
    counts.into_iter().flatten().all(|count| i64::try_from(count).is_ok())
        && costs.into_iter().flatten().all(is_exact)
        && costs.map(|cost| cost.is_some()) == [sums.list_cost.is_some(); 2]
}

/// What the list price is above the cost. `None` if one of them is not there, or if the difference is
/// not exact.
pub(super) fn discount(sums: &Sums) -> Option<Decimal> {
    let (cost, list_cost) = sums.cost.zip(sums.list_cost)?;
    let discount = add_exactly(list_cost, -cost)?;
    (add_exactly(cost, discount) == Some(list_cost)).then_some(discount)
}

/// Whether a column has room for an amount, rounded to its places.
pub(super) fn has_room(amount: Decimal) -> bool {
    let limit = Decimal::from_i128_with_scale(10_i128.pow(COST_PRECISION - COST_SCALE) - 1, 0);
    amount.abs() < limit
}

/// What a row is in digests: its JSON, with amounts and quantities without zeros at their end.
pub(super) fn canonical(key: &HourKey, hour: &Hour) -> serde_json::Result<Vec<u8>> {
    let lines: Vec<(&LineKey, Decimal)> =
        hour.lines.iter().map(|(key, quantity)| (key, quantity.normalize())).collect();
    serde_json::to_vec(&(key.hour.as_microsecond(), key, ExactSums::from(&hour.sums), lines))
}
