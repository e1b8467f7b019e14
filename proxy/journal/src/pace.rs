//! Measures how fast the data directory grows, and keeps over restarts what is known of its room.
//!
//! Two earlier sizes are kept. When the younger one is a day old it takes the place of the older one.
//! So growth is measured over one to two days, and over less in the first day. Time is that of a running
//! gateway, by the monotonic clock. This file reads no clock and no file.

use super::room::Allowance;

/// Growth that was seen for less time says nothing.
const KNOWN_AFTER_SECONDS: u64 = 3600;
/// A size that is as old as this becomes the older one.
const TURN_SECONDS: u64 = 24 * 3600;
const DAY_SECONDS: f64 = 24.0 * 3600.0;

/// Bytes of [`Kept`] as text. It always has the same length, so it is written over in place, and
/// needs no further room on a full volume.
pub(super) const KEPT_BYTES: usize = 160;

/// An earlier size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Size {
    seconds_ago: u64,
    bytes: u64,
}

/// How fast the data directory grows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Pace {
    /// The older size and the younger one.
    sizes: Option<[Size; 2]>,
}

impl Pace {
    /// So much time has passed, and the directory has `bytes` now.
    pub(super) fn look(&mut self, seconds: u64, bytes: u64) {
        let now = Size { seconds_ago: 0, bytes };
        let Some([older, younger]) = &mut self.sizes else {
            self.sizes = Some([now, now]);
            return;
        };
        for size in [&mut *older, &mut *younger] {
            size.seconds_ago = size.seconds_ago.saturating_add(seconds);
        }
        if younger.seconds_ago >= TURN_SECONDS {
            (*older, *younger) = (*younger, now);
        }
    }

    /// Bytes a day that the directory grows by, at `bytes` now; less than nothing if it shrinks.
    /// `None` until that is known.
    #[expect(clippy::cast_precision_loss, reason = "an estimate")]
    pub(super) fn bytes_a_day(&self, bytes: u64) -> Option<f64> {
        let [older, _] = self.sizes?;
        let grown = bytes as f64 - older.bytes as f64;
        let seconds = older.seconds_ago;
        (seconds >= KNOWN_AFTER_SECONDS).then(|| grown * DAY_SECONDS / seconds as f64)
    }
}

/// Days until `bytes_left` are used, if a day takes `bytes_a_day`. `None` if it takes nothing.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "an estimate")]
pub(super) fn days_left(bytes_left: u64, bytes_a_day: f64) -> Option<f64> {
    (bytes_a_day > 0.0).then(|| bytes_left as f64 / bytes_a_day)
}

/// What outlives the process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Kept {
    pub(super) allowance: Allowance,
    pub(super) pace: Pace,
}

impl Kept {
    /// What a file of [`KEPT_BYTES`] says. Nothing is known where it says nothing that can be read.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut words = text.split_whitespace();
        let mut number = || -> Option<Option<u64>> {
            match words.next()? {
                "-" => Some(None),
                number => Some(Some(number.parse().ok()?)),
            }
        };
        let (left, seconds) = (number()??, number()?);
        let mut size = || Some((number()?, number()?));
        let sizes = match (size()?, size()?) {
            ((Some(a), Some(b)), (Some(c), Some(d))) => {
                Some([Size { seconds_ago: a, bytes: b }, Size { seconds_ago: c, bytes: d }])
            }
            _ => None,
        };
        Some(Self { allowance: Allowance { left, seconds }, pace: Pace { sizes } })
    }

    /// The text of the file.
    pub(super) fn text(&self) -> String {
        let Self { allowance: Allowance { left, seconds }, pace: Pace { sizes } } = self;
        let seconds = seconds.map_or("-".to_owned(), |seconds| seconds.to_string());
        let size = |size: &Size| format!("{} {}", size.seconds_ago, size.bytes);
        let sizes =
            sizes.map_or("- - - -".to_owned(), |sizes| sizes.each_ref().map(size).join(" "));
        let text = format!("{left} {seconds} {sizes}");
        format!("{text:<width$}\n", width = KEPT_BYTES - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: u64 = 3600;

    #[test]
    fn growth_is_unknown_for_an_hour_and_then_that_of_a_day_or_two() {
        let mut pace = Pace::default();
        assert_eq!(pace.bytes_a_day(5), None);
        pace.look(0, 1_000);
        pace.look(HOUR - 1, 9_000);
        assert_eq!(pace.bytes_a_day(9_000), None);
        pace.look(1, 2_000);
        assert_eq!(pace.bytes_a_day(2_000), Some(24_000.0));
        // Faster on the second day, slower from the third on.
        for hour in 2..=48 {
            pace.look(HOUR, hour * 1_000);
        }
        assert_eq!(pace.bytes_a_day(48_000).map(f64::round), Some(24_000.0));
        for _ in 0..48 {
            pace.look(HOUR, 48_000);
        }
        assert_eq!(pace.bytes_a_day(48_000), Some(0.0));
        assert!(pace.bytes_a_day(1_000).is_some_and(|growth| growth < 0.0));
    }

    #[test]
    fn days_left_are_never_those_of_a_directory_that_does_not_grow() {
        assert_eq!(days_left(1_000, 100.0), Some(10.0));
        assert_eq!(days_left(0, 100.0), Some(0.0));
        assert_eq!((days_left(0, 0.0), days_left(9, -5.0)), (None, None));
    }

    #[test]
    fn what_is_kept_reads_back_and_has_one_length() {
        let most = u64::MAX;
        let size = Size { seconds_ago: most, bytes: most };
        for kept in [
            Kept::default(),
            Kept {
                allowance: Allowance { left: most, seconds: Some(most) },
                pace: Pace { sizes: Some([size, Size { seconds_ago: 1, bytes: 2 }]) },
            },
            Kept {
                allowance: Allowance { left: most, seconds: Some(most) },
                pace: Pace { sizes: Some([size, size]) },
            },
        ] {
            let text = kept.text();
            assert_eq!((text.len(), Kept::parse(&text)), (KEPT_BYTES, Some(kept)));
        }
        for rubbish in ["", "5", "5 - 1", "x - - - - -", "- - - - - -", "1 2 3 4 5 -6"] {
            assert_eq!(Kept::parse(rubbish), None, "{rubbish}");
        }
    }
}
