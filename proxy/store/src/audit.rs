//! Checks a store: whether its sums are those of its requests and corrections. Bills and lists of sessions
//! are made from the sums, and nobody looks at the requests behind them.

mod runs;
mod session_sums;

use std::io;
use std::ops::ControlFlow;
use std::thread;

use jiff::Timestamp;
use taximeter_billing::{Hour, HourKey, Period};
use taximeter_database::batch::Hours;
use taximeter_database::database::{AdmissionKey, Filter, Written};
use taximeter_database::day::day_of;
use taximeter_database::error::StoreError;
use taximeter_database::granularity::Granularity;
use taximeter_database::post::Post;
use taximeter_ledger::{Correction, DecodeError, Place};
use taximeter_system::lanes::Lanes;

use self::session_sums::{Compared, DueSessions, OfSessions};
use super::Store;
use super::ask::PAGE_RECORDS_MAX;
use super::details::GoneDays;

pub use self::session_sums::SessionSum;

/// Sums that are gathered before they are compared, and those of one hour more.
const SUMS_MAX: usize = 4096;

/// One part of the store's content.
#[derive(Debug)]
pub enum Audited<'a, T> {
    /// A number of requests, and what was gathered from them.
    Posts(usize, T),
    /// A request that cannot be read, by where its entry is.
    Unreadable(Place, DecodeError),
    /// A correction of a request that the store has.
    Correction(&'a Correction),
    /// A correction of a request of a day without details.
    GoneCorrection(&'a Correction),
    /// What bills are made of.
    Sum(Sum<'a>),
    /// What lists of sessions are made of.
    Session(SessionSum<'a>),
    /// The sums of sessions of some days cannot be read.
    UnreadableSessions(StoreError),
    /// The sums of sessions are not compared any more: there are too many for memory, and no temporary file
    /// for the rest of them.
    SessionsLeftOut(io::Error),
}

/// What a store says of one combination in one hour, and what it should say. Several parts where a
/// sum would be too large to be kept exactly; none where there is no such sum.
#[derive(Debug)]
pub struct Sum<'a> {
    /// The key of the sum.
    pub key: &'a HourKey,
    /// What bills are made of.
    pub kept: &'a [Hour],
    /// The sum of the requests, or of the corrections.
    pub due: &'a [Hour],
}

/// Some requests that follow each other.
struct AuditPage<T> {
    posts: usize,
    gathered: T,
    /// What they add up to.
    due: Hours,
    sessions: OfSessions,
    unreadable: Vec<(Place, DecodeError)>,
}

/// Where an audit stands.
struct AuditProgress {
    /// What the requests from `from` on add up to, as far as they have been read.
    due: Hours,
    /// The same by session and day.
    sessions: DueSessions,
    from: Timestamp,
    /// Hour of the last of them.
    last: Timestamp,
    /// Days without details.
    gone: GoneDays,
}

impl Store {
    /// Shows `visit` all that is there at one moment: requests in order of admission, some at a time
    /// and as `gather` adds them up, and behind those of some hours their corrections and their sums.
    /// Sums of days without details are not shown.
    /// Requests are read on several threads.
    ///
    /// Errors: `Damaged`, `Unavailable`.
    pub fn audit<T: Default + Send>(
        &mut self,
        gather: impl Fn(&mut T, &Post<'_>) + Sync,
        mut visit: impl FnMut(Audited<'_, T>),
    ) -> Result<(), StoreError> {
        let work = |(): &mut (), page: Written| (AuditPage::read(&page, &gather), page);
        self.at_one_moment(|store| {
            thread::scope(|scope| store.audit_held(Lanes::new(scope, &work), &mut visit))
        })
    }

    fn audit_held<T: Send>(
        &mut self,
        mut lanes: Lanes<Written, (AuditPage<T>, Written)>,
        visit: &mut impl FnMut(Audited<'_, T>),
    ) -> Result<(), StoreError> {
        let newest = self.newest()?;
        let all = Filter::default();
        let mut start = AdmissionKey { at: all.since(), id: Vec::new() };
        let (from, last) = (Timestamp::MIN, Timestamp::MIN);
        let gone = GoneDays::of(self)?;
        let sessions = DueSessions::new(self.database.session_files()?);
        let mut progress = AuditProgress { due: Hours::default(), sessions, from, last, gone };
        let mut written = Written::default();
        loop {
            let limit = PAGE_RECORDS_MAX;
            let next = self.database.written(&all, newest, &start, limit, &mut written)?;
            let done = lanes.push(std::mem::take(&mut written));
            if let Some((page, again)) = done {
                self.audit_page(page, &mut progress, visit)?;
                written = again;
            }
            let Some(next) = next else { break };
            start = next;
        }
        for (page, _) in lanes {
            self.audit_page(page, &mut progress, visit)?;
        }
        self.audit_sums(Timestamp::MAX, &mut progress, visit)?;
        self.audit_sessions(i64::MAX, &mut progress, visit)?;
        self.database.gone_corrections(&mut |it| visit(Audited::GoneCorrection(it)))
    }

    fn audit_page<T>(
        &mut self,
        mut page: AuditPage<T>,
        progress: &mut AuditProgress,
        visit: &mut impl FnMut(Audited<'_, T>),
    ) -> Result<(), StoreError> {
        visit(Audited::Posts(page.posts, page.gathered));
        for (place, fault) in page.unreadable {
            visit(Audited::Unreadable(place, fault));
        }
        progress.sessions.add(page.sessions);
        for (key, parts) in page.due.take() {
            let AuditProgress { due, sessions, last, .. } = progress;
            let ends_days = sessions.is_due(*last, key.hour);
            if ends_days || (key.hour != *last && due.count() >= SUMS_MAX) {
                self.audit_sums(key.hour, progress, visit)?;
            }
            if ends_days {
                self.audit_sessions(day_of(key.hour.as_microsecond()), progress, visit)?;
            }
            progress.last = key.hour;
            progress.due.add_parts(key, parts);
        }
        Ok(())
    }

    /// Whole hours up to `to`, of which `progress` has the requests.
    fn audit_sums<T>(
        &mut self,
        to: Timestamp,
        progress: &mut AuditProgress,
        visit: &mut impl FnMut(Audited<'_, T>),
    ) -> Result<(), StoreError> {
        let AuditProgress { due, sessions, from, gone, .. } = progress;
        let from = std::mem::replace(from, to);
        // What ends before it begins has nothing.
        let Ok(period) = Period::new(from, to) else { return Ok(()) };
        self.database.corrections(period, None, &mut |post, correction| {
            due.add_correction(post, correction);
            sessions.add_correction(post, correction);
            visit(Audited::Correction(correction));
            ControlFlow::Continue(())
        })?;
        let mut kept = Hours::default();
        self.database.hours(period, None, Granularity::HOURS, &mut |key, hour| {
            if !gone.has_day(key.hour) {
                kept.add(key, hour);
            }
            ControlFlow::Continue(())
        })?;
        let mut kept = kept.take().peekable();
        for (key, due) in due.take().filter(|(key, _)| !gone.has_day(key.hour)) {
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

    /// Sessions of whole days up to `to`, of which `progress` has the requests and corrections.
    fn audit_sessions<T>(
        &mut self,
        to: i64,
        progress: &mut AuditProgress,
        visit: &mut impl FnMut(Audited<'_, T>),
    ) -> Result<(), StoreError> {
        let AuditProgress { sessions, gone, .. } = progress;
        sessions.compare(&mut *self.database, (to, gone), &mut |compared| {
            visit(match compared {
                Compared::Sum(sum) => Audited::Session(sum),
                Compared::Unreadable(error) => Audited::UnreadableSessions(error),
                Compared::LeftOut(error) => Audited::SessionsLeftOut(error),
            });
        })
    }
}

impl<T: Default> AuditPage<T> {
    fn read(page: &Written, gather: &impl Fn(&mut T, &Post<'_>)) -> Self {
        let mut read = Self {
            posts: page.count(),
            gathered: T::default(),
            due: Hours::default(),
            sessions: OfSessions::default(),
            unreadable: Vec::new(),
        };
        for (place, payload) in page.iter() {
            match Post::read(place, payload) {
                Ok(post) => {
                    read.due.add_post(&post);
                    read.sessions.add_post(&post);
                    gather(&mut read.gathered, &post);
                }
                Err(fault) => read.unreadable.push((place, fault)),
            }
        }
        read
    }
}
