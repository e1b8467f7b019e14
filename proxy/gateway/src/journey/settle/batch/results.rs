//! Adds up the results of a batch while they pass: one JSON document a line, each with the answer to
//! one request. Each request has a price of its own.

use std::collections::BTreeMap;

use rust_decimal::Decimal;
use serde_json::value::RawValue;
use taximeter_json::Value;
use taximeter_ledger::{Charge, RecordUsage};
use taximeter_meter::Dialect;
use taximeter_pricing::{Condition, Pass, Source, Usage};

use super::super::count::Count;
use super::super::record;
use super::super::usage::{self, TokenParts};
use super::line::{self, Answer};
use super::sums::{UsageSums, Used};
use crate::charge_sum::ChargeSum;
use crate::gateway::HeldText;

/// Prices the usage of one request of this model.
pub(crate) type Price<'a> = dyn Fn(Option<&str>, &Usage) -> Charge + 'a;

/// The results of a batch so far.
#[derive(Debug)]
pub(crate) struct Results {
    dialect: Dialect,
    /// What was known at the admission that can change the price.
    conditions: BTreeMap<Condition, String>,
    /// The line that is not whole yet.
    line: HeldText,
    requests: u64,
    answered: u64,
    used: UsageSums,
    charged: ChargeSum,
    /// `None` if one of the answers reports no cost.
    reported_cost: Option<Decimal>,
    /// Something could not be read, so that it is not all.
    is_broken: bool,
}

/// What a batch has used.
#[derive(Debug, PartialEq)]
pub(crate) struct BatchUsage {
    pub(crate) response_model: Option<String>,
    pub(crate) usage: RecordUsage,
    /// What each model used, if there were several.
    pub(crate) models: Vec<Pass>,
    pub(crate) charge: Charge,
    /// Number of its results.
    pub(crate) requests: u64,
    /// Number of those that are answers.
    pub(crate) answered: u64,
    pub(crate) reported_cost: Option<String>,
}

impl Results {
    /// None yet. `line` holds a line until it is whole.
    pub(crate) fn new(
        dialect: Dialect,
        conditions: BTreeMap<Condition, String>,
        line: HeldText,
    ) -> Self {
        Self {
            dialect,
            conditions,
            line,
            requests: 0,
            answered: 0,
            used: UsageSums::default(),
            charged: ChargeSum::default(),
            reported_cost: Some(Decimal::ZERO),
            is_broken: false,
        }
    }

    /// The next bytes cannot be read.
    pub(crate) fn give_up(&mut self) {
        self.is_broken = true;
        self.line.take();
    }

    /// The next bytes of a file with a result on each line.
    pub(crate) fn push(&mut self, mut bytes: &[u8], price: &Price<'_>) {
        while let Some(end) = memchr::memchr(b'\n', bytes).filter(|_| !self.is_broken) {
            let (head, rest) = bytes.split_at(end);
            if self.line.as_bytes().is_empty() {
                self.read(head, price);
            } else {
                self.keep(head);
                self.end_line(price);
            }
            bytes = rest.get(1..).unwrap_or_default();
        }
        self.keep(bytes);
    }

    fn keep(&mut self, bytes: &[u8]) {
        if !self.is_broken && !self.line.push(bytes) {
            self.give_up();
        }
    }

    fn end_line(&mut self, price: &Price<'_>) {
        let line = self.line.take();
        self.read(&line, price);
    }

    /// Reads one result.
    pub(crate) fn read(&mut self, result: &[u8], price: &Price<'_>) {
        let is_blank = result.trim_ascii().is_empty();
        if !is_blank && !self.is_broken && self.add(result, price).is_none() {
            self.give_up();
        }
    }

    /// Adds a result. `None` if it is not known what it says.
    fn add(&mut self, result: &[u8], price: &Price<'_>) -> Option<()> {
        let whole: &RawValue = serde_json::from_slice(result).ok()?;
        self.requests += 1;
        let Answer::Given(answer) = line::answer(Value::checked(whole.get()))? else {
            return Some(());
        };
        let wire = line::wire(answer)?;
        let measurement = line::measure(wire, self.dialect, answer.as_str().as_bytes());
        if record::owes_nothing(&measurement) {
            return Some(());
        }
        let parts = TokenParts::of(wire);
        let (mut usage, mut for_price) = usage::usage(parts, &measurement, &Count::default());
        if !measurement.reports_usage() || usage.source != Source::Reported {
            return None;
        }
        self.answered += 1;
        for (condition, value) in &self.conditions {
            for conditions in [&mut usage.conditions, &mut for_price.conditions] {
                conditions.entry(*condition).or_insert_with(|| value.clone());
            }
        }
        let reported_cost = measurement.reported_cost.and_then(|cost| cost.parse().ok());
        self.reported_cost = self
            .reported_cost
            .zip(reported_cost)
            .and_then(|(sum, cost): (Decimal, Decimal)| sum.checked_add(cost));
        let model = measurement.response_model;
        self.charged.add(model.as_deref(), price(model.as_deref(), &for_price));
        self.used.add(model, usage)
    }

    /// What they add up to. `None` if they are not all, or if there are none.
    pub(crate) fn finish(mut self, price: &Price<'_>) -> Option<BatchUsage> {
        self.end_line(price);
        if self.is_broken || self.requests == 0 {
            return None;
        }
        let Used { model: response_model, usage, models } = self.used.sum()?;
        let reported_cost = self.reported_cost.filter(|_| self.answered > 0);
        Some(BatchUsage {
            response_model,
            usage,
            models,
            charge: self.charged.sum(),
            requests: self.requests,
            answered: self.answered,
            reported_cost: reported_cost.map(|cost| cost.normalize().to_string()),
        })
    }
}

#[cfg(test)]
mod tests;
