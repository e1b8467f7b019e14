//! Rows in, one bill out.

use std::cmp::Reverse;
use std::collections::HashMap;

use rust_decimal::Decimal;
use serde::Serialize;
use taximeter_pricing::Source;

use crate::group::Grouping;
use crate::period::Period;
use crate::row::BillRow;

/// Most lines of one bill; a finer grouping is refused instead of filling the memory.
const LINES_MAX: usize = 1_000_000;

/// What a set of requests adds up to. `None` means that of not one of them the number is known.
///
/// Tokens of further passes inside a request are in the cost but not in the token sums, as in the
/// record.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Sums {
    /// Requests.
    pub requests: u64,
    /// All input.
    pub input_tokens: Option<u64>,
    /// Part of the input.
    pub cache_read_input_tokens: Option<u64>,
    /// All output.
    pub output_tokens: Option<u64>,
    /// Part of the output.
    pub reasoning_output_tokens: Option<u64>,
    /// What is owed, exact, in the bill's currency.
    pub cost: Option<Decimal>,
    /// Requests whose cost is unknown and so not in `cost`.
    pub unknown_cost_requests: u64,
    /// Requests whose tokens our tokenizer counted, since the engine did not report them.
    pub counted_requests: u64,
    /// Requests of which input or output is unknown and so not in the token sums.
    pub unknown_usage_requests: u64,
}

/// One line: the values of the bill's dimensions, in order, and what they add up to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BillLine {
    /// One per dimension; `None` when the requests have nothing there.
    pub keys: Vec<Option<String>>,
    /// Their sums.
    pub sums: Sums,
}

/// What was used and is owed in a period.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bill {
    /// When the requests were admitted.
    pub period: Period,
    /// What the lines are split by.
    pub by: Grouping,
    /// ISO 4217; `None` when no request has a known cost.
    pub currency: Option<String>,
    /// In order of time where grouped by time, then the largest cost first, then by name.
    pub rows: Vec<BillLine>,
    /// The sums of all rows.
    pub total: Sums,
}

/// Why there is no bill.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BillError {
    /// Money of two currencies cannot be added.
    #[error(
        "the period has costs in {first} and in {second}, which cannot be added; bill the times \
         before and after the change of currency apart, with --from and --to"
    )]
    Currencies {
        /// The first one met.
        first: String,
        /// The other.
        second: String,
    },
    /// A sum has more digits than can be kept exactly.
    #[error("the sums of {tenant} are too large to be kept exactly; bill a shorter period")]
    Overflow {
        /// Whose request did not fit.
        tenant: String,
    },
    /// More lines than `LINES_MAX`.
    #[error("the bill has more than {LINES_MAX} lines; group by less, or bill a shorter period")]
    TooManyLines,
}

/// Takes rows in any order and adds them up.
#[derive(Debug)]
pub struct Biller {
    period: Period,
    by: Grouping,
    currency: Option<String>,
    lines: HashMap<Vec<Option<String>>, Sums>,
    total: Sums,
}

impl Biller {
    /// An empty bill.
    #[must_use]
    pub fn new(period: Period, by: Grouping) -> Self {
        Self { period, by, currency: None, lines: HashMap::new(), total: Sums::default() }
    }

    /// Adds one request; one that was admitted outside the period is left out.
    ///
    /// Errors: as [`BillError`] says. Nothing of a row that fails should be used: stop there.
    pub fn add(&mut self, row: &BillRow<'_>) -> Result<(), BillError> {
        if !self.period.contains(row.started_at) {
            return Ok(());
        }
        if let Some((currency, _)) = row.cost {
            self.agree_on(currency)?;
        }
        let keys = self.by.dimensions().iter().map(|dimension| dimension.value(row)).collect();
        let sums = Sums::of(row);
        let overflow = || BillError::Overflow { tenant: row.tenant.to_owned() };
        self.total.add(&sums).ok_or_else(overflow)?;
        self.lines.entry(keys).or_default().add(&sums).ok_or_else(overflow)?;
        if self.lines.len() > LINES_MAX { Err(BillError::TooManyLines) } else { Ok(()) }
    }

    /// The bill.
    #[must_use]
    pub fn finish(self) -> Bill {
        let Self { period, by, currency, lines, total } = self;
        let line = |(keys, sums): (_, Sums)| BillLine { keys, sums: sums.without_idle_zeros() };
        let mut rows: Vec<_> = lines.into_iter().map(line).collect();
        rows.sort_by_cached_key(|line| {
            let times: Vec<_> = by
                .dimensions()
                .iter()
                .zip(&line.keys)
                .filter(|(dimension, _)| dimension.is_time())
                .map(|(_, key)| key.clone())
                .collect();
            (times, Reverse(line.sums.cost), line.keys.clone())
        });
        let total = if total.requests == 0 { Sums::nothing() } else { total.without_idle_zeros() };
        Bill { period, by, currency, rows, total }
    }

    fn agree_on(&mut self, currency: &str) -> Result<(), BillError> {
        match &self.currency {
            None => self.currency = Some(currency.to_owned()),
            Some(first) if first == currency => {}
            Some(first) => {
                let (first, second) = (first.clone(), currency.to_owned());
                return Err(BillError::Currencies { first, second });
            }
        }
        Ok(())
    }
}

impl Sums {
    /// Requests whose tokens the engine reported.
    #[must_use]
    pub const fn reported_requests(&self) -> u64 {
        self.requests.saturating_sub(self.counted_requests + self.unknown_usage_requests)
    }

    /// The sums of no request: all of them known, all zero.
    const fn nothing() -> Self {
        Self {
            requests: 0,
            input_tokens: Some(0),
            cache_read_input_tokens: Some(0),
            output_tokens: Some(0),
            reasoning_output_tokens: Some(0),
            cost: Some(Decimal::ZERO),
            unknown_cost_requests: 0,
            counted_requests: 0,
            unknown_usage_requests: 0,
        }
    }

    /// Equal amounts read the same, whatever was added up to them.
    fn without_idle_zeros(self) -> Self {
        Self { cost: self.cost.map(|cost| cost.normalize()), ..self }
    }

    fn of(row: &BillRow<'_>) -> Self {
        let unknown = row.usage_is_unknown();
        Self {
            requests: 1,
            input_tokens: row.input_tokens,
            cache_read_input_tokens: row.cache_read_input_tokens,
            output_tokens: row.output_tokens,
            reasoning_output_tokens: row.reasoning_output_tokens,
            cost: row.cost.map(|(_, amount)| amount),
            unknown_cost_requests: row.cost.is_none().into(),
            counted_requests: (!unknown && row.source == Source::Counted).into(),
            unknown_usage_requests: unknown.into(),
        }
    }

    /// Adds `other`; `None` when a sum cannot be kept exactly.
    fn add(&mut self, other: &Self) -> Option<()> {
        let tokens = u64::checked_add;
        self.requests = self.requests.checked_add(other.requests)?;
        self.input_tokens = known(self.input_tokens, other.input_tokens, tokens)?;
        self.cache_read_input_tokens =
            known(self.cache_read_input_tokens, other.cache_read_input_tokens, tokens)?;
        self.output_tokens = known(self.output_tokens, other.output_tokens, tokens)?;
        self.reasoning_output_tokens =
            known(self.reasoning_output_tokens, other.reasoning_output_tokens, tokens)?;
        self.cost = known(self.cost, other.cost, add_exactly)?;
        self.unknown_cost_requests += other.unknown_cost_requests;
        self.counted_requests += other.counted_requests;
        self.unknown_usage_requests += other.unknown_usage_requests;
        Some(())
    }
}

/// The sum of what is known of two numbers; `None` when `add` fails.
fn known<N>(a: Option<N>, b: Option<N>, add: impl FnOnce(N, N) -> Option<N>) -> Option<Option<N>> {
    match (a, b) {
        (Some(a), Some(b)) => add(a, b).map(Some),
        (a, b) => Some(a.or(b)),
    }
}

/// `Decimal` keeps 96 bits and quietly drops last digits when a sum needs more; here that is an
/// error.
fn add_exactly(a: Decimal, b: Decimal) -> Option<Decimal> {
    let sum = a.checked_add(b)?;
    let places = a.normalize().scale().max(b.normalize().scale());
    (sum.scale() >= places).then_some(sum)
}

#[cfg(test)]
mod tests;
