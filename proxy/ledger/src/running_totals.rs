//! Keeps running totals of a journal while entries are written and when a gateway starts. Of each
//! entry it reads only what changes a sum, so a start reads millions of entries in seconds.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use jiff::Timestamp;
use rust_decimal::Decimal;

use crate::carried::{CarriedRequest, KeptEntry};
use crate::completion::{PendingRequest, PendingRequests};
use crate::encoding;
use crate::entry::{Checkpoint, Entry};
use crate::framed::{Fault, FramedEntry};
use crate::id::RequestId;
use crate::kind::Kind;

use crate::record::{Record, RecordCost};

/// The part of an entry that changes the running totals.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change<'a> {
    /// A reservation was opened, at this admission.
    Reserve(RequestId, Timestamp),
    /// The request was posted. Its cost may be unknown, or known in part, and its usage may be
    /// pending.
    Post(RequestId, Option<Money<'a>>, Option<Box<PendingRequest>>),
    /// The request was voided.
    Void(RequestId),
    /// The request is running.
    Progress(RequestId),
    /// A new cost replaces an old one.
    Correction {
        /// The cost until now.
        before: Option<Money<'a>>,
        /// The cost from now on.
        after: Option<Money<'a>>,
        /// The pending request that it completes.
        completes: Option<RequestId>,
    },
    /// A checkpoint changes nothing.
    Checkpoint,
    /// Counts of requests without a record change nothing.
    Refusals,
}

/// An amount in a currency.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Money<'a> {
    /// ISO 4217.
    pub currency: Cow<'a, str>,
    /// The amount.
    pub amount: Decimal,
    /// Whether it is only the known part of an unknown cost.
    pub at_least: bool,
}

impl<'a> Change<'a> {
    /// The change that `entry` makes.
    #[must_use]
    pub fn of(entry: &'a Entry) -> Self {
        match entry {
            Entry::Reserve(reserve) => Self::Reserve(reserve.id, reserve.started_at),
            Entry::Post(record) => Self::of_post(record),
            Entry::Void(void) => Self::Void(void.id),
            Entry::Progress(progress) => Self::Progress(progress.id),
            Entry::Correction(correction) => Self::Correction {
                before: correction.before.as_ref().map(Money::of),
                after: correction.after.as_ref().map(Money::of),
                completes: correction.completion.is_some().then_some(correction.corrects),
            },
            Entry::Checkpoint(_) => Self::Checkpoint,
            Entry::Refusals(_) => Self::Refusals,
        }
    }

    fn of_post(record: &'a Record) -> Self {
        let pending = PendingRequest::of(record).map(Box::new);
        Self::Post(record.id, record.owed().map(Money::of), pending)
    }
}

impl Change<'_> {
    /// The request of the entry. `None` for corrections and checkpoints.
    #[must_use]
    pub const fn request(&self) -> Option<RequestId> {
        match self {
            Self::Reserve(id, _) | Self::Post(id, ..) | Self::Void(id) | Self::Progress(id) => {
                Some(*id)
            }
            Self::Correction { .. } | Self::Checkpoint | Self::Refusals => None,
        }
    }
}

impl<'a> Money<'a> {
    fn of(cost: &'a RecordCost) -> Self {
        let RecordCost { currency, amount, at_least, .. } = cost;
        Self { currency: Cow::Borrowed(currency), amount: *amount, at_least: *at_least }
    }
}

impl FramedEntry {
    /// The time of the entry and the change that it makes. Of reservations and posts only what
    /// changes a sum is read, because a start reads millions of them.
    /// # Errors
    /// [`Fault::Unreadable`] if the payload does not fit its kind.
    pub fn change(&self) -> Result<(Timestamp, Change<'static>), Fault> {
        if let Some(reason) = &self.fault {
            return Err(self.unreadable(reason));
        }
        let glance = match self.kind {
            Kind::Reserve => encoding::glance_at_reserve(&self.payload)
                .map(|(id, at)| Some((at, Change::Reserve(id, at)))),
            Kind::Post => encoding::glance_at_post(&self.payload).map(|post| {
                let post = post?;
                let cost = post.owed.map(Money::from);
                Some((post.ended_at, Change::Post(post.id, cost, None)))
            }),
            _ => Ok(None),
        };
        match glance.map_err(|error| self.unreadable(&error))? {
            Some(change) => Ok(change),
            // There are only few of the others.
            None => {
                let entry = self.entry()?;
                Ok((entry.at(), Change::of(&entry).into_owned()))
            }
        }
    }
}

impl From<RecordCost> for Money<'static> {
    fn from(cost: RecordCost) -> Self {
        let RecordCost { currency, amount, at_least, .. } = cost;
        Self { currency: Cow::Owned(currency), amount, at_least }
    }
}

impl Money<'_> {
    fn into_owned(self) -> Money<'static> {
        let Self { currency, amount, at_least } = self;
        Money { currency: Cow::Owned(currency.into_owned()), amount, at_least }
    }
}

impl Change<'_> {
    /// The same, without the entry.
    fn into_owned(self) -> Change<'static> {
        let own = |money: Option<Money<'_>>| money.map(Money::into_owned);
        match self {
            Self::Reserve(id, at) => Change::Reserve(id, at),
            Self::Post(id, cost, pending) => Change::Post(id, own(cost), pending),
            Self::Void(id) => Change::Void(id),
            Self::Progress(id) => Change::Progress(id),
            Self::Correction { before, after, completes } => {
                Change::Correction { before: own(before), after: own(after), completes }
            }
            Self::Checkpoint => Change::Checkpoint,
            Self::Refusals => Change::Refusals,
        }
    }
}

/// The sums of the entries so far. A [`Checkpoint`] stores them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunningTotals {
    posts: u64,
    voids: u64,
    corrections: u64,
    costs: BTreeMap<String, Decimal>,
    unknown_cost: u64,
    /// The open reservations.
    open: HashMap<RequestId, OpenRequest>,
    pending: PendingRequests,
}

/// An open reservation.
#[derive(Debug, Clone, PartialEq, Eq)]
struct OpenRequest {
    seq: u64,
    started_at: Timestamp,
    /// `None` where nobody carries it over.
    kept: Option<CarriedRequest>,
}

impl RunningTotals {
    /// Adds an entry as [`add`](Self::add) does, and keeps its payload as long as its request is
    /// open and a new segment has to carry it over.
    pub fn add_and_keep(&mut self, seq: u64, change: &Change<'_>, payload: &[u8]) -> bool {
        let kept = || KeptEntry { seq, payload: Arc::from(payload) };
        match change {
            Change::Reserve(id, started_at) => {
                self.open.entry(*id).or_insert_with(|| OpenRequest {
                    seq,
                    started_at: *started_at,
                    kept: Some(CarriedRequest { reserve: kept(), progress: None }),
                });
                true
            }
            Change::Progress(id) => {
                let open = self.open.get_mut(id).and_then(|open| open.kept.as_mut());
                if let Some(open) = open {
                    open.progress = Some(kept());
                }
                true
            }
            _ => self.add(seq, change),
        }
    }

    /// The open requests whose payloads are kept, in no order.
    #[must_use]
    pub fn carried(&self) -> Vec<CarriedRequest> {
        self.open.values().filter_map(|open| open.kept.clone()).collect()
    }

    /// Adds an entry. Returns false if it settles a request that is not open, or completes one that
    /// is not pending.
    pub fn add(&mut self, seq: u64, change: &Change<'_>) -> bool {
        match change {
            Change::Reserve(id, started_at) => {
                let started_at = *started_at;
                self.open.entry(*id).or_insert(OpenRequest { seq, started_at, kept: None });
                true
            }
            Change::Post(id, cost, pending) => {
                self.posts += 1;
                self.add_cost(cost.as_ref());
                if let Some(pending) = pending {
                    self.pending.add(pending);
                }
                self.open.remove(id).is_some()
            }
            Change::Void(id) => {
                self.voids += 1;
                self.open.remove(id).is_some()
            }
            Change::Correction { completes: Some(id), .. } if !self.pending.remove(*id) => false,
            Change::Correction { before, after, completes: _ } => {
                self.corrections += 1;
                if before.as_ref().is_none_or(|before| before.at_least) {
                    self.unknown_cost = self.unknown_cost.saturating_sub(1);
                }
                if let Some(before) = before {
                    self.sum(&before.currency, -before.amount);
                }
                self.add_cost(after.as_ref());
                true
            }
            Change::Progress(_) | Change::Checkpoint | Change::Refusals => true,
        }
    }

    /// Removes a reservation that cannot be read.
    pub fn drop_reservation(&mut self, id: &RequestId) {
        self.open.remove(id);
    }

    /// Replaces the sums with those of a checkpoint. Keeps the open reservations.
    pub fn restore(&mut self, checkpoint: &Checkpoint) {
        let Checkpoint { posts, voids, corrections, costs, unknown_cost, pending, .. } =
            checkpoint.clone();
        let open = std::mem::take(&mut self.open);
        let pending = pending.iter().collect();
        *self = Self { posts, voids, corrections, costs, unknown_cost, open, pending };
    }

    /// The requests whose usage is pending.
    #[must_use]
    pub const fn pending(&self) -> &PendingRequests {
        &self.pending
    }

    /// Gives up the pending requests that are too old at `now`: a time that nobody doubts.
    pub fn drop_old_pending(&mut self, now: Timestamp) {
        self.pending.drop_old(now);
    }

    /// A checkpoint of these sums. It looks at all open reservations.
    #[must_use]
    pub fn checkpoint(&self, at: Timestamp) -> Checkpoint {
        Checkpoint {
            pending: self.pending.iter().cloned().collect(),
            at,
            posts: self.posts,
            voids: self.voids,
            corrections: self.corrections,
            costs: self.costs.clone(),
            unknown_cost: self.unknown_cost,
            oldest_open: self.open.values().map(|open| open.seq).min(),
            settled: None,
        }
    }

    /// Every request that was admitted before this time has ended, at the time `at`.
    #[must_use]
    pub fn settled_until(&self, at: Timestamp) -> Timestamp {
        self.open.values().map(|open| open.started_at).fold(at, Timestamp::min)
    }

    fn add_cost(&mut self, cost: Option<&Money<'_>>) {
        self.unknown_cost += u64::from(cost.is_none_or(|cost| cost.at_least));
        if let Some(cost) = cost {
            self.sum(&cost.currency, cost.amount);
        }
    }

    /// Adds to a sum. A sum that a decimal cannot hold stays at the largest decimal.
    fn sum(&mut self, currency: &str, amount: Decimal) {
        if let Some(sum) = self.costs.get_mut(currency) {
            *sum = sum.saturating_add(amount);
        } else {
            self.costs.insert(currency.to_owned(), amount);
        }
    }
}
