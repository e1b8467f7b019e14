//! A record that is put together column by column.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use rust_decimal::Decimal;
use taximeter_ledger::{
    End, Identity, LedgerId, Record, RecordCost, RecordLine, RecordTiming, RecordUsage, RequestId,
    Stage, Stages, TenantId,
};
use uuid::Uuid;

use crate::value::Misfit;

/// A record before all its columns are there.
pub(crate) struct Draft {
    pub(super) record: Record,
    pub(super) ledger: LedgerId,
    pub(super) cost: Option<CostDraft>,
    pub(super) cost_known: Option<CostDraft>,
    /// Microseconds.
    pub(super) stages: Option<[Option<u64>; Stage::ALL.len()]>,
    /// The payload of an entry that the columns do not say all of.
    pub(super) payload: Option<Vec<u8>>,
}

/// A cost in parts.
#[derive(Default)]
pub(super) struct CostDraft {
    pub(super) currency: Option<String>,
    pub(super) amount: Option<Decimal>,
    pub(super) list_amount: Option<Decimal>,
    pub(super) price_id: Option<String>,
    pub(super) price_match: Option<String>,
    pub(super) lines: Vec<RecordLine>,
}

impl Draft {
    pub(crate) fn new() -> Self {
        let record = Record {
            id: RequestId(Uuid::nil()),
            request_id: String::new(),
            attempt: 1,
            seq: 0,
            gateway: String::new(),
            started_at: Timestamp::UNIX_EPOCH,
            ended_at: Timestamp::UNIX_EPOCH,
            tenant: TenantId("".into()),
            key_id: None,
            identity: Identity::Unknown,
            labels: BTreeMap::new(),
            operation: String::new(),
            route: String::new(),
            stream: false,
            upstream: String::new(),
            provider: String::new(),
            request_model: None,
            response_model: None,
            response_id: None,
            service_tier: None,
            status: None,
            end: End::Complete,
            error_type: None,
            error: None,
            finish_reasons: Vec::new(),
            usage: RecordUsage::default(),
            timing: RecordTiming::default(),
            cost: None,
            cost_known: None,
            cost_unknown: Vec::new(),
            reported_cost: None,
            resource: BTreeMap::new(),
        };
        let ledger = LedgerId::UNKNOWN;
        Self { record, ledger, cost: None, cost_known: None, stages: None, payload: None }
    }

    /// The ledger and the sequence number of the entry.
    pub(crate) const fn place(&self) -> (LedgerId, u64) {
        (self.ledger, self.record.seq)
    }

    /// The payload of an entry that the columns do not say all of.
    pub(crate) const fn take_payload(&mut self) -> Option<Vec<u8>> {
        self.payload.take()
    }

    /// The record, if no member is missing.
    ///
    /// `has_own_id` says whether the client's id is that of the request.
    pub(crate) fn finish(self, has_own_id: bool) -> Result<Record, Misfit> {
        let Self { mut record, cost, cost_known, stages, .. } = self;
        if has_own_id {
            record.request_id = record.id.to_string();
        }
        record.cost = cost.map(|cost| cost.finish(false)).transpose()?;
        record.cost_known = cost_known.map(|cost| cost.finish(true)).transpose()?;
        record.timing.stages = stages
            .map(|stages| Stages::lasting(stages.map(|micros| micros.map(Duration::from_micros))));
        Ok(record)
    }
}

impl CostDraft {
    fn finish(self, at_least: bool) -> Result<RecordCost, Misfit> {
        let lines = self.lines;
        let sum = |amount: fn(&RecordLine) -> Option<Decimal>| {
            lines.iter().try_fold(Decimal::ZERO, |sum, line| sum.checked_add(amount(line)?))
        };
        let amount = self.amount.ok_or(Misfit)?;
        let list_amount = self.list_amount.ok_or(Misfit)?;
        let amount = written_as([sum(|line| Some(line.amount))], amount);
        let listed = sum(|line| line.count().checked_mul(line.list_price()));
        let list_amount = written_as([Some(amount), listed], list_amount);
        Ok(RecordCost {
            at_least,
            currency: self.currency.ok_or(Misfit)?,
            amount,
            list_amount,
            price_id: self.price_id.ok_or(Misfit)?,
            price_match: self.price_match.map(Into::into),
            lines,
        })
    }
}

/// `amount` with the digits after the point that it most likely had: a column has one number of
/// digits for all rows. Its value stays the same.
fn written_as<const N: usize>(likely: [Option<Decimal>; N], amount: Decimal) -> Decimal {
    likely.into_iter().flatten().find(|likely| *likely == amount).unwrap_or(amount)
}
