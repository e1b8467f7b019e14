//! What clients say of requests: sums that are split by it.

use std::ops::ControlFlow;

use taximeter_billing::{Hour, HourKey, Period, SaidBy, corrected};
use taximeter_database::batch::Hours;
use taximeter_database::error::StoreError;

use super::Store;
use super::ask::{go_on, heard, show};

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
        by: &SaidBy,
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
                    gather(HourKey { said: by.values(row.said), ..key }, hour, outcome)
                })
            })
        })?;
        show(&mut hours, &mut visit)
    }
}
