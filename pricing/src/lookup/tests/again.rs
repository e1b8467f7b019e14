//! What is looked up again: the outcome is remembered, and is that of a first time.

use super::*;
use crate::{Condition, Currency, ExchangeRate};

/// Every kind of outcome of a name that is not a row's own.
const NAMES: [(&str, &str); 18] = [
    ("openai", "gpt-5.4-2026-03-05"),
    ("openai", "GPT-5.4"),
    ("openai", "FIVE"),
    ("openai", "ft:gpt-4o:acme::1"),
    ("openai", "ft:gpt-5.4:acme::1"),
    ("openai", "gpt-5.4:thinking"),
    ("openai", "made-up"),
    ("openai", ""),
    ("mistral_ai", "gpt-5.4-2026-03-05"),
    ("azure.ai.openai", "global/gpt-4o-2024-08-06"),
    ("azure.ai.openai", "eu/gpt-4o"),
    ("aws.bedrock", "us.anthropic.claude-sonnet-4-5-20250929-v1:0"),
    ("aws.bedrock", "eu.anthropic.claude-sonnet-4-5-20250929-v1:0"),
    ("aws.bedrock", "apac.anthropic.claude-sonnet-4-5"),
    ("aws.bedrock", "anthropic.claude-sonnet-4-5-v1:0"),
    ("aws.bedrock", "arn:aws:bedrock:us-east-1:1:application-inference-profile/x"),
    ("", "anything-2026-01-01"),
    ("vllm", "anything-2026-01-01"),
];

/// What `look` returns where nothing was looked up before.
fn first<T: Send>(look: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| scope.spawn(look).join().unwrap())
}

fn lookup<'b>(book: &'b PriceBook, name: (&'b str, &'b str), at: &str) -> String {
    let query = Query { at: at.parse().unwrap(), ..query(name.0, name.1, "") };
    let outcome = book.lookup(&query);
    let message = outcome.as_ref().err().map(ToString::to_string).unwrap_or_default();
    let price_id = outcome.as_ref().map(|found| found.row.price_id.clone()).unwrap_or_default();
    format!("{} {price_id} {message}", found(book, &query))
}

/// The outcomes of several rounds in one thread are those of a thread each.
#[track_caller]
fn check(books: &[&PriceBook], times: &[&str]) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    for _ in 0..3 {
        for &at in times {
            for name in NAMES {
                for &book in books {
                    let again = lookup(book, name, at);
                    assert_eq!(again, first(|| lookup(book, name, at)), "{name:?} {at}");
                    all.insert(again);
                }
            }
        }
    }
    all
}

#[test]
fn every_kind_of_outcome_is_the_same_again() {
    let all = check(&[&book()], &[NOON]);
    for kind in ["by", "unknown", "tuned", "variant", "deployment", "region"] {
        assert!(all.iter().any(|outcome| outcome.contains(kind)), "{kind}: {all:?}");
    }
}

const DATED: &str = "
version: 2026-11-20
models:
- {model: gpt-5.4, provider: openai, until: 2026-11-21, rates: {input: 1, output: 2}}
- {model: made-up, provider: openai, from: 2026-11-21, rates: {input: 1, output: 2}}
- {model: 'ft:gpt-4o', provider: openai, until: 2026-11-21, rates: {input: 1, output: 2}}
- {model: 'ft:gpt-4o', provider: openai, from: 2026-11-21, rates: {input: 2, output: 2}}
- {model: gpt-4o, provider: azure.ai.openai, from: 2026-11-21, rates: {input: 1, output: 2}}
";

#[test]
fn a_price_that_begins_or_ends_at_midnight_does_so() {
    let book = PriceBook::empty().with_overrides(DATED, "prices.yaml").unwrap();
    let (before, after) = ("2026-11-20T23:59:59.999999999Z", "2026-11-21T00:00:00Z");
    check(&[&book], &[before, after, NOON, "2026-11-22T00:00:00Z", "2026-11-19T23:59:59Z"]);
    for (name, earlier, later) in [
        ("gpt-5.4-2026-03-05", "gpt-5.4 by date ", "overrides@2026-11-20#openai/gpt-5.4 ended"),
        ("made-up", "overrides@2026-11-20#openai/made-up@2026-11-21 begins", "made-up by exact"),
        ("ft:gpt-4o:acme::1", "#openai/ft:gpt-4o ", "#openai/ft:gpt-4o@2026-11-21 "),
    ] {
        for (at, expected) in [(before, earlier), (after, later), (before, earlier)] {
            let outcome = lookup(&book, ("openai", name), at);
            assert!(outcome.contains(expected), "{at}: {outcome}");
        }
    }
}

#[test]
fn another_book_has_outcomes_of_its_own() {
    // All have the same version.
    let (before, after) =
        (book(), PriceBook::empty().with_overrides(DATED, "prices.yaml").unwrap());
    let more = "
version: 2026-11-20
models: [{model: made-up, provider: openai, rates: {input: 1, output: 2}}]
";
    let added = before.clone().with_overrides(more, "more.yaml").unwrap();
    let fixed = PriceBook::fixed("acme", ROWS, "acme.yaml").unwrap();
    check(&[&before, &after, &added, &fixed, &before.clone()], &[NOON]);
    for (book, expected) in
        [(&before, "unknown"), (&added, "made-up by case"), (&before, "unknown")]
    {
        assert_eq!(found(book, &query("openai", "Made-Up", "")), expected);
    }
}

#[test]
fn an_exchange_rate_that_begins_at_midnight_does_so() {
    let (euro, midnight) = (Currency::new("EUR").unwrap(), "2026-11-20");
    let in_dollars = book();
    let without = in_dollars.clone().in_currency(euro, Vec::new());
    let rate = ExchangeRate {
        from: Currency::USD,
        rate: "0.9".parse().unwrap(),
        since: Some(midnight.parse().unwrap()),
    };
    let with = without.clone().in_currency(euro, vec![rate]);
    check(&[&in_dollars, &without, &with], &[NOON, "2026-11-19T23:59:59Z"]);
    let name = ("openai", "gpt-5.4-2026-03-05");
    for (book, at, is_found) in [
        (&in_dollars, "2026-11-19T23:59:59Z", true),
        (&with, "2026-11-19T23:59:59Z", false),
        (&with, "2026-11-20T00:00:00Z", true),
        (&without, "2026-11-20T00:00:00Z", false),
    ] {
        assert_eq!(lookup(book, name, at).starts_with("gpt-5.4 by date"), is_found, "{at}");
    }
}

#[test]
fn tiers_and_conditions_of_one_name_have_their_own_prices() {
    let rows = "
version: 2026-11-20
models:
- model: anthropic.claude-sonnet-4-5
  provider: aws.bedrock
  rates: {input: 3, output: 15}
  tiers: {batch: {input: 1, output: 5}}
  when: {region: {us: {times: 2}, eu: {times: 3}}}
";
    let book = PriceBook::empty().with_overrides(rows, "prices.yaml").unwrap();
    let input = Usage { input_tokens: Some(1_000_000), output_tokens: Some(0), ..Usage::default() };
    let usage_in = |region: &str| Usage {
        conditions: [(Condition::Region, region.to_owned())].into(),
        ..input.clone()
    };
    for _ in 0..3 {
        for (name, tier, region, expected) in [
            ("us.anthropic.claude-sonnet-4-5-v1:0", None, "", Some(6)),
            ("eu.anthropic.claude-sonnet-4-5-v1:0", None, "", Some(9)),
            ("eu.anthropic.claude-sonnet-4-5-v1:0", Some("batch"), "", Some(3)),
            ("eu.anthropic.claude-sonnet-4-5-v1:0", Some("batch"), "us", Some(3)),
            ("apac.anthropic.claude-sonnet-4-5-v1:0", None, "", None),
            ("anthropic.claude-sonnet-4-5-v1:0", None, "us", Some(6)),
            ("anthropic.claude-sonnet-4-5-v1:0", None, "eu", Some(9)),
            ("anthropic.claude-sonnet-4-5-v1:0", Some("batch"), "eu", Some(3)),
            ("anthropic.claude-sonnet-4-5-v1:0", Some("night"), "", None),
            ("anthropic.claude-sonnet-4-5-v1:0", Some("batch"), "", Some(1)),
            ("anthropic.claude-sonnet-4-5-v1:0", None, "", Some(3)),
        ] {
            let query = Query { service_tier: tier, ..query("aws.bedrock", name, "") };
            let usage = if region.is_empty() { input.clone() } else { usage_in(region) };
            let cost = book.cost(&query, &usage).ok().map(|cost| cost.amount);
            assert_eq!(cost, expected.map(Into::into), "{name} {tier:?} {region}");
        }
    }
}

#[test]
fn a_customer_s_fixed_prices_are_apart_from_the_list() {
    let fixed = "
version: 2026-11-20
models: [{model: made-up, provider: openai, rates: {input: 5, output: 5}}]
";
    let book = book();
    let [with, without] = [Some(fixed), None].map(|fixed| {
        let fixed = fixed.map(|text| PriceBook::fixed("acme", text, "acme.yaml").unwrap());
        Contract::new("acme", Dated::default(), fixed)
    });
    let query = query("openai", "made-up-2026-01-01", "");
    for _ in 0..3 {
        assert!(with.finds(&book, &query));
        assert!(!without.finds(&book, &query));
        assert!(book.contracted(&with, &query, &Usage::default()).unwrap_err().known.is_none());
        let reasons = book.contracted(&without, &query, &Usage::default()).unwrap_err().reasons;
        assert!(matches!(&reasons[..], [PriceError::UnknownModel { .. }]), "{reasons:?}");
    }
}
