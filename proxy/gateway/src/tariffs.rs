//! Prices requests: the price book, the terms of tenants, and upstreams that are paid by GPU hours.

use std::collections::HashMap;

use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive as _;
use taximeter_ledger::{Charge, Record, RecordCost, RecordLine, UnknownCost, UnknownCostReason};
use taximeter_pricing::{
    Contract, Cost, CostLine, GpuPrice, PriceBook, PriceError, PriceMatch, Query, Unpriced, Usage,
};

/// Prices of all tenants and upstreams.
#[derive(Debug)]
pub struct Tariffs {
    /// The price book.
    pub book: PriceBook,
    /// What those pay with whom nothing is agreed.
    list: Contract,
    /// By tenant.
    contracts: HashMap<String, Contract>,
    /// By upstream, one after the other.
    gpus: HashMap<String, Vec<GpuPrice>>,
}

/// Who pays, and whose work.
#[derive(Debug, Clone, Copy)]
pub struct PriceScope<'a> {
    /// The tenant.
    pub tenant: &'a str,
    /// The name of the upstream.
    pub upstream: &'a str,
}

impl Tariffs {
    /// Those of `book`, but for tenants with a contract and upstreams with GPUs.
    pub fn new(
        book: PriceBook,
        contracts: HashMap<String, Contract>,
        gpus: HashMap<String, Vec<GpuPrice>>,
    ) -> Self {
        Self { book, list: Contract::default(), contracts, gpus }
    }

    /// Whether a request owes a share of GPUs, and so nothing by the token.
    pub(crate) fn owes_gpu(&self, scope: PriceScope<'_>, query: &Query<'_>) -> bool {
        let gpus = self.gpus.get(scope.upstream);
        gpus.is_some_and(|gpus| gpus.iter().any(|gpus| gpus.covers(query.at)))
    }

    /// Whether there is a price for such a request.
    pub fn find(&self, scope: PriceScope<'_>, query: &Query<'_>) -> bool {
        self.owes_gpu(scope, query) || self.contract(scope.tenant).finds(&self.book, query)
    }

    /// The most that such a request may cost by the token, where that has a bound.
    pub(crate) fn upper_bound(
        &self,
        scope: PriceScope<'_>,
        query: &Query<'_>,
        input_tokens_max: u64,
        output_tokens_max: u64,
    ) -> Option<Decimal> {
        if self.owes_gpu(scope, query) {
            return None;
        }
        let contract = self.contract(scope.tenant);
        self.book.contracted_upper_bound(contract, query, input_tokens_max, output_tokens_max)
    }

    /// What a request costs: nothing by the token where it owes a share of GPUs, which is found when
    /// a bill is made.
    pub fn charge(&self, scope: PriceScope<'_>, query: &Query<'_>, usage: &Usage) -> Charge {
        if self.owes_gpu(scope, query) {
            return Charge::default();
        }
        match self.book.contracted(self.contract(scope.tenant), query, usage) {
            Ok(cost) => Charge { cost: Some(recorded(cost)), unknown: Vec::new() },
            Err(Unpriced { reasons, known }) => {
                let reasons = reasons.iter().map(|reason| recorded_reason(reason, query));
                Charge::unknown(known.map(|known| recorded(*known)), reasons)
            }
        }
    }

    /// What a request costs that is on record, as if it ended now.
    pub fn charge_again(&self, record: &Record) -> Charge {
        let query = Query {
            provider: Some(&record.provider),
            response_model: record.response_model.as_deref(),
            request_model: record.request_model.as_deref(),
            service_tier: record.service_tier.as_deref(),
            at: record.started_at,
        };
        let scope = PriceScope { tenant: &record.tenant.0, upstream: &record.upstream };
        self.charge(scope, &query, &Usage::from(&record.usage))
    }

    fn contract(&self, tenant: &str) -> &Contract {
        self.contracts.get(tenant).unwrap_or(&self.list)
    }
}

fn recorded(cost: Cost) -> RecordCost {
    RecordCost {
        at_least: false,
        currency: cost.currency.to_string(),
        amount: cost.amount,
        list_amount: cost.list_amount,
        price_id: cost.price_id,
        price_match: Some(cost.price_match.words()),
        lines: cost.lines.into_iter().map(recorded_line).collect(),
    }
}

/// Tokens are counted whole; all else has its unit.
fn recorded_line(line: CostLine) -> RecordLine {
    let counts_tokens = line.meter.counts_tokens();
    let tokens = line.quantity.to_u64().filter(|_| counts_tokens);
    RecordLine {
        meter: line.meter.as_str().to_owned(),
        model: line.model,
        price_match: line.price_match.map(PriceMatch::words),
        tokens,
        quantity: (!counts_tokens).then_some(line.quantity),
        unit: (!counts_tokens).then(|| line.meter.unit().to_owned()),
        unit_price: line.unit_price,
        list_unit_price: (line.list_unit_price != line.unit_price).then_some(line.list_unit_price),
        amount: line.amount,
    }
}

/// Why a part of the cost is unknown, in the words of records.
fn recorded_reason(reason: &PriceError, query: &Query<'_>) -> UnknownCost {
    use UnknownCostReason::{NoCondition, NoPrice, NoQuantity, NoRate, NoTier, TooLarge};
    let of = |reason, of: &str, price_id: &str| UnknownCost {
        price_id: Some(price_id.to_owned()),
        ..UnknownCost::new(reason, Some(of))
    };
    match reason {
        PriceError::UnknownModel { model, .. } => UnknownCost::new(NoPrice, Some(model)),
        PriceError::NoRate { part, combination, price_id } => UnknownCost {
            combination: Some(combination.to_string().trim_start().to_owned())
                .filter(|combination| !combination.is_empty()),
            ..of(NoRate, part, price_id)
        },
        PriceError::UnknownTier { tier, price_id } => of(NoTier, tier, price_id),
        PriceError::UnknownCondition { condition, value, price_id } => {
            of(NoCondition, &format!("{} {value}", condition.as_str()), price_id)
        }
        PriceError::UsageUnknown { meter } => UnknownCost::new(NoQuantity, Some(meter.as_str())),
        PriceError::Overflow => UnknownCost::new(TooLarge, None),
        _ => UnknownCost::new(NoPrice, query.response_model.or(query.request_model)),
    }
}
