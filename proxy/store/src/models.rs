//! Which models were served lately.

use std::collections::{BTreeMap, HashSet};

use jiff::{SignedDuration, Timestamp};
use taximeter_billing::{Hour, HourKey, Period};
use taximeter_database::database::Filter;
use taximeter_database::error::StoreError;
use taximeter_database::granularity::Granularity;
use taximeter_ledger::Record;

use super::Store;
use super::ask::Pages;
use super::cursor::Order;

/// Records that are looked at for the names that clients use. What engines call their models is known
/// from the sums of all requests.
const RECORDS_MAX: u32 = 50_000;
const HOUR_SECONDS: i64 = 3_600;

impl Store {
    /// Names of models, as clients and as engines call them, that were served from `since` to `now`:
    /// at most so many, the names of the newest requests first.
    ///
    /// Errors: `Damaged`, `Unavailable`.
    pub fn models_served(
        &mut self,
        since: Timestamp,
        now: Timestamp,
        names_max: usize,
    ) -> Result<Vec<String>, StoreError> {
        let mut found = Names { names: Vec::new(), known: HashSet::new(), max: names_max };
        self.asked_for(since, &mut found)?;
        let mut answered: BTreeMap<String, u64> = BTreeMap::new();
        if let Some(period) = whole_hours(since, now) {
            let granularity = Granularity { cuts: &[], is_hourly: &|_| false };
            self.sums(period, None, granularity, |key: &HourKey, hour: &Hour| {
                let is_served =
                    hour.sums.output_tokens > Some(0) || hour.sums.reported_requests() > 0;
                if let Some(model) = key.model.as_ref().filter(|_| is_served && !key.correction) {
                    *answered.entry(model.clone()).or_default() += hour.sums.requests;
                }
                Ok::<_, StoreError>(())
            })?;
        }
        let mut answered: Vec<_> = answered.into_iter().collect();
        taximeter_collections::sort_by_key(&mut answered, |(_, requests)| {
            std::cmp::Reverse(*requests)
        });
        answered.iter().for_each(|(name, _)| found.add(name));
        Ok(found.names)
    }

    /// Adds the names in the newest records.
    fn asked_for(&mut self, since: Timestamp, found: &mut Names) -> Result<(), StoreError> {
        let filter = Filter { from: Some(since), ..Filter::default() };
        let found = std::cell::RefCell::new(found);
        let look = |record: &Record| {
            if record.status.is_some_and(|status| status < 400) {
                let names = [&record.request_model, &record.response_model];
                names.into_iter().flatten().for_each(|name| found.borrow_mut().add(name));
            }
            false
        };
        let pages = Pages { records_max: 1, looked_at_max: RECORDS_MAX };
        let enough = || found.borrow().is_full();
        self.page(&filter, (Order::NewestFirst, None), pages, look, enough)?;
        Ok(())
    }
}

/// Names, each once.
struct Names {
    names: Vec<String>,
    known: HashSet<String>,
    max: usize,
}

impl Names {
    fn add(&mut self, name: &str) {
        if !self.is_full() && !self.known.contains(name) {
            self.known.insert(name.to_owned());
            self.names.push(name.to_owned());
        }
    }

    fn is_full(&self) -> bool {
        self.names.len() >= self.max
    }
}

/// All hours of which a part is in a period: sums of whole hours need no records.
fn whole_hours(since: Timestamp, now: Timestamp) -> Option<Period> {
    let floor = |at: Timestamp| {
        Timestamp::from_second(at.as_second().div_euclid(HOUR_SECONDS) * HOUR_SECONDS).ok()
    };
    let end = floor(now)?.checked_add(SignedDuration::from_hours(1)).ok()?;
    Period::new(floor(since)?, end).ok()
}
