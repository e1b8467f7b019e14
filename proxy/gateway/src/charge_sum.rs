//! Adds up what several requests are charged.

use rust_decimal::Decimal;
use taximeter_ledger::{Charge, RecordCost, RecordLine, UnknownCost};
use taximeter_pricing::MeterName;

/// Reasons that are kept. The first says enough.
const REASONS_MAX: usize = 16;

/// What was charged so far.
#[derive(Debug, Default)]
pub(crate) struct ChargeSum {
    cost: Option<RecordCost>,
    unknown: Vec<UnknownCost>,
    /// A part of it is unknown.
    is_part: bool,
    /// It cannot be kept.
    is_lost: bool,
    /// The model of the first.
    model: Option<Option<String>>,
    has_models: bool,
}

impl ChargeSum {
    /// Adds what a request of `model` is charged.
    pub(crate) fn add(&mut self, model: Option<&str>, charge: Charge) {
        let Charge { cost, unknown } = charge;
        let first = self.model.get_or_insert_with(|| model.map(str::to_owned));
        self.has_models |= first.as_deref() != model;
        for reason in unknown {
            if self.unknown.len() < REASONS_MAX && !self.unknown.contains(&reason) {
                self.unknown.push(reason);
            }
        }
        self.is_part |= RecordCost::is_unknown(cost.as_ref());
        let Some(mut cost) = cost else { return };
        for line in cost.lines.iter_mut().filter(|line| line.model.is_none()) {
            line.model = model.map(str::to_owned);
            line.price_match.clone_from(&cost.price_match);
        }
        let sum = match self.cost.take() {
            None => Some(cost),
            Some(sum) => add_cost(sum, cost),
        };
        self.is_lost |= sum.is_none();
        self.cost = sum;
    }

    /// What all of them are charged. Lines name their model if there are several.
    pub(crate) fn sum(self) -> Charge {
        let model = self.model.flatten().filter(|_| !self.has_models);
        let cost = self.cost.filter(|_| !self.is_lost).map(|mut cost| {
            cost.at_least = self.is_part;
            taximeter_collections::sort_by_key(&mut cost.lines, |line| {
                (line.model.clone(), place(&line.meter))
            });
            for line in cost.lines.iter_mut().filter(|line| line.model == model) {
                line.model = None;
                line.price_match = None;
            }
            cost
        });
        Charge { cost, unknown: self.unknown }
    }
}

/// The place of a meter on bills.
fn place(meter: &str) -> Option<usize> {
    MeterName::ALL.iter().position(|it| it.as_str() == meter)
}

/// The sum of two costs. `None` if it cannot be kept.
fn add_cost(mut sum: RecordCost, other: RecordCost) -> Option<RecordCost> {
    if sum.currency != other.currency {
        return None;
    }
    sum.amount = sum.amount.checked_add(other.amount)?;
    sum.list_amount = sum.list_amount.checked_add(other.list_amount)?;
    for line in other.lines {
        let is_same = |it: &&mut RecordLine| {
            it.meter == line.meter
                && it.model == line.model
                && it.unit == line.unit
                && it.unit_price == line.unit_price
                && it.list_unit_price == line.list_unit_price
        };
        match sum.lines.iter_mut().find(is_same) {
            Some(it) => {
                it.tokens = add_up(it.tokens, line.tokens, u64::checked_add)?;
                it.quantity = add_up(it.quantity, line.quantity, Decimal::checked_add)?;
                it.amount = it.amount.checked_add(line.amount)?;
            }
            None => sum.lines.push(line),
        }
    }
    Some(sum)
}

/// The sum of two numbers that are there or not. `None` if it is too large.
fn add_up<N>(a: Option<N>, b: Option<N>, sum: impl FnOnce(N, N) -> Option<N>) -> Option<Option<N>> {
    match (a, b) {
        (Some(a), Some(b)) => sum(a, b).map(Some),
        (a, b) => Some(a.or(b)),
    }
}
