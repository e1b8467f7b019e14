//! Tests text that an engine sends twice: it counts once, in tokens and in times.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::time::Duration;

use serde_json::{Value, json};

use super::*;
use crate::measurement::Timing;

/// How an engine tells a text.
#[derive(Debug, Clone, Copy)]
pub(super) enum Telling {
    /// What is new.
    Deltas,
    /// The same, and all of it at the end.
    ThenWhole,
    /// The same, and all so far beside each of them.
    BesideWhole,
    /// All so far in each event.
    SoFar,
    /// The same, and once more at the end.
    SoFarThenWhole,
}

pub(super) const TELLINGS: [Telling; 5] = [
    Telling::Deltas,
    Telling::ThenWhole,
    Telling::BesideWhole,
    Telling::SoFar,
    Telling::SoFarThenWhole,
];

/// Writes JSON with the members of each object in an order that `seed` chooses.
pub(super) fn write_in_order(value: &Value, seed: u64) -> String {
    let by_seed = |key: &str| {
        let mut hasher = DefaultHasher::new();
        (seed, key).hash(&mut hasher);
        hasher.finish()
    };
    match value {
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            members.sort_by_key(|(key, _)| by_seed(key));
            let written = members
                .iter()
                .map(|(key, value)| format!("{}:{}", json!(key), write_in_order(value, seed)));
            format!("{{{}}}", written.collect::<Vec<_>>().join(","))
        }
        Value::Array(elements) => {
            let written = elements.iter().map(|element| write_in_order(element, seed));
            format!("[{}]", written.collect::<Vec<_>>().join(","))
        }
        other => other.to_string(),
    }
}

/// Reads events that come 100 ms apart, in reads of these lengths. Then the client leaves.
pub(super) fn timed(wire: Wire, events: &[String], lengths: &[usize]) -> Measurement {
    let started_at = epoch();
    let exchange = Exchange { wire, ..Exchange::chat() };
    let mut meter = exchange.meter(started_at);
    meter.on_head(200, exchange.content_type, None);
    let mut now = started_at;
    for event in events {
        now += Duration::from_millis(100);
        let event = format!("data: {event}\n\n");
        for read in reads(event.as_bytes(), lengths) {
            meter.on_bytes(now, Bytes::copy_from_slice(read));
        }
    }
    meter.finish(now, StreamEnd::ClientLeft)
}

/// A chunk of a chat whose choice holds these members.
fn chunk(members: &Value) -> Value {
    let mut choice = members.clone();
    choice["index"] = json!(0);
    json!({"id": "c", "model": "m", "choices": [choice]})
}

/// The events that tell `pieces` on `wire`, one for each piece and, in some, one more.
fn told(wire: Wire, member: &str, telling: Telling, pieces: &[&str]) -> Vec<Value> {
    let all = |end: usize| pieces[..end].concat();
    let one = |delta: &str| match wire {
        Wire::Completions => chunk(&json!({"text": delta})),
        Wire::GenerateContent => {
            let part = json!({"text": delta, "thought": member != "content"});
            json!({"candidates": [{"index": 0, "content": {"parts": [part]}}]})
        }
        Wire::LlamaCompletion => json!({"content": delta, "index": 0, "stop": false}),
        Wire::OllamaChat => json!({"message": {"content": delta}, "done": false}),
        Wire::Messages => {
            json!({"type": "content_block_delta", "index": 0, "delta": {"text": delta}})
        }
        Wire::Responses => json!({"type": "response.output_text.delta", "output_index": 0,
            "content_index": 0, "delta": delta}),
        _ => chunk(&json!({"delta": {member: delta}})),
    };
    let whole = |end: usize| match wire {
        Wire::ChatCompletions => chunk(&json!({"message": {member: all(end)}})),
        Wire::Responses => json!({"type": "response.output_text.done", "output_index": 0,
            "content_index": 0, "text": all(end)}),
        _ => one(&all(end)),
    };
    let each = (1..=pieces.len()).map(|end| match telling {
        Telling::Deltas | Telling::ThenWhole => one(pieces[end - 1]),
        Telling::BesideWhole if wire == Wire::ChatCompletions => chunk(&json!({
            "delta": {member: pieces[end - 1]}, "message": {member: all(end)},
        })),
        Telling::BesideWhole => one(pieces[end - 1]),
        Telling::SoFar | Telling::SoFarThenWhole => one(&all(end)),
    });
    let last = matches!(telling, Telling::ThenWhole | Telling::SoFarThenWhole);
    each.chain(last.then(|| whole(pieces.len()))).collect()
}

const WORDS: [&str; 12] = [
    "The", " meter", " runs", " while", " the", " car", " waits", ",", " and", " the", " fare",
    " grows.",
];

const WIRES: [Wire; 7] = [
    Wire::ChatCompletions,
    Wire::Completions,
    Wire::GenerateContent,
    Wire::LlamaCompletion,
    Wire::OllamaChat,
    Wire::Messages,
    Wire::Responses,
];

#[test]
fn a_text_that_is_told_twice_counts_once_for_a_client_that_leaves() {
    for wire in WIRES {
        for telling in TELLINGS {
            for words in [4, 12] {
                let events = told(wire, "content", telling, &WORDS[..words]);
                let events: Vec<_> = events.iter().map(Value::to_string).collect();
                let found = timed(wire, &events, &[usize::MAX]);
                let case = format!("{wire:?} {telling:?} {words}");
                assert_eq!(found.output_text, WORDS[..words].concat(), "{case}");
                assert_eq!(found.output_text_bytes, found.output_text.len() as u64, "{case}");
                let Timing { output_chunks, time_to_last_token, gaps, .. } = found.timing;
                assert_eq!(output_chunks, words as u64, "{case}");
                assert_eq!(gaps.count(), words as u64 - 1, "{case}");
                let last = Duration::from_millis(100 * words as u64);
                assert_eq!(time_to_last_token, Some(last), "{case}");
                assert_eq!(found.timing.longest_stall, Some(Duration::from_millis(100)), "{case}");
            }
        }
    }
}

#[test]
fn what_is_so_far_is_what_was_told_once() {
    for telling in TELLINGS {
        let events = told(Wire::ChatCompletions, "content", telling, &WORDS);
        let started_at = epoch();
        let mut meter = Exchange::chat().meter(started_at);
        for (told, event) in (1..).zip(&events) {
            meter.on_bytes(started_at, Bytes::from(format!("data: {event}\n\n")));
            let so_far = meter.so_far(started_at).output_text;
            // Two texts are too few to tell what they hold.
            if told != 2 {
                assert_eq!(so_far, WORDS[..told.min(12)].concat(), "{telling:?}");
            }
        }
    }
}

#[test]
fn text_that_is_folded_away_is_still_known() {
    let line = "No two of these lines are the same as far as the meter can see them. ";
    let pieces: Vec<String> = (0..40).map(|number| format!("{number}: {line}")).collect();
    let pieces: Vec<&str> = pieces.iter().map(String::as_str).collect();
    for telling in TELLINGS {
        let mut meter = Exchange::chat().meter(epoch());
        let mut folded = String::new();
        for event in told(Wire::ChatCompletions, "content", telling, &pieces) {
            meter.on_bytes(epoch(), Bytes::from(format!("data: {event}\n\n")));
            if meter.kept_text_bytes() >= 512 {
                meter.fold_text(|text| folded.push_str(text));
            }
        }
        let found = meter.finish(epoch(), StreamEnd::ClientLeft);
        assert_eq!(folded + &found.output_text, pieces.concat(), "{telling:?}");
    }
}

#[test]
fn what_goes_beyond_what_was_told_is_new() {
    let delta = chunk(&json!({"delta": {"content": "To the"}})).to_string();
    for (whole, expected, chunks) in [
        ("To the", "To the", 1),
        ("To the station", "To the station", 2),
        ("  To the\n", "To the", 1),
        ("Elsewhere", "To the", 1),
    ] {
        let whole = chunk(&json!({"message": {"content": whole}})).to_string();
        let found = timed(Wire::ChatCompletions, &[delta.clone(), whole], &[usize::MAX]);
        assert_eq!((found.output_text.as_str(), found.timing.output_chunks), (expected, chunks));
    }
    let blanks = ["\n\nTo", " the ", "\n"].map(|text| chunk(&json!({"delta": {"content": text}})));
    let whole = chunk(&json!({"message": {"content": "To the"}}));
    let events = blanks.iter().chain([&whole]).map(Value::to_string).collect::<Vec<_>>();
    assert_eq!(timed(Wire::ChatCompletions, &events, &[usize::MAX]).output_text, "\n\nTo the \n");
}

#[test]
fn a_message_without_deltas_is_the_text() {
    for messages in [&["To the station"][..], &["To", "To the", "To the station"]] {
        let events = messages.iter().map(|text| chunk(&json!({"message": {"content": text}})));
        let events: Vec<_> = events.map(|event| event.to_string()).collect();
        let found = timed(Wire::ChatCompletions, &events, &[usize::MAX]);
        assert_eq!(found.output_text, "To the station");
    }
}

#[test]
fn reasoning_under_several_names_counts_once() {
    let details = json!([{"type": "reasoning.text", "text": "Hm.", "index": 0}]);
    let blocks = json!([{"type": "thinking", "thinking": "Hm.", "signature": "x"}]);
    for delta in [
        json!({"reasoning": "Hm.", "reasoning_content": "Hm."}),
        json!({"reasoning": "Hm.", "reasoning_content": ""}),
        json!({"reasoning": null, "reasoning_content": "Hm.", "content": ""}),
        json!({"reasoning": "Hm.", "reasoning_details": details}),
        json!({"reasoning_details": details, "thinking_blocks": blocks}),
        json!({"reasoning_content": "Hm.", "thinking_blocks": blocks, "content": null}),
        json!({"reasoning_details": details}),
        json!({"thinking_blocks": blocks}),
    ] {
        for seed in 0..8 {
            let event = write_in_order(&chunk(&json!({"delta": delta})), seed);
            let found = timed(Wire::ChatCompletions, &[event], &[usize::MAX]);
            assert_eq!(found.output_text, "Hm.", "{delta}");
            assert!(found.output_kinds.reasoning && !found.output_kinds.formed, "{delta}");
        }
    }
    let summary = json!({"reasoning_details": [{"type": "reasoning.summary", "summary": "Hm."}]});
    let event = chunk(&json!({"delta": summary})).to_string();
    let found = timed(Wire::ChatCompletions, &[event], &[usize::MAX]);
    assert!(found.output_kinds.formed && found.output_text == "Hm.");
}

#[test]
fn one_text_that_is_told_so_far_shows_that_all_are() {
    let events = (1..=12).map(|end| {
        let call = json!({"index": 0, "id": "c1", "function": {"name": "find", "arguments": "{}"}});
        chunk(&json!({"delta": {"reasoning_content": "Hm.", "content": WORDS[..end].concat(),
            "tool_calls": if end > 6 { json!([call]) } else { json!(null) }}}))
    });
    let events: Vec<_> = events.map(|event| event.to_string()).collect();
    let found = timed(Wire::ChatCompletions, &events, &[usize::MAX]);
    assert_eq!(found.output_text.matches("Hm.").count(), 1, "{}", found.output_text);
    assert_eq!(found.output_text.matches("find{}").count(), 1, "{}", found.output_text);
    assert_eq!(found.output_text.len(), WORDS.concat().len() + "Hm.find{}".len());
}

#[test]
fn text_that_repeats_itself_counts_as_often_as_it_stands() {
    for pieces in [
        &["ha", "ha", "haha"][..],
        &["ha", "haha", "hahaha", "hahahaha", "hahahahaha"],
        &[" really", " really", " really really"],
        &[" ", "  ", "   ", "    ", "     ", "      ", "       ", "        ", "         "],
        &["1", "12", "123"],
        &[" Kubernetes", " Kubernetes", " Kubernetes"],
        &["Yes, it is so.\n", "Yes, it is so.\n", "Yes, it is so.\n", "Yes, it is so.\n"],
    ] {
        for wire in WIRES {
            let events = told(wire, "content", Telling::Deltas, pieces);
            let events: Vec<_> = events.iter().map(Value::to_string).collect();
            let found = timed(wire, &events, &[usize::MAX]);
            assert_eq!(found.output_text, pieces.concat(), "{wire:?}");
            assert_eq!(found.timing.output_chunks, pieces.len() as u64, "{wire:?} {pieces:?}");
        }
    }
}

#[test]
fn choices_that_say_the_same_are_not_one() {
    let choice = |index: u64| json!({"index": index, "delta": {"content": "To the station"}});
    let event = json!({"choices": [choice(0), choice(1)]}).to_string();
    let found = timed(Wire::ChatCompletions, &[event], &[usize::MAX]);
    assert_eq!(found.output_text, "To the station".repeat(2));
    let whole = |index: u64| json!({"index": index, "message": {"content": "To the station"}});
    let body = json!({"choices": [whole(0), whole(1)]}).to_string();
    let json = Exchange { content_type: Some("application/json"), ..Exchange::chat() };
    assert_eq!(measure(json, &body).output_text, "To the station".repeat(2));
    let unnumbered = json!({"choices": [{"text": "To the station"}, {"text": "To the station"}]});
    let completions = Exchange { wire: Wire::Completions, ..json };
    let found = measure(completions, &unnumbered.to_string());
    assert_eq!(found.output_text, "To the station".repeat(2));
}

#[test]
fn a_response_that_is_told_in_deltas_parts_items_and_whole_counts_once() {
    let item = |text: &str| {
        json!({"type": "message", "id": "m", "role": "assistant",
            "content": [{"type": "output_text", "text": text}]})
    };
    let place = json!({"output_index": 1, "content_index": 0});
    let of = |kind: &str, members: Value| {
        let mut event = place.clone();
        event["type"] = json!(kind);
        for (key, value) in members.as_object().unwrap() {
            event[key] = value.clone();
        }
        event
    };
    let text = "To the station.";
    let deltas = ["To the", " station."]
        .map(|delta| of("response.output_text.delta", json!({"delta": delta})));
    let repeats = [
        of("response.output_text.done", json!({"text": text})),
        of("response.content_part.done", json!({"part": {"type": "output_text", "text": text}})),
        of("response.output_item.done", json!({"item": item(text)})),
        // The end numbers items otherwise.
        json!({"type": "response.completed", "response": {"output": [item(text)]}}),
    ];
    for told in [&deltas[..], &repeats[..1], &repeats[1..2], &repeats[2..3], &repeats[3..]] {
        let events = [
            item_added(),
            of(
                "response.content_part.added",
                json!({"part":
            {"type": "output_text", "text": ""}}),
            ),
        ];
        let events = events.iter().chain(told).chain(&repeats[..3]).map(Value::to_string);
        let found = timed(Wire::Responses, &events.collect::<Vec<_>>(), &[usize::MAX]);
        assert_eq!(found.output_text, text);
        assert_eq!(found.timing.output_chunks, told.len().min(2) as u64, "{told:?}");
    }
    let events: Vec<_> = deltas.iter().chain(&repeats).map(Value::to_string).collect();
    assert_eq!(timed(Wire::Responses, &events, &[usize::MAX]).output_text, text);
}

fn item_added() -> Value {
    json!({"type": "response.output_item.added", "output_index": 1,
        "item": {"type": "message", "content": []}})
}

#[test]
fn the_text_of_a_transcription_is_told_once() {
    let event = |kind: &str, key: &str, text: &str| json!({"type": kind, key: text}).to_string();
    let delta = |text| event("transcript.text.delta", "delta", text);
    let done = event("transcript.text.done", "text", "To the station");
    for events in [vec![delta("To the"), delta(" station"), done.clone()], vec![done]] {
        let found = timed(Wire::Transcriptions, &events, &[usize::MAX]);
        assert_eq!(found.output_text, "To the station");
    }
}

#[test]
fn the_last_event_of_tgi_repeats_the_text() {
    let token = |text: &str| json!({"index": 1, "token": {"id": 1, "text": text}});
    let mut last = token(" station");
    last["generated_text"] = json!("To the station");
    last["details"] = json!({"finish_reason": "eos_token", "generated_tokens": 2});
    let events = [token("To the").to_string(), last.to_string()];
    let found = timed(Wire::Generate, &events, &[usize::MAX]);
    assert_eq!((found.output_text.as_str(), found.timing.output_chunks), ("To the station", 2));
}

proptest! {
    #[test]
    fn however_a_text_is_told_it_is_measured_as_deltas_are(
        words in prop::collection::vec("[a-z]{2,6}[.,]? ", 4..24),
        member in prop::sample::select(vec!["content", "reasoning", "reasoning_content", "refusal"]),
        seed: u64,
        lengths in prop::collection::vec(1_usize..60, 1..6),
    ) {
        let pieces: Vec<&str> = words.iter().map(String::as_str).collect();
        for wire in WIRES {
            let write = |telling| {
                let events = told(wire, member, telling, &pieces);
                events.iter().map(|event| write_in_order(event, seed)).collect::<Vec<_>>()
            };
            let expected = timed(wire, &write(Telling::Deltas), &[usize::MAX]);
            prop_assert_eq!(&expected.output_text, &words.concat());
            for telling in TELLINGS {
                let found = timed(wire, &write(telling), &lengths);
                prop_assert_eq!(&found.output_text, &expected.output_text, "{:?}", telling);
                let mut timing = found.timing;
                timing.duration = expected.timing.duration;
                prop_assert_eq!(&timing, &expected.timing, "{:?} {:?}", wire, telling);
            }
        }
    }

    #[test]
    fn short_deltas_are_never_taken_for_repetitions(
        pieces in prop::collection::vec("[ab ]{1,7}", 0..40),
        seed: u64,
    ) {
        let pieces: Vec<&str> = pieces.iter().map(String::as_str).collect();
        for wire in WIRES {
            let events = told(wire, "content", Telling::Deltas, &pieces);
            let events: Vec<_> = events.iter().map(|event| write_in_order(event, seed)).collect();
            let found = timed(wire, &events, &[usize::MAX]);
            prop_assert_eq!(found.output_text, pieces.concat());
            prop_assert_eq!(found.timing.output_chunks, pieces.len() as u64);
        }
    }
}

#[test]
fn a_short_answer_that_ends_while_each_event_holds_all_so_far_counts_once() {
    for (texts, told) in [
        (&["One", "One two", "One two three"][..], "One two three"),
        (&["1", "12", "123"], "112123"),
        // Two of them may be chance, and so may a unit that is said again and again.
        (&["a", "ab"], "aab"),
        (&["ha", "haha", "hahahaha"], "hahahahahahaha"),
    ] {
        let events: Vec<_> = texts
            .iter()
            .map(|text| chunk(&json!({"delta": {"content": text}})).to_string())
            .collect();
        let found = timed(Wire::ChatCompletions, &events, &[1 << 10]);
        assert_eq!(found.output_text, told, "{texts:?}");
    }
}
