//! The quantities of one source over time: from one scrape to the next.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use foldhash::fast::RandomState;

use crate::histogram::{Counted, Distribution};
use crate::identity::Identity;
use crate::period::Period;
use crate::pool::{Pool, What};
use crate::quantity::Instrument;
use crate::reading::{Measured, Reading, Unknown, Value};

/// Most series of one source. Those behind are left out, and counted.
pub const SERIES_MAX: usize = 8_000;
/// Longest text of one label that is kept, in bytes.
const TEXT_BYTES_MAX: usize = 256;
/// Most attributes of a series.
const ATTRIBUTES_MAX: usize = 16;

/// One quantity of one subject, as it is now.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// What it is.
    pub what: Arc<What>,
    /// Whom it is about.
    pub who: Arc<Identity>,
    value: Kept,
    /// Of a counter: its value when the rate was last made.
    base: f64,
    /// Per second; NaN while it is not known.
    rate: f32,
    /// How old the program says that the value is, in seconds; NaN where it says nothing.
    stamped: f32,
    /// How often its program has begun anew.
    resets: u32,
}

/// A value. A thousand sources have many numbers and few histograms.
#[derive(Debug, Clone, PartialEq)]
enum Kept {
    Number(f64),
    Histogram(Box<(Distribution, Option<Arc<Counted>>)>),
}

impl Series {
    /// Its value.
    #[must_use]
    pub fn value(&self) -> Value {
        match &self.value {
            Kept::Number(number) => Value::Number(*number),
            Kept::Histogram(of) => Value::Histogram(of.0),
        }
    }

    /// The buckets of a histogram.
    pub(crate) fn buckets(&self) -> Option<&Arc<Counted>> {
        match &self.value {
            Kept::Number(_) => None,
            Kept::Histogram(of) => of.1.as_ref(),
        }
    }

    /// By how much a counter grows, per second. `None` for what is none, and until that is known.
    #[must_use]
    pub fn rate(&self) -> Option<f64> {
        (!self.rate.is_nan()).then(|| f64::from(self.rate))
    }

    /// How often its program has begun to count anew since it is followed.
    #[must_use]
    pub const fn resets(&self) -> u32 {
        self.resets
    }

    /// How old its program says that the value is, in seconds. Below zero it is from the future.
    #[must_use]
    pub fn stamped_age(&self) -> Option<f64> {
        (!self.stamped.is_nan()).then(|| f64::from(self.stamped))
    }

    fn first(measured: Measured, pool: &mut Pool) -> Self {
        let (value, stamped) = kept(&measured, None, |bounds| pool.bounds(bounds));
        let base = count(&value).unwrap_or_default();
        let who = measured.identity.clone();
        let what = pool.what(measured);
        Self { what, who, value, base, rate: f32::NAN, stamped, resets: 0 }
    }

    /// The same with its next value, `seconds` after its base.
    fn next(&self, measured: &Measured, seconds: f64, may_be_new: bool) -> Self {
        let (value, stamped) = kept(measured, self.buckets(), Arc::new);
        let mut next = Self { value, stamped, ..self.clone() };
        let (Some(before), Some(now)) = (count(&self.value), count(&next.value)) else {
            return next;
        };
        let grows = self.what.quantity.instrument != Instrument::Gauge;
        if grows && now < before {
            next.resets = self.resets.saturating_add(1);
            // It counts from 0 again. What it counted before that, and nobody saw, is not known.
            next.base = 0.0;
        }
        if may_be_new && self.what.quantity.instrument == Instrument::Counter && seconds > 0.0 {
            let rate = (now - next.base).max(0.0) / seconds;
            #[expect(clippy::cast_possible_truncation, reason = "a rate is for people")]
            let rate = rate as f32;
            next.rate = rate;
        }
        if may_be_new {
            next.base = now;
        }
        next
    }
}

/// What is kept of a value, and its age.
fn kept(
    measured: &Measured,
    before: Option<&Arc<Counted>>,
    bounds: impl FnOnce(Vec<f64>) -> Arc<Vec<f64>>,
) -> (Kept, f32) {
    let value = match measured.value {
        Value::Number(number) => Kept::Number(number),
        Value::Histogram(of) => {
            let buckets = measured.buckets.as_ref();
            let counted = buckets.map(|buckets| Counted::of(buckets, before, bounds));
            Kept::Histogram(Box::new((of, counted)))
        }
    };
    #[expect(clippy::cast_possible_truncation, reason = "an age is for people")]
    let stamped = measured.age.map_or(f32::NAN, |age| age.as_secs_f64() as f32);
    (value, stamped)
}

/// What grows of a value.
fn count(value: &Kept) -> Option<f64> {
    match value {
        Kept::Number(number) => Some(*number),
        Kept::Histogram(of) => of.0.count,
    }
}

/// The quantities of a source after a scrape.
#[derive(Debug, Clone, Default)]
pub struct Quantities {
    /// What is known.
    pub series: Vec<Series>,
    /// What is not, and why.
    pub unknown: Arc<Vec<Unknown>>,
    /// When its values came, and how often they are new.
    pub period: Period,
    /// What happened to its series since it is followed.
    pub counts: Counts,
}

/// What happened to the series of a source since it is followed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Counters that began anew.
    pub resets: u64,
    /// Series that came, without those of the first scrape.
    pub appeared: u64,
    /// Series that were there and are no longer.
    pub vanished: u64,
    /// Series of the last scrape that are left out: there are too many, or their labels are too long.
    pub left_out: u64,
}

impl Quantities {
    /// What is known after another scrape, which came `now`.
    #[must_use]
    pub fn after(&self, reading: Reading, now: Instant, pool: &mut Pool) -> Self {
        let seconds = self.period.age(now).unwrap_or(Duration::ZERO).as_secs_f64();
        let all = reading.measured.len();
        let mut measured: Vec<_> = reading.measured.into_iter().filter(is_short).collect();
        measured.truncate(SERIES_MAX);
        let left_out = (all - measured.len()) as u64;
        let before = self.matches(&measured);
        let changed = self.has_changed(&measured, &before);
        let mut period = self.period.clone();
        let may_be_new = if reading.is_live {
            period.sample_live(now);
            true
        } else {
            period.sample(now, changed && !self.series.is_empty())
        };
        let mut counts = Counts { left_out, ..self.counts };
        let mut series = Vec::with_capacity(measured.len());
        for (one, before) in measured.into_iter().zip(&before) {
            let before = before.and_then(|at| self.series.get(at));
            let next = match before {
                Some(before) => before.next(&one, seconds, may_be_new),
                None => Series::first(one, pool),
            };
            counts.resets += u64::from(next.resets - before.map_or(next.resets, Series::resets));
            series.push(next);
        }
        let stayed = before.iter().flatten().count();
        if self.period.age(now).is_some() {
            counts.appeared += (series.len() - stayed) as u64;
            counts.vanished += self.series.len().saturating_sub(stayed) as u64;
        }
        let unknown = match *self.unknown == reading.unknown {
            true => self.unknown.clone(),
            false => pool.unknown(reading.unknown),
        };
        Self { series, unknown, period, counts }
    }

    /// Where each quantity of a scrape was before. A program prints in the same order each time.
    fn matches(&self, measured: &[Measured]) -> Vec<Option<usize>> {
        let is_it = |series: &Series, one: &Measured| {
            series.what.is_of(one) && *series.who == *one.identity
        };
        let mut others: Option<HashMap<Key<'_>, usize, RandomState>> = None;
        let find = |(at, one): (usize, &Measured)| {
            if self.series.get(at).is_some_and(|series| is_it(series, one)) {
                return Some(at);
            }
            let others = others.get_or_insert_with(|| {
                let keyed = |(at, series)| (Key::of_series(series), at);
                self.series.iter().enumerate().map(keyed).collect()
            });
            others.get(&Key::of(one)).copied()
        };
        // Of two that are the same in all that is kept, the first has been there before.
        let mut taken = vec![false; self.series.len()];
        let mut take = |at: usize| {
            let is_free = taken.get_mut(at).is_some_and(|taken| !std::mem::replace(taken, true));
            is_free.then_some(at)
        };
        let found: Vec<_> = measured.iter().enumerate().map(find).collect();
        found.into_iter().map(|at| at.and_then(&mut take)).collect()
    }

    fn has_changed(&self, measured: &[Measured], before: &[Option<usize>]) -> bool {
        let differs = |(one, before): (&Measured, &Option<usize>)| {
            let before = before.and_then(|at| self.series.get(at));
            before.is_none_or(|before| before.value() != one.value)
        };
        measured.len() != self.series.len() || measured.iter().zip(before).any(differs)
    }
}

/// Whether the texts of a series are of lengths that are kept.
fn is_short(measured: &Measured) -> bool {
    let texts = measured.attributes.iter().flat_map(|(name, value)| [name.as_str(), value]);
    let texts = texts.chain(measured.identity.iter().map(|(_, value)| value));
    measured.attributes.len() <= ATTRIBUTES_MAX
        && texts.chain([measured.from.as_str()]).all(|text| text.len() <= TEXT_BYTES_MAX)
}

/// What tells a series from all others of its source.
#[derive(PartialEq, Eq, Hash)]
struct Key<'a>(&'a str, &'a str, &'a [(String, String)], &'a Identity, &'a str);

impl<'a> Key<'a> {
    fn of(one: &'a Measured) -> Self {
        Self(one.quantity.name, one.program, &one.attributes, &one.identity, &one.from)
    }

    fn of_series(series: &'a Series) -> Self {
        let What { quantity, attributes, program, from, .. } = &*series.what;
        Self(quantity.name, program, attributes, &series.who, from)
    }
}

#[cfg(test)]
mod tests;
