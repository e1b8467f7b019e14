//! Tests which tools an answer asks the client to run: each call counts once, by the tool's name.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::told_twice::write_in_order;
use super::*;

fn named<'a>(tools: impl IntoIterator<Item = (&'a str, u64)>) -> BTreeMap<String, u64> {
    tools.into_iter().map(|(tool, calls)| (tool.to_owned(), calls)).collect()
}

fn stream(wire: Wire, events: &[Value]) -> (Exchange<'static>, String) {
    let events = events.iter().map(|event| format!("data: {event}\n\n"));
    (Exchange { wire, ..Exchange::chat() }, events.collect())
}

fn whole(wire: Wire, answer: &Value) -> (Exchange<'static>, String) {
    let exchange = Exchange { wire, content_type: Some("application/json"), ..Exchange::chat() };
    (exchange, answer.to_string())
}

/// A chunk of a chat with these calls in one choice.
fn chunk(choice: u64, calls: &Value) -> Value {
    json!({"id": "c", "choices": [{"index": choice, "delta": {"tool_calls": calls}}]})
}

fn call(index: u64, id: &str, name: &str) -> Value {
    json!({"index": index, "id": id, "type": "function",
        "function": {"name": name, "arguments": "{}"}})
}

#[test]
fn choices_of_a_chat_call_for_themselves() {
    let part = json!({"index": 0, "function": {"arguments": "{\"a\":"}});
    let (exchange, events) = stream(
        Wire::ChatCompletions,
        &[
            chunk(0, &json!([call(0, "c1", "find")])),
            chunk(1, &json!([call(0, "c1", "find")])),
            chunk(0, &json!([part])),
            chunk(1, &json!([call(1, "c2", "book")])),
            chunk(1, &json!([part])),
        ],
    );
    assert_eq!(measure(exchange, &events).tools, named([("book", 1), ("find", 2)]));
    let message = |calls: Value| json!({"message": {"content": null, "tool_calls": calls}});
    let answer = json!({"choices": [message(json!([call(0, "c1", "find")])),
        message(json!([call(0, "c1", "find"), call(1, "c2", "book")]))]});
    let (exchange, body) = whole(Wire::ChatCompletions, &answer);
    assert_eq!(measure(exchange, &body).tools, named([("book", 1), ("find", 2)]));
}

#[test]
fn an_id_that_two_calls_have_is_told_from_a_call_that_is_told_twice() {
    for (case, chunks, calls) in [
        ("each its own", vec![json!([call(0, "a", "find"), call(1, "b", "find")])], 2),
        ("one id for all", vec![json!([call(0, "a", "find"), call(1, "a", "find")])], 2),
        (
            "one id for all, in two events",
            vec![json!([call(0, "a", "find")]), json!([call(1, "a", "find")])],
            2,
        ),
        ("no id", vec![json!([call(0, "", "find")]), json!([call(1, "", "find")])], 2),
        (
            "one index for all",
            vec![json!([call(0, "a", "find")]), json!([call(0, "b", "find")])],
            2,
        ),
        ("again", vec![json!([call(0, "a", "find")]), json!([call(0, "a", "find")])], 1),
        ("again, no id", vec![json!([call(0, "", "find")]), json!([call(0, "", "find")])], 1),
    ] {
        let mut chunks: Vec<_> = chunks.iter().map(|calls| chunk(0, calls)).collect();
        let (exchange, events) = stream(Wire::ChatCompletions, &chunks);
        assert_eq!(measure(exchange, &events).tools, named([("find", calls)]), "{case}");
        // All of them once more at the end, as a message.
        if case.starts_with("each") || case.starts_with("one index") {
            let again = json!([call(0, "a", "find"), call(1, "b", "find")]);
            chunks.push(json!({"choices": [{"index": 0, "message": {"tool_calls": again}}]}));
            let (exchange, events) = stream(Wire::ChatCompletions, &chunks);
            assert_eq!(measure(exchange, &events).tools, named([("find", calls)]), "{case}");
        }
    }
}

#[test]
fn what_the_provider_runs_is_not_for_the_client() {
    let block = |kind: &str, name: &str| {
        json!({"type": kind, "id": format!("{kind}{name}"), "name": name, "input": {"a": 1},
            "server_name": "fares"})
    };
    let content = json!([
        block("server_tool_use", "web_search"),
        block("tool_use", "bash"),
        block("mcp_tool_use", "look"),
        block("server_tool_use", "advisor")
    ]);
    let (exchange, body) = whole(Wire::Messages, &json!({"id": "m", "content": content}));
    let found = measure(exchange, &body);
    assert_eq!(found.tools, named([("bash", 1), ("mcp:fares/look", 1)]));
    let units: Vec<_> = found.calls.keys().map(String::as_str).collect();
    assert_eq!(units, ["mcp_calls", "web_search_requests"]);
    let used = |kind: &str| json!({"toolUse": {"toolUseId": kind, "name": "look", "type": kind}});
    let content = json!([used("server_tool_use"), used("tool_use")]);
    let answer = json!({"output": {"message": {"content": content}}});
    let (exchange, body) = whole(Wire::Converse, &answer);
    assert_eq!(measure(exchange, &body).tools, named([("look", 1)]));
    let item = |kind: &str, name: &str| json!({"type": kind, "id": kind, "name": name});
    let output = json!([
        item("custom_tool_call", "x_keyword_search"),
        item("function_call", "x_keyword_search"),
        item("teleport_call", "home"),
        item("computer_call", "")
    ]);
    let (exchange, body) = whole(Wire::Responses, &json!({"id": "r", "output": output}));
    assert_eq!(measure(exchange, &body).tools, named([("x_keyword_search", 1)]));
}

#[test]
fn an_mcp_server_without_a_label_has_calls_all_the_same() {
    let call = |n: u64, label: Value| json!({"type": "mcp_call", "id": n, "server_label": label, "name": "look"});
    let output = json!([call(1, Value::Null), call(2, json!("")), call(3, json!("fares"))]);
    let (exchange, body) = whole(Wire::Responses, &json!({"id": "r", "output": output}));
    assert_eq!(measure(exchange, &body).tools, named([("mcp:fares/look", 1), ("mcp:look", 2)]));
}

#[test]
fn an_answer_that_calls_nothing_names_nothing() {
    for (wire, answer) in [
        (Wire::ChatCompletions, json!({"choices": [{"message": {"content": "find"}}]})),
        (Wire::ChatCompletions, json!({"choices": [{"message": {"tool_calls": []}}]})),
        (Wire::ChatCompletions, json!({"choices": [{"message": {"tool_calls": null}}]})),
        (
            Wire::ChatCompletions,
            json!({"choices": [{"message": {"tool_calls": [{"id": "c", "function": {}}]}}]}),
        ),
        (Wire::Messages, json!({"content": [{"type": "tool_use", "id": "c", "name": ""}]})),
        (Wire::Responses, json!({"output": [{"type": "function_call_output", "name": "find"}]})),
    ] {
        let (exchange, body) = whole(wire, &answer);
        assert_eq!(measure(exchange, &body).tools, BTreeMap::new(), "{answer}");
    }
}

#[test]
fn tools_that_an_answer_makes_up_share_a_name_and_long_names_are_cut() {
    let calls: Vec<_> = (0..200)
        .map(|n| call(n, &format!("c{n}"), &format!("tool{n}{}", "x".repeat(3000))))
        .collect();
    let (exchange, events) = stream(Wire::ChatCompletions, &[chunk(0, &json!(calls))]);
    let tools = measure(exchange, &events).tools;
    assert_eq!((tools.len(), tools.values().sum()), (33, 200_u64));
    assert!(tools.keys().all(|name| name.len() <= 64));
    assert_eq!(tools.get("other"), Some(&168));
}

#[test]
fn a_client_that_has_left_is_asked_for_nothing() {
    let (exchange, events) =
        stream(Wire::ChatCompletions, &[chunk(0, &json!([call(0, "c1", "find")]))]);
    let mut meter = exchange.meter(epoch());
    meter.on_head(200, exchange.content_type, None);
    meter.client_left();
    meter.on_bytes(epoch(), Bytes::from(events));
    assert_eq!(meter.finish(epoch(), StreamEnd::Clean).tools, BTreeMap::new());
}

#[test]
fn a_compaction_is_told_by_its_item_its_block_or_its_pass() {
    let item = json!({"type": "compaction", "id": "cmp", "encrypted_content": "x"});
    let usage = json!({"input_tokens": 9, "output_tokens": 2,
        "iterations": [{"type": "compaction", "input_tokens": 90, "output_tokens": 7},
            {"type": "message", "input_tokens": 9, "output_tokens": 2}]});
    let block = json!({"type": "compaction", "content": "So far"});
    let done = json!({"type": "response.output_item.done", "output_index": 0, "item": item});
    let text =
        json!({"type": "message", "content": [{"type": "output_text", "text": "compaction"}]});
    for (is_compaction, (exchange, answer)) in [
        (true, stream(Wire::Responses, std::slice::from_ref(&done))),
        (
            true,
            stream(
                Wire::Responses,
                &[json!({"type": "response.completed", "response": {"output": [text, item]}})],
            ),
        ),
        (
            true,
            whole(
                Wire::Responses,
                &json!({"id": "r", "object": "response.compaction", "output": [item]}),
            ),
        ),
        (false, whole(Wire::Responses, &json!({"id": "r", "output": [text]}))),
        (
            true,
            stream(
                Wire::Messages,
                &[json!({"type": "content_block_start", "index": 0, "content_block": block})],
            ),
        ),
        (true, whole(Wire::Messages, &json!({"id": "m", "content": [block]}))),
        (true, whole(Wire::Messages, &json!({"id": "m", "content": [], "usage": usage}))),
        (
            false,
            whole(
                Wire::Messages,
                &json!({"id": "m", "content": [{"type": "text", "text": "compaction"}]}),
            ),
        ),
    ] {
        let found = measure(exchange, &answer);
        // Its text is not all that was generated.
        let said = (found.is_compaction, found.has_unread_output, found.output_kinds.formed);
        assert_eq!(said, (is_compaction, is_compaction, is_compaction), "{answer}");
    }
}

proptest! {
    #[test]
    fn calls_of_a_chat_count_once_in_any_reads_and_in_any_order_of_members(
        calls in prop::collection::vec((0..3_u64, "[a-c]{1,2}"), 0..12),
        again: bool,
        seed: u64,
        lengths in prop::collection::vec(1_usize..80, 1..6),
    ) {
        let mut expected = BTreeMap::new();
        for (_, name) in &calls {
            *expected.entry(name.clone()).or_insert(0) += 1;
        }
        let told: Vec<_> = calls
            .iter()
            .zip(0..)
            .map(|((choice, name), at)| (*choice, call(at, &format!("c{at}"), name)))
            .collect();
        let mut events: Vec<_> =
            told.iter().map(|(choice, call)| chunk(*choice, &json!([call]))).collect();
        if again {
            let choice = |choice: u64| {
                let calls = told.iter().filter(|(of, _)| *of == choice).map(|(_, call)| call);
                json!({"index": choice, "message": {"tool_calls": calls.collect::<Vec<_>>()}})
            };
            events.push(json!({"choices": [choice(0), choice(1), choice(2)]}));
        }
        let events: String =
            events.iter().map(|event| format!("data: {}\n\n", write_in_order(event, seed))).collect();
        let ride = Exchange::chat().ride(epoch(), reads(events.as_bytes(), &lengths));
        prop_assert_eq!(ride.measurement.tools, expected);
    }
}
