//! The starts of hours, days and months in a time zone.
//!
//! They are instants. A day has 23 or 25 hours when clocks change, and a zone that crossed the date
//! line lacks a day. Units never overlap, and there is no gap between them. The time zone database
//! is compiled in, so a name means the same instants on every machine.

use std::fmt;
use std::str::FromStr;

use jiff::civil::{Date, DateTime};
use jiff::tz::{AmbiguousOffset, TimeZone};
use jiff::{SignedDuration, Span, Timestamp};

/// A time zone of the IANA database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Zone(TimeZone);

/// A unit of the calendar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Unit {
    /// An hour of local time. A change of the clocks begins a new hour.
    Hour,
    /// From its first instant, usually midnight, to the first instant of the next day.
    Day,
    /// From the first instant of its first day.
    Month,
}

/// The name is not that of a time zone.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is not a time zone; write a name of the IANA database, such as Europe/Berlin or UTC"
)]
pub struct UnknownZone(String);

impl Zone {
    /// Coordinated universal time.
    pub const UTC: Self = Self(TimeZone::UTC);

    /// `zone`, if it has a name and rules. Otherwise `None`.
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

    /// Whether it is UTC.
    #[must_use]
    pub fn is_utc(&self) -> bool {
        *self == Self::UTC
    }

    /// The local time.
    #[must_use]
    pub fn civil(&self, at: Timestamp) -> DateTime {
        self.0.to_datetime(at)
    }

    /// The local time with its offset, `2026-11-20T17:00+01:00`.
    pub(crate) fn minute(&self, at: Timestamp) -> String {
        let at = at.to_zoned(self.0.clone());
        if self.is_utc() {
            return at.strftime("%Y-%m-%dT%H:%MZ").to_string();
        }
        at.strftime("%Y-%m-%dT%H:%M%:z").to_string()
    }

    /// First instant of `date`. If the zone has no such day, first instant of the next day. `None`
    /// at the ends of the calendar.
    pub(crate) fn start_of(&self, date: Date) -> Option<Timestamp> {
        let midnight = self.0.to_ambiguous_timestamp(date.at(0, 0, 0, 0));
        let is_left_out = matches!(midnight.offset(), AmbiguousOffset::Gap { .. });
        let start = midnight.compatible().ok()?;
        if !is_left_out {
            return Some(start);
        }
        // A change of the clocks skips midnight. The day begins with the change.
        let put_on =
            self.0.preceding(start.checked_add(Span::new().nanoseconds(1)).ok()?).next()?;
        Some(put_on.timestamp())
    }

    /// The day of `at`. If clocks go back across midnight, the local time may still show the day
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

    /// First instant of the hour, day or month of `at`.
    #[must_use]
    pub fn begun(&self, unit: Unit, at: Timestamp) -> Timestamp {
        let start = match unit {
            Unit::Hour => self.hour_begun(at),
            Unit::Day => self.start_of(self.date_of(at)),
            Unit::Month => self.start_of(self.date_of(at).first_of_month()),
        };
        start.unwrap_or(at)
    }

    /// First instant of the next unit. `None` at the end of the calendar.
    #[must_use]
    pub fn next(&self, unit: Unit, at: Timestamp) -> Option<Timestamp> {
        match unit {
            Unit::Hour => self.hour_next(at),
            Unit::Day => self.start_of(self.date_of(at).tomorrow().ok()?),
            Unit::Month => self.start_of(self.date_of(at).last_of_month().tomorrow().ok()?),
        }
        .filter(|next| *next > at)
    }

    /// A change of the clocks within the hour begins a new hour.
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

/// UTC.
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
