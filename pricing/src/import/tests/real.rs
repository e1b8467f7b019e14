//! The files themselves, which are not part of this repository: `tests/prices/run FOLDER`.

mod genai;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::PathBuf;

use rust_decimal::Decimal;
use serde_json::value::RawValue;

use super::*;
use crate::{ByModality, Condition, Modalities};

fn file(end: &str) -> String {
    let folder = std::env::var("TAXIMETER_PRICE_FILES").expect("a folder with the price files");
    let mut files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let file: PathBuf = files.find(|path| path.to_string_lossy().ends_with(end)).unwrap();
    std::fs::read_to_string(file).unwrap()
}

fn litellm_text() -> String {
    file("model_prices_and_context_window.json")
}

type Theirs = HashMap<String, BTreeMap<String, Box<RawValue>>>;

#[test]
#[ignore = "needs the price files: tests/prices/run"]
fn every_model_is_taken_or_left_out_with_a_reason() {
    for (text, models) in [(litellm_text(), 4551), (file("data_slim.json"), 1309)] {
        let found = imported(&text);
        let whole = found.left_out.iter().filter(|one| one.field.is_none()).count();
        assert_eq!((found.models, found.taken + whole), (models, models));
        println!("{}: {} of {models} taken", found.source, found.taken);
        assert!(found.taken * 10 > models * 8);
    }
}

/// A generator of numbers that are the same on each run.
struct Dice(u64);

impl Dice {
    fn up_to(&mut self, most: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % (most + 1)
    }
}

/// One usage: parts of the input and the output that exclude each other.
struct Parts {
    text: u64,
    audio: u64,
    read: u64,
    write: u64,
    write_long: u64,
    output: u64,
    reasoning: u64,
    searches: u64,
}

impl Parts {
    fn throw(dice: &mut Dice) -> Self {
        let long = [0, 100_000, 128_000, 200_000, 272_000, 512_000];
        let at = long[usize::try_from(dice.up_to(5)).unwrap()];
        Self {
            text: at + dice.up_to(2),
            audio: dice.up_to(1) * dice.up_to(500),
            read: dice.up_to(1) * dice.up_to(5000),
            write: dice.up_to(1) * dice.up_to(5000),
            write_long: dice.up_to(1) * dice.up_to(5000),
            output: dice.up_to(5000),
            reasoning: dice.up_to(1) * dice.up_to(5000),
            searches: dice.up_to(1) * dice.up_to(3),
        }
    }

    fn input(&self) -> u64 {
        self.text + self.audio + self.read + self.write + self.write_long
    }

    fn usage(&self, region: Option<&str>) -> Usage {
        let input = ByModality { audio: Some(self.audio), ..ByModality::default() };
        let modalities = Modalities { input, ..Modalities::default() };
        let searches = ("web_search_requests".to_owned(), self.searches.into());
        Usage {
            input_tokens: Some(self.input()),
            cache_read_input_tokens: Some(self.read),
            cache_write_input_tokens: Some(self.write + self.write_long),
            cache_write_long_input_tokens: Some(self.write_long),
            output_tokens: Some(self.output + self.reasoning),
            reasoning_output_tokens: Some(self.reasoning),
            modalities: modalities.are_mixed().then(|| Box::new(modalities)),
            units: [searches].into(),
            conditions: region
                .map(|word| (Condition::Region, word.to_owned()))
                .into_iter()
                .collect(),
            ..Usage::default()
        }
    }
}

/// A second reading of LiteLLM's rules, straight from its fields.
struct Rules<'a> {
    fields: &'a BTreeMap<String, Box<RawValue>>,
    above: String,
    tier: &'a str,
}

impl Rules<'_> {
    fn field(&self, name: &str) -> Option<Decimal> {
        let text = self.fields.get(name)?.get();
        Some(Decimal::from_scientific(text).or_else(|_| text.parse()).unwrap())
    }

    /// The variant of the context and the tier, or the plainer ones.
    fn rate(&self, name: &str) -> Option<Decimal> {
        let (above, tier) = (&self.above, self.tier);
        let mut names = Vec::new();
        if !above.is_empty() {
            names.extend([format!("{name}{above}{tier}"), format!("{name}{above}")]);
        }
        names.extend([format!("{name}{tier}"), name.to_owned()]);
        names.iter().find_map(|name| self.field(name))
    }

    fn cost(&self, parts: &Parts, region: Option<&str>) -> Decimal {
        let input = self.rate("input_cost_per_token").unwrap();
        let output = self.rate("output_cost_per_token").unwrap();
        let write = "cache_creation_input_token_cost";
        let long = [format!("{write}_above_1hr"), format!("{write}_above_12hr")];
        let long = long.iter().find_map(|name| self.rate(name));
        let reasoning = self.field("output_cost_per_reasoning_token");
        // At the price of output it is output, in each tier.
        let reasoning = reasoning.filter(|rate| Some(*rate) != self.field("output_cost_per_token"));
        let tokens = [
            (parts.text, Some(input)),
            (parts.audio, self.rate("input_cost_per_audio_token")),
            (parts.read, self.rate("cache_read_input_token_cost")),
            (parts.write, self.rate(write)),
            (parts.write_long, long),
        ]
        .map(|(tokens, rate)| rate.unwrap_or(input) * Decimal::from(tokens))
        .into_iter()
        .sum::<Decimal>()
            + output * Decimal::from(parts.output)
            + reasoning.unwrap_or(output) * Decimal::from(parts.reasoning);
        let uplift = region.and_then(|region| {
            self.field(&format!("regional_processing_uplift_multiplier_{region}"))
        });
        let search = self.fields.get("search_context_cost_per_query").map(|value| {
            let sizes: BTreeMap<String, Box<RawValue>> = serde_json::from_str(value.get()).unwrap();
            sizes["search_context_size_medium"].get().parse::<Decimal>().unwrap()
        });
        tokens * uplift.unwrap_or(Decimal::ONE)
            + search.unwrap_or_default() * Decimal::from(parts.searches)
    }
}

fn above(fields: &BTreeMap<String, Box<RawValue>>, provider: &str, input: u64) -> String {
    let thousands = fields.keys().filter_map(|field| {
        let (_, rest) = field.split_once("_above_")?;
        let rest =
            rest.strip_prefix("1hr_above_").or(rest.strip_prefix("12hr_above_")).unwrap_or(rest);
        rest.split_once("k_tokens")?.0.parse::<u64>().ok()
    });
    let applies = |thousands: &u64| match provider {
        "xai" => input >= thousands * 1000,
        _ => input > thousands * 1000,
    };
    let highest = thousands.collect::<BTreeSet<_>>().into_iter().rev().find(applies);
    highest.map_or(String::new(), |thousands| format!("_above_{thousands}k_tokens"))
}

#[test]
#[ignore = "needs the price files: tests/prices/run"]
fn a_thousand_usages_cost_what_litellms_rules_say() {
    let text = litellm_text();
    let theirs: Theirs = serde_json::from_str(&text.replace("\"sample_spec\"", "\"\"")).unwrap();
    let found = imported(&text);
    let left_out: BTreeSet<_> = found
        .left_out
        .iter()
        .filter(|one| one.field.is_none())
        .map(|one| one.model.clone())
        .collect();
    let book = PriceBook::empty().with_overrides(&found.text, "litellm.yaml").unwrap();
    let said = |fields: &BTreeMap<String, Box<RawValue>>, field: &str| {
        fields.get(field).map(|value| value.get().trim_matches('"').to_owned()).unwrap_or_default()
    };
    let mut models: Vec<_> = theirs
        .iter()
        .filter(|(key, fields)| {
            let has = |field: &str| fields.contains_key(field);
            !left_out.contains(*key)
                && ["chat", "responses"].contains(&said(fields, "mode").as_str())
                && has("input_cost_per_token")
                && has("output_cost_per_token")
                // Other units and hours have tests of their own.
                && !has("tiered_pricing")
                && !has("off_peak_pricing")
                && !has("web_search_billing_unit")
                && !has("input_cost_per_request")
                && said(fields, "litellm_provider") != "perplexity"
        })
        .collect();
    models.sort_by_key(|(key, _)| key.as_str());
    // Half of the usages are of models with a long context, of which there are fewer.
    let has_long =
        |fields: &BTreeMap<String, Box<RawValue>>| !above(fields, "", u64::MAX).is_empty();
    let long_models: Vec<_> =
        models.iter().filter(|(_, fields)| has_long(fields)).copied().collect();
    let mut dice = Dice(42);
    let mut long = 0;
    for _ in 0..1000 {
        let models = if dice.up_to(1) == 0 { &models } else { &long_models };
        let (key, fields) = models[usize::try_from(dice.up_to(models.len() as u64 - 1)).unwrap()];
        let slug = said(fields, "litellm_provider");
        let mut parts = Parts::throw(&mut dice);
        if !fields.contains_key("search_context_cost_per_query") {
            parts.searches = 0;
        }
        let tier = ["", "_batches", "_flex", "_priority"][usize::try_from(dice.up_to(3)).unwrap()];
        let region = [None, Some("eu"), Some("us")][usize::try_from(dice.up_to(2)).unwrap()];
        let above = above(fields, &slug, parts.input());
        long += usize::from(!above.is_empty());
        let expected = Rules { fields, above, tier }.cost(&parts, region);
        let (provider, model) = (litellm::provider(&slug), litellm::name(key, &slug));
        let query = Query {
            provider: Some(provider),
            response_model: Some(model),
            request_model: None,
            service_tier: match tier {
                "_batches" => Some("batch"),
                other => other.strip_prefix('_'),
            },
            at: "2026-11-20T12:00:00Z".parse().unwrap(),
        };
        let cost = book.cost(&query, &parts.usage(region)).unwrap_or_else(|e| panic!("{key}: {e}"));
        assert_eq!(cost.amount, expected, "{key}{tier} {region:?} {:#?}", cost.lines);
    }
    println!("1000 usages of {} models, {long} of them with a long context", models.len());
    assert!(long > 100);
}
