//! One series while it is followed.

use std::sync::Arc;

use crate::histogram::{Buckets, Counted, Distribution, Lately, Percentile};
use crate::identity::Identity;
use crate::memory::grid::Grid;
use crate::memory::roll::At;
use crate::memory::scale::{scale_of, whole};
use crate::memory::statistic::Statistic;
use crate::pool::What;
use crate::reading::Value;
use crate::series::Series;

/// A look at a source.
pub(super) struct Now {
    pub second: i64,
    /// Whether what counters grew by belongs to now.
    pub is_known: bool,
    /// The first second of which something is known.
    pub since: i64,
}

/// Percentiles of a time that is over.
pub(super) type Over = Vec<(Grid, Statistic, At)>;

/// A series.
#[derive(Debug)]
pub(super) struct Line {
    pub what: Arc<What>,
    pub who: Arc<Identity>,
    base: Base,
}

/// What the next value of a series is compared with.
#[derive(Debug)]
enum Base {
    Nothing,
    Counter(f64),
    Histogram(Box<Observed>),
}

/// A histogram as it was, and its observations in the minute and the hour since.
#[derive(Debug)]
struct Observed {
    count: Option<f64>,
    sum: Option<f64>,
    buckets: Arc<Counted>,
    lately: [(Grid, i64, Lately); 2],
    over: Over,
}

impl Line {
    pub(super) fn of(series: &Series) -> Self {
        Self { what: series.what.clone(), who: series.who.clone(), base: Base::Nothing }
    }

    pub(super) fn is_of(&self, series: &Series) -> bool {
        Arc::ptr_eq(&self.what, &series.what)
            && (Arc::ptr_eq(&self.who, &series.who) || self.who == series.who)
    }

    /// Nothing is known of it for a while.
    pub(super) fn lose_base(&mut self) {
        match &mut self.base {
            // What it was before counts for the time before.
            Base::Histogram(of) => (of.count, of.sum, of.buckets) = (None, None, Arc::default()),
            base => *base = Base::Nothing,
        }
    }

    /// Takes the next value. What is kept of it: `None` is a value that cannot be.
    pub(super) fn take(
        &mut self,
        series: &Series,
        now: &Now,
        made: &mut Vec<(Statistic, Option<i64>)>,
    ) {
        let scale = scale_of(self.what.quantity);
        match (series.value(), Statistic::of(self.what.quantity)) {
            (Value::Number(value), Some(Statistic::Increase)) => {
                let base = std::mem::replace(&mut self.base, Base::Counter(value));
                if let (Base::Counter(before), true) = (base, now.is_known) {
                    made.push((Statistic::Increase, growth(value, before, scale)));
                }
            }
            (Value::Number(value), Some(statistic)) => made.push((statistic, whole(value, scale))),
            (Value::Histogram(of), _) => {
                let buckets = series.buckets().cloned().unwrap_or_default();
                if !matches!(self.base, Base::Histogram(_)) {
                    self.base = Base::Histogram(Box::new(Observed::new()));
                }
                if let Base::Histogram(observed) = &mut self.base {
                    observed.take(&of, buckets, (now, scale), made);
                }
            }
            (Value::Number(_), None) => {}
        }
    }

    /// Ends the minutes and hours that are over at `until`. Of an hour that began before `since`, not all
    /// is known.
    pub(super) fn end(&mut self, until: i64, since: i64) {
        if let Base::Histogram(of) = &mut self.base {
            of.end(until, since, scale_of(self.what.quantity));
        }
    }

    /// What is over.
    pub(super) fn over(&mut self) -> Over {
        match &mut self.base {
            Base::Histogram(of) => std::mem::take(&mut of.over),
            Base::Nothing | Base::Counter(_) => Over::new(),
        }
    }
}

/// By how much a counter grew. One that is smaller than before counts from 0 again.
fn growth(now: f64, before: f64, scale: i32) -> Option<i64> {
    let whole_now = whole(now, scale)?;
    Some(if now < before { whole_now } else { whole_now - whole(before, scale)? })
}

impl Observed {
    fn new() -> Self {
        let lately = [Grid::Minute, Grid::Hour].map(|grid| (grid, i64::MIN, Lately::default()));
        Self { count: None, sum: None, buckets: Arc::default(), lately, over: Over::new() }
    }

    fn take(
        &mut self,
        of: &Distribution,
        buckets: Arc<Counted>,
        (now, scale): (&Now, i32),
        made: &mut Vec<(Statistic, Option<i64>)>,
    ) {
        let (count, sum) = (self.count, self.sum);
        let before = std::mem::replace(&mut self.buckets, buckets);
        (self.count, self.sum) = (of.count, of.sum);
        if !now.is_known {
            return;
        }
        // The sum begins anew when the count does.
        let is_new = of.count.zip(count).is_some_and(|(now, before)| now < before);
        if let Some((now, before)) = of.count.zip(count) {
            made.push((Statistic::Count, growth(now, before, 0)));
        }
        if let Some((now, before)) = of.sum.zip(sum) {
            let before = if is_new { 0.0 } else { before };
            made.push((Statistic::Sum, growth(now, before, scale)));
        }
        let Some(seen) = self.buckets.since(&before) else { return };
        let percentiles = percentiles(&seen, scale);
        made.extend(percentiles.map(|(statistic, value)| (statistic, Some(value))));
        self.end(now.second, now.since, scale);
        for (grid, begin, buckets) in &mut self.lately {
            let at = grid.floor(now.second);
            // What comes late counts for the time that is open.
            *begin = (*begin).max(at);
            buckets.add(&seen);
        }
    }

    /// Ends what is over at `until`.
    fn end(&mut self, until: i64, since: i64, scale: i32) {
        for (grid, begin, buckets) in &mut self.lately {
            if *begin == i64::MIN || *begin + grid.seconds() > until {
                continue;
            }
            let at = std::mem::replace(begin, i64::MIN);
            let seen = buckets.take(&self.buckets);
            if *grid == Grid::Hour && at < since {
                continue;
            }
            let made = percentiles(&seen, scale);
            self.over.extend(made.map(|(statistic, value)| (*grid, statistic, (at, value))));
        }
    }
}

/// The percentiles of observations, as far as their buckets tell them.
fn percentiles(seen: &Buckets, scale: i32) -> impl Iterator<Item = (Statistic, i64)> {
    let of = seen.distribution(1.0);
    [(Statistic::P50, of.p50), (Statistic::P95, of.p95)].into_iter().filter_map(
        move |(statistic, percentile)| match percentile {
            Percentile::About(value) => Some((statistic, whole(value, scale)?)),
            Percentile::Above(_) | Percentile::Unknown(_) => None,
        },
    )
}
