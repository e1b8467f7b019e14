//! What quantities were over time: samples in, curves out.

use std::collections::{BTreeMap, BTreeSet};

use taximeter_collections::Gather as _;
use taximeter_fleet::{Field, Statistic};
use taximeter_store::memory::{FoundSeries, Memory, MemoryError, Query};

use super::figures::Form;

/// Most series that are read for a chart.
const SERIES_MAX: usize = 2_000;
/// Most curves of a chart: each has a colour of its own.
pub(super) const CURVES_MAX: usize = 6;
/// Between two values of a counter that are farther apart, nobody asked: seconds.
const ASKED_WITHIN: f64 = 60.0;

/// Labels that tell something apart, and their values.
type Labels = &'static [(&'static str, &'static str)];

/// What a chart shows.
pub(crate) struct Measure {
    pub(crate) title: &'static str,
    pub(super) quantity: &'static str,
    /// Labels that its series have.
    pub(super) having: Labels,
    /// Labels that they do not have.
    pub(super) without: Labels,
    pub(super) how: How,
    pub(super) form: Form,
}

/// What is shown of a quantity.
#[derive(Debug, Clone, Copy)]
pub(super) enum How {
    /// What it is.
    Level,
    /// By how much it grows per second.
    Rate,
    /// By how much it grows, as a part of what this one grows by.
    PartOf(&'static str),
    /// The 95th percentile of its observations.
    P95,
}

/// For which time, and of whom.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    /// The first second.
    pub(crate) from: i64,
    /// The first second that is not asked for.
    pub(crate) to: i64,
    /// Seconds from one point to the next.
    pub(crate) step: i64,
    /// Only this source.
    pub(crate) source: Option<String>,
    /// Only what is about these.
    pub(crate) who: Vec<(Field, String)>,
}

/// A quantity of somebody over time.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Curve {
    /// What tells it apart from the others of its chart.
    pub(super) name: String,
    /// Seconds since the first one asked for, and the value.
    pub(super) points: Vec<(f64, f64)>,
    /// The same of the time before, if that is asked for.
    pub(super) before: Vec<(f64, f64)>,
}

/// The curves of a chart.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Curves {
    /// Those with the highest values, the highest first.
    pub(super) curves: Vec<Curve>,
    /// How many others there are.
    pub(super) others: usize,
    /// Whom all of them are about.
    pub(super) about: BTreeSet<String>,
    /// Seconds from one point to the next, and from one to the next of the time before.
    pub(super) steps: [f64; 2],
}

/// Who a curve is about: its labels, with the source.
type Key = BTreeMap<String, String>;
/// Points of each, as they are kept.
type Kept = BTreeMap<Key, Vec<(i64, f64)>>;
/// The same as they are shown.
type Points = BTreeMap<Key, Vec<(f64, f64)>>;

impl Curves {
    /// Reads a measure for all that is asked, and that of so many seconds before.
    ///
    /// Errors: the samples cannot be read.
    pub(crate) fn of(
        memory: &Memory,
        measure: &Measure,
        asked: &[Asked],
        before: Option<i64>,
    ) -> Result<Self, MemoryError> {
        let (mut now, mut then) = (Points::new(), Points::new());
        let mut steps = [0.0; 2];
        for asked in asked {
            steps = [seconds(asked.step); 2];
            now.extend(measure.read(memory, asked)?);
            if let Some(before) = before {
                let (from, to) = (asked.from - before, asked.to - before);
                // Samples of that time may be kept by the minute or by the hour only.
                let step = asked.step.max(memory.grid_since(from)?.seconds());
                steps[1] = seconds(step);
                then.extend(measure.read(memory, &Asked { from, to, step, ..asked.clone() })?);
            }
        }
        Ok(Self { steps, ..Self::together(now, then) })
    }

    /// Whether nothing was told.
    pub(crate) const fn is_empty(&self) -> bool {
        self.curves.is_empty()
    }

    /// Curves of now, and those of the same before.
    fn together(now: Points, mut then: Points) -> Self {
        let mut keyed: Vec<(Key, Curve)> = now
            .into_iter()
            .map(|(key, points)| {
                let before = then.remove(&key).unwrap_or_default();
                (key, Curve { name: String::new(), points, before })
            })
            .filter(|(_, curve)| !curve.points.is_empty() || !curve.before.is_empty())
            .collect();
        taximeter_collections::sort_by(&mut keyed, |(a, one), (b, other)| {
            other.peak().total_cmp(&one.peak()).then_with(|| a.cmp(b))
        });
        let about = keyed.iter().flat_map(|(key, _)| key.values().cloned()).gather();
        let others = keyed.len().saturating_sub(CURVES_MAX);
        keyed.truncate(CURVES_MAX);
        let names = names(keyed.iter().map(|(key, _)| key));
        let named = keyed.into_iter().zip(names);
        let curves = named.map(|((_, curve), name)| Curve { name, ..curve }).collect();
        Self { curves, others, about, ..Self::default() }
    }

    /// The largest value of all.
    pub(super) fn largest(&self) -> f64 {
        let values = self.curves.iter().flat_map(|curve| curve.points.iter().chain(&curve.before));
        values.fold(0.0, |largest, (_, value)| value.max(largest))
    }
}

impl Curve {
    /// The largest value; none is the smallest of all.
    pub(super) fn peak(&self) -> f64 {
        self.points.iter().fold(f64::NEG_INFINITY, |peak, (_, value)| value.max(peak))
    }
}

/// The mean of values over time.
pub(super) fn mean(points: &[(f64, f64)]) -> Option<f64> {
    let count = u32::try_from(points.len()).ok().filter(|count| *count > 0)?;
    let sum: f64 = points.iter().map(|(_, value)| value).sum();
    Some(sum / f64::from(count))
}

impl Measure {
    fn read(&self, memory: &Memory, asked: &Asked) -> Result<Points, MemoryError> {
        let step = seconds(asked.step);
        let (statistic, of) = match self.how {
            How::Level => (Statistic::Mean, None),
            How::Rate => (Statistic::Increase, None),
            How::PartOf(of) => (Statistic::Increase, Some(of)),
            How::P95 => (Statistic::P95, None),
        };
        let kept = self.kept(memory, self.quantity, statistic, asked)?;
        let whole = match of {
            Some(of) => self.kept(memory, of, statistic, asked)?,
            None => BTreeMap::new(),
        };
        let curve = |(key, points): (Key, Vec<(i64, f64)>)| {
            let at = |second: i64| seconds(second - asked.from);
            let points = match self.how {
                How::Level | How::P95 => {
                    points.into_iter().map(|(second, value)| (at(second), value)).collect()
                }
                How::Rate => rates(points.into_iter().map(|(at_s, it)| (at(at_s), it)), step),
                How::PartOf(_) => {
                    let whole = whole.get(&key)?;
                    let whole: BTreeMap<i64, f64> = whole.iter().copied().gather();
                    let part = |(second, part): (i64, f64)| {
                        let whole = whole.get(&second).filter(|whole| **whole > 0.0)?;
                        Some((at(second), part / whole))
                    };
                    points.into_iter().filter_map(part).collect()
                }
            };
            Some((key, points))
        };
        Ok(kept.into_iter().filter_map(curve).collect())
    }

    fn kept(
        &self,
        memory: &Memory,
        quantity: &str,
        statistic: Statistic,
        asked: &Asked,
    ) -> Result<Kept, MemoryError> {
        let found = memory.ask(&Query {
            quantity: quantity.to_owned(),
            statistic: Some(statistic),
            target: asked.source.clone(),
            who: asked.who.clone(),
            from: asked.from,
            to: asked.to,
            step: asked.step,
            series_max: SERIES_MAX,
        })?;
        let mut kept = Kept::new();
        for FoundSeries { key, points } in found.series {
            let mut labels: Key = serde_json::from_slice(key.labels.as_bytes()).unwrap_or_default();
            let is = |(name, value): &(&str, &str)| {
                labels.get(*name).is_some_and(|label| label == value)
            };
            if self.having.iter().all(is) && !self.without.iter().any(is) {
                labels.insert("source".to_owned(), key.target);
                // One series has several keys where its scale was changed.
                let all = kept.entry(labels).or_default();
                all.extend(points);
            }
        }
        for points in kept.values_mut().filter(|points| !points.is_sorted_by_key(|(at, _)| *at)) {
            taximeter_collections::sort_by_key(points, |(at, _)| *at);
        }
        Ok(kept)
    }
}

/// Seconds of a chart, which is at most some years long.
pub(crate) fn seconds(whole: i64) -> f64 {
    i32::try_from(whole).map_or(f64::INFINITY, f64::from)
}

/// By how much a counter grows per second. By the second, it is not known when a value grew that came some
/// seconds after the one before: so it grew all that time.
fn rates(points: impl Iterator<Item = (f64, f64)>, step: f64) -> Vec<(f64, f64)> {
    let mut before = None;
    let rate = |(at, grown): (f64, f64)| {
        let passed = match before.replace(at) {
            _ if step > 1.0 => Some(step),
            Some(before) => Some(at - before).filter(|passed| *passed <= ASKED_WITHIN),
            None => None,
        };
        Some((at, grown / passed?))
    };
    points.filter_map(rate).collect()
}

/// A name for each: what is not the same of all of them. Of a single one, what it is mainly.
fn names<'a>(keys: impl Iterator<Item = &'a Key> + Clone) -> Vec<String> {
    const MAINLY: [&str; 6] =
        ["hw.gpu.part", "hw.id", "gen_ai.request.model", "engine", "host.name", "source"];
    let first = keys.clone().next();
    let is_shared = |name: &str, value: &str| {
        keys.clone().all(|key| key.get(name).is_some_and(|other| other == value))
    };
    let main = first.and_then(|key| MAINLY.into_iter().find_map(|name| key.get(name)));
    let name = |key: &Key| {
        let own = key.iter().filter(|(name, value)| !is_shared(name, value));
        let own: Vec<_> = own.map(|(_, value)| value.as_str()).collect();
        if own.is_empty() { main.cloned().unwrap_or_default() } else { own.join(", ") }
    };
    keys.clone().map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(labels: &[(&str, &str)]) -> Key {
        labels.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn curves_are_named_by_what_tells_them_apart() {
        let gpu = |id, sensor| key(&[("hw.id", id), ("sensor", sensor), ("source", "http://a")]);
        let of = |keys: &[Key]| names(keys.iter());
        assert_eq!(of(&[gpu("GPU-1", "gpu"), gpu("GPU-2", "gpu")]), ["GPU-1", "GPU-2"]);
        assert_eq!(
            of(&[gpu("GPU-1", "gpu"), gpu("GPU-1", "memory"), gpu("GPU-2", "gpu")]),
            ["GPU-1, gpu", "GPU-1, memory", "GPU-2, gpu"]
        );
        assert_eq!(of(&[gpu("GPU-1", "gpu")]), ["GPU-1"]);
        assert_eq!(of(&[key(&[("source", "/proc")])]), ["/proc"]);
        // Only one of them says a model.
        let both = [key(&[("source", "a"), ("model", "m")]), key(&[("source", "a")])];
        assert_eq!(of(&both), ["m", "a"]);
    }

    #[test]
    fn the_highest_curves_are_shown_and_the_others_are_counted() {
        let curve = |number: u32| {
            (key(&[("hw.id", &format!("GPU-{number}"))]), vec![(0.0, f64::from(number))])
        };
        let curves = Curves::together((0..9).map(curve).collect(), Points::new());
        let names: Vec<_> = curves.curves.iter().map(|curve| curve.name.as_str()).collect();
        assert_eq!(names, ["GPU-8", "GPU-7", "GPU-6", "GPU-5", "GPU-4", "GPU-3"]);
        assert_eq!((curves.others, curves.largest()), (3, 8.0));
    }

    #[test]
    fn the_time_before_belongs_to_the_same_curve_and_nothing_is_no_curve() {
        let [a, b, c] = ["a", "b", "c"].map(|name| key(&[("engine", name)]));
        let now = [(a.clone(), vec![(0.0, 1.0)]), (b.clone(), Vec::new()), (c, Vec::new())];
        let then = [(a, vec![(0.0, 5.0)]), (b, vec![(1.0, 2.0)])];
        let curves = Curves::together(now.into(), then.into());
        let before: Vec<_> = curves.curves.iter().map(|curve| curve.before.clone()).collect();
        assert_eq!(before, [vec![(0.0, 5.0)], vec![(1.0, 2.0)]]);
        assert_eq!((curves.largest(), mean(&curves.curves[1].points)), (5.0, None));
    }

    #[test]
    fn a_counter_that_is_read_each_five_seconds_grew_all_that_time() {
        let points = [(0.0, 10.0), (5.0, 10.0), (6.0, 3.0), (500.0, 8.0), (501.0, 8.0)];
        assert_eq!(rates(points.into_iter(), 1.0), [(5.0, 2.0), (6.0, 3.0), (501.0, 8.0)]);
        assert_eq!(rates([(0.0, 30.0)].into_iter(), 15.0), [(0.0, 2.0)]);
    }
}
