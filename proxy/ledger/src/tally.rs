//! What entries add up to while they are written, and what a start reads of them: as much of each
//! entry as changes a sum, so that millions take seconds.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::str::FromStr;

use jiff::Timestamp;
use rust_decimal::Decimal;
use serde::Deserialize;
use taximeter_json::Reader;

use crate::entry::{Checkpoint, Entry};
use crate::frame::Kind;
use crate::id::RequestId;
use crate::members::{members, text};
use crate::reader::{Fault, Framed};
use crate::record::RecordCost;

/// The part of an entry that changes what entries add up to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change<'a> {
    /// A request is open.
    Reserve(RequestId),
    /// It was posted, at a cost that may be unknown.
    Post(RequestId, Option<Money<'a>>),
    /// It was voided.
    Void(RequestId),
    /// It runs.
    Progress(RequestId),
    /// One cost takes the place of another.
    Correction {
        /// Until now.
        before: Option<Money<'a>>,
        /// From now on.
        after: Option<Money<'a>>,
    },
    /// Nothing: it says what the others do.
    Checkpoint,
}

/// An amount of a currency.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Money<'a> {
    /// ISO 4217.
    #[serde(borrow)]
    pub currency: Cow<'a, str>,
    /// What is owed.
    pub amount: Decimal,
}

impl<'a> Change<'a> {
    /// What `entry` changes.
    #[must_use]
    pub fn of(entry: &'a Entry) -> Self {
        match entry {
            Entry::Reserve(reserve) => Self::Reserve(reserve.id),
            Entry::Post(record) => Self::Post(record.id, record.cost.as_ref().map(Money::of)),
            Entry::Void(void) => Self::Void(void.id),
            Entry::Progress(progress) => Self::Progress(progress.id),
            Entry::Correction(correction) => Self::Correction {
                before: correction.before.as_ref().map(Money::of),
                after: correction.after.as_ref().map(Money::of),
            },
            Entry::Checkpoint(_) => Self::Checkpoint,
        }
    }
}

impl Change<'_> {
    /// Which request it is of; corrections and checkpoints are of none that runs.
    #[must_use]
    pub const fn request(&self) -> Option<RequestId> {
        match self {
            Self::Reserve(id) | Self::Post(id, _) | Self::Void(id) | Self::Progress(id) => {
                Some(*id)
            }
            Self::Correction { .. } | Self::Checkpoint => None,
        }
    }
}

/// What a text says.
fn read<T: FromStr>(value: Reader<'_>) -> Option<T> {
    text(value)?.parse().ok()
}

impl<'a> Money<'a> {
    fn glance(cost: Reader<'a>) -> Option<Self> {
        let [currency, amount] = members(cost, ["currency", "amount"])?;
        Some(Self { currency: Cow::Borrowed(text(currency?)?), amount: read(amount?)? })
    }

    fn of(cost: &'a RecordCost) -> Self {
        Self { currency: Cow::Borrowed(&cost.currency), amount: cost.amount }
    }
}

#[derive(Deserialize)]
struct Reserved {
    id: RequestId,
    started_at: Timestamp,
}

#[derive(Deserialize)]
struct Ended<'a> {
    id: RequestId,
    ended_at: Timestamp,
    #[serde(borrow, default)]
    cost: Option<Money<'a>>,
}

#[derive(Deserialize)]
struct Running {
    id: RequestId,
    at: Timestamp,
}

#[derive(Deserialize)]
struct Corrected<'a> {
    made_at: Timestamp,
    #[serde(borrow, default)]
    before: Option<Money<'a>>,
    #[serde(borrow, default)]
    after: Option<Money<'a>>,
}

#[derive(Deserialize)]
struct Checked {
    at: Timestamp,
}

impl Framed {
    /// What the entry changes, and when it was made; the rest of it is not read.
    ///
    /// # Errors
    /// [`Fault::Unreadable`] when the payload is not what its kind says.
    pub fn change(&self) -> Result<(Timestamp, Change<'_>), Fault> {
        self.glance().map_or_else(|| self.parsed_change(), Ok)
    }

    /// The same at a fraction of the cost, of an entry that is laid out as we write them.
    pub(crate) fn glance(&self) -> Option<(Timestamp, Change<'_>)> {
        let payload = Reader::compact(&self.payload);
        Some(match self.kind {
            Kind::Reserve => {
                let [id, at] = members(payload, ["id", "started_at"])?;
                (read(at?)?, Change::Reserve(read(id?)?))
            }
            Kind::Post => {
                let [id, at, cost] = members(payload, ["id", "ended_at", "cost"])?;
                let cost = cost
                    .filter(|cost| cost.clone().peek() != Some(b'n'))
                    .map_or(Some(None), |cost| Money::glance(cost).map(Some))?;
                (read(at?)?, Change::Post(read(id?)?, cost))
            }
            Kind::Void => {
                let [id, at] = members(payload, ["id", "ended_at"])?;
                (read(at?)?, Change::Void(read(id?)?))
            }
            Kind::Progress => {
                let [id, at] = members(payload, ["id", "at"])?;
                (read(at?)?, Change::Progress(read(id?)?))
            }
            // They are few.
            Kind::Correction | Kind::Checkpoint => return None,
        })
    }

    fn parsed_change(&self) -> Result<(Timestamp, Change<'_>), Fault> {
        let change = match self.kind {
            Kind::Reserve => self.part(|it: Reserved| (it.started_at, Change::Reserve(it.id)))?,
            Kind::Post => self.part(|it: Ended<'_>| (it.ended_at, Change::Post(it.id, it.cost)))?,
            Kind::Void => self.part(|it: Ended<'_>| (it.ended_at, Change::Void(it.id)))?,
            Kind::Progress => self.part(|it: Running| (it.at, Change::Progress(it.id)))?,
            Kind::Correction => self.part(|Corrected { made_at, before, after }| {
                (made_at, Change::Correction { before, after })
            })?,
            Kind::Checkpoint => self.part(|it: Checked| (it.at, Change::Checkpoint))?,
        };
        Ok(change)
    }

    fn part<'a, P: Deserialize<'a>, T>(&'a self, of: impl FnOnce(P) -> T) -> Result<T, Fault> {
        let part = serde_json::from_slice(&self.payload);
        part.map(of).map_err(|error| self.unreadable(&error))
    }
}

/// What the entries so far add up to, as a [`Checkpoint`] says it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tally {
    posts: u64,
    voids: u64,
    corrections: u64,
    costs: BTreeMap<String, Decimal>,
    unknown_cost: u64,
    /// Reserved and not settled, with the sequence number of the reservation.
    open: HashMap<RequestId, u64>,
}

impl Tally {
    /// Adds an entry. Whether it fits: a request that is settled should be open.
    pub fn add(&mut self, seq: u64, change: &Change<'_>) -> bool {
        match change {
            Change::Reserve(id) => {
                self.open.entry(*id).or_insert(seq);
                true
            }
            Change::Post(id, cost) => {
                self.posts += 1;
                self.owe(cost.as_ref());
                self.open.remove(id).is_some()
            }
            Change::Void(id) => {
                self.voids += 1;
                self.open.remove(id).is_some()
            }
            Change::Correction { before, after } => {
                self.corrections += 1;
                match before {
                    None => self.unknown_cost = self.unknown_cost.saturating_sub(1),
                    Some(before) => self.sum(&before.currency, -before.amount),
                }
                self.owe(after.as_ref());
                true
            }
            Change::Progress(_) | Change::Checkpoint => true,
        }
    }

    /// A reservation that cannot be read is as if it were not there.
    pub fn forget(&mut self, id: &RequestId) {
        self.open.remove(id);
    }

    /// Takes the sums of a checkpoint for those so far. What is open stays.
    pub fn go_on_from(&mut self, checkpoint: &Checkpoint) {
        let Checkpoint { posts, voids, corrections, costs, unknown_cost, at: _, oldest_open: _ } =
            checkpoint.clone();
        let open = std::mem::take(&mut self.open);
        *self = Self { posts, voids, corrections, costs, unknown_cost, open };
    }

    /// What it has come to at `at`. Looks at all that is open.
    #[must_use]
    pub fn checkpoint(&self, at: Timestamp) -> Checkpoint {
        Checkpoint {
            at,
            posts: self.posts,
            voids: self.voids,
            corrections: self.corrections,
            costs: self.costs.clone(),
            unknown_cost: self.unknown_cost,
            oldest_open: self.open.values().min().copied(),
        }
    }

    fn owe(&mut self, cost: Option<&Money<'_>>) {
        match cost {
            None => self.unknown_cost += 1,
            Some(cost) => self.sum(&cost.currency, cost.amount),
        }
    }

    /// A sum that a decimal cannot hold stays at its bound, which no true sum is.
    fn sum(&mut self, currency: &str, amount: Decimal) {
        if let Some(sum) = self.costs.get_mut(currency) {
            *sum = sum.saturating_add(amount);
        } else {
            self.costs.insert(currency.to_owned(), amount);
        }
    }
}
