//! Keeps running totals of a journal while entries are written and when a gateway starts. Of each
//! entry it reads only what changes a sum, so a start reads millions of entries in seconds.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::str::FromStr;

use jiff::Timestamp;
use memchr::memmem;
use rust_decimal::Decimal;
use serde::Deserialize;
use serde::de::IgnoredAny;
use taximeter_json::Reader;

use crate::completion::{PendingRequest, PendingRequests};
use crate::entry::{Checkpoint, Entry};
use crate::frame::Kind;
use crate::id::RequestId;
use crate::members::{members, text};
use crate::reader::{Fault, FramedEntry};
use crate::record::{Record, RecordCost};

/// The part of an entry that changes the running totals.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change<'a> {
    /// A reservation was opened.
    Reserve(RequestId),
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
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Money<'a> {
    /// ISO 4217.
    #[serde(borrow)]
    pub currency: Cow<'a, str>,
    /// The amount.
    pub amount: Decimal,
    /// Whether it is only the known part of an unknown cost.
    #[serde(default)]
    pub at_least: bool,
}

impl<'a> Change<'a> {
    /// The change that `entry` makes.
    #[must_use]
    pub fn of(entry: &'a Entry) -> Self {
        match entry {
            Entry::Reserve(reserve) => Self::Reserve(reserve.id),
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
            Self::Reserve(id) | Self::Post(id, ..) | Self::Void(id) | Self::Progress(id) => {
                Some(*id)
            }
            Self::Correction { .. } | Self::Checkpoint | Self::Refusals => None,
        }
    }
}

/// Parses the string that comes next.
fn read<T: FromStr>(value: Reader<'_>) -> Option<T> {
    text(value)?.parse().ok()
}

impl<'a> Money<'a> {
    fn scan_change(cost: Reader<'a>, at_least: bool) -> Option<Self> {
        let [currency, amount] = members(cost, ["currency", "amount"])?;
        Some(Self { currency: Cow::Borrowed(text(currency?)?), amount: read(amount?)?, at_least })
    }

    fn of(cost: &'a RecordCost) -> Self {
        let RecordCost { currency, amount, at_least, .. } = cost;
        Self { currency: Cow::Borrowed(currency), amount: *amount, at_least: *at_least }
    }
}

#[derive(Deserialize)]
struct ReservePart {
    id: RequestId,
    started_at: Timestamp,
}

#[derive(Deserialize)]
struct EndPart<'a> {
    id: RequestId,
    ended_at: Timestamp,
    #[serde(borrow, default)]
    cost: Option<Money<'a>>,
    #[serde(borrow, default)]
    cost_known: Option<Money<'a>>,
}

#[derive(Deserialize)]
struct ProgressPart {
    id: RequestId,
    at: Timestamp,
}

#[derive(Deserialize)]
struct CorrectionPart<'a> {
    corrects: RequestId,
    made_at: Timestamp,
    #[serde(default)]
    completion: Option<IgnoredAny>,
    #[serde(borrow, default)]
    before: Option<Money<'a>>,
    #[serde(borrow, default)]
    after: Option<Money<'a>>,
}

#[derive(Deserialize)]
struct CheckpointPart {
    at: Timestamp,
}

impl FramedEntry {
    /// The time of the entry and the change that it makes. The rest of the entry is not read.
    /// # Errors
    /// [`Fault::Unreadable`] if the payload does not fit its kind.
    pub fn change(&self) -> Result<(Timestamp, Change<'_>), Fault> {
        self.scan_change().map_or_else(|| self.parse_change(), Ok)
    }

    /// Reads the same without a full parser. `None` if the entry is not laid out as this crate
    /// writes it.
    pub(crate) fn scan_change(&self) -> Option<(Timestamp, Change<'_>)> {
        let payload = Reader::compact(&self.payload);
        Some(match self.kind {
            Kind::Reserve => {
                let [id, at] = members(payload, ["id", "started_at"])?;
                (read(at?)?, Change::Reserve(read(id?)?))
            }
            // What is kept of it is in many members. There are only few of these.
            Kind::Post if may_be_pending(&self.payload) => return None,
            Kind::Post => {
                let [id, at, cost] = members(payload.clone(), ["id", "ended_at", "cost"])?;
                let is_known = |cost: &Reader<'_>| cost.clone().peek() != Some(b'n');
                let (cost, at_least) = match cost.filter(is_known) {
                    // Few costs are unknown.
                    None => {
                        let [known] = members(payload, ["cost_known"])?;
                        (known.filter(is_known), true)
                    }
                    cost => (cost, false),
                };
                let scan = |cost| Money::scan_change(cost, at_least).map(Some);
                let cost = cost.map_or(Some(None), scan)?;
                (read(at?)?, Change::Post(read(id?)?, cost, None))
            }
            Kind::Void => {
                let [id, at] = members(payload, ["id", "ended_at"])?;
                (read(at?)?, Change::Void(read(id?)?))
            }
            Kind::Progress => {
                let [id, at] = members(payload, ["id", "at"])?;
                (read(at?)?, Change::Progress(read(id?)?))
            }
            // There are only few of these.
            Kind::Correction | Kind::Checkpoint | Kind::Refusals => return None,
        })
    }

    fn parse_change(&self) -> Result<(Timestamp, Change<'_>), Fault> {
        let change = match self.kind {
            Kind::Reserve => {
                self.part(|it: ReservePart| (it.started_at, Change::Reserve(it.id)))?
            }
            Kind::Post if may_be_pending(&self.payload) => self.part(|record: Record| {
                let pending = PendingRequest::of(&record).map(Box::new);
                let cost = record.owed().map(|cost| Money {
                    currency: Cow::Owned(cost.currency.clone()),
                    amount: cost.amount,
                    at_least: cost.at_least,
                });
                (record.ended_at, Change::Post(record.id, cost, pending))
            })?,
            Kind::Post => self.part(|it: EndPart<'_>| {
                (it.ended_at, Change::Post(it.id, it.cost.or(it.cost_known), None))
            })?,
            Kind::Void => self.part(|it: EndPart<'_>| (it.ended_at, Change::Void(it.id)))?,
            Kind::Progress => self.part(|it: ProgressPart| (it.at, Change::Progress(it.id)))?,
            Kind::Correction => self.part(|it: CorrectionPart<'_>| {
                let CorrectionPart { corrects, made_at, completion, before, after } = it;
                let completes = completion.map(|_| corrects);
                (made_at, Change::Correction { before, after, completes })
            })?,
            Kind::Checkpoint => self.part(|it: CheckpointPart| (it.at, Change::Checkpoint))?,
            Kind::Refusals => self.part(|it: CheckpointPart| (it.at, Change::Refusals))?,
        };
        Ok(change)
    }

    fn part<'a, P: Deserialize<'a>, T>(&'a self, of: impl FnOnce(P) -> T) -> Result<T, Fault> {
        let part = serde_json::from_slice(&self.payload);
        part.map(of).map_err(|error| self.unreadable(&error))
    }
}

/// Whether the JSON of a record may have the flag `pending`. A quote inside a text is escaped, so
/// no text of a client looks like it.
fn may_be_pending(payload: &[u8]) -> bool {
    memmem::find(payload, b"\"pending\"").is_some()
}

/// The sums of the entries so far. A [`Checkpoint`] stores them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunningTotals {
    posts: u64,
    voids: u64,
    corrections: u64,
    costs: BTreeMap<String, Decimal>,
    unknown_cost: u64,
    /// The open reservations and their sequence numbers.
    open: HashMap<RequestId, u64>,
    pending: PendingRequests,
}

impl RunningTotals {
    /// Adds an entry. Returns false if it settles a request that is not open, or completes one that
    /// is not pending.
    pub fn add(&mut self, seq: u64, change: &Change<'_>) -> bool {
        match change {
            Change::Reserve(id) => {
                self.open.entry(*id).or_insert(seq);
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

    /// A checkpoint of these sums. It looks at all open reservations, and gives up pending requests
    /// that are too old.
    #[must_use]
    pub fn checkpoint(&mut self, at: Timestamp) -> Checkpoint {
        self.pending.drop_old(at);
        Checkpoint {
            pending: self.pending.iter().cloned().collect(),
            at,
            posts: self.posts,
            voids: self.voids,
            corrections: self.corrections,
            costs: self.costs.clone(),
            unknown_cost: self.unknown_cost,
            oldest_open: self.open.values().min().copied(),
        }
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
