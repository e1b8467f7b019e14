//! `/api/v1/prices`: the price book in force, and all prices of one model on one day.

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
use taximeter_collections::Gather as _;
use taximeter_gateway::gateway::Gateway;
use taximeter_pricing::{
    Effect, LongContext, NoRow, OffPeak, PriceBook, PriceMatch, Query, RateCard, Rates, Row,
    ServiceTier, Threshold,
};
use taximeter_system::clock;
use utoipa::{IntoParams, ToSchema};

use super::problem::ApiError;
use super::query::{self, Params};

/// Most models in a list. `contains` finds the others.
const MODELS_MAX: usize = 5000;

/// Most names in the message that a model has no price.
const NEAREST: usize = 5;

/// The query parameters.
#[derive(Debug, Deserialize, IntoParams)]
pub(super) struct PricesParams {
    /// The model whose prices the answer has. Without it, the answer lists the models with a price
    pub(super) model: Option<String>,
    /// Only prices of this provider (`gen_ai.provider.name`)
    pub(super) provider: Option<String>,
    /// A date in UTC, or a time with an offset. Default: now
    pub(super) at: Option<String>,
    /// In a list: only models with this text in their names
    pub(super) contains: Option<String>,
}

/// The price book in force.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Prices {
    /// The books and their versions. The first one has precedence:
    /// `overrides@2026-12-01+builtin@2026-11-20`.
    pub(super) version: String,
    /// ISO 4217 code of costs and bills.
    pub(super) currency: String,
    /// The files with price overrides, as in the configuration.
    pub(super) overrides: Vec<String>,
    /// Exchange rates of other currencies.
    pub(super) exchange: Vec<Exchange>,
    /// Currencies in the price book that have no exchange rate on that day. A model with prices in
    /// such a currency alone has no price.
    pub(super) without_exchange: Vec<String>,
    /// The day, UTC.
    #[schema(value_type = String, format = Date)]
    pub(super) on: Date,
    /// The models that have a price on that day, in order of provider and name. Empty if the
    /// request has `model`.
    pub(super) models: Vec<PricedModel>,
    /// The number of models with a price. The list can be shorter.
    pub(super) models_count: usize,
    /// The prices of the model in the request. If there are several, the first one of a provider is
    /// in force.
    pub(super) prices: Vec<Price>,
}

/// The exchange rate of a currency.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Exchange {
    /// ISO 4217 code.
    pub(super) from: String,
    /// Price of one unit of it, in the currency of bills.
    pub(super) rate: Decimal,
    /// First day of the rate, UTC. Null means that it has no first day.
    #[schema(value_type = Option<String>, format = Date)]
    pub(super) since: Option<Date>,
}

/// A model that has a price.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, ToSchema)]
pub(super) struct PricedModel {
    /// The provider. Null means any provider.
    pub(super) provider: Option<String>,
    /// The name of the model.
    pub(super) model: String,
}

/// One price of a model.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Price {
    /// Book, version and row. Records have the same id.
    pub(super) price_id: String,
    /// The provider. Null means any provider.
    pub(super) provider: Option<String>,
    /// The name of the model.
    pub(super) model: String,
    /// Other names of the model.
    pub(super) aliases: Vec<String>,
    /// What leads from the `model` in the request to this row: `exact`, or the rules for names, as
    /// `region+date`. Records have the same words.
    pub(super) price_match: Option<String>,
    /// First day of the price, UTC. Null means that it has no first day.
    #[schema(value_type = Option<String>, format = Date)]
    pub(super) from: Option<Date>,
    /// The day after the last day of the price, UTC. Null means that it has no last day.
    #[schema(value_type = Option<String>, format = Date)]
    pub(super) until: Option<Date>,
    /// ISO 4217 code of all rates.
    pub(super) currency: String,
    /// The standard rates by meter. A request pays one set of rates: these, or one of those below.
    pub(super) rates: BTreeMap<&'static str, UnitPrice>,
    /// The rates of service tiers, used instead of the standard ones.
    pub(super) tiers: BTreeMap<&'static str, BTreeMap<&'static str, UnitPrice>>,
    /// Rates for a whole request with a long input, in order of the threshold.
    pub(super) long_context: Vec<LongContextPrice>,
    /// Rates for certain hours, used instead of the standard ones.
    pub(super) off_peak: Option<OffPeakPrice>,
    /// What a value in the answer changes, by condition and value.
    pub(super) when: BTreeMap<&'static str, BTreeMap<String, EffectPrice>>,
    /// What has no price, by combination: `cache_write_long in tier batch`. The cost of a request
    /// that needs it is unknown.
    pub(super) without_rate: Vec<String>,
}

/// The price of one unit.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct UnitPrice {
    /// The exact price of one `unit`.
    pub(super) price: Decimal,
    /// What is counted: `tokens`, `seconds`, `calls` and so on.
    pub(super) unit: &'static str,
}

/// Rates for requests with a long input.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct LongContextPrice {
    /// The smallest input with these rates, in tokens.
    pub(super) input_tokens: u64,
    /// The rates by meter.
    pub(super) rates: BTreeMap<&'static str, UnitPrice>,
    /// The rates of service tiers, used instead of these.
    pub(super) tiers: BTreeMap<&'static str, BTreeMap<&'static str, UnitPrice>>,
}

/// Rates for certain hours.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct OffPeakPrice {
    /// The rates by meter.
    pub(super) rates: BTreeMap<&'static str, UnitPrice>,
    /// Days of the week and hours, UTC.
    pub(super) windows: Vec<String>,
}

/// What a value in the answer changes.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct EffectPrice {
    /// A factor for every rate of tokens.
    pub(super) times: Option<Decimal>,
    /// Rates that are used instead of the standard ones. The factor applies to them as well.
    pub(super) rates: BTreeMap<&'static str, UnitPrice>,
}

/// The price book in force, or the prices of one model
///
/// The lookup is the one for requests: a name finds its row as a platform spells it. With
/// `provider`, the answer has the one price that is in force.
#[utoipa::path(get, path = "/api/v1/prices", tag = "prices", params(PricesParams), responses(
    (status = 200, description = "The prices", body = Prices),
    ApiError,
))]
pub(super) async fn prices(
    State(gateway): State<Arc<Gateway>>,
    Params(asked): Params<PricesParams>,
) -> Result<Json<Prices>, ApiError> {
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
                return Err(ApiError::NotFound(none(book, model, asked.provider.as_deref(), at)));
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
        let found = book.lookup(&query(model, provider, at)).ok();
        return found.map(|found| matched(found.row, found.how)).into_iter().collect();
    }
    let found = book.everywhere(model, at).found;
    let rows = book.rows().filter(|row| row.holds_on(on));
    let priced = rows.filter_map(|row| {
        let name = |row: &Row| (row.provider.clone(), row.model.clone());
        let found = found.iter().find(|found| name(found.row) == name(row))?;
        Some(matched(row, found.how))
    });
    priced.collect()
}

fn query<'a>(model: &'a str, provider: Option<&'a str>, at: Timestamp) -> Query<'a> {
    Query { provider, response_model: Some(model), request_model: None, service_tier: None, at }
}

fn matched(row: &Row, how: PriceMatch) -> Price {
    Price { price_match: Some(how.to_string()), ..Price::from(row) }
}

/// Why a model has no price.
fn none(book: &PriceBook, model: &str, provider: Option<&str>, at: Timestamp) -> String {
    let why = match provider {
        Some(_) => book.lookup(&query(model, provider, at)).err(),
        None => book.everywhere(model, at).missing.into_iter().map(|(_, why)| why).next(),
    };
    let why = match why {
        None | Some(NoRow::Unknown(_)) => String::new(),
        Some(why) => format!(": {why}"),
    };
    let nearest = book.nearest(model, at, NEAREST);
    let like = match nearest.is_empty() {
        true => String::new(),
        false => format!("; names like it: {}", nearest.join(", ")),
    };
    let on = TimeZone::UTC.to_datetime(at).date();
    format!(
        "the model {model:?} has no price on {on}{why}{like}; without the parameter model, the \
         answer lists the models that have one"
    )
}

/// All prices on a day of models with `part` in their names, in order of provider and model.
pub(super) fn in_force(book: &PriceBook, part: &str, on: Date) -> Vec<Price> {
    let is_wanted = |row: &&Row| row.holds_on(on) && row.model.contains(part);
    let mut prices: Vec<_> = book.rows().filter(is_wanted).map(Price::from).collect();
    taximeter_collections::sort_by(&mut prices, |a, b| {
        (&a.provider, &a.model).cmp(&(&b.provider, &b.model))
    });
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
            price_match: None,
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
                    (condition.as_str(), words.iter().map(effect).gather())
                })
                .gather(),
            without_rate: row.gaps(),
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
    rates.iter().map(one).gather()
}

fn tiers(card: &RateCard) -> BTreeMap<&'static str, BTreeMap<&'static str, UnitPrice>> {
    let priced = |tier: ServiceTier| Some((tier.as_str(), rates(card.tiers.rates(tier)?)));
    ServiceTier::ALL.into_iter().filter_map(priced).gather()
}
