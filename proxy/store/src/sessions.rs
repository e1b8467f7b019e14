//! Sessions of agents: the first ones of a period, and one opened.

use std::collections::HashMap;
use std::ops::ControlFlow;

use jiff::Timestamp;
use taximeter_billing::Period;
use taximeter_database::day::{DAY_MICROS, day_of};
use taximeter_database::error::StoreError;
use taximeter_database::post::Post;
use taximeter_database::sessions::{WhichSessions, is_of};
use taximeter_ledger::{Correction, Record, RequestId};
use taximeter_sessions::{DaySum, Listing, Request, Session, SessionBuilder, Top, TopBy};

use super::Store;

/// Most requests of a session and day that are found one by one, and held for that. Of a day with more all
/// requests are read.
const FOUND_MAX: u64 = 16_384;
/// After so many sums it is asked whether to go on.
const LOOK_SUMS: u64 = 4096;

impl Store {
    /// The first sessions of a period, of one tenant or of all, with what they add up to on all UTC days
    /// that the period has a part of. `None` if `enough` says so before all were looked at.
    ///
    /// Errors: `Damaged`, `Unavailable`.
    pub fn sessions(
        &mut self,
        period: Period,
        tenant: Option<&str>,
        (by, most): (TopBy, usize),
        enough: impl Fn() -> bool,
    ) -> Result<Option<Listing>, StoreError> {
        let which = WhichSessions { days: whole_days(period), tenant, session: None };
        let (mut top, mut count, mut is_whole) = (Top::new(by, most), 0_u64, true);
        self.database.sessions(which, &mut |_, tenant, session, sum| {
            top.add(tenant, session, sum);
            count += 1;
            is_whole = !count.is_multiple_of(LOOK_SUMS) || !enough();
            if is_whole { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        Ok(is_whole.then(|| top.finish()))
    }

    /// The sessions of this name, of one tenant or of all: one for each tenant that has it. Of each day it
    /// reads what was admitted from the first to the last request of the session.
    ///
    /// Errors: `Damaged`, `Unavailable`.
    pub fn session(
        &mut self,
        session: &str,
        tenant: Option<&str>,
    ) -> Result<Vec<Session>, StoreError> {
        self.at_one_moment(|store| store.session_now(session, tenant))
    }

    fn session_now(
        &mut self,
        session: &str,
        tenant: Option<&str>,
    ) -> Result<Vec<Session>, StoreError> {
        let days = (i64::MIN, i64::MAX);
        let which = WhichSessions { days, tenant, session: Some(session) };
        let mut found: Vec<(String, Vec<DaySum>)> = Vec::new();
        self.database.sessions(which, &mut |_, tenant, _, sum| {
            match found.last_mut().filter(|(known, _)| known == tenant) {
                Some((_, sums)) => sums.push(sum),
                None => found.push((tenant.to_owned(), vec![sum])),
            }
            ControlFlow::Continue(())
        })?;
        let mut sessions = Vec::new();
        for (tenant, sums) in found {
            let mut builder = SessionBuilder::default();
            for sum in sums {
                self.add_day(&mut builder, &tenant, session, &sum)?;
            }
            sessions.extend(builder.finish(&tenant, session));
        }
        Ok(sessions)
    }

    /// Adds the requests of one day.
    fn add_day(
        &mut self,
        builder: &mut SessionBuilder,
        tenant: &str,
        session: &str,
        sum: &DaySum,
    ) -> Result<(), StoreError> {
        let after = sum.last.0.as_microsecond().saturating_add(1);
        let to = Timestamp::from_microsecond(after).unwrap_or(Timestamp::MAX);
        let Ok(period) = Period::new(sum.first.0, to) else { return Ok(()) };
        let mut corrections: HashMap<RequestId, Vec<Correction>> = HashMap::new();
        self.database.corrections(period, Some(tenant), &mut |_, correction| {
            corrections.entry(correction.corrects).or_default().push(correction.clone());
            ControlFlow::Continue(())
        })?;
        let mut add = |post: &Post<'_>| {
            if is_of(post, session)
                && let Ok(record) = post.whole()
            {
                let corrections = corrections.remove(&record.id).unwrap_or_default();
                let apply = |record: Record, correction: &Correction| correction.apply_to(record);
                builder.add(Request::from(&corrections.iter().fold(record, apply)));
            }
            ControlFlow::Continue(())
        };
        if sum.sums.requests > FOUND_MAX {
            return self.database.posts(period, Some(tenant), &mut add);
        }
        self.database.session_posts(period, (tenant, session), &mut add)
    }
}

/// The UTC days that `period` has a part of.
fn whole_days(period: Period) -> (i64, i64) {
    let last = period.to().as_microsecond().saturating_sub(1);
    (day_of(period.from().as_microsecond()), day_of(last).saturating_add(DAY_MICROS))
}
