//! Tests reports that hold zeros in the place of numbers, and reports that leave numbers out.

use taximeter_pricing::{Flag, Usage};

use super::*;

/// The five numbers of a usage.
fn numbers(usage: &Usage) -> [Option<u64>; 5] {
    [
        usage.input_tokens,
        usage.cache_read_input_tokens,
        usage.cache_write_input_tokens,
        usage.output_tokens,
        usage.reasoning_output_tokens,
    ]
}

fn stream(wire: Wire, events: &[String]) -> Measurement {
    let body: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
    measure(Exchange { wire, ..Exchange::chat() }, &body.replace("\n ", " "))
}

fn chat_of(usages: &[&str]) -> Measurement {
    let event = |usage: &&str| format!(r#"{{"choices":[],"usage":{usage}}}"#);
    stream(Wire::ChatCompletions, &usages.iter().map(event).collect::<Vec<_>>())
}

fn found(measurement: &Measurement) -> ([Option<u64>; 5], Vec<Flag>) {
    let reported = measurement.reported.clone().unwrap();
    (numbers(&reported.usage), reported.flags)
}

fn messages(start: &str, delta: &str) -> Measurement {
    let events = [
        format!(r#"{{"type":"message_start","message":{{"usage":{start}}}}}"#),
        format!(r#"{{"type":"message_delta","delta":{{}},"usage":{delta}}}"#),
        r#"{"type":"message_stop"}"#.to_owned(),
    ];
    stream(Wire::Messages, &events)
}

#[test]
fn a_later_zero_takes_no_number_back() {
    let start = r#"{"input_tokens":1500,"cache_read_input_tokens":800,
        "cache_creation":{"ephemeral_1h_input_tokens":30},"output_tokens":1}"#;
    let zeros = r#"{"input_tokens":0,"cache_read_input_tokens":0,"cache_creation_input_tokens":0,
        "cache_creation":{"ephemeral_5m_input_tokens":0,"ephemeral_1h_input_tokens":0},
        "output_tokens":42}"#;
    for delta in [zeros, r#"{"output_tokens":42}"#, r#"{"input_tokens":null,"output_tokens":42}"#] {
        let measured = messages(start, delta);
        let expected = [Some(2330), Some(800), Some(30), Some(42), None];
        assert_eq!(found(&measured), (expected, vec![]), "{delta}");
        assert_eq!(measured.counts.usage_fell, 0, "{delta}");
    }
}

#[test]
fn zeros_in_every_member_behind_numbers_are_no_report() {
    let real = r#"{"prompt_tokens":9,"completion_tokens":4,"total_tokens":13}"#;
    let zeros = r#"{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0,
        "prompt_tokens_details":{"cached_tokens":0,"audio_tokens":0},
        "completion_tokens_details":{"reasoning_tokens":0}}"#;
    let expected = ([Some(9), None, None, Some(4), None], vec![]);
    assert_eq!(found(&chat_of(&[real, zeros])), expected);
    assert_eq!(found(&chat_of(&[real, zeros, "null", zeros])), expected);
    let known = ([Some(9), Some(0), None, Some(4), Some(0)], vec![]);
    assert_eq!(found(&chat_of(&[zeros, real])), known);
}

#[test]
fn the_last_report_does_not_erase_what_it_does_not_mention() {
    let first = r#"{"candidates":[{"content":{"parts":[{"text":"a"}]}}],"usageMetadata":{
        "promptTokenCount":100,"cachedContentTokenCount":60,"thoughtsTokenCount":7,
        "candidatesTokenCount":2,"totalTokenCount":109}}"#;
    let last = r#"{"candidates":[{"finishReason":"STOP"}],"usageMetadata":{
        "promptTokenCount":100,"candidatesTokenCount":5}}"#;
    let events = [first.to_owned(), last.to_owned()];
    let measured = stream(Wire::GenerateContent, &events);
    let expected = ([Some(100), Some(60), None, Some(12), Some(7)], vec![]);
    assert_eq!(found(&measured), expected);
    let listed = Exchange {
        wire: Wire::GenerateContent,
        content_type: Some("application/json"),
        ..Exchange::chat()
    };
    assert_eq!(found(&measure(listed, &format!("[{first},{last}]"))), expected);
    let details = r#"{"prompt_tokens":9,"completion_tokens":4,"total_tokens":13,
        "prompt_tokens_details":{"cached_tokens":5,"cache_write_tokens":2},
        "completion_tokens_details":{"reasoning_tokens":3}}"#;
    let bare = r#"{"prompt_tokens":9,"completion_tokens":6}"#;
    let expected = ([Some(9), Some(5), Some(2), Some(6), Some(3)], vec![]);
    assert_eq!(found(&chat_of(&[details, bare])), expected);
}

#[test]
fn the_total_tells_the_one_number_that_is_left_out() {
    for (wire, answer, input, output) in [
        (
            Wire::ChatCompletions,
            r#"{"choices":[],"usage":{"prompt_tokens":9,"total_tokens":109}}"#,
            9,
            100,
        ),
        (
            Wire::Completions,
            r#"{"choices":[],"usage":{"completion_tokens":100,"total_tokens":109}}"#,
            9,
            100,
        ),
        (
            Wire::ChatCompletions,
            r#"{"choices":[],"usage":{"total_tokens":109,"prompt_tokens":0,"completion_tokens":4}}"#,
            105,
            4,
        ),
        (Wire::Responses, r#"{"output":[],"usage":{"total_tokens":109,"input_tokens":9}}"#, 9, 100),
        (Wire::Converse, r#"{"output":{},"usage":{"inputTokens":9,"totalTokens":109}}"#, 9, 100),
        (
            Wire::GenerateContent,
            r#"{"candidates":[],"usageMetadata":{"promptTokenCount":9,"totalTokenCount":109}}"#,
            9,
            100,
        ),
    ] {
        let exchange =
            Exchange { wire, content_type: Some("application/json"), ..Exchange::chat() };
        let expected = ([Some(input), None, None, Some(output), None], vec![]);
        assert_eq!(found(&measure(exchange, answer)), expected, "{answer}");
    }
    let beside = r#"{"input_tokens":9,"cache_read_input_tokens":50,"total_tokens":109}"#;
    assert_eq!(found(&chat_of(&[beside])).0[3], None, "the total may leave the cache out");
}

#[test]
fn of_two_spellings_the_one_that_is_no_zero_counts() {
    let numbers = ([Some(9), Some(5), None, Some(4), None], vec![]);
    let zeros = [
        r#""prompt_tokens":0,"completion_tokens":0"#,
        r#""prompt_tokens_details":{"cached_tokens":0}"#,
        r#""cache_read_input_tokens":0"#,
    ];
    let real = r#""input_tokens":9,"output_tokens":4,"input_tokens_details":{"cached_tokens":5}"#;
    for zeros in [&zeros[..1], &zeros[..2], &zeros[..]].map(|zeros| zeros.join(",")) {
        for usage in [format!("{{{zeros},{real}}}"), format!("{{{real},{zeros}}}")] {
            assert_eq!(found(&chat_of(&[&usage])), numbers, "{usage}");
        }
    }
    let beside = r#""input_tokens":4,"cache_read_input_tokens":5,"output_tokens":4"#;
    for usage in [
        format!(r#"{{{beside},"prompt_tokens":0,"completion_tokens":0}}"#),
        format!(r#"{{"prompt_tokens":0,"completion_tokens":0,{beside}}}"#),
    ] {
        assert_eq!(found(&chat_of(&[&usage])), numbers, "{usage}");
    }
}

/// Members of a usage object with numbers, in the shape of chats or that of Anthropic.
fn members(is_chat: bool, [input, read, output]: [u64; 3]) -> Vec<String> {
    let members: [(&str, u64); 3] = if is_chat {
        [("prompt_tokens", input + read), ("cached_tokens", read), ("completion_tokens", output)]
    } else {
        [("input_tokens", input), ("cache_read_input_tokens", read), ("output_tokens", output)]
    };
    members.map(|(name, number)| format!(r#""{name}":{number}"#)).to_vec()
}

proptest! {
    /// Placeholders between reports, before them and behind them, in any order of the members and
    /// in any reads, change nothing.
    #[test]
    fn placeholders_change_nothing_wherever_they_stand(
        is_chat: bool,
        numbers in prop::array::uniform3(1_u64..1 << 40),
        order in Just([0, 1, 2]).prop_shuffle(),
        placeholders in prop::collection::vec((0..3_usize, 0..6_usize), 0..4),
        spelling in 0..3_usize,
        at in 0..2000_usize,
    ) {
        let all = members(is_chat, numbers);
        let mut all: Vec<String> = order.iter().map(|at| all[*at].clone()).collect();
        let zeros = [r#""input_tokens":0"#, r#""prompt_tokens":0"#, r#""output_tokens":0"#];
        if is_chat == (spelling != 1) {
            all.insert(at % 4, zeros[spelling].to_owned());
        }
        let mut reports = vec![format!("{{{}}}", all.join(",")); 2];
        for (place, kind) in placeholders {
            let placeholder = [
                "null",
                "{}",
                r#"{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0}"#,
                r#"{"input_tokens":0,"cache_read_input_tokens":0,"output_tokens":0}"#,
                r#"{"completion_tokens":0}"#,
                r#"{"prompt_tokens":null,"completion_tokens":0,"cached_tokens":0}"#,
            ][kind];
            reports.insert(place.min(reports.len()), placeholder.to_owned());
        }
        let event = |usage: &String| format!("data: {{\"choices\":[],\"usage\":{usage}}}\n\n");
        let body: String = reports.iter().map(event).collect();
        let (head, tail) = body.as_bytes().split_at(at.min(body.len()));
        let measured = Exchange::chat().ride(epoch(), [head, tail]).measurement;
        let [input, read, output] = numbers;
        let expected = [Some(input + read), Some(read), None, Some(output), None];
        prop_assert_eq!(found(&measured), (expected, vec![]), "{}", body);
        prop_assert_eq!(measured.counts.usage_fell, 0);
    }
}
