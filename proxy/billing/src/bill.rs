//! Adds up hours to one bill.

use std::cmp::Reverse;
use std::collections::HashMap;

use crate::closing::PeriodStatus;
use crate::credit::Credit;
use crate::group::{GroupKey, Grouping};
use crate::hours::{Hour, HourKey};
use crate::period::Period;
use crate::sums::Sums;
use crate::zone::Zone;

/// Most lines of one bill. A finer grouping is refused, so that it does not fill the memory.
pub(crate) const LINES_MAX: usize = 1_000_000;

/// One line: the values of the bill's dimensions, in order, and the sums of the requests with these
/// values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BillLine {
    /// One for each dimension. `None` if the requests have no value there.
    pub keys: Vec<Option<String>>,
    /// The sums.
    pub sums: Sums,
}

/// The usage and the cost of a period.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bill {
    /// The requests were admitted in this period.
    pub period: Period,
    /// The time zone of the hours, days and months in lines and credits.
    pub zone: Zone,
    /// The dimensions of the lines.
    pub by: Grouping,
    /// ISO 4217. `None` if no request has a known cost.
    pub currency: Option<String>,
    /// If grouped by time, in order of time. Then the highest cost first, then by name.
    pub rows: Vec<BillLine>,
    /// The credits for allowances, by tenant and month.
    pub credits: Vec<Credit>,
    /// The sums of all rows. The cost is reduced by the credits.
    pub total: Sums,
    /// Whether it is final, where the store has said so.
    pub status: Option<PeriodStatus>,
}

/// Why a bill cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BillError {
    /// Amounts in two currencies cannot be added.
    #[error(
        "the period has costs in {first} and in {second}, which cannot be added; bill the times \
         before and after the change of currency apart, with --from and --to"
    )]
    Currencies {
        /// The currency that came first.
        first: String,
        /// The other currency.
        second: String,
    },
    /// A sum has more digits than can be kept exactly.
    #[error("the sums of {tenant} are too large to be kept exactly; bill a shorter period")]
    Overflow {
        /// The tenant whose request did not fit.
        tenant: String,
    },
    /// The bill has more than `LINES_MAX` lines.
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
    lines: HashMap<GroupKey, Sums>,
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

    /// Adds an hour, or the part of it within the period. The start or the end of the period, or of
    /// an hour, day or month of the zone, can cut an hour of UTC ([`Period::parts`]). Then the part
    /// has only the requests that were admitted inside.
    ///
    /// Errors: as [`BillError`] says. After an error the bill must not be used.
    pub fn add_hour(&mut self, key: &HourKey, hour: &Hour) -> Result<(), BillError> {
        if let Some(currency) = &key.currency {
            self.agree_on(currency)?;
        }
        let group_key = self.by.group_key(key, &self.zone);
        let overflow = || BillError::Overflow { tenant: key.tenant.clone() };
        self.total.add(&hour.sums).ok_or_else(overflow)?;
        self.lines.entry(group_key).or_default().add(&hour.sums).ok_or_else(overflow)?;
        if self.lines.len() > LINES_MAX { Err(BillError::TooManyLines) } else { Ok(()) }
    }

    /// Subtracts the credit of an allowance.
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
        let line = |((start, keys), sums): (GroupKey, Sums)| {
            (start, BillLine { keys, sums: sums.or_of_no_request().without_trailing_zeros() })
        };
        let mut rows: Vec<_> = lines.into_iter().map(line).collect();
        rows.sort_by_cached_key(|(start, line)| {
            (*start, Reverse(line.sums.cost), line.keys.clone())
        });
        let rows = rows.into_iter().map(|(_, line)| line).collect();
        let total = total.or_of_no_request().without_trailing_zeros();
        Bill { period, zone, by, currency, rows, credits, total, status: None }
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
