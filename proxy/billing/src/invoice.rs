//! A bill as an invoice: each tenant's quantities, prices and amounts.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use rust_decimal::Decimal;
use taximeter_pricing::Source;

use crate::credit::Credit;
use crate::hours::{Hour, HourKey, TooLarge};
use crate::period::Period;
use crate::sums::{add_exactly, exact_product};
use crate::zone::Zone;

/// A forecast goes by the last days, as many of them as the period has behind it.
const FORECAST_DAYS: i32 = 7;
/// And by at least so many: less than a day tells nothing of the hours that it lacks.
const FORECAST_DAYS_MIN: i32 = 1;

/// What is owed for a period, by whom and for what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invoice {
    /// When the requests were admitted.
    pub period: Period,
    /// Whose month or day that is.
    pub zone: Zone,
    /// The largest first.
    pub tenants: Vec<TenantPart>,
    /// By currency.
    pub totals: BTreeMap<String, Decimal>,
    /// Where the period is not over: what is owed so far, and what it may come to.
    pub provisional: Option<Provisional>,
}

/// One tenant's part.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TenantPart {
    /// Who pays.
    pub tenant: String,
    /// By model, the dearest first, then by meter.
    pub lines: Vec<InvoiceLine>,
    /// What is free.
    pub credits: Vec<Credit>,
    /// By currency, less what is free.
    pub totals: BTreeMap<String, Decimal>,
    /// Requests.
    pub requests: u64,
    /// Requests whose cost is unknown, and which no line has.
    pub unknown_cost_requests: u64,
}

/// One meter of one model at one price.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvoiceLine {
    /// Who answered; `None` is not known.
    pub model: Option<String>,
    /// `input`, `cache_read`, `output` and so on.
    pub meter: String,
    /// What is counted.
    pub unit: String,
    /// A later correction.
    pub correction: bool,
    /// How many.
    pub quantity: Decimal,
    /// The part of it that the engine did not report but we counted.
    pub counted: Decimal,
    /// Money per one.
    pub unit_price: Decimal,
    /// Money per one at list price.
    pub list_unit_price: Decimal,
    /// ISO 4217.
    pub currency: String,
    /// `quantity` × `unit_price`, exact.
    pub amount: Decimal,
}

/// A period that is not over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Provisional {
    /// Up to when.
    pub until: Timestamp,
    /// By currency: what is owed so far, and the rest of the period at the rate of the last days.
    /// Empty while there is less than a day to go by.
    pub forecast: BTreeMap<String, Decimal>,
}

/// Takes hours in any order and adds them up.
#[derive(Debug)]
pub struct Invoicer {
    period: Period,
    zone: Zone,
    now: Timestamp,
    tenants: BTreeMap<String, Tenant>,
    /// Money of the days that the forecast goes by.
    recent: BTreeMap<String, Decimal>,
    first: Option<Timestamp>,
}

#[derive(Debug, Default)]
struct Tenant {
    requests: u64,
    unknown_cost_requests: i64,
    credits: Vec<Credit>,
    lines: BTreeMap<Key, Quantity>,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    model: Option<String>,
    correction: bool,
    meter: String,
    unit: String,
    currency: String,
    unit_price: Decimal,
    list_unit_price: Decimal,
}

#[derive(Debug, Default)]
struct Quantity {
    all: Decimal,
    counted: Decimal,
}

impl Invoicer {
    /// An empty invoice, seen from `now`.
    #[must_use]
    pub fn new(period: Period, zone: Zone, now: Timestamp) -> Self {
        let (tenants, recent) = (BTreeMap::new(), BTreeMap::new());
        Self { period, zone, now, tenants, recent, first: None }
    }

    /// Where the days begin that the forecast goes by: of hours that are added as one sum, none may
    /// be before it and another behind.
    #[must_use]
    pub fn recent_since(&self) -> Timestamp {
        let days = SignedDuration::from_hours(24 * i64::from(FORECAST_DAYS));
        self.now.checked_sub(days).map_or(self.period.from(), |since| since.max(self.period.from()))
    }

    /// Adds an hour; one outside the period is left out.
    ///
    /// # Errors
    /// [`TooLarge`]; nothing of what is half added should be used.
    pub fn add(&mut self, key: &HourKey, hour: &Hour) -> Result<(), TooLarge> {
        if !self.period.contains(key.hour) {
            return Ok(());
        }
        self.first = Some(self.first.map_or(key.hour, |first| first.min(key.hour)));
        let tenant = self.tenants.entry(key.tenant.clone()).or_default();
        tenant.requests = tenant.requests.saturating_add(hour.sums.requests);
        tenant.unknown_cost_requests =
            tenant.unknown_cost_requests.saturating_add(hour.sums.unknown_cost_requests);
        let currency = key.currency.clone().unwrap_or_default();
        for (line, quantity) in &hour.lines {
            let key = Key {
                model: line.model.clone().or_else(|| key.model.clone()),
                correction: key.correction,
                meter: line.meter.clone(),
                unit: line.unit.clone(),
                currency: currency.clone(),
                unit_price: line.unit_price,
                list_unit_price: line.list_unit_price,
            };
            let sum = tenant.lines.entry(key).or_default();
            sum.all = add_exactly(sum.all, *quantity).ok_or(TooLarge)?;
            if line.source != Source::Reported {
                sum.counted = add_exactly(sum.counted, *quantity).ok_or(TooLarge)?;
            }
        }
        if key.hour >= self.recent_since()
            && let Some(cost) = hour.sums.cost
        {
            let recent = self.recent.entry(currency).or_default();
            *recent = add_exactly(*recent, cost).ok_or(TooLarge)?;
        }
        Ok(())
    }

    /// Takes off what an allowance covers of the hours that were added.
    pub fn add_credit(&mut self, credit: Credit) {
        self.tenants.entry(credit.tenant.clone()).or_default().credits.push(credit);
    }

    /// The invoice.
    ///
    /// # Errors
    /// [`TooLarge`].
    pub fn finish(mut self) -> Result<Invoice, TooLarge> {
        let tenants = std::mem::take(&mut self.tenants);
        let mut tenants: Vec<_> = tenants
            .into_iter()
            .map(|(name, tenant)| tenant.part(name))
            .collect::<Result<_, _>>()?;
        let mut totals = BTreeMap::new();
        for part in &tenants {
            for (currency, amount) in &part.totals {
                add_to(&mut totals, currency, *amount)?;
            }
        }
        tenants.sort_by_key(|part| {
            (Reverse(part.totals.values().max().copied()), part.tenant.clone())
        });
        let provisional = (self.now < self.period.to())
            .then(|| Provisional { until: self.now, forecast: self.forecast(&totals) });
        Ok(Invoice { period: self.period, zone: self.zone, tenants, totals, provisional })
    }

    fn forecast(&self, totals: &BTreeMap<String, Decimal>) -> BTreeMap<String, Decimal> {
        let since = self.first.map_or(self.now, |first| first.max(self.recent_since()));
        let seconds =
            |from: Timestamp, to: Timestamp| Decimal::from(to.as_second() - from.as_second());
        let (behind, ahead) = (seconds(since, self.now), seconds(self.now, self.period.to()));
        if behind < Decimal::from(FORECAST_DAYS_MIN * 24 * 60 * 60) {
            return BTreeMap::new();
        }
        let coming = |recent: Decimal| recent.checked_mul(ahead)?.checked_div(behind);
        let forecast = |(currency, total): (&String, &Decimal)| {
            let recent = self.recent.get(currency).copied().unwrap_or_default();
            Some((currency.clone(), total.checked_add(coming(recent)?)?))
        };
        totals.iter().filter_map(forecast).collect()
    }
}

impl Tenant {
    fn part(self, tenant: String) -> Result<TenantPart, TooLarge> {
        let mut part = TenantPart {
            tenant,
            requests: self.requests,
            unknown_cost_requests: u64::try_from(self.unknown_cost_requests).unwrap_or_default(),
            ..TenantPart::default()
        };
        let mut by_model: BTreeMap<Option<String>, Decimal> = BTreeMap::new();
        for (key, quantity) in self.lines {
            if quantity.all.is_zero() {
                continue;
            }
            let amount = exact_product(quantity.all, key.unit_price).ok_or(TooLarge)?;
            add_to(&mut part.totals, &key.currency, amount)?;
            let sum = by_model.entry(key.model.clone()).or_default();
            *sum = sum.saturating_add(amount);
            part.lines.push(InvoiceLine {
                model: key.model,
                meter: key.meter,
                unit: key.unit,
                correction: key.correction,
                quantity: quantity.all.normalize(),
                counted: quantity.counted.normalize(),
                unit_price: key.unit_price,
                list_unit_price: key.list_unit_price,
                currency: key.currency,
                amount,
            });
        }
        for credit in self.credits {
            add_to(&mut part.totals, &credit.currency, -credit.amount)?;
            part.credits.push(credit);
        }
        part.lines.sort_by_cached_key(|line| {
            let sum = by_model.get(&line.model).copied().unwrap_or_default();
            (Reverse(sum), line.model.clone(), line.correction, rank(&line.meter))
        });
        Ok(part)
    }
}

/// Meters in the order in which a request uses them; the others behind, by name.
fn rank(meter: &str) -> (usize, String) {
    const ORDER: [&str; 6] =
        ["input", "cache_read", "cache_write", "cache_write_long", "output", "reasoning"];
    let place = ORDER.iter().position(|known| *known == meter).unwrap_or(ORDER.len());
    (place, meter.to_owned())
}

fn add_to(
    totals: &mut BTreeMap<String, Decimal>,
    currency: &str,
    amount: Decimal,
) -> Result<(), TooLarge> {
    let total = totals.entry(currency.to_owned()).or_default();
    *total = add_exactly(*total, amount).ok_or(TooLarge)?.normalize();
    Ok(())
}

#[cfg(test)]
mod tests;
