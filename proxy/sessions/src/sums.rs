//! What requests add up to.

use std::collections::BTreeMap;

use rust_decimal::Decimal;
use serde::Serialize;
use taximeter_billing::{self as billing, add_exactly};
use utoipa::ToSchema;

use crate::request::Request;

/// The sums of a set of requests. Null means that the number is unknown for all of them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, ToSchema)]
pub struct Sums {
    /// Number of requests.
    pub requests: u64,
    /// Number of requests that did not end complete, or whose status is an error.
    pub failed_requests: u64,
    /// All input.
    pub input_tokens: Option<u64>,
    /// Part of the input.
    pub cache_read_input_tokens: Option<u64>,
    /// All output.
    pub output_tokens: Option<u64>,
    /// Number of requests whose input or output is unknown, and therefore not in the sums. It can be
    /// below zero if only corrections are added up.
    pub unknown_usage_requests: i64,
    /// The cost, exact. Requests of unknown cost are in it with the known part.
    pub cost: Option<Decimal>,
    /// Number of requests whose cost is unknown, so that all of them cost at least `cost`. It can be
    /// below zero if only corrections are added up.
    pub unknown_cost_requests: i64,
    /// The input of the requests of which it is known what the cache had.
    #[serde(skip)]
    pub(crate) cacheable_tokens: u64,
}

impl From<&billing::Sums> for Sums {
    fn from(sums: &billing::Sums) -> Self {
        Self {
            requests: sums.requests,
            input_tokens: sums.input_tokens,
            cache_read_input_tokens: sums.cache_read_input_tokens,
            output_tokens: sums.output_tokens,
            unknown_usage_requests: sums.unknown_usage_requests,
            cost: sums.cost.map(|cost| cost.normalize()),
            unknown_cost_requests: sums.unknown_cost_requests,
            ..Self::default()
        }
    }
}

impl Sums {
    /// The sums of one request. A cost in another currency than `currency` is unknown in it.
    #[must_use]
    pub fn of(request: &Request, currency: Option<&str>) -> Self {
        let (input, cached) = (request.input_tokens, request.cache_read_input_tokens);
        let price = &request.price;
        let is_same = price.currency.is_none() || price.currency.as_deref() == currency;
        let cost = price.known.filter(|_| is_same).map(|cost| cost.normalize());
        Self {
            requests: 1,
            failed_requests: request.has_failed().into(),
            input_tokens: input,
            cache_read_input_tokens: cached,
            output_tokens: request.output_tokens,
            unknown_usage_requests: request.usage_is_unknown.into(),
            cost,
            unknown_cost_requests: (cost.is_none() || !price.is_whole).into(),
            cacheable_tokens: cached.and(input).unwrap_or_default(),
        }
    }

    /// Adds `other`. A cost with more digits than can be kept is left out, and its requests count as of
    /// unknown cost.
    pub fn add(&mut self, other: &Self) {
        let tokens = |a: Option<u64>, b: Option<u64>| match (a, b) {
            (Some(a), Some(b)) => Some(a.saturating_add(b)),
            (a, b) => a.or(b),
        };
        self.requests += other.requests;
        self.failed_requests += other.failed_requests;
        self.input_tokens = tokens(self.input_tokens, other.input_tokens);
        self.cache_read_input_tokens =
            tokens(self.cache_read_input_tokens, other.cache_read_input_tokens);
        self.output_tokens = tokens(self.output_tokens, other.output_tokens);
        self.unknown_usage_requests += other.unknown_usage_requests;
        self.cacheable_tokens = self.cacheable_tokens.saturating_add(other.cacheable_tokens);
        let (known, unknown) = match (self.cost, other.cost) {
            (Some(a), Some(b)) => match add_exactly(a, b) {
                Some(sum) => (Some(sum.normalize()), other.unknown_cost_requests),
                None => (Some(a), i64::try_from(other.requests).unwrap_or(i64::MAX)),
            },
            (a, b) => (a.or(b), other.unknown_cost_requests),
        };
        self.cost = known;
        self.unknown_cost_requests += unknown;
    }

    /// Whether the cost is known in part only: it is at least so much.
    #[must_use]
    pub const fn is_at_least(&self) -> bool {
        self.unknown_cost_requests > 0
    }

    /// The part of the input that the cache had, of the requests of which that is known.
    #[must_use]
    pub fn cache_read_share(&self) -> Option<f64> {
        share(self.cache_read_input_tokens?, self.cacheable_tokens)
    }

    /// The known cost, or nothing.
    pub(crate) fn owed(&self) -> Decimal {
        self.cost.unwrap_or_default()
    }
}

/// Adds numbers of calls, by name.
pub(crate) fn add_counts(counts: &mut BTreeMap<String, u64>, more: &BTreeMap<String, u64>) {
    for (name, count) in more {
        let known = counts.entry(name.clone()).or_default();
        *known = known.saturating_add(*count);
    }
}

/// Adds quantities, by name.
pub(crate) fn add_units(units: &mut BTreeMap<String, Decimal>, more: &BTreeMap<String, Decimal>) {
    for (name, quantity) in more {
        let known = units.entry(name.clone()).or_default();
        *known = known.saturating_add(*quantity);
    }
}

/// `part` of `whole`, to four places; `None` of nothing.
fn share(part: u64, whole: u64) -> Option<f64> {
    #[expect(clippy::cast_precision_loss, reason = "a share of so many tokens needs no more")]
    let share = part as f64 / whole as f64;
    (whole > 0).then(|| (share * 1e4).round() / 1e4)
}
