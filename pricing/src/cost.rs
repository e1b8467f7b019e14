//! The arithmetic: tokens × rates = money.

use std::collections::BTreeMap;

use jiff::tz::TimeZone;
use rust_decimal::Decimal;

use crate::book::{PriceBook, Query};
use crate::currency::Currency;
use crate::exact::{plus, times};
use crate::meter::{Kind, MeterName};
use crate::quantities;
use crate::row::{Row, ServiceTier, Tariff, Terms};
use crate::terms::Contract;
use crate::usage::{Condition, Usage};

/// What one request costs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cost {
    /// Of all amounts.
    pub currency: Currency,
    /// What is owed: the sum of the lines, exact.
    pub amount: Decimal,
    /// The same at list price.
    pub list_amount: Decimal,
    /// Row that priced the request, [`Row::price_id`]; behind it the exchange rate where there was
    /// one, and the factor of the contract: `…;USD*0.92;acme*0.9`.
    pub price_id: String,
    /// One per meter with a quantity; further passes after the request's own.
    pub lines: Vec<CostLine>,
}

/// One line of a cost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CostLine {
    /// What was counted.
    pub meter: MeterName,
    /// Model of a further pass; `None` on the request's own.
    pub model: Option<String>,
    /// How many, in [`MeterName::unit`].
    pub quantity: Decimal,
    /// Money for one, exact.
    pub unit_price: Decimal,
    /// The same at list price; that of the contract where the book has none.
    pub list_unit_price: Decimal,
    /// `quantity` × `unit_price`, exact.
    pub amount: Decimal,
}

/// Calls of Anthropic's web fetch: they cost their tokens and nothing else.
const FREE_UNIT: &str = "web_fetch_requests";

/// Why a cost is unknown. Never a reason to write zero.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PriceError {
    /// No row covers the model.
    #[error(
        "the price book has no price in {currency} for model {model:?}; add it to the overrides"
    )]
    UnknownModel {
        /// As the answer calls it, else the request.
        model: String,
        /// What it was to be priced in.
        currency: Currency,
    },
    /// The row does not say what this part costs.
    #[error("{price_id} has no rate for {part}; add it to the overrides")]
    NoRate {
        /// The meter, or the name on records of what has none.
        part: String,
        /// The row.
        price_id: String,
    },
    /// The row has prices by service tier, and this is none that we know.
    #[error("{price_id} has no price for service tier {tier:?}")]
    UnknownTier {
        /// As the answer calls it.
        tier: String,
        /// The row.
        price_id: String,
    },
    /// Nobody knows how many there were.
    #[error("nobody counted {meter}, in {}", meter.unit())]
    UsageUnknown {
        /// What was not counted.
        meter: MeterName,
    },
    /// More money than a decimal holds exactly.
    #[error("the cost is too large to be exact")]
    Overflow,
}

impl PriceBook {
    /// Cost of `usage` at the prices in force at `query.at`.
    ///
    /// Usage in, money out; exact, not rounded. Each pass is priced by its own model, with its own
    /// input for the long context. A part larger than its whole is charged as reported and the rest
    /// is none, so no line is negative.
    ///
    /// Errors: the cost is unknown, and why – never a silent zero.
    /// Source: FOCUS `ListCost` = `ListUnitPrice` × `PricingQuantity`; service tiers, long context,
    /// caches and factors as the providers' lists say.
    pub fn cost(&self, query: &Query<'_>, usage: &Usage) -> Result<Cost, PriceError> {
        self.contracted(&Contract::default(), query, usage)
    }

    /// The same as a customer with `contract` pays it; the list amount is by this book.
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
        let mut ride = Ride { book: self, contract, lines: Vec::new() };
        ride.charge(query, &price, usage, &usage.conditions, None)?;
        let lines = ride.lines;
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

    /// The same for a customer with `contract`.
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

    /// Which rows price such a request.
    fn price<'a>(
        &'a self,
        contract: &'a Contract,
        query: &Query<'_>,
    ) -> Result<Price<'a>, PriceError> {
        let list = self.rated(query);
        if let Some(book) = contract.fixed(query)
            && let Some(paid) = book.rated(query)
        {
            return Ok(Price { id: book.price_id(paid.row, query), paid, list });
        }
        let list = list.ok_or_else(|| {
            let model = query.response_model.or(query.request_model).unwrap_or_default();
            PriceError::UnknownModel { model: model.to_owned(), currency: self.currency() }
        })?;
        let factor = times(list.factor, contract.factor(query.at)).ok_or(PriceError::Overflow)?;
        let id = self.price_id(list.row, query) + &contract.mark(query.at);
        Ok(Price { id, paid: Rated { row: list.row, factor }, list: Some(list) })
    }

    fn rated(&self, query: &Query<'_>) -> Option<Rated<'_>> {
        let row = self.find(query)?;
        Some(Rated { row, factor: self.exchange(row.currency, query.at)? })
    }

    /// Which row in which version, and the exchange rate.
    fn price_id(&self, row: &Row, query: &Query<'_>) -> String {
        match self.exchange(row.currency, query.at) {
            Some(rate) if row.currency != self.currency() => {
                format!("{};{}*{}", row.price_id, row.currency, rate.normalize())
            }
            _ => row.price_id.clone(),
        }
    }
}

/// What prices one model run.
struct Price<'a> {
    id: String,
    /// As contracted.
    paid: Rated<'a>,
    /// As the book has it, if it does.
    list: Option<Rated<'a>>,
}

/// A row, and what all its rates are multiplied with.
#[derive(Clone, Copy)]
struct Rated<'a> {
    row: &'a Row,
    factor: Decimal,
}

impl<'a> Rated<'a> {
    fn tariff(
        &self,
        query: &Query<'_>,
        usage: &Usage,
        conditions: &BTreeMap<Condition, String>,
    ) -> Result<Tariff<'a>, PriceError> {
        Ok(self.row.tariff(&Terms {
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

/// One request with its further passes.
struct Ride<'a> {
    book: &'a PriceBook,
    contract: &'a Contract,
    lines: Vec<CostLine>,
}

impl Ride<'_> {
    /// Adds the lines of one run, then those of its passes, which run under the same conditions.
    fn charge(
        &mut self,
        query: &Query<'_>,
        price: &Price<'_>,
        usage: &Usage,
        conditions: &BTreeMap<Condition, String>,
        pass: Option<&str>,
    ) -> Result<(), PriceError> {
        Run { query, price, usage, conditions, pass }.charge(&mut self.lines)?;
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
struct Run<'a> {
    query: &'a Query<'a>,
    price: &'a Price<'a>,
    usage: &'a Usage,
    /// What the answer says of itself.
    conditions: &'a BTreeMap<Condition, String>,
    /// Model of a further pass.
    pass: Option<&'a str>,
}

impl Run<'_> {
    /// Adds its lines, by meter.
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

    /// What is paid for, in the order of meters.
    fn counted(&self, tariff: &Tariff<'_>) -> Result<Counted, PriceError> {
        let (mut beside, mut counted) = self.units()?;
        drop_other_measure(&mut beside, tariff);
        // A search that nobody counted is not a search for nothing.
        let charges_searches = tariff.rate(MeterName::SearchUnits).is_some_and(|r| !r.is_zero());
        if charges_searches && !self.usage.units.contains_key(MeterName::SearchUnits.as_str()) {
            return Err(PriceError::UsageUnknown { meter: MeterName::SearchUnits });
        }
        let tokens_priced = self.tokens_are_reported() && tariff.prices_tokens();
        // What costs nothing by its tokens costs nothing by another measure that has no rate.
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

    /// What is counted beside tokens, and in their place.
    fn units(&self) -> Result<(Counted, Counted), PriceError> {
        let charged =
            self.usage.units.iter().filter(|(name, count)| *name != FREE_UNIT && !count.is_zero());
        let mut units = (Vec::new(), Vec::new());
        for (name, count) in charged {
            let meter = MeterName::ALL.into_iter().find(|meter| meter.as_str() == name);
            match meter.map(|meter| (meter, meter.kind())) {
                Some((meter, Kind::Beside)) => units.0.push((meter, *count)),
                Some((meter, Kind::InPlaceOfTokens)) => units.1.push((meter, *count)),
                _ => return Err(self.price.paid.no_rate(name)),
            }
        }
        Ok(units)
    }

    /// The disjoint parts of the tokens. Those that are free, and those of a row that prices none,
    /// need not be known where something `else_counted` is.
    fn tokens(&self, tariff: &Tariff<'_>, else_counted: bool) -> Result<Counted, PriceError> {
        let generated = self.usage.modalities.as_deref().and_then(|told| told.output.multimodal);
        if generated > Some(0) && tariff.tells_apart(MeterName::OutputImage) {
            return Err(self.price.paid.no_rate("multimodal_output_tokens"));
        }
        let needs_none = |whole| tariff.is_free(whole) || (else_counted && !tariff.prices_tokens());
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

type Counted = Vec<(MeterName, Decimal)>;

/// Searches may be told by their number and by their queries (Gemini): what has no rate is not
/// charged where the other has one.
fn drop_other_measure(beside: &mut Counted, tariff: &Tariff<'_>) {
    let (searches, queries) = (MeterName::WebSearchRequests, MeterName::SearchQueries);
    for (meter, other) in [(searches, queries), (queries, searches)] {
        let is_told = beside.iter().any(|(told, _)| *told == other);
        if is_told && tariff.rate(meter).is_none() && tariff.rate(other).is_some() {
            beside.retain(|(told, _)| *told != meter);
        }
    }
}

/// The tier that a word of the answer means; `None` is the standard one.
///
/// A row without prices by tier costs the same in any, so the word does not matter there.
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
