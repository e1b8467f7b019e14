//! Tests what engines report, and what the measurement makes of it.

use taximeter_pricing::{Condition, Flag, Member, Usage};

use super::*;
use crate::measurement::Reported;

/// A stream of chat completions whose events have these usage objects.
fn stream(usages: &[&str]) -> String {
    let event = |usage: &&str| format!("data: {{\"choices\":[],\"usage\":{usage}}}\n\n");
    usages.iter().map(event).chain(["data: [DONE]\n\n".to_owned()]).collect()
}

fn chat(usages: &[&str]) -> Measurement {
    measure(Exchange::chat(), &stream(usages))
}

fn reported(usages: &[&str]) -> Reported {
    chat(usages).reported.unwrap()
}

fn input_and_output(usage: &Usage) -> [Option<u64>; 2] {
    [usage.input_tokens, usage.output_tokens]
}

fn messages(events: &[&str]) -> Measurement {
    let body: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
    measure(Exchange { wire: Wire::Messages, ..Exchange::chat() }, &body)
}

const START: &str = r#"{"type":"message_start","message":{"usage":{"input_tokens":10,
    "cache_read_input_tokens":5,"output_tokens":1}}}"#;
const STOP: &str = r#"{"type":"message_stop"}"#;

fn on_one_line(event: &str) -> String {
    event.replace('\n', "")
}

#[test]
fn the_last_of_several_reports_is_taken_and_none_is_added_up() {
    let first = r#"{"prompt_tokens":5,"completion_tokens":1}"#;
    let last = r#"{"prompt_tokens":5,"completion_tokens":9}"#;
    let found = chat(&[first, first, last, last]);
    assert_eq!(input_and_output(&found.reported.unwrap().usage), [Some(5), Some(9)]);
    assert_eq!(found.counts.usage_fell, 0);
}

#[test]
fn usage_that_falls_is_taken_flagged_and_counted() {
    let more = r#"{"prompt_tokens":5,"completion_tokens":9}"#;
    let less = r#"{"prompt_tokens":5,"completion_tokens":8}"#;
    let found = chat(&[more, less]);
    assert_eq!(found.counts.usage_fell, 1);
    let reported = found.reported.unwrap();
    assert_eq!(reported.usage.output_tokens, Some(8));
    assert_eq!(reported.flags, [Flag::Changed]);
}

#[test]
fn usage_counts_wherever_it_stands() {
    let usage = r#""usage":{"prompt_tokens":3,"completion_tokens":2}"#;
    for event in [
        format!(r#"{{"choices":[{{"delta":{{"content":"a"}}}}],{usage}}}"#),
        format!(r#"{{{usage},"choices":[{{"delta":{{"content":"a"}}}}]}}"#),
        format!(r#"{{"choices":[{{"delta":{{}},{usage}}}]}}"#),
        format!(r#"{{"choices":[],"x_groq":{{{usage}}}}}"#),
        format!(r#"{{"error":{{"code":"overloaded"}},{usage}}}"#),
    ] {
        let found = measure(Exchange::chat(), &format!("data: {event}\n\ndata: [DONE]\n\n"));
        let usage = found.reported.unwrap().usage;
        assert_eq!(input_and_output(&usage), [Some(3), Some(2)], "{event}");
    }
    let event = r#"data: {"type":"response.completed","response":{"usage":{"input_tokens":3,
        "output_tokens":2}}}"#;
    let responses = Exchange { wire: Wire::Responses, ..Exchange::chat() };
    let usage = measure(responses, &format!("{}\n\n", on_one_line(event))).reported.unwrap().usage;
    assert_eq!(input_and_output(&usage), [Some(3), Some(2)]);
}

#[test]
fn an_error_with_usage_is_an_error_and_its_usage_counts() {
    let event = r#"{"error":{"code":"overloaded"},"usage":{"prompt_tokens":3}}"#;
    let found = measure(Exchange::chat(), &format!("data: {event}\n\ndata: [DONE]\n\n"));
    assert_eq!(found.ending, Ending::UpstreamError);
    assert_eq!(found.error.as_ref().map(ProviderError::word), Some("overloaded"));
    assert_eq!(found.reported.unwrap().usage.input_tokens, Some(3));
}

#[test]
fn usage_behind_the_end_is_ignored() {
    let late = r#"{"prompt_tokens":99,"completion_tokens":99}"#;
    let body = stream(&[r#"{"prompt_tokens":5,"completion_tokens":1}"#]) + &stream(&[late]);
    let found = measure(Exchange::chat(), &body);
    assert_eq!(input_and_output(&found.reported.unwrap().usage), [Some(5), Some(1)]);
    assert_eq!(found.counts.after_done, 1);
}

#[test]
fn an_empty_list_of_choices_alone_is_no_usage_event() {
    let filter = "data: {\"choices\":[],\"prompt_filter_results\":[]}\n\n";
    let exchange = Exchange { hidden: USAGE_EVENT, ..Exchange::chat() };
    assert_eq!(exchange.ride(epoch(), [filter.as_bytes()]).bytes, filter.as_bytes());
}

#[test]
fn messages_keep_a_member_until_a_later_event_says_otherwise() {
    let delta = r#"{"type":"message_delta","delta":{},"usage":{"output_tokens":7}}"#;
    let usage = messages(&[&on_one_line(START), delta, STOP]).reported.unwrap().usage;
    assert_eq!(input_and_output(&usage), [Some(15), Some(7)]);
    assert_eq!(usage.cache_read_input_tokens, Some(5));
}

#[test]
fn the_closing_event_of_messages_wins() {
    let delta =
        r#"{"type":"message_delta","delta":{},"usage":{"input_tokens":200,"output_tokens":7}}"#;
    let usage = messages(&[&on_one_line(START), delta, STOP]).reported.unwrap().usage;
    assert_eq!(input_and_output(&usage), [Some(205), Some(7)]);
}

#[test]
fn each_pass_of_messages_is_kept_with_its_model_and_beside_the_top() {
    let delta = r#"{"type":"message_delta","delta":{},"usage":{"input_tokens":10,"output_tokens":7,
        "iterations":[{"type":"compaction","input_tokens":900,"output_tokens":40},
        {"type":"advisor_message","model":"big","input_tokens":30,"output_tokens":4},
        {"type":"message","input_tokens":10,"output_tokens":7}]}}"#;
    let usage = messages(&[&on_one_line(START), &on_one_line(delta), STOP]).reported.unwrap().usage;
    assert_eq!(input_and_output(&usage), [Some(15), Some(7)]);
    let passes: Vec<_> = usage
        .passes
        .iter()
        .map(|pass| (pass.model.as_deref(), input_and_output(&pass.usage)))
        .collect();
    assert_eq!(passes, [(None, [Some(900), Some(40)]), (Some("big"), [Some(30), Some(4)])]);
}

#[test]
fn nothing_reported_is_not_zero_and_zero_is_reported() {
    for nothing in ["null", "{}", r#"{"prompt_tokens":null}"#] {
        assert_eq!(chat(&[nothing]).reported, None, "{nothing}");
    }
    let zero = reported(&[r#"{"prompt_tokens":0,"completion_tokens":0}"#]);
    assert_eq!(input_and_output(&zero.usage), [Some(0), Some(0)]);
}

#[test]
fn a_member_that_is_no_count_is_left_out_and_the_others_stay() {
    for wrong in ["-1", "1.5", "\"7\"", "true", "9007199254740992", "[1]", "{}"] {
        let found = chat(&[&format!(r#"{{"prompt_tokens":3,"completion_tokens":{wrong}}}"#)]);
        assert_eq!(found.counts.usage_invalid, 1, "{wrong}");
        let Reported { usage, flags, .. } = found.reported.unwrap();
        assert_eq!(input_and_output(&usage), [Some(3), None], "{wrong}");
        assert_eq!(flags, [Flag::Invalid], "{wrong}");
    }
    let details = r#"{"prompt_tokens":3,"completion_tokens":2,
        "prompt_tokens_details":{"cached_tokens":-1,"audio_tokens":"many","image_tokens":2},
        "server_tool_use":{"web_search_requests":0.5}}"#;
    let found = chat(&[&on_one_line(details)]);
    assert_eq!(found.counts.usage_invalid, 3);
    let usage = found.reported.unwrap().usage;
    assert_eq!(usage.cache_read_input_tokens, None);
    assert_eq!(usage.modalities.unwrap().named(), [("image_input_tokens".to_owned(), 2)].into());
}

#[test]
fn what_changes_the_price_is_kept_and_the_last_word_counts() {
    let usage = reported(&[
        r#"{"input_tokens":3,"inference_geo":"us","speed":"standard"}"#,
        r#"{"input_tokens":3,"output_tokens":2,"speed":"fast","inference_geo":"us"}"#,
    ])
    .usage;
    let conditions = [(Condition::InferenceGeo, "us"), (Condition::Speed, "fast")];
    assert_eq!(usage.conditions, conditions.map(|(of, word)| (of, word.to_owned())).into());
}

#[test]
fn what_was_cached_is_told_apart_by_modality() {
    let details = r#"{"prompt_tokens":9,"completion_tokens":2,"prompt_tokens_details":{
        "audio_tokens":5,"cached_tokens":4,
        "cached_tokens_details":{"audio_tokens":3,"text_tokens":1,"other":7}}}"#;
    let named = reported(&[&on_one_line(details)]).usage.modalities.unwrap().named();
    let told = named.iter().map(|(name, tokens)| format!("{name} {tokens}"));
    assert_eq!(
        told.collect::<Vec<_>>(),
        [
            "audio_cache_read_input_tokens 3",
            "audio_input_tokens 5",
            "text_cache_read_input_tokens 1",
        ]
    );
}

#[test]
fn parts_larger_than_their_whole_are_kept_and_flagged() {
    let cached = r#"{"prompt_tokens":3,"completion_tokens":2,
        "prompt_tokens_details":{"cached_tokens":4}}"#;
    let found = reported(&[&on_one_line(cached)]);
    assert_eq!(found.usage.cache_read_input_tokens, Some(4));
    assert_eq!(found.flags, [Flag::Inconsistent]);
    let reasoning = r#"{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5,
        "completion_tokens_details":{"reasoning_tokens":4}}"#;
    let found = reported(&[&on_one_line(reasoning)]);
    assert_eq!((found.usage.output_tokens, found.flags), (Some(2), vec![Flag::Inconsistent]));
}

fn output(dialect: Dialect, total: Option<u64>) -> (Option<u64>, Vec<Flag>) {
    let total = total.map(|total| format!(",\"total_tokens\":{total}")).unwrap_or_default();
    let usage = format!(
        r#"{{"prompt_tokens":10,"completion_tokens":4{total},
        "completion_tokens_details":{{"reasoning_tokens":3}}}}"#
    );
    let exchange = Exchange { dialect, ..Exchange::chat() };
    let found = measure(exchange, &stream(&[&on_one_line(&usage)])).reported.unwrap();
    (found.usage.output_tokens, found.flags)
}

#[test]
fn reasoning_beside_the_output_is_told_by_the_total_for_any_engine() {
    for dialect in [Dialect::OpenAi, Dialect::Vllm, Dialect::Xai, Dialect::Gemini] {
        assert_eq!(output(dialect, Some(17)), (Some(7), vec![]), "{dialect:?}");
        assert_eq!(output(dialect, Some(14)), (Some(4), vec![]), "{dialect:?}");
    }
}

#[test]
fn reasoning_beside_the_output_is_told_by_the_dialect_where_the_total_does_not() {
    assert_eq!(output(Dialect::Xai, None), (Some(7), vec![]));
    assert_eq!(output(Dialect::Vllm, None), (Some(4), vec![]));
    assert_eq!(output(Dialect::Perplexity, None), (Some(7), vec![]));
    assert_eq!(output(Dialect::Perplexity, Some(14)), (Some(7), vec![]));
}

#[test]
fn what_only_the_total_counts_is_output_where_a_dialect_hides_it() {
    assert_eq!(output(Dialect::Gemini, Some(30)), (Some(20), vec![Flag::Hidden]));
    assert_eq!(output(Dialect::Vllm, Some(30)), (Some(4), vec![Flag::TotalMismatch]));
}

#[test]
fn a_total_smaller_than_its_parts_is_ignored_and_flagged() {
    assert_eq!(output(Dialect::OpenAi, Some(13)), (Some(4), vec![Flag::TotalMismatch]));
    assert_eq!(output(Dialect::Xai, Some(13)), (Some(7), vec![Flag::TotalMismatch]));
}

#[test]
fn what_was_cached_is_never_added_to_an_input_that_includes_it() {
    let both_names = r#"{"prompt_tokens":100,"completion_tokens":2,"total_tokens":102,
        "prompt_tokens_details":{"cached_tokens":60},"cache_read_input_tokens":60,
        "cache_creation_input_tokens":30}"#;
    let Reported { usage, flags, .. } = reported(&[&on_one_line(both_names)]);
    assert_eq!(input_and_output(&usage), [Some(100), Some(2)]);
    assert_eq!(usage.cache_read_input_tokens, Some(60));
    assert_eq!(usage.cache_write_input_tokens, Some(30));
    assert_eq!(flags, []);
}

#[test]
fn what_is_billed_outranks_what_was_read() {
    for usage in [
        r#"{"billed_units":{"input_tokens":5,"output_tokens":2},"tokens":{"input_tokens":90}}"#,
        r#"{"tokens":{"input_tokens":90},"billed_units":{"input_tokens":5,"output_tokens":2}}"#,
    ] {
        assert_eq!(input_and_output(&reported(&[usage]).usage), [Some(5), Some(2)], "{usage}");
    }
    let read = r#"{"tokens":{"input_tokens":90,"output_tokens":1}}"#;
    assert_eq!(input_and_output(&reported(&[read]).usage), [Some(90), Some(1)]);
}

#[test]
fn a_providers_own_cost_is_kept_as_it_stands() {
    let cost = |cost: &str| {
        let usage = format!(r#"{{"prompt_tokens":1,"completion_tokens":1,"cost":{cost}}}"#);
        chat(&[&usage]).reported_cost
    };
    assert_eq!(cost("0.000850").as_deref(), Some("0.000850"));
    assert_eq!(cost("1.8e-05").as_deref(), Some("1.8e-05"));
    assert_eq!(cost(r#"{"request_cost":0.006,"total_cost":0.0092}"#).as_deref(), Some("0.0092"));
    for none in ["null", "-1", "\"free\"", "[]", r#"{"total_cost":{"total_cost":1}}"#] {
        assert_eq!(cost(none), None, "{none}");
    }
    assert_eq!(cost(&"9".repeat(10_000)), None);
}

#[test]
fn nested_usage_is_not_followed_down() {
    for name in ["billed_units", "tokens", "cost", "prompt_tokens_details"] {
        let deep = format!(r#"{{"{name}":"#).repeat(100_000) + &"}".repeat(100_000);
        let found = chat(&[&deep]);
        assert_eq!(found.reported, None, "{name}");
    }
}

#[test]
fn a_false_zero_of_a_stream_that_was_cut_takes_no_input_with_it() {
    let cut = |usage: &str| {
        let text = r#"{"choices":[{"delta":{"content":"a"}}],"usage":"#;
        let body = format!("data: {text}{usage}}}\n\n");
        let reads = [body.as_bytes()];
        let found = Exchange { end: StreamEnd::ClientLeft, ..Exchange::chat() };
        found.ride(epoch(), reads).measurement.reported
    };
    let reported = cut(r#"{"prompt_tokens":14,"completion_tokens":0,"total_tokens":14}"#).unwrap();
    assert_eq!(input_and_output(&reported.usage), [Some(14), None]);
    assert_eq!(cut(r#"{"prompt_tokens":0,"completion_tokens":0}"#), None);
    let some = cut(r#"{"prompt_tokens":14,"completion_tokens":1}"#).unwrap();
    assert_eq!(input_and_output(&some.usage), [Some(14), Some(1)]);
}

#[test]
fn a_count_of_an_engines_own_route_that_is_none_is_told_of_its_number() {
    let ollama = Exchange { wire: Wire::OllamaChat, ..Exchange::chat() };
    let answer = r#"{"model":"m","done":true,"prompt_eval_count":9,"eval_count":-1}"#;
    let Reported { usage, flagged, .. } = measure(ollama, answer).reported.unwrap();
    assert_eq!(input_and_output(&usage), [Some(9), None]);
    assert_eq!(flagged, [(Member::OutputTokens, [Flag::Invalid].into())].into());
    let generate = Exchange { wire: Wire::Generate, ..Exchange::chat() };
    let part = |tokens: &str| {
        format!(r#"{{"text":"a","meta_info":{{"prompt_tokens":9,"completion_tokens":{tokens}}}}}"#)
    };
    let answer = format!("[{},{}]", part("3"), part("0.5"));
    let flagged = measure(generate, &answer).reported.unwrap().flagged;
    assert_eq!(flagged, [(Member::OutputTokens, [Flag::Invalid].into())].into());
}
