//! The period of a page, and the columns of its charts.

use jiff::{SignedDuration, Timestamp, ToSpan as _};
use taximeter_billing::{Period, Unit, Zone, hour_of};

use super::view::View;
use crate::problem::ApiError;
use crate::query;

/// Most columns of a chart.
const COLUMNS_MAX: usize = 72;
/// Longest period that is shown hour by hour, in hours.
const HOURLY_MAX: i64 = 49;
/// Longest period that is shown day by day, in hours.
const DAILY_MAX: i64 = 62 * 24;

/// Periods that have a name. The first one is the default.
pub(super) const NAMED: [(&str, &str); 5] = [
    ("month", "This month"),
    ("last-month", "Last month"),
    ("30-days", "30 days"),
    ("week", "7 days"),
    ("day", "24 hours"),
];

/// A period and its columns.
#[derive(Debug, Clone)]
pub(super) struct Span {
    pub(super) period: Period,
    /// Its name in `NAMED`, if it has one.
    pub(super) named: Option<&'static str>,
    /// The starts of the columns, in order.
    starts: Vec<Timestamp>,
    pub(super) step: Unit,
}

impl Span {
    /// Reads the parameters `span`, `from` and `to` in the time zone of the view.
    ///
    /// Errors: the parameters are not valid, or the period is too long for a chart.
    pub(super) fn read(
        [named, from, to]: [Option<&str>; 3],
        view: &View,
        now: Timestamp,
    ) -> Result<Self, ApiError> {
        let zone = view.zone();
        let words = NAMED.map(|(word, _)| word).join(", ");
        let named = query::read("span", named, words, |given| {
            NAMED.into_iter().map(|(word, _)| word).find(|word| *word == given).ok_or(())
        })?;
        let (from, to) = (query::time("from", from, zone)?, query::time("to", to, zone)?);
        let (named, period) = match (named, from, to) {
            (None, Some(from), to) => (None, Period::new(from, to.unwrap_or(now))?),
            (named, None, None) => {
                let named = named.unwrap_or("month");
                (Some(named), period(named, zone, now).ok_or(ApiError::PeriodParams)?)
            }
            _ => return Err(ApiError::PeriodParams),
        };
        let hours = period.to().duration_since(period.from()).as_hours();
        let step = match hours {
            few if few <= HOURLY_MAX => Unit::Hour,
            some if some <= DAILY_MAX => Unit::Day,
            _ => Unit::Month,
        };
        let starts = period.starts(step, zone)?;
        if starts.len() > COLUMNS_MAX {
            return Err(ApiError::Lines { lines: starts.len(), max: COLUMNS_MAX });
        }
        Ok(Self { period, named, starts, step })
    }

    /// The number of columns, at least one.
    pub(super) fn columns(&self) -> usize {
        self.starts.len()
    }

    /// The column in which an hour begins.
    pub(super) fn column(&self, hour: Timestamp) -> usize {
        self.starts.partition_point(|start| *start <= hour).saturating_sub(1)
    }

    /// The label of a column for the axis, and its full name.
    pub(super) fn names(&self, column: usize, view: &View) -> [String; 2] {
        let forms = match self.step {
            Unit::Hour => ["%H:%M", "%Y-%m-%d %H:%M"],
            Unit::Day => ["%-d %b", "%a %Y-%m-%d"],
            Unit::Month => ["%b %Y", "%B %Y"],
        };
        let start = self.starts.get(column).copied().unwrap_or(self.period.from());
        forms.map(|form| view.text(start, form))
    }

    /// The length of a column: `hour`, `day` or `month`.
    pub(super) const fn step(&self) -> &'static str {
        match self.step {
            Unit::Hour => "hour",
            Unit::Day => "day",
            Unit::Month => "month",
        }
    }

    /// The start and the end as text.
    pub(super) fn words(&self, view: &View) -> String {
        let form = match self.step {
            Unit::Hour => "%Y-%m-%d %H:%M",
            Unit::Day | Unit::Month => "%Y-%m-%d",
        };
        let last = self.period.to().checked_sub(SignedDuration::from_micros(1));
        let (from, to) = (self.period.from(), last.unwrap_or(self.period.to()));
        format!("{} to {}", view.text(from, form), view.text(to, form))
    }
}

fn period(named: &str, zone: &Zone, now: Timestamp) -> Option<Period> {
    let today = zone.date_of(now);
    let (from, to) = match named {
        "day" => {
            let to = hour_of(now).checked_add(1.hour()).ok()?;
            return Period::new(to.checked_sub(24.hours()).ok()?, to).ok();
        }
        "week" => (today.checked_sub(6.days()).ok()?, today.tomorrow().ok()?),
        "30-days" => (today.checked_sub(29.days()).ok()?, today.tomorrow().ok()?),
        "last-month" => {
            let first = zone.begun(Unit::Month, now);
            return Period::month_of(first.checked_sub(1.hour()).ok()?, zone).ok();
        }
        _ => return Period::month_of(now, zone).ok(),
    };
    let start = |date| Period::day(date, zone).ok().map(|day| day.from());
    Period::new(start(from)?, start(to)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn zone(name: &str) -> Zone {
        name.parse().unwrap()
    }

    fn ends(named: &str, at: &str, now: &str) -> String {
        let period = period(named, &zone(at), now.parse().unwrap()).unwrap();
        format!("{} {}", period.from(), period.to())
    }

    #[test]
    fn days_and_months_are_those_of_the_time_zone() {
        let now = "2026-11-22T23:30:00Z";
        assert_eq!(ends("month", "UTC", now), "2026-11-01T00:00:00Z 2026-12-01T00:00:00Z");
        assert_eq!(ends("week", "UTC", now), "2026-11-16T00:00:00Z 2026-11-23T00:00:00Z");
        assert_eq!(ends("week", "Asia/Tokyo", now), "2026-11-16T15:00:00Z 2026-11-23T15:00:00Z");
        assert_eq!(ends("day", "Asia/Kolkata", now), "2026-11-22T00:00:00Z 2026-11-23T00:00:00Z");
        let last = ends("last-month", "America/New_York", now);
        assert_eq!(last, "2026-10-01T04:00:00Z 2026-11-01T04:00:00Z");
    }

    #[test]
    fn a_day_that_the_clocks_change_is_one_column() {
        let zone = zone("Europe/Berlin");
        let period = period("month", &zone, "2026-10-30T00:00:00Z".parse().unwrap()).unwrap();
        let starts = period.starts(Unit::Day, &zone).unwrap();
        assert_eq!(starts.len(), 31);
        assert_eq!(starts[24].to_string(), "2026-10-24T22:00:00Z");
        assert_eq!(starts[25].to_string(), "2026-10-25T23:00:00Z");
    }

    #[test]
    fn an_hour_belongs_to_the_column_that_it_begins_in() {
        let zone = zone("Asia/Kolkata");
        let period = Period::month_of("2026-11-20T00:00:00Z".parse().unwrap(), &zone).unwrap();
        let starts = period.starts(Unit::Day, &zone).unwrap();
        let span = Span { period, named: None, starts, step: Unit::Day };
        let column = |hour: &str| span.column(hour.parse().unwrap());
        assert_eq!(column("2026-10-31T18:30:00Z"), 0);
        assert_eq!(column("2026-11-01T18:00:00Z"), 0);
        assert_eq!(column("2026-11-01T18:30:00Z"), 1, "where the hour is cut");
        assert_eq!(column("2026-11-01T19:00:00Z"), 1);
    }
}
