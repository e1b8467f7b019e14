//! The page *Prices*: the price book in force, and all prices of one model.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use maud::{Markup, html};
use rust_decimal::Decimal;
use taximeter_gateway::gateway::Gateway;

use super::page::{PRICES, Page};
use super::text::{money, name, name_or_none, sentence, unit_price};
use super::view::{PageParams, View};
use crate::prices::{
    EffectPrice, Price, Prices, PricesParams, UnitPrice, in_force, prices as ask_prices,
};
use crate::problem::ApiError;
use crate::query::Params;

/// Most models on a page. The filter by name finds the others.
const MODELS_MAX: usize = 150;
/// The page shows prices of tokens for this many tokens.
const PRICED_TOKENS: i64 = 1_000_000;
/// Meters that have a column of their own.
const COLUMNS: [(&str, &str); 4] = [
    ("input", "Input"),
    ("cache_read", "Cache read"),
    ("cache_write", "Cache write"),
    ("output", "Output"),
];

pub(super) async fn prices(
    State(gateway): State<Arc<Gateway>>,
    PageParams { asked, view }: PageParams<PricesParams>,
) -> Result<Response, ApiError> {
    let is_list = asked.model.is_none();
    let part = asked.contains.clone().unwrap_or_default();
    let provider = asked.provider.clone();
    let form = form(&asked, &view);
    let found = ask_prices(State(gateway.clone()), Params(asked)).await?.0;
    let main = if is_list {
        let mut listed = in_force(&gateway.tariffs.book, &part, found.on);
        listed.retain(|price| provider.is_none() || price.provider == provider);
        html! {
            h1 { "Prices" }
            (book(&found))
            (form)
            (table(&listed, &view))
        }
    } else {
        html! {
            p.crumb { a href=(view.to(PRICES, &[])) { "Prices" } }
            @for price in &found.prices { (whole(price, &view)) }
            (book(&found))
        }
    };
    let page = Page { title: "Prices", at: PRICES, view: &view, reload_seconds: None };
    Ok(page.with(main))
}

/// Facts about the price book.
fn book(found: &Prices) -> Markup {
    html! {
        dl.facts {
            div { dt { "Book" } dd { (sentence(&found.version)) } }
            div { dt { "On" } dd { (found.on) } }
            div { dt { "Currency of bills" } dd { (found.currency) } }
            @for file in &found.overrides { div { dt { "Overrides" } dd { (name(file)) } } }
            @for exchange in &found.exchange {
                div {
                    dt { "1 " (exchange.from) }
                    dd {
                        (unit_price(exchange.rate)) " " (found.currency)
                        @if let Some(since) = exchange.since { ", since " (since) }
                    }
                }
            }
            @for currency in &found.without_exchange {
                div {
                    dt { "No exchange rate" }
                    dd { (currency) ". A model with prices in " (currency) " alone has no price." }
                }
            }
        }
    }
}

fn form(asked: &PricesParams, view: &View) -> Markup {
    html! {
        form.filters method="get" action=(view.root().to(PRICES)) {
            div {
                label for="contains" { "Model name contains" }
                input #contains name="contains" value=[asked.contains.as_deref()] autocomplete="off"
                    spellcheck="false";
            }
            div {
                label for="provider" { "Provider" }
                input #provider name="provider" value=[asked.provider.as_deref()] autocomplete="off"
                    spellcheck="false";
            }
            div {
                label for="at" { "Date (UTC)" }
                input #at type="date" name="at" value=[asked.at.as_deref()];
            }
            (view.keep_zone())
            button { "Find" }
            a href=(view.to(PRICES, &[])) { "Clear" }
        }
    }
}

fn table(prices: &[Price], view: &View) -> Markup {
    html! {
        div.scroll { table {
            caption {
                "List prices per million tokens. The page of a model has all its rates."
                @if prices.len() > MODELS_MAX {
                    " These are the first " (MODELS_MAX) " of " (prices.len())
                    " models. Use the filter to find the others."
                }
            }
            thead { tr {
                th scope="col" { "Provider" }
                th scope="col" { "Model" }
                @for (_, word) in COLUMNS { th.number scope="col" { (word) } }
                th scope="col" { "Currency" }
                th scope="col" { "Other rates" }
            } }
            tbody {
                @for price in prices.iter().take(MODELS_MAX) { (row(price, view)) }
                @if prices.is_empty() { tr { td colspan="8" { "No model with a price matches." } } }
            }
        } }
    }
}

fn row(price: &Price, view: &View) -> Markup {
    let mut asked = vec![("model", price.model.as_str())];
    asked.extend(price.provider.as_deref().map(|provider| ("provider", provider)));
    let others =
        price.rates.keys().filter(|meter| COLUMNS.iter().all(|(known, _)| known != *meter));
    let mut also: Vec<_> = others.map(|meter| meter.replace('_', " ")).collect();
    also.extend(price.tiers.keys().map(|tier| format!("{tier} tier")));
    also.extend((!price.long_context.is_empty()).then(|| "long context".to_owned()));
    also.extend(price.off_peak.is_some().then(|| "off-peak".to_owned()));
    also.extend((!price.when.is_empty()).then(|| "conditions".to_owned()));
    html! {
        tr {
            td { (price.provider.as_deref().map_or_else(|| html! { "any" }, name)) }
            th scope="row" { a href=(view.to(PRICES, &asked)) { (name(&price.model)) } }
            @for (meter, _) in COLUMNS {
                td.number {
                    @match price.rates.get(meter) {
                        Some(rate) => (per_million(rate)),
                        None => "–",
                    }
                }
            }
            td { (price.currency) }
            td.also { (also.join(", ")) }
        }
    }
}

/// The exact price per million tokens, with two decimal places at least.
fn per_million(rate: &UnitPrice) -> Markup {
    match rate.price.checked_mul(Decimal::from(PRICED_TOKENS)).filter(|_| rate.unit == "tokens") {
        Some(price) => {
            let places = price.normalize().scale().max(2);
            money(price, places)
        }
        None => html! { (unit_price(rate.price)) " per " (one(rate.unit)) },
    }
}

/// `seconds` → `second`.
fn one(unit: &str) -> &str {
    unit.strip_suffix('s').unwrap_or(unit)
}

/// Everything about one price.
fn whole(price: &Price, view: &View) -> Markup {
    let mut asked = vec![("model", price.model.as_str())];
    asked.extend(price.provider.as_deref().map(|provider| ("provider", provider)));
    html! {
        h1 { (name(&price.model)) }
        dl.facts {
            div { dt { "Provider" } dd { (name_or_none(price.provider.as_deref())) } }
            div { dt { "Price" } dd { (name(&price.price_id)) } }
            div { dt { "Currency" } dd { (price.currency) } }
            @if let Some(from) = price.from { div { dt { "From" } dd { (from) } } }
            @if let Some(until) = price.until { div { dt { "Until" } dd { (until) } } }
            @if let Some(words) = &price.price_match { div { dt { "Found by" } dd { (name(words)) } } }
            @if !price.aliases.is_empty() {
                div { dt { "Other names" } dd { (sentence(&price.aliases.join(", "))) } }
            }
            @for gap in &price.without_rate { div { dt { "No rate" } dd { (sentence(gap)) } } }
        }
        div.cards {
        (rates("List price", &price.rates))
        @for (tier, tiered) in &price.tiers { (rates(&format!("Service tier {tier}"), tiered)) }
        @for long in &price.long_context {
            @let title = format!("Input of {} tokens or more", long.input_tokens);
            (rates(&title, &long.rates))
            @for (tier, tiered) in &long.tiers { (rates(&format!("{title}, tier {tier}"), tiered)) }
        }
        @if let Some(off_peak) = &price.off_peak {
            (rates(&format!("Off-peak, {}", off_peak.windows.join("; ")), &off_peak.rates))
        }
        @for (condition, words) in &price.when {
            @for (word, effect) in words { (effect_of(condition, word, effect)) }
        }
        }
        p.elsewhere {
            "The same data for programs: "
            a href=(view.plain("/api/v1/prices", asked)) { "JSON" }
        }
    }
}

fn effect_of(condition: &str, word: &str, effect: &EffectPrice) -> Markup {
    let title = sentence(&format!("If {} is {word}", condition.replace('_', " ")));
    html! {
        @if let Some(times) = effect.times {
            p { (title) ": multiply all rates of tokens by " (unit_price(times)) "." }
        }
        @if !effect.rates.is_empty() { (rates(&title, &effect.rates)) }
    }
}

/// The meters in the order in which a request uses them, then all others by name.
fn in_order<'a>(rates: &'a BTreeMap<&'static str, UnitPrice>) -> Vec<(&'a str, &'a UnitPrice)> {
    const ORDER: [&str; 6] =
        ["input", "cache_read", "cache_write", "cache_write_long", "output", "reasoning"];
    let rank = |meter: &str| ORDER.iter().position(|known| *known == meter);
    let mut sorted: Vec<_> = rates.iter().map(|(meter, rate)| (*meter, rate)).collect();
    taximeter_collections::sort_by_key(&mut sorted, |(meter, _)| {
        (rank(meter).unwrap_or(ORDER.len()), *meter)
    });
    sorted
}

fn rates(title: &str, rates: &BTreeMap<&'static str, UnitPrice>) -> Markup {
    html! {
        @if !rates.is_empty() {
            div.scroll { table.rates {
                caption { (title) }
                thead { tr {
                    th scope="col" { "Meter" }
                    th.number scope="col" { "Unit price" }
                    th scope="col" { "Unit" }
                    th.number scope="col" { "Per million tokens" }
                } }
                tbody {
                    @for (meter, rate) in in_order(rates) {
                        tr {
                            th scope="row" { (meter.replace('_', " ")) }
                            td.number { (unit_price(rate.price)) }
                            td { (one(rate.unit)) }
                            td.number {
                                @if rate.unit == "tokens" { (per_million(rate)) } @else { "–" }
                            }
                        }
                    }
                }
            } }
        }
    }
}
