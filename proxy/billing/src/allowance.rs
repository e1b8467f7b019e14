//! What tenants need not pay: so much money, or so many tokens, of each calendar month.
//!
//! Allowances change no request and no hour. They are counted off the hours of a month in the order
//! of time, and what they cover is a credit beside the charges: never more than is owed.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use jiff::Timestamp;
use jiff::civil::Date;
use rust_decimal::Decimal;
use taximeter_pricing::{Allowance, Dated};

use crate::bill::BillError;
use crate::credit::{Covered, Credit};
use crate::hours::{Hour, HourKey};
use crate::period::{Month, Period};
use crate::sums::{add_exactly, exact_product};
use crate::zone::Zone;

/// Takes hours in any order and finds what of them is free.
///
/// Of an hour in which an allowance ends, the dearest tokens are free first; tokens that cost
/// nothing use nothing up. Tokens come before money, and money covers what they leave.
#[derive(Debug)]
pub struct Allowances {
    period: Period,
    zone: Zone,
    of: BTreeMap<String, Dated<Allowance>>,
    hours: BTreeMap<Place, Owed>,
}

/// Whose, when, and in which currency; within an hour that the period cuts, what is before it
/// first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    tenant: String,
    currency: String,
    hour: Timestamp,
    is_billed: bool,
}

#[derive(Debug, Default)]
struct Owed {
    cost: Decimal,
    /// By meter and price, the highest first: how many.
    quantities: BTreeMap<(String, Reverse<Decimal>), Decimal>,
}

/// What is left of an allowance in a month.
#[derive(Debug, Clone, Default)]
struct Left {
    money: Decimal,
    tokens: BTreeMap<String, Decimal>,
}

impl Allowances {
    /// The allowances of these tenants for each month of `zone`, in a bill for `period`. A month has
    /// that of its first day.
    #[must_use]
    pub fn new(period: Period, zone: Zone, of: BTreeMap<String, Dated<Allowance>>) -> Self {
        Self { period, zone, of, hours: BTreeMap::new() }
    }

    /// The part of the period's first month before it, in which allowances may have been used up.
    #[must_use]
    pub fn before(&self) -> Option<Period> {
        let start = Period::month_of(self.period.from(), &self.zone).ok()?.from();
        Period::new(start, self.period.from()).ok().filter(|_| !self.of.is_empty())
    }

    /// Adds what a tenant owes for an hour of the period.
    ///
    /// # Errors
    /// `Overflow` when a sum cannot be kept exactly.
    pub fn add(&mut self, key: &HourKey, hour: &Hour) -> Result<(), BillError> {
        self.owe(key, hour, true)
    }

    /// The same for an hour of the time [`before`](Self::before) the period.
    ///
    /// # Errors
    /// As [`add`](Self::add).
    pub fn add_before(&mut self, key: &HourKey, hour: &Hour) -> Result<(), BillError> {
        self.owe(key, hour, false)
    }

    fn owe(&mut self, key: &HourKey, hour: &Hour, is_billed: bool) -> Result<(), BillError> {
        let month = Month::of(key.hour, &self.zone).first();
        let allowance = self.of.get(&key.tenant).and_then(|dated| dated.on(month));
        let (Some(allowance), Some(currency)) = (allowance, &key.currency) else {
            return Ok(());
        };
        let overflow = || BillError::Overflow { tenant: key.tenant.clone() };
        let place = Place {
            tenant: key.tenant.clone(),
            currency: currency.clone(),
            hour: key.hour,
            is_billed,
        };
        let owed = self.hours.entry(place).or_default();
        let cost = hour.sums.cost.unwrap_or_default();
        owed.cost = add_exactly(owed.cost, cost).ok_or_else(overflow)?;
        for (line, quantity) in &hour.lines {
            if allowance.tokens.keys().any(|meter| meter.as_str() == line.meter) {
                let place = (line.meter.clone(), Reverse(line.unit_price));
                let sum = owed.quantities.entry(place).or_default();
                *sum = add_exactly(*sum, *quantity).ok_or_else(overflow)?;
            }
        }
        Ok(())
    }

    /// What is free of what was added for the period: by tenant, month and what it covers.
    ///
    /// # Errors
    /// `Overflow` when a sum cannot be kept exactly.
    pub fn credits(self) -> Result<Vec<Credit>, BillError> {
        let Self { zone, of, hours, .. } = self;
        let mut left: BTreeMap<(String, Date), Left> = BTreeMap::new();
        let mut credits: BTreeMap<_, Credit> = BTreeMap::new();
        for (place, owed) in hours {
            let overflow = || BillError::Overflow { tenant: place.tenant.clone() };
            let month = Month::of(place.hour, &zone).first();
            let allowance = of.get(&place.tenant).and_then(|dated| dated.on(month));
            let Some(allowance) = allowance else { continue };
            let left = left
                .entry((place.tenant.clone(), month))
                .or_insert_with(|| Left::of(allowance, &place.currency));
            for (covered, tokens, amount) in left.take(owed).ok_or_else(overflow)? {
                if !place.is_billed {
                    continue;
                }
                let key = (place.tenant.clone(), month, covered.clone(), place.currency.clone());
                let credit = credits.entry(key).or_insert_with(|| Credit {
                    tenant: place.tenant.clone(),
                    month,
                    covered,
                    tokens: tokens.map(|_| Decimal::ZERO),
                    amount: Decimal::ZERO,
                    currency: place.currency.clone(),
                });
                credit.add(tokens, amount).ok_or_else(overflow)?;
            }
        }
        Ok(credits.into_values().collect())
    }
}

impl Left {
    fn of(allowance: &Allowance, currency: &str) -> Self {
        let money = allowance.money.as_ref().filter(|money| money.currency.as_str() == currency);
        let tokens = allowance.tokens.iter();
        Self {
            money: money.map(|money| money.amount).unwrap_or_default(),
            tokens: tokens
                .map(|(meter, most)| (meter.as_str().to_owned(), (*most).into()))
                .collect(),
        }
    }

    /// Counts an hour off; what of it is free. `None` when an amount cannot be kept exactly.
    fn take(&mut self, owed: Owed) -> Option<Vec<(Covered, Option<Decimal>, Decimal)>> {
        let mut free = Vec::new();
        let mut rest = owed.cost;
        for ((meter, Reverse(price)), quantity) in owed.quantities {
            let Some(left) = self.tokens.get_mut(&meter) else { continue };
            let taken = quantity.min(*left);
            let amount = exact_product(taken, price)?;
            if amount <= Decimal::ZERO || amount > rest {
                continue;
            }
            *left -= taken;
            rest -= amount;
            free.push((Covered::Meter(meter), Some(taken), amount));
        }
        let money = rest.min(self.money);
        if money > Decimal::ZERO {
            self.money -= money;
            free.push((Covered::Money, None, money));
        }
        Some(free)
    }
}

#[cfg(test)]
mod tests;
