use serde_json::json;

use super::*;

const ROOM: usize = 1 << 16;

/// What a stream of these events says.
fn streamed(wire: Wire, events: &[Value]) -> Value {
    let mut transcript = Transcript::new(wire, ROOM);
    for event in events {
        transcript.event(event.to_string().as_bytes());
    }
    transcript.messages().into()
}

fn whole(wire: Wire, document: &Value) -> Value {
    let mut transcript = Transcript::new(wire, ROOM);
    transcript.document(document.to_string().as_bytes());
    transcript.messages().into()
}

fn chunk(index: u64, delta: &Value, reason: Option<&str>) -> Value {
    json!({"choices": [{"index": index, "delta": delta, "finish_reason": reason}]})
}

#[test]
fn a_chat_says_the_same_as_a_stream_and_as_a_document() {
    let call = |arguments: &str| json!({"index": 0, "function": {"arguments": arguments}});
    let events = [
        chunk(0, &json!({"role": "assistant", "content": ""}), None),
        chunk(0, &json!({"reasoning_content": "Hm"}), None),
        chunk(0, &json!({"reasoning_content": "."}), None),
        chunk(0, &json!({"content": "To the"}), None),
        chunk(1, &json!({"content": "No"}), Some("length")),
        chunk(0, &json!({"content": " map"}), None),
        chunk(
            0,
            &json!({"tool_calls": [{"index": 0, "id": "c1", "type": "function",
            "function": {"name": "map", "arguments": ""}}]}),
            None,
        ),
        chunk(0, &json!({"tool_calls": [call("{\"of\":")]}), None),
        chunk(0, &json!({"tool_calls": [call("\"Rome\"}")]}), None),
        chunk(0, &json!({}), Some("tool_calls")),
        json!({"choices": [], "usage": {}}),
    ];
    let said = json!([
        {"role": "assistant", "finish_reason": "tool_call", "parts": [
            {"type": "reasoning", "content": "Hm."},
            {"type": "text", "content": "To the map"},
            {"type": "tool_call", "id": "c1", "name": "map", "arguments": {"of": "Rome"}}]},
        {"role": "assistant", "finish_reason": "length", "parts": [
            {"type": "text", "content": "No"}]},
    ]);
    assert_eq!(streamed(Wire::ChatCompletions, &events), said);
    let document = json!({"choices": [
        {"index": 1, "message": {"role": "assistant", "content": "No"}, "finish_reason": "length"},
        {"index": 0, "finish_reason": "tool_calls", "message": {
            "role": "assistant", "reasoning": "Hm.", "content": "To the map", "tool_calls": [
                {"id": "c1", "function": {"name": "map", "arguments": "{\"of\":\"Rome\"}"}}]}},
    ]});
    assert_eq!(whole(Wire::ChatCompletions, &document), said);
    let completion = json!({"choices": [{"index": 0, "text": "Rome", "finish_reason": "stop"}]});
    let said = json!([{"role": "assistant", "finish_reason": "stop",
        "parts": [{"type": "text", "content": "Rome"}]}]);
    assert_eq!(whole(Wire::Completions, &completion), said);
}

#[test]
fn a_message_says_the_same_as_a_stream_and_as_a_document() {
    let delta = |index: u64, delta: Value| json!({"type": "content_block_delta", "index": index, "delta": delta});
    let block = |index: u64, block: Value| json!({"type": "content_block_start", "index": index, "content_block": block});
    let events = [
        json!({"type": "message_start", "message": {"role": "assistant", "content": []}}),
        block(0, json!({"type": "thinking", "thinking": ""})),
        delta(0, json!({"type": "thinking_delta", "thinking": "Hm."})),
        delta(0, json!({"type": "signature_delta", "signature": "x"})),
        block(1, json!({"type": "text", "text": ""})),
        delta(1, json!({"type": "text_delta", "text": "Look"})),
        delta(1, json!({"type": "text_delta", "text": "ing."})),
        block(2, json!({"type": "tool_use", "id": "t1", "name": "map", "input": {}})),
        delta(2, json!({"type": "input_json_delta", "partial_json": "{\"of\": "})),
        delta(2, json!({"type": "input_json_delta", "partial_json": "\"Rome\"}"})),
        json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}}),
        json!({"type": "message_stop"}),
    ];
    let said = json!([{"role": "assistant", "finish_reason": "tool_call", "parts": [
        {"type": "reasoning", "content": "Hm."},
        {"type": "text", "content": "Looking."},
        {"type": "tool_call", "id": "t1", "name": "map", "arguments": {"of": "Rome"}}]}]);
    assert_eq!(streamed(Wire::Messages, &events), said);
    let document = json!({"role": "assistant", "stop_reason": "tool_use", "content": [
        {"type": "thinking", "thinking": "Hm.", "signature": "x"},
        {"type": "text", "text": "Looking."},
        {"type": "tool_use", "id": "t1", "name": "map", "input": {"of": "Rome"}}]});
    assert_eq!(whole(Wire::Messages, &document), said);
}

#[test]
fn a_tool_of_the_providers_own_is_one_call_whole_or_in_pieces() {
    for (kind, name) in [("server_tool_use", "web_search"), ("mcp_tool_use", "echo")] {
        let block = |input: Value| json!({"type": kind, "id": "s1", "name": name, "input": input});
        let delta = |written: &str| {
            json!({"type": "content_block_delta", "index": 1,
                "delta": {"type": "input_json_delta", "partial_json": written}})
        };
        let events = [
            json!({"type": "content_block_start", "index": 1, "content_block": block(json!({}))}),
            delta(""),
            delta("{\"query\": "),
            delta("\"Rome\"}"),
            json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}}),
        ];
        let said = json!([{"role": "assistant", "finish_reason": "stop", "parts": [
            {"type": "server_tool_call", "id": "s1", "name": name,
             "server_tool_call": {"type": name, "input": {"query": "Rome"}}}]}]);
        assert_eq!(streamed(Wire::Messages, &events), said);
        let document = json!({"role": "assistant", "stop_reason": "end_turn",
            "content": [block(json!({"query": "Rome"}))]});
        assert_eq!(whole(Wire::Messages, &document), said);
    }
}

#[test]
fn a_response_says_the_same_as_a_stream_and_as_a_document() {
    let output = json!([
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "Hm."}]},
        {"type": "web_search_call", "id": "w1", "status": "completed"},
        {"type": "message", "role": "assistant",
         "content": [{"type": "output_text", "text": "Looking."}]},
        {"type": "function_call", "call_id": "c1", "name": "map", "arguments": "{\"of\":\"Rome\"}"},
    ]);
    let response = json!({"status": "completed", "output": output});
    let said = json!([{"role": "assistant", "finish_reason": "tool_call", "parts": [
        {"type": "reasoning", "content": "Hm."},
        {"type": "web_search_call"},
        {"type": "text", "content": "Looking."},
        {"type": "tool_call", "id": "c1", "name": "map", "arguments": {"of": "Rome"}}]}]);
    assert_eq!(whole(Wire::Responses, &response), said);
    let event = |kind: &str, index: u64, delta: &str| json!({"type": format!("response.{kind}.delta"), "output_index": index, "delta": delta});
    let events = [
        event("reasoning_summary_text", 0, "Hm."),
        json!({"type": "response.output_item.done", "output_index": 1, "item": output[1]}),
        event("output_text", 2, "Look"),
        event("output_text", 2, "ing."),
        json!({"type": "response.output_item.done", "output_index": 2, "item": output[2]}),
        json!({"type": "response.output_item.added", "output_index": 3,
            "item": {"type": "function_call", "call_id": "c1", "name": "map", "arguments": ""}}),
        event("function_call_arguments", 3, "{\"of\":"),
        event("function_call_arguments", 3, "\"Rome\"}"),
        json!({"type": "response.completed", "response": response}),
    ];
    assert_eq!(streamed(Wire::Responses, &events), said);
}

#[test]
fn engines_routes_of_their_own_are_understood() {
    let said = json!([{"role": "assistant", "finish_reason": "stop",
        "parts": [{"type": "text", "content": "To Rome"}]}]);
    for (wire, events) in [
        (
            Wire::OllamaChat,
            [
                json!({"message": {"content": "To"}, "done": false}),
                json!({"message": {"content": " Rome"}, "done": true, "done_reason": "stop"}),
            ],
        ),
        (
            Wire::OllamaGenerate,
            [json!({"response": "To"}), json!({"response": " Rome", "done_reason": "stop"})],
        ),
        (
            Wire::LlamaCompletion,
            [
                json!({"content": "To", "index": 0}),
                json!({"content": " Rome", "index": 0, "stop": true, "stop_type": "eos"}),
            ],
        ),
        // SGLang repeats all text in every event.
        (
            Wire::Generate,
            [
                json!({"text": "To", "meta_info": {"finish_reason": null}}),
                json!({"text": "To Rome", "meta_info": {"finish_reason": {"type": "stop"}}}),
            ],
        ),
        // TGI
        (
            Wire::Generate,
            [
                json!({"index": 1, "token": {"text": "To", "special": false}}),
                json!({"index": 2, "token": {"text": " Rome", "special": false}, "generated_text": "To Rome",
                "details": {"finish_reason": "eos_token"}}),
            ],
        ),
    ] {
        assert_eq!(streamed(wire, &events), said, "{wire:?}");
    }
}

#[test]
fn an_answer_that_was_cut_says_what_had_come() {
    let events = [chunk(0, &json!({"content": "To the"}), None)];
    let said = json!([{"role": "assistant", "finish_reason": "error",
        "parts": [{"type": "text", "content": "To the"}]}]);
    assert_eq!(streamed(Wire::ChatCompletions, &events), said);
    let mut transcript = Transcript::new(Wire::ChatCompletions, ROOM);
    transcript.event(events[0].to_string().as_bytes());
    transcript.close();
    transcript.event(chunk(0, &json!({"content": " rest"}), Some("stop")).to_string().as_bytes());
    assert_eq!(Value::from(transcript.messages()), said);
}

#[test]
fn text_is_kept_up_to_its_limit_and_not_up_to_half_a_word() {
    let mut transcript = Transcript::new(Wire::ChatCompletions, 100);
    for _ in 0..50 {
        let event = chunk(0, &json!({"content": "für sk-ab ABC"}), None);
        transcript.event(event.to_string().as_bytes());
    }
    assert!(transcript.bytes() <= 100);
    let said = Value::from(transcript.messages())[0]["parts"][0]["content"].clone();
    let said = said.as_str().unwrap().strip_suffix('…').unwrap().to_owned();
    assert!(said.len() > 80 && said.ends_with(' '), "{said:?}");
}

#[test]
fn no_answer_makes_more_pieces_than_are_kept() {
    let mut transcript = Transcript::new(Wire::ChatCompletions, ROOM);
    for index in 0..5_000 {
        let call = json!({"tool_calls": [{"index": index, "function": {"name": "n"}}]});
        transcript.event(chunk(index, &call, None).to_string().as_bytes());
    }
    assert!(transcript.messages().len() <= 256);
}

#[test]
fn what_is_no_answer_says_nothing() {
    for data in ["[DONE]", "", "{", "[]", "null", "{\"choices\": 7}", "{\"choices\": [7]}"] {
        let mut transcript = Transcript::new(Wire::ChatCompletions, ROOM);
        transcript.event(data.as_bytes());
        transcript.document(data.as_bytes());
        assert!(transcript.bytes() == 0, "{data}");
    }
}

/// The parts of one message that ended so.
fn said(reason: &str, parts: &Value) -> Value {
    json!([{"role": "assistant", "finish_reason": reason, "parts": parts}])
}

#[test]
fn gemini_says_thoughts_text_and_calls_in_events_and_in_a_list_of_them() {
    let candidate = |parts: Value, reason: Option<&str>| {
        json!({"candidates": [{"content": {"role": "model", "parts": parts},
            "finishReason": reason}]})
    };
    let events = [
        candidate(json!([{"text": "Hm", "thought": true}]), None),
        candidate(json!([{"text": ".", "thought": true}, {"text": "To the"}]), None),
        candidate(
            json!([{"text": " map"}, {"functionCall": {"name": "map", "args": {"of": "Rome"}}}]),
            Some("STOP"),
        ),
    ];
    let parts = json!([
        {"type": "reasoning", "content": "Hm."},
        {"type": "text", "content": "To the map"},
        {"type": "tool_call", "name": "map", "arguments": {"of": "Rome"}}]);
    assert_eq!(streamed(Wire::GenerateContent, &events), said("stop", &parts));
    assert_eq!(whole(Wire::GenerateContent, &events.to_vec().into()), said("stop", &parts));
}

#[test]
fn cohere_says_the_same_as_a_stream_and_as_a_document() {
    let event = |kind: &str, message: Value| json!({"type": kind, "index": 0, "delta": {"message": message}});
    let events = [
        event("content-delta", json!({"content": {"thinking": "Hm."}})),
        event("content-delta", json!({"content": {"text": "To the"}})),
        event("content-delta", json!({"content": {"text": " map"}})),
        event(
            "tool-call-start",
            json!({"tool_calls": {"id": "c1", "function": {"name": "map", "arguments": ""}}}),
        ),
        event("tool-call-delta", json!({"tool_calls": {"function": {"arguments": "{\"of\":1}"}}})),
        json!({"type": "message-end", "delta": {"finish_reason": "TOOL_CALL"}}),
    ];
    let parts = json!([
        {"type": "reasoning", "content": "Hm."},
        {"type": "text", "content": "To the map"},
        {"type": "tool_call", "id": "c1", "name": "map", "arguments": {"of": 1}}]);
    assert_eq!(streamed(Wire::CohereChat, &events), said("tool_call", &parts));
    let document = json!({"finish_reason": "TOOL_CALL", "message": {
        "content": [{"type": "thinking", "thinking": "Hm."}, {"type": "text", "text": "To the map"}],
        "tool_calls": [{"id": "c1", "function": {"name": "map", "arguments": "{\"of\":1}"}}]}});
    assert_eq!(whole(Wire::CohereChat, &document), said("tool_call", &parts));
}

#[test]
fn bedrock_says_the_same_as_a_stream_and_as_a_document() {
    let delta = |at: u64, delta: Value| json!({"contentBlockIndex": at, "delta": delta, "p": "ab"});
    let events = [
        delta(0, json!({"reasoningContent": {"text": "Hm."}})),
        delta(1, json!({"text": "To the"})),
        delta(1, json!({"text": " map"})),
        json!({"contentBlockIndex": 2, "start": {"toolUse": {"toolUseId": "c1", "name": "map"}}}),
        delta(2, json!({"toolUse": {"input": "{\"of\":"}})),
        delta(2, json!({"toolUse": {"input": "1}"}})),
        json!({"stopReason": "tool_use"}),
    ];
    let parts = json!([
        {"type": "reasoning", "content": "Hm."},
        {"type": "text", "content": "To the map"},
        {"type": "tool_call", "id": "c1", "name": "map", "arguments": {"of": 1}}]);
    assert_eq!(streamed(Wire::Converse, &events), said("tool_call", &parts));
    let document = json!({"stopReason": "tool_use", "output": {"message": {"content": [
        {"reasoningContent": {"reasoningText": {"text": "Hm.", "signature": "x"}}},
        {"text": "To the map"},
        {"toolUse": {"toolUseId": "c1", "name": "map", "input": {"of": 1}}}]}}});
    assert_eq!(whole(Wire::Converse, &document), said("tool_call", &parts));
}

#[test]
fn what_is_told_twice_is_said_once() {
    let call =
        json!({"index": 0, "id": "c1", "function": {"name": "map", "arguments": "{\"of\":1}"}});
    let message = json!({"reasoning": "Hm.", "content": "To the map", "tool_calls": [call]});
    let whole = json!({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]});
    let deltas = [
        json!({"reasoning": "Hm.", "reasoning_content": "Hm."}),
        json!({"content": "To the"}),
        json!({"content": " map"}),
        json!({"tool_calls": [call]}),
    ]
    .map(|delta| chunk(0, &delta, None));
    let so_far = ["To", "To the ", "To the old", "To the old map"]
        .map(|content| chunk(0, &json!({"content": content}), None));
    let parts = json!([
        {"type": "reasoning", "content": "Hm."},
        {"type": "text", "content": "To the map"},
        {"type": "tool_call", "id": "c1", "name": "map", "arguments": {"of": 1}}]);
    let events = [&deltas[..], std::slice::from_ref(&whole)].concat();
    assert_eq!(streamed(Wire::ChatCompletions, &events), said("stop", &parts));
    assert_eq!(streamed(Wire::ChatCompletions, &[whole]), said("stop", &parts));
    let parts = json!([{"type": "text", "content": "To the old map"}]);
    assert_eq!(streamed(Wire::ChatCompletions, &so_far), said("error", &parts));
    let parts = json!([{"type": "text", "content": "haha"}]);
    let laughs = ["ha", "ha"].map(|content| chunk(0, &json!({"content": content}), None));
    assert_eq!(streamed(Wire::ChatCompletions, &laughs), said("error", &parts));
}

#[test]
fn calls_that_the_last_event_repeats_are_made_once() {
    let call = |of: &str| json!({"functionCall": {"name": "map", "args": {"of": of}}});
    let event = |parts: Value| json!({"candidates": [{"content": {"parts": parts}}]});
    let events = [
        event(json!([call("Rome"), call("Rome")])),
        event(json!([call("Oslo")])),
        event(json!([call("Rome"), call("Rome"), call("Oslo")])),
    ];
    let part = |of: &str| json!({"type": "tool_call", "name": "map", "arguments": {"of": of}});
    let parts = json!([part("Rome"), part("Rome"), part("Oslo")]);
    assert_eq!(streamed(Wire::GenerateContent, &events), said("error", &parts));
}

#[test]
fn an_item_that_comes_only_whole_is_said() {
    let item = json!({"type": "function_call", "call_id": "c1", "name": "map",
        "arguments": "{\"of\":1}"});
    let done = json!({"type": "response.output_item.done", "output_index": 0, "item": item});
    let end = json!({"type": "response.completed",
        "response": {"status": "completed", "output": [item]}});
    let parts = json!([{"type": "tool_call", "id": "c1", "name": "map", "arguments": {"of": 1}}]);
    for events in [&[done.clone(), end.clone()][..], &[end]] {
        assert_eq!(streamed(Wire::Responses, events), said("tool_call", &parts));
    }
}
