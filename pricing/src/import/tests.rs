mod real;
mod registries;

use super::*;
use crate::{MeterName, PriceBook, Query, Usage};

fn day() -> Date {
    "2026-11-20".parse().unwrap()
}

fn imported(json: &str) -> Imported {
    import(json, "prices.json", day()).unwrap_or_else(|error| panic!("{error}"))
}

/// The rows as text, without what stands above them.
fn rows(json: &str) -> String {
    let text = imported(json).text;
    let (_, rows) = text.split_once("models:\n").unwrap_or_default();
    rows.to_owned()
}

fn left_out(json: &str) -> Vec<String> {
    let line = |one: LeftOut| {
        let field = one.field.map_or(String::new(), |field| format!(".{field}"));
        format!("{}: {}{field}: {}", one.line, one.model, one.why)
    };
    imported(json).left_out.into_iter().map(line).collect()
}

fn error(json: &str) -> String {
    import(json, "prices.json", day()).unwrap_err().to_string()
}

#[test]
fn litellms_tiers_contexts_caches_and_factors_become_ours() {
    let json = r#"{
      "sample_spec": {"input_cost_per_token": "price"},
      "gpt-fast": {
        "litellm_provider": "openai", "mode": "chat", "max_input_tokens": 400000,
        "input_cost_per_token": 2.5e-06, "output_cost_per_token": 1.5e-05,
        "output_cost_per_reasoning_token": 1.5e-05,
        "cache_read_input_token_cost": 2.5e-07,
        "cache_creation_input_token_cost": 3.125e-06,
        "cache_creation_input_token_cost_above_12hr": 5e-06,
        "input_cost_per_token_batches": 1.25e-06,
        "input_cost_per_token_above_272k_tokens": 5e-06,
        "output_cost_per_token_above_272k_tokens": 2.25e-05,
        "input_cost_per_token_above_272k_tokens_priority": 1e-05,
        "regional_processing_uplift_multiplier_eu": 1.1,
        "search_context_cost_per_query": {"search_context_size_low": 0.01,
          "search_context_size_medium": 0.01, "search_context_size_high": 0.01}
      },
      "claude-z": {
        "litellm_provider": "anthropic", "mode": "chat",
        "input_cost_per_token": 4e-06, "output_cost_per_token": 2e-05,
        "provider_specific_entry": {"us": 1.1, "fast": 2}
      },
      "xai/grok-z": {
        "litellm_provider": "xai", "mode": "chat",
        "input_cost_per_token": 2e-06, "output_cost_per_token": 6e-06,
        "input_cost_per_image_token": 2e-06,
        "input_cost_per_token_above_200k_tokens": 4e-06
      }
    }"#;
    assert_eq!(
        rows(json),
        r#"- model: "grok-z"
  provider: "x_ai"
  rates: {input: 2, output: 6}
  long_context:
  - at_least: 200000
    rates: {input: 4}
- model: "gpt-fast"
  provider: "openai"
  rates: {input: 2.5, cache_read: 0.25, cache_write: 3.125, cache_write_long: 5, output: 15, web_search_requests: 0.01}
  tiers:
    batch: {input: 1.25}
  long_context:
  - over: 272000
    rates: {input: 5, output: 22.5}
    tiers:
      priority: {input: 10}
  when:
    region:
      "eu": {times: 1.1}
- model: "claude-z"
  provider: "anthropic"
  rates: {input: 4, output: 20}
  when:
    inference_geo:
      "us": {times: 1.1}
    speed:
      "fast": {times: 2}
"#
    );
    assert!(left_out(json).is_empty());
}

#[test]
fn litellms_other_units_become_ours_by_what_the_model_is_asked_for() {
    let json = r#"{
      "rerank-z": {"litellm_provider": "cohere", "mode": "rerank", "input_cost_per_token": 0.0,
        "output_cost_per_token": 0.0, "input_cost_per_query": 0.0025},
      "whisper-z": {"litellm_provider": "openai", "mode": "audio_transcription",
        "input_cost_per_second": 0.0001, "output_cost_per_second": 0.0001},
      "hear-z": {"litellm_provider": "openai", "mode": "audio_transcription",
        "input_cost_per_token": 1.25e-06, "input_cost_per_audio_token": 1.25e-06,
        "output_cost_per_token": 5e-06, "input_cost_per_second": 5e-05},
      "act-z": {"litellm_provider": "openai", "mode": "chat", "input_cost_per_token": 1e-06,
        "output_cost_per_token": 2e-06, "file_search_cost_per_1k_calls": 2.5,
        "code_interpreter_cost_per_session": 0.03, "file_search_cost_per_gb_per_day": 0.1},
      "tts-z": {"litellm_provider": "openai", "mode": "audio_speech",
        "input_cost_per_character": 1.5e-05},
      "paint-z": {"litellm_provider": "openai", "mode": "image_generation",
        "output_cost_per_image": 0.04},
      "ocr-z": {"litellm_provider": "mistral", "mode": "ocr", "ocr_cost_per_page": 0.004,
        "ocr_cost_per_page_batches": 0.002},
      "embed-z": {"litellm_provider": "voyage", "mode": "embedding", "input_cost_per_token": 6e-08,
        "output_cost_per_token": 0.0},
      "perplexity/sonar-z": {"litellm_provider": "perplexity", "mode": "chat",
        "input_cost_per_token": 1e-06, "output_cost_per_token": 1e-06,
        "search_context_cost_per_query": {"search_context_size_low": 0.005,
          "search_context_size_medium": 0.008, "search_context_size_high": 0.012}}
    }"#;
    assert_eq!(
        rows(json),
        r#"- model: "sonar-z"
  provider: "perplexity"
  rates: {input: 1, output: 1, requests: 0.008, search_queries: 0}
  when:
    search_context_size:
      "high": {rates: {requests: 0.012}}
      "low": {rates: {requests: 0.005}}
- model: "rerank-z"
  provider: "cohere"
  input_only: true
  rates: {input: 0, search_units: 0.0025}
- model: "whisper-z"
  provider: "openai"
  input_only: true
  rates: {audio_seconds: 0.0001}
- model: "hear-z"
  provider: "openai"
  rates: {input: 1.25, input_audio: 1.25, output: 5, audio_seconds: 0.00005}
- model: "act-z"
  provider: "openai"
  rates: {input: 1, output: 2, file_search_calls: 0.0025, code_interpreter_sessions: 0.03}
- model: "tts-z"
  provider: "openai"
  rates: {characters: 0.000015}
- model: "paint-z"
  provider: "openai"
  rates: {images: 0.04}
- model: "ocr-z"
  provider: "mistral_ai"
  rates: {pages: 0.004}
  tiers:
    batch: {pages: 0.002}
- model: "embed-z"
  provider: "voyage"
  input_only: true
  rates: {input: 0.06}
"#
    );
}

#[test]
fn litellms_steps_and_hours_become_ours() {
    let json = r#"{
      "dashscope/qwen-z": {"litellm_provider": "dashscope", "mode": "chat", "tiered_pricing": [
        {"range": [0, 32000.0], "input_cost_per_token": 1.2e-06, "output_cost_per_token": 6e-06},
        {"range": [32000.0, 128000.0], "input_cost_per_token": 2.4e-06, "output_cost_per_token": 1.2e-05}]},
      "deepseek/night-z": {"litellm_provider": "deepseek", "mode": "chat",
        "input_cost_per_token": 1.32e-06, "output_cost_per_token": 3.96e-06, "off_peak_pricing": {
          "input_cost_per_token": 6.6e-07, "output_cost_per_token": 1.98e-06,
          "windows": [{"hours_utc": ["00:00-01:00", "10:00-00:00"], "weekdays": [1, 2, 3, 4, 5]},
            {"hours_utc": "00:00-00:00", "weekdays": [6, 7]}]}}
    }"#;
    assert_eq!(
        rows(json),
        r#"- model: "qwen-z"
  provider: "dashscope"
  rates: {input: 1.2, output: 6}
  long_context:
  - at_least: 32000
    rates: {input: 2.4, output: 12}
- model: "night-z"
  provider: "deepseek"
  rates: {input: 1.32, output: 3.96}
  off_peak:
    rates: {input: 0.66, output: 1.98}
    windows:
    - days: [mon, tue, wed, thu, fri]
      hours: ["00:00-01:00", "10:00-24:00"]
    - days: [sat, sun]
      hours: ["00:00-24:00"]
"#
    );
}

#[test]
fn what_cannot_be_taken_is_left_out_with_its_line_and_a_reason() {
    let json = r#"{
"1024-x-1024/dall-z": {"litellm_provider": "openai", "input_cost_per_pixel": 1e-8},
"nothing": {"litellm_provider": "p", "mode": "chat"}, "nobody": {"input_cost_per_token": 1e-6},
"chat-z": {"litellm_provider": "p", "mode": "chat", "input_cost_per_token": 1e-6,
  "output_cost_per_token": 2e-6,
  "input_cost_per_token_balanced": 1e-6},
"p/chat-z": {"litellm_provider": "p", "mode": "chat", "input_cost_per_token": 1e-6,
  "output_cost_per_token": 3e-6,
  "input_cost_per_token_balanced": 1e-6,
  "file_search_cost_per_gb_per_day": 0.03},
"half": {"litellm_provider": "p", "mode": "chat", "input_cost_per_token": 1e-6}
}"#;
    let found = imported(json);
    assert_eq!((found.source, found.models, found.taken), ("LiteLLM", 6, 1));
    assert_eq!(
        left_out(json),
        [
            "2: 1024-x-1024/dall-z: its name contains a size, and no answer has such a name",
            "3: nothing: has no prices",
            "3: nobody: names no provider",
            "4: chat-z: is named twice: another model with this name was imported with other prices",
            "9: p/chat-z.input_cost_per_token_balanced: belongs to an unknown service tier",
            "10: p/chat-z.file_search_cost_per_gb_per_day: no answer reports the quantity that it charges for",
            "11: half: has no price of input and output, and none of anything else that is counted",
        ]
    );
}

#[test]
fn genai_prices_become_ours() {
    let json = r#"[{"id": "anthropic", "name": "Anthropic", "models": [
  {"id": "opus-z", "match": {"or": [{"equals": "opus-z"}, {"equals": "opus-z-latest"},
      {"starts_with": "opus-z-"}]},
   "prices": [
     {"prices": {"input_mtok": {"base": 5, "tiers": [{"start": 200000, "price": 10}]},
       "cache_write_mtok": 6.25, "cache_write_1h_mtok": 10, "output_mtok": 25,
       "web_searches_kcount": 10}},
     {"constraint": {"start_date": "2026-03-13"}, "prices": {"input_mtok": 5, "output_mtok": 25}}]}]},
 {"id": "x-ai", "models": [
  {"id": "night-z", "match": {"equals": "night-z"}, "prices": [
    {"prices": {"input_mtok": 0.135, "output_mtok": 0.55}},
    {"constraint": {"start_time": "00:30:00Z", "end_time": "16:30:00Z"},
     "prices": {"input_mtok": 0.27, "output_mtok": 1.1}}]},
  {"id": "embed-z", "match": {"contains": "embed"}, "prices": {"input_mtok": 0.1}},
  {"id": "ask-z", "match": {"equals": "ask-z"}, "prices": {"input_mtok": 1, "output_mtok": 1,
    "requests_kcount": 12, "output_citation_mtok": 2}},
  {"id": "free-z", "match": {"equals": "free-z"}, "prices": {}}]}]"#;
    assert_eq!(
        rows(json),
        r#"- model: "opus-z"
  provider: "anthropic"
  aliases: ["opus-z-latest"]
  rates: {input: 5, cache_write: 6.25, cache_write_long: 10, output: 25, web_search_requests: 0.01}
  long_context:
  - over: 200000
    rates: {input: 10}
- model: "opus-z"
  provider: "anthropic"
  aliases: ["opus-z-latest"]
  from: 2026-03-13
  rates: {input: 5, output: 25}
- model: "night-z"
  provider: "x_ai"
  rates: {input: 0.135, output: 0.55}
  off_peak:
    rates: {input: 0.27, output: 1.1}
    windows:
    - days: [mon, tue, wed, thu, fri, sat, sun]
      hours: ["00:30-16:30"]
- model: "embed-z"
  provider: "x_ai"
  input_only: true
  rates: {input: 0.1}
- model: "ask-z"
  provider: "x_ai"
  rates: {input: 1, output: 1, requests: 0.012}
"#
    );
    assert_eq!(
        left_out(json),
        [
            "2: anthropic/opus-z.match: patterns of names are not imported: a name finds its row by the \
             rules of the book",
            "14: x_ai/embed-z.match: patterns of names are not imported: a name finds its row by the \
             rules of the book",
            "16: x_ai/ask-z.output_citation_mtok: no answer reports it separately",
            "17: x_ai/free-z: has no prices",
        ]
    );
}

#[test]
fn a_model_with_a_wrong_value_is_left_out_with_its_reason_and_the_others_are_taken() {
    let json = r#"{
"good": {"litellm_provider": "p", "mode": "chat", "input_cost_per_token": 1e-6, "output_cost_per_token": 2e-6},
"a": {"litellm_provider": "p", "mode": "chat",
  "input_cost_per_token": "4e-06", "input_cost_per_pixel": 1,
  "output_cost_per_token": -1},
"b": {"litellm_provider": "p",
  "tiered_pricing": {},
  "provider_specific_entry": {"us": 0}},
"c": 7,
"d/*/e": {"litellm_provider": "p", "input_cost_per_token": 1e-6, "output_cost_per_token": 2e-6},
"f": {"litellm_provider": "p", "input_cost_per_token": 1e-6, "output_cost_per_token": 2e-6, "off_peak_pricing":
  {"input_cost_per_token": 0, "hours_utc": "1:00-2:00", "weekday_timezone": "Europe/Berlin"}},
"g": {"litellm_provider": "p", "input_cost_per_token": 1e-6, "output_cost_per_token": 1e-40},
"h": {"litellm_provider": "p", "input_cost_per_token": 1e-6, "output_cost_per_token": 2e-6,
  "input_cost_per_token_above_200k_tokens": null},
"last": {"litellm_provider": "p", "input_cost_per_token": 3e-6, "output_cost_per_token": 4e-6}
}"#;
    let price = "expected a price: a number, not below zero, of at most 28 decimals";
    assert_eq!(
        left_out(json),
        [
            format!("4: a: input_cost_per_token: {price}; output_cost_per_token: {price}"),
            "7: b: tiered_pricing: expected a list of {range: [from, to), prices}; \
             provider_specific_entry.us: expected a factor above 0"
                .to_owned(),
            "9: c: expected an object of prices".to_owned(),
            "10: d/*/e: \"d/*/e\" has a `*`, and a model is found by its exact name; write each \
             model, and its other names as `aliases`"
                .to_owned(),
            "12: f: off_peak_pricing: has weekdays of an unknown time zone".to_owned(),
            format!("13: g: output_cost_per_token: {price}"),
            format!("15: h: input_cost_per_token_above_200k_tokens: {price}"),
        ]
    );
    let found = imported(json);
    assert_eq!((found.models, found.taken), (9, 2));
    assert_eq!(
        found.rows.iter().map(|row| row.model.as_str()).collect::<Vec<_>>(),
        ["good", "last"]
    );
}

#[test]
fn a_bad_model_of_genai_prices_leaves_the_others_too() {
    let json = r#"[{"id": "p", "models": [
{"id": "good", "match": {"equals": "good-1"}, "prices": {"input_mtok": 1, "output_mtok": 2}},
{"id": "a", "prices": {"input_mtok": null, "output_mtok": 2}},
{"prices": {"input_mtok": 1}},
{"id": "b", "prices": [{"constraint": {"start_date": "soon"}, "prices": {"input_mtok": 1, "output_mtok": 2}}]},
{"id": "c", "prices": [{"constraint": {"weather": "rain"}, "prices": {"input_mtok": 1, "output_mtok": 2}}]},
{"id": "d", "prices": [{"prices": {"input_mtok": 1, "output_mtok": 2}},
  {"constraint": {"start_date": "2026-12-01"}, "prices": {}}]},
{"id": "e", "match": {"equals": "good-1"}, "prices": {"input_mtok": 1, "output_mtok": 2}},
{"id": "f", "prices": [{"prices": {"input_mtok": 1, "output_mtok": 2}},
  {"prices": {"input_mtok": 3, "output_mtok": 4}}]},
{"id": "last", "prices": {"input_mtok": 1, "output_mtok": 2}}]},
{"id": "q"}, 5]"#;
    assert_eq!(
        left_out(json),
        [
            "3: p/a: input_mtok: expected a price: a number, not below zero, of at most 28 decimals",
            "4: p: expected a model with an `id`",
            "5: p/b: start_date: expected YYYY-MM-DD",
            "6: p/c: constraint: holds under an unknown condition",
            "7: p/d: prices: has no prices from some day on",
            "9: p/e: has a name that another imported model has",
            "10: p/f: \"f\" is named twice; keep one, or give the later row another `from`",
            "13: q: expected a provider with a list of models",
            "13: : expected a provider with a list of models",
        ]
    );
    let found = imported(json);
    assert_eq!((found.models, found.taken), (11, 2));
}

#[test]
fn a_file_of_which_nothing_can_be_taken_is_an_error_that_says_why() {
    let price = "expected a price: a number, not below zero, of at most 28 decimals";
    let json =
        "[{\"id\": \"p\", \"models\": [\n{\"id\": \"m\", \"prices\": {\"input_mtok\": null}}]}]";
    assert_eq!(
        error(json),
        format!("prices.json: no model can be imported\nprices.json:2: p/m: input_mtok: {price}")
    );
    let many: Vec<_> = (0..12).map(|number| format!("{{\"id\": \"m{number}\"}}")).collect();
    let many = error(&format!("[{{\"id\": \"p\", \"models\": [{}]}}]", many.join(",\n")));
    assert!(many.ends_with("prices.json:10: p/m9: has no prices\nand 2 more"), "{many}");
    assert!(error("{\"a\": }").starts_with("prices.json:1:7: expected value"));
    for other in ["3", "[1]", r#"{"a": {"b": 1}}"#, r#"[{"id": "p"}]"#] {
        assert!(error(other).starts_with("prices.json: is neither LiteLLM's object"), "{other}");
    }
    assert_eq!(imported("{}").taken, 0);
}

#[test]
fn what_is_imported_is_laid_over_a_book_and_prices_requests() {
    let json = r#"{"mistral/tiny-z": {"litellm_provider": "mistral", "mode": "chat",
        "input_cost_per_token": 2.5e-07, "output_cost_per_token": 1e-06}}"#;
    let text = imported(json).text;
    let book = PriceBook::builtin().unwrap().with_overrides(&text, "imported.yaml").unwrap();
    let query = Query {
        provider: Some("mistral_ai"),
        response_model: Some("tiny-z"),
        request_model: None,
        service_tier: None,
        at: "2026-11-21T00:00:00Z".parse().unwrap(),
    };
    let usage = Usage {
        input_tokens: Some(100),
        cache_read_input_tokens: Some(40),
        output_tokens: Some(10),
        ..Usage::default()
    };
    let cost = book.cost(&query, &usage).unwrap();
    assert_eq!(cost.amount.to_string(), "0.000035");
    assert_eq!(cost.price_id, "overrides@2026-11-20#mistral_ai/tiny-z");
    assert_eq!(cost.lines[1].meter, MeterName::CacheRead);
}
