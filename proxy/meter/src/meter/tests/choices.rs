//! Tests usage that stands within choices.

use super::*;

/// Input, output and the flags of an answer of these choices: in one document, in one event, and
/// in an event for each.
fn measured(wire: Wire, choices: &[String]) -> Vec<[Option<u64>; 2]> {
    let all = format!(r#"{{"choices":[{}]}}"#, choices.join(","));
    let event = |choices: &str| format!("data: {{\"choices\":[{choices}]}}\n\n");
    let end = "data: [DONE]\n\n";
    let each: String = choices.iter().map(|choice| event(choice)).collect();
    let document = Exchange { wire, content_type: Some("application/json"), ..Exchange::chat() };
    let stream = Exchange { wire, ..Exchange::chat() };
    let answers = [
        measure(document, &all),
        measure(stream, &(event(&choices.join(",")) + end)),
        measure(stream, &(each.clone() + end)),
        // Reports come again.
        measure(stream, &(each.clone() + &each + end)),
    ];
    let numbers = |found: Measurement| {
        let reported = found.reported.unwrap();
        assert_eq!(reported.flags, [], "{all}");
        [reported.usage.input_tokens, reported.usage.output_tokens]
    };
    answers.into_iter().map(numbers).collect()
}

fn choice(index: usize, usage: &str) -> String {
    format!(r#"{{"index":{index},"finish_reason":"stop","usage":{usage}}}"#)
}

#[test]
fn usage_within_choices_is_one_input_and_the_sum_of_outputs() {
    let usages = [
        r#"{"prompt_tokens":9,"completion_tokens":4,"total_tokens":13}"#,
        r#"{"prompt_tokens":9,"completion_tokens":5,"total_tokens":14}"#,
        r#"{"prompt_tokens":9,"completion_tokens":6,"total_tokens":15}"#,
    ];
    let totals = [
        r#"{"prompt_tokens":9,"total_tokens":13}"#,
        r#"{"completion_tokens":5,"total_tokens":14}"#,
        r#"{"prompt_tokens":9,"total_tokens":15}"#,
    ];
    let beside = [
        r#"{"input_tokens":4,"cache_read_input_tokens":5,"output_tokens":4}"#,
        r#"{"input_tokens":4,"cache_read_input_tokens":5,"output_tokens":5}"#,
        r#"{"input_tokens":9,"output_tokens":6}"#,
    ];
    for usages in [usages, totals, beside] {
        let choices = [0, 1, 2].map(|at| choice(at, usages[at]));
        for wire in [Wire::ChatCompletions, Wire::Completions, Wire::Invocations, Wire::TokenIds] {
            for found in measured(wire, &choices) {
                assert_eq!(found, [Some(9), Some(15)], "{wire:?} {usages:?}");
            }
        }
    }
}

#[test]
fn choices_without_a_number_are_told_apart_by_their_place() {
    let choices = [4, 5]
        .map(|output| format!(r#"{{"usage":{{"prompt_tokens":9,"completion_tokens":{output}}}}}"#));
    let all = format!(r#"{{"choices":[{}]}}"#, choices.join(","));
    let document = Exchange { content_type: Some("application/json"), ..Exchange::chat() };
    let usage = measure(document, &all).reported.unwrap().usage;
    assert_eq!([usage.input_tokens, usage.output_tokens], [Some(9), Some(9)]);
}

#[test]
fn usage_of_the_whole_answer_outranks_that_of_its_choices_unless_it_is_zero() {
    let inside = choice(0, r#"{"prompt_tokens":9,"completion_tokens":4}"#);
    for (usage, expected) in [
        (r#"{"prompt_tokens":8,"completion_tokens":3}"#, [8, 3]),
        (r#"{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0}"#, [9, 4]),
        ("{}", [9, 4]),
        ("null", [9, 4]),
    ] {
        for answer in [
            format!(r#"{{"choices":[{inside}],"usage":{usage}}}"#),
            format!(r#"{{"usage":{usage},"choices":[{inside}]}}"#),
        ] {
            let document = Exchange { content_type: Some("application/json"), ..Exchange::chat() };
            let found = measure(document, &answer).reported.unwrap().usage;
            let numbers = [found.input_tokens, found.output_tokens];
            assert_eq!(numbers, expected.map(Some), "{answer}");
        }
    }
}

#[test]
fn a_transcription_tells_usage_within_its_choices() {
    let choice = choice(0, r#"{"prompt_tokens":9,"completion_tokens":4}"#);
    let body = format!("data: {{\"choices\":[{choice}]}}\n\n");
    let exchange = Exchange { wire: Wire::Transcriptions, ..Exchange::chat() };
    let usage = measure(exchange, &body).reported.unwrap().usage;
    assert_eq!([usage.input_tokens, usage.output_tokens], [Some(9), Some(4)]);
}

#[test]
fn answers_that_were_not_chosen_are_output_too() {
    let answer = r#"{"generated_text":"a","details":{"finish_reason":"stop","generated_tokens":9,
        "input_length":20,"best_of_sequences":[{"generated_text":"b","generated_tokens":7},
        {"generated_text":"c","generated_tokens":1}]}}"#;
    let exchange = Exchange {
        wire: Wire::Generate,
        content_type: Some("application/json"),
        ..Exchange::chat()
    };
    let usage = measure(exchange, answer).reported.unwrap().usage;
    assert_eq!([usage.input_tokens, usage.output_tokens], [Some(20), Some(17)]);
}

/// What SGLang says of each answer, in an event and in a whole answer.
fn generated(index: usize, output: u64) -> String {
    format!(
        r#"{{"index":{index},"text":"a b","meta_info":{{"id":"r{index}","prompt_tokens":9,
        "cached_tokens":4,"completion_tokens":{output},"finish_reason":{{"type":"stop"}}}}}}"#
    )
}

proptest! {
    /// SGLang numbers prompts and the answers to one prompt alike, and each tells its prompt.
    #[test]
    fn several_answers_to_one_prompt_share_it_and_those_to_several_do_not(
        outputs in prop::collection::vec(1_u64..1 << 40, 1..6),
        has_one_prompt in any::<bool>(),
        is_document in any::<bool>(),
    ) {
        let parts = outputs.iter().enumerate().map(|(at, output)| generated(at, *output));
        let (content_type, body) = if is_document {
            ("application/json", format!("[{}]", parts.collect::<Vec<_>>().join(",")))
        } else {
            let events = parts.map(|part| format!("data: {}\n\n", part.replace('\n', " ")));
            ("text/event-stream", events.chain(["data: [DONE]\n\n".to_owned()]).collect())
        };
        let exchange = Exchange {
            wire: Wire::Generate,
            dialect: Dialect::Sglang,
            content_type: Some(content_type),
            has_one_prompt,
            ..Exchange::chat()
        };
        let usage = measure(exchange, &body).reported.unwrap().usage;
        let prompts = if has_one_prompt { 1 } else { outputs.len() as u64 };
        prop_assert_eq!(usage.input_tokens, Some(9 * prompts));
        prop_assert_eq!(usage.cache_read_input_tokens, Some(4 * prompts));
        prop_assert_eq!(usage.output_tokens, Some(outputs.iter().sum()));
    }
}

proptest! {
    /// Neighbours without usage, in any place, take nothing away.
    #[test]
    fn neighbours_without_usage_take_nothing_away(
        input in 1_u64..1 << 40,
        outputs in prop::collection::vec((1_u64..1 << 40, 0..3_usize), 1..6),
        empty in prop::collection::vec((any::<prop::sample::Index>(), 0..3_usize), 0..4),
    ) {
        let mut usages: Vec<String> = outputs
            .iter()
            .map(|(output, shape)| {
                let total = input + output;
                match shape {
                    0 => format!(r#"{{"prompt_tokens":{input},"completion_tokens":{output}}}"#),
                    1 => format!(r#"{{"total_tokens":{total},"prompt_tokens":{input}}}"#),
                    _ => format!(r#"{{"output_tokens":{output},"total_tokens":{total}}}"#),
                }
            })
            .collect();
        for (place, kind) in empty {
            let nothing = ["null", "{}", r#"{"prompt_tokens":null}"#][kind];
            usages.insert(place.index(usages.len() + 1), nothing.to_owned());
        }
        let choices: Vec<_> = usages.iter().enumerate().map(|(at, of)| choice(at, of)).collect();
        let sum = outputs.iter().map(|(output, _)| output).sum();
        for found in measured(Wire::ChatCompletions, &choices) {
            prop_assert_eq!(found, [Some(input), Some(sum)], "{:?}", usages);
        }
    }
}
