//! Other than text, other than tokens, and what changes prices.

use super::*;
use crate::Condition;

fn told(usage: Usage, modalities: Modalities) -> Usage {
    Usage { modalities: Some(Box::new(modalities)), ..usage }
}

fn units<const N: usize>(usage: Usage, units: [(&str, &str); N]) -> Usage {
    let units = units.map(|(name, count)| (name.to_owned(), count.parse().unwrap()));
    Usage { units: units.into(), ..usage }
}

fn under<const N: usize>(usage: Usage, conditions: [(Condition, &str); N]) -> Usage {
    let conditions = conditions.map(|(condition, word)| (condition, word.to_owned()));
    Usage { conditions: conditions.into(), ..usage }
}

fn builtin_lines(provider: &str, model: &str, usage: &Usage) -> Vec<String> {
    let cost = builtin().cost(&query(provider, model), usage).unwrap();
    lines(&cost)
}

#[test]
fn sound_and_pictures_leave_the_text_where_they_have_a_rate() {
    let book = with(
        "models: [{model: m, rates: {input: 1, input_audio: 10, input_image: 3, cache_read: 0.1, \
         cache_read_audio: 2, output: 4, output_audio: 40, reasoning: 5}}]",
    );
    let input = ByModality { audio: Some(30), image: Some(20), ..ByModality::default() };
    let output = ByModality { audio: Some(25), ..ByModality::default() };
    let cache_read = ByModality { audio: Some(10), ..ByModality::default() };
    let usage = Usage {
        cache_read_input_tokens: Some(40),
        reasoning_output_tokens: Some(5),
        ..told(usage(100, 50), Modalities { input, output, cache_read })
    };
    let cost = book.cost(&query("vllm", "m"), &usage).unwrap();
    assert_eq!(
        lines(&cost),
        [
            "input 20 × 0.000001 = 0.00002",
            "input_audio 20 × 0.00001 = 0.0002",
            "input_image 20 × 0.000003 = 0.00006",
            "cache_read 30 × 0.0000001 = 0.000003",
            "cache_read_audio 10 × 0.000002 = 0.00002",
            "output 20 × 0.000004 = 0.00008",
            "output_audio 25 × 0.00004 = 0.001",
            "reasoning 5 × 0.000005 = 0.000025",
        ]
    );
}

#[test]
fn cached_tokens_of_no_known_modality_are_text_as_far_as_there_is_text() {
    let book = with(
        "models: [{model: m, rates: {input: 1, input_audio: 10, cache_read: 0.1, output: 4}}]",
    );
    let input = ByModality { audio: Some(80), ..ByModality::default() };
    let usage = Usage {
        cache_read_input_tokens: Some(50),
        ..told(usage(100, 0), Modalities { input, ..Modalities::default() })
    };
    let cost = book.cost(&query("vllm", "m"), &usage).unwrap();
    assert_eq!(
        lines(&cost),
        ["input_audio 50 × 0.00001 = 0.0005", "cache_read 50 × 0.0000001 = 0.000005"]
    );
}

#[test]
fn a_book_may_say_that_sound_costs_what_text_does() {
    let heard = ByModality { audio: Some(7), ..ByModality::default() };
    let usage = told(usage(10, 0), Modalities { input: heard, ..Modalities::default() });
    let rows = "models: [{model: m, rates: {input: 1, output: 2}}]";
    assert!(with(rows).cost(&query("vllm", "m"), &usage).is_err());
    let book = with(&format!("modality_without_rate: text\n{rows}"));
    let cost = book.cost(&query("vllm", "m"), &usage).unwrap();
    assert_eq!(lines(&cost), ["input 10 × 0.000001 = 0.00001"]);
}

#[test]
fn generated_pictures_and_sound_have_their_price() {
    let painted = ByModality { image: Some(1000), ..ByModality::default() };
    let seen = ByModality { text: Some(10), image: Some(90), ..ByModality::default() };
    let usage = told(
        usage(100, 1000),
        Modalities { input: seen, output: painted, ..Modalities::default() },
    );
    assert_eq!(
        builtin_lines("openai", "gpt-image-1", &usage),
        [
            "input 10 × 0.000005 = 0.00005",
            "input_image 90 × 0.00001 = 0.0009",
            "output_image 1000 × 0.00004 = 0.04",
        ]
    );
}

#[test]
fn calls_are_charged_beside_tokens() {
    let searched = units(usage(10, 1), [("web_search_requests", "3"), ("web_fetch_requests", "9")]);
    assert_eq!(
        builtin_lines("anthropic", "claude-haiku-4-5", &searched),
        [
            "input 10 × 0.000001 = 0.00001",
            "output 1 × 0.000005 = 0.000005",
            "web_search_requests 3 × 0.01 = 0.03",
        ]
    );
}

#[test]
fn every_call_of_a_hosted_tool_has_a_meter_that_is_charged_beside_tokens() {
    let beside = MeterName::ALL.into_iter().filter(|meter| {
        !meter.counts_tokens() && !meter.may_stand_alone() && *meter != MeterName::Requests
    });
    for meter in beside {
        let book =
            with(&format!("models: [{{model: m, rates: {{input: 1, output: 2, {meter}: 0.5}}}}]"));
        let called = units(usage(10, 0), [(meter.as_str(), "3")]);
        let cost = book.cost(&query("vllm", "m"), &called).unwrap();
        let line = format!("{meter} 3 × 0.5 = 1.5");
        assert_eq!(lines(&cost), ["input 10 × 0.000001 = 0.00001".to_owned(), line]);
    }
}

#[test]
fn tools_that_cost_only_their_tokens_are_free_and_a_picture_costs_what_its_model_says() {
    let free = [
        ("mcp_calls", "4"),
        ("mcp_list_tools_calls", "1"),
        ("tool_search_calls", "1"),
        ("computer_calls", "7"),
        ("shell_calls", "3"),
        ("local_shell_calls", "2"),
        ("apply_patch_calls", "5"),
        ("view_image_calls", "2"),
    ];
    let free = units(usage(10, 1), free);
    let searched = builtin_lines("openai", "gpt-5.1", &free);
    assert_eq!(searched, builtin_lines("openai", "gpt-5.1", &usage(10, 1)));
    let book = with(
        "models: [{model: m, rates: {input: 1, output: 2}}, \
         {model: paints, rates: {input: 5, output_image: 30}}, \
         {model: by-the-picture, rates: {images: 0.04}}]",
    );
    let output = ByModality { image: Some(9), ..ByModality::default() };
    let modalities = Modalities { output, ..Modalities::default() };
    let cost = |model: &str, drawing: Usage| {
        let drawing = units(drawing, [("images", "2")]);
        let passes = vec![Pass { model: Some(model.to_owned()), usage: drawing }];
        book.cost(&query("vllm", "m"), &Usage { passes, ..usage(10, 0) })
    };
    let known = told(usage(4, 9), modalities);
    assert_eq!(
        lines(&cost("paints", known).unwrap())[1..],
        ["paints input 4 × 0.000005 = 0.00002", "paints output_image 9 × 0.00003 = 0.00027"]
    );
    assert_eq!(
        lines(&cost("by-the-picture", Usage::default()).unwrap())[1..],
        ["by-the-picture images 2 × 0.04 = 0.08"]
    );
    let error = cost("paints", Usage::default()).unwrap_err();
    assert!(error.to_string().contains("no rate for images"), "{error}");
}

#[test]
fn searches_in_files_and_containers_of_code_have_prices_of_their_own() {
    let book = with(
        "models: [{model: m, rates: {input: 1, output: 2, file_search_calls: 0.0025, \
         code_interpreter_sessions: 0.03}}]",
    );
    let called = [("file_search_calls", "2"), ("code_interpreter_sessions", "1")];
    let cost = book.cost(&query("vllm", "m"), &units(usage(10, 0), called)).unwrap();
    assert_eq!(
        lines(&cost),
        [
            "input 10 × 0.000001 = 0.00001",
            "file_search_calls 2 × 0.0025 = 0.005",
            "code_interpreter_sessions 1 × 0.03 = 0.03",
        ]
    );
}

#[test]
fn a_rerank_is_charged_by_the_search_whether_its_tokens_are_known_or_not() {
    let searches = [("search_units", "2")];
    let expected = ["search_units 2 × 0.0025 = 0.005"];
    let unknown = units(Usage::default(), searches);
    assert_eq!(builtin_lines("cohere", "rerank-v4.0-pro", &unknown), expected);
    // Of one that does not say how many there were, the cost is unknown.
    let error =
        first(builtin().cost(&query("cohere", "rerank-v4.0-pro"), &usage(31, 0)).unwrap_err());
    assert_eq!(error, PriceError::UsageUnknown { meter: MeterName::SearchUnits });
    let mut known = builtin_lines("cohere", "rerank-v4.0-pro", &units(usage(31, 0), searches));
    assert_eq!(known.remove(0), "input 31 × 0 = 0");
    assert_eq!(known, expected);
}

#[test]
fn sound_is_charged_by_its_length_or_by_its_tokens_and_never_by_both() {
    let seconds = [("audio_seconds", "3.5")];
    let by_length = units(Usage::default(), seconds);
    assert_eq!(
        builtin_lines("openai", "whisper-1", &by_length),
        ["audio_seconds 3.5 × 0.0001 = 0.00035"]
    );
    assert_eq!(
        builtin_lines("openai", "gpt-4o-mini-transcribe", &by_length),
        ["audio_seconds 3.5 × 0.00005 = 0.000175"]
    );
    let heard = ByModality { audio: Some(14), ..ByModality::default() };
    let input = Modalities { input: heard, ..Modalities::default() };
    let by_both = units(told(usage(14, 45), input), seconds);
    assert_eq!(
        builtin_lines("openai", "gpt-4o-mini-transcribe", &by_both),
        ["input_audio 14 × 0.00000125 = 0.0000175", "output 45 × 0.000005 = 0.000225"]
    );
    // Mistral tells both, and has a price for one.
    let book = with("models: [{model: m, rates: {audio_seconds: 0.00005}}]");
    let cost = book.cost(&query("vllm", "m"), &units(usage(4, 6), seconds)).unwrap();
    assert_eq!(lines(&cost), ["audio_seconds 3.5 × 0.00005 = 0.000175"]);
    // Nobody knows how long it was.
    let error =
        first(builtin().cost(&query("openai", "whisper-1"), &Usage::default()).unwrap_err());
    assert!(matches!(error, PriceError::UsageUnknown { .. }), "{error}");
    // Its length has no price.
    let error = first(builtin().cost(&query("openai", "gpt-4o"), &by_length).unwrap_err());
    assert!(matches!(&error, PriceError::NoRate { part, .. } if part == "audio_seconds"));
}

#[test]
fn what_is_free_need_not_be_counted() {
    let moderated = builtin().cost(&query("openai", "omni-moderation-latest"), &Usage::default());
    assert_eq!(moderated.unwrap().amount, Decimal::ZERO);
    let seen = units(Usage::default(), [("images", "2")]);
    let by_number = builtin().cost(&query("openai", "omni-moderation-latest"), &seen);
    assert_eq!(by_number.unwrap().amount, Decimal::ZERO);
}

#[test]
fn a_request_has_its_price_once_and_only_if_it_used_anything() {
    let book = with("models: [{model: m, rates: {input: 1, output: 2, requests: 0.005}}]");
    let pass = Pass { model: Some("m".to_owned()), usage: usage(1, 0) };
    let used = Usage { passes: vec![pass], ..usage(1, 1) };
    let cost = book.cost(&query("vllm", "m"), &used).unwrap();
    assert_eq!(
        lines(&cost),
        [
            "input 1 × 0.000001 = 0.000001",
            "output 1 × 0.000002 = 0.000002",
            "requests 1 × 0.005 = 0.005",
            "m input 1 × 0.000001 = 0.000001",
        ]
    );
    assert!(book.cost(&query("vllm", "m"), &usage(0, 0)).unwrap().lines.is_empty());
    assert_eq!(book.upper_bound(&query("vllm", "m"), 1, 1).unwrap().to_string(), "0.005003");
}

#[test]
fn conditions_multiply_every_token_and_no_call() {
    let searched = || units(usage(10, 1), [("web_search_requests", "1")]);
    let geo = (Condition::InferenceGeo, "us");
    let fast = (Condition::Speed, "fast");
    for (usage, expected) in [
        (searched(), "0.00006"),
        (under(searched(), [(Condition::InferenceGeo, "global")]), "0.00006"),
        (under(searched(), [geo]), "0.000066"),
        (under(searched(), [fast]), "0.00012"),
        (under(searched(), [geo, fast]), "0.000132"),
    ] {
        let cost = builtin().cost(&query("anthropic", "claude-opus-5-5"), &usage).unwrap();
        let tokens = cost.amount - "0.01".parse::<Decimal>().unwrap();
        assert_eq!(tokens.to_string(), expected, "{:?}", usage.conditions);
    }
}

#[test]
fn a_value_of_a_condition_without_a_price_is_unknown_where_other_values_have_one() {
    let cost = |model, conditions: [(Condition, &str); 1]| {
        builtin().cost(&query("anthropic", model), &under(usage(10, 1), conditions)).map_err(first)
    };
    for word in ["standard", "default"] {
        assert!(cost("claude-opus-5-5", [(Condition::Speed, word)]).is_ok(), "{word}");
    }
    for word in ["global", "not_available"] {
        assert!(cost("claude-opus-5-5", [(Condition::InferenceGeo, word)]).is_ok(), "{word}");
    }
    for (condition, word) in [(Condition::Speed, "turbo"), (Condition::InferenceGeo, "eu")] {
        let error = cost("claude-opus-5-5", [(condition, word)]).unwrap_err().to_string();
        let expected = format!(
            " has no price for {} {word:?}; add it to `when` of the row",
            condition.as_str()
        );
        assert!(error.ends_with(&expected), "{error}");
        // A row without prices by this condition costs the same under each of its values.
        assert!(cost("claude-opus-4-5", [(condition, word)]).is_ok(), "{word}");
    }
}

#[test]
fn further_passes_run_under_the_same_conditions() {
    let pass = Pass { model: None, usage: usage(10, 0) };
    let usage = Usage { passes: vec![pass], ..usage(10, 0) };
    let fast = under(usage, [(Condition::Speed, "fast")]);
    assert_eq!(
        builtin_lines("anthropic", "claude-opus-5-5", &fast),
        ["input 10 × 0.000008 = 0.00008", "claude-opus-5-5 input 10 × 0.000008 = 0.00008"]
    );
}

#[test]
fn a_condition_may_bring_rates_of_its_own() {
    let book = with(
        "models:\n- model: sonar\n  rates: {input: 1, output: 1, search_queries: 0, requests: 0.008}\n  \
         when: {search_context_size: {low: {rates: {requests: 0.005}}}}\n",
    );
    let searched = units(usage(1, 1), [("search_queries", "2")]);
    for (size, fee) in [("low", "0.005"), ("medium", "0.008")] {
        let usage = under(searched.clone(), [(Condition::SearchContextSize, size)]);
        let cost = book.cost(&query("perplexity", "sonar"), &usage).unwrap();
        assert_eq!(cost.amount.to_string(), format!("{fee}002"), "{size}");
    }
    assert_eq!(book.upper_bound(&query("perplexity", "sonar"), 0, 0).unwrap().to_string(), "0.008");
}

fn any_modality() -> impl Strategy<Value = ByModality> {
    let part = || prop::option::of(0..=60u64);
    (part(), part(), part()).prop_map(|(audio, image, video)| ByModality {
        audio,
        image,
        video,
        ..ByModality::default()
    })
}

proptest! {
    #[test]
    fn whatever_the_modalities_each_token_is_charged_once(
        plain in any_usage(200),
        input in any_modality(),
        output in any_modality(),
        cache_read in any_modality(),
        searches in 0..5u32,
        fast: bool,
        rule in prop::sample::select(vec!["text", "unknown"]),
    ) {
        let book = with(&format!(
            "modality_without_rate: {rule}\ncache_without_rate: input\nmodels:\n- model: m\n  rates: \
            {{input: 1.3, input_audio: 3.1, input_video: 7, cache_read: 0.17, cache_read_audio: 0.3, \
            output: 5.77, output_audio: 9.1, output_image: 11, output_video: 13, \
            web_search_requests: 0.01}}\n  when: {{speed: {{fast: {{times: 1.7}}}}}}\n"
        ));
        let whole = plain.input_tokens.unwrap() + plain.output_tokens.unwrap();
        let usage = told(plain, Modalities { input, output, cache_read });
        let usage = units(usage, [("web_search_requests", &searches.to_string())]);
        let usage = under(usage, [(Condition::Speed, if fast { "fast" } else { "standard" })]);
        let cost = book.cost(&query("vllm", "m"), &usage).unwrap();
        let of_tokens = cost.lines.iter().filter(|line| line.meter.counts_tokens());
        prop_assert_eq!(of_tokens.map(|line| line.quantity).sum::<Decimal>(), whole.into());
        prop_assert_eq!(cost.lines.iter().map(|line| line.amount).sum::<Decimal>(), cost.amount);
        prop_assert!(cost.lines.is_sorted_by_key(|line| line.meter));
        for line in &cost.lines {
            prop_assert!(!line.quantity.is_zero() && !line.amount.is_sign_negative());
            prop_assert_eq!(line.amount, line.unit_price * line.quantity);
        }
    }
}

#[test]
fn searches_told_by_number_and_by_queries_are_charged_by_what_has_a_rate() {
    let searched = units(usage(0, 0), [("web_search_requests", "1"), ("search_queries", "3")]);
    let lines = |model| builtin_lines("gcp.gemini", model, &searched);
    assert_eq!(lines("gemini-2.5-flash"), ["web_search_requests 1 × 0.035 = 0.035"]);
    assert_eq!(lines("gemini-3.5-flash"), ["search_queries 3 × 0.014 = 0.042"]);
    let queries = units(usage(0, 0), [("search_queries", "3")]);
    let alone = builtin().cost(&query("gcp.gemini", "gemini-2.5-flash"), &queries).map_err(first);
    assert!(matches!(alone, Err(PriceError::NoRate { .. })), "{alone:?}");
}
