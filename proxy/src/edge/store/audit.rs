//! All that a store has, and whether its sums are those of its requests and corrections: bills are
//! made of the sums, and nobody looks at the requests behind them.

use std::ops::ControlFlow;

use jiff::Timestamp;
use taximeter_billing::{BillRow, Hour, HourKey, Period, hour_of};
use taximeter_ledger::{Correction, Record};

use super::Store;
use super::ask::PAGE_RECORDS_MAX;
use super::batch::Hours;
use super::database::{Filter, Place};
use super::error::StoreError;
use super::grain::Grain;

/// Sums that are gathered before they are compared, and those of one hour more.
const SUMS_MAX: usize = 4096;

/// Something that the store has.
#[derive(Debug)]
pub(crate) enum Audited<'a> {
    /// A request.
    Record(&'a Record),
    /// A correction of one that is there.
    Correction(&'a Correction),
    /// What bills are made of.
    Sum(Sum<'a>),
}

/// What a store says of one combination in one hour, and what it should say. Several parts where a
/// sum would be too large to be kept exactly; none where there is no such sum.
#[derive(Debug)]
pub(crate) struct Sum<'a> {
    /// Of what.
    pub(crate) key: &'a HourKey,
    /// What bills are made of.
    pub(crate) kept: &'a [Hour],
    /// What the requests add up to, or the corrections.
    pub(crate) due: &'a [Hour],
}

impl Store {
    /// Shows `visit` all that is there at one moment: requests in order of admission, and behind
    /// those of some hours their corrections and their sums.
    ///
    /// Errors: `Damaged`, `Unavailable`.
    pub(crate) fn audit(&mut self, mut visit: impl FnMut(Audited<'_>)) -> Result<(), StoreError> {
        self.at_one_moment(|store| store.audit_held(&mut visit))
    }

    fn audit_held(&mut self, visit: &mut impl FnMut(Audited<'_>)) -> Result<(), StoreError> {
        let (all, newest) = (Filter::default(), self.newest()?);
        let mut start = Place { at: all.since(), id: Vec::new() };
        let (mut due, mut from, mut last) = (Hours::default(), Timestamp::MIN, Timestamp::MIN);
        loop {
            let page = self.database.admitted(&all, newest, &start, PAGE_RECORDS_MAX)?;
            for (_, record) in &page {
                let hour = hour_of(record.started_at);
                if hour != last && due.len() >= SUMS_MAX {
                    self.audit_sums((from, hour), &mut due, visit)?;
                    from = hour;
                }
                last = hour;
                due.add_row(&BillRow::from(record));
                visit(Audited::Record(record));
            }
            let Some((place, _)) = page.into_iter().next_back() else { break };
            start = place.next();
        }
        self.audit_sums((from, Timestamp::MAX), &mut due, visit)
    }

    /// Whole hours, of which `due` has the requests.
    fn audit_sums(
        &mut self,
        (from, to): (Timestamp, Timestamp),
        due: &mut Hours,
        visit: &mut impl FnMut(Audited<'_>),
    ) -> Result<(), StoreError> {
        // What ends before it begins has nothing.
        let Ok(period) = Period::new(from, to) else { return Ok(()) };
        self.database.corrections(period, None, &mut |post, correction| {
            due.add_correction(post, correction);
            visit(Audited::Correction(correction));
            ControlFlow::Continue(())
        })?;
        let mut kept = Hours::default();
        self.database.hours(period, None, Grain::HOURS, &mut |key, hour| {
            kept.add(key, hour);
            ControlFlow::Continue(())
        })?;
        let mut kept = kept.take().peekable();
        for (key, due) in due.take() {
            while let Some((other, kept)) = kept.next_if(|(other, _)| *other < key) {
                visit(Audited::Sum(Sum { key: &other, kept: &kept, due: &[] }));
            }
            let same = kept.next_if(|(other, _)| *other == key);
            let kept = same.map(|(_, kept)| kept).unwrap_or_default();
            visit(Audited::Sum(Sum { key: &key, kept: &kept, due: &due }));
        }
        for (key, kept) in kept {
            visit(Audited::Sum(Sum { key: &key, kept: &kept, due: &[] }));
        }
        Ok(())
    }
}
