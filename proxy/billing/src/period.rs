//! Which time a bill is about.

use std::fmt;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use crate::hours::hour_of;

/// A span of time, start included, end not; UTC, to the microsecond.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Period {
    from: Timestamp,
    to: Timestamp,
}

/// Why a text or a pair of instants is no period.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PeriodError {
    /// Not `YYYY-MM`.
    #[error("{0:?} is no month; write it like 2026-11")]
    Month(String),
    /// Neither a date nor RFC 3339.
    #[error("{0:?} is no time; write a date like 2026-11-20, or 2026-11-20T16:00:00Z")]
    Instant(String),
    /// The end is not after the start.
    #[error("the period ends at {to}, which is not after its start at {from}")]
    Empty {
        /// Start.
        from: Timestamp,
        /// End.
        to: Timestamp,
    },
}

impl Period {
    /// From `from` up to, and without, `to`; parts of a microsecond are cut off.
    ///
    /// Errors: `Empty` when `to` is not after `from`.
    pub fn new(from: Timestamp, to: Timestamp) -> Result<Self, PeriodError> {
        let (from, to) = (to_microsecond(from), to_microsecond(to));
        if from < to { Ok(Self { from, to }) } else { Err(PeriodError::Empty { from, to }) }
    }

    /// The calendar month `YYYY-MM` in UTC.
    ///
    /// Errors: `Month` when `text` is none.
    pub fn month(text: &str) -> Result<Self, PeriodError> {
        let wrong = || PeriodError::Month(text.to_owned());
        if text.len() != "YYYY-MM".len() {
            return Err(wrong());
        }
        let first: Date = format!("{text}-01").parse().map_err(|_| wrong())?;
        month_from(first).ok_or_else(wrong)
    }

    /// The calendar month in UTC that `at` lies in.
    ///
    /// Errors: `Month` in the last month that the calendar can express.
    pub fn month_of(at: Timestamp) -> Result<Self, PeriodError> {
        let first = at.to_zoned(TimeZone::UTC).date().first_of_month();
        month_from(first).ok_or_else(|| PeriodError::Month(at.strftime("%Y-%m").to_string()))
    }

    /// First instant.
    #[must_use]
    pub const fn from(&self) -> Timestamp {
        self.from
    }

    /// First instant after.
    #[must_use]
    pub const fn to(&self) -> Timestamp {
        self.to
    }

    /// Its part before the first whole hour, its whole hours, and its part after the last one; of a
    /// period without a whole hour all is in the first.
    #[must_use]
    pub fn by_hours(&self) -> [Option<Self>; 3] {
        let begun = hour_of(self.from);
        let hour = SignedDuration::from_hours(i64::from(begun < self.from));
        let first = begun.checked_add(hour);
        let last = hour_of(self.to);
        match first {
            Ok(first) if first < last => [(self.from, first), (first, last), (last, self.to)]
                .map(|(from, to)| Self::new(from, to).ok()),
            _ => [Some(*self), None, None],
        }
    }

    /// Whether something admitted `at` belongs to it.
    #[must_use]
    pub fn contains(&self, at: Timestamp) -> bool {
        self.from <= at && at < self.to
    }
}

/// `2026-11`, or both ends when it is not a calendar month.
impl fmt::Display for Period {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if Self::month_of(self.from).as_ref() == Ok(self) {
            write!(f, "{}", self.from.strftime("%Y-%m"))
        } else {
            write!(f, "{} to {}", self.from, self.to)
        }
    }
}

/// Reads a date (midnight UTC) or an RFC 3339 time with offset.
///
/// Errors: `Instant` when `text` is neither.
pub fn instant(text: &str) -> Result<Timestamp, PeriodError> {
    let read = if text.len() == "YYYY-MM-DD".len() {
        text.parse().ok().and_then(midnight)
    } else {
        text.parse().ok()
    };
    read.ok_or_else(|| PeriodError::Instant(text.to_owned()))
}

fn month_from(first: Date) -> Option<Period> {
    let next = first.last_of_month().tomorrow().ok()?;
    Period::new(midnight(first)?, midnight(next)?).ok()
}

fn midnight(date: Date) -> Option<Timestamp> {
    date.to_zoned(TimeZone::UTC).ok().map(|zoned| zoned.timestamp())
}

fn to_microsecond(at: Timestamp) -> Timestamp {
    Timestamp::from_microsecond(at.as_microsecond()).unwrap_or(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_month_is_whole_and_half_open() {
        let leap = Period::month("2028-02").unwrap();
        assert_eq!(leap.from(), instant("2028-02-01").unwrap());
        assert_eq!(leap.to(), instant("2028-03-01").unwrap());
        assert!(leap.contains(leap.from()));
        assert!(leap.contains(instant("2028-02-29T23:59:59.999999Z").unwrap()));
        assert!(!leap.contains(leap.to()));
        assert_eq!(Period::month("2026-12").unwrap().to(), instant("2027-01-01").unwrap());
    }

    #[test]
    fn a_period_is_its_whole_hours_and_what_is_cut_at_its_ends() {
        let shown = |from: &str, to: &str| {
            let period = Period::new(instant(from).unwrap(), instant(to).unwrap()).unwrap();
            period.by_hours().map(|part| {
                let minutes = |at: Timestamp| at.strftime("%H:%M").to_string();
                part.map_or(String::new(), |part| minutes(part.from()) + "-" + &minutes(part.to()))
            })
        };
        let day = shown("2026-11-20", "2026-11-21");
        assert_eq!(day, ["", "00:00-00:00", ""]);
        let cut = shown("2026-11-20T10:30:00Z", "2026-11-20T13:15:00Z");
        assert_eq!(cut, ["10:30-11:00", "11:00-13:00", "13:00-13:15"]);
        let short = shown("2026-11-20T10:30:00Z", "2026-11-20T11:15:00Z");
        assert_eq!(short, ["10:30-11:15", "", ""]);
        let inside = shown("2026-11-20T10:00:00Z", "2026-11-20T10:15:00Z");
        assert_eq!(inside, ["10:00-10:15", "", ""]);
    }

    #[test]
    fn the_month_of_an_instant_is_by_utc() {
        let at = instant("2026-12-01T00:30:00+01:00").unwrap();
        assert_eq!(Period::month_of(at), Period::month("2026-11"));
    }

    #[test]
    fn what_is_no_month_or_time_says_how_to_write_one() {
        for text in ["", "2026", "2026-13", "2026-1", "26-11-0", "2026-11-01", "2026/11"] {
            assert!(Period::month(text).unwrap_err().to_string().contains("2026-11"), "{text}");
        }
        for text in ["", "yesterday", "2026-11-20T16:00:00", "2026-02-30", "2026-11"] {
            assert_eq!(instant(text), Err(PeriodError::Instant(text.to_owned())));
        }
    }

    #[test]
    fn an_end_before_the_start_is_refused() {
        let (early, late) = (instant("2026-11-01").unwrap(), instant("2026-11-02").unwrap());
        assert!(Period::new(early, late).is_ok());
        assert!(matches!(Period::new(late, early), Err(PeriodError::Empty { .. })));
        assert!(matches!(Period::new(late, late), Err(PeriodError::Empty { .. })));
    }

    #[test]
    fn a_month_is_shown_short_and_another_span_in_full() {
        assert_eq!(Period::month("2026-11").unwrap().to_string(), "2026-11");
        let week =
            Period::new(instant("2026-11-02").unwrap(), instant("2026-11-09").unwrap()).unwrap();
        assert_eq!(week.to_string(), "2026-11-02T00:00:00Z to 2026-11-09T00:00:00Z");
    }
}
