//! Whether a period of this store is closed.

use jiff::Timestamp;
use jiff::civil::Date;
use taximeter_billing::{Closing, Period, PeriodError, PeriodStatus, Zone, closing};
use taximeter_database::error::StoreError;

use super::Store;

impl Store {
    /// Whether the period that ends at `end` is closed: nothing of it can come any more, but from the
    /// gateways that are named. `now` is the wall clock.
    ///
    /// Errors: `Damaged`, `Unavailable`.
    pub fn closing(&mut self, end: Timestamp, now: Timestamp) -> Result<Closing, StoreError> {
        Ok(closing(end, &self.database.progress()?, now))
    }

    /// The same for a day of UTC. `None` if the calendar has no such day.
    ///
    /// Errors: `Damaged`, `Unavailable`.
    pub fn day_closing(
        &mut self,
        day: Date,
        now: Timestamp,
    ) -> Result<Option<Closing>, StoreError> {
        let period: Result<Period, PeriodError> = Period::day(day, &Zone::UTC);
        period.ok().map(|period| self.closing(period.to(), now)).transpose()
    }

    /// Whether what is owed for `period` is final at the time `now`, and why not; and what of it is not
    /// there any more.
    ///
    /// Errors: `Damaged`, `Unavailable`.
    pub fn status(&mut self, period: Period, now: Timestamp) -> Result<PeriodStatus, StoreError> {
        let status = PeriodStatus::new(period, self.closing(period.to(), now)?, now);
        let is_within = |at: &Timestamp| period.from() < *at;
        let details_from = self.details_from()?.filter(is_within);
        let lost = self.lost()?.filter(|lost| is_within(&lost.before));
        Ok(status.without(details_from, lost))
    }
}
