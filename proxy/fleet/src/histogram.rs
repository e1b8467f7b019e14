//! A histogram of another program: what it adds up to, and its median and 95th percentile.

use std::sync::Arc;

/// Few programs print more buckets of a histogram.
const USUAL_BUCKETS: usize = 24;

/// Counts of observations at or below bounds, as they are printed.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Buckets {
    /// Bound, and how many are at or below it. In ascending order of the bounds.
    counts: Vec<(f64, f64)>,
    pub(crate) sum: Option<f64>,
    pub(crate) count: Option<f64>,
}

/// The counts of one histogram while it is followed. Many have the same bounds, which are kept once.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Counted {
    bounds: Arc<Vec<f64>>,
    counts: Box<[f64]>,
}

/// A percentile, as far as buckets tell it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Percentile {
    /// Within a bucket, interpolated.
    About(f64),
    /// Above the last bound that is a number.
    Above(f64),
    /// Not known.
    Unknown(&'static str),
}

/// What a histogram tells. Everything since its program started.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Distribution {
    /// How many observations.
    pub count: Option<f64>,
    /// What they add up to.
    pub sum: Option<f64>,
    /// The median.
    pub p50: Percentile,
    /// The 95th percentile.
    pub p95: Percentile,
}

impl Buckets {
    /// Adds a bucket. Series that are one quantity add up bound by bound.
    pub(crate) fn add(&mut self, bound: f64, count: f64) {
        match self.counts.last_mut() {
            Some((last, _)) if *last < bound => self.counts.push((bound, count)),
            None => {
                self.counts.reserve(USUAL_BUCKETS);
                self.counts.push((bound, count));
            }
            _ => match self.counts.binary_search_by(|(is, _)| is.total_cmp(&bound)) {
                Ok(at) => {
                    if let Some((_, counted)) = self.counts.get_mut(at) {
                        *counted += count;
                    }
                }
                Err(at) => self.counts.insert(at, (bound, count)),
            },
        }
    }

    /// The same with bounds multiplied with `scale`, and nothing but its buckets.
    pub(crate) fn scaled(mut self, scale: f64) -> Self {
        self.counts.iter_mut().for_each(|(bound, _)| *bound *= scale);
        Self { counts: self.counts, sum: None, count: None }
    }

    /// What it tells, with bounds and sum multiplied with `scale`.
    pub(crate) fn distribution(&self, scale: f64) -> Distribution {
        let above_all = self.counts.last().filter(|(bound, _)| bound.is_infinite());
        let count = self.count.or(above_all.map(|(_, count)| *count));
        let known = |is: &f64| is.is_finite();
        Distribution {
            count: count.filter(known),
            sum: self.sum.map(|sum| sum * scale).filter(known),
            p50: self.percentile(0.5, scale),
            p95: self.percentile(0.95, scale),
        }
    }

    /// As Prometheus' `histogram_quantile`: observations lie evenly in a bucket, and the first one
    /// begins at 0.
    fn percentile(&self, share: f64, scale: f64) -> Percentile {
        let Some(&(last, all)) = self.counts.last() else {
            return Percentile::Unknown("no buckets");
        };
        if self.counts.iter().any(|(_, count)| !count.is_finite() || *count < 0.0)
            || self.counts.is_sorted_by(|(_, before), (_, behind)| before <= behind).eq(&false)
        {
            return Percentile::Unknown("the counts of the buckets fall");
        }
        if !last.is_infinite() {
            return Percentile::Unknown("the bucket of all observations is missing");
        }
        if all <= 0.0 {
            return Percentile::Unknown("no observation yet");
        }
        let rank = share * all;
        let (mut from, mut below) = (0.0, 0.0);
        for &(bound, count) in &self.counts {
            if count >= rank {
                if bound.is_infinite() {
                    return Percentile::Above(from * scale);
                }
                // A first bucket up to a negative bound has no beginning.
                let begin = if below <= 0.0 && bound <= 0.0 { bound } else { from };
                let within = if count > below { (rank - below) / (count - below) } else { 1.0 };
                return Percentile::About((begin + (bound - begin) * within) * scale);
            }
            (from, below) = (bound, count);
        }
        Percentile::Unknown("the counts of the buckets fall")
    }
}

impl Counted {
    /// The counts of `buckets`, whose bounds are those of `before`, or else what `bounds` gives for them.
    pub(crate) fn of(
        buckets: &Buckets,
        before: Option<&Arc<Self>>,
        bounds: impl FnOnce(Vec<f64>) -> Arc<Vec<f64>>,
    ) -> Arc<Self> {
        let own = || buckets.counts.iter().map(|(bound, _)| *bound);
        let counts = || buckets.counts.iter().map(|(_, count)| *count);
        let same = before.filter(|before| {
            before.bounds.len() == buckets.counts.len()
                && own().zip(&*before.bounds).all(|(own, before)| own.total_cmp(before).is_eq())
        });
        match same {
            // Nothing was observed.
            Some(same) if counts().eq(same.counts.iter().copied()) => same.clone(),
            Some(same) => {
                Arc::new(Self { bounds: same.bounds.clone(), counts: counts().collect() })
            }
            None => Arc::new(Self { bounds: bounds(own().collect()), counts: counts().collect() }),
        }
    }

    /// The observations since `before`: all, where its program has begun anew. `None` where that is not
    /// known.
    pub(crate) fn since(&self, before: &Self) -> Option<Buckets> {
        let is_same = Arc::ptr_eq(&self.bounds, &before.bounds) || self.bounds == before.bounds;
        if !is_same || self.counts.len() != before.counts.len() {
            return None;
        }
        let pairs = || self.counts.iter().zip(&before.counts);
        let is_anew = pairs().any(|(now, before)| now < before);
        let grown = pairs().map(|(now, before)| if is_anew { *now } else { now - before });
        let counts = self.bounds.iter().copied().zip(grown).collect();
        Some(Buckets { counts, sum: None, count: None })
    }
}

/// Observations of a time, added up. Their bounds are those of what is followed.
#[derive(Debug, Default)]
pub(crate) struct Lately(Box<[f32]>);

impl Lately {
    /// Adds further observations. Those with other bounds begin anew.
    pub(crate) fn add(&mut self, seen: &Buckets) {
        #[expect(clippy::cast_possible_truncation, reason = "for percentiles of a bucket's width")]
        let seen = seen.counts.iter().map(|(_, count)| *count as f32);
        if self.0.len() == seen.len() {
            self.0.iter_mut().zip(seen).for_each(|(all, more)| *all += more);
        } else {
            self.0 = seen.collect();
        }
    }

    /// They are no longer of one time with what follows.
    pub(crate) fn take(&mut self, of: &Counted) -> Buckets {
        let counts = std::mem::take(&mut self.0);
        let is_same = counts.len() == of.bounds.len();
        let counts = of.bounds.iter().zip(counts).filter(|_| is_same);
        let counts = counts.map(|(bound, count)| (*bound, f64::from(count))).collect();
        Buckets { counts, sum: None, count: None }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn buckets(counts: &[(f64, f64)]) -> Buckets {
        let mut buckets = Buckets::default();
        for (bound, count) in counts {
            buckets.add(*bound, *count);
        }
        buckets
    }

    #[test]
    fn a_percentile_lies_within_its_bucket() {
        let some = buckets(&[(0.1, 0.0), (0.2, 50.0), (1.0, 100.0), (f64::INFINITY, 100.0)]);
        assert_eq!(some.percentile(0.5, 1.0), Percentile::About(0.2));
        assert_eq!(some.percentile(0.95, 1.0), Percentile::About(0.2 + 0.8 * 0.9));
        let late = buckets(&[(1.0, 10.0), (f64::INFINITY, 100.0)]);
        assert_eq!(late.percentile(0.5, 0.001), Percentile::Above(0.001));
        assert_eq!(late.percentile(0.05, 1.0), Percentile::About(0.5));
    }

    #[test]
    fn what_buckets_do_not_tell_is_unknown() {
        let unknown = |counts: &[(f64, f64)]| match buckets(counts).percentile(0.5, 1.0) {
            Percentile::Unknown(why) => why,
            known => panic!("{known:?}"),
        };
        assert_eq!(unknown(&[]), "no buckets");
        assert_eq!(unknown(&[(1.0, 0.0), (f64::INFINITY, 0.0)]), "no observation yet");
        assert_eq!(unknown(&[(1.0, 4.0)]), "the bucket of all observations is missing");
        let falling = [(1.0, 4.0), (2.0, 3.0), (f64::INFINITY, 5.0)];
        assert_eq!(unknown(&falling), "the counts of the buckets fall");
        let broken = [(1.0, f64::NAN), (f64::INFINITY, 5.0)];
        assert_eq!(unknown(&broken), "the counts of the buckets fall");
    }

    proptest! {
        /// However observations lie, the percentile is at most a bucket away from the true one.
        #[test]
        fn it_is_in_the_bucket_of_the_true_one(mut seen in prop::collection::vec(0.0..90.0_f64, 1..200)) {
            let bounds: Vec<f64> = (1_u8..10).map(|ten| f64::from(ten) * 10.0).collect();
            seen.sort_by(f64::total_cmp);
            let at_or_below = |bound: f64| seen.iter().filter(|is| **is <= bound).count();
            let counted = |bound: f64| f64::from(u32::try_from(at_or_below(bound)).unwrap());
            let mut buckets = Buckets::default();
            for bound in bounds.iter().copied().chain([f64::INFINITY]) {
                buckets.add(bound, counted(bound));
            }
            for share in [0.5, 0.95] {
                let rank = counted(f64::INFINITY) * share;
                let below = |is: &&f64| counted(**is) >= rank;
                let truth = *seen.iter().find(below).unwrap();
                let Percentile::About(told) = buckets.percentile(share, 1.0) else {
                    panic!("all observations are below the last bound")
                };
                prop_assert!((told - truth).abs() <= 10.0, "{told} for {truth}");
            }
        }
    }
}
