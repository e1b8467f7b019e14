//! From when on a store has single requests, and not only sums by the hour.

use std::collections::BTreeMap;

use jiff::Timestamp;
use jiff::civil::Date;
use taximeter_billing::{Closing, LostRequests, Period, Zone};
use taximeter_collections::Gather as _;
use taximeter_database::database::{AdmissionKey, Filter, SoundHours};
use taximeter_database::error::StoreError;
use taximeter_database::gone::GoneDay;
use taximeter_ledger::Place;

use super::Store;

/// Days without details, to look whether a request is one of theirs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct GoneDays(BTreeMap<Date, GoneDay>);

impl GoneDays {
    /// Those of a store.
    ///
    /// Errors: `Damaged`, `Unavailable`.
    pub(super) fn of(store: &mut Store) -> Result<Self, StoreError> {
        let days = store.gone_days()?.into_iter();
        Ok(Self(days.map(|gone| (gone.day, gone)).gather()))
    }

    /// Whether the day of `at` has no details.
    pub(super) fn has_day(&self, at: Timestamp) -> bool {
        !self.0.is_empty() && self.0.contains_key(&Zone::UTC.date_of(at))
    }

    /// Whether the details of this request are gone, which was admitted at `at`.
    pub(super) fn has(&self, at: Timestamp, place: Place) -> bool {
        !self.0.is_empty() && self.0.get(&Zone::UTC.date_of(at)).is_some_and(|day| day.has(place))
    }

    /// The days that follow each other and went for the same cause, in order.
    pub(super) fn ranges(&self) -> Vec<Vec<&GoneDay>> {
        let mut ranges = Vec::<Vec<&GoneDay>>::new();
        for day in self.0.values() {
            let follows = |last: &&GoneDay| {
                last.cause == day.cause && last.day.tomorrow().is_ok_and(|next| next == day.day)
            };
            match ranges.last_mut().filter(|range| range.last().is_some_and(follows)) {
                Some(range) => range.push(day),
                None => ranges.push(vec![day]),
            }
        }
        ranges
    }
}

impl Store {
    /// The first instant with details, if any are gone. Before it there are sums by the hour alone.
    ///
    /// Errors: `Damaged`, `Unavailable`.
    pub fn details_from(&mut self) -> Result<Option<Timestamp>, StoreError> {
        self.database.details_from()
    }

    /// Notes that the gateway of this store keeps details for so many days. The most days of all gateways
    /// that share it, which count.
    ///
    /// Errors: `Damaged`, `Unavailable`.
    pub fn keep_days(&mut self, own: u32) -> Result<u32, StoreError> {
        self.database.keep_days(own)
    }

    /// Removes at most `rows_max` of the oldest requests of a database, in one transaction that is short:
    /// those of days that end up to `before`, if all of them are closed at the time `now`. How many went;
    /// fewer than `rows_max` if no more are due. Their sums by the hour stay. A store in a data
    /// directory has a [`Sealer`](crate::Sealer) for this.
    ///
    /// Errors: `Damaged`, `Unavailable`.
    pub fn remove_details(
        &mut self,
        before: Timestamp,
        rows_max: u32,
        now: Timestamp,
    ) -> Result<u64, StoreError> {
        let Ok(day) = Period::day(Zone::UTC.date_of(before), &Zone::UTC) else { return Ok(0) };
        match self.closing(day.from(), now)? {
            Closing::Closed { .. } => self.database.remove_details(day.from(), rows_max, now),
            Closing::Open { .. } => Ok(0),
        }
    }

    /// The requests that were lost, if any were: nothing of them is left.
    ///
    /// Errors: `Damaged`, `Unavailable`.
    pub fn lost(&mut self) -> Result<Option<LostRequests>, StoreError> {
        self.database.lost()
    }

    /// Whether there are single requests from `from` on.
    ///
    /// Errors: `DetailsGone` if not; `Damaged`, `Unavailable`.
    pub fn need_details(&mut self, from: Timestamp) -> Result<(), StoreError> {
        match self.details_from()?.filter(|details| from < *details) {
            Some(from) => Err(StoreError::DetailsGone { from }),
            None => Ok(()),
        }
    }

    /// Whether a page that was just read had all requests from `start` on: nothing went meanwhile.
    ///
    /// Errors: as [`need_details`](Self::need_details).
    pub(super) fn need_details_at(&mut self, start: &AdmissionKey) -> Result<(), StoreError> {
        match self.details_from()?.filter(|details| start.at < details.as_microsecond()) {
            Some(from) => Err(StoreError::DetailsGone { from }),
            None => Ok(()),
        }
    }

    /// The same filter, from the first request on that has details.
    ///
    /// Errors: `DetailsGone` if it names a time before that; `Damaged`, `Unavailable`.
    pub(super) fn with_details(&mut self, filter: &Filter) -> Result<Filter, StoreError> {
        let details = self.details_from()?;
        if let Some(from) = filter.from {
            self.need_details(from)?;
        }
        Ok(Filter { from: filter.from.or(details), ..filter.clone() })
    }

    /// Compares each file of hours with what was written, and shows `tell` what is wrong.
    ///
    /// Errors: `Damaged`, `Unavailable`.
    pub(super) fn check_hours(
        &mut self,
        tell: &mut dyn FnMut(String),
    ) -> Result<SoundHours, StoreError> {
        self.database.check_hours(tell)
    }

    /// The days without details, in order.
    ///
    /// Errors: `Damaged`, `Unavailable`.
    pub fn gone_days(&mut self) -> Result<Vec<GoneDay>, StoreError> {
        self.database.gone_days()
    }
}
