//! What clients say of requests: sums that are split by it, and records that have it.

use std::ops::ControlFlow;

use jiff::Timestamp;
use taximeter_billing::{Hour, HourKey, Period, SplitBy, corrected};
use taximeter_database::batch::Hours;
use taximeter_database::database::{AdmissionKey, Filter};
use taximeter_database::error::StoreError;
use taximeter_database::sessions::WhichSessions;
use taximeter_dimensions as dimensions;
use taximeter_ledger::Record;

use super::Store;
use super::ask::{PAGE_RECORDS_MAX, go_on, heard, show};

/// Most sums of requests that are gathered before they are shown.
const SUMS_MAX: usize = 4096;

impl Store {
    /// Calls `visit` with the sums that [`hours`](Self::hours) shows, split by what clients say as well.
    /// Single requests alone have that, so all of them are read. The sums of a key come in as many parts
    /// as it takes, in any order.
    ///
    /// Errors: `visit`'s own; `DetailsGone`, `Damaged`, `Unavailable`.
    pub fn split_hours<E: From<StoreError>>(
        &mut self,
        period: Period,
        tenant: Option<&str>,
        by: &SplitBy,
        mut visit: impl FnMut(&HourKey, &Hour) -> Result<(), E>,
    ) -> Result<(), E> {
        self.need_details(period.from())?;
        let mut visit = |key: &HourKey, hour: &Hour| {
            visit(&HourKey { hour: key.hour.max(period.from()), ..key.clone() }, hour)
        };
        let mut hours = Hours::default();
        let mut gather = |key: HourKey, hour: Hour, outcome: &mut Result<(), E>| {
            hours.add(key, hour);
            if hours.count() >= SUMS_MAX {
                *outcome = show(&mut hours, &mut visit);
            }
            go_on(outcome)
        };
        heard(|outcome| {
            self.database.posts(period, tenant, &mut |post| {
                if post.used_nothing() {
                    return ControlFlow::Continue(());
                }
                let row = post.row();
                gather(HourKey::split(&row, by), Hour::of(&row), outcome)
            })
        })?;
        heard(|outcome| {
            self.database.corrections(period, tenant, &mut |post, correction| {
                let row = post.row();
                corrected(&row, correction).into_iter().try_for_each(|(key, hour)| {
                    gather(HourKey { dimensions: by.values(row.dimensions), ..key }, hour, outcome)
                })
            })
        })?;
        show(&mut hours, &mut visit)
    }

    /// Calls `visit` with the records that [`records`](Self::records) visits and that are `wanted`. If
    /// there are more than `limit`, only with the last ones.
    ///
    /// Errors: as [`records`](Self::records).
    pub fn records_of<E: From<StoreError>>(
        &mut self,
        filter: &Filter,
        wanted: &dimensions::Filter,
        newest: i64,
        limit: Option<u32>,
        mut visit: impl FnMut(&Record) -> Result<(), E>,
    ) -> Result<(), E> {
        if wanted.is_empty() {
            return self.records(filter, newest, limit, visit);
        }
        let filter = &self.narrowed(filter, wanted)?;
        let first = match limit {
            None => None,
            Some(0) => return Ok(()),
            Some(count) => self.key_of_last_wanted(filter, wanted, newest, count)?,
        };
        let start = first.unwrap_or(AdmissionKey { at: filter.since(), id: Vec::new() });
        self.records_from(filter, newest, start, |record| {
            if wanted.matches(record.dimensions.as_deref()) { visit(record) } else { Ok(()) }
        })
    }

    /// The same filter, for no longer than the sessions lasted that are wanted: sums of days tell that.
    /// Without a session it stays as it is.
    ///
    /// Errors: `DetailsGone` if it names a time without details; `Damaged`, `Unavailable`.
    pub fn narrowed(
        &mut self,
        filter: &Filter,
        wanted: &dimensions::Filter,
    ) -> Result<Filter, StoreError> {
        let filter = self.with_details(filter)?;
        let Some(sessions) = wanted.sessions() else { return Ok(filter) };
        let mut ends: Option<(Timestamp, Timestamp)> = None;
        for session in sessions {
            let (days, tenant) = ((i64::MIN, i64::MAX), filter.tenant.as_deref());
            let which = WhichSessions { days, tenant, session: Some(session) };
            self.database.sessions(which, &mut |_, _, _, sum| {
                let (first, last) = (sum.first.0, sum.last.0);
                ends =
                    Some(ends.map_or((first, last), |(from, to)| (from.min(first), to.max(last))));
                ControlFlow::Continue(())
            })?;
        }
        // There is no request of a session without a sum.
        let (first, last) = ends.unwrap_or((Timestamp::MAX, Timestamp::MIN));
        let after = last.as_microsecond().saturating_add(1);
        let after = Timestamp::from_microsecond(after).unwrap_or(Timestamp::MAX);
        let from = filter.from.map_or(first, |from| from.max(first));
        let to = filter.to.map_or(after, |to| to.min(after)).max(from);
        Ok(Filter { from: Some(from), to: Some(to), ..filter })
    }

    /// Where the last `count` wanted records begin. `None` if there are fewer.
    fn key_of_last_wanted(
        &mut self,
        filter: &Filter,
        wanted: &dimensions::Filter,
        newest: i64,
        count: u32,
    ) -> Result<Option<AdmissionKey>, StoreError> {
        let mut end = AdmissionKey { at: filter.before(), id: Vec::new() };
        let mut left = count;
        loop {
            let page = self.database.admitted_before(filter, newest, &end, PAGE_RECORDS_MAX)?;
            let Some((last, _)) = page.last() else { return Ok(None) };
            end = last.clone();
            for (key, record) in page {
                if wanted.matches(record.dimensions.as_deref()) {
                    left -= 1;
                    if left == 0 {
                        return Ok(Some(key));
                    }
                }
            }
        }
    }
}
