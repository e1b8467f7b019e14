//! The period of a bill.

use std::fmt;
use std::str::FromStr;

use jiff::civil::Date;
use jiff::{SignedDuration, Timestamp};

use crate::hours::hour_of;
use crate::zone::{Unit, Zone};

/// Most hours, days or months that a period is split into.
const UNITS_MAX: usize = 1_000_000;

/// A span of time in UTC, to the microsecond. The start is included, the end is not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Period {
    from: Timestamp,
    to: Timestamp,
}

/// A calendar month in any zone: `2026-11`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Month {
    first: Date,
}

/// A time as it is written: a day, whose start depends on the zone, or an instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// The first instant of the day, `2026-11-20`.
    Day(Date),
    /// RFC 3339 with an offset, `2026-11-20T16:00:00Z`.
    Instant(Timestamp),
}

/// Why a text or a pair of instants is not a period.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PeriodError {
    /// Not `YYYY-MM`.
    #[error("{0:?} is not a month; write it like 2026-11")]
    Month(String),
    /// Not `YYYY-MM-DD`.
    #[error("{0:?} is not a day; write it like 2026-11-20")]
    Day(String),
    /// Neither a date nor RFC 3339.
    #[error("{0:?} is not a time; write a date like 2026-11-20, or 2026-11-20T16:00:00Z")]
    Instant(String),
    /// The end is not after the start.
    #[error("the period ends at {to}, which is not after its start at {from}")]
    Empty {
        /// Start.
        from: Timestamp,
        /// End.
        to: Timestamp,
    },
    /// It has not begun.
    #[error("the period begins at {from}, and it is {now}; choose one that has begun")]
    Future {
        /// Start.
        from: Timestamp,
        /// The current time.
        now: Timestamp,
    },
    /// The zone has no such day, because it crossed the date line, or the calendar ends before.
    #[error("there is no {date} in {zone}")]
    NoSuchDay {
        /// The day.
        date: Date,
        /// The zone.
        zone: String,
    },
    /// The period has more than `UNITS_MAX` units.
    #[error("{from} to {to} is more than {UNITS_MAX} hours, days or months; bill a shorter period")]
    TooLong {
        /// Start.
        from: Timestamp,
        /// End.
        to: Timestamp,
    },
}

impl Period {
    /// From `from` to `to`, without `to`. Parts of a microsecond are cut off.
    ///
    /// Errors: `Empty` if `to` is not after `from`.
    pub fn new(from: Timestamp, to: Timestamp) -> Result<Self, PeriodError> {
        let (from, to) = (to_microsecond(from), to_microsecond(to));
        if from < to { Ok(Self { from, to }) } else { Err(PeriodError::Empty { from, to }) }
    }

    /// The period, if it has begun at `now`.
    ///
    /// Errors: `Future` if not.
    pub fn begun(self, now: Timestamp) -> Result<Self, PeriodError> {
        if self.from <= now { Ok(self) } else { Err(PeriodError::Future { from: self.from, now }) }
    }

    /// The calendar month `YYYY-MM` in UTC.
    ///
    /// Errors: `Month` if `text` is not a month.
    pub fn month(text: &str) -> Result<Self, PeriodError> {
        text.parse::<Month>()?.period(&Zone::UTC)
    }

    /// The calendar month of `zone` with the instant `at`.
    ///
    /// Errors: `Month` in the last month of the calendar.
    pub fn month_of(at: Timestamp, zone: &Zone) -> Result<Self, PeriodError> {
        Month::of(at, zone).period(zone)
    }

    /// The day in `zone`. It has 24 hours, or more or fewer when clocks change.
    ///
    /// Errors: `NoSuchDay`.
    pub fn day(date: Date, zone: &Zone) -> Result<Self, PeriodError> {
        let no_such_day = || PeriodError::NoSuchDay { date, zone: zone.to_string() };
        let ends = date
            .tomorrow()
            .ok()
            .and_then(|next| Some((zone.start_of(date)?, zone.start_of(next)?)));
        let (from, to) = ends.ok_or_else(no_such_day)?;
        Self::new(from, to).map_err(|_| no_such_day())
    }

    /// First instant.
    #[must_use]
    pub const fn from(&self) -> Timestamp {
        self.from
    }

    /// First instant after the period.
    #[must_use]
    pub const fn to(&self) -> Timestamp {
        self.to
    }

    /// The part before the first whole hour, the whole hours, and the part after the last one. A
    /// period without a whole hour is all in the first part.
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

    /// Splits the period so that each hour of UTC in a part lies in one hour, day or month of
    /// `zone`. It cuts only where a unit of the zone begins inside an hour of UTC.
    ///
    /// Errors: `TooLong`.
    pub fn parts(&self, unit: Unit, zone: &Zone) -> Result<Vec<Self>, PeriodError> {
        let mut parts = Vec::new();
        // In UTC each unit begins with an hour.
        if zone.is_utc() {
            return Ok(vec![*self]);
        }
        let (mut from, mut at) = (self.from, self.from);
        for _ in 0..UNITS_MAX {
            let next = zone.next(unit, at).filter(|next| *next < self.to);
            if let Some(next) = next.filter(|next| hour_of(*next) == *next) {
                at = next;
                continue;
            }
            parts.push(Self::new(from, next.unwrap_or(self.to))?);
            let Some(next) = next else { return Ok(parts) };
            (from, at) = (next, next);
        }
        Err(PeriodError::TooLong { from: self.from, to: self.to })
    }

    /// The start of the period, and the starts of all hours, days or months of `zone` inside it, in
    /// order.
    ///
    /// Errors: `TooLong`.
    pub fn starts(&self, unit: Unit, zone: &Zone) -> Result<Vec<Timestamp>, PeriodError> {
        let next = |at: &Timestamp| zone.next(unit, *at).filter(|next| *next < self.to);
        let starts = std::iter::successors(Some(self.from), next);
        let starts: Vec<_> = starts.take(UNITS_MAX + 1).collect();
        if starts.len() > UNITS_MAX {
            return Err(PeriodError::TooLong { from: self.from, to: self.to });
        }
        Ok(starts)
    }

    /// Whether a request that was admitted at `at` belongs to it.
    #[must_use]
    pub fn contains(&self, at: Timestamp) -> bool {
        self.from <= at && at < self.to
    }

    /// Its name in `zone`: `2026-11`, `2026-11-20`, or both ends of any other period.
    #[must_use]
    pub fn name(&self, zone: &Zone) -> String {
        let date = zone.date_of(self.from);
        if Self::month_of(self.from, zone).as_ref() == Ok(self) {
            return date.strftime("%Y-%m").to_string();
        }
        if Self::day(date, zone).as_ref() == Ok(self) {
            return date.to_string();
        }
        format!("{} to {}", self.from, self.to)
    }

    /// The heading of a bill: the name and the zone, and both instants if they do not follow from
    /// the name.
    #[must_use]
    pub fn heading(&self, zone: &Zone) -> String {
        let (name, both) = (self.name(zone), format!("{} to {}", self.from, self.to));
        if zone.is_utc() || name == both {
            return format!("{name} ({zone})");
        }
        format!("{name} ({zone}: {both})")
    }
}

/// Its name in UTC.
impl fmt::Display for Period {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name(&Zone::UTC))
    }
}

impl Month {
    /// The month of `at`.
    #[must_use]
    pub fn of(at: Timestamp, zone: &Zone) -> Self {
        Self { first: zone.date_of(at).first_of_month() }
    }

    /// Its period in `zone`.
    ///
    /// Errors: `Month` for the last month of the calendar.
    pub fn period(self, zone: &Zone) -> Result<Period, PeriodError> {
        let next = self.first.last_of_month().tomorrow().ok();
        let ends = next.and_then(|next| Some((zone.start_of(self.first)?, zone.start_of(next)?)));
        let (from, to) = ends.ok_or_else(|| PeriodError::Month(self.to_string()))?;
        Period::new(from, to)
    }

    /// Its first day.
    pub(crate) const fn first(self) -> Date {
        self.first
    }
}

/// `YYYY-MM`.
impl FromStr for Month {
    type Err = PeriodError;

    fn from_str(text: &str) -> Result<Self, PeriodError> {
        let wrong = || PeriodError::Month(text.to_owned());
        if text.len() != "YYYY-MM".len() {
            return Err(wrong());
        }
        let first: Date = format!("{text}-01").parse().map_err(|_| wrong())?;
        // The last month of the calendar has no end.
        first.last_of_month().tomorrow().map_err(|_| wrong())?;
        Ok(Self { first })
    }
}

impl fmt::Display for Month {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.first.strftime("%Y-%m"))
    }
}

impl Moment {
    /// The instant in `zone`.
    ///
    /// Errors: `NoSuchDay` beyond the calendar.
    pub fn at(self, zone: &Zone) -> Result<Timestamp, PeriodError> {
        match self {
            Self::Instant(at) => Ok(at),
            Self::Day(date) => zone
                .start_of(date)
                .ok_or_else(|| PeriodError::NoSuchDay { date, zone: zone.to_string() }),
        }
    }
}

impl FromStr for Moment {
    type Err = PeriodError;

    fn from_str(text: &str) -> Result<Self, PeriodError> {
        let read = match day(text) {
            Ok(date) => Some(Self::Day(date)),
            Err(_) => text.parse().ok().map(Self::Instant),
        };
        read.ok_or_else(|| PeriodError::Instant(text.to_owned()))
    }
}

/// Reads `YYYY-MM-DD`.
///
/// Errors: `Day` if `text` is not a day.
pub fn day(text: &str) -> Result<Date, PeriodError> {
    let is_date = text.len() == "YYYY-MM-DD".len();
    let date = is_date.then(|| text.parse().ok()).flatten();
    date.ok_or_else(|| PeriodError::Day(text.to_owned()))
}

/// Reads a date (midnight UTC) or an RFC 3339 time with an offset.
///
/// Errors: `Instant` if `text` is neither.
pub fn instant(text: &str) -> Result<Timestamp, PeriodError> {
    text.parse::<Moment>()?.at(&Zone::UTC)
}

fn to_microsecond(at: Timestamp) -> Timestamp {
    Timestamp::from_microsecond(at.as_microsecond()).unwrap_or(at)
}

#[cfg(test)]
mod tests;
