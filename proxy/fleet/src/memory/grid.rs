//! The grids of times.

/// Seconds of a minute.
pub(crate) const MINUTE: i64 = 60;

/// How far apart samples are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Grid {
    /// A second.
    Second,
    /// A minute.
    Minute,
    /// An hour.
    Hour,
}

impl Grid {
    /// All of them, the finest first.
    pub const ALL: [Self; 3] = [Self::Second, Self::Minute, Self::Hour];

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Second => "1s",
            Self::Minute => "1m",
            Self::Hour => "1h",
        }
    }

    /// Seconds from one time to the next.
    #[must_use]
    pub const fn seconds(self) -> i64 {
        match self {
            Self::Second => 1,
            Self::Minute => MINUTE,
            Self::Hour => 60 * MINUTE,
        }
    }

    /// The time of the grid that a time belongs to, in seconds since 1970.
    #[must_use]
    pub const fn floor(self, second: i64) -> i64 {
        second - second.rem_euclid(self.seconds())
    }
}

/// The second that a sample of a source counts for which is asked so often. Sources that are asked less
/// often than each second have times that are so far apart: times in equal steps take no room.
pub(crate) const fn second_of(at: i64, every: u64) -> i64 {
    let step = match every {
        ..5 => 1,
        5..15 => 5,
        15..60 => 15,
        _ => 60,
    };
    at - at.rem_euclid(step)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_time_belongs_to_the_last_one_of_the_grid_also_before_1970() {
        assert_eq!(Grid::ALL.map(|grid| grid.floor(7_199)), [7_199, 7_140, 3_600]);
        assert_eq!(Grid::ALL.map(|grid| grid.floor(-1)), [-1, -60, -3_600]);
        assert_eq!(
            [0, 1, 5, 14, 15, 90].map(|every| second_of(119, every)),
            [119, 119, 115, 115, 105, 60]
        );
    }
}
