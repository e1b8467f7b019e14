//! The questions that the store answers.

use std::ops::ControlFlow;

use jiff::{SignedDuration, Timestamp};
use taximeter_billing::export::Entries;
use taximeter_billing::{BilledRequest, Hour, HourKey, Period};
use taximeter_database::batch::Hours;
use taximeter_database::database::{AdmissionKey, Filter, SoundDays, Written};
use taximeter_database::error::StoreError;
use taximeter_database::granularity::Granularity;
use taximeter_journal::REQUESTS;
use taximeter_ledger::{Correction, LedgerId, Record, RefusalCount, RequestId};
use uuid::Uuid;

use super::Store;
use super::cursor::{Cursor, Order};

/// Most records held at once while they are read; a slow reader does not hold the store's tidying
/// up for longer.
pub(super) const PAGE_RECORDS_MAX: u32 = 512;

/// The limits of one page.
#[derive(Debug, Clone, Copy)]
pub struct Pages {
    /// Most records on a page.
    pub records_max: u32,
    /// Most records that are examined for a page.
    pub looked_at_max: u32,
}

/// One page of records, and where the next one begins.
#[derive(Debug, Default)]
pub struct Page {
    /// The records, in the requested order.
    pub records: Vec<Record>,
    /// Where the next page begins; `None` if this is the last one.
    pub next: Option<Cursor>,
}

impl Store {
    /// Whether the store has no request.
    ///
    /// Errors: `Damaged`, `Unavailable`.
    pub fn is_empty(&mut self) -> Result<bool, StoreError> {
        Ok(self.newest()? == 0)
    }

    /// Calls `visit` with the sums of `period`, of one tenant or of all, in the order of their
    /// keys. If the period cuts an hour, only requests that were admitted inside count, and the key
    /// has the first instant inside. A key comes several times if its sums would be too large to be
    /// exact.
    ///
    /// Errors: `visit`'s own; `DetailsGone` if the period cuts an hour without details; `Damaged`,
    /// `Unavailable`.
    pub fn hours<E: From<StoreError>>(
        &mut self,
        period: Period,
        tenant: Option<&str>,
        mut visit: impl FnMut(&HourKey, &Hour) -> Result<(), E>,
    ) -> Result<(), E> {
        let [before, whole, after] = period.by_hours();
        if let Some(cut) = before {
            self.cut_hours(cut, tenant, &mut visit)?;
        }
        if let Some(whole) = whole {
            self.whole_hours(whole, tenant, &mut visit)?;
        }
        match after {
            Some(cut) => self.cut_hours(cut, tenant, &mut visit),
            None => Ok(()),
        }
    }

    /// The same in sums as fine as `granularity` says, and coarser ones where that is cheaper: many hours
    /// in one sum, with the key of the first hour. They come in any order.
    ///
    /// Errors: as [`hours`](Self::hours).
    pub fn sums<E: From<StoreError>>(
        &mut self,
        period: Period,
        tenant: Option<&str>,
        granularity: Granularity<'_>,
        mut visit: impl FnMut(&HourKey, &Hour) -> Result<(), E>,
    ) -> Result<(), E> {
        let [before, whole, after] = period.by_hours();
        for cut in [before, after].into_iter().flatten() {
            self.cut_hours(cut, tenant, &mut visit)?;
        }
        let Some(whole) = whole else { return Ok(()) };
        heard(|outcome| {
            self.database.hours(whole, tenant, granularity, &mut |key, hour| {
                *outcome = visit(&key, &hour);
                go_on(outcome)
            })
        })
    }

    fn whole_hours<E: From<StoreError>>(
        &mut self,
        hours: Period,
        tenant: Option<&str>,
        visit: &mut dyn FnMut(&HourKey, &Hour) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut current = Hours::default();
        heard(|outcome| {
            self.database.hours(hours, tenant, Granularity::HOURS, &mut |key, hour| {
                if current.first().is_some_and(|first| first != key.hour) {
                    *outcome = show(&mut current, visit);
                }
                current.add(key, hour);
                go_on(outcome)
            })
        })?;
        show(&mut current, visit)
    }

    /// The same for less than an hour, or two that are both cut: from the single requests.
    fn cut_hours<E: From<StoreError>>(
        &mut self,
        period: Period,
        tenant: Option<&str>,
        visit: &mut dyn FnMut(&HourKey, &Hour) -> Result<(), E>,
    ) -> Result<(), E> {
        self.need_details(period.from())?;
        let mut hours = Hours::default();
        self.database.posts(period, tenant, &mut |post| {
            hours.add_post(post);
            ControlFlow::Continue(())
        })?;
        self.database.corrections(period, tenant, &mut |post, correction| {
            hours.add_correction(post, correction);
            ControlFlow::Continue(())
        })?;
        show(&mut hours, &mut |key: &HourKey, hour: &Hour| {
            visit(&HourKey { hour: key.hour.max(period.from()), ..key.clone() }, hour)
        })
    }

    /// Calls `visit` with each request that was admitted in `period` and has used something, and
    /// when it ended. It reads only the members of the record that bills need.
    ///
    /// Errors: `DetailsGone`, `Damaged`, `Unavailable`.
    pub fn runs(
        &mut self,
        period: Period,
        mut visit: impl FnMut(&BilledRequest<'_>, Timestamp),
    ) -> Result<(), StoreError> {
        self.need_details(period.from())?;
        self.database.posts(period, None, &mut |post| {
            if !post.used_nothing() {
                visit(&post.row(), post.ended_at());
            }
            ControlFlow::Continue(())
        })
    }

    /// Calls `visit` with each correction of requests that were admitted in `period`, of one tenant
    /// or of all, together with its request. Corrections of one request come in the order in which
    /// they were written.
    ///
    /// Errors: `visit`'s own; `DetailsGone`, `Damaged`, `Unavailable`.
    pub fn corrections<E: From<StoreError>>(
        &mut self,
        period: Period,
        tenant: Option<&str>,
        mut visit: impl FnMut(&BilledRequest<'_>, &Correction) -> Result<(), E>,
    ) -> Result<(), E> {
        self.need_details(period.from())?;
        heard(|outcome| {
            self.database.corrections(period, tenant, &mut |post, correction| {
                *outcome = visit(&post.row(), correction);
                go_on(outcome)
            })
        })
    }

    /// The journal entries that the bills of `period` are made of, for one tenant or for all.
    ///
    /// Errors: `Damaged`, `Unavailable`.
    pub fn entries(&mut self, period: Period, tenant: Option<&str>) -> Result<Entries, StoreError> {
        self.database.entries(period, tenant)
    }

    /// Calls `visit` with the counts of requests that have no record, of one tenant or of all, in
    /// order of time: those of each part of `period` that has this length, with its first instant. A
    /// part begins at a multiple of its length since 1970.
    ///
    /// Errors: `visit`'s own; `Damaged`, `Unavailable`.
    pub fn refusals<E: From<StoreError>>(
        &mut self,
        period: Period,
        tenant: Option<&str>,
        part: SignedDuration,
        mut visit: impl FnMut(Timestamp, RefusalCount) -> Result<(), E>,
    ) -> Result<(), E> {
        let micros = i64::try_from(part.as_micros()).unwrap_or(i64::MAX).max(1);
        heard(|outcome| {
            self.database.refusals(period, tenant, micros, &mut |at, count| {
                *outcome = visit(at, count);
                go_on(outcome)
            })
        })
    }

    /// How many tenants have records of `period`; 1000 stands for more.
    ///
    /// Errors: `Damaged`, `Unavailable`.
    pub fn tenants(&mut self, period: Period, tenant: Option<&str>) -> Result<u64, StoreError> {
        self.database.tenants(period, tenant)
    }

    /// Does `work` on the store as of one moment, whatever is fed meanwhile. `work` must not feed
    /// the store.
    ///
    /// Errors: `work`'s own; `Damaged`, `Unavailable`.
    pub fn at_one_moment<T, E: From<StoreError>>(
        &mut self,
        work: impl FnOnce(&mut Self) -> Result<T, E>,
    ) -> Result<T, E> {
        self.database.hold()?;
        let done = work(self);
        let released = self.database.release();
        let done = done?;
        released?;
        Ok(done)
    }

    /// Up to which entry of the journal of requests, which is one of `ledger`, each request has left the
    /// tables for a file of its day, or leaves nothing. `None` of PostgreSQL, which keeps them.
    ///
    /// Errors: `Damaged`, `Unavailable`.
    pub fn sealed_through(&mut self, ledger: LedgerId) -> Result<Option<u64>, StoreError> {
        self.database.sealed_through(REQUESTS, ledger)
    }

    /// Compares each file of requests with what was written, and shows `tell` what is wrong.
    ///
    /// Errors: `Damaged`, `Unavailable`.
    pub(super) fn check_days(
        &mut self,
        tell: &mut dyn FnMut(String),
    ) -> Result<SoundDays, StoreError> {
        self.database.check_days(tell)
    }

    /// The number of the newest record. Every record that is fed later has a higher number.
    ///
    /// Errors: `Damaged`, `Unavailable`.
    pub fn newest(&mut self) -> Result<i64, StoreError> {
        self.database.newest()
    }

    /// Calls `visit` with each record with a number up to `newest`, in order of admission. If there
    /// are more than `limit`, only with the last ones.
    ///
    /// Errors: `visit`'s own; `DetailsGone`, `Damaged`, `Unavailable`.
    pub fn records<E: From<StoreError>>(
        &mut self,
        filter: &Filter,
        newest: i64,
        limit: Option<u32>,
        visit: impl FnMut(&Record) -> Result<(), E>,
    ) -> Result<(), E> {
        let filter = &self.with_details(filter)?;
        let all = AdmissionKey { at: filter.since(), id: Vec::new() };
        let start = match limit {
            None => all,
            Some(0) => return Ok(()),
            Some(count) => self.database.key_of_last(filter, newest, count)?.unwrap_or(all),
        };
        self.records_from(filter, newest, start, visit)
    }

    /// The same from `start` on, of a filter that names no time without details.
    pub(super) fn records_from<E: From<StoreError>>(
        &mut self,
        filter: &Filter,
        newest: i64,
        mut start: AdmissionKey,
        mut visit: impl FnMut(&Record) -> Result<(), E>,
    ) -> Result<(), E> {
        loop {
            let page = self.database.admitted(filter, newest, &start, PAGE_RECORDS_MAX)?;
            self.need_details_at(&start)?;
            for (_, record) in &page {
                visit(record)?;
            }
            let Some((last, _)) = page.into_iter().next_back() else { return Ok(()) };
            start = last.next();
        }
    }

    /// Passes `visit` the same as [`records`](Self::records), as unparsed pages. `visit` returns
    /// the page so that its memory is reused.
    ///
    /// Errors: `visit`'s own; `DetailsGone`, `Damaged`, `Unavailable`.
    pub fn pages<E: From<StoreError>>(
        &mut self,
        filter: &Filter,
        newest: i64,
        mut visit: impl FnMut(Written) -> Result<Written, E>,
    ) -> Result<(), E> {
        let filter = &self.with_details(filter)?;
        let mut start = AdmissionKey { at: filter.since(), id: Vec::new() };
        let mut page = Written::default();
        loop {
            let limit = PAGE_RECORDS_MAX;
            let next = self.database.written(filter, newest, &start, limit, &mut page)?;
            self.need_details_at(&start)?;
            page = visit(page)?;
            let Some(next) = next else { return Ok(()) };
            start = next;
        }
    }

    /// The records of `filter` that are `wanted`, from after `cursor` or from the first. A page may
    /// have fewer records than it could although others follow: the search has a limit and ends
    /// when `enough` says so.
    ///
    /// Errors: `Damaged`, `Unavailable`.
    pub fn page(
        &mut self,
        filter: &Filter,
        from: (Order, Option<Cursor>),
        pages: Pages,
        wanted: impl Fn(&Record) -> bool,
        enough: impl Fn() -> bool,
    ) -> Result<Page, StoreError> {
        let (order, cursor) = from;
        let filter = &self.with_details(filter)?;
        let newest = cursor.map_or_else(|| self.newest(), |cursor| Ok(cursor.newest))?;
        let mut key = match (order, cursor) {
            (_, Some(Cursor { at, id, .. })) => AdmissionKey { at, id: id.0.as_bytes().to_vec() },
            (Order::OldestFirst, None) => AdmissionKey { at: filter.since(), id: Vec::new() },
            (Order::NewestFirst, None) => AdmissionKey { at: filter.before(), id: Vec::new() },
        };
        let mut page = Page::default();
        let mut looked_at = 0;
        // One more than asked for tells whether there are more.
        let mut count = PAGE_RECORDS_MAX.min(pages.records_max.saturating_add(1));
        loop {
            let rows = match order {
                Order::OldestFirst => {
                    if cursor.is_some() || looked_at > 0 {
                        key = key.next();
                    }
                    let rows = self.database.admitted(filter, newest, &key, count)?;
                    self.need_details_at(&key)?;
                    rows
                }
                Order::NewestFirst => self.database.admitted_before(filter, newest, &key, count)?,
            };
            let is_last = rows.len() < count as usize;
            for (at, record) in rows {
                let is_full = page.records.len() >= pages.records_max as usize;
                let is_wanted = wanted(&record);
                if is_wanted && is_full {
                    return Ok(page);
                }
                if !is_full {
                    page.next = Some(Cursor { order, newest, at: at.at, id: record.id });
                }
                if is_wanted {
                    page.records.push(record);
                }
                looked_at += 1;
                key = at;
            }
            if is_last {
                return Ok(Page { next: None, ..page });
            }
            if looked_at >= pages.looked_at_max || enough() {
                return Ok(page);
            }
            count = PAGE_RECORDS_MAX;
        }
    }

    /// The record with that id, and its corrections in the order in which they were written.
    ///
    /// Errors: `Damaged`, `Unavailable`.
    pub fn record(
        &mut self,
        id: RequestId,
    ) -> Result<Option<(Record, Vec<Correction>)>, StoreError> {
        let Some((from, to)) = made_within(id.0) else { return Ok(None) };
        let filter = Filter { tenant: None, from: Some(from), to: Some(to) };
        let newest = self.newest()?;
        let mut found = None;
        self.records(&filter, newest, None, |record| {
            if record.id == id {
                found = Some(record.clone());
            }
            Ok::<_, StoreError>(())
        })?;
        let Some(record) = found else { return Ok(None) };
        let mut corrections = Vec::new();
        if let Ok(period) = Period::new(from, to) {
            self.corrections(period, None, |_, correction| {
                if correction.corrects == id {
                    corrections.push(correction.clone());
                }
                Ok::<_, StoreError>(())
            })?;
        }
        Ok(Some((record, corrections)))
    }

    /// Calls `visit` with each record with a number above `after`, in order of arrival. Then it
    /// sets `after` to the number of the newest record, also if the filter excludes that one. After
    /// an error, `after` is the number of the last record that was visited.
    ///
    /// Errors: `visit`'s own; `Damaged`, `Unavailable`.
    pub fn records_after<E: From<StoreError>>(
        &mut self,
        filter: &Filter,
        after: &mut i64,
        mut visit: impl FnMut(&Record) -> Result<(), E>,
    ) -> Result<(), E> {
        let newest = self.newest()?;
        loop {
            let page = self.database.arrived(filter, *after, newest, PAGE_RECORDS_MAX)?;
            if page.is_empty() {
                // A rebuilt store may have fewer.
                *after = newest;
                return Ok(());
            }
            for (number, record) in &page {
                visit(record)?;
                *after = *number;
            }
        }
    }
}

/// The millisecond of admission that a request's id tells; `None` where it is no id of ours.
fn made_within(id: Uuid) -> Option<(Timestamp, Timestamp)> {
    let (seconds, nanos) = id.get_timestamp().filter(|_| id.get_version_num() == 7)?.to_unix();
    let millis = i64::try_from(seconds).ok()?.checked_mul(1000)? + i64::from(nanos / 1_000_000);
    let millisecond = |millis| Timestamp::from_millisecond(millis).ok();
    Some((millisecond(millis)?, millisecond(millis.checked_add(1)?)?))
}

/// The outcome of a visitor that may end the visits.
pub(super) fn heard<E: From<StoreError>>(
    ask: impl FnOnce(&mut Result<(), E>) -> Result<(), StoreError>,
) -> Result<(), E> {
    let mut outcome = Ok(());
    ask(&mut outcome)?;
    outcome
}

pub(super) fn go_on<E>(outcome: &Result<(), E>) -> ControlFlow<()> {
    if outcome.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
}

pub(super) fn show<E>(
    hours: &mut Hours,
    visit: &mut dyn FnMut(&HourKey, &Hour) -> Result<(), E>,
) -> Result<(), E> {
    hours.take().try_for_each(|(key, parts)| parts.iter().try_for_each(|hour| visit(&key, hour)))
}
