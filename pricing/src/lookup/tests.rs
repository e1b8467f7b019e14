mod again;
mod documented;

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;
use crate::{Contract, Dated, MeterName, PriceError, Usage};

const NOON: &str = "2026-11-20T12:00:00Z";

/// Rows as an operator writes them.
const ROWS: &str = "
version: 2026-11-20
models:
- {model: gpt-5.4, provider: openai, aliases: [five], rates: {input: 1, output: 2}}
- {model: 'ft:gpt-4o', provider: openai, rates: {input: 3, output: 4}}
- {model: gpt-4o, provider: openai, rates: {input: 1, output: 2}}
- {model: gpt-4o, provider: azure.ai.openai, rates: {input: 1, output: 2}}
- {model: claude-sonnet-4-5, provider: anthropic, rates: {input: 3, output: 15}}
- model: anthropic.claude-sonnet-4-5
  provider: aws.bedrock
  rates: {input: 3, output: 15}
  when: {region: {us: {times: 1.1}, Eu: {rates: {input: 4, output: 20}}}}
- {model: anthropic.claude-3-haiku, provider: aws.bedrock, rates: {input: 1, output: 5}}
- {model: eu.anthropic.claude-3-haiku, provider: aws.bedrock, rates: {input: 2, output: 6}}
- {model: Qwen/Qwen3-32B, provider: together_ai, rates: {input: 1, output: 2}}
- {model: deepseek/deepseek-r1, provider: openrouter, rates: {input: 1, output: 2}}
- {model: anything, rates: {input: 7, output: 8}}
- {model: Twice, provider: acme, rates: {input: 1, output: 2}}
- {model: tWICE, provider: acme, rates: {input: 5, output: 6}}
";

fn book() -> PriceBook {
    PriceBook::empty().with_overrides(ROWS, "prices.yaml").unwrap()
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

/// `ROW by RULES`, with the region that the row prices, or the kind of fault.
fn found(book: &PriceBook, query: &Query<'_>) -> String {
    match book.lookup(query) {
        Ok(Found { row, how, region }) => {
            let region = region.map_or_else(String::new, |region| format!(" in {region}"));
            format!("{} by {how}{region}", row.model)
        }
        Err(NoRow::Unknown(_)) => "unknown".to_owned(),
        Err(NoRow::Tuned(_)) => "tuned".to_owned(),
        Err(NoRow::Variant(_)) => "variant".to_owned(),
        Err(NoRow::Deployment(_)) => "deployment".to_owned(),
        Err(NoRow::Region { region, .. }) => format!("region {region}"),
        Err(NoRow::Ended { until, price_id, .. }) => format!("{price_id} ended {until}"),
        Err(NoRow::NotBegun { from, price_id, .. }) => format!("{price_id} begins {from}"),
    }
}

#[test]
fn a_name_whose_rows_are_of_another_time_says_when_they_end_or_begin() {
    const ROWS: &str = "
version: 2026-11-20
models:
- {model: old, provider: openai, aliases: [ancient], until: 2026-06-01, rates: {input: 1, output: 9}}
- {model: old, provider: openai, from: 2026-06-01, until: 2026-11-20, rates: {input: 2, output: 9}}
- {model: new, provider: openai, from: 2026-12-01, rates: {input: 1, output: 9}}
- {model: now, provider: openai, until: 2026-11-21, rates: {input: 1, output: 9}}
- {model: 'ft:tuned', provider: openai, until: 2026-11-01, rates: {input: 1, output: 9}}
- {model: anyones, until: 2026-11-01, rates: {input: 1, output: 9}}
";
    let book = PriceBook::empty().with_overrides(ROWS, "prices.yaml").unwrap();
    let of = |provider: &str, model: &str| found(&book, &query(provider, model, ""));
    let ended = |row: &str, day: &str| format!("overrides@2026-11-20#{row} ended {day}");
    assert_eq!(of("openai", "old"), ended("openai/old@2026-06-01", "2026-11-20"));
    assert_eq!(of("openai", "old-2026-01-01"), ended("openai/old@2026-06-01", "2026-11-20"));
    assert_eq!(of("openai", "ancient"), ended("openai/old@2026-06-01", "2026-11-20"));
    assert_eq!(of("openai", "ft:tuned:acme::1"), ended("openai/ft:tuned", "2026-11-01"));
    assert_eq!(of("openai", "new"), "overrides@2026-11-20#openai/new@2026-12-01 begins 2026-12-01");
    assert_eq!(of("openai", "now"), "now by exact");
    assert_eq!(of("openai", "anyones"), ended("anyones", "2026-11-01"));
    assert_eq!(of("mistral", "old"), "unknown");
    assert_eq!(of("openai", "older"), "unknown");
    let missing = book.everywhere("anyones", NOON.parse().unwrap()).missing;
    assert_eq!(missing.len(), 1, "{missing:?}");
    let query = query("openai", "old", "");
    let unpriced = book.cost(&query, &Usage::default()).unwrap_err();
    assert!(unpriced.to_string().contains("ended on 2026-11-20"), "{unpriced}");
    assert!(matches!(unpriced.reasons[..], [PriceError::Ended { .. }]));
}

#[test]
fn a_name_finds_its_row_by_the_rules_of_its_platform() {
    let book = book();
    for (provider, name, expected) in [
        ("openai", "gpt-5.4", "gpt-5.4 by exact"),
        ("openai", "five", "gpt-5.4 by alias"),
        ("openai", "five-2026-03-05", "gpt-5.4 by date+alias"),
        ("openai", "gpt-5.4-2026-03-05", "gpt-5.4 by date"),
        ("openai", "GPT-5.4", "gpt-5.4 by case"),
        ("openai", "FIVE", "gpt-5.4 by case+alias"),
        ("openai", "OpenAI/GPT-5.4-2026-03-05", "gpt-5.4 by provider+date+case"),
        ("together_ai", "qwen/qwen3-32b", "Qwen/Qwen3-32B by case"),
        ("together_ai", "together/Qwen/Qwen3-32B", "Qwen/Qwen3-32B by provider"),
        ("acme", "twice", "unknown"),
        ("acme", "Twice", "Twice by exact"),
        ("azure.ai.openai", "global/gpt-4o-2024-08-06", "gpt-4o by region+date"),
        ("azure.ai.openai", "eu/gpt-4o", "region eu"),
        // What makes another price is not left out.
        ("openrouter", "deepseek/deepseek-r1:free", "variant"),
        ("openai", "gpt-5.4-fast", "unknown"),
        ("openai", "gpt-5.4:thinking", "variant"),
        ("openai", "gpt-5.4-2026-03-05-batch", "unknown"),
        // Another platform's name.
        ("openai", "anthropic/claude-sonnet-4-5", "unknown"),
        ("openai", "claude-sonnet-4-5", "unknown"),
        ("openrouter", "claude-sonnet-4-5", "unknown"),
        ("anthropic", "anthropic.claude-sonnet-4-5", "unknown"),
        ("aws.bedrock", "claude-sonnet-4-5", "unknown"),
    ] {
        assert_eq!(found(&book, &query(provider, name, "")), expected, "{provider} {name}");
    }
}

#[test]
fn a_fine_tuned_model_has_the_price_of_its_own_row_or_none() {
    let book = book();
    for (provider, name, expected) in [
        ("openai", "ft:gpt-4o:acme::9x", "ft:gpt-4o by tuned"),
        ("openai", "ft:gpt-4o-2024-08-06:acme:mine:9x", "ft:gpt-4o by tuned+date"),
        ("openai", "ft:gpt-4o:acme::9x:ckpt-step-88", "ft:gpt-4o by tuned"),
        ("openai", "gpt-4o-2024-08-06.ft-0ab", "ft:gpt-4o by tuned+date"),
        ("openai", "ft:gpt-5.4:acme::9x", "tuned"),
        ("openai", "ft:gpt-5.4", "tuned"),
        ("openai", "gpt-5.4:ft-acme-2026-01-01", "tuned"),
        ("azure.ai.openai", "gpt-4o-2024-08-06.ft-0ab", "tuned"),
    ] {
        assert_eq!(found(&book, &query(provider, name, "")), expected, "{provider} {name}");
    }
    // The answer says that it was tuned, so the name of the request does not help.
    let deployed = query("azure.ai.openai", "gpt-4o-2024-08-06.ft-0ab", "gpt-4o");
    assert_eq!(found(&book, &deployed), "tuned");
    let aliased = query("openai", "gpt-4o", "ft:gpt-5.4:acme::9x");
    assert_eq!(found(&book, &aliased), "gpt-4o by exact", "another model answered");
    let tuned = query("openai", "gpt-4o", "ft:gpt-4o:acme::9x");
    assert_eq!(found(&book, &tuned), "ft:gpt-4o by tuned", "the same model answered");
}

#[test]
fn a_region_is_a_condition_of_the_row_or_the_cost_is_unknown() {
    let book = book();
    let tail = "-20250929-v1:0";
    for (prefix, expected) in [
        ("", "anthropic.claude-sonnet-4-5 by version+date"),
        ("global.", "anthropic.claude-sonnet-4-5 by region+version+date"),
        ("us.", "anthropic.claude-sonnet-4-5 by region+version+date in us"),
        ("US.", "anthropic.claude-sonnet-4-5 by region+version+date+case in us"),
        ("eu.", "anthropic.claude-sonnet-4-5 by region+version+date in Eu"),
        ("jp.", "region jp"),
        ("us-gov.", "region us-gov"),
        ("latam.", "region latam"),
    ] {
        let name = format!("{prefix}anthropic.claude-sonnet-4-5{tail}");
        let got = found(&book, &query("aws.bedrock", &name, ""));
        assert_eq!(got.replace("+case", ""), expected.replace("+case", ""), "{name}");
    }
    for (name, expected) in [
        (
            "eu.anthropic.claude-3-haiku-20240307-v1:0",
            "eu.anthropic.claude-3-haiku by version+date",
        ),
        ("us.anthropic.claude-3-haiku-20240307-v1:0", "region us"),
        (
            "arn:aws:bedrock:us-east-1:1:inference-profile/us.anthropic.claude-sonnet-4-5-20250929-v1:0",
            "anthropic.claude-sonnet-4-5 by path+region+version+date in us",
        ),
        (
            "arn:aws:bedrock:us-east-1::foundation-model/anthropic.claude-3-haiku-20240307-v1:0",
            "anthropic.claude-3-haiku by path+region+version+date",
        ),
        (
            "arn:aws:bedrock:eu-west-2::foundation-model/anthropic.claude-3-haiku-20240307-v1:0",
            "region eu-west-2",
        ),
        ("arn:aws:bedrock:us-east-1:1:application-inference-profile/a1", "deployment"),
        ("arn:aws:bedrock:us-east-1:1:provisioned-model/a1", "deployment"),
        ("anthropic.claude-3-haiku-20240307-v1:0:48k", "unknown"),
    ] {
        assert_eq!(found(&book, &query("aws.bedrock", name, "")), expected, "{name}");
    }
}

#[test]
fn the_region_of_a_name_changes_the_cost_as_the_row_says() {
    let book = book();
    let usage =
        Usage { input_tokens: Some(1_000_000), output_tokens: Some(1_000_000), ..Usage::default() };
    let cost = |name: &str| book.cost(&query("aws.bedrock", "", name), &usage);
    let amount = |name: &str| cost(name).unwrap().amount.normalize().to_string();
    assert_eq!(amount("anthropic.claude-sonnet-4-5"), "18");
    assert_eq!(amount("global.anthropic.claude-sonnet-4-5-20250929-v1:0"), "18");
    assert_eq!(amount("us.anthropic.claude-sonnet-4-5-20250929-v1:0"), "19.8");
    assert_eq!(amount("eu.anthropic.claude-sonnet-4-5-20250929-v1:0"), "24");
    let us = cost("us.anthropic.claude-sonnet-4-5").unwrap();
    assert_eq!(us.price_match.words(), "region");
    let error = cost("jp.anthropic.claude-sonnet-4-5").unwrap_err();
    assert_eq!(
        error.to_string(),
        "overrides@2026-11-20#aws.bedrock/anthropic.claude-sonnet-4-5 does not \
         say what region \"jp\" of \"jp.anthropic.claude-sonnet-4-5\" costs: add `when: {region: {jp: \
         {times: …}}}` to the row, or a row for the whole name"
    );
}

#[test]
fn an_endpoint_in_a_region_that_a_row_with_regions_lacks_has_an_unknown_cost() {
    let book = PriceBook::builtin().unwrap();
    let usage = |region: &str| Usage {
        input_tokens: Some(100_000),
        output_tokens: Some(0),
        conditions: [(Condition::Region, region.to_owned())].into(),
        ..Usage::default()
    };
    let cost = |model, region| book.cost(&query("openai", model, ""), &usage(region));
    assert_eq!(cost("gpt-5.4", "eu").unwrap().amount.normalize().to_string(), "0.275");
    let error = cost("gpt-5.4", "jp").unwrap_err();
    assert!(
        matches!(&error.reasons[..], [PriceError::UnknownCondition { value, .. }] if value == "jp")
    );
    // A row without any region costs the same in each.
    assert_eq!(cost("gpt-5.2", "jp").unwrap().amount.normalize().to_string(), "0.175");
}

#[test]
fn a_row_for_any_provider_is_found_by_its_own_name_or_a_snapshot_of_it() {
    let book = book();
    for (provider, name, expected) in [
        ("vllm", "anything", "anything by exact"),
        ("", "anything", "anything by exact"),
        ("openai", "anything-2026-03-05", "anything by date"),
        ("openai", "Anything", "unknown"),
        ("openai", "openai/anything", "unknown"),
        ("aws.bedrock", "us.anything", "unknown"),
        ("aws.bedrock", "global.anything", "unknown"),
        ("openrouter", "anything-2026-03-05", "unknown"),
        ("fireworks_ai", "accounts/fireworks/models/anything", "unknown"),
    ] {
        assert_eq!(found(&book, &query(provider, name, "")), expected, "{provider} {name}");
    }
}

#[test]
fn the_name_of_the_request_finds_a_row_where_the_answers_finds_none_and_the_record_says_so() {
    let book = book();
    for (provider, response, request, expected) in [
        ("openai", "gpt-5.4", "gpt-4o", "gpt-5.4 by exact"),
        ("openai", "something", "gpt-5.4", "gpt-5.4 by request"),
        ("openai", "something", "GPT-5.4-2026-03-05", "gpt-5.4 by request+date+case"),
        ("openai", "", "gpt-5.4", "gpt-5.4 by exact"),
        ("openai", "something", "something", "unknown"),
        ("openai", "something", "", "unknown"),
        ("openai", "", "", "unknown"),
        // The variant was asked for, and the answer names the model alone.
        ("openrouter", "deepseek/deepseek-r1", "deepseek/deepseek-r1:free", "variant"),
        ("openrouter", "deepseek/deepseek-r1:free", "deepseek/deepseek-r1", "variant"),
        ("openrouter", "deepseek/deepseek-r1", "my-route:free", "deepseek/deepseek-r1 by exact"),
        // The same for a region.
        (
            "aws.bedrock",
            "anthropic.claude-sonnet-4-5",
            "us.anthropic.claude-sonnet-4-5-20250929-v1:0",
            "anthropic.claude-sonnet-4-5 by region+version+date in us",
        ),
        (
            "aws.bedrock",
            "claude-sonnet-4-5-20250929",
            "jp.anthropic.claude-sonnet-4-5",
            "region jp",
        ),
        ("aws.bedrock", "jp.anthropic.claude-sonnet-4-5", "anything", "region jp"),
    ] {
        let query = query(provider, response, request);
        assert_eq!(found(&book, &query), expected, "{provider} {response} {request}");
    }
}

#[test]
fn fixed_prices_and_further_model_runs_follow_the_same_rules() {
    let fixed = "models: [{model: gpt-5.4, provider: openai, rates: {input: 9, output: 9}}]";
    let fixed = PriceBook::fixed("acme", fixed, "acme.yaml").unwrap();
    let contract = Contract::new("acme", Dated::default(), Some(fixed));
    let run = |model: &str| crate::Pass {
        model: Some(model.to_owned()),
        usage: Usage { input_tokens: Some(1), output_tokens: Some(0), ..Usage::default() },
    };
    let usage = Usage {
        input_tokens: Some(1),
        output_tokens: Some(0),
        passes: vec![run("gpt-4o-2024-08-06"), run("gpt-5.4"), run("GPT-4O")],
        ..Usage::default()
    };
    let query = query("openai", "gpt-5.4-2026-03-05", "");
    let cost = book().contracted(&contract, &query, &usage).unwrap();
    assert_eq!(
        (cost.price_id.as_str(), cost.price_match),
        ("acme@undated#openai/gpt-5.4", Rule::Date.into())
    );
    let lines: Vec<_> =
        cost.lines.iter().map(|line| (line.model.as_deref(), line.price_match)).collect();
    assert_eq!(
        lines,
        [
            (None, None),
            (Some("gpt-4o-2024-08-06"), None),
            (Some("gpt-5.4"), Some(PriceMatch::EXACT)),
            (Some("GPT-4O"), Some(Rule::Case.into())),
        ]
    );
    assert!(cost.lines.iter().all(|line| line.meter == MeterName::Input));
}

#[test]
fn every_provider_is_asked_where_a_name_is_in_its_rows() {
    let book = book();
    let at = NOON.parse().unwrap();
    let shown = |name: &str| {
        let all = book.everywhere(name, at);
        let found = all.found.iter().map(|found| {
            format!(
                "{}/{} by {}",
                found.row.provider.as_deref().unwrap_or("any"),
                found.row.model,
                found.how
            )
        });
        found.chain(all.missing.iter().map(|(_, missing)| missing.to_string())).collect::<Vec<_>>()
    };
    assert_eq!(shown("gpt-4o"), ["azure.ai.openai/gpt-4o by exact", "openai/gpt-4o by exact"]);
    assert_eq!(shown("anything"), ["any/anything by exact"]);
    assert_eq!(
        shown("jp.anthropic.claude-sonnet-4-5"),
        [
            "overrides@2026-11-20#aws.bedrock/anthropic.claude-sonnet-4-5 does not say what region \"jp\" \
          of \"jp.anthropic.claude-sonnet-4-5\" costs: add `when: {region: {jp: {times: …}}}` to the \
          row, or a row for the whole name"
        ]
    );
    assert!(shown("nothing-like-it").is_empty());
}

/// Rows for which any spelling of their names can be made up.
const MODELS: [(&str, &str); 4] = [
    ("openai", "gpt-5.4"),
    ("aws.bedrock", "anthropic.claude-sonnet-4-5"),
    ("aws.bedrock", "anthropic.claude-3-haiku"),
    ("together_ai", "Qwen/Qwen3-32B"),
];

proptest! {
    #[test]
    fn capitals_find_the_same_row(
        (provider, model) in prop::sample::select(&MODELS[..]),
        capitals in prop::collection::vec(any::<bool>(), 40),
    ) {
        let name: String = model
            .chars()
            .zip(capitals)
            .map(|(c, large)| if large { c.to_ascii_uppercase() } else { c.to_ascii_lowercase() })
            .collect();
        let book = book();
        let query = query(provider, &name, "");
        let found = book.lookup(&query).unwrap();
        prop_assert_eq!(&found.row.model, model);
        prop_assert_eq!(found.how.has(Rule::Case), name != model);
    }

    #[test]
    fn any_region_costs_what_the_row_says_or_is_unknown(region in "[a-z]{2}|us-gov|apac|global|[a-z]{4,8}") {
        let name = format!("{region}.anthropic.claude-sonnet-4-5-20250929-v1:0");
        let book = book();
        let query = query("aws.bedrock", "", &name);
        let found = found(&book, &query);
        let expected = match region.as_str() {
            "us" | "eu" | "global" => "anthropic.claude-sonnet-4-5".to_owned(),
            // A vendor of that name would have other models.
            _ => format!("region {region}"),
        };
        prop_assert!(found.starts_with(&expected), "{}: {}", name, found);
    }

    #[test]
    fn no_name_at_all_is_priced_by_another_providers_row(
        provider in prop::sample::select(&["openai", "azure.ai.openai", "aws.bedrock", "openrouter", "vllm"][..]),
        pieces in prop::collection::vec(prop::sample::select(&[
            "gpt-5.4", "gpt-4o", "ft:", "openai/", "anthropic.", "claude-sonnet-4-5", "us.", "-20250929",
            "-v1:0", ":free", "Qwen/Qwen3-32B", "azure/", "eu/",
        ][..]), 1..5),
    ) {
        let name = pieces.concat();
        let book = book();
        if let Ok(found) = book.lookup(&query(provider, &name, "")) {
            prop_assert_eq!(found.row.provider.as_deref().unwrap_or(provider), provider);
        }
    }
}
