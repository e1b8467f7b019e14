//! The arithmetic: quantities × rates = cost.

use std::collections::BTreeMap;

use jiff::tz::TimeZone;
use rust_decimal::Decimal;

use crate::book::{PriceBook, Query};
use crate::exact::{plus, times};
use crate::lookup::{Found, NoRow};
use crate::meter::{MeterKind, MeterName};
use crate::priced::{Cost, CostLine, PriceError, Unpriced};
use crate::quantities;
use crate::row::{Row, ServiceTier};
use crate::rule::{PriceMatch, Rule};
use crate::tariff::{Combination, PricingContext, Tariff};
use crate::terms::Contract;
use crate::usage::{Condition, Usage};

/// Calls of tools that cost only their tokens, unless a row has a rate for them.
const FREE_UNITS: [&str; 10] = [
    "web_fetch_requests",
    "mcp_calls",
    "mcp_list_tools_calls",
    "tool_search_calls",
    // The client runs these, or a container that is charged by itself.
    "computer_calls",
    "shell_calls",
    "local_shell_calls",
    "apply_patch_calls",
    "view_image_calls",
    "view_x_video_calls",
];

impl PriceBook {
    /// The cost of `usage` at the prices in force at `query.at`.
    ///
    /// The cost is exact and not rounded. Each further model run is priced by its own model, with
    /// its own input for the long context. If a part is larger than its whole, the part is charged
    /// as reported and the rest is zero. So no line is negative.
    ///
    /// Errors: why the cost is unknown, and the part of it that is known.
    /// Source: FOCUS `ListCost` = `ListUnitPrice` × `PricingQuantity`. Service tiers, long context,
    /// caches and factors follow the price lists of the providers.
    pub fn cost(&self, query: &Query<'_>, usage: &Usage) -> Result<Cost, Unpriced> {
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
    ) -> Result<Cost, Unpriced> {
        let price = self.price(contract, query)?;
        let how = price.how;
        let mut builder =
            CostBuilder { book: self, contract, how, lines: Vec::new(), reasons: Vec::new() };
        builder.charge(query, &price, usage, &usage.conditions, None);
        let CostBuilder { lines, mut reasons, .. } = builder;
        let cost = self.sum(price.id, how, lines);
        if cost.is_none() {
            reasons.push(PriceError::Overflow);
        }
        match cost {
            Some(cost) if reasons.is_empty() => Ok(cost),
            cost => {
                let known = cost.filter(|cost| !cost.lines.is_empty()).map(Box::new);
                Err(Unpriced { reasons, known })
            }
        }
    }

    /// The cost of `lines`. `None` if it has too many digits.
    fn sum(&self, price_id: String, price_match: PriceMatch, lines: Vec<CostLine>) -> Option<Cost> {
        let sum = |of: fn(&CostLine) -> Option<Decimal>| {
            lines.iter().try_fold(Decimal::ZERO, |sum, line| plus(sum, of(line)?))
        };
        Some(Cost {
            currency: self.currency(),
            amount: sum(|line| Some(line.amount))?,
            list_amount: sum(|line| times(line.quantity, line.list_unit_price))?,
            price_id,
            price_match,
            lines,
        })
    }

    /// The rows that price a request.
    fn price<'a>(
        &'a self,
        contract: &'a Contract,
        query: &Query<'_>,
    ) -> Result<Price<'a>, PriceError> {
        let list = self.scaled_row(query);
        if let Some(book) = contract.fixed(query)
            && let Ok((paid, how)) = book.scaled_row(query)
        {
            let list = list.ok().map(|(list, _)| list);
            return Ok(Price { id: book.price_id(paid.row, query), how, paid, list });
        }
        let (list, how) = list?;
        let factor = times(list.factor, contract.factor(query.at)).ok_or(PriceError::Overflow)?;
        let id = self.price_id(list.row, query) + &contract.mark(query.at);
        let paid = ScaledRow { factor, ..list.clone() };
        Ok(Price { id, how, paid, list: Some(list) })
    }

    /// The row of a request, and what found it.
    fn scaled_row(&self, query: &Query<'_>) -> Result<(ScaledRow<'_>, PriceMatch), PriceError> {
        let currency = self.currency();
        let Found { row, how, region } =
            self.lookup(query).map_err(|missing| PriceError::of(&missing, currency))?;
        let factor = self
            .exchange(row.currency, query.at)
            .ok_or_else(|| PriceError::of(&NoRow::Unknown(&row.model), currency))?;
        let names_region = how.has(Rule::Region);
        Ok((ScaledRow { row, factor, region, names_region }, how))
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
    /// What found the row of the contracted price.
    how: PriceMatch,
    /// The contracted price.
    paid: ScaledRow<'a>,
    /// The list price, if the book has one.
    list: Option<ScaledRow<'a>>,
}

/// A row, and a factor for all its rates.
#[derive(Clone)]
struct ScaledRow<'a> {
    row: &'a Row,
    factor: Decimal,
    /// The region in the name that found it, where the row has a price for it.
    region: Option<String>,
    /// The name has a region, which may be one with the plain prices.
    names_region: bool,
}

impl<'a> ScaledRow<'a> {
    fn tariff(
        &self,
        query: &Query<'_>,
        usage: &Usage,
        conditions: &BTreeMap<Condition, String>,
    ) -> Result<Tariff<'a>, PriceError> {
        let mut in_region;
        let conditions = if self.names_region {
            // A name says where the model runs, and an endpoint only where it is asked.
            in_region = conditions.clone();
            in_region.remove(&Condition::Region);
            in_region.extend(self.region.clone().map(|region| (Condition::Region, region)));
            &in_region
        } else {
            conditions
        };
        self.check_conditions(conditions)?;
        let context = PricingContext {
            at: TimeZone::UTC.to_datetime(query.at),
            tier: tier(self.row, query.service_tier)?,
            input_tokens: usage.input_tokens.unwrap_or(0),
            conditions,
        };
        Ok(Tariff::of(self.row, &context))
    }

    /// A row with prices for some values of a condition does not say what another value costs.
    ///
    /// Errors: the first condition without a price.
    fn check_conditions(&self, conditions: &BTreeMap<Condition, String>) -> Result<(), PriceError> {
        let unknown = self.row.when.iter().find_map(|(condition, words)| {
            let value = conditions.get(condition)?;
            let is_known = words.contains_key(value) || condition.is_usual(value);
            (!is_known).then(|| (*condition, value.clone()))
        });
        match unknown {
            Some((condition, value)) => {
                let price_id = self.row.price_id.clone();
                Err(PriceError::UnknownCondition { condition, value, price_id })
            }
            None => Ok(()),
        }
    }

    fn unit_price(&self, tariff: &Tariff<'_>, meter: MeterName) -> Result<Decimal, PriceError> {
        let no_rate = || self.no_rate(meter.as_str(), tariff.combination_without(meter));
        let rate = tariff.rate(meter).ok_or_else(no_rate)?;
        let factors = tariff.factors().filter(|_| meter.counts_tokens());
        factors.chain([self.factor]).try_fold(rate, times).ok_or(PriceError::Overflow)
    }

    /// The price of one on a meter that is charged beside tokens, if it is the same in every set of
    /// rates.
    fn price_in_every_set(&self, meter: MeterName) -> Option<Decimal> {
        let rate = self.row.card.rates.rate(meter)?;
        let mut others = self.row.sets().filter_map(|set| set.rate(meter));
        others.all(|other| other == rate).then(|| times(rate, self.factor)).flatten()
    }

    fn no_rate(&self, part: &str, combination: Combination) -> PriceError {
        let price_id = self.row.price_id.clone();
        PriceError::NoRate { part: part.to_owned(), combination, price_id }
    }
}

/// Collects the cost lines of one request and its further model runs, and why what is missing has no
/// price.
struct CostBuilder<'a> {
    book: &'a PriceBook,
    contract: &'a Contract,
    /// What found the row of the request.
    how: PriceMatch,
    lines: Vec<CostLine>,
    reasons: Vec<PriceError>,
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
    ) {
        let how = Some(price.how).filter(|how| *how != self.how);
        ModelRun { query, price, usage, conditions, pass, how }
            .charge(&mut self.lines, &mut self.reasons);
        for further in &usage.passes {
            match further.model.as_deref() {
                None => {
                    let model = Some(price.paid.row.model.as_str());
                    self.charge(query, price, &further.usage, conditions, model);
                }
                model => {
                    let query = Query { response_model: model, request_model: None, ..*query };
                    match self.book.price(self.contract, &query) {
                        Ok(price) => {
                            self.charge(&query, &price, &further.usage, conditions, model);
                        }
                        Err(reason) => self.reasons.push(reason),
                    }
                }
            }
        }
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
    /// What found its row, if it differs.
    how: Option<PriceMatch>,
}

impl ModelRun<'_> {
    /// Adds the lines of this run, by meter, and the reasons why a part of it has no price.
    fn charge(&self, lines: &mut Vec<CostLine>, reasons: &mut Vec<PriceError>) {
        let Self { query, price: Price { paid, list, .. }, usage, conditions, .. } = self;
        let tariff = match paid.tariff(query, usage, conditions) {
            Ok(tariff) => tariff,
            Err(reason) => {
                reasons.push(reason);
                return self.charge_beside(lines, reasons);
            }
        };
        let list = list
            .as_ref()
            .and_then(|list| Some((list, list.tariff(query, usage, conditions).ok()?)));
        let list_price =
            |meter| list.as_ref().and_then(|(list, tariff)| list.unit_price(tariff, meter).ok());
        for (meter, quantity) in self.counted(&tariff, reasons) {
            let priced = paid
                .unit_price(&tariff, meter)
                .and_then(|unit_price| self.line(meter, quantity, unit_price, list_price(meter)));
            match priced {
                Ok(line) => lines.push(line),
                Err(reason) => reasons.push(reason),
            }
        }
    }

    /// Adds the lines that do not depend on the service tier and the conditions, which have no price:
    /// calls of hosted tools and the request itself, where every set of rates has the same price for
    /// them.
    fn charge_beside(&self, lines: &mut Vec<CostLine>, reasons: &mut Vec<PriceError>) {
        let Price { paid, list, .. } = self.price;
        let standard = Tariff::standard(paid.row);
        let Units { mut beside, unknown, .. } = self.units(&standard);
        let no_rate = |name: &str| paid.no_rate(name, Combination::default());
        reasons.extend(unknown.into_iter().map(no_rate));
        drop_other_measure(&mut beside, &standard);
        let Usage { input_tokens, output_tokens, units, .. } = self.usage;
        let is_used = [*input_tokens, *output_tokens].iter().any(|tokens| *tokens > Some(0))
            || units.values().any(|count| !count.is_zero());
        if is_used && self.pass.is_none() && standard.states(MeterName::Requests) {
            beside.push((MeterName::Requests, Decimal::ONE));
        }
        taximeter_collections::sort_by_key(&mut beside, |(meter, _)| *meter);
        for (meter, quantity) in beside {
            let list = list.as_ref().and_then(|list| list.price_in_every_set(meter));
            let priced = match paid.price_in_every_set(meter) {
                Some(unit_price) => self.line(meter, quantity, unit_price, list),
                // It depends on what has no price.
                None if standard.states(meter) => continue,
                None => Err(no_rate(meter.as_str())),
            };
            match priced {
                Ok(line) => lines.push(line),
                Err(reason) => reasons.push(reason),
            }
        }
    }

    fn line(
        &self,
        meter: MeterName,
        quantity: Decimal,
        unit_price: Decimal,
        list: Option<Decimal>,
    ) -> Result<CostLine, PriceError> {
        Ok(CostLine {
            meter,
            model: self.pass.map(str::to_owned),
            price_match: self.how,
            quantity,
            unit_price,
            list_unit_price: list.unwrap_or(unit_price),
            amount: times(quantity, unit_price).ok_or(PriceError::Overflow)?,
        })
    }

    /// The charged quantities, in the order of meters. Adds the reasons why a part of the usage is
    /// not among them.
    fn counted(&self, tariff: &Tariff<'_>, reasons: &mut Vec<PriceError>) -> Quantities {
        let Units { mut beside, instead: mut counted, unknown } = self.units(tariff);
        drop_other_measure(&mut beside, tariff);
        let has_units = !beside.is_empty() || !unknown.is_empty();
        let no_rate = |name: &str| self.price.paid.no_rate(name, Combination::default());
        reasons.extend(unknown.into_iter().map(no_rate));
        // An unknown number of searches is not zero searches.
        if tariff.may_charge(MeterName::SearchUnits)
            && !self.usage.units.contains_key(MeterName::SearchUnits.as_str())
        {
            reasons.push(PriceError::UsageUnknown { meter: MeterName::SearchUnits });
        }
        let tokens_priced = self.tokens_are_reported() && tariff.prices_tokens();
        // If tokens are free, a quantity instead of tokens is free too, unless it has a rate of its
        // own.
        let is_free = tariff.is_free(MeterName::Input)
            && (self.price.paid.row.input_only || tariff.is_free(MeterName::Output))
            && counted.iter().all(|(meter, _)| !tariff.states(*meter));
        if tokens_priced || counted.is_empty() || is_free {
            counted = self.tokens(tariff, has_units, reasons);
        }
        counted.extend(beside);
        counted.retain(|(_, quantity)| !quantity.is_zero());
        if !counted.is_empty() && self.pass.is_none() && tariff.states(MeterName::Requests) {
            counted.push((MeterName::Requests, Decimal::ONE));
        }
        taximeter_collections::sort_by_key(&mut counted, |(meter, _)| *meter);
        counted
    }

    const fn tokens_are_reported(&self) -> bool {
        self.usage.input_tokens.is_some() || self.usage.output_tokens.is_some()
    }

    /// The quantities that are not tokens.
    fn units(&self, tariff: &Tariff<'_>) -> Units<'_> {
        let charged = self.usage.units.iter().filter(|(_, count)| !count.is_zero());
        let mut units = Units::default();
        for (name, count) in charged {
            let meter = MeterName::of_unit(name);
            let has_rate = meter.is_some_and(|meter| tariff.states(meter));
            if !has_rate && FREE_UNITS.contains(&name.as_str()) {
                continue;
            }
            match meter.map(|meter| (meter, meter.kind())) {
                Some((meter, MeterKind::Beside)) => units.beside.push((meter, *count)),
                Some((meter, MeterKind::InPlaceOfTokens)) => units.instead.push((meter, *count)),
                _ => units.unknown.push(name),
            }
        }
        units
    }

    /// The disjoint parts of the tokens. An unknown number of tokens is no reason if the tokens are
    /// free. It is no reason either if the row has no rate for tokens and something else was counted
    /// (`has_units`).
    fn tokens(
        &self,
        tariff: &Tariff<'_>,
        has_units: bool,
        reasons: &mut Vec<PriceError>,
    ) -> Quantities {
        let needs_none = |whole| tariff.is_free(whole) || (has_units && !tariff.prices_tokens());
        let row = self.price.paid.row;
        let mut parts = Vec::new();
        match self.usage.input_tokens {
            Some(tokens) => parts.extend(quantities::of_input(self.usage, tokens, tariff)),
            None if needs_none(MeterName::Input) => {}
            None => reasons.push(PriceError::UsageUnknown { meter: MeterName::Input }),
        }
        let generated = self.usage.modalities.as_deref().and_then(|told| told.output.multimodal);
        match self.usage.output_tokens {
            // The engine does not say how many of them are text.
            _ if generated > Some(0) && tariff.is_separate(MeterName::OutputImage) => {
                let part = "multimodal_output_tokens";
                reasons.push(self.price.paid.no_rate(part, Combination::default()));
            }
            Some(tokens) => parts.extend(quantities::of_output(self.usage, tokens, tariff)),
            None if row.input_only || needs_none(MeterName::Output) => {}
            None => reasons.push(PriceError::UsageUnknown { meter: MeterName::Output }),
        }
        parts.into_iter().map(|(meter, tokens)| (meter, tokens.into())).collect()
    }
}

/// The quantities that are not tokens.
#[derive(Default)]
struct Units<'a> {
    /// Charged in addition to tokens.
    beside: Quantities,
    /// Charged instead of tokens.
    instead: Quantities,
    /// The names of those that have no meter.
    unknown: Vec<&'a str>,
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
