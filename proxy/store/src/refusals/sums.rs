//! Sums of requests that have no record.

use std::collections::BTreeMap;

use clap::ValueEnum;
use jiff::{SignedDuration, Timestamp, TimestampRound};
use serde::Serialize;
use taximeter_billing::{Period, Unit, Zone};
use taximeter_database::error::StoreError;
use taximeter_ledger::{RefusalCount, RefusalKind};
use utoipa::ToSchema;

use crate::Store;

/// Counts are read in parts of this length where days or hours are told apart: every time zone begins
/// its days and hours at such an instant.
const QUARTER: SignedDuration = SignedDuration::from_mins(15);
/// The same where minutes are told apart.
const MINUTE: SignedDuration = SignedDuration::from_mins(1);
/// The same where no times are told apart.
const ANY: SignedDuration = SignedDuration::from_hours(24 * 366);

/// The times that are told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Every {
    /// A line for each minute
    Minute,
    /// A line for each hour
    Hour,
    /// A line for each day
    Day,
}

/// Which requests are added up.
#[derive(Debug, Clone)]
pub struct RefusalQuestion {
    /// The period. A minute belongs to the period in which it begins.
    pub period: Period,
    /// The time zone of days and hours.
    pub zone: Zone,
    /// The times that are told apart, if any.
    pub every: Option<Every>,
    /// Only this tenant, if set.
    pub tenant: Option<String>,
    /// Only this reason, if set.
    pub reason: Option<String>,
}

/// The sums of requests that have no record.
#[derive(Debug)]
pub struct RefusalSums {
    question: RefusalQuestion,
    sums: BTreeMap<(Option<Timestamp>, RefusalKind), u64>,
}

/// One sum.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusalSum {
    /// The first instant of the minute, hour or day, if those are told apart.
    pub from: Option<Timestamp>,
    /// What the requests have in common.
    pub kind: RefusalKind,
    /// How many there were.
    pub count: u64,
}

impl RefusalSums {
    /// Nothing was added yet.
    pub const fn new(question: RefusalQuestion) -> Self {
        Self { question, sums: BTreeMap::new() }
    }

    /// Adds a count of a minute, or of a part of the period that begins `at`.
    pub fn add(&mut self, at: Timestamp, count: RefusalCount) {
        let RefusalQuestion { zone, every, tenant, reason, .. } = &self.question;
        let RefusalCount { kind, count } = count;
        let is_other = |only: &Option<String>, found: Option<&str>| {
            only.as_deref().is_some_and(|only| found != Some(only))
        };
        let found = kind.tenant.as_ref().map(|tenant| tenant.as_str());
        if is_other(tenant, found) || is_other(reason, Some(&kind.reason)) {
            return;
        }
        let from = every.map(|every| match every {
            Every::Minute => minute_of(at),
            Every::Hour => zone.begun(Unit::Hour, at),
            Every::Day => zone.begun(Unit::Day, at),
        });
        let sum = self.sums.entry((from, kind)).or_default();
        *sum = sum.saturating_add(count);
    }

    /// Adds a count that the store does not have yet, if it is of the period.
    pub fn add_new(&mut self, minute: Timestamp, count: RefusalCount) {
        if self.question.period.contains(minute) {
            self.add(minute, count);
        }
    }

    /// How many sums there are.
    pub fn len(&self) -> usize {
        self.sums.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.sums.is_empty()
    }

    /// What was asked for, and the sums.
    pub(super) fn into_parts(self) -> (RefusalQuestion, Vec<RefusalSum>) {
        (self.question.clone(), self.finish())
    }

    /// The sums: in order of time, then the highest first, then in order of their names.
    pub fn finish(self) -> Vec<RefusalSum> {
        let sum = |((from, kind), count)| RefusalSum { from, kind, count };
        let mut sums: Vec<_> = self.sums.into_iter().map(sum).collect();
        taximeter_collections::sort_by(&mut sums, |a, b| {
            a.from.cmp(&b.from).then_with(|| b.count.cmp(&a.count))
        });
        sums
    }
}

impl Store {
    /// Adds to `sums` what the store has. `check` may end the search early.
    ///
    /// Errors: `check`'s own; `Damaged`, `Unavailable`.
    pub fn add_refusals<E: From<StoreError>>(
        &mut self,
        sums: &mut RefusalSums,
        mut check: impl FnMut(&RefusalSums) -> Result<(), E>,
    ) -> Result<(), E> {
        let RefusalQuestion { period, every, tenant, .. } = sums.question.clone();
        let part = match every {
            Some(Every::Minute) => MINUTE,
            Some(Every::Hour | Every::Day) => QUARTER,
            None => ANY,
        };
        self.refusals(period, tenant.as_deref(), part, |at, count| {
            sums.add(at, count);
            check(sums)
        })
    }
}

fn minute_of(at: Timestamp) -> Timestamp {
    let floor = TimestampRound::new().smallest(jiff::Unit::Minute).mode(jiff::RoundMode::Floor);
    at.round(floor).unwrap_or(at)
}

#[cfg(test)]
mod tests {
    use taximeter_ledger::TenantId;

    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn count(tenant: Option<&str>, reason: &'static str, count: u64) -> RefusalCount {
        let tenant = tenant.map(|tenant| TenantId(tenant.into()));
        let kind = RefusalKind {
            tenant,
            others: false,
            reason: reason.into(),
            status: Some(401),
            admitted: false,
        };
        RefusalCount { kind, count }
    }

    fn question(zone: &str, every: Option<Every>) -> RefusalQuestion {
        let period = Period::new(at("2026-11-01T00:00:00Z"), at("2026-12-01T00:00:00Z")).unwrap();
        let zone = zone.parse().unwrap();
        RefusalQuestion { period, zone, every, tenant: None, reason: None }
    }

    #[test]
    fn days_and_hours_are_those_of_the_time_zone() {
        for (zone, every, from) in [
            ("UTC", None, None),
            ("UTC", Some(Every::Minute), Some("2026-11-20T19:46:00Z")),
            ("UTC", Some(Every::Hour), Some("2026-11-20T19:00:00Z")),
            ("Asia/Kathmandu", Some(Every::Hour), Some("2026-11-20T19:15:00Z")),
            ("Asia/Kathmandu", Some(Every::Day), Some("2026-11-20T18:15:00Z")),
        ] {
            let mut sums = RefusalSums::new(question(zone, every));
            sums.add(at("2026-11-20T19:46:00Z"), count(None, "missing_api_key", 2));
            let from = from.map(at);
            assert_eq!(sums.finish().pop().unwrap().from, from, "{zone} {every:?}");
        }
    }

    #[test]
    fn only_what_was_asked_for_is_added_up_and_the_most_come_first() {
        let only = |tenant: Option<&str>, reason: Option<&str>| {
            let (tenant, reason) = (tenant.map(str::to_owned), reason.map(str::to_owned));
            let mut sums =
                RefusalSums::new(RefusalQuestion { tenant, reason, ..question("UTC", None) });
            for (tenant, reason) in
                [(Some("acme"), "draining"), (None, "draining"), (None, "no_route")]
            {
                sums.add(at("2026-11-20T19:46:00Z"), count(tenant, reason, 2));
            }
            sums.add_new(at("2026-11-30T23:59:00Z"), count(None, "no_route", 1));
            sums.add_new(at("2026-12-01T00:00:00Z"), count(None, "no_route", 40));
            sums.finish().iter().map(|sum| sum.count).collect::<Vec<_>>()
        };
        assert_eq!(only(None, None), [3, 2, 2]);
        assert_eq!(only(Some("acme"), None), [2]);
        assert_eq!(only(None, Some("no_route")), [3]);
        assert!(only(Some("acme"), Some("no_route")).is_empty());
    }
}
