//! What is kept of the values of a time.

use crate::memory::grid::Grid;
use crate::quantity::{Instrument, Quantity};

/// One number for all values of a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Statistic {
    /// The mean of what goes up and down.
    Mean,
    /// The least.
    Min,
    /// The most.
    Max,
    /// The last, of codes: between two of them is nothing.
    Last,
    /// By how much a counter grew.
    Increase,
    /// What the observations of a histogram add up to.
    Sum,
    /// How many there were.
    Count,
    /// Their median.
    P50,
    /// Their 95th percentile.
    P95,
}

impl Statistic {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Mean,
        Self::Min,
        Self::Max,
        Self::Last,
        Self::Increase,
        Self::Sum,
        Self::Count,
        Self::P50,
        Self::P95,
    ];

    /// One word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Mean => "mean",
            Self::Min => "min",
            Self::Max => "max",
            Self::Last => "last",
            Self::Increase => "increase",
            Self::Sum => "sum",
            Self::Count => "count",
            Self::P50 => "p50",
            Self::P95 => "p95",
        }
    }

    /// The statistic of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.as_str() == name)
    }

    /// What is kept of one value of a quantity. `None` for a histogram, which has several.
    #[must_use]
    pub fn of(quantity: &Quantity) -> Option<Self> {
        match quantity.instrument {
            Instrument::Counter => Some(Self::Increase),
            Instrument::Gauge if quantity.unit == "{code}" => Some(Self::Last),
            Instrument::Gauge => Some(Self::Mean),
            Instrument::Histogram => None,
        }
    }

    /// What the next coarser grid keeps of it. Percentiles cannot be made from percentiles.
    #[must_use]
    pub const fn becomes(self, from: Grid) -> &'static [Self] {
        match (self, from) {
            (Self::Mean, Grid::Second) => &[Self::Mean, Self::Min, Self::Max],
            (Self::Mean, _) => &[Self::Mean],
            (Self::Min, _) => &[Self::Min],
            (Self::Max, _) => &[Self::Max],
            (Self::Last, _) => &[Self::Last],
            (Self::Increase, _) => &[Self::Increase],
            (Self::Sum, _) => &[Self::Sum],
            (Self::Count, _) => &[Self::Count],
            (Self::P50 | Self::P95, _) => &[],
        }
    }

    /// One number for several, in the order of their times. `None` for none.
    #[must_use]
    pub fn fold(self, values: impl Iterator<Item = i64>) -> Option<i64> {
        match self {
            Self::Min => values.min(),
            Self::Max => values.max(),
            Self::Last | Self::P50 | Self::P95 => values.last(),
            Self::Increase | Self::Sum | Self::Count => values.reduce(i64::saturating_add),
            Self::Mean => {
                let (mut sum, mut count) = (0_i128, 0_i128);
                for value in values {
                    (sum, count) = (sum + i128::from(value), count + 1);
                }
                mean(sum, count)
            }
        }
    }
}

/// A mean, to the nearest whole number, halves upward.
pub(crate) fn mean(sum: i128, count: i128) -> Option<i64> {
    i64::try_from((2 * sum + count).checked_div_euclid(2 * count)?).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::quantity::QUANTITIES;

    #[test]
    fn each_quantity_that_is_no_histogram_has_one_and_each_statistic_its_name() {
        for quantity in QUANTITIES {
            let of = Statistic::of(quantity);
            assert_eq!(of.is_none(), quantity.instrument == Instrument::Histogram, "{quantity:?}");
        }
        for one in Statistic::ALL {
            assert_eq!(Statistic::named(one.as_str()), Some(one));
            assert_eq!(one.fold(std::iter::empty()), None);
        }
        assert_eq!(Statistic::named("median"), None);
        assert_eq!(Statistic::Mean.fold([1, 2].into_iter()), Some(2));
        assert_eq!(Statistic::Mean.fold([-2, -1].into_iter()), Some(-1));
    }

    proptest! {
        /// However values come, their mean lies between the least and the most, and sums add up.
        #[test]
        fn one_number_stands_for_all(values in prop::collection::vec(-(1_i64 << 40)..1 << 40, 1..99)) {
            let fold = |one: Statistic| one.fold(values.iter().copied()).unwrap();
            let (least, mean, most) =
                (fold(Statistic::Min), fold(Statistic::Mean), fold(Statistic::Max));
            prop_assert!(least <= mean && mean <= most);
            prop_assert_eq!(fold(Statistic::Increase), values.iter().sum::<i64>());
            prop_assert_eq!(Some(fold(Statistic::Last)), values.last().copied());
            let count = i64::try_from(values.len()).unwrap();
            let off = (fold(Statistic::Increase) - mean * count).abs();
            prop_assert!(2 * off <= count);
        }
    }
}
