//! Hours of the week with prices of their own.

use std::borrow::Cow;

use jiff::civil::{DateTime, Time, Weekday};
use serde::Deserialize;

use crate::rates::Rates;

/// Rates that are used instead of the standard ones in certain hours of the week, UTC.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OffPeak {
    /// The rates.
    pub rates: Rates,
    /// The hours.
    pub windows: Vec<Window>,
}

/// The same hours on some days of the week.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Window {
    /// The days.
    pub days: Vec<Day>,
    /// The hours of each day.
    pub hours: Vec<Hours>,
}

/// A day of the week.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the names say it")]
pub enum Day {
    Mon,
    Tue,
    Wed,
    Thu,
    Fri,
    Sat,
    Sun,
}

impl Day {
    /// Every day, in order.
    pub const ALL: [Self; 7] =
        [Self::Mon, Self::Tue, Self::Wed, Self::Thu, Self::Fri, Self::Sat, Self::Sun];

    /// The word in a price file.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Mon => "mon",
            Self::Tue => "tue",
            Self::Wed => "wed",
            Self::Thu => "thu",
            Self::Fri => "fri",
            Self::Sat => "sat",
            Self::Sun => "sun",
        }
    }
}

impl From<Weekday> for Day {
    fn from(weekday: Weekday) -> Self {
        match weekday {
            Weekday::Monday => Self::Mon,
            Weekday::Tuesday => Self::Tue,
            Weekday::Wednesday => Self::Wed,
            Weekday::Thursday => Self::Thu,
            Weekday::Friday => Self::Fri,
            Weekday::Saturday => Self::Sat,
            Weekday::Sunday => Self::Sun,
        }
    }
}

/// A part of one day, UTC, in minutes since midnight. `from` is included, and `until` (at most
/// 1440) is not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Cow<'_, str>")]
pub struct Hours {
    /// First minute.
    pub from: u16,
    /// The minute after the last.
    pub until: u16,
}

/// Reads the form of price files, `22:00-24:00`.
impl TryFrom<Cow<'_, str>> for Hours {
    type Error = &'static str;

    fn try_from(text: Cow<'_, str>) -> Result<Self, Self::Error> {
        const EXPECTED: &str = "hours are like \"22:00-24:00\", within one day; split at midnight";
        let minute = |text: &str| {
            let (hour, minute) = text.split_once(':')?;
            let two_digits = |text: &str| {
                (text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit()))
                    .then(|| text.parse::<u16>().ok())?
            };
            let (hour, minute) = (two_digits(hour)?, two_digits(minute)?);
            (minute < 60 && hour * 60 + minute <= 24 * 60).then_some(hour * 60 + minute)
        };
        let (from, until) = text.split_once('-').ok_or(EXPECTED)?;
        let (from, until) = (minute(from).ok_or(EXPECTED)?, minute(until).ok_or(EXPECTED)?);
        if from < until { Ok(Self { from, until }) } else { Err(EXPECTED) }
    }
}

/// The form of price files.
impl std::fmt::Display for Hours {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [from, until] = [self.from, self.until].map(|minute| (minute / 60, minute % 60));
        write!(f, "{:02}:{:02}-{:02}:{:02}", from.0, from.1, until.0, until.1)
    }
}

/// For people: `mon tue 00:00-06:00, 22:00-24:00`.
impl std::fmt::Display for Window {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let days: Vec<_> = self.days.iter().map(|day| day.as_str()).collect();
        let hours: Vec<_> = self.hours.iter().map(ToString::to_string).collect();
        write!(f, "{} {}", days.join(" "), hours.join(", "))
    }
}

impl OffPeak {
    /// Whether it covers no time at all.
    pub(crate) fn is_never(&self) -> bool {
        self.windows.iter().all(|window| window.days.is_empty() || window.hours.is_empty())
    }

    pub(crate) fn covers(&self, at: DateTime) -> bool {
        let day = Day::from(at.weekday());
        let minute = minutes(at.time());
        self.windows.iter().any(|window| {
            window.days.contains(&day)
                && window.hours.iter().any(|hours| (hours.from..hours.until).contains(&minute))
        })
    }
}

fn minutes(time: Time) -> u16 {
    u16::from(time.hour().unsigned_abs()) * 60 + u16::from(time.minute().unsigned_abs())
}
