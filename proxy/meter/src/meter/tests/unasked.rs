//! Tests that a client that did not ask for usage gets the stream that it would have got, however
//! an engine answers the gateway's question.

use super::*;

const FINISHED: &str = r#"{"index":0,"delta":{},"finish_reason":"stop"}"#;
const USAGE: &str = r#"{"prompt_tokens":9,"completion_tokens":2,"total_tokens":11}"#;

/// What a client sees of a stream with these events.
fn seen(wire: Wire, hidden: Hidden, events: &[String], step: usize) -> (String, Measurement) {
    let exchange = Exchange { wire, hidden, ..Exchange::chat() };
    let sent: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
    let ride = exchange.ride(epoch(), sent.as_bytes().chunks(step.max(1)));
    (String::from_utf8(ride.bytes).unwrap(), ride.measurement)
}

fn as_sent(events: &[&str]) -> String {
    events.iter().map(|event| format!("data: {event}\n\n")).collect()
}

/// Events that say nothing but usage, as engines write them.
fn only_usage() -> Vec<String> {
    let bare = [
        r#","choices":[]"#,
        r#","choices":null"#,
        r#","choices":{}"#,
        "",
        r#","choices":[{"index":0,"delta":{},"finish_reason":null}]"#,
        r#","choices":[{"index":0,"delta":null}]"#,
        r#","choices":[{"index":0,"delta":{"role":"assistant","content":""}}]"#,
        r#","choices":[{"index":0,"text":"","finish_reason":null}]"#,
        r#","choices":[{}]"#,
    ];
    let events = bare.into_iter().flat_map(|choices| {
        [
            format!(r#"{{"id":"c"{choices},"usage":{USAGE}}}"#),
            format!(r#"{{"usage":{USAGE},"id":"c"{choices}}}"#),
            format!(r#"{{"id":"c", "usage" : {USAGE} {choices}}}"#),
        ]
    });
    events.collect()
}

#[test]
fn an_event_that_says_nothing_but_usage_is_hidden_whatever_its_choices() {
    let finish = format!(r#"{{"id":"c","choices":[{FINISHED}]}}"#);
    for wire in [Wire::ChatCompletions, Wire::Completions, Wire::Invocations] {
        for event in only_usage() {
            let events = [finish.clone(), event.clone(), "[DONE]".to_owned()];
            let (shown, found) = seen(wire, USAGE_EVENT, &events, usize::MAX);
            assert_eq!(shown, as_sent(&[&finish, "[DONE]"]), "{wire:?} {event}");
            let usage = found.reported.unwrap().usage;
            assert_eq!((usage.input_tokens, usage.output_tokens), (Some(9), Some(2)), "{event}");
            let (shown, _) = seen(wire, NOTHING, &events, usize::MAX);
            assert_eq!(shown, as_sent(&[&finish, &event, "[DONE]"]), "the client asked: {event}");
        }
    }
}

#[test]
fn an_event_that_says_more_than_usage_is_not_hidden() {
    for event in [
        format!(r#"{{"choices":[{{"index":0,"delta":{{"content":"a"}}}}],"usage":{USAGE}}}"#),
        format!(r#"{{"choices":[{FINISHED}],"usage":{USAGE}}}"#),
        format!(r#"{{"error":{{"code":"overloaded"}},"usage":{USAGE}}}"#),
        format!(r#"{{"choices":[{{"index":1,"delta":{{"role":"assistant"}}}}],"usage":{USAGE}}}"#),
        r#"{"choices":[],"prompt_filter_results":[]}"#.to_owned(),
        r#"{"choices":null}"#.to_owned(),
    ] {
        let (shown, _) =
            seen(Wire::ChatCompletions, USAGE_EVENT, std::slice::from_ref(&event), usize::MAX);
        assert_eq!(shown, as_sent(&[&event]));
    }
}

#[test]
fn a_client_that_asked_for_usage_keeps_every_null() {
    let event = r#"{"choices":[{"index":0,"delta":{"content":"a"}}],"usage":null}"#.to_owned();
    let running = Hidden { running_usage: true, ..NOTHING };
    for hidden in [NOTHING, running] {
        let (shown, _) =
            seen(Wire::ChatCompletions, hidden, std::slice::from_ref(&event), usize::MAX);
        assert_eq!(shown, as_sent(&[&event]));
    }
}

proptest! {
    /// `usage: null` comes with our question wherever it stands, in every event and however the
    /// bytes are cut; without it the events are what they would have been.
    #[test]
    fn usage_that_is_null_is_taken_out_of_every_event(
        texts in prop::collection::vec("[a-z \"\\\\:,]{0,6}", 1..8),
        place in 0..4_usize,
        step in 1..200_usize,
    ) {
        let event = |text: &str, null: &str| {
            let text = serde_json::to_string(text).unwrap();
            let mut members = vec![
                r#""id":"c""#.to_owned(),
                r#""model":"m""#.to_owned(),
                format!(r#""choices":[{{"index":0,"delta":{{"content":{text}}}}}]"#),
            ];
            if !null.is_empty() {
                members.insert(place.min(members.len()), null.to_owned());
            }
            format!("{{{}}}", members.join(","))
        };
        let written = |null: &str| {
            let mut events: Vec<_> = texts.iter().map(|text| event(text, null)).collect();
            events.push(format!(r#"{{"choices":[{FINISHED}]}}"#));
            events.push("[DONE]".to_owned());
            events
        };
        let asked = written(r#""usage":null"#);
        let (shown, found) = seen(Wire::ChatCompletions, USAGE_EVENT, &asked, step);
        let plain = written("");
        let plain: Vec<_> = plain.iter().map(String::as_str).collect();
        prop_assert_eq!(shown, as_sent(&plain));
        let (_, whole) = seen(Wire::ChatCompletions, NOTHING, &asked, usize::MAX);
        prop_assert_eq!(found.output_text, whole.output_text);
        prop_assert_eq!(found.timing.output_chunks, whole.timing.output_chunks);
    }
}
