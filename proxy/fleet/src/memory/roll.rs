//! A coarser grid from a finer one.

use crate::memory::grid::Grid;
use crate::memory::statistic::Statistic;

/// A sample: its time in seconds since 1970, and its value as a whole number.
pub type At = (i64, i64);

/// The samples of `to` from those of one series on the finer grid, in the order of their times. Times
/// without any have none.
pub fn roll(to: Statistic, grid: Grid, samples: &[At]) -> impl Iterator<Item = At> + '_ {
    let times = samples.chunk_by(move |a, b| grid.floor(a.0) == grid.floor(b.0));
    times.filter_map(move |of_one| {
        let at = grid.floor(of_one.first()?.0);
        Some((at, to.fold(of_one.iter().map(|(_, value)| *value))?))
    })
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
        let minutes = |to| roll(to, Grid::Minute, &seconds).collect::<Vec<_>>();
        assert_eq!(minutes(Statistic::Mean), [(0, 6), (60, 1), (240, 9)]);
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
            let minutes: Vec<_> = roll(Statistic::Increase, Grid::Minute, &seconds).collect();
            let hours: Vec<_> = roll(Statistic::Increase, Grid::Hour, &minutes).collect();
            let sum = |of: &[At]| of.iter().map(|(_, value)| *value).sum::<i64>();
            prop_assert_eq!(sum(&seconds), sum(&minutes));
            prop_assert_eq!(sum(&seconds), sum(&hours));
            for (grid, made) in [(Grid::Minute, &minutes), (Grid::Hour, &hours)] {
                prop_assert!(made.is_sorted_by(|a, b| a.0 < b.0));
                let is_of_one = |made: &At| seconds.iter().any(|(at, _)| grid.floor(*at) == made.0);
                prop_assert!(made.iter().all(is_of_one));
            }
            let most: Vec<_> = roll(Statistic::Max, Grid::Hour, &seconds).collect();
            let of_minutes: Vec<_> = roll(Statistic::Max, Grid::Minute, &seconds).collect();
            prop_assert_eq!(most, roll(Statistic::Max, Grid::Hour, &of_minutes).collect::<Vec<_>>());
        }
    }
}
