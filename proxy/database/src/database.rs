//! The trait that a database implements to be a store.
//!
//! All implementations give the same answers. Shared code is outside: reading entries (`batch`,
//! `post`), adding them up per hour (`batch::Hours`), feeding (`feed`) and questions (`ask`).

use std::collections::BTreeMap;
use std::fmt;
use std::ops::ControlFlow;

use jiff::Timestamp;
use taximeter_billing::export::Entries;
use taximeter_billing::{GatewayProgress, Hour, HourKey, LostRequests, Period};
pub use taximeter_columnar::AdmissionKey;
use taximeter_ledger::{Correction, LedgerId, Place, Position, Record, RefusalCount};

use super::batch::{Added, Batch};
use super::behind::{Behind, EntryPage, Lacked};
use super::error::StoreError;
use super::gone::GoneDay;
use super::granularity::Granularity;
use super::post::Post;
use super::sessions::{SessionVisitor, WhichSessions, is_of};

/// What a store has, as nobody feeds it now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AtRest {
    /// Where its journals of requests and of corrections stood.
    pub cursors: [Option<Position>; 2],
    /// The bytes of its free pages.
    pub free_bytes: u64,
}

/// A database that keeps requests, corrections, and what both add up to by the hour.
///
/// Errors of all of it: `Damaged`, `Unavailable`. What a deadlock or a lost race undid is tried
/// again inside, a bounded number of times; `Unavailable` means that later is better than now.
pub trait Database: fmt::Debug + Send {
    /// The last entry of `journal` that is here.
    fn cursor(&mut self, journal: &str) -> Result<Option<Position>, StoreError>;

    /// Bytes of the data directory that are in pages without content, for later rows.
    fn free_bytes(&mut self) -> Result<u64, StoreError> {
        Ok(0)
    }

    /// Adds a batch: the requests and corrections that are not here yet (by their ids), what these
    /// add to their hours, and the cursor of the batch's journal.
    ///
    /// A correction whose request is not here counts in no hour until the request comes. The batches
    /// since the last [`commit`](Self::commit) are added whole or not at all. After an error none of
    /// them is here, and before the commit nothing else may be asked.
    fn add(&mut self, batch: &Batch<'_>) -> Result<Added, StoreError>;

    /// Keeps what was added.
    fn commit(&mut self) -> Result<(), StoreError>;

    /// Begins anew: an empty store, `refill`, then what was here before and is not any more. Others
    /// see the store as it was until all of it is done, and after an error.
    fn rebuild(&mut self, refill: &mut Refill<'_>) -> Result<Rebuilt, StoreError>;

    /// From here to [`end_correcting`](Self::end_correcting), or to the end of the connection, nobody
    /// else writes corrections of what is here; `now` is for people. The gateway that is called
    /// `lost` will not feed any more.
    ///
    /// Errors: `Correcting`, `Unfinished`.
    fn begin_correcting(&mut self, now: Timestamp, lost: Option<&str>) -> Result<(), StoreError>;

    /// All corrections that were written are here.
    fn end_correcting(&mut self) -> Result<(), StoreError>;

    /// From here to the next [`release`](Self::release), what is asked is answered as of one moment.
    fn hold(&mut self) -> Result<(), StoreError>;

    /// Ends a [`hold`](Self::hold).
    fn release(&mut self) -> Result<(), StoreError>;

    /// The number of the newest request, 0 when there is none. Numbers are given in order of
    /// arrival, and none is seen before all lower ones are.
    fn newest(&mut self) -> Result<i64, StoreError>;

    /// Up to which entry of `journal`, which is one of `ledger`, no request is in the tables: it has no
    /// further request there, or files have them. `None` of a database without files: its tables keep
    /// them.
    fn sealed_through(
        &mut self,
        _journal: &str,
        _ledger: LedgerId,
    ) -> Result<Option<u64>, StoreError> {
        Ok(None)
    }

    /// What is here of entries of a journal, in order: at most `limit` entries, unless more have one
    /// number. All up to the last one that is asked for are here, as far as they have not gone.
    fn behind(&mut self, asked: &Behind<'_>, limit: usize) -> Result<EntryPage, StoreError>;

    /// The first entry of a ledger that a request here is of, if there is one.
    fn first_entry(&mut self, ledger: LedgerId) -> Result<Option<u64>, StoreError>;

    /// How many requests are behind an entry of the journal of requests, which is one of `ledger`, and
    /// what the files take that have none of them.
    fn lacked(&mut self, ledger: LedgerId, after: u64) -> Result<Lacked, StoreError>;

    /// Compares each file of requests with what was written, and shows what is wrong.
    fn check_days(&mut self, _tell: &mut dyn FnMut(String)) -> Result<SoundDays, StoreError> {
        Ok(SoundDays::default())
    }

    /// The first instant with details, if any are gone.
    fn details_from(&mut self) -> Result<Option<Timestamp>, StoreError> {
        Ok(None)
    }

    /// Removes at most so many of the oldest requests of days that end up to `before`, and notes their
    /// days: how many. Their hours stay. A store in files does this a day at a time.
    fn remove_details(
        &mut self,
        _before: Timestamp,
        _rows_max: u32,
        _now: Timestamp,
    ) -> Result<u64, StoreError> {
        Ok(0)
    }

    /// Notes for how many days the gateway keeps details: the most days of all gateways of the store.
    fn keep_days(&mut self, own: u32) -> Result<u32, StoreError> {
        Ok(own)
    }

    /// The requests of which nothing is left, if there are any.
    fn lost(&mut self) -> Result<Option<LostRequests>, StoreError> {
        Ok(None)
    }

    /// Looks, once in the life of a new store, whether it has as many requests as there were. What it lacks
    /// ended before this time.
    fn check_whole(&mut self, _posts: u64, _before: Timestamp) -> Result<(), StoreError> {
        Ok(())
    }

    /// The days without details, in order.
    fn gone_days(&mut self) -> Result<Vec<GoneDay>, StoreError> {
        Ok(Vec::new())
    }

    /// Shows each correction of a request that was admitted on a day without details.
    fn gone_corrections(&mut self, _visit: &mut dyn FnMut(&Correction)) -> Result<(), StoreError> {
        Ok(())
    }

    /// Compares each file of hours with what was written, and shows what is wrong. How many are as they
    /// were written, and how many rows they have.
    fn check_hours(&mut self, _tell: &mut dyn FnMut(String)) -> Result<SoundHours, StoreError> {
        Ok(SoundHours::default())
    }

    /// Shows each hour of whole hours `hours`, of one tenant or of all, in order of time; of one
    /// key several where their sum would be too large. What `granularity` does not tell apart comes in
    /// one sum, or in a few, each with the first of its hours, in any order.
    fn hours(
        &mut self,
        hours: Period,
        tenant: Option<&str>,
        granularity: Granularity<'_>,
        visit: &mut dyn FnMut(HourKey, Hour) -> ControlFlow<()>,
    ) -> Result<(), StoreError>;

    /// Shows what sessions add up to, in the order of tenant and name: a sum for each day of a session.
    fn sessions(
        &mut self,
        which: WhichSessions<'_>,
        visit: &mut SessionVisitor<'_>,
    ) -> Result<(), StoreError>;

    /// The files that have sums of sessions, by the first instant of their day: their paths in the data
    /// directory.
    fn session_files(&mut self) -> Result<BTreeMap<i64, String>, StoreError> {
        Ok(BTreeMap::new())
    }

    /// Shows each request that was admitted in `period`, in order of admission.
    fn posts(
        &mut self,
        period: Period,
        tenant: Option<&str>,
        visit: &mut dyn FnMut(&Post<'_>) -> ControlFlow<()>,
    ) -> Result<(), StoreError>;

    /// The same of the requests of one session of `tenant`.
    fn session_posts(
        &mut self,
        period: Period,
        (tenant, session): (&str, &str),
        visit: &mut dyn FnMut(&Post<'_>) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        self.posts(period, Some(tenant), &mut |post| {
            if is_of(post, session) { visit(post) } else { ControlFlow::Continue(()) }
        })
    }

    /// The same as [`admitted`](Self::admitted), not read yet, in place of what `page` has; and where
    /// more may follow.
    fn written(
        &mut self,
        filter: &Filter,
        newest: i64,
        start: &AdmissionKey,
        limit: u32,
        page: &mut Written,
    ) -> Result<Option<AdmissionKey>, StoreError>;

    /// Shows each correction of a request that was admitted in `period` and is here, beside its
    /// request; of one request in the order in which they were written.
    fn corrections(
        &mut self,
        period: Period,
        tenant: Option<&str>,
        visit: &mut dyn FnMut(&Post<'_>, &Correction) -> ControlFlow<()>,
    ) -> Result<(), StoreError>;

    /// Shows how many requests without a record there were, in each part of `period` that is so many
    /// microseconds long, by the first instant of the part and in order of time.
    fn refusals(
        &mut self,
        period: Period,
        tenant: Option<&str>,
        micros: i64,
        visit: &mut dyn FnMut(Timestamp, RefusalCount) -> ControlFlow<()>,
    ) -> Result<(), StoreError>;

    /// How far the gateways are whose journals of requests are here.
    fn progress(&mut self) -> Result<Vec<GatewayProgress>, StoreError>;

    /// The signed statements of `tenant` for `period` that were issued, in order of their numbers.
    fn statements(&mut self, tenant: &str, period: Period) -> Result<Vec<String>, StoreError>;

    /// All signed statements that were issued; those of one tenant and period in order.
    fn all_statements(&mut self) -> Result<Vec<String>, StoreError>;

    /// Keeps a signed statement under the next `number`. Whether that number was free.
    fn issue(
        &mut self,
        tenant: &str,
        period: Period,
        number: u32,
        signed: &str,
    ) -> Result<bool, StoreError>;

    /// How many tenants have requests that were admitted in `period`; 1000 stands for more.
    fn tenants(&mut self, period: Period, tenant: Option<&str>) -> Result<u64, StoreError>;

    /// Which entries of which journals those requests are that have used something, and how many
    /// corrections there are of them.
    fn entries(&mut self, period: Period, tenant: Option<&str>) -> Result<Entries, StoreError>;

    /// The first `limit` records in order of admission with a number up to `newest`, from `start`
    /// on.
    fn admitted(
        &mut self,
        filter: &Filter,
        newest: i64,
        start: &AdmissionKey,
        limit: u32,
    ) -> Result<Vec<(AdmissionKey, Record)>, StoreError>;

    /// The last `limit` records in order of admission with a number up to `newest`, before `end`;
    /// the last one first.
    fn admitted_before(
        &mut self,
        filter: &Filter,
        newest: i64,
        end: &AdmissionKey,
        limit: u32,
    ) -> Result<Vec<(AdmissionKey, Record)>, StoreError>;

    /// Where the last `count` of what `admitted` shows begin; `None` when there are fewer.
    fn key_of_last(
        &mut self,
        filter: &Filter,
        newest: i64,
        count: u32,
    ) -> Result<Option<AdmissionKey>, StoreError>;

    /// The first `limit` records in order of arrival with a number above `after` and up to
    /// `newest`.
    fn arrived(
        &mut self,
        filter: &Filter,
        after: i64,
        newest: i64,
        limit: u32,
    ) -> Result<Vec<(i64, Record)>, StoreError>;
}

/// Fills an empty store.
pub type Refill<'a> = dyn FnMut(&mut dyn Database) -> Result<(), StoreError> + 'a;

/// What a rebuild found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rebuilt {
    /// Requests that it kept although the journals do not have them.
    pub kept_records: u64,
    /// The same of corrections.
    pub kept_corrections: u64,
    /// Files of sessions that did not have what their requests add up to.
    pub wrong_sessions: Vec<WrongSessions>,
}

/// A file of sessions that does not have what its requests add up to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrongSessions {
    /// Its path in the data directory.
    pub file: String,
    /// What became of it.
    pub cure: SessionsCure,
}

/// What becomes of a file of sessions that has wrong sums.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionsCure {
    /// It is written again from the requests.
    Written,
    /// The store has the sums of the requests, and a gateway writes the file again.
    Counted,
    /// It stays as it is: no file has the requests of its day.
    Kept,
}

/// Files of requests that are as they were written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SoundDays {
    /// How many files.
    pub files: u64,
    /// Their requests.
    pub requests: u64,
}

/// Files of hours that are as they were written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SoundHours {
    /// How many files.
    pub files: u64,
    /// Their rows.
    pub rows: u64,
}

/// Complete payloads of requests, one after the other in one piece of memory. The next ones
/// are read into the same memory.
#[derive(Debug, Default)]
pub struct Written {
    records: Vec<u8>,
    /// Where each one's entry is in a journal, and where it ends here.
    ends: Vec<(Place, usize)>,
}

impl Written {
    /// How many.
    pub const fn count(&self) -> usize {
        self.ends.len()
    }

    /// Each request with where its entry is.
    pub fn iter(&self) -> impl Iterator<Item = (Place, &[u8])> {
        let mut start = 0;
        self.ends.iter().map(move |(place, end)| {
            let record = self.records.get(start..*end).unwrap_or_default();
            start = *end;
            (*place, record)
        })
    }

    /// Adds a request with its complete payload.
    pub fn push(&mut self, place: Place, payload: &[u8]) {
        self.records.extend_from_slice(payload);
        self.ends.push((place, self.records.len()));
    }

    /// Holds nothing any more but its memory.
    pub fn clear(&mut self) {
        self.records.clear();
        self.ends.clear();
    }
}

/// A filter of records.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// Only this tenant, if set.
    pub tenant: Option<String>,
    /// Only requests that were admitted at or after this time, to the microsecond.
    pub from: Option<Timestamp>,
    /// Only requests that were admitted before this time, to the microsecond.
    pub to: Option<Timestamp>,
}

impl Filter {
    /// Admitted at or after, in microseconds since 1970.
    pub fn since(&self) -> i64 {
        self.from.map_or(i64::MIN, Timestamp::as_microsecond)
    }

    /// Admitted before, in microseconds since 1970.
    pub fn before(&self) -> i64 {
        self.to.map_or(i64::MAX, Timestamp::as_microsecond)
    }
}
