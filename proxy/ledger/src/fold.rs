//! What the entries add up to: open reservations and balances.

use std::collections::{BTreeMap, HashMap};

use jiff::{Timestamp, Unit};
use rust_decimal::Decimal;

use crate::entry::{Correction, Entry, Progress, Reserve};
use crate::id::{RequestId, TenantId};
use crate::id_set::IdSet;
use crate::record::{End, Record, RecordCost, RecordTiming};

/// The fold of all entries so far. Repeated entries count once; to know them, 16 bytes are kept of
/// each request and each correction.
#[derive(Debug, Clone, Default)]
pub struct Replay {
    seq: u64,
    open: HashMap<RequestId, Open>,
    posted: IdSet,
    voided: IdSet,
    balances: BTreeMap<TenantId, Balance>,
    corrected: IdSet,
    posts: u64,
    voids: u64,
    corrections: u64,
    repeats: u64,
    last_sign_of_life: Option<Timestamp>,
}

/// A reservation that is not settled, and what it has used so far.
#[derive(Debug, Clone, PartialEq)]
pub struct Open {
    /// As it was admitted.
    pub reserve: Reserve,
    /// The last that was said of it while it ran.
    pub progress: Option<Progress>,
}

/// What one tenant has reserved and owes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Balance {
    /// Worst case of the open reservations, in the book's currency; those without a bound add
    /// nothing.
    pub reserved: Decimal,
    /// Sum of the posts with a known cost, by currency, as corrections have them.
    pub posted: BTreeMap<String, Decimal>,
    /// Posts with an unknown cost, as corrections have them.
    pub unknown_cost: u64,
}

/// How a reservation was settled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Settlement {
    /// A post.
    Post,
    /// A void.
    Void,
}

/// Entries that cannot all be true. The later one is left out of the fold.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Contradiction {
    /// Entries are missing or out of order.
    #[error("entry {found} follows entry {last}")]
    Gap {
        /// The last one folded.
        last: u64,
        /// The one that came.
        found: u64,
    },
    /// Settled without a reservation.
    #[error("entry {seq} settles request {id}, which was never reserved")]
    NotReserved {
        /// Which entry.
        seq: u64,
        /// Which request.
        id: RequestId,
    },
    /// Both posted and voided.
    #[error("entry {seq} settles request {id} a second time, in another way")]
    SettledTwice {
        /// Which entry.
        seq: u64,
        /// Which request.
        id: RequestId,
    },
    /// Reserved by one, posted to another.
    #[error("entry {seq} posts request {id} to another tenant than it was reserved for")]
    TenantDiffers {
        /// Which entry.
        seq: u64,
        /// Which request.
        id: RequestId,
    },
    /// Corrects what was not posted.
    #[error("entry {seq} corrects request {id}, which was never posted")]
    NotPosted {
        /// Which entry.
        seq: u64,
        /// Which request.
        id: RequestId,
    },
    /// A sum that a decimal cannot hold.
    #[error("entry {seq} makes the balance of tenant {tenant} overflow")]
    Overflow {
        /// Which entry.
        seq: u64,
        /// Whose balance.
        tenant: TenantId,
    },
}

impl Replay {
    /// Adds the next entry and its sequence number.
    ///
    /// # Errors
    /// When it contradicts the entries before it; its sequence number is taken, nothing else of it.
    pub fn apply(&mut self, seq: u64, entry: Entry) -> Result<(), Contradiction> {
        if self.seq != 0 && seq != self.seq + 1 {
            return Err(Contradiction::Gap { last: self.seq, found: seq });
        }
        self.seq = seq;
        self.last_sign_of_life = self.last_sign_of_life.max(Some(match &entry {
            Entry::Reserve(reserve) => reserve.started_at,
            Entry::Post(record) => record.ended_at,
            Entry::Void(void) => void.ended_at,
            Entry::Progress(progress) => progress.at,
            Entry::Correction(correction) => correction.made_at,
            Entry::Checkpoint(checkpoint) => checkpoint.at,
        }));
        match entry {
            Entry::Reserve(reserve) => self.reserve(seq, *reserve),
            Entry::Post(record) => self.post(seq, &record),
            Entry::Void(void) => {
                if self.settles(seq, void.id, Settlement::Void)? {
                    self.close(void.id, Settlement::Void);
                    self.voids += 1;
                }
                Ok(())
            }
            Entry::Progress(progress) => {
                if let Some(open) = self.open.get_mut(&progress.id) {
                    open.progress = Some(*progress);
                }
                Ok(())
            }
            Entry::Correction(correction) => self.correct(seq, &correction),
            Entry::Checkpoint(_) => Ok(()),
        }
    }

    fn reserve(&mut self, seq: u64, reserve: Reserve) -> Result<(), Contradiction> {
        if self.open.contains_key(&reserve.id) || self.settlement(reserve.id).is_some() {
            self.repeats += 1;
            return Ok(());
        }
        let balance = self.balances.entry(reserve.tenant.clone()).or_default();
        let sum = balance.reserved.checked_add(reserve.amount.unwrap_or_default());
        balance.reserved =
            sum.ok_or_else(|| Contradiction::Overflow { seq, tenant: reserve.tenant.clone() })?;
        self.open.insert(reserve.id, Open { reserve, progress: None });
        Ok(())
    }

    fn post(&mut self, seq: u64, record: &Record) -> Result<(), Contradiction> {
        let Record { id, tenant, .. } = record;
        if !self.settles(seq, *id, Settlement::Post)? {
            return Ok(());
        }
        if self.open.get(id).is_some_and(|open| open.reserve.tenant != *tenant) {
            return Err(Contradiction::TenantDiffers { seq, id: *id });
        }
        let balance = self.balances.entry(tenant.clone()).or_default();
        balance
            .post(record.cost.as_ref())
            .ok_or_else(|| Contradiction::Overflow { seq, tenant: tenant.clone() })?;
        self.close(*id, Settlement::Post);
        self.posts += 1;
        Ok(())
    }

    fn correct(&mut self, seq: u64, correction: &Correction) -> Result<(), Contradiction> {
        let Correction { id, corrects, tenant, before, after, .. } = correction;
        if self.corrected.contains(*id) {
            self.repeats += 1;
            return Ok(());
        }
        if !self.posted.contains(*corrects) {
            return Err(Contradiction::NotPosted { seq, id: *corrects });
        }
        let balance = self.balances.entry(tenant.clone()).or_default();
        balance
            .correct(before.as_ref(), after.as_ref())
            .ok_or_else(|| Contradiction::Overflow { seq, tenant: tenant.clone() })?;
        self.corrected.insert(*id);
        self.corrections += 1;
        Ok(())
    }

    /// Whether this settles an open reservation; a repeat of what settled it does not.
    fn settles(
        &mut self,
        seq: u64,
        id: RequestId,
        settlement: Settlement,
    ) -> Result<bool, Contradiction> {
        match self.settlement(id) {
            Some(earlier) if earlier == settlement => {
                self.repeats += 1;
                Ok(false)
            }
            Some(_) => Err(Contradiction::SettledTwice { seq, id }),
            None if self.open.contains_key(&id) => Ok(true),
            None => Err(Contradiction::NotReserved { seq, id }),
        }
    }

    fn close(&mut self, id: RequestId, settlement: Settlement) {
        match settlement {
            Settlement::Post => self.posted.insert(id),
            Settlement::Void => self.voided.insert(id),
        };
        if let Some(Open { reserve, .. }) = self.open.remove(&id)
            && let Some(balance) = self.balances.get_mut(&reserve.tenant)
        {
            balance.reserved = balance.reserved.saturating_sub(reserve.amount.unwrap_or_default());
        }
    }

    /// The fold goes on with the journal of corrections, which has sequence numbers of its own:
    /// what was posted is known, and what is open is told already.
    #[must_use]
    pub fn into_corrections(self) -> Self {
        Self { seq: 0, open: HashMap::new(), repeats: 0, ..self }
    }

    /// Reserved and not settled, the oldest first.
    #[must_use]
    pub fn open(&self) -> Vec<&Open> {
        let mut open: Vec<_> = self.open.values().collect();
        open.sort_unstable_by_key(|open| (open.reserve.started_at, open.reserve.id));
        open
    }

    /// By tenant.
    #[must_use]
    pub const fn balances(&self) -> &BTreeMap<TenantId, Balance> {
        &self.balances
    }

    /// How a request was settled, if it was.
    #[must_use]
    pub fn settlement(&self, id: RequestId) -> Option<Settlement> {
        if self.posted.contains(id) {
            Some(Settlement::Post)
        } else {
            self.voided.contains(id).then_some(Settlement::Void)
        }
    }

    /// Requests posted.
    #[must_use]
    pub const fn posts(&self) -> u64 {
        self.posts
    }

    /// Requests voided.
    #[must_use]
    pub const fn voids(&self) -> u64 {
        self.voids
    }

    /// Corrections of posted requests.
    #[must_use]
    pub const fn corrections(&self) -> u64 {
        self.corrections
    }

    /// Entries that said again what was known.
    #[must_use]
    pub const fn repeats(&self) -> u64 {
        self.repeats
    }

    /// The latest time in any entry: when the gateway was last known to live.
    #[must_use]
    pub const fn last_sign_of_life(&self) -> Option<Timestamp> {
        self.last_sign_of_life
    }
}

impl Balance {
    fn post(&mut self, cost: Option<&RecordCost>) -> Option<()> {
        match cost {
            None => self.unknown_cost += 1,
            Some(cost) => {
                let sum = self.posted.get(&cost.currency).copied().unwrap_or_default();
                let sum = sum.checked_add(cost.amount)?;
                self.posted.insert(cost.currency.clone(), sum);
            }
        }
        Some(())
    }

    fn correct(&mut self, before: Option<&RecordCost>, after: Option<&RecordCost>) -> Option<()> {
        match before {
            None => self.unknown_cost = self.unknown_cost.saturating_sub(1),
            Some(before) => {
                let sum = self.posted.get(&before.currency).copied().unwrap_or_default();
                self.posted.insert(before.currency.clone(), sum.checked_sub(before.amount)?);
            }
        }
        self.post(after)
    }
}

/// The record of a request that was open when the gateway died: what it used is what was last said
/// of it, and unknown if nothing was.
///
/// `at` is when the gateway was last known to live; the request is not older than it started.
#[must_use]
pub fn died(
    reserve: &Reserve,
    progress: Option<&Progress>,
    at: Timestamp,
    gateway: &str,
) -> Record {
    let Reserve {
        id,
        request_id,
        started_at,
        tenant,
        key_id,
        identity,
        labels,
        operation,
        route,
        stream,
        upstream,
        provider,
        request_model,
        service_tier,
        amount: _,
        input_tokens: _,
        output_tokens: _,
    } = reserve.clone();
    let progress = progress.cloned();
    let (response_model, answered_tier, usage) = progress
        .map(|progress| (progress.response_model, progress.service_tier, progress.usage))
        .unwrap_or_default();
    let ended_at = at.max(started_at);
    let duration = (ended_at - started_at).total(Unit::Second).unwrap_or_default();
    Record {
        id,
        request_id,
        attempt: 1,
        seq: 0,
        gateway: gateway.to_owned(),
        started_at,
        ended_at,
        tenant,
        key_id,
        identity,
        labels,
        operation,
        route,
        stream,
        upstream,
        provider,
        request_model,
        response_model,
        response_id: None,
        service_tier: answered_tier.or(service_tier),
        status: None,
        end: End::GatewayDied,
        error_type: Some("gateway_died".to_owned()),
        error: None,
        finish_reasons: Vec::new(),
        usage,
        timing: RecordTiming { duration, ..RecordTiming::default() },
        cost: None,
        reported_cost: None,
        resource: BTreeMap::new(),
    }
}
