//! Compares what sessions add up to with their requests and corrections.
//!
//! A sum has what does not add up: first and last request, agents, the largest input. So the sums are made
//! again, of some days at a time, and both are shown in the order of tenant and name. A day may have more
//! sessions than memory has room for: `runs.rs`.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::io;
use std::ops::ControlFlow;

use jiff::Timestamp;
use jiff::civil::Date;
use taximeter_database::database::Database;
use taximeter_database::day::{DAY_MICROS, date_of, day_of};
use taximeter_database::error::StoreError;
use taximeter_database::post::Post;
use taximeter_database::sessions::{SessionDay, WhichSessions, session_of};
use taximeter_ledger::Correction;
use taximeter_sessions::{DaySum, DueSum};

use super::runs::{self, Key, Merged, Runs, Sums};
use crate::details::GoneDays;

/// Sums that are held in memory: some 3 MB.
const HELD_MAX: usize = 4_096;
/// Days that are compared at once: each has a file that is open meanwhile.
const DAYS_MAX: i64 = 31;

/// What a store says of a session on a day, and what it should say. `None` where there is no such sum.
#[derive(Debug)]
pub struct SessionSum<'a> {
    /// The UTC day of admission.
    pub day: Date,
    /// The tenant that pays.
    pub tenant: &'a str,
    /// The name of the session.
    pub session: &'a str,
    /// What lists and answers are made of.
    pub kept: Option<&'a DaySum>,
    /// What the requests and their corrections add up to.
    pub due: Option<&'a DaySum>,
    /// The file of the day that has such sums, by its path in the data directory.
    pub file: Option<&'a str>,
    /// Whether the cost is part of the comparison. One in several currencies depends on the order in which
    /// requests came.
    pub with_cost: bool,
}

impl SessionSum<'_> {
    /// Whether both are the same.
    #[must_use]
    pub fn is_right(&self) -> bool {
        match (self.kept, self.due) {
            (Some(kept), Some(due)) => kept.is_of_same_requests(due, self.with_cost),
            _ => false,
        }
    }
}

/// What came out of a comparison.
#[derive(Debug)]
pub(super) enum Compared<'a> {
    Sum(SessionSum<'a>),
    /// The sums of some days cannot be read.
    Unreadable(StoreError),
    /// There are too many sums for memory, and no temporary file for the rest.
    LeftOut(io::Error),
}

/// What requests add up to by session and day.
#[derive(Debug, Default)]
pub(super) struct OfSessions(Sums);

impl OfSessions {
    /// Adds a request, if its client names a session.
    pub(super) fn add_post(&mut self, post: &Post<'_>) {
        if let Some((of, request)) = session_of(post) {
            runs::add(&mut self.0, key(of), DueSum::of(DaySum::of(&request)));
        }
    }
}

fn key(SessionDay { day, tenant, session }: SessionDay) -> Key {
    Key { tenant, session, day }
}

/// What all requests so far add up to that are not compared yet.
#[derive(Debug)]
pub(super) struct DueSessions {
    held: Sums,
    runs: Option<Runs>,
    held_max: usize,
    /// All days before this one are compared.
    from: i64,
    /// The first day of those sums.
    first: Option<i64>,
    /// Why there is nothing to compare with any more.
    failed: Option<io::Error>,
    has_failed: bool,
    /// The files of sums by day.
    files: BTreeMap<i64, String>,
}

impl DueSessions {
    pub(super) const fn new(files: BTreeMap<i64, String>) -> Self {
        Self {
            held: Sums::new(),
            runs: None,
            held_max: HELD_MAX,
            from: i64::MIN,
            first: None,
            failed: None,
            has_failed: false,
            files,
        }
    }

    /// Adds the next requests.
    pub(super) fn add(&mut self, sums: OfSessions) {
        sums.0.into_iter().for_each(|(key, due)| self.add_due(key, due));
    }

    /// Adds a correction of the request `post`.
    pub(super) fn add_correction(&mut self, post: &Post<'_>, correction: &Correction) {
        if let Some((of, request)) = session_of(post) {
            self.add_due(key(of), DueSum::of(DaySum::corrected(&request, correction)));
        }
    }

    fn add_due(&mut self, key: Key, due: DueSum) {
        if self.has_failed {
            return;
        }
        self.first = Some(self.first.map_or(key.day, |first| first.min(key.day)));
        runs::add(&mut self.held, key, due);
        if self.held.len() >= self.held_max
            && let Err(error) = self.write_run()
        {
            self.fail(error);
        }
    }

    fn write_run(&mut self) -> io::Result<()> {
        let runs = match &mut self.runs {
            Some(runs) => runs,
            none => none.insert(Runs::new()?),
        };
        runs.add(std::mem::take(&mut self.held))
    }

    fn fail(&mut self, error: io::Error) {
        (self.failed, self.has_failed) = (Some(error), true);
        (self.held, self.runs) = (Sums::new(), None);
    }

    /// Whether the days before `at` are to be compared, as far as `last` is on one of them.
    pub(super) fn is_due(&self, last: Timestamp, at: Timestamp) -> bool {
        let Some(first) = self.first else { return false };
        let day = day_of(at.as_microsecond());
        day_of(last.as_microsecond()) < day
            && (self.runs.is_some()
                || 2 * self.held.len() >= self.held_max
                || day.saturating_sub(first) >= DAYS_MAX * DAY_MICROS)
    }

    /// Compares all days before `to`, but for those that have no details. All of their requests and
    /// corrections were added.
    ///
    /// Errors: `Unavailable`.
    pub(super) fn compare(
        &mut self,
        database: &mut dyn Database,
        (to, gone): (i64, &GoneDays),
        visit: &mut dyn FnMut(Compared<'_>),
    ) -> Result<(), StoreError> {
        if let Some(error) = self.failed.take() {
            visit(Compared::LeftOut(error));
        }
        if self.has_failed || self.from >= to {
            return Ok(());
        }
        let which = WhichSessions { days: (self.from, to), tenant: None, session: None };
        (self.from, self.first) = (to, None);
        let (held, runs) = (std::mem::take(&mut self.held), self.runs.take());
        let compared = Merged::new(runs.as_ref(), held).and_then(|merged| {
            let files = &self.files;
            let mut pairs = Pairs { merged, next: None, later: Sums::new(), to, gone, files };
            pairs.advance()?;
            let asked = pairs.compare(database, which, visit)?;
            Ok((asked, pairs.later))
        });
        match compared {
            Ok((asked, later)) => {
                later.into_iter().for_each(|(key, due)| self.add_due(key, due));
                asked
            }
            Err(error) => {
                visit(Compared::LeftOut(error));
                self.has_failed = true;
                Ok(())
            }
        }
    }
}

/// Sums that are due beside those of the store.
struct Pairs<'a> {
    merged: Merged<'a>,
    /// The next one that is due.
    next: Option<(Key, DueSum)>,
    /// What is due of days that are compared later.
    later: Sums,
    /// The first such day.
    to: i64,
    gone: &'a GoneDays,
    files: &'a BTreeMap<i64, String>,
}

impl Pairs<'_> {
    /// Goes to the next one that is compared now.
    fn advance(&mut self) -> io::Result<()> {
        loop {
            match self.merged.next_sum()? {
                Some((key, due)) if key.day >= self.to => runs::add(&mut self.later, key, due),
                Some((key, _)) if is_gone(self.gone, key.day) => {}
                next => {
                    self.next = next;
                    return Ok(());
                }
            }
        }
    }

    /// Compares all. The inner error is one of the store.
    fn compare(
        &mut self,
        database: &mut dyn Database,
        which: WhichSessions<'_>,
        visit: &mut dyn FnMut(Compared<'_>),
    ) -> io::Result<Result<(), StoreError>> {
        let mut failed = Ok(());
        let asked = database.sessions(which, &mut |day, tenant, session, sum| {
            if is_gone(self.gone, day) {
                return ControlFlow::Continue(());
            }
            failed = self.show((tenant, session, day), &sum, visit);
            if failed.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        failed?;
        let is_read = asked.is_ok();
        let asked = match asked {
            Err(error @ StoreError::Unavailable { .. }) => Err(error),
            Err(error) => {
                visit(Compared::Unreadable(error));
                Ok(())
            }
            Ok(()) => Ok(()),
        };
        while let Some((key, due)) = self.next.take() {
            if is_read {
                self.show_pair((&key.tenant, &key.session, key.day), (None, Some(&due)), visit);
            }
            self.advance()?;
        }
        Ok(asked)
    }

    /// Shows a sum of the store, and what is due before it.
    fn show(
        &mut self,
        kept: (&str, &str, i64),
        sum: &DaySum,
        visit: &mut dyn FnMut(Compared<'_>),
    ) -> io::Result<()> {
        while let Some((key, due)) = &self.next {
            let of = (key.tenant.as_str(), key.session.as_str(), key.day);
            let (pair, order) = match of.cmp(&kept) {
                Ordering::Less => ((None, Some(due)), Ordering::Less),
                Ordering::Equal => ((Some(sum), Some(due)), Ordering::Equal),
                Ordering::Greater => break,
            };
            self.show_pair(of, pair, visit);
            self.advance()?;
            if order.is_eq() {
                return Ok(());
            }
        }
        self.show_pair(kept, (Some(sum), None), visit);
        Ok(())
    }

    fn show_pair(
        &self,
        (tenant, session, day): (&str, &str, i64),
        (kept, due): (Option<&DaySum>, Option<&DueSum>),
        visit: &mut dyn FnMut(Compared<'_>),
    ) {
        visit(Compared::Sum(SessionSum {
            day: date_of(day),
            tenant,
            session,
            kept,
            due: due.map(|due| &due.sum),
            file: self.files.get(&day).map(String::as_str),
            with_cost: due.is_none_or(|due| due.is_exact),
        }));
    }
}

fn is_gone(gone: &GoneDays, day: i64) -> bool {
    Timestamp::from_microsecond(day).is_ok_and(|day| gone.has_day(day))
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use taximeter_ledger::{Dimensions, FramedEntry, Place};

    use super::*;
    use crate::samples::{feed, journal, record};
    use crate::{Store, details};

    const DAY: i64 = 86_400;

    /// Thirty requests of each of three days, in order of admission: of a session each, and each of one more
    /// that is of all three days.
    fn entries() -> Vec<FramedEntry> {
        journal((0..180_u32).map(|number| {
            let mut record = record(number);
            let first: Timestamp = "2026-11-01T00:00:00Z".parse().unwrap();
            let second = DAY * i64::from(number / 60) + i64::from(number % 60);
            record.started_at = first + jiff::SignedDuration::from_secs(second);
            let is_own = number.is_multiple_of(2);
            let name = if is_own { format!("s-{:03}", 179 - number) } else { "all".to_owned() };
            let session = Some(name);
            record.dimensions = Dimensions { session, ..Dimensions::default() }.if_any();
            record
        }))
    }

    fn add(sessions: &mut DueSessions, entries: &[FramedEntry]) {
        for framed in entries {
            let payload = framed.payload.to_vec();
            let place = Place { ledger: framed.ledger, seq: framed.seq };
            let mut of_sessions = OfSessions::default();
            of_sessions.add_post(&Post::read(place, &payload).unwrap());
            sessions.add(of_sessions);
        }
    }

    /// Compares up to the first of November plus so many days. How many sums are right.
    fn compare(sessions: &mut DueSessions, store: &mut Store, days: i64) -> usize {
        let first: Timestamp = "2026-11-01T00:00:00Z".parse().unwrap();
        let to = first.as_microsecond() + days * DAY_MICROS;
        let gone = details::GoneDays::of(store).unwrap();
        let mut right = 0;
        sessions
            .compare(&mut *store.database, (to, &gone), &mut |compared| match compared {
                Compared::Sum(sum) => {
                    assert!(sum.is_right(), "{sum:?}");
                    right += 1;
                }
                other => panic!("{other:?}"),
            })
            .unwrap();
        right
    }

    #[test]
    fn days_of_more_sessions_than_memory_holds_are_compared_in_parts() {
        let dir = tempfile::tempdir().unwrap();
        let mut store = Store::open(dir.path()).unwrap();
        let entries = entries();
        store.catch_up(&mut [feed(&entries)]).unwrap();
        for held_max in [1, 7, 31, 1_000] {
            let mut sessions = DueSessions { held_max, ..DueSessions::new(BTreeMap::new()) };
            // Parts that end in the midst of a day, whose rest comes later.
            let mut step = |range: Range<usize>, days| {
                add(&mut sessions, &entries[range]);
                compare(&mut sessions, &mut store, days)
            };
            assert_eq!([step(0..90, 1), step(90..180, 2), step(180..180, 9)], [31, 31, 31]);
        }
    }

    #[test]
    fn a_day_is_due_when_it_ends_and_much_is_held() {
        let entries = entries();
        let mut sessions = DueSessions { held_max: 100, ..DueSessions::new(BTreeMap::new()) };
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        let [noon, evening] = ["2026-11-01T12:00:00Z", "2026-11-01T23:00:00Z"].map(at);
        let [next, later] = ["2026-11-02T00:00:00Z", "2026-12-02T00:00:00Z"].map(at);
        assert!(!sessions.is_due(noon, next));
        add(&mut sessions, &entries[..60]);
        assert!(!sessions.is_due(noon, next));
        assert!(sessions.is_due(noon, later));
        add(&mut sessions, &entries[60..120]);
        assert!(!sessions.is_due(noon, evening));
        assert!(sessions.is_due(noon, next));
    }
}
