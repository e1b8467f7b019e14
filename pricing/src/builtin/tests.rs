use jiff::Timestamp;
use rust_decimal::Decimal;

use crate::{LongContext, MeterName, PriceBook, Query, RateCard, Row, ServiceTier, Threshold};

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

fn tier_shown(card: &RateCard, tier: ServiceTier) -> String {
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
