//! Questions about samples: one quantity over some time, in steps.

use std::collections::BTreeMap;

use jiff::Timestamp;
use taximeter_columnar::{ReadError, RowFilter};
use taximeter_fleet::{At, Field, Grid, SampleKey, Statistic, WHO, shares, value};

use super::file::Samples;
use super::folder::Span;

/// Most steps of an answer.
pub const STEPS_MAX: i64 = 5_000;
/// Most points of an answer.
pub const POINTS_MAX: usize = 1_000_000;

/// What is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query {
    /// The quantity.
    pub quantity: String,
    /// One of its statistics; `None` is all.
    pub statistic: Option<Statistic>,
    /// Only this source.
    pub target: Option<String>,
    /// Only these, of [`WHO`].
    pub who: Vec<(Field, String)>,
    /// The first second.
    pub from: i64,
    /// The first second that is not asked for.
    pub to: i64,
    /// Seconds from one point to the next.
    pub step: i64,
    /// Most series of the answer.
    pub series_max: usize,
}

/// What was found.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Found {
    /// The series, in the order of their keys.
    pub series: Vec<FoundSeries>,
    /// Whether there are more.
    pub more: bool,
}

/// A series over time.
#[derive(Debug, Clone, PartialEq)]
pub struct FoundSeries {
    /// Which one.
    pub key: SampleKey,
    /// The first second of each step, and the value in the quantity's unit. Steps without a sample are not
    /// there.
    pub points: Vec<(i64, f64)>,
}

impl Query {
    /// The grid that has enough samples, and no more than are needed.
    #[must_use]
    pub fn grid(&self) -> Grid {
        let fits = |grid: &Grid| grid.seconds() <= self.step;
        Grid::ALL.into_iter().rev().find(fits).unwrap_or(Grid::Second)
    }

    /// A step for so much time: about 300 of them.
    #[must_use]
    pub fn step_for(seconds: i64) -> i64 {
        const STEPS: [i64; 10] = [1, 5, 15, 60, 300, 900, 3_600, 14_400, 43_200, 86_400];
        STEPS.into_iter().find(|step| seconds / step <= 300).unwrap_or(604_800)
    }

    /// Whether a file of this time may have any of it. A file may have samples of all its day.
    pub(super) const fn may_have(&self, begin: i64) -> bool {
        let day = Span::Day.floor(begin);
        day < self.to && self.from < day + Span::Day.seconds() + Grid::Hour.seconds()
    }

    fn takes(&self, key: &SampleKey) -> bool {
        let is = |(field, wanted): &(Field, String)| {
            let place = WHO.iter().position(|it| it == field);
            let has = place.and_then(|place| key.who.get(place)?.as_ref());
            has == Some(wanted)
        };
        self.quantity == key.quantity
            && self.statistic.is_none_or(|statistic| statistic == key.statistic)
            && self.target.as_ref().is_none_or(|target| *target == key.target)
            && self.who.iter().all(is)
    }

    /// What a file has of what is asked for.
    pub(super) fn runs(&self, file: &Samples) -> Result<RunsOfFile, ReadError> {
        let mut runs = file.runs(self.filter());
        let mut found = Vec::new();
        while let Some((key, samples)) = runs.next_run()? {
            if self.takes(&key) {
                found.push((key, samples));
            }
        }
        Ok(found)
    }

    fn filter(&self) -> RowFilter {
        let time = |second| Timestamp::from_second(second).ok();
        RowFilter { tenant: Some(self.quantity.clone()), from: time(self.from), to: time(self.to) }
    }
}

/// The parts of series that a file has.
pub(super) type RunsOfFile = Vec<(SampleKey, Vec<At>)>;

/// A step: its first second, what its values add up to or the one that stands for them, and how many.
type Step = (i64, i128, u32);

/// The answer while it is made, file by file.
pub(super) struct Answer<'a> {
    query: &'a Query,
    series: BTreeMap<SampleKey, Vec<Step>>,
    points: usize,
    more: bool,
}

impl<'a> Answer<'a> {
    pub(super) const fn to(query: &'a Query) -> Self {
        Self { query, series: BTreeMap::new(), points: 0, more: false }
    }

    /// Adds a part of a series.
    pub(super) fn add(&mut self, key: SampleKey, samples: &[At]) {
        let is_full = self.series.len() >= self.query.series_max;
        if (is_full && !self.series.contains_key(&key)) || self.points >= POINTS_MAX {
            self.more = true;
            return;
        }
        let (step, statistic) = (self.query.step, key.statistic);
        let steps = self.series.entry(key).or_default();
        let before = steps.len();
        let mut put = |(at, value, count): Step| match steps.last_mut() {
            Some(last) if last.0 == at => {
                last.1 = together(statistic, last.1, value);
                last.2 = last.2.saturating_add(count);
            }
            _ => steps.push((at, value, count)),
        };
        if statistic == Statistic::Mean {
            shares(step, samples).into_iter().for_each(put);
        } else {
            let at = |second: i64| second - second.rem_euclid(step);
            samples.iter().for_each(|(second, value)| put((at(*second), i128::from(*value), 1)));
        }
        self.points += steps.len() - before;
    }

    pub(super) fn finish(self) -> Found {
        let series = self.series.into_iter().map(|(key, mut steps)| {
            settle(key.statistic, &mut steps);
            let points = steps.iter().map(|step| (step.0, point(&key, step))).collect();
            FoundSeries { key, points }
        });
        Found { series: series.collect(), more: self.more }
    }
}

/// Files come in the order of their times, but for those that were late.
fn settle(statistic: Statistic, steps: &mut Vec<Step>) {
    if steps.is_sorted_by(|a, b| a.0 < b.0) {
        return;
    }
    steps.sort_by_key(|step| step.0);
    steps.dedup_by(|next, kept| {
        let is_same = next.0 == kept.0;
        if is_same {
            kept.1 = together(statistic, kept.1, next.1);
            kept.2 = kept.2.saturating_add(next.2);
        }
        is_same
    });
}

/// What stands for two. A mean adds up until all are there.
fn together(statistic: Statistic, before: i128, value: i128) -> i128 {
    match statistic {
        Statistic::Min => before.min(value),
        // Of a percentile of parts the largest is told: the true one is not above it.
        Statistic::Max | Statistic::P50 | Statistic::P95 => before.max(value),
        Statistic::Last => value,
        Statistic::Mean | Statistic::Increase | Statistic::Sum | Statistic::Count => before + value,
    }
}

fn point(key: &SampleKey, (_, all, count): &Step) -> f64 {
    let whole = i64::try_from(*all).unwrap_or(i64::MAX);
    let all = value(whole, key.scale);
    if key.statistic == Statistic::Mean { all / f64::from(*count) } else { all }
}
