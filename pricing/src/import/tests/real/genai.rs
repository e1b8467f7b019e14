//! A second reading of genai-prices' rules: tiers, days and hours.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde_json::Value;

use super::{Dice, Parts, file};
use crate::import::genai;
use crate::import::tests::imported;
use crate::{PriceBook, Query};
use rust_decimal::Decimal;

/// Prices of what is thrown; other fields have tests of their own.
const FIELDS: [&str; 8] = [
    "input_mtok",
    "input_audio_mtok",
    "cache_read_mtok",
    "cache_write_mtok",
    "cache_write_1h_mtok",
    "output_mtok",
    "requests_kcount",
    "web_searches_kcount",
];

/// Times of the day at which prices begin or end, and those around them.
const TIMES: [&str; 6] = ["00:00:00", "00:29:59", "00:30:00", "12:00:00", "16:29:59", "16:30:00"];

fn number(value: &Value) -> Decimal {
    let text = value.to_string();
    Decimal::from_scientific(&text).or_else(|_| text.parse()).unwrap()
}

/// One model as they have it.
struct Model<'a> {
    provider: &'a str,
    id: &'a str,
    /// Whatever condition each set of prices has.
    prices: Vec<(Option<&'a Value>, &'a Value)>,
}

impl<'a> Model<'a> {
    fn of(provider: &'a str, model: &'a Value) -> Self {
        let prices = match &model["prices"] {
            Value::Array(list) => {
                list.iter().map(|one| (one.get("constraint"), &one["prices"])).collect()
            }
            prices => vec![(None, prices)],
        };
        Self { provider, id: model["id"].as_str().unwrap(), prices }
    }

    fn is_conditional(&self) -> bool {
        let has_tiers = |prices: &Value| prices.as_object().unwrap().values().any(Value::is_object);
        self.prices.len() > 1 || self.prices.iter().any(|(_, prices)| has_tiers(prices))
    }

    fn has(&self, field: &str) -> bool {
        self.prices.iter().all(|(_, prices)| prices.get(field).is_some())
    }

    fn has_only(&self, fields: &[&str]) -> bool {
        let mut found =
            self.prices.iter().flat_map(|(_, prices)| prices.as_object().unwrap().keys());
        found.all(|field| fields.contains(&field.as_str()))
    }

    /// The last set of prices whose condition holds.
    fn at(&self, day: &str, time: &str) -> &'a Value {
        let holds = |constraint: &Value| {
            let text = |name: &str| constraint.get(name).map(|value| value.as_str().unwrap());
            match (text("start_date"), text("start_time"), text("end_time")) {
                (Some(start), None, None) => start <= day,
                (None, Some(from), Some(until)) => {
                    from.trim_end_matches('Z') <= time && time < until.trim_end_matches('Z')
                }
                _ => panic!("{}: {constraint}", self.id),
            }
        };
        let mut sets = self.prices.iter().rev();
        sets.find(|(constraint, _)| constraint.is_none_or(holds)).unwrap().1
    }
}

/// What a field asks for a token, or a call, of a request with so much input. A price without steps
/// is none of a long context where others have steps, except for calls.
fn rate(prices: &Value, field: &str, input: u64) -> Option<Decimal> {
    let value = prices.get(field)?;
    let is_long = prices.as_object().unwrap().values().any(|value| {
        let steps = value.get("tiers").and_then(Value::as_array);
        steps.is_some_and(|steps| input > steps[0]["start"].as_u64().unwrap())
    });
    let price = match value.get("tiers") {
        None if is_long && field.ends_with("_mtok") => return None,
        None => number(value),
        Some(tiers) => {
            let mut tiers = tiers.as_array().unwrap().iter().rev();
            let above = tiers.find(|tier| input > tier["start"].as_u64().unwrap());
            number(above.map_or(&value["base"], |tier| &tier["price"]))
        }
    };
    let scale = if field.ends_with("_kcount") { 1000 } else { 1_000_000 };
    Some(price / Decimal::from(scale))
}

/// `None` where a quantity has no price in this context.
fn cost(prices: &Value, parts: &Parts) -> Option<Decimal> {
    let rate = |field| rate(prices, field, parts.input());
    let has = |field| prices.get(field).is_some();
    let input = rate("input_mtok");
    let has_write = has("cache_write_mtok") || has("cache_write_1h_mtok");
    [
        (parts.text, input),
        (parts.audio, rate("input_audio_mtok")),
        (parts.read, rate("cache_read_mtok").or(input.filter(|_| !has("cache_read_mtok")))),
        (parts.write, rate("cache_write_mtok").or(input.filter(|_| !has_write))),
        (parts.write_long, rate("cache_write_1h_mtok")),
        (parts.output + parts.reasoning, rate("output_mtok")),
        (parts.searches, rate("web_searches_kcount")),
        (u64::from(has("requests_kcount")), rate("requests_kcount")),
    ]
    .into_iter()
    .filter(|(count, _)| *count > 0)
    .map(|(count, rate)| Some(rate? * Decimal::from(count)))
    .sum()
}

#[test]
#[ignore = "needs the price files: tests/prices/run"]
fn a_thousand_usages_cost_what_genai_prices_rules_say() {
    let text = file("data_slim.json");
    let theirs: Value = serde_json::from_str(&text).unwrap();
    let found = imported(&text);
    let whole = found.left_out.iter().filter(|one| one.field.is_none());
    let left_out: BTreeSet<_> = whole.map(|one| one.model.clone()).collect();
    let book = PriceBook::empty().with_overrides(&found.text, "genai.yaml").unwrap();
    let models: Vec<_> = theirs
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|provider| {
            let name = genai::provider(provider["id"].as_str().unwrap());
            provider["models"].as_array().unwrap().iter().map(move |model| Model::of(name, model))
        })
        .filter(|model| !left_out.contains(&format!("{}/{}", model.provider, model.id)))
        .filter(|model| model.has("input_mtok") && model.has_only(&FIELDS))
        .collect();
    let (conditional, plain): (Vec<_>, Vec<_>) =
        models.iter().partition(|model| model.is_conditional());
    assert!(conditional.len() > 20 && plain.len() > 500, "{}", conditional.len());
    let mut dice = Dice(42);
    let mut thrown = BTreeMap::new();
    for _ in 0..1000 {
        let models = if dice.up_to(1) == 0 { &conditional } else { &plain };
        let model = models[usize::try_from(dice.up_to(models.len() as u64 - 1)).unwrap()];
        let mut parts = Parts::throw(&mut dice);
        for (field, part) in [
            ("input_audio_mtok", &mut parts.audio),
            ("cache_write_1h_mtok", &mut parts.write_long),
            ("web_searches_kcount", &mut parts.searches),
        ] {
            *part = if model.has(field) { *part } else { 0 };
        }
        if !model.has("output_mtok") {
            (parts.output, parts.reasoning) = (0, 0);
        }
        let starts = model.prices.iter().filter_map(|(constraint, _)| {
            let start: jiff::civil::Date =
                constraint.as_ref()?.get("start_date")?.as_str()?.parse().ok()?;
            Some([start.yesterday().ok()?, start])
        });
        let days: Vec<_> =
            starts.flatten().map(|day| day.to_string()).chain(["2026-11-20".to_owned()]).collect();
        let day = &days[usize::try_from(dice.up_to(days.len() as u64 - 1)).unwrap()];
        let time = TIMES[usize::try_from(dice.up_to(5)).unwrap()];
        let prices = model.at(day, time);
        let at: Timestamp = format!("{day}T{time}Z").parse().unwrap();
        let query = Query {
            provider: Some(model.provider),
            response_model: Some(model.id),
            request_model: None,
            service_tier: None,
            at,
        };
        let found = book.cost(&query, &parts.usage(None));
        let place = format!("{}/{} at {at} {found:#?}", model.provider, model.id);
        assert_eq!(found.ok().map(|found| found.amount), cost(prices, &parts), "{place}");
        *thrown.entry(model.is_conditional()).or_insert(0) += 1;
    }
    println!("1000 usages of {} models, {} under conditions", models.len(), thrown[&true]);
}
