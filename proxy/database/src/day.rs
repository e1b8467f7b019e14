//! UTC days, by their first instant in microseconds since 1970.

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;

/// Microseconds of a day.
pub const DAY_MICROS: i64 = 86_400_000_000;

/// The first instant of the day of `at`.
#[must_use]
pub const fn day_of(at: i64) -> i64 {
    at.div_euclid(DAY_MICROS).saturating_mul(DAY_MICROS)
}

/// The day that begins then.
#[must_use]
pub fn date_of(day: i64) -> Date {
    let first = Timestamp::from_microsecond(day).unwrap_or(Timestamp::UNIX_EPOCH);
    first.to_zoned(TimeZone::UTC).date()
}

/// The first instant of a day.
#[must_use]
pub fn first_of(date: Date) -> Option<i64> {
    Some(date.to_zoned(TimeZone::UTC).ok()?.timestamp().as_microsecond())
}
