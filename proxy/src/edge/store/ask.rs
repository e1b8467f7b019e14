//! Questions to the store.

use std::ops::ControlFlow;

use taximeter_billing::{Hour, HourKey, Period};
use taximeter_ledger::{Correction, Record};

use super::Store;
use super::batch::Hours;
use super::database::{Filter, Place};
use super::error::StoreError;

/// Most records held at once while they are read; a slow reader does not hold the store's tidying
/// up for longer.
const PAGE_RECORDS_MAX: u32 = 512;

impl Store {
    /// Whether no request is in it.
    ///
    /// Errors: `Damaged`, `Unavailable`.
    pub(crate) fn is_empty(&mut self) -> Result<bool, StoreError> {
        Ok(self.newest()? == 0)
    }

    /// Shows `visit` what `period` adds up to, of one tenant or of all, in order of the keys. Of an
    /// hour that is cut by the start or end of the period, only what was admitted inside. A key
    /// comes again where its sums would be too large to be kept exactly.
    ///
    /// Errors: `visit`'s own; `Damaged`, `Unavailable`.
    pub(crate) fn hours<E: From<StoreError>>(
        &mut self,
        period: Period,
        tenant: Option<&str>,
        mut visit: impl FnMut(&HourKey, &Hour) -> Result<(), E>,
    ) -> Result<(), E> {
        let [before, whole, after] = period.by_hours();
        if let Some(cut) = before {
            show(&mut self.cut_hours(cut, tenant)?, &mut visit)?;
        }
        if let Some(whole) = whole {
            self.whole_hours(whole, tenant, &mut visit)?;
        }
        match after {
            Some(cut) => show(&mut self.cut_hours(cut, tenant)?, &mut visit),
            None => Ok(()),
        }
    }

    fn whole_hours<E: From<StoreError>>(
        &mut self,
        hours: Period,
        tenant: Option<&str>,
        visit: &mut impl FnMut(&HourKey, &Hour) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut current = Hours::default();
        heard(|outcome| {
            self.database.hours(hours, tenant, &mut |key, hour| {
                if current.first().is_some_and(|first| first != key.hour) {
                    *outcome = show(&mut current, visit);
                }
                current.add(key, hour);
                go_on(outcome)
            })
        })?;
        show(&mut current, visit)
    }

    /// The hours of `period`, from its single requests.
    fn cut_hours(&mut self, period: Period, tenant: Option<&str>) -> Result<Hours, StoreError> {
        let mut hours = Hours::default();
        self.database.posts(period, tenant, &mut |post| {
            hours.add_post(post);
            ControlFlow::Continue(())
        })?;
        self.database.corrections(period, tenant, &mut |post, correction| {
            hours.add_correction(post, correction);
            ControlFlow::Continue(())
        })?;
        Ok(hours)
    }

    /// Shows `visit` each correction of requests that were admitted in `period`, of one tenant or
    /// of all; of one request in the order in which they were written.
    ///
    /// Errors: `visit`'s own; `Damaged`, `Unavailable`.
    pub(crate) fn corrections<E: From<StoreError>>(
        &mut self,
        period: Period,
        tenant: Option<&str>,
        mut visit: impl FnMut(&Correction) -> Result<(), E>,
    ) -> Result<(), E> {
        heard(|outcome| {
            self.database.corrections(period, tenant, &mut |_, correction| {
                *outcome = visit(correction);
                go_on(outcome)
            })
        })
    }

    /// The number of the newest record: each one that is fed later has a higher one.
    ///
    /// Errors: `Damaged`, `Unavailable`.
    pub(crate) fn newest(&mut self) -> Result<i64, StoreError> {
        self.database.newest()
    }

    /// Shows `visit` each record with a number up to `newest`, in order of admission; of more than
    /// `limit`, the last ones.
    ///
    /// Errors: `visit`'s own; `Damaged`, `Unavailable`.
    pub(crate) fn records<E: From<StoreError>>(
        &mut self,
        filter: &Filter,
        newest: i64,
        limit: Option<u32>,
        mut visit: impl FnMut(&Record) -> Result<(), E>,
    ) -> Result<(), E> {
        let all = Place { at: filter.since(), id: Vec::new() };
        let mut start = match limit {
            None => all,
            Some(0) => return Ok(()),
            Some(count) => self.database.place_of_last(filter, newest, count)?.unwrap_or(all),
        };
        loop {
            let page = self.database.admitted(filter, newest, &start, PAGE_RECORDS_MAX)?;
            for (_, record) in &page {
                visit(record)?;
            }
            let Some((last, _)) = page.into_iter().next_back() else { return Ok(()) };
            start = last;
            // Nothing lies between an id and the same with a zero byte behind it.
            start.id.push(0);
        }
    }

    /// Shows `visit` each record with a number above `after`, in order of arrival; answers with the
    /// number of the newest one, whether it was asked for or not.
    ///
    /// Errors: `visit`'s own; `Damaged`, `Unavailable`.
    pub(crate) fn records_after<E: From<StoreError>>(
        &mut self,
        filter: &Filter,
        mut after: i64,
        mut visit: impl FnMut(&Record) -> Result<(), E>,
    ) -> Result<i64, E> {
        let newest = self.newest()?;
        loop {
            let page = self.database.arrived(filter, after, newest, PAGE_RECORDS_MAX)?;
            let Some((last, _)) = page.last() else { return Ok(newest) };
            after = *last;
            for (_, record) in &page {
                visit(record)?;
            }
        }
    }
}

/// The outcome of a visitor that may end the visits.
fn heard<E: From<StoreError>>(
    ask: impl FnOnce(&mut Result<(), E>) -> Result<(), StoreError>,
) -> Result<(), E> {
    let mut outcome = Ok(());
    ask(&mut outcome)?;
    outcome
}

fn go_on<E>(outcome: &Result<(), E>) -> ControlFlow<()> {
    if outcome.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
}

fn show<E>(
    hours: &mut Hours,
    visit: &mut impl FnMut(&HourKey, &Hour) -> Result<(), E>,
) -> Result<(), E> {
    hours.take().try_for_each(|(key, parts)| parts.iter().try_for_each(|hour| visit(&key, hour)))
}
