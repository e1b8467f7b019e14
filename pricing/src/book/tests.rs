use super::*;
use crate::{Currency, MeterName};

const NOON: &str = "2026-11-20T12:00:00Z";

fn book(overrides: &str) -> PriceBook {
    PriceBook::builtin().unwrap().with_overrides(overrides, "prices.yaml").unwrap()
}

fn query<'a>(provider: &'a str, response: &'a str, request: &'a str) -> Query<'a> {
    Query {
        provider: Some(provider).filter(|provider| !provider.is_empty()),
        response_model: Some(response).filter(|model| !model.is_empty()),
        request_model: Some(request).filter(|model| !model.is_empty()),
        service_tier: None,
        at: NOON.parse().unwrap(),
    }
}

fn found<'a>(book: &'a PriceBook, query: &Query<'_>) -> &'a str {
    book.find(query).map_or("nothing", |row| &row.price_id)
}

#[test]
fn the_model_of_the_answer_comes_before_that_of_the_request() {
    let book = PriceBook::builtin().unwrap();
    for (response, request, expected) in [
        ("gpt-5.4", "gpt-5", "openai/gpt-5.4"),
        ("gpt-5.4-2026-03-05", "gpt-5", "openai/gpt-5.4"),
        ("gpt-5.4-20260305", "gpt-5", "openai/gpt-5.4"),
        ("something-else", "gpt-5", "openai/gpt-5"),
        ("something-else", "gpt-5-2025-08-07", "openai/gpt-5"),
        ("", "gpt-5", "openai/gpt-5"),
        ("gpt-5", "", "openai/gpt-5"),
    ] {
        let expected = format!("builtin@2026-11-25#{expected}");
        assert_eq!(found(&book, &query("openai", response, request)), expected);
    }
}

#[test]
fn there_is_no_guessing_by_family() {
    let book = PriceBook::builtin().unwrap();
    for model in [
        "gpt-5.4-turbo",
        "gpt-5.4-",
        "gpt",
        "gpt-5-4",
        "ft:gpt-4o:acme",
        "azure/gpt-5.4",
        "gpt-5.4-2026-13-05",
        "gpt-5.4-12345678",
        "gpt-5.4-2026-3-5",
        "gpt-5.4-2026030",
        "gpt-5.4-202603055",
        "-2026-03-05",
        "2026-03-05",
        "é",
        "gpt-5.4é2026-03-05",
    ] {
        assert_eq!(found(&book, &query("openai", model, "")), "nothing", "{model}");
    }
    assert_eq!(found(&book, &query("openai", "", "")), "nothing");
}

#[test]
fn a_providers_row_prices_no_other_providers_answers() {
    let book = PriceBook::builtin().unwrap();
    for provider in ["vllm", "llama_cpp", "sglang", "tgi", "ollama", "azure.ai.openai", ""] {
        assert_eq!(found(&book, &query(provider, "gpt-4o", "gpt-4o")), "nothing", "{provider}");
    }
}

#[test]
fn an_override_without_a_provider_prices_whoever_answers() {
    let book = book("version: 2026-12-01\nmodels: [{model: m, rates: {input: 1, output: 2}}]");
    for provider in ["vllm", "openai", ""] {
        assert_eq!(found(&book, &query(provider, "m", "")), "overrides@2026-12-01#m");
    }
}

#[test]
fn overrides_come_before_the_built_in_book_and_a_providers_own_before_any_providers() {
    let book = book(
        "models:
- {model: gpt-5, rates: {input: 1, output: 2}}
- {model: gpt-5, provider: vllm, rates: {input: 1, output: 2}}
- {model: gpt-4o, provider: vllm, rates: {input: 1, output: 2}}
",
    );
    assert_eq!(found(&book, &query("vllm", "gpt-5", "")), "overrides@undated#vllm/gpt-5");
    assert_eq!(found(&book, &query("openai", "gpt-5", "")), "overrides@undated#gpt-5");
    assert_eq!(found(&book, &query("openai", "gpt-4o", "")), "builtin@2026-11-25#openai/gpt-4o");
    assert_eq!(book.version(), "overrides@undated+builtin@2026-11-25");
    let dates: Vec<_> = book.dates().map(|(name, date)| (name, date.to_string())).collect();
    assert_eq!(dates, [("builtin", "2026-11-25".to_owned())]);
}

#[test]
fn a_request_is_priced_by_the_row_in_force_at_its_admission() {
    let book = book(
        "provider: openai
models:
- {model: gpt-5, from: 2027-01-01, rates: {input: 1, output: 2}}
- {model: gpt-5, from: 2026-12-01, aliases: [five], rates: {input: 3, output: 4}}
",
    );
    for (at, model, input) in [
        ("2026-11-30T23:59:59.999Z", "gpt-5", "0.00000125"),
        ("2026-12-01T00:00:00Z", "gpt-5", "0.000003"),
        ("2026-12-31T23:59:59Z", "five", "0.000003"),
        ("2027-01-01T00:00:00Z", "gpt-5", "0.000001"),
        ("2027-01-01T00:00:00Z", "five", "0.000001"),
        ("2026-11-20T00:00:00Z", "five", "0.00000125"),
    ] {
        let query = Query { at: at.parse().unwrap(), ..query("openai", model, "") };
        let rate = book.find(&query).and_then(|row| row.card.rates.rate(MeterName::Input)).unwrap();
        assert_eq!(rate.to_string(), input, "{model} at {at}");
    }
}

#[test]
fn an_alias_is_a_name_like_any_other() {
    let book = book(
        "models:
- {model: m, aliases: [our-m, their-m], provider: tgi, rates: {input: 1, output: 2}}",
    );
    for name in ["m", "our-m", "their-m", "their-m-2026-01-01"] {
        assert_eq!(found(&book, &query("tgi", name, "")), "overrides@undated#tgi/m");
        assert_eq!(found(&book, &query("vllm", name, "")), "nothing");
    }
}

#[test]
fn of_several_files_the_row_that_began_last_holds() {
    let november = "version: 2026-11-01\nmodels: [{model: m, rates: {input: 1, output: 2}}, \
        {model: other, rates: {input: 7, output: 7}}]";
    let december = "version: 2026-12-01\nfrom: 2026-12-01\nmodels: [{model: m, rates: {input: 3, \
        output: 4}}]";
    let laid = |first, second| {
        let book = PriceBook::builtin().unwrap().with_overrides(first, "a.yaml").unwrap();
        book.with_overrides(second, "b.yaml").unwrap()
    };
    for book in [laid(november, december), laid(december, november)] {
        for (at, model, expected) in [
            ("2026-11-30T23:59:59Z", "m", "overrides@2026-11-01#m"),
            ("2026-12-01T00:00:00Z", "m", "overrides@2026-12-01#m@2026-12-01"),
            ("2026-12-01T00:00:00Z", "other", "overrides@2026-11-01#other"),
        ] {
            let query = Query { at: at.parse().unwrap(), ..query("vllm", model, "") };
            assert_eq!(found(&book, &query), expected);
        }
    }
    let error = PriceBook::builtin().unwrap().with_overrides(november, "a.yaml").unwrap();
    let error = error.with_overrides(november, "b.yaml").unwrap_err();
    assert_eq!(
        error.to_string(),
        "b.yaml:2:18: \"m\" is named twice; keep one, or give the later row another `from`"
    );
}

#[test]
fn a_row_ends_before_its_last_day() {
    let book = book(
        "models:
- {model: gpt-5, provider: openai, until: 2026-12-01, rates: {input: 1, output: 2}}",
    );
    for (at, expected) in [
        ("2026-11-30T23:59:59.999Z", "overrides@undated#openai/gpt-5"),
        ("2026-12-01T00:00:00Z", "builtin@2026-11-25#openai/gpt-5"),
    ] {
        let query = Query { at: at.parse().unwrap(), ..query("openai", "gpt-5", "") };
        assert_eq!(found(&book, &query), expected);
    }
}

#[test]
fn the_example_of_a_price_file_is_good() {
    let example = include_str!("../../../deploy/prices/own-models.yaml");
    let book = book(example).in_currency(Currency::new("EUR").unwrap(), Vec::new());
    let query = query("openai", "gpt-5.4", "");
    assert_eq!(found(&book, &query), "overrides@2026-11-20#openai/gpt-5.4");
}
