//! The arithmetic: tokens × rates = money.

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use rust_decimal::Decimal;

use crate::book::{PriceBook, Query};
use crate::row::{Currency, MeterName, Row, ServiceTier, Tariff};
use crate::usage::{Modalities, Usage};

/// What one request costs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cost {
    /// Of all amounts.
    pub currency: Currency,
    /// What is owed: the sum of the lines, exact.
    pub amount: Decimal,
    /// The same at list price.
    pub list_amount: Decimal,
    /// Row that priced the request, [`Row::price_id`].
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
    /// Quantity.
    pub tokens: u64,
    /// Money per token, exact.
    pub unit_price: Decimal,
    /// `tokens` × `unit_price`, exact.
    pub amount: Decimal,
}

/// Calls of Anthropic's web fetch: they cost their tokens and nothing else.
const FREE_UNIT: &str = "web_fetch_requests";

/// Why a cost is unknown. Never a reason to write zero.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PriceError {
    /// No row covers the model.
    #[error("the price book has no price for model {model:?}; add it to the overrides")]
    UnknownModel {
        /// As the answer calls it, else the request.
        model: String,
    },
    /// The row does not say what this part of the input or output costs.
    #[error("{price_id} has no rate for {meter}; add it to the overrides")]
    NoRate {
        /// The part.
        meter: MeterName,
        /// The row.
        price_id: String,
    },
    /// The row prices text, and these are none.
    #[error("{price_id} has no rate for {part}")]
    NoModalityRate {
        /// The part, by its name on records.
        part: &'static str,
        /// The row.
        price_id: String,
    },
    /// What is charged by the call or the second beside tokens, and the row prices tokens.
    #[error("{price_id} has no rate for {unit}")]
    NoUnitRate {
        /// What is charged, by its name on records.
        unit: String,
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
    /// Nobody knows how many tokens there were.
    #[error("the number of {meter} tokens is unknown")]
    UsageUnknown {
        /// [`MeterName::Input`] or [`MeterName::Output`].
        meter: MeterName,
    },
    /// More money than a decimal holds exactly.
    #[error("the cost is too large to be exact")]
    Overflow,
}

impl PriceBook {
    /// Cost of `usage` at the prices in force at `query.at`.
    ///
    /// Tokens in, money out; exact, not rounded. Each pass is priced by its own model, with its own
    /// input for the long context. A part larger than its whole is charged as reported and the rest
    /// is none, so no line is negative.
    ///
    /// Errors: the cost is unknown, and why – never a silent zero.
    /// Source: FOCUS `ListCost` = `ListUnitPrice` × `PricingQuantity`; service tiers, long context
    /// and caches as the providers' lists say.
    pub fn cost(&self, query: &Query<'_>, usage: &Usage) -> Result<Cost, PriceError> {
        let row = self.row(query)?;
        let mut lines = Vec::new();
        self.charge(query, row, usage, None, &mut lines)?;
        let amount = lines
            .iter()
            .try_fold(Decimal::ZERO, |sum, line| plus(sum, line.amount))
            .ok_or(PriceError::Overflow)?;
        Ok(Cost {
            currency: Currency::Usd,
            amount,
            list_amount: amount,
            price_id: row.price_id.clone(),
            lines,
        })
    }

    /// The most that a request without further passes can cost: every context length up to
    /// `input_tokens_max`, every service tier, every state of the cache.
    ///
    /// `None` when the book has no price, or not one that is exact.
    #[must_use]
    pub fn upper_bound(
        &self,
        query: &Query<'_>,
        input_tokens_max: u64,
        output_tokens_max: u64,
    ) -> Option<Decimal> {
        let row = self.find(query)?;
        let at = TimeZone::UTC.to_datetime(query.at);
        let steps = row.long_context.iter().map(|long| long.threshold.first());
        let mut most = Decimal::ZERO;
        for input_tokens in std::iter::once(0).chain(steps).filter(|step| *step <= input_tokens_max)
        {
            for tier in std::iter::once(None).chain(ServiceTier::ALL.map(Some)) {
                let tariff = row.tariff(at, tier, input_tokens);
                let input = times(input_tokens_max, dearest(&tariff, &INPUT_METERS))?;
                let output = times(output_tokens_max, dearest(&tariff, &OUTPUT_METERS))?;
                most = most.max(plus(input, output)?);
            }
        }
        Some(most)
    }

    fn row(&self, query: &Query<'_>) -> Result<&Row, PriceError> {
        self.find(query).ok_or_else(|| {
            let model = query.response_model.or(query.request_model).unwrap_or_default();
            PriceError::UnknownModel { model: model.to_owned() }
        })
    }

    /// Adds the lines of one run, then those of its passes.
    fn charge(
        &self,
        query: &Query<'_>,
        row: &Row,
        usage: &Usage,
        pass: Option<&str>,
        lines: &mut Vec<CostLine>,
    ) -> Result<(), PriceError> {
        let at = TimeZone::UTC.to_datetime(query.at);
        run(row, query.service_tier, at, usage, pass, lines)?;
        for pass in &usage.passes {
            let model = pass.model.as_deref();
            let (query, row) = match model {
                Some(_) => {
                    let query = Query { response_model: model, request_model: None, ..*query };
                    (query, self.row(&query)?)
                }
                None => (*query, row),
            };
            self.charge(&query, row, &pass.usage, Some(model.unwrap_or(&row.model)), lines)?;
        }
        Ok(())
    }
}

const INPUT_METERS: [MeterName; 4] =
    [MeterName::Input, MeterName::CacheRead, MeterName::CacheWrite, MeterName::CacheWriteLong];
const OUTPUT_METERS: [MeterName; 2] = [MeterName::Output, MeterName::Reasoning];

fn dearest(tariff: &Tariff<'_>, meters: &[MeterName]) -> Decimal {
    meters.iter().filter_map(|meter| tariff.rate(*meter)).max().unwrap_or_default()
}

/// Adds the lines of one model run.
fn run(
    row: &Row,
    service_tier: Option<&str>,
    at: DateTime,
    usage: &Usage,
    pass: Option<&str>,
    lines: &mut Vec<CostLine>,
) -> Result<(), PriceError> {
    if let Some(part) = usage.modalities.as_deref().and_then(Modalities::beyond_text) {
        return Err(PriceError::NoModalityRate { part, price_id: row.price_id.clone() });
    }
    let mut charged = usage.units.iter().filter(|(name, _)| *name != FREE_UNIT);
    if let Some((unit, _)) = charged.find(|(_, count)| !count.is_zero()) {
        let (unit, price_id) = (unit.clone(), row.price_id.clone());
        return Err(PriceError::NoUnitRate { unit, price_id });
    }
    let unknown = |meter| PriceError::UsageUnknown { meter };
    let input = usage.input_tokens.ok_or_else(|| unknown(MeterName::Input))?;
    let output = match usage.output_tokens {
        None if row.input_only => 0,
        tokens => tokens.ok_or_else(|| unknown(MeterName::Output))?,
    };
    let tariff = row.tariff(at, tier(row, service_tier)?, input);
    for (meter, tokens) in quantities(usage, input, output, &tariff) {
        if tokens == 0 {
            continue;
        }
        let unit_price = tariff
            .rate(meter)
            .ok_or_else(|| PriceError::NoRate { meter, price_id: row.price_id.clone() })?;
        lines.push(CostLine {
            meter,
            model: pass.map(str::to_owned),
            tokens,
            unit_price,
            amount: times(tokens, unit_price).ok_or(PriceError::Overflow)?,
        });
    }
    Ok(())
}

/// The disjoint parts of a usage. A part that nobody reported is billed with its whole.
fn quantities(
    usage: &Usage,
    input: u64,
    output: u64,
    tariff: &Tariff<'_>,
) -> [(MeterName, u64); 6] {
    let read = usage.cache_read_input_tokens.unwrap_or(0);
    let write_long = usage.cache_write_long_input_tokens.unwrap_or(0);
    let write = usage.cache_write_input_tokens.unwrap_or(0).max(write_long);
    let reasoning = match tariff.rate(MeterName::Reasoning) {
        Some(_) => usage.reasoning_output_tokens.unwrap_or(0),
        None => 0,
    };
    [
        (MeterName::Input, input.saturating_sub(read).saturating_sub(write)),
        (MeterName::CacheRead, read),
        (MeterName::CacheWrite, write - write_long),
        (MeterName::CacheWriteLong, write_long),
        (MeterName::Output, output.saturating_sub(reasoning)),
        (MeterName::Reasoning, reasoning),
    ]
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

/// `tokens` × `rate`; `None` where `Decimal` would round.
fn times(tokens: u64, rate: Decimal) -> Option<Decimal> {
    exact(rate.mantissa().checked_mul(i128::from(tokens))?, rate.scale())
}

/// `a` + `b`; `None` where `Decimal` would round.
fn plus(a: Decimal, b: Decimal) -> Option<Decimal> {
    let scale = a.scale().max(b.scale());
    let at_scale = |value: Decimal| {
        let factor = 10_i128.checked_pow(scale.checked_sub(value.scale())?)?;
        value.mantissa().checked_mul(factor)
    };
    exact(at_scale(a)?.checked_add(at_scale(b)?)?, scale)
}

fn exact(mantissa: i128, scale: u32) -> Option<Decimal> {
    Some(Decimal::try_from_i128_with_scale(mantissa, scale).ok()?.normalize())
}

#[cfg(test)]
mod tests;
