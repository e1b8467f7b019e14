//! A histogram and its quantiles.

/// For each bound, the number of samples at or below it. All histograms have the same bounds.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Distribution(Vec<(f64, f64)>);

/// A quantile.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Quantile {
    /// Its value, interpolated within the bucket.
    pub(super) seconds: f64,
    /// Whether it is beyond the last bound. `seconds` is that bound then.
    pub(super) beyond: bool,
}

impl Distribution {
    /// Adds samples at or below a bound.
    pub(super) fn add(&mut self, bound: f64, below: f64) {
        match self.0.binary_search_by(|(known, _)| known.total_cmp(&bound)) {
            Ok(at) => {
                if let Some((_, known)) = self.0.get_mut(at) {
                    *known += below;
                }
            }
            Err(at) => self.0.insert(at, (bound, below)),
        }
    }

    /// The samples since `earlier`.
    pub(super) fn since(&self, earlier: &Self) -> Self {
        let before = |bound: f64| {
            let at = earlier.0.binary_search_by(|(known, _)| known.total_cmp(&bound));
            at.ok().and_then(|at| earlier.0.get(at)).map_or(0.0, |(_, below)| *below)
        };
        let news = |(bound, below): &(f64, f64)| (*bound, (below - before(*bound)).max(0.0));
        Self(self.0.iter().map(news).collect())
    }

    /// The quantile for `part`, such as 0.95. `None` without samples.
    pub(super) fn quantile(&self, part: f64) -> Option<Quantile> {
        let count = self.0.last().map(|(_, below)| *below).filter(|count| *count > 0.0)?;
        let rank = part * count;
        let at = self.0.iter().position(|(_, below)| *below >= rank)?;
        let (bound, below) = *self.0.get(at)?;
        let (from, before) =
            at.checked_sub(1).and_then(|at| self.0.get(at)).copied().unwrap_or_default();
        if bound.is_infinite() {
            return Some(Quantile { seconds: from, beyond: true });
        }
        let inside = if below > before { (rank - before) / (below - before) } else { 1.0 };
        Some(Quantile { seconds: from + (bound - from) * inside, beyond: false })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(buckets: &[(f64, f64)]) -> Distribution {
        let mut distribution = Distribution::default();
        for (bound, below) in buckets {
            distribution.add(*bound, *below);
        }
        distribution
    }

    #[test]
    fn a_quantile_lies_within_its_bucket() {
        let distribution = of(&[(1.0, 2.0), (0.5, 0.0), (f64::INFINITY, 4.0), (2.0, 4.0)]);
        let seconds = |part| distribution.quantile(part).map(|quantile| quantile.seconds);
        assert_eq!((seconds(0.25), seconds(0.5), seconds(1.0)), (Some(0.75), Some(1.0), Some(2.0)));
    }

    #[test]
    fn beyond_the_last_bound_it_is_at_least_that() {
        let distribution = of(&[(1.0, 1.0), (f64::INFINITY, 9.0)]);
        assert_eq!(distribution.quantile(0.95), Some(Quantile { seconds: 1.0, beyond: true }));
    }

    #[test]
    fn nothing_has_no_quantile_and_neither_has_what_did_not_change() {
        assert_eq!(Distribution::default().quantile(0.5), None);
        let some = of(&[(1.0, 3.0), (f64::INFINITY, 3.0)]);
        assert_eq!(some.since(&some).quantile(0.5), None);
        assert_eq!(some.since(&Distribution::default()), some);
    }
}
