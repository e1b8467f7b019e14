//! Tests zeros that engines report where they do not know the number.

use proptest::prelude::*;

use super::*;
use Flag::Zero;

const ZEROS: &str = r#"{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0}"#;

fn both(usage: &RecordUsage) -> [Option<u64>; 2] {
    [usage.input_tokens, usage.output_tokens]
}

#[test]
fn a_prompt_of_text_is_counted_where_the_engine_calls_it_zero() {
    let usage = ledger(&chat(r#"{"prompt_tokens":0,"completion_tokens":30}"#));
    assert_eq!(both(&usage), [Some(14), Some(30)]);
    assert_eq!(sources(&usage), [Some(CountedByUs), Some(ReportedByEngine)]);
    assert_eq!(usage.flagged, flagged([(InputTokens, &[Zero])]));
}

#[test]
fn text_that_has_passed_is_counted_where_the_engine_calls_it_zero() {
    let usage = ledger(&chat(r#"{"prompt_tokens":14,"completion_tokens":0}"#));
    assert_eq!(both(&usage), [Some(14), Some(32)]);
    assert_eq!(usage.flagged, flagged([(OutputTokens, &[Zero])]));
    let usage = ledger(&chat(ZEROS));
    assert_eq!(both(&usage), [Some(14), Some(32)]);
    assert_eq!(usage.flagged, flagged([(InputTokens, &[Zero]), (OutputTokens, &[Zero])]));
}

#[test]
fn a_zero_is_a_number_where_there_is_nothing_to_count() {
    let nothing = Count { input: Some(exactly(0)), output: Some(exactly(0)), context: false };
    for count in [nothing, Count::default()] {
        let usage = settle(Wire::ChatCompletions, &chat(ZEROS), count);
        assert_eq!(both(&usage), [Some(0), Some(0)]);
        assert_eq!(sources(&usage), [Some(ReportedByEngine); 2]);
        assert_eq!((usage.flagged, usage.flags), (BTreeMap::new(), vec![]));
    }
}

#[test]
fn a_prompt_that_was_all_cached_is_no_zero() {
    let answer = r#"{"content":[{"text":"thirteen"}],"stop_reason":"end_turn","usage":{
        "input_tokens":0,"cache_read_input_tokens":14,"output_tokens":32}}"#;
    let messages = measure_on(Wire::Messages, Dialect::Anthropic, answer, StreamEnd::Clean);
    let usage = settle(Wire::Messages, &messages, EXACT);
    assert_eq!((both(&usage), usage.flags), ([Some(14), Some(32)], vec![]));
}

#[test]
fn sound_and_images_may_be_no_tokens_at_all() {
    for wire in [Wire::Transcriptions, Wire::Images] {
        let answer = r#"{"data":[{}],"usage":{"input_tokens":0,"output_tokens":7}}"#;
        let measured = measure_on(wire, Dialect::OpenAi, answer, StreamEnd::Clean);
        assert_eq!(both(&settle(wire, &measured, EXACT)), [Some(0), Some(7)], "{wire:?}");
    }
}

#[test]
fn a_completion_that_only_repeats_its_prompt_has_generated_nothing() {
    let answer = r#"{"choices":[{"text":"hello","finish_reason":"length"}],
        "usage":{"prompt_tokens":14,"completion_tokens":0,"total_tokens":14}}"#;
    let measured = measure_on(Wire::Completions, Dialect::Vllm, answer, StreamEnd::Clean);
    let usage = settle(Wire::Completions, &measured, EXACT);
    assert_eq!((both(&usage), usage.flags), ([Some(14), Some(0)], vec![]));
}

proptest! {
    /// Each number is the reported one, or the counted one where that is zero.
    #[test]
    fn zeros_are_counted_and_numbers_are_billed(input in 0..3_u64, output in 0..3_u64) {
        let report = format!(r#"{{"completion_tokens":{output},"prompt_tokens":{input}}}"#);
        let usage = ledger(&chat(&report));
        let or_counted = |reported: u64, counted| if reported == 0 { counted } else { reported };
        let expected = [or_counted(input, 14), or_counted(output, 32)].map(Some);
        prop_assert_eq!(both(&usage), expected);
        prop_assert_eq!(usage.flags.contains(&Zero), input == 0 || output == 0);
        prop_assert!(!usage.flags.contains(&Missing));
    }
}
