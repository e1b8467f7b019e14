//! One export: what is asked for, and why it may fail.

use std::io::Write;

use jiff::{SignedDuration, Timestamp};
use taximeter_billing::export::{ExportError, OutsideWindow, file_name};
use taximeter_billing::{BillError, Period, PeriodError, SplitBy};
use taximeter_store::terms::{Scope, Terms};
use taximeter_store::{Filter, StoreError};

use crate::content::Content;
use crate::destination::DestinationFault;
use crate::partitions::PartFault;

/// Where rows go. One type: the writers of all formats are large, and would be there once for each.
pub(crate) type Output<'a> = dyn Write + Send + 'a;

/// One export.
#[derive(Debug, Clone)]
pub struct Job {
    /// What is written.
    pub content: Content,
    /// The period. A request belongs to the period in which it was admitted.
    pub period: Period,
    /// Only this tenant, if set.
    pub tenant: Option<String>,
    /// What charges are split by, beside what their rows have. Records have it anyway.
    pub split_by: SplitBy,
    /// The current time. It decides what GPUs cost so far, and that the period is not over.
    pub now: Timestamp,
    /// The highest age of an event that the receiver takes, in place of the one that is known of it.
    pub age_max: Option<SignedDuration>,
    /// Whether the export fails if the receiver does not take all of its events. Nothing is written
    /// then.
    pub strict: bool,
    /// Amounts in addition to the cost of requests.
    pub terms: Terms,
}

/// Why there is no export, or no complete one.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExportFault {
    /// The store cannot be queried.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A number is too large, or the reader stopped.
    #[error(transparent)]
    Write(#[from] ExportError),
    /// The amounts cannot be added up.
    #[error(transparent)]
    Bill(#[from] BillError),
    /// Its period is too long.
    #[error(transparent)]
    Period(#[from] PeriodError),
    /// The destination refused.
    #[error(transparent)]
    Destination(#[from] DestinationFault),
    /// Half an hour in a folder of hours would take the place of the whole one.
    #[error(
        "a folder of Parquet files has one folder for each hour, and the period {0} does not begin \
         and end with an hour; choose whole hours, or name a single file (-o FILE.parquet)"
    )]
    HalfHour(Period),
    /// The export is strict, and the receiver does not take all of its events.
    #[error("nothing is written: {0}; choose a shorter period, or export without `strict`")]
    OutsideWindow(Box<OutsideWindow>),
}

impl From<PartFault> for ExportFault {
    fn from(fault: PartFault) -> Self {
        match fault {
            PartFault::Write(fault) => fault.into(),
            PartFault::Destination(fault) => fault.into(),
        }
    }
}

impl Job {
    /// Which records it is about.
    pub(super) fn filter(&self) -> Filter {
        Filter {
            tenant: self.tenant.clone(),
            from: Some(self.period.from()),
            to: Some(self.period.to()),
        }
    }

    /// What its file is called in a folder: `2026-11.focus.csv`.
    pub(super) fn file_name(&self) -> String {
        file_name(self.period, self.tenant.as_deref(), self.content.extension())
    }

    /// Which part of the ledger it is about; by UTC, as FOCUS wants it.
    pub(super) fn scope(&self) -> Scope<'_> {
        let scope = Scope::in_utc(self.period, self.tenant.as_deref(), self.now);
        Scope { split_by: &self.split_by, ..scope }
    }
}
