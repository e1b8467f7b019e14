mod again;
mod zeros;

use bytes::Bytes;
use taximeter_meter::{Dialect, Meter, Setup, StreamEnd};
use taximeter_system::clock;

use super::*;

use Flag::{Changed, Differs, Estimated, Hidden, Inconsistent, Invalid, Missing, TotalMismatch};
use Member::{
    CacheReadInputTokens, CacheWriteInputTokens, InputTokens, OutputTokens, ReasoningOutputTokens,
};
use Source::{Counted as CountedByUs, Reported as ReportedByEngine, Unknown};

const EXACT: Count = Count { input: Some(exactly(14)), output: Some(exactly(32)), context: false };

const fn exactly(tokens: u64) -> Tally {
    Tally { tokens, estimated: false }
}

fn measure_on(wire: Wire, dialect: Dialect, answer: &str, end: StreamEnd) -> Measurement {
    let setup = Setup {
        wire,
        dialect,
        started_at: clock::now(),
        hidden: taximeter_meter::Hidden::default(),
        has_one_prompt: false,
    };
    let mut meter = Meter::new(setup);
    let kind = if answer.starts_with('{') { "application/json" } else { "text/event-stream" };
    meter.on_head(200, Some(kind), None);
    meter.on_bytes(clock::now(), Bytes::copy_from_slice(answer.as_bytes()));
    meter.finish(clock::now(), end)
}

/// A chat answer that ends well, and reports this.
fn chat(usage: &str) -> Measurement {
    let answer = format!(
        r#"{{"id":"c","model":"m","choices":[{{"index":0,"finish_reason":"stop",
            "message":{{"content":"The settlement is thirteen."}}}}],"usage":{usage}}}"#
    );
    measure_on(Wire::ChatCompletions, Dialect::OpenAi, &answer, StreamEnd::Clean)
}

fn sse(events: &[&str]) -> String {
    events.iter().map(|event| format!("data: {}\n\n", event.replace('\n', ""))).collect()
}

/// A stream of these events, and how it ends.
fn stream(events: &[&str], end: StreamEnd) -> Measurement {
    let events = sse(events);
    measure_on(Wire::ChatCompletions, Dialect::OpenAi, &events, end)
}

/// What the ledger gets, after what there was to count was counted.
fn ledger(measurement: &Measurement) -> RecordUsage {
    settle(Wire::ChatCompletions, measurement, EXACT)
}

fn settle(wire: Wire, measurement: &Measurement, all: Count) -> RecordUsage {
    let parts = TokenParts::of(wire);
    let (missing, comparable) =
        (TokenParts::to_count(wire, measurement), parts.comparable(measurement));
    let count = Count {
        input: all.input.filter(|_| missing.input || comparable.input),
        output: all.output.filter(|_| missing.output || comparable.output),
        ..all
    };
    usage(parts, measurement, &count).0
}

fn sources(usage: &RecordUsage) -> [Option<Source>; 2] {
    [InputTokens, OutputTokens].map(|member| usage.sources.get(&member).copied())
}

fn flagged<const N: usize>(all: [(Member, &[Flag]); N]) -> BTreeMap<Member, Vec<Flag>> {
    all.into_iter().map(|(member, flags)| (member, flags.to_vec())).collect()
}

#[test]
fn one_object_is_reported() {
    let usage = ledger(&chat(
        r#"{"prompt_tokens":14,"completion_tokens":32,"total_tokens":46,
            "prompt_tokens_details":{"cached_tokens":8}}"#,
    ));
    assert_eq!(usage.source, ReportedByEngine);
    let all = [InputTokens, CacheReadInputTokens, OutputTokens];
    assert_eq!(usage.sources, all.map(|member| (member, ReportedByEngine)).into());
    assert_eq!((usage.input_tokens, usage.output_tokens), (Some(14), Some(32)));
    assert_eq!((usage.flagged, usage.flags), (BTreeMap::new(), vec![]));
}

#[test]
fn of_running_totals_the_last_is_billed() {
    let text = r#"{"choices":[{"index":0,"delta":{"content":"a"}}],
        "usage":{"prompt_tokens":14,"completion_tokens":1}}"#;
    let last = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],
        "usage":{"prompt_tokens":14,"completion_tokens":32}}"#;
    let usage = ledger(&stream(&[text, text, last, last, "[DONE]"], StreamEnd::Clean));
    assert_eq!((usage.output_tokens, usage.flags), (Some(32), vec![]));
    let usage = ledger(&stream(&[last, text, "[DONE]"], StreamEnd::Clean));
    assert_eq!((usage.output_tokens, usage.source), (Some(1), ReportedByEngine));
    assert_eq!(usage.flagged[&OutputTokens], [Changed, Differs]);
}

#[test]
fn after_the_end_nothing_is_billed() {
    let late = r#"{"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":1}}"#;
    let text = r#"{"choices":[{"index":0,"delta":{"content":"a"}}]}"#;
    let usage = ledger(&stream(&[text, "[DONE]", late], StreamEnd::Clean));
    assert_eq!((usage.source, usage.input_tokens), (CountedByUs, Some(14)));
}

#[test]
fn what_says_nothing_is_counted() {
    for nothing in ["null", "{}", r#"{"prompt_tokens":null,"completion_tokens":null}"#] {
        let usage = ledger(&chat(nothing));
        assert_eq!((usage.source, usage.input_tokens), (CountedByUs, Some(14)), "{nothing}");
        assert_eq!(sources(&usage), [Some(CountedByUs); 2], "{nothing}");
        let missing: &[_] = &[Missing];
        let flagged = flagged([(InputTokens, missing), (OutputTokens, missing)]);
        assert_eq!((usage.flagged, usage.flags), (flagged, missing.to_vec()), "{nothing}");
    }
}

#[test]
fn a_zero_of_a_stream_that_was_cut_while_text_passed_is_none() {
    let text = r#"{"choices":[{"index":0,"delta":{"content":"a"}}],
        "usage":{"prompt_tokens":14,"completion_tokens":0}}"#;
    let usage = ledger(&stream(&[text, text], StreamEnd::ClientLeft));
    assert_eq!((usage.source, usage.output_tokens), (CountedByUs, Some(32)));
    assert_eq!(sources(&usage), [Some(ReportedByEngine), Some(CountedByUs)]);
}

#[test]
fn a_member_that_is_no_number_is_counted_and_the_others_stay_reported() {
    for wrong in ["-1", "1.5", "\"7\"", "true", "9007199254740993", "[1]"] {
        let measurement = chat(&format!(r#"{{"prompt_tokens":{wrong},"completion_tokens":30}}"#));
        assert_eq!(measurement.counts.usage_invalid, 1, "{wrong}");
        let usage = ledger(&measurement);
        assert_eq!(sources(&usage), [Some(CountedByUs), Some(ReportedByEngine)], "{wrong}");
        assert_eq!((usage.input_tokens, usage.output_tokens), (Some(14), Some(30)), "{wrong}");
        assert_eq!(usage.source, CountedByUs, "{wrong}");
        assert_eq!(usage.flagged, flagged([(InputTokens, &[Invalid])]), "{wrong}");
    }
    let usage = ledger(&chat(r#"{"prompt_tokens":9,"completion_tokens":{}}"#));
    assert_eq!(sources(&usage), [Some(ReportedByEngine), Some(CountedByUs)]);
    assert_eq!(usage.output_tokens, Some(32));
}

#[test]
fn numbers_that_are_all_wrong_are_counted_and_flagged_as_invalid_rather_than_missing() {
    for wrong in [
        r#"{"prompt_tokens":18446744073709551616,"completion_tokens":1e308}"#,
        r#"{"prompt_tokens":"9","completion_tokens":-1,"total_tokens":0.5}"#,
        r#"{"prompt_tokens":"9","completion_tokens":-1,"num_search_queries":2}"#,
        r#""9 in, 4 out""#,
    ] {
        let usage = ledger(&chat(wrong));
        assert_eq!((usage.input_tokens, usage.output_tokens), (Some(14), Some(32)), "{wrong}");
        assert_eq!((sources(&usage), usage.source), ([Some(CountedByUs); 2], CountedByUs));
        let invalid: &[_] = &[Invalid];
        let flagged = flagged([(InputTokens, invalid), (OutputTokens, invalid)]);
        assert_eq!((usage.flagged, usage.flags), (flagged, invalid.to_vec()), "{wrong}");
    }
}

#[test]
fn a_part_larger_than_its_whole_is_kept_and_flagged() {
    let usage = ledger(&chat(
        r#"{"prompt_tokens":14,"completion_tokens":32,"cached_tokens":20,"reasoning_tokens":40}"#,
    ));
    assert_eq!(usage.cache_read_input_tokens, Some(20));
    assert_eq!(usage.reasoning_output_tokens, Some(40));
    assert_eq!(usage.flagged[&CacheReadInputTokens], [Inconsistent]);
    assert_eq!(usage.flagged[&ReasoningOutputTokens], [Inconsistent]);
    assert!(!usage.flagged.contains_key(&CacheWriteInputTokens));
    assert!(usage.flags.contains(&Inconsistent));
}

#[test]
fn a_total_tells_of_reasoning_beside_the_output() {
    let usage = ledger(&chat(
        r#"{"prompt_tokens":14,"completion_tokens":32,"total_tokens":146,
            "completion_tokens_details":{"reasoning_tokens":100}}"#,
    ));
    assert_eq!(usage.output_tokens, Some(132));
    assert_eq!((usage.flags, usage.source), (vec![], ReportedByEngine));
}

#[test]
fn hidden_thinking_is_output_and_flagged_there() {
    let usage = ledger(&chat(r#"{"prompt_tokens":14,"completion_tokens":32,"total_tokens":146}"#));
    assert_eq!(usage.flagged, flagged([(OutputTokens, &[Hidden])]));
    assert_eq!(usage.output_tokens, Some(132));
    assert_eq!(usage.counted.unwrap().output_tokens, None, "nothing to compare with");
}

#[test]
fn a_total_smaller_than_its_parts_is_ignored_and_flagged() {
    let usage = ledger(&chat(r#"{"prompt_tokens":14,"completion_tokens":32,"total_tokens":40}"#));
    assert_eq!((usage.output_tokens, usage.flags), (Some(32), vec![TotalMismatch]));
    assert_eq!(usage.flagged, BTreeMap::new());
}

#[test]
fn a_difference_of_more_than_a_tenth_is_billed_as_reported_and_both_are_kept() {
    let reports = |input: u64, output: u64| {
        ledger(&chat(&format!(r#"{{"prompt_tokens":{input},"completion_tokens":{output}}}"#)))
    };
    let usage = reports(140, 320);
    assert_eq!((usage.input_tokens, usage.output_tokens), (Some(140), Some(320)));
    let counted = Counted { input_tokens: Some(14), output_tokens: Some(32) };
    assert_eq!((usage.source, usage.counted), (ReportedByEngine, Some(counted)));
    assert_eq!(usage.flagged, flagged([(InputTokens, &[Differs]), (OutputTokens, &[Differs])]));
    assert_eq!(usage.flags, [Differs]);
    // A mark or two at the end of a short answer are none.
    assert_eq!(reports(14, 36).flags, []);
    assert_eq!(reports(18, 28).flags, []);
    assert_eq!(reports(14, 27).flagged, flagged([(OutputTokens, &[Differs])]));
}

#[test]
fn of_a_longer_count_a_tenth_is_no_difference() {
    let differ = |reported, counted| differ(reported, counted, MARKS_MAX);
    assert!(!differ(1000, 1100) && !differ(1000, 900));
    assert!(differ(1000, 1101) && differ(1000, 899));
    assert!(differ(0, MARKS_MAX + 1) && !differ(0, MARKS_MAX));
    assert!(differ(u64::MAX, 0));
}

#[test]
fn reasoning_that_never_passed_is_not_compared() {
    let hidden = r#"{"prompt_tokens":14,"completion_tokens":532,
        "completion_tokens_details":{"reasoning_tokens":500}}"#;
    assert_eq!(ledger(&chat(hidden)).flags, []);
    let shown = r#"{"choices":[{"index":0,"delta":{"reasoning_content":"Hm."}}]}"#;
    let last = format!(
        r#"{{"choices":[{{"index":0,"delta":{{}},"finish_reason":"stop"}}],"usage":{hidden}}}"#
    );
    let usage = ledger(&stream(&[shown, &last, "[DONE]"], StreamEnd::Clean));
    assert_eq!(usage.flagged, flagged([(OutputTokens, &[Differs])]));
}

#[test]
fn the_marks_around_what_was_thought_are_no_difference() {
    let thought = |reported: u64| {
        let usage = format!(r#"{{"prompt_tokens":14,"completion_tokens":{reported}}}"#);
        let answer = format!(
            r#"{{"choices":[{{"index":0,"finish_reason":"stop","message":{{"content":"a",
                "reasoning":"b"}}}}],"usage":{usage}}}"#
        );
        ledger(&measure_on(Wire::ChatCompletions, Dialect::Vllm, &answer, StreamEnd::Clean)).flags
    };
    assert_eq!(thought(32 + REASONING_MARKS_MAX), []);
    assert_eq!(thought(33 + REASONING_MARKS_MAX), [Differs]);
}

#[test]
fn what_has_a_form_of_its_own_is_not_compared() {
    let call = r#"{"choices":[{"index":0,"finish_reason":"tool_calls","message":{"tool_calls":[
        {"function":{"name":"f","arguments":"{}"}}]}}],
        "usage":{"prompt_tokens":14,"completion_tokens":320}}"#;
    let two = r#"{"choices":[{"index":0,"finish_reason":"stop","message":{"content":"a"}},
        {"index":1,"finish_reason":"stop","message":{"content":"b"}}],
        "usage":{"prompt_tokens":14,"completion_tokens":320}}"#;
    for answer in [call, two] {
        let usage =
            ledger(&measure_on(Wire::ChatCompletions, Dialect::OpenAi, answer, StreamEnd::Clean));
        let counted = Counted { input_tokens: Some(14), output_tokens: None };
        assert_eq!((usage.counted, usage.flags), (Some(counted), vec![]), "{answer}");
    }
}

#[test]
fn an_answer_that_is_not_whole_is_not_compared() {
    let running = r#"{"choices":[{"index":0,"delta":{"content":"a"}}],
        "usage":{"prompt_tokens":14,"completion_tokens":1}}"#;
    for end in [StreamEnd::ClientLeft, StreamEnd::UpstreamReset, StreamEnd::Deadline] {
        let usage = ledger(&stream(&[running], end));
        assert_eq!((usage.source, usage.output_tokens), (ReportedByEngine, Some(1)), "{end:?}");
        assert_eq!(usage.flags, [], "{end:?}");
    }
}

#[test]
fn usage_with_an_error_is_billed() {
    let error = r#"{"error":{"message":"out of memory","code":"oom"},
        "usage":{"prompt_tokens":9,"completion_tokens":3}}"#;
    let usage = ledger(&stream(&[error], StreamEnd::Clean));
    assert_eq!((usage.input_tokens, usage.output_tokens), (Some(9), Some(3)));
    assert_eq!(usage.source, ReportedByEngine);
}

#[test]
fn parts_of_one_usage_come_in_several_events() {
    let events = [
        r#"{"type":"message_start","message":{"id":"m","usage":{"input_tokens":10,
            "cache_read_input_tokens":4,"output_tokens":1}}}"#,
        r#"{"type":"content_block_delta","delta":{"text":"a"}}"#,
    ];
    let last = r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},
        "usage":{"input_tokens":100,"output_tokens":30}}"#;
    let read = |events: &[&str], end| {
        let events = sse(events);
        settle(
            Wire::Messages,
            &measure_on(Wire::Messages, Dialect::Anthropic, &events, end),
            Count {
                input: None,
                output: Some(Tally { tokens: 1, estimated: true }),
                context: false,
            },
        )
    };
    let whole = [events[0], events[1], last, r#"{"type":"message_stop"}"#];
    let usage = read(&whole, StreamEnd::Clean);
    assert_eq!((usage.input_tokens, usage.output_tokens), (Some(104), Some(30)));
    assert_eq!(usage.source, ReportedByEngine);
    let usage = read(&events, StreamEnd::ClientLeft);
    assert_eq!(sources(&usage), [Some(ReportedByEngine), Some(CountedByUs)]);
    assert_eq!((usage.input_tokens, usage.output_tokens), (Some(14), Some(1)));
    assert_eq!(usage.flagged, flagged([(OutputTokens, &[Estimated, Missing])]));
    assert_eq!(usage.source, CountedByUs);
}

#[test]
fn passes_are_kept_beside_the_numbers_at_the_top() {
    let answer = r#"{"id":"m","model":"c","content":[{"type":"text","text":"a"}],
        "stop_reason":"end_turn","usage":{"input_tokens":10,"output_tokens":3,"iterations":[
        {"type":"compaction","model":"small","input_tokens":7,"output_tokens":2},
        {"type":"message","input_tokens":10,"output_tokens":3}]}}"#;
    let measurement = measure_on(Wire::Messages, Dialect::Anthropic, answer, StreamEnd::Clean);
    let (recorded, priced) = usage(TokenParts::of(Wire::Messages), &measurement, &Count::default());
    assert_eq!(recorded.input_tokens, Some(10));
    let passes = recorded.passes.unwrap();
    assert_eq!((passes.len(), passes[0].model.as_deref()), (1, Some("small")));
    assert_eq!(priced.passes, passes);
}

#[test]
fn what_nobody_counts_is_unknown_and_never_zero() {
    let usage = settle(Wire::ChatCompletions, &chat("null"), Count::default());
    assert_eq!((usage.input_tokens, usage.output_tokens), (None, None));
    assert_eq!((usage.source, sources(&usage)), (Unknown, [Some(Unknown); 2]));
    let half = Count { output: None, ..EXACT };
    let usage = settle(Wire::ChatCompletions, &chat("null"), half);
    assert_eq!((usage.source, sources(&usage)), (Unknown, [Some(CountedByUs), Some(Unknown)]));
    let opaque = settle(Wire::Opaque, &chat("null"), Count::default());
    assert_eq!((opaque.source, opaque.sources, opaque.flags), (Unknown, BTreeMap::new(), vec![]));
}

#[test]
fn an_embedding_has_no_output_to_be_unknown() {
    let answer = r#"{"object":"list","data":[],"model":"e","usage":{"prompt_tokens":14}}"#;
    let measurement = measure_on(Wire::Embeddings, Dialect::OpenAi, answer, StreamEnd::Clean);
    let usage = settle(Wire::Embeddings, &measurement, EXACT);
    assert_eq!((usage.source, usage.input_tokens), (ReportedByEngine, Some(14)));
    let usage = settle(Wire::Embeddings, &chat("null"), EXACT);
    assert_eq!((usage.source, usage.output_tokens), (CountedByUs, None));
    assert_eq!(usage.sources, [(InputTokens, CountedByUs)].into());
}

#[test]
fn calls_of_tools_are_kept_beside_what_is_counted_of_a_stream_that_was_cut() {
    let events = [
        r#"{"type":"response.output_item.done","item":{"type":"file_search_call","id":"fs_1"}}"#,
        r#"{"type":"response.output_text.delta","delta":"To the"}"#,
    ];
    let cut = StreamEnd::ClientLeft;
    let measurement = measure_on(Wire::Responses, Dialect::OpenAi, &sse(&events), cut);
    let usage = settle(Wire::Responses, &measurement, EXACT);
    assert_eq!(usage.units, [("file_search_calls".to_owned(), 1.into())].into());
    assert_eq!((usage.input_tokens, usage.output_tokens), (Some(14), Some(32)));
    assert_eq!(usage.source, CountedByUs);
}
