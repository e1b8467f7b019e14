//! Allowances: an amount of money, or a number of tokens, that is free for a tenant in each
//! calendar month.
//!
//! Allowances change no request and no hour. They are used up by the hours of a month in the order
//! of time. A bill shows them as credits next to its charges. Credits are never higher than the
//! charges.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use jiff::Timestamp;
use jiff::civil::Date;
use rust_decimal::Decimal;
use taximeter_collections::Gather as _;
use taximeter_pricing::{Allowance, Dated};

use crate::bill::BillError;
use crate::credit::{Covered, Credit};
use crate::hours::{Hour, HourKey};
use crate::period::{Month, Period};
use crate::sums::{add_exactly, exact_product};
use crate::zone::Zone;

/// Takes hours in any order and finds the part of them that is free.
///
/// In the hour in which an allowance runs out, the tokens with the highest price are free first.
/// Tokens with a price of zero use up nothing. Allowances of tokens come before allowances of
/// money.
#[derive(Debug)]
pub struct Allowances {
    period: Period,
    zone: Zone,
    /// The allowances by tenant.
    of: BTreeMap<String, Dated<Allowance>>,
    hours: BTreeMap<ChargeKey, HourCharge>,
}

/// The charges of one tenant, hour and currency. If the period begins within the hour, the part
/// before it comes first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct ChargeKey {
    tenant: String,
    currency: String,
    hour: Timestamp,
    is_billed: bool,
}

#[derive(Debug, Default)]
struct HourCharge {
    cost: Decimal,
    /// Quantities by meter and price, the highest price first.
    quantities: BTreeMap<(String, Reverse<Decimal>), Decimal>,
}

/// The rest of an allowance in a month.
#[derive(Debug, Clone, Default)]
struct Remaining {
    money: Decimal,
    tokens: BTreeMap<String, Decimal>,
}

impl Allowances {
    /// The allowances of these tenants for each month of `zone`, in a bill for `period`. The
    /// allowance in force on the first day of a month holds for the whole month.
    #[must_use]
    pub fn new(period: Period, zone: Zone, of: BTreeMap<String, Dated<Allowance>>) -> Self {
        Self { period, zone, of, hours: BTreeMap::new() }
    }

    /// The part of the period's first month that lies before the period. Requests in it may have
    /// used up allowances.
    #[must_use]
    pub fn before(&self) -> Option<Period> {
        let start = Period::month_of(self.period.from(), &self.zone).ok()?.from();
        Period::new(start, self.period.from()).ok().filter(|_| !self.of.is_empty())
    }

    /// Adds the charges of a tenant for an hour of the period.
    /// # Errors
    /// `Overflow` if a sum cannot be kept exactly.
    pub fn add(&mut self, key: &HourKey, hour: &Hour) -> Result<(), BillError> {
        self.add_charge(key, hour, true)
    }

    /// The same for an hour in the time [`before`](Self::before) the period.
    /// # Errors
    /// As [`add`](Self::add).
    pub fn add_before(&mut self, key: &HourKey, hour: &Hour) -> Result<(), BillError> {
        self.add_charge(key, hour, false)
    }

    fn add_charge(&mut self, key: &HourKey, hour: &Hour, is_billed: bool) -> Result<(), BillError> {
        let month = Month::of(key.hour, &self.zone).first();
        let allowance = self.of.get(&key.tenant).and_then(|dated| dated.on(month));
        let (Some(allowance), Some(currency)) = (allowance, &key.currency) else {
            return Ok(());
        };
        let overflow = || BillError::Overflow { tenant: key.tenant.clone() };
        let charge_key = ChargeKey {
            tenant: key.tenant.clone(),
            currency: currency.clone(),
            hour: key.hour,
            is_billed,
        };
        let charge = self.hours.entry(charge_key).or_default();
        let cost = hour.sums.cost.unwrap_or_default();
        charge.cost = add_exactly(charge.cost, cost).ok_or_else(overflow)?;
        for (line, quantity) in &hour.lines {
            if allowance.tokens.keys().any(|meter| meter.as_str() == line.meter) {
                let charge_key = (line.meter.clone(), Reverse(line.unit_price));
                let sum = charge.quantities.entry(charge_key).or_default();
                *sum = add_exactly(*sum, *quantity).ok_or_else(overflow)?;
            }
        }
        Ok(())
    }

    /// The credits for the hours of the period, by tenant, month and what they cover.
    /// # Errors
    /// `Overflow` if a sum cannot be kept exactly.
    pub fn credits(self) -> Result<Vec<Credit>, BillError> {
        let Self { zone, of, hours, .. } = self;
        let mut remaining: BTreeMap<(String, Date), Remaining> = BTreeMap::new();
        let mut credits: BTreeMap<_, Credit> = BTreeMap::new();
        for (charge_key, charge) in hours {
            let overflow = || BillError::Overflow { tenant: charge_key.tenant.clone() };
            let month = Month::of(charge_key.hour, &zone).first();
            let allowance = of.get(&charge_key.tenant).and_then(|dated| dated.on(month));
            let Some(allowance) = allowance else { continue };
            let remaining = remaining
                .entry((charge_key.tenant.clone(), month))
                .or_insert_with(|| Remaining::of(allowance, &charge_key.currency));
            for (covered, tokens, amount) in remaining.take(charge).ok_or_else(overflow)? {
                if !charge_key.is_billed {
                    continue;
                }
                let key = (
                    charge_key.tenant.clone(),
                    month,
                    covered.clone(),
                    charge_key.currency.clone(),
                );
                let credit = credits.entry(key).or_insert_with(|| Credit {
                    tenant: charge_key.tenant.clone(),
                    month,
                    covered,
                    tokens: tokens.map(|_| Decimal::ZERO),
                    amount: Decimal::ZERO,
                    currency: charge_key.currency.clone(),
                });
                credit.add(tokens, amount).ok_or_else(overflow)?;
            }
        }
        Ok(credits.into_values().collect())
    }
}

impl Remaining {
    fn of(allowance: &Allowance, currency: &str) -> Self {
        let money = allowance.money.as_ref().filter(|money| money.currency.as_str() == currency);
        let tokens = allowance.tokens.iter();
        Self {
            money: money.map(|money| money.amount).unwrap_or_default(),
            tokens: tokens
                .map(|(meter, most)| (meter.as_str().to_owned(), (*most).into()))
                .gather(),
        }
    }

    /// Uses the allowance for an hour and returns the free part. `None` if an amount cannot be kept
    /// exactly.
    fn take(&mut self, charge: HourCharge) -> Option<Vec<(Covered, Option<Decimal>, Decimal)>> {
        let mut free = Vec::new();
        let mut rest = charge.cost;
        for ((meter, Reverse(price)), quantity) in charge.quantities {
            let Some(remaining) = self.tokens.get_mut(&meter) else { continue };
            let taken = quantity.min(*remaining);
            let amount = exact_product(taken, price)?;
            if amount <= Decimal::ZERO || amount > rest {
                continue;
            }
            *remaining -= taken;
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
