//! The files themselves, which are not part of this repository: `tests/prices/run FOLDER`.

mod genai;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::PathBuf;

use rust_decimal::Decimal;
use serde_json::value::RawValue;

use super::*;
use crate::{ByModality, Change, Condition, Modalities, diff};

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

#[test]
#[ignore = "needs the price files: tests/prices/run"]
fn the_built_in_book_says_what_litellm_says() {
    let book = PriceBook::builtin().unwrap();
    let text = imported(&litellm_text()).text;
    let theirs = PriceBook::empty().with_overrides(&text, "litellm.yaml").unwrap();
    let differing: Vec<_> = diff(&book, &theirs, day())
        .into_iter()
        .filter(|one| !matches!(one.change, Change::Added(_)))
        .map(|one| format!("{} {:?}", one.model, one.change))
        .collect();
    // Anthropic charges web searches alike with every model; LiteLLM lacks it for this one.
    assert_eq!(differing.len(), 1, "{differing:#?}");
    assert!(
        differing[0].starts_with("claude-haiku-4-5 Changed([PriceChange { price: \"web_search")
    );
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

    /// The field of this context and this tier, and of no other.
    fn rate(&self, name: &str) -> Option<Decimal> {
        self.field(&format!("{name}{}{}", self.above, self.tier))
    }

    /// Whether the price is in the file, for any context and tier.
    fn has(&self, name: &str) -> bool {
        let variants = ["_above_1", "_above_2", "_above_5", "_batches", "_flex", "_priority"];
        self.fields.keys().filter_map(|field| field.strip_prefix(name)).any(|rest| {
            let is_of_long_write =
                rest.starts_with("_above_1hr") || rest.starts_with("_above_12hr");
            rest.is_empty()
                || !is_of_long_write && variants.iter().any(|variant| rest.starts_with(variant))
        })
    }

    /// What `tokens` cost. `None` if they have a price in another context or tier alone.
    fn part(&self, tokens: u64, names: &[&str], instead: Option<Decimal>) -> Option<Decimal> {
        let rate = names.iter().find_map(|name| self.rate(name));
        let rate = rate.or_else(|| instead.filter(|_| !names.iter().any(|name| self.has(name))));
        if tokens == 0 { Some(Decimal::ZERO) } else { Some(rate? * Decimal::from(tokens)) }
    }

    fn cost(&self, parts: &Parts, region: Option<&str>) -> Option<Decimal> {
        let input = self.rate("input_cost_per_token");
        let output = self.rate("output_cost_per_token");
        let write = "cache_creation_input_token_cost";
        let long = [format!("{write}_above_1hr"), format!("{write}_above_12hr")];
        let long = [long[0].as_str(), long[1].as_str()];
        // The file has a price for one of the two writes: the other one has none.
        let has_write = self.has(write) || long.iter().any(|name| self.has(name));
        let for_write = input.filter(|_| !has_write);
        let reasoning = "output_cost_per_reasoning_token";
        // At the price of output it is output, in each tier.
        let is_output = self.field(reasoning) == self.field("output_cost_per_token");
        let (output_tokens, reasoning_tokens) = match is_output {
            true => (parts.output + parts.reasoning, 0),
            false => (parts.output, parts.reasoning),
        };
        let tokens = self.part(parts.text, &["input_cost_per_token"], None)?
            + self.part(parts.audio, &["input_cost_per_audio_token"], input)?
            + self.part(parts.read, &["cache_read_input_token_cost"], input)?
            + self.part(parts.write, &[write], for_write)?
            + self.part(parts.write_long, &long, for_write)?
            + self.part(output_tokens, &["output_cost_per_token"], None)?
            + self.part(reasoning_tokens, &[reasoning], output)?;
        let uplift = region.and_then(|region| {
            self.field(&format!("regional_processing_uplift_multiplier_{region}"))
        });
        let search = self.fields.get("search_context_cost_per_query").map(|value| {
            let sizes: BTreeMap<String, Box<RawValue>> = serde_json::from_str(value.get()).unwrap();
            sizes["search_context_size_medium"].get().parse::<Decimal>().unwrap()
        });
        let searches = search.unwrap_or_default() * Decimal::from(parts.searches);
        Some(tokens * uplift.unwrap_or(Decimal::ONE) + searches)
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

/// The tier, or none where no tier has a price and each costs the same.
fn priced_tier<'a>(fields: &BTreeMap<String, Box<RawValue>>, tier: &'a str) -> &'a str {
    let tiers = ["_batches", "_flex", "_priority", "_ultrafast"];
    let is_of_tier =
        |field: &String| field.contains("cost") && tiers.iter().any(|tier| field.ends_with(tier));
    if fields.keys().any(is_of_tier) { tier } else { "" }
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
    let (mut long, mut unknown) = (0, 0);
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
        let expected =
            Rules { fields, above, tier: priced_tier(fields, tier) }.cost(&parts, region);
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
        let cost = book.cost(&query, &parts.usage(region));
        let found = cost.as_ref().ok().map(|cost| cost.amount);
        assert_eq!(found, expected, "{key}{tier} {region:?} {cost:#?}");
        unknown += usize::from(found.is_none());
    }
    println!(
        "1000 usages of {} models, {long} with a long context, {unknown} of unknown cost",
        models.len()
    );
    assert!(long > 100 && unknown > 100 && unknown < 700);
}
