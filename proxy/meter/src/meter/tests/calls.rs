//! Tests calls, pictures and sound as output: each begins an answer, and names count once.

use std::time::Duration;

use serde_json::{Value, json};

use super::told_twice::{timed, write_in_order};
use super::*;
use crate::measurement::Timing;

/// One call, as the events of a wire format tell it: the name comes first.
struct Told {
    wire: Wire,
    events: Vec<Value>,
    /// What of a whole answer says the same.
    document: Option<Value>,
}

fn delta(delta: &Value) -> Value {
    json!({"choices": [{"index": 0, "delta": delta}]})
}

fn chat_call(call: &Value) -> Value {
    delta(&json!({"tool_calls": [call]}))
}

/// A call of `find`, and its arguments in two pieces.
struct Call<'a> {
    pieces: [&'a str; 2],
    /// The arguments as text, and as an object.
    arguments: String,
    input: Value,
}

/// The same call on each wire format, with these arguments; empty pieces are left out.
fn calls(pieces: [&str; 2]) -> Vec<Told> {
    let arguments = pieces.concat();
    let input = serde_json::from_str(&arguments).unwrap_or_else(|_| json!({}));
    let call = Call { pieces, arguments, input };
    call.in_chats()
        .into_iter()
        .chain(call.in_blocks())
        .chain(call.in_items())
        .chain(call.whole())
        .collect()
}

impl Call<'_> {
    /// An event that names the call, one for each piece, and those that follow.
    fn events(&self, first: Value, next: impl Fn(&str) -> Value, last: Vec<Value>) -> Vec<Value> {
        let pieces = self.pieces.iter().filter(|piece| !piece.is_empty());
        std::iter::once(first).chain(pieces.map(|piece| next(piece))).chain(last).collect()
    }

    fn function(&self) -> Value {
        json!({"name": "find", "arguments": self.arguments})
    }

    fn in_chats(&self) -> Vec<Told> {
        let wire = Wire::ChatCompletions;
        let function = self.function();
        let named = |function: Value| {
            chat_call(&json!({"index": 0, "id": "c1", "type": "function", "function": function}))
        };
        let message = |message: Value| json!({"choices": [{"index": 0, "message": message}]});
        let whole = message(json!({"content": null,
            "tool_calls": [{"id": "c1", "type": "function", "function": function}]}));
        vec![
            Told {
                wire,
                events: self.events(
                    named(json!({"name": "find", "arguments": ""})),
                    |piece| chat_call(&json!({"index": 0, "function": {"arguments": piece}})),
                    vec![],
                ),
                document: Some(whole.clone()),
            },
            // The name and the id again in each event, and all again at the end.
            Told {
                wire,
                events: self.events(
                    named(json!({"name": "find"})),
                    |piece| named(json!({"name": "find", "arguments": piece})),
                    vec![whole],
                ),
                document: None,
            },
            Told {
                wire,
                events: self.events(
                    delta(&json!({"function_call": {"name": "find", "arguments": ""}})),
                    |piece| delta(&json!({"function_call": {"arguments": piece}})),
                    vec![],
                ),
                document: Some(message(json!({"function_call": function}))),
            },
            Told {
                wire,
                events: self.events(
                    chat_call(&json!({"index": 0, "id": "c1", "custom": {"name": "find"}})),
                    |piece| chat_call(&json!({"index": 0, "custom": {"input": piece}})),
                    vec![],
                ),
                document: None,
            },
        ]
    }

    fn in_blocks(&self) -> Vec<Told> {
        let (input, function) = (&self.input, self.function());
        let cohere = |call: Value| {
            json!({"type": "tool-call-delta", "index": 0,
                "delta": {"message": {"tool_calls": call}}})
        };
        vec![
            Told {
                wire: Wire::Messages,
                events: self.events(
                    json!({"type": "content_block_start", "index": 1, "content_block":
                        {"type": "tool_use", "id": "c1", "name": "find", "input": {}}}),
                    |piece| {
                        json!({"type": "content_block_delta", "index": 1,
                        "delta": {"type": "input_json_delta", "partial_json": piece}})
                    },
                    vec![json!({"type": "content_block_stop", "index": 1})],
                ),
                document: Some(json!({"content": [
                    {"type": "tool_use", "id": "c1", "name": "find", "input": input}]})),
            },
            Told {
                wire: Wire::Converse,
                events: self.events(
                    json!({"contentBlockIndex": 0,
                        "start": {"toolUse": {"toolUseId": "c1", "name": "find"}}}),
                    |piece| {
                        json!({"contentBlockIndex": 0,
                        "delta": {"toolUse": {"input": piece}}})
                    },
                    vec![],
                ),
                document: Some(json!({"output": {"message": {"content": [
                    {"toolUse": {"toolUseId": "c1", "name": "find", "input": input}}]}}})),
            },
            Told {
                wire: Wire::CohereChat,
                events: self.events(
                    cohere(json!({"id": "c1", "function": {"name": "find", "arguments": ""}})),
                    |piece| cohere(json!({"function": {"arguments": piece}})),
                    vec![],
                ),
                document: Some(json!({"message": {"tool_calls": [
                    {"id": "c1", "function": function}]}})),
            },
        ]
    }

    fn in_items(&self) -> Vec<Told> {
        let item = |arguments: &str| {
            json!({"type": "function_call", "id": "fc", "call_id": "c1", "name": "find",
                "arguments": arguments})
        };
        let whole = item(&self.arguments);
        let of = |kind: &str, key: &str, value: Value| json!({"type": kind, "output_index": 0, "item_id": "fc", key: value});
        let arguments = "response.function_call_arguments";
        vec![Told {
            wire: Wire::Responses,
            events: self.events(
                of("response.output_item.added", "item", item("")),
                |piece| of(&format!("{arguments}.delta"), "delta", json!(piece)),
                vec![
                    of(&format!("{arguments}.done"), "arguments", json!(self.arguments)),
                    of("response.output_item.done", "item", whole.clone()),
                    json!({"type": "response.completed", "response": {"output": [whole]}}),
                ],
            ),
            document: Some(json!({"output": [whole]})),
        }]
    }

    /// Calls that come whole: the last event may say them again.
    fn whole(&self) -> Vec<Told> {
        let input = &self.input;
        let gemini = json!({"candidates": [{"index": 0, "content": {"parts": [
            {"functionCall": {"name": "find", "args": input}}]}}]});
        let ollama = json!({"message": {"tool_calls": [
            {"function": {"name": "find", "arguments": input}}]}, "done": false});
        [(Wire::GenerateContent, gemini), (Wire::OllamaChat, ollama)]
            .map(|(wire, event)| Told {
                wire,
                events: vec![event.clone(), event.clone()],
                document: Some(event),
            })
            .into()
    }
}

#[test]
fn a_name_is_the_first_token_and_counts_once() {
    for told in calls(["{\"of\":", "\"Rome\"}"]) {
        let events: Vec<_> = told.events.iter().map(Value::to_string).collect();
        let found = timed(told.wire, &events, &[usize::MAX]);
        let case = format!("{:?} {}", told.wire, events[0]);
        assert_eq!(found.output_text, "find{\"of\":\"Rome\"}", "{case}");
        let Timing { time_to_first_token, output_chunks, .. } = found.timing;
        assert_eq!(time_to_first_token, Some(Duration::from_millis(100)), "{case}");
        let comes_whole = matches!(told.wire, Wire::GenerateContent | Wire::OllamaChat);
        assert_eq!(output_chunks, if comes_whole { 1 } else { 3 }, "{case}");
        assert!(found.output_kinds.formed, "{case}");
        assert_eq!(found.tools, [("find".to_owned(), 1)].into(), "{case}");
    }
}

#[test]
fn a_call_without_arguments_is_a_token_and_a_chunk() {
    for told in calls(["", ""]) {
        let events: Vec<_> = told.events.iter().map(Value::to_string).collect();
        let found = timed(told.wire, &events, &[usize::MAX]);
        let case = format!("{:?} {}", told.wire, events[0]);
        assert_eq!((found.output_text.as_str(), found.timing.output_chunks), ("find", 1), "{case}");
    }
}

#[test]
fn calls_that_differ_all_count() {
    let call = |id: &str, of: &str| {
        chat_call(&json!({"index": 0, "id": id,
            "function": {"name": "find", "arguments": format!("{{\"of\":\"{of}\"}}")}}))
    };
    // Some engines give each call the same index.
    let events = [call("c1", "Rome"), call("c2", "Rome")].map(|event| event.to_string());
    let found = timed(Wire::ChatCompletions, &events, &[usize::MAX]);
    assert_eq!(found.output_text.matches("find").count(), 2, "{}", found.output_text);
    assert_eq!(found.output_text.matches("Rome").count(), 2);

    let part = |of: &str| json!({"functionCall": {"name": "find", "args": {"of": of}}});
    let gemini = |parts: Value| json!({"candidates": [{"content": {"parts": parts}}]}).to_string();
    let events = [
        gemini(json!([part("Rome")])),
        gemini(json!([part("Oslo")])),
        gemini(json!([part("Rome"), part("Oslo")])),
    ];
    let found = timed(Wire::GenerateContent, &events, &[usize::MAX]);
    assert_eq!(found.output_text, "find{\"of\":\"Rome\"}find{\"of\":\"Oslo\"}");
    assert_eq!(found.timing.output_chunks, 2);
    let twice = [gemini(json!([part("Rome"), part("Rome")]))];
    let found = timed(Wire::GenerateContent, &twice, &[usize::MAX]);
    assert_eq!(found.output_text, "find{\"of\":\"Rome\"}".repeat(2));
}

#[test]
fn a_call_that_the_provider_runs_begins_the_answer() {
    let item = json!({"type": "web_search_call", "id": "ws", "status": "in_progress"});
    let event = |kind: &str| json!({"type": kind, "output_index": 0, "item": item}).to_string();
    let events = ["response.output_item.added", "response.output_item.done"].map(event);
    let found = timed(Wire::Responses, &events, &[usize::MAX]);
    assert_eq!((found.timing.output_chunks, found.output_text.as_str()), (1, ""));
    let mcp = json!({"type": "mcp_call", "id": "m", "name": "find", "arguments": "{\"of\":1}"});
    let event = json!({"type": "response.output_item.done", "output_index": 0, "item": mcp});
    let found = timed(Wire::Responses, &[event.to_string()], &[usize::MAX]);
    assert_eq!(found.output_text, "find{\"of\":1}");
}

#[test]
fn arguments_in_leaves_are_counted() {
    let call = |call: Value| {
        json!({"candidates": [{"content": {"parts": [{"functionCall": call}]}}]}).to_string()
    };
    let events = [
        call(json!({"name": "find", "id": "c1", "willContinue": true})),
        call(json!({"partialArgs": [{"jsonPath": "$.of", "stringValue": "Ro"}]})),
        call(json!({"partialArgs": [{"jsonPath": "$.of", "stringValue": "me"},
            {"jsonPath": "$.most", "numberValue": 3}]})),
        call(json!({})),
    ];
    let found = timed(Wire::GenerateContent, &events, &[usize::MAX]);
    assert_eq!((found.output_text.as_str(), found.timing.output_chunks), ("findRome3", 3));
}

#[test]
fn pictures_and_sound_are_tokens_and_pictures_are_shown_once() {
    let url = format!("data:image/png;base64,{}", "A".repeat(200));
    let images = json!([{"type": "image_url", "index": 0, "image_url": {"url": url}}]);
    let message = json!({"choices": [{"index": 0, "message": {"content": "", "images": images}}]});
    let sound = json!({"audio": {"id": "a", "data": "AAAA"}});
    let inline = |mime: &str| {
        json!({"candidates": [{"content": {"parts": [
        {"inlineData": {"mimeType": mime, "data": "AAAA"}}]}}]})
    };
    let drawn = json!({"type": "image_generation_call", "id": "i", "result": "AAAA"});
    let block = json!({"type": "response.output_item.done", "output_index": 0, "item": drawn});
    for (wire, events, chunks) in [
        (Wire::ChatCompletions, vec![delta(&json!({"images": images})), message.clone()], 1),
        (Wire::ChatCompletions, vec![message], 1),
        (Wire::ChatCompletions, vec![delta(&json!({"content": images}))], 1),
        (Wire::ChatCompletions, vec![delta(&sound), delta(&sound)], 2),
        (Wire::GenerateContent, vec![inline("image/png"), inline("image/png")], 1),
        (Wire::GenerateContent, vec![inline("audio/pcm"), inline("audio/pcm")], 2),
        (
            Wire::Responses,
            vec![
                block,
                json!({"type": "response.completed",
            "response": {"output": [drawn]}}),
            ],
            1,
        ),
        (
            Wire::Responses,
            vec![json!({"type": "response.image_generation_call.partial_image",
            "partial_image_b64": "AAAA"})],
            1,
        ),
        (Wire::OllamaChat, vec![json!({"message": {"images": ["AAAA"]}})], 1),
        (Wire::Converse, vec![json!({"delta": {"image": {"source": {"bytes": "AAAA"}}}})], 1),
    ] {
        let events: Vec<_> = events.iter().map(Value::to_string).collect();
        let found = timed(wire, &events, &[usize::MAX]);
        assert_eq!(
            (found.timing.output_chunks, found.output_text.as_str()),
            (chunks, ""),
            "{wire:?} {}",
            events[0]
        );
        let first = Some(Duration::from_millis(100));
        assert_eq!(found.timing.time_to_first_token, first, "{wire:?}");
        assert!(found.output_kinds.formed, "{wire:?}");
    }
}

proptest! {
    #[test]
    fn a_call_counts_the_same_whole_or_in_pieces_in_any_order_of_members(
        of in "[a-zA-Z]{1,12}",
        at in 1_usize..8,
        seed: u64,
        lengths in prop::collection::vec(1_usize..60, 1..6),
    ) {
        let all = json!({"of": of}).to_string();
        let (head, tail) = all.split_at(at);
        let expected = format!("find{all}");
        for told in calls([head, tail]) {
            let events: Vec<_> =
                told.events.iter().map(|event| write_in_order(event, seed)).collect();
            let found = timed(told.wire, &events, &lengths);
            prop_assert_eq!(&found.output_text, &expected, "{:?}", told.wire);
            prop_assert_eq!(found.tools.get("find"), Some(&1), "{:?}", told.wire);
            prop_assert_eq!(found.timing.time_to_first_token, Some(Duration::from_millis(100)));
            if let Some(document) = told.document {
                let json = Some("application/json");
                let exchange = Exchange { wire: told.wire, content_type: json, ..Exchange::chat() };
                let found = measure(exchange, &write_in_order(&document, seed));
                prop_assert_eq!(&found.output_text, &expected, "{:?}", told.wire);
                prop_assert_eq!(found.tools.get("find"), Some(&1), "{:?}", told.wire);
            }
        }
    }
}
