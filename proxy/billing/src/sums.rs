//! Exact sums of requests. Unknown numbers are counted separately.

use rust_decimal::Decimal;
use serde::Serialize;
use taximeter_ledger::RecordCost;
use taximeter_pricing::Source;

use crate::billed_request::BilledRequest;

/// The sums of a set of requests. `None` means that the number is unknown for all of them.
///
/// The cost includes further model runs. The token sums do not, as in records.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Sums {
    /// Number of requests.
    pub requests: u64,
    /// All input.
    pub input_tokens: Option<u64>,
    /// Part of the input.
    pub cache_read_input_tokens: Option<u64>,
    /// All output.
    pub output_tokens: Option<u64>,
    /// Part of the output.
    pub reasoning_output_tokens: Option<u64>,
    /// The cost, exact, in one currency. Requests of unknown cost are in it with the known part.
    pub cost: Option<Decimal>,
    /// The cost at list price.
    pub list_cost: Option<Decimal>,
    /// Number of requests whose cost is unknown, so that all of them cost at least `cost`. It can be
    /// below zero if only corrections are added up.
    pub unknown_cost_requests: i64,
    /// Number of requests whose tokens Taximeter counted, because the engine did not report them.
    pub counted_requests: u64,
    /// Number of requests whose input or output is unknown and therefore not in the token sums. It
    /// can be below zero if only corrections are added up.
    pub unknown_usage_requests: i64,
}

impl Sums {
    /// Number of requests whose tokens the engine reported.
    #[must_use]
    pub fn reported_requests(&self) -> u64 {
        self.requests.saturating_sub(self.counted_requests + self.unknown_usages())
    }

    /// Number of requests whose cost is unknown.
    #[must_use]
    pub fn unknown_costs(&self) -> u64 {
        u64::try_from(self.unknown_cost_requests).unwrap_or_default()
    }

    /// Number of requests whose input or output is unknown.
    #[must_use]
    pub fn unknown_usages(&self) -> u64 {
        u64::try_from(self.unknown_usage_requests).unwrap_or_default()
    }

    /// Whether the cost is known in part only: it is at least so much.
    #[must_use]
    pub fn is_at_least(&self) -> bool {
        self.cost.is_some() && self.unknown_costs() > 0
    }

    /// The sums of no request: all are known, and all are zero.
    pub(crate) const fn nothing() -> Self {
        Self {
            requests: 0,
            input_tokens: Some(0),
            cache_read_input_tokens: Some(0),
            output_tokens: Some(0),
            reasoning_output_tokens: Some(0),
            cost: Some(Decimal::ZERO),
            list_cost: Some(Decimal::ZERO),
            unknown_cost_requests: 0,
            counted_requests: 0,
            unknown_usage_requests: 0,
        }
    }

    /// The same sums. Without a request the usage is known to be zero, unless corrections complete
    /// requests of other sums.
    pub(crate) fn or_of_no_request(self) -> Self {
        if self.requests > 0 {
            return self;
        }
        Self {
            input_tokens: self.input_tokens.or(Some(0)),
            cache_read_input_tokens: self.cache_read_input_tokens.or(Some(0)),
            output_tokens: self.output_tokens.or(Some(0)),
            reasoning_output_tokens: self.reasoning_output_tokens.or(Some(0)),
            cost: self.cost.or(Some(Decimal::ZERO)),
            list_cost: self.list_cost.or(Some(Decimal::ZERO)),
            ..self
        }
    }

    /// Removes zeros at the end of amounts, so that equal amounts have the same text.
    pub(crate) fn without_trailing_zeros(self) -> Self {
        let normal = |cost: Option<Decimal>| cost.map(|cost| cost.normalize());
        Self { cost: normal(self.cost), list_cost: normal(self.list_cost), ..self }
    }

    /// The sums of one request.
    #[must_use]
    pub fn of(row: &BilledRequest<'_>) -> Self {
        Self {
            cost: row.cost.map(|cost| cost.amount),
            list_cost: row.cost.map(|cost| cost.list_amount),
            ..Self::without_amounts(row)
        }
    }

    /// The sums of one request, but for what it costs.
    #[inline]
    pub(crate) fn without_amounts(row: &BilledRequest<'_>) -> Self {
        let unknown = row.usage_is_unknown();
        Self {
            requests: 1,
            input_tokens: row.input_tokens,
            cache_read_input_tokens: row.cache_read_input_tokens,
            output_tokens: row.output_tokens,
            reasoning_output_tokens: row.reasoning_output_tokens,
            cost: None,
            list_cost: None,
            unknown_cost_requests: RecordCost::is_unknown(row.cost).into(),
            counted_requests: (!unknown && row.source == Source::Counted).into(),
            unknown_usage_requests: unknown.into(),
        }
    }

    /// The cost that a correction takes back (`sign` −1) or charges (1).
    pub(crate) fn corrected(cost: Option<&RecordCost>, sign: Decimal) -> Self {
        let is_unknown = i64::from(RecordCost::is_unknown(cost));
        let unknown = if sign.is_sign_positive() { is_unknown } else { -is_unknown };
        Self {
            cost: cost.map(|cost| cost.amount * sign),
            list_cost: cost.map(|cost| cost.list_amount * sign),
            unknown_cost_requests: unknown,
            ..Self::default()
        }
    }

    /// The same for a correction that completes a request: it takes back that the usage of `row` is
    /// unknown.
    pub(crate) fn taken_back(row: &BilledRequest<'_>) -> Self {
        let unknown_usage_requests = -i64::from(row.usage_is_unknown());
        Self { unknown_usage_requests, ..Self::corrected(row.cost, Decimal::NEGATIVE_ONE) }
    }

    /// The usage and the cost that such a correction adds instead. The request is counted already.
    pub(crate) fn completed(row: &BilledRequest<'_>) -> Self {
        Self { requests: 0, ..Self::of(row) }
    }

    /// Adds `other`. `None` if a sum cannot be kept exactly. Then nothing was added.
    #[must_use = "a sum that cannot be kept is no sum"]
    pub fn add(&mut self, other: &Self) -> Option<()> {
        let tokens = u64::checked_add;
        let requests = self.requests.checked_add(other.requests)?;
        let input = known(self.input_tokens, other.input_tokens, tokens)?;
        let cached = known(self.cache_read_input_tokens, other.cache_read_input_tokens, tokens)?;
        let output = known(self.output_tokens, other.output_tokens, tokens)?;
        let reasoning = known(self.reasoning_output_tokens, other.reasoning_output_tokens, tokens)?;
        let cost = known(self.cost, other.cost, add_exactly)?;
        let list_cost = known(self.list_cost, other.list_cost, add_exactly)?;
        self.requests = requests;
        self.input_tokens = input;
        self.cache_read_input_tokens = cached;
        self.output_tokens = output;
        self.reasoning_output_tokens = reasoning;
        self.cost = cost;
        self.list_cost = list_cost;
        self.unknown_cost_requests += other.unknown_cost_requests;
        self.counted_requests += other.counted_requests;
        self.unknown_usage_requests += other.unknown_usage_requests;
        Some(())
    }
}

/// The sum of the known ones of two numbers. `None` if `add` fails.
fn known<N>(a: Option<N>, b: Option<N>, add: impl FnOnce(N, N) -> Option<N>) -> Option<Option<N>> {
    match (a, b) {
        (Some(a), Some(b)) => add(a, b).map(Some),
        (a, b) => Some(a.or(b)),
    }
}

/// `a` + `b`. `None` if the sum needs more than the 96 bits of a `Decimal`, which would drop the
/// last digits silently.
#[must_use]
pub fn add_exactly(a: Decimal, b: Decimal) -> Option<Decimal> {
    let sum = a.checked_add(b)?;
    if sum.scale() >= a.scale().max(b.scale()) {
        return Some(sum);
    }
    // Zeros at the end may be dropped.
    let places = a.normalize().scale().max(b.normalize().scale());
    (sum.scale() >= places).then_some(sum)
}

/// `quantity` × `price`. `None` if `Decimal` would round.
pub(crate) fn exact_product(quantity: Decimal, price: Decimal) -> Option<Decimal> {
    let (quantity, price) = (quantity.normalize(), price.normalize());
    let mantissa = quantity.mantissa().checked_mul(price.mantissa())?;
    let product = Decimal::try_from_i128_with_scale(mantissa, quantity.scale() + price.scale());
    Some(product.ok()?.normalize())
}
