//! `/api/v1/prices`: the book in force, and what one model costs on one day.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};
use taximeter_billing::Zone;
use taximeter_gateway::gateway::Gateway;
use taximeter_pricing::{
    Card, Effect, LongContext, OffPeak, PriceBook, Query, Rates, Row, ServiceTier, Threshold,
};
use taximeter_system::clock;
use utoipa::{IntoParams, ToSchema};

use super::problem::Refused;
use super::query::{self, Asked};

/// Most models of a list; `contains` finds the others.
const MODELS_MAX: usize = 5000;

/// What is asked for.
#[derive(Debug, Deserialize, IntoParams)]
pub(super) struct PricesParams {
    /// What this model costs; without it, which models have a price
    pub(super) model: Option<String>,
    /// Answered by this provider (`gen_ai.provider.name`); without it, every provider's price
    pub(super) provider: Option<String>,
    /// When: a date in UTC, or a time with offset; now by default
    pub(super) at: Option<String>,
    /// Only models with this in their names; for lists
    pub(super) contains: Option<String>,
}

/// The prices in force.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Prices {
    /// Which books in which versions, the first before the others:
    /// `overrides@2026-12-01+builtin@2026-11-20`.
    pub(super) version: String,
    /// ISO 4217; of costs and bills.
    pub(super) currency: String,
    /// Files laid over the built-in book, as the configuration names them.
    pub(super) overrides: Vec<String>,
    /// What other currencies are worth.
    pub(super) exchange: Vec<Exchange>,
    /// Currencies that prices are in and that have no exchange rate on that day: what is priced in
    /// them alone has no price.
    pub(super) without_exchange: Vec<String>,
    /// The day, UTC.
    #[schema(value_type = String, format = Date)]
    pub(super) on: Date,
    /// Who has a price on that day, by provider and name; empty where one was asked for.
    pub(super) models: Vec<PricedModel>,
    /// How many those are, where the list is cut short.
    pub(super) models_count: usize,
    /// The prices of the model that was asked for; of several the first is in force for an answer of
    /// its provider.
    pub(super) prices: Vec<Price>,
}

/// What a currency is worth.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Exchange {
    /// ISO 4217.
    pub(super) from: String,
    /// Of the bills' currency, for one.
    pub(super) rate: Decimal,
    /// First day, UTC; null is since ever.
    #[schema(value_type = Option<String>, format = Date)]
    pub(super) since: Option<Date>,
}

/// Who has a price.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, ToSchema)]
pub(super) struct PricedModel {
    /// Null prices whoever answers.
    pub(super) provider: Option<String>,
    pub(super) model: String,
}

/// What one model costs.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Price {
    /// Book, version and row, as on records.
    pub(super) price_id: String,
    /// Whose answers it prices; null prices whoever answers.
    pub(super) provider: Option<String>,
    pub(super) model: String,
    /// Its other names.
    pub(super) aliases: Vec<String>,
    /// First day, UTC; null is since ever.
    #[schema(value_type = Option<String>, format = Date)]
    pub(super) from: Option<Date>,
    /// The day on which it no longer holds, UTC; null is for ever.
    #[schema(value_type = Option<String>, format = Date)]
    pub(super) until: Option<Date>,
    /// ISO 4217; of all its rates.
    pub(super) currency: String,
    /// What applies unless something below replaces it, meter by meter.
    pub(super) rates: BTreeMap<&'static str, UnitPrice>,
    /// By service tier: what replaces the rates.
    pub(super) tiers: BTreeMap<&'static str, BTreeMap<&'static str, UnitPrice>>,
    /// By rising threshold: what replaces the rates of a whole request.
    pub(super) long_context: Vec<LongContextPrice>,
    /// What replaces all others in its hours.
    pub(super) off_peak: Option<OffPeakPrice>,
    /// By condition and word of the answer: what it changes.
    pub(super) when: BTreeMap<&'static str, BTreeMap<String, EffectPrice>>,
}

/// The price of one.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct UnitPrice {
    /// Exact, for one of `unit`.
    pub(super) price: Decimal,
    /// What is counted: `tokens`, `seconds`, `calls` and so on.
    pub(super) unit: &'static str,
}

/// Prices of requests with a long input.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct LongContextPrice {
    /// The smallest input it applies to, in tokens.
    pub(super) input_tokens: u64,
    pub(super) rates: BTreeMap<&'static str, UnitPrice>,
    pub(super) tiers: BTreeMap<&'static str, BTreeMap<&'static str, UnitPrice>>,
}

/// Prices of certain hours.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct OffPeakPrice {
    pub(super) rates: BTreeMap<&'static str, UnitPrice>,
    /// Days of the week and hours, UTC.
    pub(super) windows: Vec<String>,
}

/// What a word of an answer changes.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct EffectPrice {
    /// What every rate of tokens is multiplied with.
    pub(super) times: Option<Decimal>,
    /// What replaces rates, before that.
    pub(super) rates: BTreeMap<&'static str, UnitPrice>,
}

/// The book in force, or what one model costs
///
/// With `provider`, a model is found as requests find it: by its other names and without the date in
/// its name too.
#[utoipa::path(get, path = "/api/v1/prices", tag = "prices", params(PricesParams), responses(
    (status = 200, description = "The book", body = Prices),
    Refused,
))]
pub(super) async fn prices(
    State(gateway): State<Arc<Gateway>>,
    Asked(asked): Asked<PricesParams>,
) -> Result<Json<Prices>, Refused> {
    let at = query::time("at", asked.at.as_deref(), &Zone::UTC)?.unwrap_or_else(clock::wall);
    let book = &gateway.tariffs.book;
    let on = TimeZone::UTC.to_datetime(at).date();
    let mut answer = Prices {
        version: book.version().to_owned(),
        currency: book.currency().to_string(),
        overrides: texts(&gateway.config.prices.overrides, |path| path.display().to_string()),
        exchange: texts(&gateway.config.prices.exchange, |exchange| Exchange {
            from: exchange.from.to_string(),
            rate: exchange.rate,
            since: exchange.since,
        }),
        without_exchange: book.without_exchange(at).iter().map(ToString::to_string).collect(),
        on,
        models: Vec::new(),
        models_count: 0,
        prices: Vec::new(),
    };
    match &asked.model {
        Some(model) => {
            answer.prices = find(book, model, asked.provider.as_deref(), at, on);
            if answer.prices.is_empty() {
                return Err(Refused::NotFound(format!(
                    "{model:?} has no price on {on}; leave model out for the models that have one"
                )));
            }
        }
        None => {
            let part = asked.contains.unwrap_or_default();
            let mut models = models(book, &part, asked.provider.as_deref(), on);
            answer.models_count = models.len();
            models.truncate(MODELS_MAX);
            answer.models = models;
        }
    }
    Ok(Json(answer))
}

fn texts<T, U>(of: &[T], text: impl Fn(&T) -> U) -> Vec<U> {
    of.iter().map(text).collect()
}

fn find(
    book: &PriceBook,
    model: &str,
    provider: Option<&str>,
    at: Timestamp,
    on: Date,
) -> Vec<Price> {
    if provider.is_some() {
        let (response_model, request_model) = (Some(model), None);
        let query = Query { provider, response_model, request_model, service_tier: None, at };
        return book.find(&query).map(Price::from).into_iter().collect();
    }
    let is_named = |row: &&Row| row.model == model || row.aliases.iter().any(|name| name == model);
    book.rows().filter(is_named).filter(|row| row.holds_on(on)).map(Price::from).collect()
}

/// All prices of a day, of models with this in their names, by provider and model.
pub(super) fn in_force(book: &PriceBook, part: &str, on: Date) -> Vec<Price> {
    let is_wanted = |row: &&Row| row.holds_on(on) && row.model.contains(part);
    let mut prices: Vec<_> = book.rows().filter(is_wanted).map(Price::from).collect();
    prices.sort_by(|a, b| (&a.provider, &a.model).cmp(&(&b.provider, &b.model)));
    prices
}

fn models(book: &PriceBook, part: &str, provider: Option<&str>, on: Date) -> Vec<PricedModel> {
    let is_wanted = |row: &&Row| {
        row.holds_on(on)
            && row.model.contains(part)
            && (provider.is_none() || row.provider.as_deref() == provider)
    };
    let name = |row: &Row| PricedModel { provider: row.provider.clone(), model: row.model.clone() };
    book.rows().filter(is_wanted).map(name).collect::<BTreeSet<_>>().into_iter().collect()
}

impl From<&Row> for Price {
    fn from(row: &Row) -> Self {
        Self {
            price_id: row.price_id.clone(),
            provider: row.provider.clone(),
            model: row.model.clone(),
            aliases: row.aliases.clone(),
            from: row.from,
            until: row.until,
            currency: row.currency.to_string(),
            rates: rates(&row.card.rates),
            tiers: tiers(&row.card),
            long_context: row.long_context.iter().map(LongContextPrice::from).collect(),
            off_peak: row.off_peak.as_ref().map(OffPeakPrice::from),
            when: row
                .when
                .iter()
                .map(|(condition, words)| {
                    let effect = |(word, effect): (&String, &Effect)| {
                        let (times, rates) = (effect.times, rates(&effect.rates));
                        (word.clone(), EffectPrice { times, rates })
                    };
                    (condition.as_str(), words.iter().map(effect).collect())
                })
                .collect(),
        }
    }
}

impl From<&LongContext> for LongContextPrice {
    fn from(long: &LongContext) -> Self {
        let input_tokens = Threshold::first(long.threshold);
        Self { input_tokens, rates: rates(&long.card.rates), tiers: tiers(&long.card) }
    }
}

impl From<&OffPeak> for OffPeakPrice {
    fn from(off_peak: &OffPeak) -> Self {
        let windows = off_peak.windows.iter().map(ToString::to_string).collect();
        Self { rates: rates(&off_peak.rates), windows }
    }
}

fn rates(rates: &Rates) -> BTreeMap<&'static str, UnitPrice> {
    let one = |(meter, price): (taximeter_pricing::MeterName, Decimal)| {
        (meter.as_str(), UnitPrice { price: price.normalize(), unit: meter.unit() })
    };
    rates.iter().map(one).collect()
}

fn tiers(card: &Card) -> BTreeMap<&'static str, BTreeMap<&'static str, UnitPrice>> {
    let priced = |tier: ServiceTier| Some((tier.as_str(), rates(card.tiers.rates(tier)?)));
    ServiceTier::ALL.into_iter().filter_map(priced).collect()
}
