//! Hours in, one bill out.

use std::cmp::Reverse;
use std::collections::HashMap;

use crate::credit::Credit;
use crate::group::{Grouping, Place};
use crate::hours::{Hour, HourKey};
use crate::period::Period;
use crate::sums::Sums;
use crate::zone::Zone;

/// Most lines of one bill; a finer grouping is refused instead of filling the memory.
pub(crate) const LINES_MAX: usize = 1_000_000;

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
    /// Whose hours, days and months the lines and credits are of.
    pub zone: Zone,
    /// What the lines are split by.
    pub by: Grouping,
    /// ISO 4217; `None` when no request has a known cost.
    pub currency: Option<String>,
    /// In order of time where grouped by time, then the largest cost first, then by name.
    pub rows: Vec<BillLine>,
    /// What allowances take off, by tenant and month.
    pub credits: Vec<Credit>,
    /// The sums of all rows; the cost without the credits.
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

/// Takes hours in any order and adds them up.
#[derive(Debug)]
pub struct Biller {
    period: Period,
    zone: Zone,
    by: Grouping,
    currency: Option<String>,
    lines: HashMap<Place, Sums>,
    credits: Vec<Credit>,
    total: Sums,
}

impl Biller {
    /// An empty bill.
    #[must_use]
    pub fn new(period: Period, zone: Zone, by: Grouping) -> Self {
        Self {
            period,
            zone,
            by,
            currency: None,
            lines: HashMap::new(),
            credits: Vec::new(),
            total: Sums::default(),
        }
    }

    /// Adds what an hour has within the period: of an hour that is cut by its start or end, or
    /// where an hour, day or month of the zone begins ([`Period::parts`]), only the requests that
    /// were admitted inside.
    ///
    /// Errors: as [`BillError`] says. Nothing of a bill that fails should be used: stop there.
    pub fn add_hour(&mut self, key: &HourKey, hour: &Hour) -> Result<(), BillError> {
        if let Some(currency) = &key.currency {
            self.agree_on(currency)?;
        }
        let place = self.by.place(key, &self.zone);
        let overflow = || BillError::Overflow { tenant: key.tenant.clone() };
        self.total.add(&hour.sums).ok_or_else(overflow)?;
        self.lines.entry(place).or_default().add(&hour.sums).ok_or_else(overflow)?;
        if self.lines.len() > LINES_MAX { Err(BillError::TooManyLines) } else { Ok(()) }
    }

    /// Takes off what an allowance covers of the hours that were added.
    ///
    /// Errors: as [`BillError`] says.
    pub fn add_credit(&mut self, credit: Credit) -> Result<(), BillError> {
        self.agree_on(&credit.currency)?;
        let overflow = || BillError::Overflow { tenant: credit.tenant.clone() };
        let credited = Sums { cost: Some(-credit.amount), ..Sums::default() };
        self.total.add(&credited).ok_or_else(overflow)?;
        self.credits.push(credit);
        Ok(())
    }

    /// The bill.
    #[must_use]
    pub fn finish(self) -> Bill {
        let Self { period, zone, by, currency, lines, credits, total } = self;
        let line = |((start, keys), sums): (Place, Sums)| {
            (start, BillLine { keys, sums: sums.or_of_no_request().without_idle_zeros() })
        };
        let mut rows: Vec<_> = lines.into_iter().map(line).collect();
        rows.sort_by_cached_key(|(start, line)| {
            (*start, Reverse(line.sums.cost), line.keys.clone())
        });
        let rows = rows.into_iter().map(|(_, line)| line).collect();
        let total = total.or_of_no_request().without_idle_zeros();
        Bill { period, zone, by, currency, rows, credits, total }
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

#[cfg(test)]
mod tests;
