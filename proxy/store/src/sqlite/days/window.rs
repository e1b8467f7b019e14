//! Requests of files that were read ahead.

use taximeter_database::database::{AdmissionKey, Filter};

use crate::sqlite::ask::KeyedRow;

/// The requests of the files of a day from one place in the order of admission up to another one.
pub(super) struct Window {
    pub(super) filter: Filter,
    pub(super) day: i64,
    pub(super) from: AdmissionKey,
    /// What is from here on was not read. `None` at the end of the day.
    pub(super) until: Option<AdmissionKey>,
    pub(super) rows: Vec<KeyedRow>,
    /// How many were asked for.
    pub(super) size: usize,
}

impl Window {
    pub(super) fn has(&self, filter: &Filter, day: i64, start: &AdmissionKey) -> bool {
        self.is_of(filter, day)
            && self.from <= *start
            && self.until.as_ref().is_none_or(|until| start < until)
    }

    pub(super) fn is_of(&self, filter: &Filter, day: i64) -> bool {
        self.day == day && self.filter == *filter
    }
}
