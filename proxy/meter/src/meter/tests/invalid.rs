//! Tests reported numbers that are no numbers: in every shape of usage, on every wire format.

use std::collections::BTreeSet;

use taximeter_pricing::{Flag, Member, Usage};

use super::*;
use Member::{
    CacheReadInputTokens as Read, CacheWriteInputTokens as Write, InputTokens as Input,
    OutputTokens as Output, ReasoningOutputTokens as Thought,
};

/// What is no whole number from 0 to 2⁵³ − 1.
const NO_NUMBERS: [&str; 11] = [
    "-1",
    "1.5",
    "1e-1",
    "9007199254740992",
    "18446744073709551616",
    "1e308",
    "1e400",
    "\"7\"",
    "true",
    "[1]",
    "{}",
];

/// One number of an answer's usage, and which numbers of the measurement need it.
type UsageNumber = (&'static str, &'static [Member]);

/// Answers of each wire format, and the numbers of their usage by what stands before each.
const ANSWERS: &[(Wire, &str, &[UsageNumber])] = &[
    (
        Wire::ChatCompletions,
        r#"{"choices":[],"usage":{"prompt_tokens":20,"completion_tokens":9,"total_tokens":29,
        "prompt_tokens_details":{"cached_tokens":5,"cache_write_tokens":3,"audio_tokens":1},
        "completion_tokens_details":{"reasoning_tokens":2,"image_tokens":1},
        "num_search_queries":2,"server_tool_use":{"web_search_requests":1}}}"#,
        &[
            (r#""prompt_tokens":"#, &[Input]),
            (r#""completion_tokens":"#, &[Output]),
            (r#""total_tokens":"#, &[]),
            (r#""cached_tokens":"#, &[Read]),
            (r#""cache_write_tokens":"#, &[Write]),
            (r#""audio_tokens":"#, &[]),
            (r#""reasoning_tokens":"#, &[Thought]),
            (r#""image_tokens":"#, &[]),
            (r#""num_search_queries":"#, &[]),
            (r#""web_search_requests":"#, &[]),
        ],
    ),
    (
        Wire::ChatCompletions,
        r#"{"choices":[],"usage":{"prompt_tokens":20,"completion_tokens":9,"num_cached_tokens":5,
        "reasoning_tokens":2}}"#,
        &[(r#""num_cached_tokens":"#, &[Read]), (r#""reasoning_tokens":"#, &[Thought])],
    ),
    (
        Wire::ChatCompletions,
        r#"{"choices":[],"timings":{"cache_n":5,"prompt_n":15,"predicted_n":9}}"#,
        &[
            (r#""cache_n":"#, &[Read, Input]),
            (r#""prompt_n":"#, &[Input]),
            (r#""predicted_n":"#, &[Output]),
        ],
    ),
    (
        Wire::Completions,
        r#"{"choices":[],"usage":{"prompt_tokens":20,"completion_tokens":9,
        "prompt_cache_hit_tokens":5}}"#,
        &[
            (r#""prompt_tokens":"#, &[Input]),
            (r#""completion_tokens":"#, &[Output]),
            (r#""prompt_cache_hit_tokens":"#, &[Read]),
        ],
    ),
    (
        Wire::Responses,
        r#"{"output":[],"status":"completed","usage":{"input_tokens":20,"output_tokens":9,
        "input_tokens_details":{"cached_tokens":5,"cache_write_tokens":3,
        "cache_write_tokens_details":{"ttl_12h_tokens":1}},
        "output_tokens_details":{"reasoning_tokens":2}}}"#,
        &[
            (r#""input_tokens":"#, &[Input]),
            (r#""output_tokens":"#, &[Output]),
            (r#""cached_tokens":"#, &[Read]),
            (r#""cache_write_tokens":"#, &[Write]),
            (r#""reasoning_tokens":"#, &[Thought]),
        ],
    ),
    (
        Wire::Messages,
        r#"{"content":[],"usage":{"input_tokens":12,"output_tokens":9,"cache_read_input_tokens":5,
        "cache_creation_input_tokens":3,"output_tokens_details":{"thinking_tokens":2},
        "iterations":[{"type":"compaction","input_tokens ":1,"output_tokens":4}]}}"#,
        &[
            (r#""input_tokens":"#, &[Input]),
            (r#""output_tokens":"#, &[Output]),
            (r#""cache_read_input_tokens":"#, &[Read, Input]),
            (r#""cache_creation_input_tokens":"#, &[Write, Input]),
            (r#""thinking_tokens":"#, &[Thought]),
        ],
    ),
    (
        Wire::Messages,
        r#"{"content":[],"usage":{"input_tokens":12,"output_tokens":9,
        "cache_creation":{"ephemeral_5m_input_tokens":8}}}"#,
        &[(r#""ephemeral_5m_input_tokens":"#, &[Write, Input])],
    ),
    (
        Wire::GenerateContent,
        r#"{"candidates":[{"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":15,
        "toolUsePromptTokenCount":5,"candidatesTokenCount":7,"thoughtsTokenCount":2,
        "cachedContentTokenCount":5,"totalTokenCount":29,
        "promptTokensDetails":[{"modality":"AUDIO","tokenCount":4}]}}"#,
        &[
            (r#""promptTokenCount":"#, &[Input]),
            (r#""toolUsePromptTokenCount":"#, &[Input]),
            (r#""candidatesTokenCount":"#, &[Output]),
            (r#""thoughtsTokenCount":"#, &[Thought, Output]),
            (r#""cachedContentTokenCount":"#, &[Read]),
            (r#""totalTokenCount":"#, &[]),
            (r#""tokenCount":"#, &[]),
        ],
    ),
    (
        Wire::Converse,
        r#"{"output":{},"stopReason":"end_turn","usage":{"inputTokens":12,"outputTokens":9,
        "totalTokens":29,"cacheReadInputTokens":5,"cacheWriteInputTokens":3}}"#,
        &[
            (r#""inputTokens":"#, &[Input]),
            (r#""outputTokens":"#, &[Output]),
            (r#""totalTokens":"#, &[]),
            (r#""cacheReadInputTokens":"#, &[Read, Input]),
            (r#""cacheWriteInputTokens":"#, &[Write, Input]),
        ],
    ),
    (
        Wire::Converse,
        r#"{"output":{},"stopReason":"end_turn","usage":{"inputTokens ":0,"outputTokens":9,
        "cacheDetails":[{"ttl":"5m","inputTokens":8}]}}"#,
        &[(r#""inputTokens":"#, &[Write])],
    ),
    (
        Wire::CohereChat,
        r#"{"finish_reason":"COMPLETE","usage":{"tokens":{"input_tokens ":1},
        "billed_units":{"input_tokens":20,"output_tokens":9,"search_units":1}}}"#,
        &[
            (r#""input_tokens":"#, &[Input]),
            (r#""output_tokens":"#, &[Output]),
            (r#""search_units":"#, &[]),
        ],
    ),
    (
        Wire::OllamaChat,
        r#"{"done":true,"done_reason":"stop","prompt_eval_count":20,"eval_count":9}"#,
        &[(r#""prompt_eval_count":"#, &[Input]), (r#""eval_count":"#, &[Output])],
    ),
    (
        Wire::Generate,
        r#"{"text":"a","meta_info":{"prompt_tokens":20,"completion_tokens":9,"cached_tokens":5,
        "reasoning_tokens":2}}"#,
        &[
            (r#""prompt_tokens":"#, &[Input]),
            (r#""completion_tokens":"#, &[Output]),
            (r#""cached_tokens":"#, &[Read]),
            (r#""reasoning_tokens":"#, &[Thought]),
        ],
    ),
    (
        Wire::Generate,
        r#"[{"generated_text":"a","details":{"finish_reason":"stop","generated_tokens":9,
        "input_length":20}}]"#,
        &[(r#""input_length":"#, &[Input]), (r#""generated_tokens":"#, &[Output])],
    ),
    (
        Wire::VertexGenerate,
        r#"{"predictions":[{"text":"a","meta_info":{"prompt_tokens":20,"completion_tokens":9}},
        {"text":"b","meta_info":{"prompt_tokens":21,"completion_tokens":8}}]}"#,
        &[(r#""prompt_tokens":"#, &[Input]), (r#""completion_tokens":"#, &[Output])],
    ),
    (
        Wire::LlamaCompletion,
        r#"{"content":"a","stop":true,"tokens_evaluated":20,"tokens_predicted":9,
        "timings":{"cache_n":5,"prompt_n ":15}}"#,
        &[
            (r#""tokens_evaluated":"#, &[Input]),
            (r#""tokens_predicted":"#, &[Output]),
            (r#""cache_n":"#, &[Read]),
        ],
    ),
    (
        Wire::TokenIds,
        r#"{"choices":[],"usage":{"prompt_tokens":20,"completion_tokens":9}}"#,
        &[(r#""prompt_tokens":"#, &[Input]), (r#""completion_tokens":"#, &[Output])],
    ),
    (
        Wire::Embeddings,
        r#"{"data":[],"usage":{"prompt_tokens":20,"total_tokens":20}}"#,
        &[(r#""prompt_tokens":"#, &[Input]), (r#""total_tokens":"#, &[])],
    ),
    (
        Wire::Embeddings,
        r#"{"embeddings":[],"meta":{"billed_units":{"input_tokens":20,"images":1}}}"#,
        &[(r#""input_tokens":"#, &[Input]), (r#""images":"#, &[])],
    ),
    (
        Wire::Embeddings,
        r#"{"embeddings":[],"prompt_eval_count":20}"#,
        &[(r#""prompt_eval_count":"#, &[Input])],
    ),
    (
        Wire::Embeddings,
        r#"[{"embedding":[],"meta_info":{"prompt_tokens":20,"cached_tokens":5}}]"#,
        &[(r#""prompt_tokens":"#, &[Input]), (r#""cached_tokens":"#, &[Read])],
    ),
    (
        Wire::Transcriptions,
        r#"{"text":"a","usage":{"input_tokens":20,"output_tokens":9,
        "input_token_details":{"audio_tokens":20}}}"#,
        &[
            (r#""input_tokens":"#, &[Input]),
            (r#""output_tokens":"#, &[Output]),
            (r#""audio_tokens":"#, &[]),
        ],
    ),
    (
        Wire::Images,
        r#"{"data":[{}],"usage":{"input_tokens":20,"output_tokens":9,
        "input_tokens_details":{"image_tokens":4}}}"#,
        &[
            (r#""input_tokens":"#, &[Input]),
            (r#""output_tokens":"#, &[Output]),
            (r#""image_tokens":"#, &[]),
        ],
    ),
];

fn document(wire: Wire, dialect: Dialect, answer: &str) -> Measurement {
    let content_type = Some("application/json");
    let found = measure(Exchange { wire, dialect, content_type, ..Exchange::chat() }, answer);
    assert_eq!(found.counts.not_json, 0, "{answer}");
    found
}

fn number(usage: &Usage, member: Member) -> Option<u64> {
    match member {
        Input => usage.input_tokens,
        Read => usage.cache_read_input_tokens,
        Write => usage.cache_write_input_tokens,
        Output => usage.output_tokens,
        Thought => usage.reasoning_output_tokens,
    }
}

/// The answer with something else in place of the number behind `key`.
fn with(answer: &str, key: &str, literal: &str) -> String {
    let (before, behind) = answer.split_once(key).expect(key);
    let digits = behind.find(|byte: char| !byte.is_ascii_digit()).unwrap();
    format!("{before}{key}{literal}{}", &behind[digits..])
}

#[test]
fn what_is_no_number_is_flagged_invalid_in_every_shape_and_leaves_the_others() {
    for (wire, answer, keys) in ANSWERS {
        let whole = document(*wire, Dialect::OpenAi, answer).reported.unwrap();
        assert_eq!(whole.flags, [], "{answer}");
        for ((key, needing), literal) in
            keys.iter().flat_map(|key| NO_NUMBERS.map(|literal| (key, literal)))
        {
            let answer = with(answer, key, literal);
            let found = document(*wire, Dialect::OpenAi, &answer);
            assert_eq!(found.counts.usage_invalid, 1, "{answer}");
            let reported = found.reported.expect("something to say");
            assert!(reported.flags.contains(&Flag::Invalid), "{answer}");
            for member in [Input, Read, Write, Output, Thought] {
                let flags = reported.flagged.get(&member);
                let is_invalid = flags.is_some_and(|flags| flags.contains(&Flag::Invalid));
                assert_eq!(is_invalid, needing.contains(&member), "{member:?} of {answer}");
                // The output of embeddings is zero where there is an input.
                let is_alone =
                    *wire == Wire::Embeddings && needing.contains(&Input) && member == Output;
                let is_told = !is_invalid && !is_alone;
                let expected = number(&whole.usage, member).filter(|_| is_told);
                assert_eq!(number(&reported.usage, member), expected, "{member:?} of {answer}");
            }
        }
    }
}

#[test]
fn a_number_is_a_number_however_json_writes_it() {
    for (wire, answer, keys) in ANSWERS {
        let whole = document(*wire, Dialect::OpenAi, answer).reported;
        for (key, _) in *keys {
            let (_, behind) = answer.split_once(key).unwrap();
            let digits = behind.find(|byte: char| !byte.is_ascii_digit()).unwrap();
            for suffix in [".0", "e0", "00e-2"] {
                let literal = format!("{}{suffix}", &behind[..digits]);
                let found = document(*wire, Dialect::OpenAi, &with(answer, key, &literal));
                assert_eq!(found.reported, whole, "{key} {literal}");
            }
        }
    }
}

#[test]
fn where_every_number_is_wrong_all_are_flagged_and_nothing_is_reported() {
    let usages = [
        r#"{"prompt_tokens":18446744073709551616,"completion_tokens":1e308}"#,
        r#"{"prompt_tokens":"9","completion_tokens":-1,"total_tokens":"8"}"#,
        r#""9 in, 4 out""#,
        "[9,4]",
        "13",
    ];
    for usage in usages {
        let body = format!("data: {{\"choices\":[],\"usage\":{usage}}}\n\ndata: [DONE]\n\n");
        let whole = format!(r#"{{"choices":[],"usage":{usage}}}"#);
        for found in [
            measure(Exchange::chat(), &body),
            document(Wire::ChatCompletions, Dialect::Mistral, &whole),
        ] {
            assert!(!found.reports_usage(), "{usage}");
            assert!(found.counts.usage_invalid > 0, "{usage}");
            let reported = found.reported.expect("what is wrong");
            assert_eq!((reported.usage, reported.flags), (Usage::default(), vec![Flag::Invalid]));
            let invalid: BTreeSet<_> = [Flag::Invalid].into();
            let both = [Input, Output].map(|member| (member, invalid.clone()));
            assert_eq!(reported.flagged, both.into(), "{usage}");
        }
    }
}

#[test]
fn what_is_charged_by_other_units_is_invalid_where_it_is_no_quantity() {
    for (wire, answer, unit) in [
        (Wire::Ocr, r#"{"usage_info":{"pages_processed":@}}"#, "pages"),
        (Wire::Videos, r#"{"id":"v","seconds":@}"#, "video_seconds"),
        (Wire::Transcriptions, r#"{"text":"a","duration":@}"#, "audio_seconds"),
        (Wire::Transcriptions, r#"{"text":"a","usage":{"seconds":@}}"#, "audio_seconds"),
        (
            Wire::Embeddings,
            r#"{"results":[],"meta":{"billed_units":{"search_units":@}}}"#,
            "search_units",
        ),
    ] {
        let found = |literal: &str| document(wire, Dialect::OpenAi, &answer.replace('@', literal));
        let units = found("3").reported.unwrap().usage.units;
        assert_eq!(units.keys().collect::<Vec<_>>(), [unit], "{answer}");
        for wrong in ["-1", "1e308", "true", "[1]", "{}", "\"many\""] {
            let found = found(wrong);
            assert_eq!(found.counts.usage_invalid, 1, "{answer} {wrong}");
            let reported = found.reported.expect("what is wrong");
            assert_eq!((reported.usage.units.len(), reported.flags), (0, vec![Flag::Invalid]));
        }
    }
}

#[test]
fn reasoning_that_is_no_number_leaves_the_output_unknown_where_it_is_beside_it() {
    let answer = r#"{"choices":[],"usage":{"prompt_tokens":20,"completion_tokens":9,
        "completion_tokens_details":{"reasoning_tokens":"2"}}}"#;
    for (dialect, output) in
        [(Dialect::Xai, None), (Dialect::Perplexity, None), (Dialect::OpenAi, Some(9))]
    {
        let reported = document(Wire::ChatCompletions, dialect, answer).reported.unwrap();
        assert_eq!(reported.usage.output_tokens, output, "{dialect:?}");
        assert_eq!(reported.flagged.contains_key(&Output), output.is_none(), "{dialect:?}");
    }
}

#[test]
fn a_time_to_live_that_is_no_number_is_said_of_the_cache_writes_that_stay() {
    let answer = r#"{"output":[],"usage":{"input_tokens":20,"output_tokens":9,
        "input_tokens_details":{"cache_write_tokens":3,
        "cache_write_tokens_details":{"ttl_12h_tokens":-1}}}}"#;
    let reported = document(Wire::Responses, Dialect::OpenAi, answer).reported.unwrap();
    assert_eq!(reported.usage.cache_write_input_tokens, Some(3));
    assert_eq!(reported.usage.cache_write_long_input_tokens, None);
    assert_eq!(reported.flagged, [(Write, [Flag::Invalid].into())].into());
}

#[test]
fn ids_of_tokens_count_where_the_usage_beside_them_is_no_number() {
    let event = r#"{"prompt_token_ids":[1,2,3],"choices":[{"token_ids":[4,5],"delta":{}}],
        "usage":{"prompt_tokens":"3","completion_tokens":1e308}}"#;
    let body = format!("data: {}\n\ndata: [DONE]\n\n", event.replace('\n', ""));
    let vllm = Exchange { dialect: Dialect::Vllm, ..Exchange::chat() };
    let reported = measure(vllm, &body).reported.unwrap();
    let usage = &reported.usage;
    assert_eq!([usage.input_tokens, usage.output_tokens], [Some(3), Some(2)]);
    assert!(reported.flags.contains(&Flag::TokenIds) && reported.flags.contains(&Flag::Invalid));
}
