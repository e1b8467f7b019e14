//! An invoice: each tenant's quantities, prices and amounts.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use rust_decimal::Decimal;
use taximeter_collections::Gather as _;
use taximeter_pricing::Source;

use crate::closing::PeriodStatus;
use crate::credit::Credit;
use crate::hours::{Hour, HourKey, TooLarge};
use crate::period::Period;
use crate::sums::{add_exactly, exact_product};
use crate::zone::Zone;

/// The forecast is based on the last days, at most this many.
const FORECAST_DAYS: i32 = 7;
/// The forecast needs at least this many days. With less than a day, it would miss some hours of
/// the day.
const FORECAST_DAYS_MIN: i32 = 1;

/// The cost of a period, by tenant, model and meter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invoice {
    /// The requests were admitted in this period.
    pub period: Period,
    /// The time zone of the period.
    pub zone: Zone,
    /// The highest total first.
    pub tenants: Vec<TenantInvoice>,
    /// By currency.
    pub totals: BTreeMap<String, Decimal>,
    /// The forecast of a period that is not over.
    pub provisional: Option<Provisional>,
    /// Whether it is final, where the store has said so.
    pub status: Option<PeriodStatus>,
}

/// The part of one tenant.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TenantInvoice {
    /// The tenant that pays.
    pub tenant: String,
    /// By model, the highest cost first, then by meter.
    pub lines: Vec<InvoiceLine>,
    /// The credits for allowances.
    pub credits: Vec<Credit>,
    /// By currency, reduced by the credits.
    pub totals: BTreeMap<String, Decimal>,
    /// Number of requests.
    pub requests: u64,
    /// Number of requests whose cost is unknown. The lines have what is known of it.
    pub unknown_cost_requests: u64,
}

/// One meter of one model at one price.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvoiceLine {
    /// The model that answered. `None` if it is not known.
    pub model: Option<String>,
    /// `input`, `cache_read`, `output` and so on.
    pub meter: String,
    /// What is counted.
    pub unit: String,
    /// Whether this is a later correction.
    pub correction: bool,
    /// The quantity.
    pub quantity: Decimal,
    /// The part of the quantity that Taximeter counted, because the engine did not report it.
    pub counted: Decimal,
    /// Contracted price of one.
    pub unit_price: Decimal,
    /// List price of one.
    pub list_unit_price: Decimal,
    /// ISO 4217.
    pub currency: String,
    /// `quantity` × `unit_price`, exact.
    pub amount: Decimal,
}

/// What a period that is not over will come to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Provisional {
    /// By currency: the cost so far, and the cost of the rest of the period at the rate of the last
    /// days. Empty while there is less than one day to base it on.
    pub forecast: BTreeMap<String, Decimal>,
}

/// Takes hours in any order and adds them up.
#[derive(Debug)]
pub struct Invoicer {
    period: Period,
    zone: Zone,
    now: Timestamp,
    tenants: BTreeMap<String, TenantSums>,
    /// Cost of the days that the forecast is based on.
    recent: BTreeMap<String, Decimal>,
    first: Option<Timestamp>,
}

#[derive(Debug, Default)]
struct TenantSums {
    requests: u64,
    unknown_cost_requests: i64,
    credits: Vec<Credit>,
    lines: BTreeMap<InvoiceLineKey, InvoiceQuantity>,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct InvoiceLineKey {
    model: Option<String>,
    correction: bool,
    meter: String,
    unit: String,
    currency: String,
    unit_price: Decimal,
    list_unit_price: Decimal,
}

#[derive(Debug, Default)]
struct InvoiceQuantity {
    all: Decimal,
    counted: Decimal,
}

impl Invoicer {
    /// An empty invoice at the time `now`.
    #[must_use]
    pub fn new(period: Period, zone: Zone, now: Timestamp) -> Self {
        let (tenants, recent) = (BTreeMap::new(), BTreeMap::new());
        Self { period, zone, now, tenants, recent, first: None }
    }

    /// Start of the days that the forecast is based on. Hours that are added as one sum must all
    /// lie before it, or all after it.
    #[must_use]
    pub fn recent_since(&self) -> Timestamp {
        let days = SignedDuration::from_hours(24 * i64::from(FORECAST_DAYS));
        self.now.checked_sub(days).map_or(self.period.from(), |since| since.max(self.period.from()))
    }

    /// Adds an hour. Hours outside the period are ignored.
    ///
    /// # Errors
    /// [`TooLarge`]. After an error the invoice must not be used.
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
            let key = InvoiceLineKey {
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

    /// Subtracts the credit of an allowance.
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
        taximeter_collections::sort_by_key(&mut tenants, |part| {
            (Reverse(part.totals.values().max().copied()), part.tenant.clone())
        });
        let provisional =
            (self.now < self.period.to()).then(|| Provisional { forecast: self.forecast(&totals) });
        let (period, zone) = (self.period, self.zone);
        Ok(Invoice { period, zone, tenants, totals, provisional, status: None })
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
        totals.iter().filter_map(forecast).gather()
    }
}

impl TenantSums {
    fn part(self, tenant: String) -> Result<TenantInvoice, TooLarge> {
        let mut part = TenantInvoice {
            tenant,
            requests: self.requests,
            unknown_cost_requests: u64::try_from(self.unknown_cost_requests).unwrap_or_default(),
            ..TenantInvoice::default()
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

/// The position of a meter: first the meters of tokens in a fixed order, then the others by name.
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
