//! When the hours, days and months of a place begin.
//!
//! All of it is instants: a day has 23 or 25 hours where clocks are put on or back, a zone that has
//! gone over the date line lacks one, and none of them overlap or leave a gap. What is known of
//! zones is compiled in, so that the same name means the same instants on every machine.

use std::fmt;
use std::str::FromStr;

use jiff::civil::{Date, DateTime};
use jiff::tz::{AmbiguousOffset, TimeZone};
use jiff::{SignedDuration, Span, Timestamp};

/// A time zone of the IANA database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Zone(TimeZone);

/// A part of the calendar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Unit {
    /// Of the clock on the wall: where clocks are put on or back, one begins.
    Hour,
    /// From its first instant, mostly midnight, to the first one of the next day.
    Day,
    /// From the first instant of its first day.
    Month,
}

/// Not the name of a time zone.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no time zone; write a name of the IANA database, such as Europe/Berlin or UTC")]
pub struct UnknownZone(String);

impl Zone {
    /// Coordinated universal time.
    pub const UTC: Self = Self(TimeZone::UTC);

    /// `zone`, if it has a name and rules; `None` for any other.
    #[must_use]
    pub fn new(zone: TimeZone) -> Option<Self> {
        let is_known = zone.iana_name().is_some() && !zone.is_unknown();
        is_known.then_some(Self(zone))
    }

    /// Its name in the IANA database.
    #[must_use]
    pub fn name(&self) -> &str {
        self.0.iana_name().unwrap_or_default()
    }

    /// Whether it is universal time.
    #[must_use]
    pub fn is_utc(&self) -> bool {
        *self == Self::UTC
    }

    /// What the clock on the wall shows.
    #[must_use]
    pub fn civil(&self, at: Timestamp) -> DateTime {
        self.0.to_datetime(at)
    }

    /// The same with its offset, `2026-11-20T17:00+01:00`.
    pub(crate) fn minute(&self, at: Timestamp) -> String {
        let at = at.to_zoned(self.0.clone());
        if self.is_utc() {
            return at.strftime("%Y-%m-%dT%H:%MZ").to_string();
        }
        at.strftime("%Y-%m-%dT%H:%M%:z").to_string()
    }

    /// First instant of `date`; of a day that the zone does not have, that of the next one. `None`
    /// at the ends of the calendar.
    pub(crate) fn start_of(&self, date: Date) -> Option<Timestamp> {
        let midnight = self.0.to_ambiguous_timestamp(date.at(0, 0, 0, 0));
        let is_left_out = matches!(midnight.offset(), AmbiguousOffset::Gap { .. });
        let start = midnight.compatible().ok()?;
        if !is_left_out {
            return Some(start);
        }
        // Clocks that are put on over midnight leave it out: the day begins with what they show then.
        let put_on =
            self.0.preceding(start.checked_add(Span::new().nanoseconds(1)).ok()?).next()?;
        Some(put_on.timestamp())
    }

    /// The day that `at` lies in; where clocks go back over midnight, what they show may be the day
    /// before.
    #[must_use]
    pub fn date_of(&self, at: Timestamp) -> Date {
        let shown = self.civil(at).date();
        let has_begun = |date: &Date| self.start_of(*date).is_some_and(|start| start <= at);
        let next = shown.tomorrow().ok().filter(has_begun);
        next.or_else(|| Some(shown).filter(has_begun))
            .or_else(|| shown.yesterday().ok())
            .unwrap_or(shown)
    }

    /// First instant of the hour, day or month that `at` lies in.
    #[must_use]
    pub fn begun(&self, unit: Unit, at: Timestamp) -> Timestamp {
        let start = match unit {
            Unit::Hour => self.hour_begun(at),
            Unit::Day => self.start_of(self.date_of(at)),
            Unit::Month => self.start_of(self.date_of(at).first_of_month()),
        };
        start.unwrap_or(at)
    }

    /// First instant of the next one; `None` at the end of the calendar.
    #[must_use]
    pub fn next(&self, unit: Unit, at: Timestamp) -> Option<Timestamp> {
        match unit {
            Unit::Hour => self.hour_next(at),
            Unit::Day => self.start_of(self.date_of(at).tomorrow().ok()?),
            Unit::Month => self.start_of(self.date_of(at).last_of_month().tomorrow().ok()?),
        }
        .filter(|next| *next > at)
    }

    /// Clocks that were put on or back within the hour begin another one.
    fn hour_begun(&self, at: Timestamp) -> Option<Timestamp> {
        let start = at.checked_sub(since_the_hour(self.civil(at))).ok()?;
        let after = at.checked_add(Span::new().nanoseconds(1)).ok()?;
        let put = self.0.preceding(after).next().map(|put| put.timestamp());
        Some(put.map_or(start, |put| put.max(start)))
    }

    fn hour_next(&self, at: Timestamp) -> Option<Timestamp> {
        let rest = SignedDuration::from_hours(1) - since_the_hour(self.civil(at));
        let end = at.checked_add(rest).ok()?;
        let put = self.0.following(at).next().map(|put| put.timestamp());
        Some(put.map_or(end, |put| put.min(end)))
    }
}

/// Universal time.
impl Default for Zone {
    fn default() -> Self {
        Self::UTC
    }
}

impl FromStr for Zone {
    type Err = UnknownZone;

    fn from_str(name: &str) -> Result<Self, UnknownZone> {
        let zone = TimeZone::get(name).ok().and_then(Self::new);
        zone.ok_or_else(|| UnknownZone(name.to_owned()))
    }
}

/// Its name.
impl fmt::Display for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

fn since_the_hour(shown: DateTime) -> SignedDuration {
    let seconds = i64::from(shown.minute()) * 60 + i64::from(shown.second());
    SignedDuration::new(seconds, shown.subsec_nanosecond())
}

#[cfg(test)]
mod tests;
