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
    /// Row that priced the request, [`Row::price_id`]; with the exchange rate behind it where there
    /// was one: `…;USD*0.92`.
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
        let row = self.row(query)?;
        let mut lines = Vec::new();
        self.charge(query, row, usage, &usage.conditions, None, &mut lines)?;
        let amount = lines
            .iter()
            .try_fold(Decimal::ZERO, |sum, line| plus(sum, line.amount))
            .ok_or(PriceError::Overflow)?;
        Ok(Cost {
            currency: self.currency(),
            amount,
            list_amount: amount,
            price_id: self.price_id(row, query),
            lines,
        })
    }

    fn row(&self, query: &Query<'_>) -> Result<&Row, PriceError> {
        self.find(query).ok_or_else(|| {
            let model = query.response_model.or(query.request_model).unwrap_or_default();
            PriceError::UnknownModel { model: model.to_owned(), currency: self.currency() }
        })
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

    /// Adds the lines of one run, then those of its passes, which run under the same conditions.
    fn charge(
        &self,
        query: &Query<'_>,
        row: &Row,
        usage: &Usage,
        conditions: &BTreeMap<Condition, String>,
        pass: Option<&str>,
        lines: &mut Vec<CostLine>,
    ) -> Result<(), PriceError> {
        let exchange = self.exchange(row.currency, query.at).ok_or(PriceError::Overflow)?;
        Run { query, row, usage, conditions, pass, exchange }.charge(lines)?;
        for further in &usage.passes {
            let model = further.model.as_deref();
            let (query, row) = match model {
                Some(_) => {
                    let query = Query { response_model: model, request_model: None, ..*query };
                    (query, self.row(&query)?)
                }
                None => (*query, row),
            };
            let called = model.unwrap_or(&row.model);
            self.charge(&query, row, &further.usage, conditions, Some(called), lines)?;
        }
        Ok(())
    }
}

/// One model run.
struct Run<'a> {
    query: &'a Query<'a>,
    row: &'a Row,
    usage: &'a Usage,
    /// What the answer says of itself.
    conditions: &'a BTreeMap<Condition, String>,
    /// Model of a further pass.
    pass: Option<&'a str>,
    /// What one of the row's currency is worth in that of the bills.
    exchange: Decimal,
}

impl Run<'_> {
    /// Adds its lines, by meter.
    fn charge(&self, lines: &mut Vec<CostLine>) -> Result<(), PriceError> {
        let tariff = self.row.tariff(&Terms {
            at: TimeZone::UTC.to_datetime(self.query.at),
            tier: tier(self.row, self.query.service_tier)?,
            input_tokens: self.usage.input_tokens.unwrap_or(0),
            conditions: self.conditions,
        });
        let (beside, mut counted) = self.units()?;
        // A search that nobody counted is not a search for nothing.
        let charges_searches = tariff.rate(MeterName::SearchUnits).is_some_and(|r| !r.is_zero());
        if charges_searches && !self.usage.units.contains_key(MeterName::SearchUnits.as_str()) {
            return Err(PriceError::UsageUnknown { meter: MeterName::SearchUnits });
        }
        let tokens_priced = self.tokens_are_reported() && tariff.prices_tokens();
        if tokens_priced || counted.is_empty() {
            counted = self.tokens(&tariff, !beside.is_empty())?;
        }
        counted.extend(beside);
        counted.retain(|(_, quantity)| !quantity.is_zero());
        if !counted.is_empty() && self.pass.is_none() && tariff.rate(MeterName::Requests).is_some()
        {
            counted.push((MeterName::Requests, Decimal::ONE));
        }
        counted.sort_unstable_by_key(|(meter, _)| *meter);
        for (meter, quantity) in counted {
            let unit_price = self.unit_price(&tariff, meter)?;
            lines.push(CostLine {
                meter,
                model: self.pass.map(str::to_owned),
                quantity,
                unit_price,
                amount: times(quantity, unit_price).ok_or(PriceError::Overflow)?,
            });
        }
        Ok(())
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
                _ => return Err(self.no_rate(name)),
            }
        }
        Ok(units)
    }

    /// The disjoint parts of the tokens. Those that are free, and those of a row that prices none,
    /// need not be known where something `else_counted` is.
    fn tokens(&self, tariff: &Tariff<'_>, else_counted: bool) -> Result<Counted, PriceError> {
        let generated = self.usage.modalities.as_deref().and_then(|told| told.output.multimodal);
        if generated > Some(0) && tariff.tells_apart(MeterName::OutputImage) {
            return Err(self.no_rate("multimodal_output_tokens"));
        }
        let needs_none = |whole| tariff.is_free(whole) || (else_counted && !tariff.prices_tokens());
        let unknown = |meter| PriceError::UsageUnknown { meter };
        let input = match self.usage.input_tokens {
            None if needs_none(MeterName::Input) => 0,
            tokens => tokens.ok_or_else(|| unknown(MeterName::Input))?,
        };
        let output = match self.usage.output_tokens {
            None if self.row.input_only || needs_none(MeterName::Output) => 0,
            tokens => tokens.ok_or_else(|| unknown(MeterName::Output))?,
        };
        let input = quantities::of_input(self.usage, input, tariff);
        let output = quantities::of_output(self.usage, output, tariff);
        Ok(input.chain(output).map(|(meter, tokens)| (meter, tokens.into())).collect())
    }

    fn unit_price(&self, tariff: &Tariff<'_>, meter: MeterName) -> Result<Decimal, PriceError> {
        let rate = tariff.rate(meter).ok_or_else(|| self.no_rate(meter.as_str()))?;
        let factors = tariff.factors().filter(|_| meter.counts_tokens());
        factors.chain([self.exchange]).try_fold(rate, times).ok_or(PriceError::Overflow)
    }

    fn no_rate(&self, part: &str) -> PriceError {
        PriceError::NoRate { part: part.to_owned(), price_id: self.row.price_id.clone() }
    }
}

type Counted = Vec<(MeterName, Decimal)>;

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
