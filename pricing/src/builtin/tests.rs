use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use jiff::Timestamp;
use rust_decimal::Decimal;
use serde_json::value::RawValue;

use crate::{Card, LongContext, MeterName, PriceBook, Query, Row, ServiceTier, Threshold};

/// One line a model, in USD per 1,000,000 tokens, as the providers' lists were read on 2026-11-20:
/// `provider/model input/read/write/long write/output batch flex priority long contexts`. `-` is
/// not in the list; the three tiers are `input/output`, the contexts `threshold input/read/output`.
const TABLE: &str = include_str!("table.txt");

/// A snapshot with a price of its own.
const SNAPSHOT: &str = "gpt-4o-2024-05-13";

/// The rows beyond the table, which is of text.
const BEYOND_TABLE: [&str; 17] = [
    SNAPSHOT,
    "gpt-4o-transcribe",
    "gpt-4o-transcribe-diarize",
    "gpt-4o-mini-transcribe",
    "whisper-1",
    "gpt-4o-mini-tts",
    "gpt-audio",
    "gpt-audio-mini",
    "gpt-image-1",
    "gpt-image-1-mini",
    "gpt-image-1.5",
    "gpt-image-2",
    "omni-moderation-latest",
    "rerank-v4.0-pro",
    "rerank-v4.0-fast",
    "rerank-v3.5",
    "rerank-2.5",
];

fn book() -> PriceBook {
    PriceBook::builtin().expect("the built-in book reads")
}

fn find<'a>(book: &'a PriceBook, provider: &str, model: &str) -> &'a Row {
    let at = "2026-11-20T12:00:00Z".parse::<Timestamp>().unwrap();
    let query = Query {
        provider: Some(provider),
        response_model: Some(model),
        request_model: None,
        service_tier: None,
        at,
    };
    book.find(&query).unwrap_or_else(|| panic!("{provider}/{model} is in the book"))
}

/// Per million, as the lists write it.
fn shown(rate: Option<Decimal>) -> String {
    rate.map_or("-".to_owned(), |rate| (rate * Decimal::from(1_000_000)).normalize().to_string())
}

fn tier_shown(card: &Card, tier: ServiceTier) -> String {
    match card.tiers.rates(tier) {
        Some(rates) => {
            let [input, output] = [MeterName::Input, MeterName::Output].map(|m| rates.rate(m));
            let output = output.map_or(String::new(), |output| shown(Some(output)));
            format!("{}/{output}", shown(input))
        }
        None => "-".to_owned(),
    }
}

fn long_shown(long: &LongContext) -> [String; 2] {
    let [input, cache_read, output] = [MeterName::Input, MeterName::CacheRead, MeterName::Output]
        .map(|meter| long.card.rates.rate(meter));
    let threshold = match long.threshold {
        Threshold::Over(tokens) => format!(">{tokens}"),
        Threshold::AtLeast(tokens) => format!(">={tokens}"),
    };
    [threshold, format!("{}/{}/{}", shown(input), shown(cache_read), shown(output))]
}

#[test]
fn every_model_of_the_lists_has_its_price() {
    let book = book();
    for line in TABLE.lines() {
        let mut words = line.split_whitespace();
        let (provider, model) = words.next().unwrap().split_once('/').unwrap();
        let row = find(&book, provider, model);
        let rates = &row.card.rates;
        let output =
            if row.input_only { "none".to_owned() } else { shown(rates.rate(MeterName::Output)) };
        let mut found = vec![format!(
            "{}/{}/{}/{}/{output}",
            shown(rates.rate(MeterName::Input)),
            shown(rates.rate(MeterName::CacheRead)),
            shown(rates.rate(MeterName::CacheWrite)),
            shown(rates.rate(MeterName::CacheWriteLong)),
        )];
        for tier in [ServiceTier::Batch, ServiceTier::Flex, ServiceTier::Priority] {
            found.push(tier_shown(&row.card, tier));
        }
        found.extend(row.long_context.iter().flat_map(long_shown));
        assert_eq!(found, words.collect::<Vec<_>>(), "{provider}/{model}");
    }
    let beyond = book.rows().filter(|row| BEYOND_TABLE.contains(&row.model.as_str())).count();
    assert_eq!(beyond, BEYOND_TABLE.len());
    assert_eq!(book.rows().count(), TABLE.lines().count() + beyond);
}

#[test]
fn a_row_is_named_by_book_version_provider_and_model() {
    assert_eq!(find(&book(), "openai", "gpt-5.4").price_id, "builtin@2026-11-20#openai/gpt-5.4");
}

#[test]
fn a_snapshot_with_its_own_price_keeps_it() {
    let book = book();
    assert_eq!(shown(find(&book, "openai", SNAPSHOT).card.rates.rate(MeterName::Input)), "5");
    assert_eq!(
        shown(find(&book, "openai", "gpt-4o-2024-08-06").card.rates.rate(MeterName::Input)),
        "2.5"
    );
}

/// Where the file is that we checked our prices against; it is not part of this repository.
const LITELLM: &str = "shared/data/prices/litellm-1.109.1-model_prices_and_context_window.json";

type LiteLlm = HashMap<String, BTreeMap<String, Box<RawValue>>>;

/// A second opinion on every number, for whoever has the file.
#[test]
fn the_book_agrees_with_litellm_where_that_is_at_hand() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(LITELLM);
    let there = Path::new("/work").join(LITELLM);
    let Some(text) = [here, there].iter().find_map(|path| std::fs::read_to_string(path).ok())
    else {
        eprintln!("not checked: {LITELLM} is not here");
        return;
    };
    let theirs: LiteLlm = serde_json::from_str(&text).expect("their file is an object of objects");
    let book = book();
    for row in book.rows().filter(|row| !BEYOND_TABLE.contains(&row.model.as_str())) {
        let key = their_key(row);
        let model = theirs.get(&key).unwrap_or_else(|| panic!("litellm has no {key}"));
        assert_eq!(row.off_peak.is_some(), model.contains_key("off_peak_pricing"), "{key}");
        if model.contains_key("tiered_pricing") {
            continue; // The shape is its own; the table above has these.
        }
        compare(row, model, "", &row.card);
        for long in &row.long_context {
            let (Threshold::Over(tokens) | Threshold::AtLeast(tokens)) = long.threshold;
            compare(row, model, &format!("_above_{}k_tokens", tokens / 1000), &long.card);
        }
        let thresholds = model.keys().filter(|field| {
            field.starts_with("input_cost_per_token_above_") && field.ends_with("k_tokens")
        });
        assert_eq!(row.long_context.len(), thresholds.count(), "{key}");
    }
}

fn their_key(row: &Row) -> String {
    let model = &row.model;
    match row.provider.as_deref().expect("a built-in row names its provider") {
        "openai" | "anthropic" => model.clone(),
        "cohere" if model.starts_with("command") => model.clone(),
        "gcp.gemini" => format!("gemini/{model}"),
        "mistral_ai" => format!("mistral/{model}"),
        "x_ai" => format!("xai/{model}"),
        other => format!("{other}/{model}"),
    }
}

/// Every number on `card` is theirs, and every number of theirs is on it.
fn compare(row: &Row, theirs: &BTreeMap<String, Box<RawValue>>, above: &str, card: &Card) {
    let tiers = [
        ("", Some(&card.rates)),
        ("_batches", card.tiers.batch.as_ref()),
        ("_flex", card.tiers.flex.as_ref()),
        ("_priority", card.tiers.priority.as_ref()),
        ("_ultrafast", card.tiers.ultrafast.as_ref()),
    ];
    for (tier, rates) in tiers {
        for (meter, fields) in THEIR_FIELDS {
            let fields = fields.iter().map(|field| format!("{field}{above}{tier}"));
            let theirs: Vec<_> =
                fields.filter_map(|field| theirs.get(&field)).map(|value| rate(value)).collect();
            let ours = rates.and_then(|rates| rates.rate(meter));
            if meter == MeterName::Output && row.input_only {
                assert!(theirs.iter().all(Decimal::is_zero), "{} has an output", row.model);
            } else {
                assert_eq!(
                    ours.is_some(),
                    !theirs.is_empty(),
                    "{} {meter}{above}{tier}",
                    row.model
                );
                assert!(
                    theirs.iter().all(|theirs| ours == Some(*theirs)),
                    "{} {meter}{above}{tier}: {ours:?}, not {theirs:?}",
                    row.model
                );
            }
        }
    }
}

/// Several fields are several names of one thing, or cost the same in every row of ours.
const THEIR_FIELDS: [(MeterName, &[&str]); 5] = [
    (MeterName::Input, &["input_cost_per_token"]),
    (MeterName::CacheRead, &["cache_read_input_token_cost"]),
    (MeterName::CacheWrite, &["cache_creation_input_token_cost"]),
    (
        MeterName::CacheWriteLong,
        &[
            "cache_creation_input_token_cost_above_1hr",
            "cache_creation_input_token_cost_above_12hr",
        ],
    ),
    (MeterName::Output, &["output_cost_per_token", "output_cost_per_reasoning_token"]),
];

fn rate(value: &RawValue) -> Decimal {
    let text = value.get();
    Decimal::from_scientific(text).or_else(|_| text.parse()).expect("a price is a number")
}
