mod combinations;
mod contracts;
mod currencies;
mod meters;
mod partly;
mod regions;

use std::sync::LazyLock;

use jiff::Timestamp;
use proptest::prelude::*;

use super::*;
use crate::{ByModality, Currency, Modalities, Pass};

const NOON: &str = "2026-11-20T12:00:00Z";

/// The first and the last day of the week that begins with it.
const WEEK: [&str; 2] = ["2026-11-20", "2026-11-27"];

fn query<'a>(provider: &'a str, model: &'a str) -> Query<'a> {
    Query {
        provider: Some(provider),
        response_model: Some(model),
        request_model: None,
        service_tier: None,
        at: NOON.parse().unwrap(),
    }
}

fn builtin() -> &'static PriceBook {
    static BOOK: LazyLock<PriceBook> = LazyLock::new(|| PriceBook::builtin().unwrap());
    &BOOK
}

fn with(overrides: &str) -> PriceBook {
    builtin().clone().with_overrides(overrides, "prices.yaml").unwrap()
}

fn usage(input: u64, output: u64) -> Usage {
    Usage { input_tokens: Some(input), output_tokens: Some(output), ..Usage::default() }
}

/// Why the first part without a price has none.
fn first(unpriced: Unpriced) -> PriceError {
    unpriced.reasons.into_iter().next().unwrap()
}

fn whys(unpriced: &Unpriced) -> Vec<String> {
    unpriced.reasons.iter().map(ToString::to_string).collect()
}

/// `meter tokens × unit price = amount`, one line each.
fn lines(cost: &Cost) -> Vec<String> {
    let line = |line: &CostLine| {
        let model = line.model.as_deref().map_or(String::new(), |model| format!("{model} "));
        format!("{model}{} {} × {} = {}", line.meter, line.quantity, line.unit_price, line.amount)
    };
    cost.lines.iter().map(line).collect()
}

/// Price of one plain input and one output token, per million, in a request with `input` tokens.
fn unit_prices(book: &PriceBook, query: &Query<'_>, input: u64) -> Result<String, PriceError> {
    let cost = book.cost(query, &usage(input, 1)).map_err(first)?;
    let prices: Vec<_> = cost
        .lines
        .iter()
        .map(|line| (line.unit_price * Decimal::from(1_000_000)).normalize().to_string())
        .collect();
    Ok(prices.join("/"))
}

#[test]
fn each_token_is_on_one_line() {
    let usage = Usage {
        input_tokens: Some(1000),
        cache_read_input_tokens: Some(300),
        cache_write_input_tokens: Some(200),
        cache_write_long_input_tokens: Some(50),
        output_tokens: Some(100),
        reasoning_output_tokens: Some(40),
        ..Usage::default()
    };
    let cost = builtin().cost(&query("anthropic", "claude-sonnet-4-5-20250929"), &usage).unwrap();
    assert_eq!(
        lines(&cost),
        [
            "input 500 × 0.000003 = 0.0015",
            "cache_read 300 × 0.0000003 = 0.00009",
            "cache_write 150 × 0.00000375 = 0.0005625",
            "cache_write_long 50 × 0.000006 = 0.0003",
            "output 100 × 0.000015 = 0.0015",
        ]
    );
    assert_eq!(cost.amount.to_string(), "0.0039525");
    assert_eq!(cost.list_amount, cost.amount);
    assert_eq!(cost.currency.as_str(), "USD");
    assert_eq!(cost.price_id, "builtin@2026-11-25#anthropic/claude-sonnet-4-5");
}

#[test]
fn reasoning_with_a_rate_of_its_own_leaves_the_output() {
    let book = with("models: [{model: m, rates: {input: 1, output: 2, reasoning: 3}}]");
    let usage = Usage { reasoning_output_tokens: Some(40), ..usage(10, 100) };
    let cost = book.cost(&query("vllm", "m"), &usage).unwrap();
    assert_eq!(
        lines(&cost),
        [
            "input 10 × 0.000001 = 0.00001",
            "output 60 × 0.000002 = 0.00012",
            "reasoning 40 × 0.000003 = 0.00012",
        ]
    );
}

#[test]
fn a_service_tier_has_its_price_and_otherwise_the_standard_one() {
    let book = builtin();
    for (model, tier, expected) in [
        ("gpt-5.4", None, "2.5/15"),
        ("gpt-5.4", Some("default"), "2.5/15"),
        ("gpt-5.4", Some("auto"), "2.5/15"),
        ("gpt-5.4", Some("batch"), "1.25/7.5"),
        ("gpt-5.4", Some("flex"), "1.25/7.5"),
        ("gpt-5.4", Some("priority"), "5/30"),
        ("gpt-5.4", Some("fast"), "5/30"),
        ("gpt-6-astra", Some("ultrafast"), "60/300"),
    ] {
        let query = Query { service_tier: tier, ..query("openai", model) };
        assert_eq!(unit_prices(book, &query, 9).unwrap(), expected, "{model} {tier:?}");
    }
}

#[test]
fn a_service_tier_that_nobody_knows_has_no_price_where_tiers_have_prices() {
    let book = with("models: [{model: m, rates: {input: 1, output: 2}}]");
    let gold = |query| Query { service_tier: Some("gold"), ..query };
    let error = unit_prices(&book, &gold(query("openai", "gpt-5.4")), 9).unwrap_err();
    assert!(matches!(error, PriceError::UnknownTier { tier, .. } if tier == "gold"));
    assert_eq!(unit_prices(&book, &gold(query("vllm", "m")), 9).unwrap(), "1/2");
}

#[test]
fn long_input_prices_the_whole_request() {
    let book = builtin();
    for (provider, model, tier, input, expected) in [
        ("openai", "gpt-5.4", "default", 272_000, "2.5/15"),
        ("openai", "gpt-5.4", "default", 272_001, "5/22.5"),
        ("openai", "gpt-5.4", "batch", 272_001, "2.5/11.25"),
        ("gcp.gemini", "gemini-2.5-pro", "standard", 200_000, "1.25/10"),
        ("gcp.gemini", "gemini-2.5-pro", "priority", 200_001, "4.5/27"),
        ("x_ai", "grok-4.7", "default", 199_999, "2/6"),
        ("x_ai", "grok-4.7", "default", 200_000, "4/12"),
        ("anthropic", "claude-haiku-5-5", "standard", 100_001, "0.5/2.5"),
        ("dashscope", "qwen3-max", "default", 31_999, "1.2/6"),
        ("dashscope", "qwen3-max", "default", 32_000, "2.4/12"),
        ("dashscope", "qwen3-max", "default", 128_000, "3/15"),
    ] {
        let query = Query { service_tier: Some(tier), ..query(provider, model) };
        let found = unit_prices(book, &query, input).unwrap();
        assert_eq!(found, expected, "{model} {tier} with {input}");
    }
    let cached = Usage { cache_read_input_tokens: Some(272_000), ..usage(272_001, 0) };
    let cost = book.cost(&query("openai", "gpt-5.4"), &cached).unwrap();
    assert_eq!(
        lines(&cost),
        ["input 1 × 0.000005 = 0.000005", "cache_read 272000 × 0.0000005 = 0.136"]
    );
}

#[test]
fn off_peak_hours_replace_all_other_rates() {
    let book = builtin();
    for (at, expected) in [
        ("2026-11-20T00:59:59Z", "0.66/1.98"),
        ("2026-11-20T01:00:00Z", "1.32/3.96"),
        ("2026-11-20T04:00:00Z", "0.66/1.98"),
        ("2026-11-20T09:59:00Z", "1.32/3.96"),
        ("2026-11-20T23:59:59.999Z", "0.66/1.98"),
        ("2026-11-22T07:00:00Z", "0.66/1.98"),
        ("2026-11-23T07:00:00Z", "1.32/3.96"),
    ] {
        let query = Query { at: at.parse().unwrap(), ..query("deepseek", "deepseek-v4-pro") };
        assert_eq!(unit_prices(book, &query, 9).unwrap(), expected, "{at}");
    }
}

#[test]
fn cached_input_without_a_rate_costs_what_the_book_says() {
    let usage = Usage {
        cache_read_input_tokens: Some(4),
        cache_write_input_tokens: Some(2),
        ..usage(10, 0)
    };
    let cost = builtin().cost(&query("openai", "gpt-5.5-pro"), &usage).unwrap();
    assert_eq!(cost.amount.to_string(), "0.0003");
    let book = with("models: [{model: m, rates: {input: 1, output: 2}}]");
    let error = book.cost(&query("vllm", "m"), &usage).unwrap_err();
    assert_eq!(
        whys(&error),
        ["cache_read", "cache_write"].map(|meter| format!(
            "overrides@undated#m has no rate for {meter}; add it to the overrides"
        ))
    );
    let none_cached = Usage { cache_read_input_tokens: Some(0), ..self::usage(10, 0) };
    assert!(book.cost(&query("vllm", "m"), &none_cached).is_ok());
}

#[test]
fn what_is_unknown_is_never_zero() {
    let book = builtin();
    let cost =
        |provider, model, usage: &Usage| book.cost(&query(provider, model), usage).map_err(first);
    let input = Usage { output_tokens: None, ..usage(10, 0) };
    let output = Usage { input_tokens: None, ..usage(0, 10) };
    let unknown = |meter| Err(PriceError::UsageUnknown { meter });
    assert_eq!(cost("openai", "gpt-5.4", &input), unknown(MeterName::Output));
    assert_eq!(cost("openai", "gpt-5.4", &output), unknown(MeterName::Input));
    assert_eq!(cost("openai", "text-embedding-3-small", &output), unknown(MeterName::Input));
    let embedded = cost("openai", "text-embedding-3-small", &input).unwrap();
    assert_eq!(lines(&embedded), ["input 10 × 0.00000002 = 0.0000002"]);
    let error = cost("openai", "text-embedding-3-small", &usage(10, 1)).unwrap_err();
    assert!(matches!(error, PriceError::NoRate { part, .. } if part == "output"));
    let error = cost("openai", "gpt-99", &usage(0, 0)).unwrap_err();
    let model = "gpt-99".to_owned();
    assert_eq!(error, PriceError::UnknownModel { model, currency: Currency::USD });
}

#[test]
fn a_price_of_zero_is_free_on_purpose() {
    let cost = builtin().cost(&query("cohere", "command-a-plus-05-2026"), &usage(5, 5)).unwrap();
    assert_eq!(lines(&cost), ["input 5 × 0 = 0", "output 5 × 0 = 0"]);
    assert!(cost.amount.is_zero());
}

#[test]
fn each_pass_is_priced_by_its_own_model_and_input() {
    let pass = |model: Option<&str>, usage| Pass { model: model.map(str::to_owned), usage };
    let book = builtin();
    let query = query("anthropic", "claude-opus-5-5");
    let passes = vec![
        pass(Some("claude-haiku-5-5"), usage(100_001, 1)),
        pass(None, Usage { cache_read_input_tokens: Some(1), ..usage(3, 0) }),
    ];
    let cost = book.cost(&query, &Usage { passes, ..usage(1, 1) }).unwrap();
    assert_eq!(
        lines(&cost),
        [
            "input 1 × 0.000004 = 0.000004",
            "output 1 × 0.00002 = 0.00002",
            "claude-haiku-5-5 input 100001 × 0.0000005 = 0.0500005",
            "claude-haiku-5-5 output 1 × 0.0000025 = 0.0000025",
            "claude-opus-5-5 input 2 × 0.000004 = 0.000008",
            "claude-opus-5-5 cache_read 1 × 0.0000002 = 0.0000002",
        ]
    );
    assert_eq!(cost.amount.to_string(), "0.0500352");
    assert_eq!(cost.price_id, "builtin@2026-11-25#anthropic/claude-opus-5-5");
    for unknown in [pass(Some("other"), usage(1, 1)), pass(None, Usage::default())] {
        let usage = Usage { passes: vec![unknown], ..usage(1, 1) };
        assert!(book.cost(&query, &usage).is_err());
    }
}

#[test]
fn parts_larger_than_their_whole_make_no_line_negative() {
    let book =
        with("models: [{model: m, rates: {input: 1, cache_read: 1, output: 2, reasoning: 2}}]");
    let usage = Usage {
        cache_read_input_tokens: Some(15),
        reasoning_output_tokens: Some(11),
        ..usage(10, 10)
    };
    let cost = book.cost(&query("vllm", "m"), &usage).unwrap();
    assert_eq!(
        lines(&cost),
        ["cache_read 15 × 0.000001 = 0.000015", "reasoning 11 × 0.000002 = 0.000022"]
    );
}

#[test]
fn money_that_would_be_rounded_is_an_error() {
    let book =
        with("models: [{model: m, rates: {input: 1.0000000000000001, output: 1000000000000}}]");
    let query = query("vllm", "m");
    let overflow = |usage| first(book.cost(&query, &usage).unwrap_err());
    assert_eq!(overflow(usage(u64::MAX, 0)), PriceError::Overflow);
    assert_eq!(overflow(usage(1, 10_000_000_000)), PriceError::Overflow);
    assert_eq!(book.upper_bound(&query, u64::MAX, 1), None);
    assert_eq!(
        book.cost(&query, &usage(3, 0)).unwrap().amount.to_string(),
        "0.0000030000000000000003"
    );
}

#[test]
fn the_upper_bound_is_the_dearest_way_through_the_row() {
    let book = builtin();
    let bound = |provider, model, input, output| {
        book.upper_bound(&query(provider, model), input, output).map(|bound| bound.to_string())
    };
    // Priority, and its long cache write with a long context; in a region of one's choice.
    assert_eq!(bound("openai", "gpt-5.4", 1000, 1000).unwrap(), "0.0385");
    assert_eq!(bound("openai", "gpt-6-sol", 272_001, 0).unwrap(), "5.984022");
    // The long cache write.
    assert_eq!(bound("anthropic", "claude-sonnet-4-5", 1000, 1000).unwrap(), "0.021");
    assert_eq!(bound("openai", "gpt-99", 1, 1), None);
    // How long the sound is, nobody knows before.
    assert_eq!(bound("openai", "whisper-1", 1, 1), None);
}

fn any_usage(most: u64) -> impl Strategy<Value = Usage> {
    (0..=most, 0..=100u64, 0..=100u64, 0..=100u64, 0..=most, 0..=100u64).prop_map(
        |(input, read, write, long, output, reasoning)| {
            let part = |whole: u64, percent: u64| Some(whole * percent / 100);
            let read = input * read / 100;
            let write = (input - read) * write / 100;
            Usage {
                input_tokens: Some(input),
                cache_read_input_tokens: Some(read),
                cache_write_input_tokens: Some(write),
                cache_write_long_input_tokens: part(write, long),
                output_tokens: Some(output),
                reasoning_output_tokens: part(output, reasoning),
                ..Usage::default()
            }
        },
    )
}

/// Any row of the built-in book that prices text by its tokens alone, with any service tier.
fn any_query() -> impl Strategy<Value = (String, String, Option<&'static str>)> {
    let rows: Vec<_> = builtin()
        .rows()
        .filter(|row| row.card.rates.rate(MeterName::Output).is_some())
        .filter(|row| WEEK.iter().all(|day| row.holds_on(day.parse().unwrap())))
        .filter(|row| {
            row.card.rates.iter().all(|(meter, _)| meter.kind() != MeterKind::InPlaceOfTokens)
        })
        .map(|row| (row.provider.clone().unwrap(), row.model.clone()))
        .collect();
    let tiers =
        prop::option::of(prop::sample::select(ServiceTier::ALL.map(ServiceTier::as_str).to_vec()));
    (prop::sample::select(rows), tiers)
        .prop_map(|((provider, model), tier)| (provider, model, tier))
}

fn sum(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    Some(a? + b?)
}

#[test]
fn sound_and_generated_pictures_are_not_priced_as_text() {
    let seen = ByModality { text: Some(3), image: Some(7), ..ByModality::default() };
    let heard = ByModality { text: Some(3), audio: Some(7), ..ByModality::default() };
    let silent = ByModality { text: Some(10), audio: Some(0), ..ByModality::default() };
    let cost = |input, output| {
        let told = Modalities { input, output, ..Modalities::default() };
        let modalities = Some(Box::new(told));
        builtin().cost(&query("openai", "gpt-4o-mini"), &Usage { modalities, ..usage(10, 10) })
    };
    let text = builtin().cost(&query("openai", "gpt-4o-mini"), &usage(10, 10));
    assert_eq!(cost(seen, silent), text);
    for (input, output, named) in [
        (heard, silent, "input_audio"),
        (silent, heard, "output_audio"),
        (silent, seen, "output_image"),
    ] {
        let error = first(cost(input, output).unwrap_err());
        assert!(matches!(&error, PriceError::NoRate { part, .. } if part == named), "{error}");
    }
}

#[test]
fn calls_without_a_rate_make_the_cost_unknown_and_not_too_low() {
    let book = with("models: [{model: m, rates: {input: 1, output: 2}}]");
    let cost = |unit: &str, count: u32| {
        let units = [(unit.to_owned(), count.into())].into();
        book.cost(&query("vllm", "m"), &Usage { units, ..usage(10, 10) })
    };
    let tokens = book.cost(&query("vllm", "m"), &usage(10, 10));
    assert_eq!(cost("web_search_requests", 0), tokens);
    assert_eq!(cost("web_fetch_requests", 3), tokens);
    for unit in [
        "web_search_requests",
        "file_search_calls",
        "code_interpreter_sessions",
        "search_queries",
        "something_new",
        "input",
    ] {
        let error = first(cost(unit, 1).unwrap_err());
        assert!(matches!(&error, PriceError::NoRate { part, .. } if part == unit), "{error}");
    }
}

proptest! {
    #[test]
    fn the_cost_of_two_usages_is_the_sum_of_their_costs_at_flat_prices(
        a in any_usage(1 << 40), b in any_usage(1 << 40),
    ) {
        static BOOK: LazyLock<PriceBook> = LazyLock::new(|| {
            with("models:\n- model: m\n  rates: {input: 1.3, cache_read: 0.17, cache_write: 1.9, \
                cache_write_long: 2.3, output: 5.77, reasoning: 6.1}\n")
        });
        let both = Usage {
            input_tokens: sum(a.input_tokens, b.input_tokens),
            cache_read_input_tokens: sum(a.cache_read_input_tokens, b.cache_read_input_tokens),
            cache_write_input_tokens: sum(a.cache_write_input_tokens, b.cache_write_input_tokens),
            cache_write_long_input_tokens:
                sum(a.cache_write_long_input_tokens, b.cache_write_long_input_tokens),
            output_tokens: sum(a.output_tokens, b.output_tokens),
            reasoning_output_tokens: sum(a.reasoning_output_tokens, b.reasoning_output_tokens),
            ..Usage::default()
        };
        let cost = |usage| BOOK.cost(&query("vllm", "m"), usage).unwrap().amount;
        prop_assert_eq!(cost(&both), cost(&a) + cost(&b));
    }

    #[test]
    fn lines_are_disjoint_positive_and_sum_to_the_amount_within_the_bound(
        usage in any_usage(400_000),
        (provider, model, tier) in any_query(),
        second in 0..604_800i64,
    ) {
        let at = NOON.parse::<Timestamp>().unwrap() + jiff::SignedDuration::from_secs(second);
        let query = Query { service_tier: tier, at, ..query(&provider, &model) };
        let book = builtin();
        let (input, output) = (usage.input_tokens.unwrap(), usage.output_tokens.unwrap());
        // Of a combination that the row does not price, the cost is unknown.
        let Ok(cost) = book.cost(&query, &usage) else { return Ok(()) };
        let counted = cost.lines.iter().map(|line| line.quantity).sum::<Decimal>();
        prop_assert_eq!(counted, Decimal::from(input + output));
        prop_assert_eq!(cost.lines.iter().map(|line| line.amount).sum::<Decimal>(), cost.amount);
        for line in &cost.lines {
            prop_assert!(!line.quantity.is_zero() && !line.amount.is_sign_negative());
            prop_assert_eq!(line.amount, line.unit_price * line.quantity);
        }
        prop_assert!(cost.amount <= book.upper_bound(&query, input, output).unwrap());
    }

    #[test]
    fn any_numbers_at_all_give_an_exact_cost_or_an_error(
        numbers in prop::array::uniform6(prop::option::of(any::<u64>())),
    ) {
        let [input, read, write, long, output, reasoning] = numbers;
        let usage = Usage {
            input_tokens: input,
            cache_read_input_tokens: read,
            cache_write_input_tokens: write,
            cache_write_long_input_tokens: long,
            output_tokens: output,
            reasoning_output_tokens: reasoning,
            ..Usage::default()
        };
        match builtin().cost(&query("anthropic", "claude-opus-5"), &usage) {
            Ok(cost) => prop_assert!(!cost.amount.is_sign_negative()),
            Err(error) => prop_assert_eq!(
                matches!(first(error), PriceError::UsageUnknown { .. }),
                input.is_none() || output.is_none()
            ),
        }
    }
}
