//! The differences between two price books on one day.

use std::collections::{BTreeMap, BTreeSet};

use jiff::civil::Date;
use rust_decimal::{Decimal, RoundingStrategy};
use taximeter_collections::Gather as _;

use crate::book::PriceBook;
use crate::rates::{Rates, list_price};
use crate::row::{RateCard, Row, ServiceTier, Threshold};

/// A model whose prices differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// `gen_ai.provider.name`. `None` means any provider.
    pub provider: Option<String>,
    /// The model.
    pub model: String,
    /// The difference.
    pub change: Change,
}

/// How the prices of a model differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// Only the new book has the model, with these prices.
    Added(Vec<PriceChange>),
    /// Only the old book has the model. The new book has other models of its provider.
    Removed,
    /// Both books have the model, with these differences.
    Changed(Vec<PriceChange>),
}

/// One price as price lists write it: per 1,000,000 tokens, or for one of anything else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PriceChange {
    /// Which price: `input`, `batch output`, `> 272000 cache_read`, `off-peak input`, `speed fast
    /// ×`.
    pub price: String,
    /// In the old book.
    pub old: Option<String>,
    /// In the new book.
    pub new: Option<String>,
}

impl PriceChange {
    /// By how many per cent the price rises, with one decimal. `None` if one of the two is missing
    /// or the old price is 0.
    #[must_use]
    pub fn percent(&self) -> Option<Decimal> {
        let number = |price: &Option<String>| price.as_ref()?.parse::<Decimal>().ok();
        let (old, new) = (number(&self.old)?, number(&self.new)?);
        let change = new.checked_sub(old)?.checked_div(old)?.checked_mul(Decimal::ONE_HUNDRED)?;
        Some(change.round_dp_with_strategy(1, RoundingStrategy::MidpointNearestEven).normalize())
    }
}

/// The differences between the rows of `old` and `new` that are in force on `day`, by provider and
/// model.
///
/// A model that only `old` has counts as removed only if `new` has other models of its provider,
/// because a price file need not cover all providers.
#[must_use]
pub fn diff(old: &PriceBook, new: &PriceBook, day: Date) -> Vec<Difference> {
    let (old, new) = (in_force(old, day), in_force(new, day));
    let providers: BTreeSet<_> = new.keys().map(|(provider, _)| provider).gather_set();
    let names: BTreeSet<_> = old.keys().chain(new.keys()).gather_set();
    let difference = |name: &ModelName<'_>| {
        let change = match (old.get(name), new.get(name)) {
            (None, Some(new)) => Change::Added(changes(&BTreeMap::new(), &prices(new))),
            (Some(_), None) if providers.contains(&name.0) => Change::Removed,
            (Some(old), Some(new)) => {
                let changes = changes(&prices(old), &prices(new));
                (!changes.is_empty()).then_some(Change::Changed(changes))?
            }
            _ => return None,
        };
        let (provider, model) = (name.0.map(str::to_owned), name.1.to_owned());
        Some(Difference { provider, model, change })
    };
    names.into_iter().filter_map(difference).collect()
}

type ModelName<'a> = (Option<&'a str>, &'a str);

/// The row that prices each model.
fn in_force(book: &PriceBook, day: Date) -> BTreeMap<ModelName<'_>, &Row> {
    let mut rows = BTreeMap::new();
    for row in book.rows().filter(|row| row.holds_on(day)) {
        rows.entry((row.provider.as_deref(), row.model.as_str())).or_insert(row);
    }
    rows
}

fn changes(old: &BTreeMap<String, String>, new: &BTreeMap<String, String>) -> Vec<PriceChange> {
    let names: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    let change = |name: &String| {
        let (old, new) = (old.get(name), new.get(name));
        (old != new).then(|| PriceChange {
            price: name.clone(),
            old: old.cloned(),
            new: new.cloned(),
        })
    };
    names.into_iter().filter_map(change).collect()
}

/// Every price of a row by its name.
fn prices(row: &Row) -> BTreeMap<String, String> {
    let mut prices = BTreeMap::new();
    let currency = row.currency.to_string();
    prices.extend((currency != "USD").then(|| ("currency".to_owned(), currency)));
    card("", &row.card, &mut prices);
    for long in &row.long_context {
        let context = match long.threshold {
            Threshold::Over(tokens) => format!("> {tokens} "),
            Threshold::AtLeast(tokens) => format!("≥ {tokens} "),
        };
        card(&context, &long.card, &mut prices);
    }
    if let Some(off_peak) = &row.off_peak {
        rates("off-peak ", &off_peak.rates, &mut prices);
        let hours = off_peak.windows.iter().map(ToString::to_string);
        prices.insert("off-peak hours".to_owned(), hours.collect::<Vec<_>>().join("; "));
    }
    for (condition, words) in &row.when {
        for (word, effect) in words {
            let name = format!("{} {word} ", condition.as_str());
            rates(&name, &effect.rates, &mut prices);
            let times =
                effect.times.map(|times| (format!("{name}×"), times.normalize().to_string()));
            prices.extend(times);
        }
    }
    prices
}

fn card(context: &str, card: &RateCard, prices: &mut BTreeMap<String, String>) {
    rates(context, &card.rates, prices);
    for tier in ServiceTier::ALL {
        if let Some(of_tier) = card.tiers.rates(tier) {
            rates(&format!("{context}{} ", tier.as_str()), of_tier, prices);
        }
    }
}

fn rates(before: &str, rates: &Rates, prices: &mut BTreeMap<String, String>) {
    prices.extend(rates.iter().filter_map(|(meter, rate)| {
        Some((format!("{before}{meter}"), list_price(meter, rate)?.to_string()))
    }));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn book(text: &str) -> PriceBook {
        PriceBook::empty().with_overrides(text, "prices.yaml").unwrap()
    }

    fn shown(old: &str, new: &str) -> Vec<String> {
        let day = "2026-11-20".parse().unwrap();
        let line = |difference: Difference| {
            let model = difference.model;
            match difference.change {
                Change::Added(prices) => format!("+ {model} ({})", prices.len()),
                Change::Removed => format!("- {model}"),
                Change::Changed(prices) => {
                    let prices = prices.iter().map(|change| {
                        let shown = |price: &Option<String>| price.clone().unwrap_or("-".into());
                        let percent = change.percent().map_or(String::new(), |p| format!(" {p} %"));
                        let (old, new) = (shown(&change.old), shown(&change.new));
                        format!("{} {old} -> {new}{percent}", change.price)
                    });
                    format!("{model}: {}", prices.collect::<Vec<_>>().join(", "))
                }
            }
        };
        diff(&book(old), &book(new), day).into_iter().map(line).collect()
    }

    #[test]
    fn each_price_that_differs_is_told_old_and_new() {
        let old = "provider: p
models:
- {model: a, rates: {input: 1, output: 2}, tiers: {batch: {input: 0.5, output: 1}}}
- {model: b, rates: {input: 3, output: 0}}
- {model: gone, rates: {input: 3, output: 4}}
- {model: other, provider: q, rates: {input: 3, output: 4}}
- {model: same, rates: {input: 1, output: 2.50}}
";
        let new = "provider: p
models:
- model: a
  rates: {input: 1.1, output: 2, requests: 0.01}
  tiers: {batch: {output: 1}}
  long_context: [{over: 1000, rates: {input: 9}}]
  when: {speed: {fast: {times: 2}}}
- {model: b, rates: {input: 2, output: 1}}
- {model: fresh, rates: {input: 3, output: 4}}
- {model: same, rates: {input: 1.0, output: 2.5}}
- {model: later, from: 2027-01-01, rates: {input: 3, output: 4}}
";
        assert_eq!(
            shown(old, new),
            [
                "a: > 1000 input - -> 9, batch input 0.5 -> -, input 1 -> 1.1 10 %, \
                 requests - -> 0.01, speed fast × - -> 2",
                "b: input 3 -> 2 -33.3 %, output 0 -> 1",
                "+ fresh (2)",
                "- gone",
            ]
        );
        assert!(shown(old, old).is_empty());
    }
}
