//! A coarser grid from a finer one.

use crate::memory::grid::Grid;
use crate::memory::statistic::{Statistic, mean};

/// A sample: its time in seconds since 1970, and its value as a whole number.
pub type At = (i64, i64);

/// A value that goes up and down holds until the next one, for so many seconds at most: a source is rarely
/// asked less often.
const HOLDS: i64 = 15;

/// A time of a coarser grid: its first second, its values, each multiplied with the seconds that it holds
/// there, and these seconds.
pub type Share = (i64, i128, u32);

/// The samples of `to` from those of one series on the finer grid, in the order of their times. Times
/// without any have none.
pub fn roll(to: Statistic, grid: Grid, samples: &[At]) -> Vec<At> {
    if to == Statistic::Mean {
        let means = shares(grid.seconds(), samples).into_iter();
        return means.filter_map(|(at, sum, held)| Some((at, mean(sum, held.into())?))).collect();
    }
    let times = samples.chunk_by(move |a, b| grid.floor(a.0) == grid.floor(b.0));
    let of_times = times.filter_map(move |of_one| {
        let at = grid.floor(of_one.first()?.0);
        Some((at, to.fold(of_one.iter().map(|(_, value)| *value))?))
    });
    of_times.collect()
}

/// What values that go up and down add up to in each time of `step` seconds, by how long each holds there: a
/// source is asked more often while requests run. `samples` are those of one series in the order of their times.
/// Times without any have none.
pub fn shares(step: i64, samples: &[At]) -> Vec<Share> {
    let mut shares: Vec<Share> = Vec::new();
    for (number, &(second, value)) in samples.iter().enumerate() {
        let begin = second - second.rem_euclid(step);
        let next = samples.get(number + 1).map_or(i64::MAX, |next| next.0);
        let until = next.min(begin + step).min(second + HOLDS);
        let held = u32::try_from(until.saturating_sub(second)).unwrap_or(0).max(1);
        let sum = i128::from(value) * i128::from(held);
        match shares.last_mut() {
            Some(last) if last.0 == begin => (last.1, last.2) = (last.1 + sum, last.2 + held),
            _ => shares.push((begin, sum, held)),
        }
    }
    shares
}

/// Brings samples of one series into the order of their times, with one for each time.
pub fn settle(statistic: Statistic, samples: &mut Vec<At>) {
    if samples.is_sorted_by(|a, b| a.0 < b.0) {
        return;
    }
    samples.sort_by_key(|(at, _)| *at);
    let of_one = samples.chunk_by(|a, b| a.0 == b.0);
    let joined = of_one.filter_map(|all| {
        Some((all.first()?.0, statistic.fold(all.iter().map(|(_, value)| *value))?))
    });
    *samples = joined.collect();
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_gap_stays_a_gap_and_what_comes_twice_is_one() {
        let seconds = [(0, 5), (59, 7), (60, 1), (240, 9), (241, 9)];
        let minutes = |to| roll(to, Grid::Minute, &seconds);
        assert_eq!(minutes(Statistic::Mean), [(0, 5), (60, 1), (240, 9)]);
        assert_eq!(minutes(Statistic::Increase), [(0, 12), (60, 1), (240, 18)]);
        let mut twice = vec![(60, 4), (0, 1), (60, 6)];
        settle(Statistic::Increase, &mut twice);
        assert_eq!(twice, [(0, 1), (60, 10)]);
        settle(Statistic::Max, &mut twice);
        assert_eq!(twice, [(0, 1), (60, 10)]);
    }

    proptest! {
        /// Whatever was lost between: hours add up to what their seconds do, and no time is made up.
        #[test]
        fn what_grows_adds_up_on_each_grid(gaps in prop::collection::vec((1..4_000_i64, 0..1_000_i64), 1..200)) {
            let mut at = 1_795_132_800;
            let seconds: Vec<At> = gaps.into_iter().map(|(gap, value)| {
                at += gap;
                (at, value)
            }).collect();
            let minutes = roll(Statistic::Increase, Grid::Minute, &seconds);
            let hours = roll(Statistic::Increase, Grid::Hour, &minutes);
            let sum = |of: &[At]| of.iter().map(|(_, value)| *value).sum::<i64>();
            prop_assert_eq!(sum(&seconds), sum(&minutes));
            prop_assert_eq!(sum(&seconds), sum(&hours));
            for (grid, made) in [(Grid::Minute, &minutes), (Grid::Hour, &hours)] {
                prop_assert!(made.is_sorted_by(|a, b| a.0 < b.0));
                let is_of_one = |made: &At| seconds.iter().any(|(at, _)| grid.floor(*at) == made.0);
                prop_assert!(made.iter().all(is_of_one));
            }
            let most = roll(Statistic::Max, Grid::Hour, &seconds);
            let of_minutes = roll(Statistic::Max, Grid::Minute, &seconds);
            prop_assert_eq!(most, roll(Statistic::Max, Grid::Hour, &of_minutes));
        }

        /// Whenever a source is asked, at least each 15 seconds, a mean is that of its value over time.
        #[test]
        fn a_mean_is_that_of_what_holds_however_often_it_is_looked_at(
            gaps in prop::collection::vec((1..=15_i64, -99..99_i64), 1..200),
            step in prop::sample::select(vec![1_i64, 5, 15, 60, 300]),
        ) {
            let mut at = 1_795_132_800;
            let mut samples: Vec<At> = Vec::new();
            for (gap, value) in gaps {
                samples.push((at, value));
                at += gap;
            }
            let begin = |second: i64| second - second.rem_euclid(step);
            let last = samples.last().map_or(0, |last| (begin(last.0) + step).min(last.0 + 15));
            let mut expected: Vec<Share> = Vec::new();
            for second in samples[0].0..last {
                // Each second has the last sample before it that is of the same time.
                let mut before = samples.iter().rev().skip_while(|sample| sample.0 > second);
                let Some((_, value)) = before.next().filter(|it| begin(it.0) == begin(second)) else {
                    continue;
                };
                match expected.last_mut() {
                    Some(of) if of.0 == begin(second) => {
                        (of.1, of.2) = (of.1 + i128::from(*value), of.2 + 1);
                    }
                    _ => expected.push((begin(second), i128::from(*value), 1)),
                }
            }
            prop_assert_eq!(shares(step, &samples), expected);
        }

        /// Times in equal steps count alike.
        #[test]
        fn minutes_of_an_hour_count_alike(values in prop::collection::vec(-999..999_i64, 60)) {
            let minutes: Vec<At> = (0..).step_by(60).zip(values.iter().copied()).collect();
            let mean = Statistic::Mean.fold(values.into_iter()).unwrap();
            prop_assert_eq!(roll(Statistic::Mean, Grid::Hour, &minutes), [(0, mean)]);
        }
    }
}
