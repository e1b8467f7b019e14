//! How often a source has new values, learnt from when they change, and how old its last ones are.

use std::time::{Duration, Instant};

/// Gaps between changes that are remembered.
const GAPS_MAX: usize = 8;
/// So many periods without a value, and the last one no longer holds.
const STALE_PERIODS: u32 = 3;

/// What is known of the times of a source. An exporter that measures each 30 s prints the same values
/// until then, however often it is asked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Period {
    /// The last of them, as a ring.
    gaps: [Duration; GAPS_MAX],
    /// How many there were.
    seen: usize,
    changed_at: Option<Instant>,
    sampled_at: Option<Instant>,
}

impl Period {
    /// Values have come; `changed` says whether any differs from those before. Whether they may be
    /// newer than those before: they differ, or the source has had the time for new ones.
    pub fn sample(&mut self, now: Instant, changed: bool) -> bool {
        let is_due = match (self.sampled_at, self.learnt()) {
            (Some(at), Some(period)) => now.saturating_duration_since(at) >= period,
            _ => true,
        };
        if changed {
            // The first gap begins with a change, and not with the first look at the source.
            if let Some(before) = self.changed_at.replace(now)
                && let Some(gap) = self.gaps.get_mut(self.seen % GAPS_MAX)
            {
                *gap = now.saturating_duration_since(before);
                self.seen += 1;
            }
        }
        let may_be_new = changed || is_due;
        if may_be_new {
            self.sampled_at = Some(now);
        }
        may_be_new
    }

    /// Values have come that are as things are now, whether or not they differ from those before.
    pub const fn sample_live(&mut self, now: Instant) {
        self.sampled_at = Some(now);
    }

    /// The period of the source: the shortest of the last gaps between changes. `None` before two
    /// changes. It is never shorter than the source was asked.
    #[must_use]
    pub fn learnt(&self) -> Option<Duration> {
        self.gaps.iter().take(self.seen).min().copied()
    }

    /// When the last value came that may be new. `None` before the first.
    #[must_use]
    pub const fn sampled_at(&self) -> Option<Instant> {
        self.sampled_at
    }

    /// Since when no value has come that may be new. `None` before the first.
    #[must_use]
    pub fn age(&self, now: Instant) -> Option<Duration> {
        self.sampled_at.map(|at| now.saturating_duration_since(at))
    }

    /// Whether the last values no longer hold, of a source that is asked `every` so often.
    #[must_use]
    pub fn is_stale(&self, now: Instant, every: Duration) -> bool {
        let period = self.learnt().map_or(every, |learnt| learnt.max(every));
        self.age(now).is_none_or(|age| age > period * STALE_PERIODS)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Any instant: only differences count.
    #[expect(clippy::disallowed_methods, reason = "a beginning to count from")]
    fn epoch() -> Instant {
        Instant::now()
    }

    const fn millis(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    proptest! {
        /// A source that has a new value each `period`, asked each `every`.
        #[test]
        fn the_period_of_a_source_is_learnt_as_closely_as_it_is_asked(
            period in 200_u64..60_000,
            every in 200_u64..15_000,
            phase in 0_u64..60_000,
        ) {
            let (begin, mut learning) = (epoch(), Period::default());
            let value = |at: u64| (at + phase) / period;
            let steps = 12 * period.max(every) / every;
            let mut before = None;
            for step in 0..=steps {
                let at = step * every;
                let changed = before.is_some_and(|before| before != value(at));
                before = Some(value(at));
                learning.sample(begin + millis(at), changed);
                // However rarely values change, none is older than the longer of the two.
                let age = learning.age(begin + millis(at)).unwrap();
                prop_assert!(age <= millis(period.max(every) + every), "{age:?}");
                prop_assert!(!learning.is_stale(begin + millis(at), millis(every)));
            }
            let learnt = learning.learnt().unwrap();
            prop_assert!(learnt >= millis(every.min(period)));
            prop_assert!(learnt + millis(every) >= millis(period), "{learnt:?}");
            prop_assert!(learnt <= millis(period + every), "{learnt:?}");
        }

        /// Whatever the source did, three periods of silence make its values old, and not less.
        #[test]
        fn a_silent_source_is_stale_after_three_periods(
            changes in proptest::collection::vec((100_u64..40_000, any::<bool>()), 1..40),
            every in 100_u64..20_000,
        ) {
            let (mut now, mut learning) = (epoch(), Period::default());
            for (gap, changed) in changes {
                now += millis(gap);
                learning.sample(now, changed);
            }
            let period = learning.learnt().unwrap_or_default().max(millis(every));
            let age = learning.age(now).unwrap();
            prop_assume!(age <= period * 3);
            let last = now + (period * 3 - age);
            prop_assert!(!learning.is_stale(last, millis(every)));
            prop_assert!(learning.is_stale(last + millis(1), millis(every)));
        }
    }

    #[test]
    fn an_idle_source_that_answers_is_not_old() {
        let (begin, mut learning) = (epoch(), Period::default());
        assert!(learning.is_stale(begin, millis(1_000)), "nothing is known of it");
        for second in 0..10 {
            learning.sample(begin + millis(1_000 * second), true);
        }
        assert_eq!(learning.learnt(), Some(millis(1_000)));
        for second in 10..3_600 {
            let now = begin + millis(1_000 * second);
            assert!(learning.sample(now, false));
            assert_eq!(learning.age(now), Some(Duration::ZERO));
        }
    }
}
