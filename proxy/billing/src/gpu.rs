//! GPU-hours, shared out over the requests that ran in them.
//!
//! Of each hour, the time in which any request ran is shared out by weighted tokens; the rest is
//! idle and nobody's. What is shared out is time, in billionths of a GPU-hour, and each share costs
//! its time × the price: so all shares and the idle rest cost what the GPUs cost, to the last
//! digit.

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

/// Meter of what requests used.
const USED: &str = "gpu";
/// Meter of what nobody used.
pub(crate) const IDLE: &str = "gpu_idle";
/// What both count.
const UNIT: &str = "gpu_hours";
/// Decimal places of a share, in GPU-hours.
const SHARE_PLACES: u32 = 9;
/// Shares in one GPU-hour.
const SHARES: u128 = 10_u128.pow(SHARE_PLACES);
const HOUR_MICROSECONDS: u128 = 3_600_000_000;

/// When a request ran, and what it used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    /// Admission.
    pub started_at: Timestamp,
    /// End; not before the start.
    pub ended_at: Timestamp,
    /// All input; `None` is unknown.
    pub input_tokens: Option<u64>,
    /// All output; `None` is unknown.
    pub output_tokens: Option<u64>,
}

/// What the GPUs of one upstream cost in a period, and who shares it.
///
/// Requests that were admitted before the period and ran into it share its hours too; what of a
/// request's tokens belongs to which hour is decided by how long it ran in each. Tokens that are
/// unknown weigh nothing, so a request of which nothing is known shares only the hours in which
/// nothing is known of any: those are shared out by time.
#[derive(Debug)]
pub struct GpuShares {
    upstream: String,
    provider: String,
    price: GpuPrice,
    /// The part of the period in which they cost something.
    period: Option<Period>,
    zone: Zone,
    hours: BTreeMap<Timestamp, Busy>,
}

/// One hour, or the part of it that is in the period.
#[derive(Debug, Default)]
struct Busy {
    /// Start → end of the times in which any request ran, in microseconds since 1970; they do not
    /// touch.
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
    /// The GPUs of `upstream` in `period`, of which nobody has used anything yet. Hours are those of
    /// `zone`, so that a share belongs to one of its hours, days and months.
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

    /// What is left of an hour of requests that owe a share: their number and their tokens, and
    /// nothing that they would owe by the token. `None` for other requests.
    #[must_use]
    pub fn instead_of(&self, key: &HourKey, hour: &Hour) -> Option<(HourKey, Hour)> {
        if key.upstream != self.upstream || !self.price.covers(key.hour) {
            return None;
        }
        let sums =
            Sums { cost: None, list_cost: None, unknown_cost_requests: 0, ..hour.sums.clone() };
        let key = HourKey { currency: None, ..key.clone() };
        Some((key, Hour { sums, lines: BTreeMap::new() }))
    }

    /// Adds a request, in any order; one of another upstream, and what of it is outside the period,
    /// is left out.
    pub fn add(&mut self, key: &HourKey, run: &Run) {
        let Some(period) = self.period.filter(|_| key.upstream == self.upstream) else { return };
        let weights = self.price.weights;
        let weigh = |tokens: Option<u64>, weight: u32| {
            u128::from(tokens.unwrap_or_default()) * u128::from(weight)
        };
        let tokens =
            weigh(run.input_tokens, weights.input) + weigh(run.output_tokens, weights.output);
        // A request without a length, or one that a clock says to have ended before it began, is in the
        // hour of its start.
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

    /// The shares of all requests and the idle rest of each hour, by hour.
    ///
    /// # Errors
    /// `Overflow` when an amount cannot be kept exactly.
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
            let (key, mut idle) = self.share(self.nobody(slice.from()), IDLE, all - used)?;
            idle.sums =
                Sums { cost: idle.sums.cost, list_cost: idle.sums.list_cost, ..Sums::nothing() };
            shares.push((key, idle));
        }
        Ok(shares)
    }

    /// Billionths of a GPU-hour from the start of `hour` up to `at`. Rounded here and nowhere else:
    /// two parts of an hour add up to the whole.
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

    /// Who has the idle time: no tenant, whose name never has a slash.
    fn nobody(&self, hour: Timestamp) -> HourKey {
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
        }
    }
}

impl Busy {
    /// A request ran from `from` to `to`, in microseconds since 1970.
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

    /// For how long any request ran.
    fn microseconds(&self) -> u128 {
        self.spans.iter().map(|(from, to)| u128::from(to.abs_diff(*from))).sum()
    }
}

/// First instant of each hour that `period` touches, with the part of it that is inside.
fn hours_of(period: Period, zone: &Zone) -> impl Iterator<Item = (Timestamp, Period)> {
    let next = |hour: &Timestamp| zone.next(Unit::Hour, *hour);
    let first = zone.begun(Unit::Hour, period.from());
    std::iter::successors(Some(first), next).map_while(move |hour| {
        let end = next(&hour)?.min(period.to());
        Some((hour, Period::new(hour.max(period.from()), end).ok()?))
    })
}

/// `whole` in parts that are as large as their weights, to one unit, and that add up to it: what
/// rounding down leaves goes to those that lost most by it.
fn shared_out(whole: u128, weights: BTreeMap<HourKey, Weight>) -> Vec<(HourKey, u128)> {
    let by_time = weights.values().all(|weight| weight.tokens == 0);
    let of = |weight: &Weight| if by_time { weight.time } else { weight.tokens };
    // Their sum times the whole must fit; what is cut off is far below one unit.
    let sum = weights.values().map(of).fold(0, u128::saturating_add);
    let excess = (u128::BITS - sum.leading_zeros()).saturating_sub(u64::BITS - 1);
    let sum: u128 = weights.values().map(|weight| of(weight) >> excess).sum();
    let mut parts: Vec<_> = weights
        .into_iter()
        .map(|(key, weight)| {
            let product = whole * (of(&weight) >> excess);
            let part = product.checked_div(sum).unwrap_or_default();
            (key, part, product.checked_rem(sum).unwrap_or_default())
        })
        .collect();
    let given: u128 = parts.iter().map(|(_, part, _)| part).sum();
    parts.sort_by_key(|(_, _, lost)| Reverse(*lost));
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
