//! The final statements of a tenant for a period: the first one, and the differences after it.
//!
//! A final statement never changes. What comes later is in a further one, which states the difference
//! to all before it. So the statements together are what is owed.

use std::collections::BTreeMap;

use rust_decimal::Decimal;

use crate::credit::{Covered, Credit};
use crate::statement::{Statement, StatementBefore, StatementFault, StatementLine, totals};
use crate::sums::{add_exactly, exact_product};

/// A statement that cannot be one of a series.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SeriesFault {
    /// It is not what was issued.
    #[error("statement no. {number} is wrong: {fault}")]
    Statement {
        /// Its place in the series.
        number: usize,
        /// What is wrong.
        fault: StatementFault,
    },
    /// It has another number, or does not follow the one before it.
    #[error("statement no. {number} does not follow the one before it: one of them was changed")]
    Broken {
        /// Its place in the series.
        number: usize,
    },
}

/// Whether `issued` are all statements of a series, in order and as they were issued.
///
/// # Errors
/// The first fault.
pub fn check_series(issued: &[Statement]) -> Result<(), SeriesFault> {
    let mut before: Option<&Statement> = None;
    for (number, statement) in (1..).zip(issued) {
        statement.check().map_err(|fault| SeriesFault::Statement { number, fault })?;
        let follows = before.and_then(Statement::as_before);
        let is_next = statement.number.is_some_and(|found| found as usize == number);
        if !is_next || statement.provisional || statement.follows != follows {
            return Err(SeriesFault::Broken { number });
        }
        before = Some(statement);
    }
    Ok(())
}

impl Statement {
    /// What a statement after this one says of it. `None` if it has no number.
    #[must_use]
    pub fn as_before(&self) -> Option<StatementBefore> {
        Some(StatementBefore { number: self.number?, sha256: self.sha256() })
    }

    /// The statement of what this one states beyond the `issued` ones, if anything: the next one of
    /// the series. This one states the whole period.
    ///
    /// # Errors
    /// [`StatementFault::TooLarge`].
    pub fn beyond(&self, issued: &[Self]) -> Result<Option<Self>, StatementFault> {
        let mut difference = Self { number: Some(1), ..self.clone() };
        if let Some(last) = issued.last() {
            difference.number = last.number.map(|last| last.saturating_add(1));
            difference.follows = last.as_before();
        }
        for earlier in issued {
            difference.requests = difference.requests.saturating_sub(earlier.requests);
            difference.unknown_cost_requests =
                difference.unknown_cost_requests.saturating_sub(earlier.unknown_cost_requests);
        }
        difference.lines = self.lines_beyond(issued)?;
        difference.credits = self.credits_beyond(issued)?;
        difference.totals = totals(&difference.lines, &difference.credits)?;
        difference.totals.retain(|_, total| issued.is_empty() || !total.is_zero());
        let is_nothing = !issued.is_empty()
            && (difference.requests, difference.unknown_cost_requests) == (0, 0)
            && difference.lines.is_empty()
            && difference.credits.is_empty();
        Ok((!is_nothing).then_some(difference))
    }

    fn lines_beyond(&self, issued: &[Self]) -> Result<Vec<StatementLine>, StatementFault> {
        let too_large = StatementFault::TooLarge;
        let mut quantities: BTreeMap<StatementLine, Decimal> = BTreeMap::new();
        let earlier = issued.iter().flat_map(|statement| &statement.lines);
        let signed = self.lines.iter().map(|line| (line, line.quantity));
        for (line, quantity) in signed.chain(earlier.map(|line| (line, -line.quantity))) {
            let blank =
                StatementLine { quantity: Decimal::ZERO, amount: Decimal::ZERO, ..line.clone() };
            let sum = quantities.entry(blank).or_default();
            *sum = add_exactly(*sum, quantity).ok_or(too_large.clone())?;
        }
        let line = |(blank, quantity): (StatementLine, Decimal)| {
            let amount = exact_product(quantity, blank.unit_price).ok_or(too_large.clone())?;
            Ok(StatementLine { quantity: quantity.normalize(), amount, ..blank })
        };
        quantities.into_iter().filter(|(_, quantity)| !quantity.is_zero()).map(line).collect()
    }

    fn credits_beyond(&self, issued: &[Self]) -> Result<Vec<Credit>, StatementFault> {
        let too_large = StatementFault::TooLarge;
        type Kind = (jiff::civil::Date, Covered, String);
        let mut sums: BTreeMap<Kind, Credit> = BTreeMap::new();
        let earlier = issued.iter().flat_map(|statement| &statement.credits);
        let earlier = earlier.map(|credit| Credit {
            tokens: credit.tokens.map(|tokens| -tokens),
            amount: -credit.amount,
            ..credit.clone()
        });
        for credit in self.credits.iter().cloned().chain(earlier) {
            let key = (credit.month, credit.covered.clone(), credit.currency.clone());
            match sums.get_mut(&key) {
                Some(sum) => {
                    sum.add(credit.tokens, credit.amount).ok_or(too_large.clone())?;
                }
                None => {
                    sums.insert(key, credit);
                }
            }
        }
        let is_something = |credit: &Credit| {
            !credit.amount.is_zero() || credit.tokens.is_some_and(|tokens| !tokens.is_zero())
        };
        let normal = |credit: Credit| Credit {
            tokens: credit.tokens.map(|tokens| tokens.normalize()),
            amount: credit.amount.normalize(),
            ..credit
        };
        Ok(sums.into_values().filter(is_something).map(normal).collect())
    }
}

#[cfg(test)]
mod tests;
