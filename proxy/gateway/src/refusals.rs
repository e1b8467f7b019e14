//! Requests that have no record of their own: the gateway refused them, or they were admitted, used
//! nothing, and came in a flood. They are counted by the minute, and the last ones of each kind that
//! the gateway refused are kept to look at.
//!
//! The counts of a minute become one entry of the journal. Memory and entry are bounded, however many
//! tenants there are.

mod recent;
mod record_allowance;
mod tally;

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use jiff::Timestamp;
use taximeter_journal::Journal;
use taximeter_ledger::{
    Entry, RefusalCount, RefusalKind, Refusals as RefusalsEntry, RequestId, TenantId,
};
use uuid::Uuid;

use recent::Recent;
use record_allowance::RecordAllowance;
use tally::Tally;

pub use recent::RefusedRequest;

/// The counts of a process, shared by all its threads.
#[derive(Debug)]
pub struct Refusals {
    since: Instant,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    tally: Tally,
    allowance: RecordAllowance,
    recent: Recent,
}

impl Refusals {
    /// Nothing was counted yet.
    pub(crate) fn new(since: Instant) -> Self {
        Self { since, state: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a request of `tenant` that used nothing gets a record of its own. If not, it is to be
    /// [counted](Self::count).
    pub(crate) fn has_room(&self, now: Instant, tenant: &TenantId, status: Option<u16>) -> bool {
        let second = now.saturating_duration_since(self.since).as_secs();
        self.lock().allowance.has_room(second, tenant, status)
    }

    /// Counts a request without a record that ended at `at`.
    pub(crate) fn count(&self, at: Timestamp, kind: RefusalKind) {
        self.lock().tally.add(at, kind, 1);
    }

    /// Counts a request that the gateway refused, and keeps it among the last ones.
    pub(crate) fn refused(&self, refused: RefusedRequest) {
        let kind = RefusalKind {
            tenant: refused.tenant.clone(),
            others: false,
            reason: refused.reason.into(),
            status: refused.status,
            admitted: false,
        };
        let mut state = self.lock();
        state.tally.add(refused.at, kind, 1);
        state.recent.push(refused);
    }

    /// What is counted and not in the journal yet, by the first instant of its minute.
    pub fn unwritten(&self) -> Vec<(Timestamp, RefusalCount)> {
        self.lock().tally.counts()
    }

    /// The last requests that the gateway refused, the newest first.
    pub fn recent(&self) -> Vec<RefusedRequest> {
        self.lock().recent.newest_first()
    }

    /// Writes the counts of minutes that are over `now`, or all of them, one entry for each. What the
    /// journal does not take is written the next time.
    pub fn write(&self, journal: &Journal, gateway: &str, now: Timestamp, all: bool) {
        let taken = self.lock().tally.take(if all { None } else { Some(now) });
        for (minute, counts) in taken {
            let (id, gateway) = (RequestId(Uuid::now_v7()), gateway.to_owned());
            let entry =
                Entry::Refusals(Box::new(RefusalsEntry { id, gateway, at: now, minute, counts }));
            if journal.append(&entry).is_err()
                && let Entry::Refusals(refusals) = entry
            {
                let mut state = self.lock();
                for RefusalCount { kind, count } in refusals.counts {
                    state.tally.add(minute, kind, count);
                }
            }
        }
    }
}
