//! The arithmetic: quantities × rates = cost.

use std::collections::BTreeMap;

use jiff::tz::TimeZone;
use rust_decimal::Decimal;

use crate::book::{PriceBook, Query};
use crate::currency::Currency;
use crate::exact::{plus, times};
use crate::meter::{MeterKind, MeterName};
use crate::quantities;
use crate::row::{PricingContext, Row, ServiceTier, Tariff};
use crate::terms::Contract;
use crate::usage::{Condition, Usage};

/// The cost of one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cost {
    /// The currency of all amounts.
    pub currency: Currency,
    /// The cost: the sum of the lines, exact.
    pub amount: Decimal,
    /// The cost at list price.
    pub list_amount: Decimal,
    /// The row that priced the request, [`Row::price_id`]. The exchange rate and the factor of the
    /// contract follow if there are any: `…;USD*0.92;acme*0.9`.
    pub price_id: String,
    /// One for each meter with a quantity. Lines of further model runs come last.
    pub lines: Vec<CostLine>,
}

/// One line of a cost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CostLine {
    /// What was counted.
    pub meter: MeterName,
    /// Model of a further model run. `None` for the request's own.
    pub model: Option<String>,
    /// The quantity, in [`MeterName::unit`].
    pub quantity: Decimal,
    /// Price of one, exact.
    pub unit_price: Decimal,
    /// List price of one. If the book has none, the contracted price.
    pub list_unit_price: Decimal,
    /// `quantity` × `unit_price`, exact.
    pub amount: Decimal,
}

/// Calls of hosted tools that cost only their tokens, unless a row has a rate for them.
const FREE_UNITS: [&str; 5] = [
    "web_fetch_requests",
    "mcp_calls",
    "tool_search_calls",
    "view_image_calls",
    "view_x_video_calls",
];

/// Why a cost is unknown. An unknown cost is never written as zero.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PriceError {
    /// No row prices the model.
    #[error(
        "the price book has no price in {currency} for model {model:?}; add it to the overrides"
    )]
    UnknownModel {
        /// The model of the answer, or else of the request.
        model: String,
        /// The currency of the bills.
        currency: Currency,
    },
    /// The row has no rate for a part of the usage.
    #[error("{price_id} has no rate for {part}; add it to the overrides")]
    NoRate {
        /// The meter, or the name in records of a quantity without a meter.
        part: String,
        /// The row.
        price_id: String,
    },
    /// The row has prices by service tier, and the tier of the answer is not a known one.
    #[error("{price_id} has no price for service tier {tier:?}")]
    UnknownTier {
        /// The tier of the answer.
        tier: String,
        /// The row.
        price_id: String,
    },
    /// The quantity is unknown.
    #[error("the quantity of {meter}, in {}, is unknown", meter.unit())]
    UsageUnknown {
        /// The meter without a quantity.
        meter: MeterName,
    },
    /// The cost has more digits than a decimal holds.
    #[error("the cost is too large to be exact")]
    Overflow,
}

impl PriceBook {
    /// The cost of `usage` at the prices in force at `query.at`.
    ///
    /// The cost is exact and not rounded. Each further model run is priced by its own model, with
    /// its own input for the long context. If a part is larger than its whole, the part is charged
    /// as reported and the rest is zero. So no line is negative.
    ///
    /// Errors: why the cost is unknown.
    /// Source: FOCUS `ListCost` = `ListUnitPrice` × `PricingQuantity`. Service tiers, long context,
    /// caches and factors follow the price lists of the providers.
    pub fn cost(&self, query: &Query<'_>, usage: &Usage) -> Result<Cost, PriceError> {
        self.contracted(&Contract::default(), query, usage)
    }

    /// The cost for a customer with `contract`. The list amount is the cost at the prices of this
    /// book.
    ///
    /// Errors: as [`PriceBook::cost`].
    /// Source: FOCUS `ContractedCost` = `ContractedUnitPrice` × `PricingQuantity`.
    pub fn contracted(
        &self,
        contract: &Contract,
        query: &Query<'_>,
        usage: &Usage,
    ) -> Result<Cost, PriceError> {
        let price = self.price(contract, query)?;
        let mut builder = CostBuilder { book: self, contract, lines: Vec::new() };
        builder.charge(query, &price, usage, &usage.conditions, None)?;
        let lines = builder.lines;
        let sum = |of: fn(&CostLine) -> Option<Decimal>| {
            let sum = |sum, line| plus(sum, of(line)?);
            lines.iter().try_fold(Decimal::ZERO, sum).ok_or(PriceError::Overflow)
        };
        Ok(Cost {
            currency: self.currency(),
            amount: sum(|line| Some(line.amount))?,
            list_amount: sum(|line| times(line.quantity, line.list_unit_price))?,
            price_id: price.id,
            lines,
        })
    }

    /// The same as [`upper_bound`](Self::upper_bound) for a customer with `contract`.
    #[must_use]
    pub fn contracted_upper_bound(
        &self,
        contract: &Contract,
        query: &Query<'_>,
        input_tokens_max: u64,
        output_tokens_max: u64,
    ) -> Option<Decimal> {
        match contract.fixed(query) {
            Some(fixed) => fixed.upper_bound(query, input_tokens_max, output_tokens_max),
            None => {
                let most = self.upper_bound(query, input_tokens_max, output_tokens_max)?;
                times(most, contract.factor(query.at))
            }
        }
    }

    /// The rows that price a request.
    fn price<'a>(
        &'a self,
        contract: &'a Contract,
        query: &Query<'_>,
    ) -> Result<Price<'a>, PriceError> {
        let list = self.scaled_row(query);
        if let Some(book) = contract.fixed(query)
            && let Some(paid) = book.scaled_row(query)
        {
            return Ok(Price { id: book.price_id(paid.row, query), paid, list });
        }
        let list = list.ok_or_else(|| {
            let model = query.response_model.or(query.request_model).unwrap_or_default();
            PriceError::UnknownModel { model: model.to_owned(), currency: self.currency() }
        })?;
        let factor = times(list.factor, contract.factor(query.at)).ok_or(PriceError::Overflow)?;
        let id = self.price_id(list.row, query) + &contract.mark(query.at);
        Ok(Price { id, paid: ScaledRow { row: list.row, factor }, list: Some(list) })
    }

    fn scaled_row(&self, query: &Query<'_>) -> Option<ScaledRow<'_>> {
        let row = self.find(query)?;
        Some(ScaledRow { row, factor: self.exchange(row.currency, query.at)? })
    }

    /// The row, its version, and the exchange rate if there is one.
    fn price_id(&self, row: &Row, query: &Query<'_>) -> String {
        match self.exchange(row.currency, query.at) {
            Some(rate) if row.currency != self.currency() => {
                format!("{};{}*{}", row.price_id, row.currency, rate.normalize())
            }
            _ => row.price_id.clone(),
        }
    }
}

/// The rows that price one model run.
struct Price<'a> {
    id: String,
    /// The contracted price.
    paid: ScaledRow<'a>,
    /// The list price, if the book has one.
    list: Option<ScaledRow<'a>>,
}

/// A row, and a factor for all its rates.
#[derive(Clone, Copy)]
struct ScaledRow<'a> {
    row: &'a Row,
    factor: Decimal,
}

impl<'a> ScaledRow<'a> {
    fn tariff(
        &self,
        query: &Query<'_>,
        usage: &Usage,
        conditions: &BTreeMap<Condition, String>,
    ) -> Result<Tariff<'a>, PriceError> {
        Ok(self.row.tariff(&PricingContext {
            at: TimeZone::UTC.to_datetime(query.at),
            tier: tier(self.row, query.service_tier)?,
            input_tokens: usage.input_tokens.unwrap_or(0),
            conditions,
        }))
    }

    fn unit_price(&self, tariff: &Tariff<'_>, meter: MeterName) -> Result<Decimal, PriceError> {
        let rate = tariff.rate(meter).ok_or_else(|| self.no_rate(meter.as_str()))?;
        let factors = tariff.factors().filter(|_| meter.counts_tokens());
        factors.chain([self.factor]).try_fold(rate, times).ok_or(PriceError::Overflow)
    }

    fn no_rate(&self, part: &str) -> PriceError {
        PriceError::NoRate { part: part.to_owned(), price_id: self.row.price_id.clone() }
    }
}

/// Collects the cost lines of one request and its further model runs.
struct CostBuilder<'a> {
    book: &'a PriceBook,
    contract: &'a Contract,
    lines: Vec<CostLine>,
}

impl CostBuilder<'_> {
    /// Adds the lines of one model run, then those of its further runs. The same conditions hold
    /// for all.
    fn charge(
        &mut self,
        query: &Query<'_>,
        price: &Price<'_>,
        usage: &Usage,
        conditions: &BTreeMap<Condition, String>,
        pass: Option<&str>,
    ) -> Result<(), PriceError> {
        ModelRun { query, price, usage, conditions, pass }.charge(&mut self.lines)?;
        for further in &usage.passes {
            match further.model.as_deref() {
                None => {
                    let model = Some(price.paid.row.model.as_str());
                    self.charge(query, price, &further.usage, conditions, model)?;
                }
                model => {
                    let query = Query { response_model: model, request_model: None, ..*query };
                    let price = self.book.price(self.contract, &query)?;
                    self.charge(&query, &price, &further.usage, conditions, model)?;
                }
            }
        }
        Ok(())
    }
}

/// One model run.
struct ModelRun<'a> {
    query: &'a Query<'a>,
    price: &'a Price<'a>,
    usage: &'a Usage,
    /// What the answer reports about itself.
    conditions: &'a BTreeMap<Condition, String>,
    /// Model of a further model run.
    pass: Option<&'a str>,
}

impl ModelRun<'_> {
    /// Adds the lines of this run, by meter.
    fn charge(&self, lines: &mut Vec<CostLine>) -> Result<(), PriceError> {
        let Self { query, price: Price { paid, list, .. }, usage, conditions, pass } = self;
        let tariff = paid.tariff(query, usage, conditions)?;
        let list = list
            .as_ref()
            .and_then(|list| Some((list, list.tariff(query, usage, conditions).ok()?)));
        let list_price =
            |meter| list.as_ref().and_then(|(list, tariff)| list.unit_price(tariff, meter).ok());
        for (meter, quantity) in self.counted(&tariff)? {
            let unit_price = paid.unit_price(&tariff, meter)?;
            lines.push(CostLine {
                meter,
                model: pass.map(str::to_owned),
                quantity,
                unit_price,
                list_unit_price: list_price(meter).unwrap_or(unit_price),
                amount: times(quantity, unit_price).ok_or(PriceError::Overflow)?,
            });
        }
        Ok(())
    }

    /// The charged quantities, in the order of meters.
    fn counted(&self, tariff: &Tariff<'_>) -> Result<Quantities, PriceError> {
        let (mut beside, mut counted) = self.units(tariff)?;
        drop_other_measure(&mut beside, tariff);
        // An unknown number of searches is not zero searches.
        let charges_searches = tariff.rate(MeterName::SearchUnits).is_some_and(|r| !r.is_zero());
        if charges_searches && !self.usage.units.contains_key(MeterName::SearchUnits.as_str()) {
            return Err(PriceError::UsageUnknown { meter: MeterName::SearchUnits });
        }
        let tokens_priced = self.tokens_are_reported() && tariff.prices_tokens();
        // If tokens are free, a quantity instead of tokens is free too, unless it has a rate of its
        // own.
        let is_free = tariff.is_free(MeterName::Input)
            && (self.price.paid.row.input_only || tariff.is_free(MeterName::Output))
            && counted.iter().all(|(meter, _)| tariff.rate(*meter).is_none());
        if tokens_priced || counted.is_empty() || is_free {
            counted = self.tokens(tariff, !beside.is_empty())?;
        }
        counted.extend(beside);
        counted.retain(|(_, quantity)| !quantity.is_zero());
        if !counted.is_empty() && self.pass.is_none() && tariff.rate(MeterName::Requests).is_some()
        {
            counted.push((MeterName::Requests, Decimal::ONE));
        }
        counted.sort_unstable_by_key(|(meter, _)| *meter);
        Ok(counted)
    }

    const fn tokens_are_reported(&self) -> bool {
        self.usage.input_tokens.is_some() || self.usage.output_tokens.is_some()
    }

    /// Quantities besides tokens, and quantities instead of tokens.
    fn units(&self, tariff: &Tariff<'_>) -> Result<(Quantities, Quantities), PriceError> {
        let charged = self.usage.units.iter().filter(|(_, count)| !count.is_zero());
        let mut units = (Vec::new(), Vec::new());
        for (name, count) in charged {
            let meter = MeterName::of_unit(name);
            let has_rate = meter.is_some_and(|meter| tariff.rate(meter).is_some());
            if !has_rate && FREE_UNITS.contains(&name.as_str()) {
                continue;
            }
            match meter.map(|meter| (meter, meter.kind())) {
                Some((meter, MeterKind::Beside)) => units.0.push((meter, *count)),
                Some((meter, MeterKind::InPlaceOfTokens)) => units.1.push((meter, *count)),
                _ => return Err(self.price.paid.no_rate(name)),
            }
        }
        Ok(units)
    }

    /// The disjoint parts of the tokens. An unknown number of tokens is no error if the tokens are
    /// free. It is no error either if the row has no rate for tokens and something else was counted
    /// (`has_other_quantities`).
    fn tokens(
        &self,
        tariff: &Tariff<'_>,
        has_other_quantities: bool,
    ) -> Result<Quantities, PriceError> {
        let generated = self.usage.modalities.as_deref().and_then(|told| told.output.multimodal);
        if generated > Some(0) && tariff.is_separate(MeterName::OutputImage) {
            return Err(self.price.paid.no_rate("multimodal_output_tokens"));
        }
        let needs_none =
            |whole| tariff.is_free(whole) || (has_other_quantities && !tariff.prices_tokens());
        let unknown = |meter| PriceError::UsageUnknown { meter };
        let input = match self.usage.input_tokens {
            None if needs_none(MeterName::Input) => 0,
            tokens => tokens.ok_or_else(|| unknown(MeterName::Input))?,
        };
        let output = match self.usage.output_tokens {
            None if self.price.paid.row.input_only || needs_none(MeterName::Output) => 0,
            tokens => tokens.ok_or_else(|| unknown(MeterName::Output))?,
        };
        let input = quantities::of_input(self.usage, input, tariff);
        let output = quantities::of_output(self.usage, output, tariff);
        Ok(input.chain(output).map(|(meter, tokens)| (meter, tokens.into())).collect())
    }
}

type Quantities = Vec<(MeterName, Decimal)>;

/// Gemini can report web searches both as a number of searches and as a number of queries. If only
/// one of the two has a rate, the other is not charged.
fn drop_other_measure(beside: &mut Quantities, tariff: &Tariff<'_>) {
    let (searches, queries) = (MeterName::WebSearchRequests, MeterName::SearchQueries);
    for (meter, other) in [(searches, queries), (queries, searches)] {
        let is_told = beside.iter().any(|(told, _)| *told == other);
        if is_told && tariff.rate(meter).is_none() && tariff.rate(other).is_some() {
            beside.retain(|(told, _)| *told != meter);
        }
    }
}

/// The service tier for a word in the answer. `None` is the standard tier.
///
/// A row without prices by tier costs the same in every tier, so the word does not matter.
fn tier(row: &Row, word: Option<&str>) -> Result<Option<ServiceTier>, PriceError> {
    match word {
        _ if !row.has_tiers() => Ok(None),
        None
        | Some("" | "auto" | "default" | "on_demand" | "scale" | "standard" | "standard_only") => {
            Ok(None)
        }
        Some("batch") => Ok(Some(ServiceTier::Batch)),
        Some("flex") => Ok(Some(ServiceTier::Flex)),
        Some("priority" | "fast") => Ok(Some(ServiceTier::Priority)),
        Some("ultrafast") => Ok(Some(ServiceTier::Ultrafast)),
        Some(tier) => {
            Err(PriceError::UnknownTier { tier: tier.to_owned(), price_id: row.price_id.clone() })
        }
    }
}

#[cfg(test)]
mod tests;
