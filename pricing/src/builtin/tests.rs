mod registries;

use std::collections::BTreeSet;

use jiff::Timestamp;
use rust_decimal::Decimal;

use crate::meter::MeterKind;
use crate::{
    Condition, LongContext, MeterName, PriceBook, Query, RateCard, Row, ServiceTier, Threshold,
};

/// One line a model, in USD per 1,000,000 tokens, as the providers' lists were read on 2026-11-25:
/// `provider/model input/read/write/long write/output batch flex priority long contexts`. `-` is
/// not in the list; the three tiers are `input/output`, the contexts `threshold input/read/output`.
const TABLE: &str = include_str!("table.txt");

/// The day of the table.
const DAY: &str = "2026-11-25";

/// Models whose price ended and has no successor: the provider ended the model, or promised the
/// price up to a day and published no later one.
const ENDED: [&str; 3] = ["deepseek-chat", "deepseek-reasoner", "gpt-5.6-sol"];

fn book() -> PriceBook {
    PriceBook::builtin().expect("the built-in book reads")
}

fn find_on<'a>(book: &'a PriceBook, provider: &str, model: &str, day: &str) -> Option<&'a Row> {
    let at = format!("{day}T12:00:00Z").parse::<Timestamp>().unwrap();
    let query = Query {
        provider: Some(provider),
        response_model: Some(model),
        request_model: None,
        service_tier: None,
        at,
    };
    book.find(&query)
}

fn find<'a>(book: &'a PriceBook, provider: &str, model: &str) -> &'a Row {
    find_on(book, provider, model, DAY)
        .unwrap_or_else(|| panic!("{provider}/{model} is in the book"))
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
    let listed: BTreeSet<_> =
        TABLE.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(listed.len(), TABLE.lines().count());
    let day = DAY.parse().unwrap();
    for row in book.rows().filter(|row| row.holds_on(day) && is_of_text(row)) {
        let name = format!("{}/{}", row.provider.as_deref().unwrap(), row.model);
        assert!(listed.contains(name.as_str()), "{name} is not in the table");
    }
}

/// Whether it prices text and calls only. The table has no columns for other meters.
fn is_of_text(row: &Row) -> bool {
    row.card.rates.iter().all(|(meter, _)| {
        use MeterName::{CacheRead, CacheWrite, CacheWriteLong, Input, Output, SearchUnits};
        match meter {
            Input | CacheRead | CacheWrite | CacheWriteLong | Output => true,
            SearchUnits => false,
            other => other.kind() == MeterKind::Beside,
        }
    })
}

#[test]
fn a_price_that_changes_has_each_of_its_days() {
    let book = book();
    let input = |row: &Row| shown(row.card.rates.rate(MeterName::Input));
    let read = |row: &Row| shown(row.card.rates.rate(MeterName::CacheRead));
    let ultrafast = |row: &Row| tier_shown(&row.card, ServiceTier::Ultrafast);
    let fast = |row: &Row| match row.when.contains_key(&Condition::Speed) {
        true => "yes".to_owned(),
        false => "no".to_owned(),
    };
    type Shown<'a> = &'a dyn Fn(&Row) -> String;
    type Case<'a> = (&'a str, &'a str, Shown<'a>, &'a [(&'a str, &'a str)]);
    let cases: &[Case<'_>] = &[
        ("openai", "gpt-5.6-sol", &input, &[("2026-08-20", "5"), ("2026-08-21", "4")]),
        ("openai", "gpt-5.6-sol", &input, &[("2026-11-21", "4"), ("2026-11-22", "unknown")]),
        ("openai", "gpt-5.6", &input, &[("2026-11-21", "4"), ("2026-11-22", "unknown")]),
        ("openai", "gpt-6.2-sol", &ultrafast, &[("2027-02-28", "6/30"), ("2027-03-01", "12/60")]),
        ("anthropic", "claude-opus-4-8", &fast, &[("2026-11-29", "yes"), ("2026-11-30", "no")]),
        ("anthropic", "claude-sonnet-5-5", &read, &[("2026-10-06", "0.2"), ("2026-10-07", "0.1")]),
        ("gcp.gemini", "gemini-4-argon", &input, &[("2026-11-30", "2"), ("2026-12-01", "4")]),
        (
            "gcp.gemini",
            "gemini-3.8-flash",
            &input,
            &[("2026-12-31", "0.75"), ("2027-01-01", "1.5")],
        ),
        (
            "mistral_ai",
            "mistral-large-4",
            &input,
            &[("2026-10-19", "0.68"), ("2026-10-20", "1.36")],
        ),
        ("mistral_ai", "mistral-large-4", &input, &[("2026-10-28", "1.36"), ("2026-10-29", "0.7")]),
        ("deepseek", "deepseek-chat", &input, &[("2026-07-24", "0.28"), ("2026-07-25", "unknown")]),
    ];
    for (provider, model, shown, days) in cases {
        for (day, price) in *days {
            let row = find_on(&book, provider, model, day);
            let found = row.map_or_else(|| "unknown".to_owned(), *shown);
            assert_eq!(found, *price, "{provider}/{model} on {day}");
        }
    }
}

#[test]
fn a_price_ends_where_the_next_begins_or_for_good() {
    let book = book();
    let mut ended = BTreeSet::new();
    for row in book.rows() {
        let Some(until) = row.until else { continue };
        let follows = book.rows().any(|next| {
            (&next.provider, &next.model, next.from) == (&row.provider, &row.model, Some(until))
        });
        if !follows {
            ended.insert(row.model.as_str());
        }
    }
    assert_eq!(ended, ENDED.into());
}

#[test]
fn a_row_is_named_by_book_version_provider_and_model() {
    assert_eq!(find(&book(), "openai", "gpt-5.4").price_id, "builtin@2026-11-25#openai/gpt-5.4");
}

#[test]
fn a_snapshot_with_its_own_price_keeps_it() {
    let book = book();
    assert_eq!(
        shown(find(&book, "openai", "gpt-4o-2024-05-13").card.rates.rate(MeterName::Input)),
        "5"
    );
    assert_eq!(
        shown(find(&book, "openai", "gpt-4o-2024-08-06").card.rates.rate(MeterName::Input)),
        "2.5"
    );
}
