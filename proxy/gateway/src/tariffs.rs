//! Prices requests: the price book, the terms of tenants, and upstreams that are paid by GPU hours.

use std::collections::{BTreeMap, HashMap};

use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive as _;
use taximeter_collections::Gather as _;
use taximeter_ledger::{Charge, Record, RecordCost, RecordLine, UnknownCost, UnknownCostReason};
use taximeter_pricing::{
    Contract, Cost, CostLine, GpuPrice, MeterName, Modalities, Pass, PriceBook, PriceError,
    PriceMatch, Query, Source, Unpriced, Usage,
};

use crate::charge_sum::ChargeSum;

/// In place of a row, where nothing was used that could have a price.
const NO_PRICE: &str = "none";

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
        let (scope, query) = asked(record);
        self.charge(scope, &query, &Usage::from(&record.usage))
    }

    /// The same of a batch that is on record, of which each of `models` used a part if there were
    /// several. `None` if its usage does not tell.
    pub fn charge_batch_again(&self, record: &Record, models: &[Pass]) -> Option<Charge> {
        let (scope, query) = asked(record);
        let usage = Usage::from(&record.usage);
        if record.usage.source == Source::None {
            return Some(Charge { cost: self.nothing(scope, &query), unknown: Vec::new() });
        }
        if models.is_empty() {
            return self.charge_of_many(scope, &query, &usage);
        }
        let mut passes = usage.passes;
        let mut sum = ChargeSum::default();
        for Pass { model, usage: part } in models {
            let query = Query { response_model: model.as_deref(), ..query };
            let conditions = usage.conditions.clone();
            let passes = std::mem::take(&mut passes);
            let part = Usage { conditions, passes, ..part.clone() };
            sum.add(model.as_deref(), self.charge_of_many(scope, &query, &part)?);
        }
        Some(sum.sum())
    }

    /// What several requests cost together that have used so much. `None` if that is not the same for
    /// each way in which they can have used it: a price depends on the length of one of them, or on
    /// their number.
    pub(crate) fn charge_of_many(
        &self,
        scope: PriceScope<'_>,
        query: &Query<'_>,
        usage: &Usage,
    ) -> Option<Charge> {
        let all = self.charge(scope, query, usage);
        let one = self.charge(scope, query, &short(usage));
        let lines =
            |charge: &Charge| charge.cost.clone().map(|cost| cost.lines).unwrap_or_default();
        let of_one = lines(&one);
        let is_the_same = |line: &RecordLine| {
            let same = |it: &&RecordLine| it.meter == line.meter && it.model == line.model;
            let same = of_one.iter().find(same);
            line.meter != MeterName::Requests.as_str()
                && same.is_some_and(|it| it.unit_price == line.unit_price)
        };
        (all.unknown == one.unknown && lines(&all).iter().all(is_the_same)).then_some(all)
    }

    /// The cost of what owes nothing. `None` where it would owe a share of GPUs.
    pub(crate) fn nothing(&self, scope: PriceScope<'_>, query: &Query<'_>) -> Option<RecordCost> {
        (!self.owes_gpu(scope, query)).then(|| self.no_cost())
    }

    /// The cost of a request that has used nothing. It depends on no price.
    pub(crate) fn no_cost(&self) -> RecordCost {
        RecordCost {
            at_least: false,
            currency: self.book.currency().to_string(),
            amount: Decimal::ZERO,
            list_amount: Decimal::ZERO,
            price_id: NO_PRICE.to_owned(),
            price_match: None,
            lines: Vec::new(),
        }
    }

    fn contract(&self, tenant: &str) -> &Contract {
        self.contracts.get(tenant).unwrap_or(&self.list)
    }
}

/// What decides the price of a request that is on record.
fn asked(record: &Record) -> (PriceScope<'_>, Query<'_>) {
    let query = Query {
        provider: Some(&record.provider),
        response_model: record.response_model.as_deref(),
        request_model: record.request_model.as_deref(),
        service_tier: record.service_tier.as_deref(),
        at: record.started_at,
    };
    (PriceScope { tenant: &record.tenant.0, upstream: &record.upstream }, query)
}

/// A usage of the same members with few tokens. A part is no larger than its whole.
fn short(usage: &Usage) -> Usage {
    let few = |tokens: Option<u64>, most: u64| tokens.map(|tokens| tokens.min(most));
    let modalities = usage.modalities.as_deref().map(|modalities| {
        let named = modalities.named().into_iter().map(|(name, tokens)| (name, tokens.min(1)));
        Box::new(Modalities::from(&named.gather::<BTreeMap<_, _>>()))
    });
    let passes = usage.passes.iter();
    let passes =
        passes.map(|Pass { model, usage }| Pass { model: model.clone(), usage: short(usage) });
    Usage {
        input_tokens: few(usage.input_tokens, 64),
        cache_read_input_tokens: few(usage.cache_read_input_tokens, 8),
        cache_write_input_tokens: few(usage.cache_write_input_tokens, 4),
        cache_write_long_input_tokens: few(usage.cache_write_long_input_tokens, 1),
        output_tokens: few(usage.output_tokens, 64),
        reasoning_output_tokens: few(usage.reasoning_output_tokens, 4),
        modalities,
        passes: passes.collect(),
        ..usage.clone()
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
    use UnknownCostReason::{
        Ended, NoCondition, NoPrice, NoQuantity, NoRate, NoTier, NotBegun, TooLarge,
    };
    let of = |reason, of: &str, price_id: &str| UnknownCost {
        price_id: Some(price_id.to_owned()),
        ..UnknownCost::new(reason, Some(of))
    };
    match reason {
        PriceError::UnknownModel { model, .. } => UnknownCost::new(NoPrice, Some(model)),
        PriceError::Ended { model, until, price_id } => {
            UnknownCost { day: Some(*until), ..of(Ended, model, price_id) }
        }
        PriceError::NotBegun { model, from, price_id } => {
            UnknownCost { day: Some(*from), ..of(NotBegun, model, price_id) }
        }
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

#[cfg(test)]
mod tests {
    use taximeter_pricing::ByModality;

    use super::*;

    const PRICES: &str = "
version: 2026-01-01
currency: USD
models:
- {model: flat, rates: {input: 1, cache_read: 0.5, output: 2, input_audio: 3}}
- {model: each, rates: {input: 1, output: 2, requests: 0.01}}
- model: long
  rates: {input: 1, output: 2}
  long_context: [{over: 1000, rates: {input: 2, output: 2}}]
";

    fn charged(model: &str, usage: &Usage) -> Option<Option<Decimal>> {
        let book = PriceBook::empty().with_overrides(PRICES, "prices.yaml").unwrap();
        let tariffs = Tariffs::new(book, HashMap::new(), HashMap::new());
        let query = Query {
            provider: None,
            response_model: Some(model),
            request_model: None,
            service_tier: None,
            at: "2026-06-01T00:00:00Z".parse().unwrap(),
        };
        let scope = PriceScope { tenant: "acme", upstream: "engine" };
        let charge = tariffs.charge_of_many(scope, &query, usage)?;
        Some(charge.cost.map(|cost| cost.amount * Decimal::from(1_000_000)))
    }

    #[test]
    fn several_requests_are_priced_together_only_if_their_sum_tells_the_price() {
        let of = |input: u64, output: u64| Usage {
            input_tokens: Some(input),
            output_tokens: Some(output),
            ..Usage::default()
        };
        let cost = |amount: i64| Some(Some(Decimal::from(amount)));
        assert_eq!(charged("flat", &of(100_000, 10)), cost(100_020));
        assert_eq!(charged("flat", &of(3, 1)), cost(5));
        // No request can be long if all together are not.
        assert_eq!(charged("long", &of(900, 10)), cost(920));
        assert_eq!(charged("long", &of(1001, 10)), None);
        assert_eq!(charged("each", &of(9, 1)), None);
        assert_eq!(charged("made-up", &of(9, 1)), Some(None));
        let pass = Pass { model: Some("long".to_owned()), usage: of(2000, 1) };
        assert_eq!(charged("flat", &Usage { passes: vec![pass], ..of(9, 1) }), None);
        let input = ByModality { audio: Some(400), text: Some(100), ..ByModality::default() };
        let modalities = Modalities { input, ..Modalities::default() };
        let mixed = Usage {
            modalities: Some(Box::new(modalities)),
            cache_read_input_tokens: Some(50),
            ..of(500, 10)
        };
        // 50 × 1, 50 × 0.5, 400 × 3 and 10 × 2.
        assert_eq!(charged("flat", &mixed), cost(50 + 25 + 1200 + 20));
    }
}
