//! Shares the cost of GPUs out to the requests that ran on them.
//!
//! In each hour, the time in which at least one request ran is shared out by weighted tokens. The
//! rest of the hour is idle and belongs to no tenant. Shares are times in billionths of a GPU-hour,
//! and a share costs its time × the price. So all shares and the idle rest cost exactly what the
//! GPUs cost.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use rust_decimal::Decimal;
use taximeter_pricing::{GpuPrice, Source};

use crate::bill::BillError;
use crate::hours::{Hour, HourKey, LineKey};
use crate::period::Period;
use crate::sums::{Sums, exact_product};
use crate::zone::{Unit, Zone};

/// Meter of the time in which requests ran.
const USED: &str = "gpu";
/// Meter of the idle time.
pub(crate) const IDLE: &str = "gpu_idle";
/// Unit of both meters.
const UNIT: &str = "gpu_hours";
/// Decimal places of a share in GPU-hours.
const SHARE_PLACES: u32 = 9;
/// Shares in one GPU-hour.
const SHARES: u128 = 10_u128.pow(SHARE_PLACES);
const HOUR_MICROSECONDS: u128 = 3_600_000_000;

/// The time in which a request ran, and its tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestRun {
    /// Time of admission.
    pub started_at: Timestamp,
    /// Time of the end, not before the start.
    pub ended_at: Timestamp,
    /// All input. `None` means unknown.
    pub input_tokens: Option<u64>,
    /// All output. `None` means unknown.
    pub output_tokens: Option<u64>,
}

/// The cost of the GPUs of one upstream in a period, and the requests that share it.
///
/// Requests that were admitted before the period and ran into it share its hours too. The tokens of
/// a request are split over its hours by the time that it ran in each. Unknown tokens weigh
/// nothing. If the tokens of all requests of an hour are unknown, the hour is shared out by time.
#[derive(Debug)]
pub struct GpuShares {
    upstream: String,
    provider: String,
    price: GpuPrice,
    /// The part of the period in which the GPUs have a price.
    period: Option<Period>,
    zone: Zone,
    hours: BTreeMap<Timestamp, BusyHour>,
}

/// One hour, or the part of it in the period.
#[derive(Debug, Default)]
struct BusyHour {
    /// Start → end of the times in which at least one request ran, in microseconds since 1970. They
    /// do not touch each other.
    spans: BTreeMap<i64, i64>,
    weights: BTreeMap<HourKey, Weight>,
}

#[derive(Debug, Default)]
struct Weight {
    tokens: u128,
    /// In microseconds.
    time: u128,
}

impl GpuShares {
    /// The GPUs of `upstream` in `period`, without requests. Hours are those of `zone`, so that
    /// each share belongs to one hour, day and month of the zone.
    #[must_use]
    pub fn new(
        upstream: &str,
        provider: &str,
        price: GpuPrice,
        period: Period,
        zone: Zone,
    ) -> Self {
        let from = price.since().map_or(period.from(), |since| since.max(period.from()));
        let to = price.until().map_or(period.to(), |until| until.min(period.to()));
        let period = Period::new(from, to).ok();
        Self {
            upstream: upstream.to_owned(),
            provider: provider.to_owned(),
            price,
            period,
            zone,
            hours: BTreeMap::new(),
        }
    }

    /// An hour of requests that pay for GPUs, without its cost by the token: the number of requests
    /// and their tokens remain. `None` for requests that pay by the token.
    #[must_use]
    pub fn without_token_cost(&self, key: &HourKey, hour: &Hour) -> Option<(HourKey, Hour)> {
        if key.upstream != self.upstream || !self.price.covers(key.hour) {
            return None;
        }
        let sums =
            Sums { cost: None, list_cost: None, unknown_cost_requests: 0, ..hour.sums.clone() };
        let key = HourKey { currency: None, ..key.clone() };
        Some((key, Hour { sums, lines: BTreeMap::new() }))
    }

    /// Adds a request, in any order. Requests of other upstreams are ignored, and so is time
    /// outside the period.
    pub fn add(&mut self, key: &HourKey, run: &RequestRun) {
        let Some(period) = self.period.filter(|_| key.upstream == self.upstream) else { return };
        let weights = self.price.weights;
        let weigh = |tokens: Option<u64>, weight: u32| {
            u128::from(tokens.unwrap_or_default()) * u128::from(weight)
        };
        let tokens =
            weigh(run.input_tokens, weights.input) + weigh(run.output_tokens, weights.output);
        // A request without duration belongs to the hour of its start. So does a request that ended
        // before its start by the clock.
        let ended_at = run.ended_at.max(run.started_at);
        let whole = microseconds(run.started_at, ended_at);
        let end = ended_at.checked_add(SignedDuration::from_micros(1));
        let end = end.unwrap_or(Timestamp::MAX).min(period.to());
        let Ok(inside) = Period::new(run.started_at.max(period.from()), end) else { return };
        for (hour, part) in hours_of(inside, &self.zone) {
            let to = ended_at.min(part.to());
            let time = microseconds(part.from(), to);
            if time == 0 && whole > 0 {
                continue;
            }
            let busy = self.hours.entry(hour).or_default();
            busy.run(part.from().as_microsecond(), to.as_microsecond());
            let weight = busy.weights.entry(HourKey { hour, ..key.clone() }).or_default();
            weight.time += time;
            let part = (time * SHARES).checked_div(whole).unwrap_or(SHARES);
            weight.tokens = weight.tokens.saturating_add(tokens.saturating_mul(part));
        }
    }

    /// The shares of all requests and the idle rest, by hour.
    ///
    /// # Errors
    /// `Overflow` if an amount cannot be kept exactly.
    pub fn finish(mut self) -> Result<Vec<(HourKey, Hour)>, BillError> {
        let mut shares = Vec::new();
        let Some(period) = self.period else { return Ok(shares) };
        let zone = self.zone.clone();
        for (hour, slice) in hours_of(period, &zone) {
            let busy = self.hours.remove(&hour).unwrap_or_default();
            let all = self.accrued(hour, slice.to()) - self.accrued(hour, slice.from());
            let whole = microseconds(slice.from(), slice.to());
            let used = (all * busy.microseconds()).checked_div(whole).unwrap_or_default();
            for (key, share) in shared_out(used, busy.weights) {
                let key = HourKey { hour: slice.from(), ..key };
                shares.push(self.share(key, USED, share)?);
            }
            let (key, mut idle) = self.share(self.idle_key(slice.from()), IDLE, all - used)?;
            idle.sums =
                Sums { cost: idle.sums.cost, list_cost: idle.sums.list_cost, ..Sums::nothing() };
            shares.push((key, idle));
        }
        Ok(shares)
    }

    /// Billionths of a GPU-hour from the start of `hour` up to `at`. Only this function rounds, so
    /// two parts of an hour add up to the whole hour.
    fn accrued(&self, hour: Timestamp, at: Timestamp) -> u128 {
        let all = u128::from(self.price.count) * SHARES;
        (all * microseconds(hour, at)).checked_div(HOUR_MICROSECONDS).unwrap_or_default()
    }

    fn share(&self, key: HourKey, meter: &str, share: u128) -> Result<(HourKey, Hour), BillError> {
        let overflow = || BillError::Overflow { tenant: key.tenant.clone() };
        let mantissa = i128::try_from(share).map_err(|_| overflow())?;
        let quantity = Decimal::try_from_i128_with_scale(mantissa, SHARE_PLACES);
        let quantity = quantity.map_err(|_| overflow())?.normalize();
        let unit_price = self.price.hourly.amount.normalize();
        let cost = exact_product(quantity, unit_price).ok_or_else(overflow)?;
        let line = LineKey {
            meter: meter.to_owned(),
            model: None,
            unit: UNIT.to_owned(),
            unit_price,
            list_unit_price: unit_price,
            price_id: self.price.price_id(&self.upstream),
            source: Source::Counted,
        };
        let sums = Sums { cost: Some(cost), list_cost: Some(cost), ..Sums::default() };
        let lines = BTreeMap::from([(line, quantity)]);
        let currency = Some(self.price.hourly.currency.to_string());
        Ok((HourKey { currency, ..key }, Hour { sums, lines }))
    }

    /// The owner of idle time. It is not a tenant: names of tenants have no slash.
    fn idle_key(&self, hour: Timestamp) -> HourKey {
        HourKey {
            hour,
            tenant: format!("idle/{}", self.upstream),
            model: None,
            provider: self.provider.clone(),
            upstream: self.upstream.clone(),
            operation: "idle".to_owned(),
            route: "idle".to_owned(),
            key_id: None,
            labels: BTreeMap::new(),
            currency: None,
            correction: false,
            late: false,
            dimensions: BTreeMap::new(),
        }
    }
}

impl BusyHour {
    /// Adds a request that ran from `from` to `to`, in microseconds since 1970.
    fn run(&mut self, mut from: i64, mut to: i64) {
        while let Some((&start, &end)) = self.spans.range(..=to).next_back() {
            if end < from {
                break;
            }
            self.spans.remove(&start);
            (from, to) = (from.min(start), to.max(end));
        }
        self.spans.insert(from, to);
    }

    /// How long at least one request ran.
    fn microseconds(&self) -> u128 {
        self.spans.iter().map(|(from, to)| u128::from(to.abs_diff(*from))).sum()
    }
}

/// First instant of each hour that overlaps `period`, and the part of the hour inside the period.
fn hours_of(period: Period, zone: &Zone) -> impl Iterator<Item = (Timestamp, Period)> {
    let next = |hour: &Timestamp| zone.next(Unit::Hour, *hour);
    let first = zone.begun(Unit::Hour, period.from());
    std::iter::successors(Some(first), next).map_while(move |hour| {
        let end = next(&hour)?.min(period.to());
        Some((hour, Period::new(hour.max(period.from()), end).ok()?))
    })
}

/// Splits `whole` by the weights. What clients say of requests splits the parts again, so that it
/// changes no sum of a tenant.
fn shared_out(whole: u128, weights: BTreeMap<HourKey, Weight>) -> Vec<(HourKey, u128)> {
    let mut groups: BTreeMap<HourKey, Vec<(HourKey, Weight)>> = BTreeMap::new();
    for (key, weight) in weights {
        let group = HourKey { dimensions: BTreeMap::new(), ..key.clone() };
        groups.entry(group).or_default().push((key, weight));
    }
    let weighed = groups.into_values().map(|parts| {
        let mut all = Weight::default();
        for (_, weight) in &parts {
            all.tokens = all.tokens.saturating_add(weight.tokens);
            all.time += weight.time;
        }
        (parts, all)
    });
    let groups = in_proportion(whole, weighed.collect());
    groups.into_iter().flat_map(|(parts, part)| in_proportion(part, parts)).collect()
}

/// Splits `whole` into whole numbers in proportion to the weights. The parts add up to `whole`.
/// Rounding down leaves a rest, which goes to the parts that lost most by rounding.
fn in_proportion<K>(whole: u128, weights: Vec<(K, Weight)>) -> Vec<(K, u128)> {
    let by_time = weights.iter().all(|(_, weight)| weight.tokens == 0);
    let of = |weight: &Weight| if by_time { weight.time } else { weight.tokens };
    // The sum of the weights times the whole must fit. The bits that are cut off are far below one
    // unit.
    let sum = weights.iter().map(|(_, weight)| of(weight)).fold(0, u128::saturating_add);
    let excess = (u128::BITS - sum.leading_zeros()).saturating_sub(u64::BITS - 1);
    let sum: u128 = weights.iter().map(|(_, weight)| of(weight) >> excess).sum();
    let mut parts: Vec<_> = weights
        .into_iter()
        .map(|(key, weight)| {
            let product = whole * (of(&weight) >> excess);
            let part = product.checked_div(sum).unwrap_or_default();
            (key, part, product.checked_rem(sum).unwrap_or_default())
        })
        .collect();
    let given: u128 = parts.iter().map(|(_, part, _)| part).sum();
    taximeter_collections::sort_by_key(&mut parts, |(_, _, lost)| Reverse(*lost));
    let left = usize::try_from(whole.saturating_sub(given)).unwrap_or(usize::MAX);
    for (_, part, _) in parts.iter_mut().take(left) {
        *part += 1;
    }
    parts.into_iter().map(|(key, part, _)| (key, part)).collect()
}

fn microseconds(from: Timestamp, to: Timestamp) -> u128 {
    u128::try_from(i128::from(to.as_microsecond()) - i128::from(from.as_microsecond()))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests;
