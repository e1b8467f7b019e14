//! Replays entries: open reservations, balances and contradictions.

use std::collections::{BTreeMap, HashMap};

use jiff::{Timestamp, Unit};
use rust_decimal::Decimal;
use taximeter_pricing::Source;

use crate::entry::{Correction, Entry, Progress, Reserve};
use crate::id::{RequestId, TenantId};
use crate::id_set::IdSet;
use crate::record::{End, Record, RecordCost, RecordTiming, RecordUsage};

/// The fold of all entries so far. Repeated entries count once. To recognise them, the fold keeps
/// 16 bytes for each request and each correction.
#[derive(Debug, Clone, Default)]
pub struct Replay {
    seq: u64,
    /// Older entries are gone, so a reservation may be among them.
    lacks_entries: bool,
    open: HashMap<RequestId, OpenReservation>,
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

/// A reservation that is not settled, and the usage of its request so far.
#[derive(Debug, Clone, PartialEq)]
pub struct OpenReservation {
    /// The reservation.
    pub reserve: Reserve,
    /// The last progress entry of the request.
    pub progress: Option<Progress>,
}

/// The reserved and the posted cost of one tenant.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Balance {
    /// Sum of the upper bounds of the open reservations, in the currency of the price book. A
    /// reservation without an upper bound adds nothing.
    pub reserved: Decimal,
    /// Sum of the costs of posts, by currency. Corrected requests count with their corrected cost,
    /// and those of unknown cost with its known part.
    pub posted: BTreeMap<String, Decimal>,
    /// Number of posts whose cost is unknown, after corrections.
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

/// Entries that cannot all be true. The fold ignores the later one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Contradiction {
    /// Entries are missing or out of order.
    #[error("entry {found} follows entry {last}")]
    Gap {
        /// The last entry of the fold.
        last: u64,
        /// The entry that came next.
        found: u64,
    },
    /// A post or void of a request without a reservation.
    #[error("entry {seq} settles request {id}, which was never reserved")]
    NotReserved {
        /// The entry.
        seq: u64,
        /// The request.
        id: RequestId,
    },
    /// A post and a void of the same request.
    #[error("entry {seq} settles request {id}, which was settled in another way before")]
    SettledTwice {
        /// The entry.
        seq: u64,
        /// The request.
        id: RequestId,
    },
    /// The post names another tenant than the reservation.
    #[error("entry {seq} posts request {id} to another tenant than it was reserved for")]
    TenantDiffers {
        /// The entry.
        seq: u64,
        /// The request.
        id: RequestId,
    },
    /// A correction of a request that was not posted.
    #[error("entry {seq} corrects request {id}, which was never posted")]
    NotPosted {
        /// The entry.
        seq: u64,
        /// The request.
        id: RequestId,
    },
    /// A sum that a decimal cannot hold.
    #[error("entry {seq} makes the balance of tenant {tenant} overflow")]
    Overflow {
        /// The entry.
        seq: u64,
        /// The tenant with this balance.
        tenant: TenantId,
    },
}

impl Replay {
    /// Adds the next entry with its sequence number.
    /// # Errors
    /// The entry contradicts an earlier one. The fold then keeps its sequence number and nothing
    /// else.
    pub fn apply(&mut self, seq: u64, entry: Entry) -> Result<(), Contradiction> {
        if self.seq != 0 && seq != self.seq + 1 {
            return Err(Contradiction::Gap { last: self.seq, found: seq });
        }
        self.lacks_entries |= self.seq == 0 && seq > 1;
        self.seq = seq;
        self.last_sign_of_life = self.last_sign_of_life.max(Some(entry.at()));
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
            Entry::Checkpoint(_) | Entry::Refusals(_) => Ok(()),
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
        self.open.insert(reserve.id, OpenReservation { reserve, progress: None });
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
            .post(record.owed())
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

    /// Whether the entry settles an open reservation. A repeated post or void does not.
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
            None if self.open.contains_key(&id) || self.lacks_entries => Ok(true),
            None => Err(Contradiction::NotReserved { seq, id }),
        }
    }

    fn close(&mut self, id: RequestId, settlement: Settlement) {
        match settlement {
            Settlement::Post => self.posted.insert(id),
            Settlement::Void => self.voided.insert(id),
        };
        if let Some(OpenReservation { reserve, .. }) = self.open.remove(&id)
            && let Some(balance) = self.balances.get_mut(&reserve.tenant)
        {
            balance.reserved = balance.reserved.saturating_sub(reserve.amount.unwrap_or_default());
        }
    }

    /// Goes on with the journal of corrections, which has sequence numbers of its own. The fold
    /// keeps what was posted, and drops the open reservations.
    #[must_use]
    pub fn into_corrections(self) -> Self {
        Self { seq: 0, open: HashMap::new(), repeats: 0, ..self }
    }

    /// The open reservations, the oldest first.
    #[must_use]
    pub fn open(&self) -> Vec<&OpenReservation> {
        let mut open: Vec<_> = self.open.values().collect();
        taximeter_collections::sort_by_key(&mut open, |open| {
            (open.reserve.started_at, open.reserve.id)
        });
        open
    }

    /// The balance of each tenant.
    #[must_use]
    pub const fn balances(&self) -> &BTreeMap<TenantId, Balance> {
        &self.balances
    }

    /// How a request was settled. `None` if it was not.
    #[must_use]
    pub fn settlement(&self, id: RequestId) -> Option<Settlement> {
        if self.posted.contains(id) {
            Some(Settlement::Post)
        } else {
            self.voided.contains(id).then_some(Settlement::Void)
        }
    }

    /// Number of posted requests.
    #[must_use]
    pub const fn posts(&self) -> u64 {
        self.posts
    }

    /// Number of voided requests.
    #[must_use]
    pub const fn voids(&self) -> u64 {
        self.voids
    }

    /// Number of corrections.
    #[must_use]
    pub const fn corrections(&self) -> u64 {
        self.corrections
    }

    /// Number of repeated entries.
    #[must_use]
    pub const fn repeats(&self) -> u64 {
        self.repeats
    }

    /// The latest time in any entry. The gateway was alive at that time.
    #[must_use]
    pub const fn last_sign_of_life(&self) -> Option<Timestamp> {
        self.last_sign_of_life
    }
}

impl Balance {
    fn post(&mut self, cost: Option<&RecordCost>) -> Option<()> {
        if let Some(cost) = cost {
            let sum = self.posted.get(&cost.currency).copied().unwrap_or_default();
            let sum = sum.checked_add(cost.amount)?;
            self.posted.insert(cost.currency.clone(), sum);
        }
        self.unknown_cost += u64::from(RecordCost::is_unknown(cost));
        Some(())
    }

    fn correct(&mut self, before: Option<&RecordCost>, after: Option<&RecordCost>) -> Option<()> {
        if let Some(before) = before {
            let sum = self.posted.get(&before.currency).copied().unwrap_or_default();
            self.posted.insert(before.currency.clone(), sum.checked_sub(before.amount)?);
        }
        if RecordCost::is_unknown(before) {
            self.unknown_cost = self.unknown_cost.saturating_sub(1);
        }
        self.post(after)
    }
}

/// The operation whose requests use nothing, whatever becomes of them: to count tokens is free.
pub const COUNT_TOKENS: &str = "count_tokens";

/// The record of a request that was open when the gateway died. Its usage is that of `progress`, or
/// unknown without one.
///
/// `at` is the last time at which the gateway was known to be alive. The request ends then, or at
/// its start if that is later.
#[must_use]
pub fn gateway_died_record(
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
        dimensions,
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
        context: _,
        background: _,
    } = reserve.clone();
    let progress = progress.cloned();
    let (response_model, response_id, answered_tier, usage) = progress
        .map(|Progress { response_model, response_id, service_tier, usage, .. }| {
            (response_model, response_id, service_tier, usage)
        })
        .unwrap_or_default();
    let nothing = RecordUsage { source: Source::None, ..RecordUsage::default() };
    let usage = if operation == COUNT_TOKENS { nothing } else { usage };
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
        dimensions,
        operation,
        route,
        stream,
        upstream,
        provider,
        request_model,
        response_model,
        response_id,
        service_tier: answered_tier.or(service_tier),
        status: None,
        end: End::GatewayDied,
        error_type: Some("gateway_died".to_owned()),
        error: None,
        finish_reasons: Vec::new(),
        tools: BTreeMap::new(),
        usage,
        timing: RecordTiming { duration, ..RecordTiming::default() },
        cost: None,
        cost_known: None,
        cost_unknown: Vec::new(),
        reported_cost: None,
        resource: BTreeMap::new(),
    }
}
