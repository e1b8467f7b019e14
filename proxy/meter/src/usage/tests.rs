use proptest::prelude::*;
use taximeter_pricing::{Flag, Usage};

use super::*;
use crate::dialect::Reasoning;
use crate::measurement::Reported;
use crate::reports::Reports;

fn settled(reports: &[&str]) -> (Option<Reported>, Reports) {
    let gather = || {
        let mut all = Reports::default();
        for report in reports {
            let read = Report::read(&mut Reader::new(report.as_bytes())).unwrap();
            if let Some(report) = read {
                all.add(report);
            }
        }
        all
    };
    (gather().settle(Reasoning::InTotalOnly, None), gather())
}

fn reported(report: &str) -> Reported {
    settled(&[report]).0.unwrap()
}

fn flagged(reported: &Reported) -> Vec<(Member, Flag)> {
    let all = reported.flagged.iter();
    all.flat_map(|(member, flags)| flags.iter().map(|flag| (*member, *flag))).collect()
}

fn numbers(report: &str) -> [Option<u64>; 6] {
    let usage = reported(report).usage;
    [
        usage.input_tokens,
        usage.cache_read_input_tokens,
        usage.cache_write_input_tokens,
        usage.cache_write_long_input_tokens,
        usage.output_tokens,
        usage.reasoning_output_tokens,
    ]
}

#[test]
fn each_shape_is_told_by_its_members() {
    let chat = r#"{"prompt_tokens":9,"completion_tokens":4,
        "prompt_tokens_details":{"cached_tokens":5,"cache_write_tokens":3},
        "completion_tokens_details":{"reasoning_tokens":2}}"#;
    assert_eq!(numbers(chat), [Some(9), Some(5), Some(3), None, Some(4), Some(2)]);
    let responses = r#"{"input_tokens":9,"output_tokens":4,
        "input_tokens_details":{"cached_tokens":5,"cache_write_tokens":3,
        "cache_write_tokens_details":{"ttl_30m_tokens":1,"ttl_12h_tokens":2}},
        "output_tokens_details":{"reasoning_tokens":2}}"#;
    assert_eq!(numbers(responses), [Some(9), Some(5), Some(3), Some(2), Some(4), Some(2)]);
    let messages = r#"{"input_tokens":1,"output_tokens":4,"cache_read_input_tokens":5,
        "cache_creation_input_tokens":3,
        "cache_creation":{"ephemeral_5m_input_tokens":1,"ephemeral_1h_input_tokens":2},
        "output_tokens_details":{"thinking_tokens":2}}"#;
    assert_eq!(numbers(messages), [Some(9), Some(5), Some(3), Some(2), Some(4), Some(2)]);
    let split_only = r#"{"input_tokens":1,"output_tokens":4,
        "cache_creation":{"ephemeral_5m_input_tokens":1,"ephemeral_1h_input_tokens":2}}"#;
    assert_eq!(numbers(split_only), [Some(4), None, Some(3), Some(2), Some(4), None]);
    let vllm = r#"{"prompt_tokens":9,"prompt_tokens_details":{"created_cache_tokens":3}}"#;
    assert_eq!(numbers(vllm), [Some(9), None, Some(3), None, None, None]);
    let flat =
        r#"{"prompt_tokens":9,"completion_tokens":4,"cached_tokens":5,"reasoning_tokens":2}"#;
    assert_eq!(numbers(flat), [Some(9), Some(5), None, None, Some(4), Some(2)]);
}

#[test]
fn cached_and_reasoning_tokens_are_read_under_every_name_that_they_have() {
    // Who reports so; beside ten tokens of input, the cached part included.
    for (reported, [read, write, long, reasoning]) in [
        // Mistral
        (r#""num_cached_tokens":4"#, [Some(4), None, None, None]),
        (r#""prompt_token_details":{"cached_tokens":4}"#, [Some(4), None, None, None]),
        // Moonshot, StepFun, Together
        (r#""cached_tokens":4"#, [Some(4), None, None, None]),
        // DeepSeek
        (
            r#""prompt_cache_hit_tokens":4,"prompt_cache_miss_tokens":6"#,
            [Some(4), None, None, None],
        ),
        // xAI
        (r#""cached_prompt_text_tokens":4"#, [Some(4), None, None, None]),
        // OpenAI and OpenRouter
        (
            r#""prompt_tokens_details":{"cached_tokens":4,"cache_write_tokens":3},
            "completion_tokens_details":{"reasoning_tokens":2}"#,
            [Some(4), Some(3), None, Some(2)],
        ),
        // vLLM
        (
            r#""prompt_tokens_details":{"cached_tokens":4,"created_cache_tokens":3}"#,
            [Some(4), Some(3), None, None],
        ),
        // LiteLLM
        (
            r#""prompt_tokens_details":{"cached_tokens":4,"cache_creation_tokens":3,
            "cache_creation_token_details":{"ephemeral_5m_input_tokens":1,
            "ephemeral_1h_input_tokens":2}}"#,
            [Some(4), Some(3), Some(2), None],
        ),
        // DashScope
        (
            r#""prompt_tokens_details":{"cached_tokens":4,"cache_creation_input_tokens":3,
            "cache_creation":{"ephemeral_5m_input_tokens":3},"cache_type":"ephemeral"}"#,
            [Some(4), Some(3), None, None],
        ),
        // Bifrost
        (
            r#""prompt_tokens_details":{"cached_read_tokens":4,"cached_write_tokens":3}"#,
            [Some(4), Some(3), None, None],
        ),
        // Databricks and others who put Anthropic's names beside OpenAI's
        (
            r#""cache_read_input_tokens":4,"cache_creation_input_tokens":3"#,
            [Some(4), Some(3), None, None],
        ),
        // SGLang and Perplexity
        (r#""reasoning_tokens":2"#, [None, None, None, Some(2)]),
        (r#""completion_token_details":{"reasoning_tokens":2}"#, [None, None, None, Some(2)]),
    ] {
        let report = format!(r#"{{"prompt_tokens":10,{reported},"completion_tokens":5}}"#);
        let expected = [Some(10), read, write, long, Some(5), reasoning];
        assert_eq!(numbers(&report), expected, "{reported}");
    }
    // Bedrock, in its own API and in Nova's answers: beside the input.
    for suffix in ["", "Count"] {
        let cached = format!(
            r#""cacheReadInputToken{0}":4,"cacheWriteInputToken{0}":3"#,
            if suffix.is_empty() { "s" } else { suffix }
        );
        let report = format!(r#"{{"inputTokens":3,{cached},"outputTokens":5}}"#);
        assert_eq!(numbers(&report), [Some(10), Some(4), Some(3), None, Some(5), None], "{report}");
    }
}

#[test]
fn details_outrank_their_flat_copies() {
    let both = r#"{"prompt_tokens":9,"prompt_cache_hit_tokens":4,
        "prompt_tokens_details":{"cached_tokens":5}}"#;
    assert_eq!(numbers(both)[1], Some(5));
}

#[test]
fn the_total_tells_whether_reasoning_is_beside_the_output() {
    let with_total = |total: u64| {
        let report = format!(
            r#"{{"prompt_tokens":10,"completion_tokens":20,"total_tokens":{total},
            "completion_tokens_details":{{"reasoning_tokens":5}}}}"#
        );
        let Reported { usage, flags, .. } = reported(&report);
        (usage.output_tokens.unwrap(), flags)
    };
    assert_eq!(with_total(30), (20, vec![]));
    assert_eq!(with_total(35), (25, vec![]));
    assert_eq!(with_total(45), (35, vec![Flag::Hidden]));
    assert_eq!(with_total(33), (20, vec![Flag::TotalMismatch]));
    assert_eq!(with_total(29), (20, vec![Flag::TotalMismatch]));
}

#[test]
fn only_some_dialects_hide_thinking() {
    let mut reports = Reports::default();
    let report = br#"{"prompt_tokens":10,"completion_tokens":20,"total_tokens":45}"#;
    reports.add(Report::read(&mut Reader::new(report)).unwrap().unwrap());
    let Reported { usage, flags, .. } = reports.settle(Reasoning::InOutput, None).unwrap();
    assert_eq!((usage.output_tokens, flags), (Some(20), vec![Flag::TotalMismatch]));
}

#[test]
fn zero_is_reported_and_nothing_is_not() {
    assert_eq!(numbers(r#"{"prompt_tokens":0,"completion_tokens":0}"#)[0], Some(0));
    for nothing in ["null", "{}", r#"{"prompt_tokens":null,"completion_tokens":null}"#] {
        assert_eq!(settled(&[nothing]).0, None, "{nothing}");
    }
}

#[test]
fn what_is_no_whole_number_in_range_is_not_taken() {
    for wrong in ["-1", "1.5", "\"7\"", "true", "9007199254740992", "[1]", "{}"] {
        let report = format!(r#"{{"prompt_tokens":{wrong},"completion_tokens":3}}"#);
        let (found, reports) = settled(&[&report]);
        let found = found.unwrap();
        assert_eq!(found.usage.input_tokens, None, "{wrong}");
        assert_eq!(found.usage.output_tokens, Some(3), "{wrong}");
        assert_eq!(found.flags, [Flag::Invalid], "{wrong}");
        assert_eq!(flagged(&found), [(Member::InputTokens, Flag::Invalid)], "{wrong}");
        assert_eq!(reports.invalid(), 1, "{wrong}");
    }
    for wrong in ["7", "\"x\"", "[]", "true"] {
        let (found, reports) = settled(&[wrong]);
        let found = found.unwrap();
        assert_eq!((&found.usage, reports.invalid()), (&Usage::default(), 1), "{wrong}");
        let both = [Member::InputTokens, Member::OutputTokens];
        assert_eq!(flagged(&found), both.map(|member| (member, Flag::Invalid)), "{wrong}");
    }
}

#[test]
fn a_detail_that_is_no_number_is_told_of_the_number_that_it_would_have_been() {
    let of = |report: &str| flagged(&reported(report));
    use Member::{CacheReadInputTokens, CacheWriteInputTokens, ReasoningOutputTokens};
    for (name, details, member) in [
        ("prompt_tokens_details", "cached_tokens", CacheReadInputTokens),
        ("input_tokens_details", "cache_write_tokens", CacheWriteInputTokens),
        ("cache_creation", "ephemeral_1h_input_tokens", CacheWriteInputTokens),
        ("completion_tokens_details", "reasoning_tokens", ReasoningOutputTokens),
    ] {
        let report = format!(
            r#"{{"prompt_tokens":9,"completion_tokens":4,"{name}":{{"{details}":"many"}}}}"#
        );
        assert_eq!(of(&report), [(member, Flag::Invalid)], "{report}");
    }
    let sound = r#"{"prompt_tokens":9,"prompt_tokens_details":{"audio_tokens":-1}}"#;
    assert_eq!((of(sound), reported(sound).flags), (vec![], vec![Flag::Invalid]));
}

#[test]
fn the_last_report_wins_and_a_fall_is_told() {
    let first =
        r#"{"prompt_tokens":5,"completion_tokens":9,"prompt_tokens_details":{"cached_tokens":1}}"#;
    let last = r#"{"prompt_tokens":5,"completion_tokens":8}"#;
    let (found, reports) = settled(&[first, "null", last, "{}"]);
    let found = found.unwrap();
    assert_eq!(found.usage.output_tokens, Some(8));
    assert_eq!(found.usage.cache_read_input_tokens, Some(1));
    assert_eq!(found.flags, [Flag::Changed]);
    assert_eq!(flagged(&found), [(Member::OutputTokens, Flag::Changed)]);
    assert_eq!(reports.fell, 1);
    assert_eq!(settled(&[last, last]).0.unwrap().flags, []);
}

#[test]
fn a_partial_report_keeps_what_it_does_not_mention() {
    let mut reports = Reports::default();
    for report in [
        r#"{"input_tokens":3,"cache_read_input_tokens":4}"#,
        r#"{"input_tokens":null,"output_tokens":7}"#,
        r#"{"input_tokens":30}"#,
    ] {
        let mut report = Report::read(&mut Reader::new(report.as_bytes())).unwrap().unwrap();
        report.is_partial = true;
        reports.add(report);
    }
    let usage = reports.settle(Reasoning::InOutput, None).unwrap().usage;
    assert_eq!(usage.input_tokens, Some(34));
    assert_eq!(usage.output_tokens, Some(7));
}

#[test]
fn a_part_larger_than_its_whole_is_kept_and_flagged() {
    use Member::{CacheReadInputTokens, CacheWriteInputTokens, ReasoningOutputTokens};
    for (report, parts) in [
        (
            r#"{"prompt_tokens":5,"completion_tokens":1,"cached_tokens":6}"#,
            &[CacheReadInputTokens][..],
        ),
        (
            r#"{"prompt_tokens":5,"completion_tokens":1,"reasoning_tokens":2}"#,
            &[ReasoningOutputTokens],
        ),
        (
            r#"{"prompt_tokens":5,"prompt_tokens_details":{"cached_tokens":3,"cache_write_tokens":3}}"#,
            &[CacheReadInputTokens, CacheWriteInputTokens],
        ),
    ] {
        let found = reported(report);
        assert_eq!(found.flags, [Flag::Inconsistent], "{report}");
        let parts: Vec<_> = parts.iter().map(|part| (*part, Flag::Inconsistent)).collect();
        assert_eq!(flagged(&found), parts, "{report}");
    }
}

#[test]
fn passes_beside_the_answer_are_kept_with_their_models() {
    let passes = |iterations: &str| {
        let report = format!(r#"{{"input_tokens":1,"output_tokens":1,"iterations":{iterations}}}"#);
        let passes = reported(&report).usage.passes;
        passes
            .into_iter()
            .map(|pass| (pass.model, pass.usage.input_tokens.unwrap()))
            .collect::<Vec<_>>()
    };
    assert_eq!(
        passes(
            r#"[{"type":"compaction","input_tokens":7,"cache_read_input_tokens":1},
            {"type":"message","input_tokens":1},
            {"type":"advisor_message","model":"big","input_tokens":9}]"#
        ),
        [(None, 8), (Some("big".to_owned()), 9)]
    );
    assert_eq!(
        passes(
            r#"[{"type":"message","model":"a","input_tokens":5},
            {"type":"fallback_message","model":"b","input_tokens":1}]"#
        ),
        [(Some("a".to_owned()), 5)]
    );
    assert_eq!(passes("null"), []);
}

#[test]
fn timings_count_when_nothing_else_does() {
    let timings = |reports: &mut Reports| {
        let timings = br#"{"cache_n":2,"prompt_n":3,"predicted_n":4,"prompt_ms":1.5}"#;
        reports.add_timings(Report::read_timings(&mut Reader::new(timings)).unwrap().unwrap());
    };
    let mut reports = Reports::default();
    timings(&mut reports);
    let usage = reports.settle(Reasoning::InOutput, None).unwrap().usage;
    assert_eq!((usage.input_tokens, usage.output_tokens), (Some(5), Some(4)));
    assert_eq!(usage.cache_read_input_tokens, Some(2));
    let (_, mut reports) = settled(&[r#"{"prompt_tokens":1,"completion_tokens":2}"#]);
    timings(&mut reports);
    assert_eq!(reports.settle(Reasoning::InOutput, None).unwrap().usage.input_tokens, Some(1));
}

proptest! {
    #[test]
    fn no_numbers_overflow(counts in prop::collection::vec(0_u64..=COUNT_MAX_OF_JSON, 6)) {
        let [input, output, total, read, write, citations] = counts[..] else { unreachable!() };
        let report = format!(
            r#"{{"input_tokens":{input},"output_tokens":{output},"total_tokens":{total},
            "cache_read_input_tokens":{read},"cache_creation_input_tokens":{write},
            "reasoning_tokens":{write},"citation_tokens":{citations}}}"#
        );
        let report = Report::read(&mut Reader::new(report.as_bytes())).unwrap().unwrap();
        let usage = report.settle(Reasoning::BesideTotal, &mut Vec::new());
        prop_assert_eq!(usage.input_tokens, Some(input + read + write));
        prop_assert_eq!(usage.output_tokens, Some(output + write + citations));
    }
}

const COUNT_MAX_OF_JSON: u64 = (1 << 53) - 1;

fn google(report: &str) -> Report {
    *Report::read_google(&mut Reader::new(report.as_bytes())).unwrap().unwrap()
}

#[test]
fn google_has_thoughts_beside_candidates_and_tools_beside_the_prompt() {
    let all = google(
        r#"{"promptTokenCount":10,"toolUsePromptTokenCount":5,"cachedContentTokenCount":4,
        "candidatesTokenCount":3,"thoughtsTokenCount":7,"totalTokenCount":25}"#,
    );
    let (mut flags, placed) = (Vec::new(), Reasoning::InTotalOnly);
    let usage = all.settle(placed, &mut flags);
    assert_eq!((usage.input_tokens, usage.output_tokens), (Some(15), Some(10)));
    assert_eq!((usage.cache_read_input_tokens, usage.reasoning_output_tokens), (Some(4), Some(7)));
    assert_eq!(flags, []);
    // A zero is left out: an answer that was cut while it was thought about.
    let thinking = google(r#"{"promptTokenCount":10,"thoughtsTokenCount":7,"totalTokenCount":17}"#);
    assert_eq!(thinking.settle(placed, &mut flags).output_tokens, Some(7));
    let prompt = google(r#"{"promptTokenCount":10,"totalTokenCount":10}"#);
    assert_eq!(prompt.settle(placed, &mut flags).output_tokens, None);
    assert_eq!(flags, []);
}

#[test]
fn a_sum_of_which_a_part_is_no_number_is_unknown_and_flagged() {
    let all = |report: Report| {
        let mut reports = Reports::default();
        reports.add(Box::new(report));
        reports.settle(Reasoning::BesideOutput, None).unwrap()
    };
    use Member::{
        CacheReadInputTokens, CacheWriteInputTokens, InputTokens, OutputTokens,
        ReasoningOutputTokens,
    };
    let in_google = |wrong: &str| {
        all(google(&format!(r#"{{"promptTokenCount":10,"candidatesTokenCount":3,{wrong}}}"#)))
    };
    let elsewhere =
        |report: &str| all(*Report::read(&mut Reader::new(report.as_bytes())).unwrap().unwrap());
    for (found, known, members) in [
        (
            in_google(r#""thoughtsTokenCount":-1"#),
            [Some(10), None],
            &[OutputTokens, ReasoningOutputTokens][..],
        ),
        (in_google(r#""toolUsePromptTokenCount":"5""#), [None, Some(3)], &[InputTokens]),
        (
            elsewhere(r#"{"input_tokens":10,"output_tokens":3,"cache_read_input_tokens":1e308}"#),
            [None, Some(3)],
            &[InputTokens, CacheReadInputTokens],
        ),
        (
            elsewhere(
                r#"{"input_tokens":10,"output_tokens":3,
                "cache_creation":{"ephemeral_1h_input_tokens":1.5}}"#,
            ),
            [None, Some(3)],
            &[InputTokens, CacheWriteInputTokens],
        ),
        (
            elsewhere(r#"{"inputTokens":10,"outputTokens":3,"cacheWriteInputTokens":"5"}"#),
            [None, Some(3)],
            &[InputTokens, CacheWriteInputTokens],
        ),
        (
            elsewhere(r#"{"prompt_tokens":10,"completion_tokens":3,"reasoning_tokens":-1}"#),
            [Some(10), None],
            &[OutputTokens, ReasoningOutputTokens],
        ),
        (
            elsewhere(
                r#"{"prompt_tokens":10,"completion_tokens":3,"reasoning_tokens":1,
                "citation_tokens":18446744073709551616}"#,
            ),
            [Some(10), None],
            &[OutputTokens],
        ),
    ] {
        let told: Vec<_> = members.iter().map(|member| (*member, Flag::Invalid)).collect();
        assert_eq!(flagged(&found), told, "{found:?}");
        assert_eq!([found.usage.input_tokens, found.usage.output_tokens], known, "{told:?}");
    }
    assert!(Report::read_google(&mut Reader::new(b"null")).unwrap().is_none());
    assert_eq!(google("7").invalid, 1);
}

#[test]
fn bedrock_has_what_was_cached_beside_the_input() {
    let bedrock = r#"{"inputTokens":1,"outputTokens":4,"totalTokens":13,"cacheReadInputTokens":5,
        "cacheWriteInputTokens":3,"cacheDetails":[{"ttl":"1h","inputTokens":2},
        {"ttl":"5m","inputTokens":1}]}"#;
    assert_eq!(numbers(bedrock), [Some(9), Some(5), Some(3), Some(2), Some(4), None]);
    assert_eq!(reported(bedrock).flags, []);
    let plain = r#"{"inputTokens":9,"outputTokens":4,"totalTokens":13}"#;
    assert_eq!(numbers(plain), [Some(9), None, None, None, Some(4), None]);
}

#[test]
fn what_cohere_read_from_its_cache_is_no_part_of_what_it_bills() {
    let billed = r#""billed_units":{"input_tokens":2,"output_tokens":3}"#;
    let read = r#""tokens":{"input_tokens":90,"output_tokens":5},"cached_tokens":80"#;
    for report in [format!("{{{billed},{read}}}"), format!("{{{read},{billed}}}")] {
        assert_eq!(numbers(&report), [Some(2), None, None, None, Some(3), None]);
        assert_eq!(reported(&report).flags, []);
    }
    let unbilled = format!("{{{read}}}");
    assert_eq!(numbers(&unbilled), [Some(90), Some(80), None, None, Some(5), None]);
}
