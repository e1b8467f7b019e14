//! Costs of which only a part is known.

use super::*;

fn units<const N: usize>(usage: Usage, units: [(&str, u32); N]) -> Usage {
    Usage { units: units.map(|(name, count)| (name.to_owned(), count.into())).into(), ..usage }
}

fn known(unpriced: &Unpriced) -> Vec<String> {
    unpriced.known.as_deref().map(lines).unwrap_or_default()
}

#[test]
fn a_part_without_a_price_leaves_the_prices_of_the_others() {
    let book = with("models: [{model: m, rates: {input: 1, output: 2, requests: 0.005}}]");
    let called = units(usage(10, 1), [("web_search_requests", 3), ("paint_calls", 1)]);
    let unpriced = book.cost(&query("vllm", "m"), &called).unwrap_err();
    assert_eq!(
        whys(&unpriced),
        [
            "overrides@undated#m has no rate for paint_calls; add it to the overrides",
            "overrides@undated#m has no rate for web_search_requests; add it to the overrides",
        ]
    );
    assert_eq!(
        known(&unpriced),
        [
            "input 10 × 0.000001 = 0.00001",
            "output 1 × 0.000002 = 0.000002",
            "requests 1 × 0.005 = 0.005"
        ]
    );
    let known = unpriced.known.unwrap();
    assert_eq!((known.amount, known.list_amount), (known.amount, known.amount));
    assert_eq!(known.amount.to_string(), "0.005012");
    assert_eq!(known.price_id, "overrides@undated#m");
}

#[test]
fn an_unknown_output_leaves_the_price_of_the_input() {
    let left = Usage { output_tokens: None, ..usage(10, 0) };
    let unpriced = builtin().cost(&query("openai", "gpt-4o"), &left).unwrap_err();
    assert_eq!(unpriced.reasons, [PriceError::UsageUnknown { meter: MeterName::Output }]);
    assert_eq!(known(&unpriced), ["input 10 × 0.0000025 = 0.000025"]);
    let nothing = builtin().cost(&query("openai", "gpt-4o"), &Usage::default()).unwrap_err();
    let unknown = |meter| PriceError::UsageUnknown { meter };
    assert_eq!(nothing.reasons, [unknown(MeterName::Input), unknown(MeterName::Output)]);
    assert_eq!(nothing.known, None);
}

#[test]
fn a_further_run_without_a_price_leaves_the_price_of_the_first() {
    let pass = Pass { model: Some("other".to_owned()), usage: usage(1, 1) };
    let usage = Usage { passes: vec![pass], ..usage(1, 1) };
    let unpriced = builtin().cost(&query("anthropic", "claude-opus-5-5"), &usage).unwrap_err();
    assert!(
        matches!(&unpriced.reasons[..], [PriceError::UnknownModel { model, .. }] if model == "other")
    );
    assert_eq!(known(&unpriced), ["input 1 × 0.000004 = 0.000004", "output 1 × 0.00002 = 0.00002"]);
}

#[test]
fn without_a_row_nothing_is_known() {
    let unpriced = builtin().cost(&query("openai", "gpt-99"), &usage(1, 1)).unwrap_err();
    assert!(matches!(unpriced.reasons[..], [PriceError::UnknownModel { .. }]));
    assert_eq!(unpriced.known, None);
    let gold = Query { service_tier: Some("gold"), ..query("openai", "gpt-5.4") };
    let unpriced = builtin().cost(&gold, &usage(1, 1)).unwrap_err();
    assert!(matches!(unpriced.reasons[..], [PriceError::UnknownTier { .. }]));
    assert_eq!(unpriced.known, None);
}

#[test]
fn a_discount_is_on_the_known_part_too() {
    let contract = Contract::new("acme", crate::Dated::always("0.5".parse().unwrap()), None);
    let called = units(usage(10, 0), [("paint_calls", 1)]);
    let unpriced =
        builtin().contracted(&contract, &query("openai", "gpt-4o"), &called).unwrap_err();
    let known = unpriced.known.unwrap();
    assert_eq!(
        (known.amount.to_string(), known.list_amount.to_string()),
        ("0.0000125".into(), "0.000025".into())
    );
    assert!(known.price_id.ends_with(";acme*0.5"), "{}", known.price_id);
}

#[test]
fn an_unknown_tier_or_condition_leaves_the_prices_that_do_not_depend_on_it() {
    let book = with(
        "models:
- model: m
  rates: {input: 1, output: 2, requests: 0.005, web_search_requests: 0.01, file_search_calls: 0.02}
  tiers: {batch: {input: 1, output: 1, file_search_calls: 0.03}}
  when: {region: {eu: {times: 1.1}}}",
    );
    let called = units(
        usage(10, 1),
        [("web_search_requests", 3), ("file_search_calls", 1), ("paint_calls", 1)],
    );
    let in_region = |region: &str| Usage {
        conditions: [(Condition::Region, region.to_owned())].into(),
        ..called.clone()
    };
    let gold = Query { service_tier: Some("gold"), ..query("vllm", "m") };
    for (query, usage, why) in [
        (&gold, &called, "no price for service tier \"gold\""),
        (&query("vllm", "m"), &in_region("jp"), "no price for region \"jp\""),
    ] {
        let unpriced = book.cost(query, usage).unwrap_err();
        let whys = whys(&unpriced);
        assert!(whys[0].contains(why) && whys[1].contains("no rate for paint_calls"), "{whys:?}");
        assert_eq!(
            known(&unpriced),
            ["requests 1 × 0.005 = 0.005", "web_search_requests 3 × 0.01 = 0.03"]
        );
    }
    let half = Contract::new("acme", crate::Dated::always("0.5".parse().unwrap()), None);
    let known = book.contracted(&half, &gold, &called).unwrap_err().known.unwrap();
    assert_eq!(
        (known.amount.to_string(), known.list_amount.to_string()),
        ("0.0175".into(), "0.035".into())
    );
}
