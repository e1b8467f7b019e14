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
    pub(super) places: Places,
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
            dimensions: None,
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
        let places = Places::default();
        Self { record, ledger, cost: None, cost_known: None, places, stages: None, payload: None }
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
        let Self { mut record, cost, cost_known, places, stages, .. } = self;
        if has_own_id {
            record.request_id = record.id.to_string();
        }
        record.cost = cost.map(|cost| cost.finish(false, places)).transpose()?;
        record.cost_known = cost_known.map(|cost| cost.finish(true, places)).transpose()?;
        record.timing.stages = stages
            .map(|stages| Stages::lasting(stages.map(|micros| micros.map(Duration::from_micros))));
        Ok(record)
    }
}

/// Digits after the point of the amounts of a cost. `None` if they are those that are likely: a column
/// of decimals has one number of digits for all rows.
#[derive(Clone, Copy, Default)]
pub(super) struct Places {
    pub(super) amount: Option<u32>,
    pub(super) list_amount: Option<u32>,
}

impl Places {
    pub(super) fn of_amount(cost: &RecordCost) -> Option<u32> {
        let places = cost.amount.scale();
        (likely_amount(&cost.lines, cost.amount).scale() != places).then_some(places)
    }

    pub(super) fn of_list_amount(cost: &RecordCost) -> Option<u32> {
        let places = cost.list_amount.scale();
        let likely = likely_list_amount(&cost.lines, cost.amount, cost.list_amount);
        (likely.scale() != places).then_some(places)
    }
}

/// `amount` with the digits of the sum of its lines.
fn likely_amount(lines: &[RecordLine], amount: Decimal) -> Decimal {
    written_as([sum(lines, |line| Some(line.amount))], amount)
}

/// `list_amount` with the digits of the amount, or of the sum of its lines at list price.
fn likely_list_amount(lines: &[RecordLine], amount: Decimal, list_amount: Decimal) -> Decimal {
    let listed = sum(lines, |line| line.count().checked_mul(line.list_price()));
    written_as([Some(amount), listed], list_amount)
}

fn sum(lines: &[RecordLine], amount: fn(&RecordLine) -> Option<Decimal>) -> Option<Decimal> {
    lines.iter().try_fold(Decimal::ZERO, |sum, line| sum.checked_add(amount(line)?))
}

/// `amount` as one of those that are equal to it is written, or without zeros at its end.
fn written_as<const N: usize>(likely: [Option<Decimal>; N], amount: Decimal) -> Decimal {
    let found = likely.into_iter().flatten().find(|likely| *likely == amount);
    found.unwrap_or_else(|| amount.normalize())
}

/// The same number with so many digits after the point.
fn with_places(mut amount: Decimal, places: Option<u32>) -> Decimal {
    if let Some(places) = places {
        amount.rescale(places);
    }
    amount
}

impl CostDraft {
    fn finish(self, at_least: bool, places: Places) -> Result<RecordCost, Misfit> {
        let lines = self.lines;
        let amount = likely_amount(&lines, self.amount.ok_or(Misfit)?);
        let amount = with_places(amount, places.amount);
        let list_amount = likely_list_amount(&lines, amount, self.list_amount.ok_or(Misfit)?);
        let list_amount = with_places(list_amount, places.list_amount);
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
