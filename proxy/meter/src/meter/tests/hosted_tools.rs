//! Tests the calls of hosted tools: each counts once, however it is told.

use std::collections::BTreeMap;

use rust_decimal::Decimal;
use serde_json::{Value, json};
use taximeter_pricing::Pass;

use super::told_twice::write_in_order;
use super::*;

/// An item of a response that stands for a tool, by a number.
fn item(tool: u64, id: u64) -> Value {
    let id_of = |kind: &str| format!("{kind}_{id}");
    match tool {
        0 => json!({"type": "web_search_call", "id": id_of("ws"),
            "action": {"type": "search", "query": "taxi"}}),
        1 => json!({"type": "web_search_call", "id": id_of("ws"),
            "action": {"type": "open_page", "url": "https://fares.test"}}),
        2 => json!({"type": "file_search_call", "id": id_of("fs"), "queries": ["fares"]}),
        3 => json!({"type": "code_interpreter_call", "id": id_of("ci"), "code": "7*2",
            "container_id": format!("cntr_{}", id % 2)}),
        4 => json!({"type": "image_generation_call", "id": id_of("ig"), "result": "QUJD"}),
        5 => json!({"type": "mcp_call", "id": id_of("mcp"), "server_label": format!("s{}", id % 2),
            "name": "look", "arguments": "{}"}),
        6 => {
            json!({"type": "function_call", "id": id_of("fc"), "call_id": id_of("c"),
            "name": "web_search", "arguments": "{}"})
        }
        7 => json!({"type": "computer_call", "id": id_of("cu"), "action": {"type": "click"}}),
        8 => json!({"type": "shell_call", "id": id_of("sh"),
            "environment": {"type": "container_reference", "container_id": "cntr_0"}}),
        9 => json!({"type": "shell_call", "id": id_of("sh"), "environment": {"type": "local"}}),
        10 => json!({"type": "teleport_call", "id": id_of("tp")}),
        11 => json!({"type": "local_shell_call", "id": id_of("ls")}),
        12 => json!({"type": "custom_tool_call", "id": id_of("ct"), "name": "x_keyword_search"}),
        14 => json!({"type": "apply_patch_call", "id": id_of("ap"), "call_id": id_of("c"),
            "operation": {"type": "delete_file", "path": "fares"}}),
        15 => json!({"type": "mcp_list_tools", "id": id_of("ml"), "server_label": "s0",
            "tools": [{"name": "look", "type": "mcp_call", "input_schema": {}}]}),
        16 => json!({"type": "custom_tool_call", "id": id_of("cc"), "call_id": id_of("cc"),
            "name": "patch", "input": "x"}),
        17 => json!({"type": "mcp_approval_request", "id": id_of("ma"), "server_label": "s0",
            "name": "look", "arguments": "{}"}),
        _ => json!({"type": "message", "id": id_of("m"), "content": [
            {"type": "output_text", "text": "Here."}]}),
    }
}

/// What these items are beside their tokens, how many pictures, and the calls by the tools' names.
fn expected(tools: &[u64]) -> (BTreeMap<String, Decimal>, u64, BTreeMap<String, u64>) {
    let count = |tool| tools.iter().filter(|one| **one == tool).count() as u64;
    let mut containers: Vec<_> = tools
        .iter()
        .zip(0_u64..)
        .filter_map(|(tool, id)| match tool {
            3 => Some(id % 2),
            8 => Some(0),
            _ => None,
        })
        .collect();
    containers.sort_unstable();
    containers.dedup();
    let units = [
        ("web_search_requests", count(0)),
        ("file_search_calls", count(2)),
        ("code_interpreter_sessions", containers.len() as u64),
        ("mcp_calls", count(5)),
        ("computer_calls", count(7)),
        ("shell_calls", count(8) + count(9)),
        ("local_shell_calls", count(11)),
        ("apply_patch_calls", count(14)),
        ("mcp_list_tools_calls", count(15)),
        ("teleport_calls", count(10)),
        ("x_search_calls", count(12)),
    ];
    let units = units.into_iter().filter(|(_, count)| *count > 0);
    let units = units.map(|(unit, count)| (unit.to_owned(), count.into())).collect();
    let asked = |server| {
        let calls = tools.iter().zip(0_u64..).filter(|(tool, id)| **tool == 5 && id % 2 == server);
        calls.count() as u64
    };
    let named = [
        ("web_search", count(6)),
        ("patch", count(16)),
        ("mcp:s0/look", asked(0)),
        ("mcp:s1/look", asked(1)),
    ];
    let named = named.into_iter().filter(|(_, count)| *count > 0);
    (units, count(4), named.map(|(tool, count)| (tool.to_owned(), count)).collect())
}

fn pictures(passes: &[Pass]) -> u64 {
    let drawn = passes.iter().filter_map(|pass| pass.usage.units.get("images"));
    drawn.sum::<Decimal>().try_into().unwrap()
}

fn responses(content_type: &str) -> Exchange<'_> {
    Exchange { wire: Wire::Responses, content_type: Some(content_type), ..Exchange::chat() }
}

/// A stream that tells these items. `times` says how often it repeats each end.
fn stream(items: &[Value], times: usize, is_whole: bool, seed: u64) -> String {
    let of = |kind: &str, at: usize, item: &Value| json!({"type": format!("response.output_item.{kind}"), "output_index": at, "item": item});
    let each = items.iter().enumerate().flat_map(|(at, item)| {
        let mut begun = item.clone();
        begun["status"] = json!("in_progress");
        let ends = std::iter::repeat_n(of("done", at, item), times);
        std::iter::once(of("added", at, &begun)).chain(ends)
    });
    let last = json!({"type": "response.completed",
        "response": {"id": "r", "status": "completed", "output": items}});
    let events = each.chain(is_whole.then_some(last));
    events.map(|event| format!("data: {}\n\n", write_in_order(&event, seed))).collect()
}

proptest! {
    #[test]
    fn each_call_of_a_response_counts_once_in_any_order_and_in_any_reads(
        tools in prop::collection::vec(0..18_u64, 0..12),
        times in 1..3_usize,
        has_ids: bool,
        seed: u64,
        lengths in prop::collection::vec(1_usize..80, 1..6),
    ) {
        let (units, drawn, named) = expected(&tools);
        let mut items: Vec<_> = tools.iter().zip(0..).map(|(tool, id)| item(*tool, id)).collect();
        if !has_ids {
            items.iter_mut().for_each(|item| { item.as_object_mut().unwrap().remove("id"); });
        }
        for is_whole in [true, false] {
            let stream = stream(&items, times, is_whole, seed);
            let found = responses("text/event-stream")
                .ride(epoch(), reads(stream.as_bytes(), &lengths))
                .measurement;
            prop_assert_eq!(&found.calls, &units, "whole: {}", is_whole);
            prop_assert_eq!(&found.tools, &named, "whole: {}", is_whole);
            prop_assert_eq!(pictures(&found.passes), drawn, "whole: {}", is_whole);
        }
        let whole = json!({"id": "r", "status": "completed", "output": items});
        let whole = write_in_order(&whole, seed);
        let found =
            responses("application/json").ride(epoch(), reads(whole.as_bytes(), &lengths));
        prop_assert_eq!(&found.measurement.calls, &units);
        prop_assert_eq!(&found.measurement.tools, &named);
        prop_assert_eq!(pictures(&found.measurement.passes), drawn);
    }

    #[test]
    fn blocks_of_hosted_tools_count_once_and_what_the_usage_tells_outranks_them(
        names in prop::collection::vec(
            prop::sample::select(vec!["web_search", "bash_code_execution", "teleport", "mcp"]),
            0..6),
        told in prop::option::of(0..9_u64),
        seed: u64,
        lengths in prop::collection::vec(1_usize..80, 1..6),
    ) {
        let block = |(id, name): (usize, &&str)| {
            let kind = if *name == "mcp" { "mcp_tool_use" } else { "server_tool_use" };
            json!({"type": kind, "id": format!("s{id}"), "name": name, "server_name": "fares",
                "input": {}})
        };
        let blocks: Vec<_> = names.iter().enumerate().map(block).collect();
        let count = |name| names.iter().filter(|one| **one == name).count() as u64;
        let usage = told.map_or_else(
            || json!({"input_tokens": 3, "output_tokens": 2}),
            |told| json!({"input_tokens": 3, "output_tokens": 2,
                "server_tool_use": {"web_search_requests": told}}),
        );
        let expected: BTreeMap<String, Decimal> = [
            ("web_search_requests", if told.is_some() { 0 } else { count("web_search") }),
            ("code_execution_requests", count("bash_code_execution")),
            ("teleport_calls", count("teleport")),
            ("mcp_calls", count("mcp")),
        ]
        .into_iter()
        .filter(|(_, count)| *count > 0)
        .map(|(unit, count)| (unit.to_owned(), count.into()))
        .collect();
        let starts = blocks.iter().enumerate().map(|(index, block)| {
            json!({"type": "content_block_start", "index": index, "content_block": block})
        });
        let begin = json!({"type": "message_start", "message": {"id": "m", "content": [],
            "usage": {"input_tokens": 3, "output_tokens": 1,
                "server_tool_use": {"web_search_requests": 0}}}});
        let end = [
            json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": usage}),
            json!({"type": "message_stop"}),
        ];
        let events = std::iter::once(begin).chain(starts).chain(end);
        let events: Vec<_> = events
            .map(|event| format!("data: {}\n\n", write_in_order(&event, seed)))
            .collect();
        let messages = Exchange { wire: Wire::Messages, ..Exchange::chat() };
        let ride = |stream: &str| messages.ride(epoch(), reads(stream.as_bytes(), &lengths));
        let found = ride(&events.concat()).measurement;
        let asked = (count("mcp") > 0).then(|| ("mcp:fares/mcp".to_owned(), count("mcp")));
        prop_assert_eq!(&found.tools, &asked.into_iter().collect());
        let reported = found.reported.clone().unwrap().usage.units;
        if let Some(told) = told {
            prop_assert_eq!(reported.get("web_search_requests"), Some(&told.into()));
            prop_assert_eq!(&found.calls, &expected);
        }
        // A zero that the start tells is no count of what follows.
        let cut = ride(&events[..=blocks.len()].concat()).measurement.calls;
        let searches = cut.get("web_search_requests").copied().unwrap_or_default();
        prop_assert_eq!(searches, count("web_search").into());
        let whole = json!({"id": "m", "content": blocks, "stop_reason": "end_turn", "usage": usage});
        let whole = write_in_order(&whole, seed);
        let exchange = Exchange { content_type: Some("application/json"), ..messages };
        prop_assert_eq!(measure(exchange, &whole).calls, expected);
    }

    #[test]
    fn queries_of_a_grounded_answer_count_once_however_they_come(
        queries in prop::collection::vec("[ab]{1,2}", 1..5),
        pieces in 1..5_usize,
        seed: u64,
    ) {
        let grounded = |queries: &[String]| {
            let told = json!({"candidates": [{"index": 0, "content": {"parts": [{"text": "a"}]},
                "groundingMetadata": {"webSearchQueries": queries}}]});
            write_in_order(&told, seed)
        };
        // All so far, again in each event.
        let ends = (1..=pieces).map(|piece| (piece * queries.len()).div_ceil(pieces));
        let events: String =
            ends.map(|end| format!("data: {}\n\n", grounded(&queries[..end]))).collect();
        let gemini = Exchange { wire: Wire::GenerateContent, ..Exchange::chat() };
        let expected: BTreeMap<String, Decimal> = [
            ("search_queries".to_owned(), queries.len().into()),
            ("web_search_requests".to_owned(), 1.into()),
        ]
        .into();
        prop_assert_eq!(measure(gemini, &events).calls, expected.clone());
        let whole = Exchange { content_type: Some("application/json"), ..gemini };
        prop_assert_eq!(measure(whole, &grounded(&queries)).calls, expected);
    }
}

fn units(found: &Measurement) -> Vec<String> {
    found.calls.iter().map(|(unit, count)| format!("{unit} {count}")).collect()
}

#[test]
fn what_the_provider_counts_outranks_the_items() {
    let response = |tool_usage: Value, status: &str| {
        json!({"id": "r", "status": status, "output": [item(0, 1), item(0, 2), item(4, 3)],
            "tools": [{"type": "image_generation", "model": "gpt-image-2"}],
            "tool_usage": tool_usage})
    };
    let whole = |tool_usage: Value| {
        let response = response(tool_usage, "completed").to_string();
        measure(responses("application/json"), &response)
    };
    let found = whole(json!({"web_search": {"num_requests": 1}, "file_search": {"num_calls": 0},
        "image_gen": {"input_tokens": 5, "output_tokens": 9, "images": 2}}));
    assert_eq!(units(&found), ["web_search_requests 1"]);
    let pass = &found.passes[0];
    assert_eq!(pass.model.as_deref(), Some("gpt-image-2"));
    assert_eq!((pass.usage.input_tokens, pass.usage.output_tokens), (Some(5), Some(9)));
    assert_eq!(pass.usage.modalities.as_ref().unwrap().output.image, Some(9));
    assert_eq!(pictures(&found.passes), 2);
    let found =
        whole(json!({"teleport": {"num_jumps": 4}, "swim": {"num_requests": 3}, "run": {}}));
    assert_eq!(units(&found), ["swim_calls 3", "teleport_calls 1", "web_search_requests 2"]);
    let found = whole(json!({"web_search": {"num_requests": 0}}));
    assert_eq!((units(&found).len(), pictures(&found.passes)), (0, 1));
    // Zeros at the beginning of a stream that is cut.
    let zeros = json!({"web_search": {"num_requests": 0},
        "image_gen": {"input_tokens": 0, "output_tokens": 0}});
    let event = json!({"type": "response.created", "response": response(zeros, "in_progress")});
    let found = measure(responses("text/event-stream"), &format!("data: {event}\n\n"));
    assert_eq!((units(&found), pictures(&found.passes)), (vec!["web_search_requests 2".into()], 1));
}

#[test]
fn a_picture_that_was_begun_and_a_container_that_was_used_count_where_the_stream_is_cut() {
    let begun = |kind: &str, status: &str, item: Value| {
        let mut item = item;
        item["status"] = json!(status);
        let event = json!({"type": format!("response.output_item.{kind}"), "item": item});
        format!("data: {event}\n\n")
    };
    let events =
        [item(4, 1), item(3, 2), item(0, 3)].map(|item| begun("added", "in_progress", item));
    let events = events.concat();
    let found = measure(responses("text/event-stream"), &events);
    assert_eq!(units(&found), ["code_interpreter_sessions 1"]);
    assert_eq!(pictures(&found.passes), 1);
    assert_eq!(found.passes[0].model.as_deref(), Some("image_generation"));
    let failed = events + &begun("done", "failed", item(4, 1));
    assert_eq!(measure(responses("text/event-stream"), &failed).passes, []);
}

#[test]
fn calls_of_an_answer_that_failed_or_is_incomplete_count() {
    for kind in ["failed", "incomplete"] {
        let event = json!({"type": format!("response.{kind}"), "response": {"id": "r",
            "status": kind, "output": [item(0, 1), item(2, 2)], "usage": null}});
        let found = measure(responses("text/event-stream"), &format!("data: {event}\n\n"));
        assert_eq!(units(&found), ["file_search_calls 1", "web_search_requests 1"], "{kind}");
    }
}

#[test]
fn code_that_ran_in_a_container_without_a_name_ran_in_one() {
    let code = |container: Value| json!({"type": "code_interpreter_call", "id": "c", "container_id": container});
    for containers in [vec![Value::Null], vec![Value::Null; 2], vec![Value::Null, json!("cntr_1")]]
    {
        let items: Vec<_> = containers.into_iter().map(code).collect();
        let whole = json!({"id": "r", "output": items}).to_string();
        let found = measure(responses("application/json"), &whole);
        assert_eq!(units(&found), ["code_interpreter_sessions 1"], "{whole}");
    }
}

#[test]
fn a_container_of_another_size_has_a_unit_of_its_own() {
    let sized = |tool: Value, item: Value| {
        let response = json!({"id": "r", "status": "completed", "tools": [tool], "output": [item]});
        units(&measure(responses("application/json"), &response.to_string()))
    };
    let code = |container: Value| json!({"type": "code_interpreter", "container": container});
    let shell = |memory: &str| json!({"type": "shell", "environment": {"type": "container_auto", "memory_limit": memory}});
    let auto = |memory: Value| json!({"type": "auto", "memory_limit": memory});
    for (tool, item, unit) in [
        (code(json!("cntr_0")), item(3, 0), "code_interpreter_sessions 1"),
        (code(auto(Value::Null)), item(3, 0), "code_interpreter_sessions 1"),
        (code(auto(json!("1g"))), item(3, 0), "code_interpreter_sessions 1"),
        (code(auto(json!("16g"))), item(3, 0), "code_interpreter_16g_sessions 1"),
        (code(auto(json!("4 G\n"))), item(3, 0), "code_interpreter_sessions 1"),
        (code(auto(json!("x".repeat(99)))), item(3, 0), "code_interpreter_sessions 1"),
        (shell("4G"), item(8, 0), "code_interpreter_4g_sessions 1"),
    ] {
        let case = tool.to_string();
        assert_eq!(sized(tool, item)[0], unit, "{case}");
    }
    // Nothing ran in it.
    assert_eq!(sized(code(auto(json!("4g"))), item(0, 1)), ["web_search_requests 1"]);
}

#[test]
fn tools_that_an_answer_makes_up_take_bounded_room() {
    let tool = |n: u64| json!({"type": format!("tool{n}{}_call", "x".repeat(3000)), "id": n});
    let items: Vec<_> = (0..2000).map(tool).collect();
    let whole = json!({"id": "r", "output": items}).to_string();
    let found = measure(responses("application/json"), &whole);
    assert!(found.calls.len() < 64, "{}", found.calls.len());
    assert!(found.calls.keys().all(|unit| unit.len() <= 64));
    assert!(found.calls.contains_key("other_tool_calls"));
}

#[test]
fn a_whole_chat_tells_its_tools_in_its_message_and_a_stream_in_its_deltas() {
    let tools = json!([{"index": 0, "type": "search"}, {"index": 1, "type": "visit"},
        {"index": 2, "type": "function"}, {"index": 3, "type": "search"}]);
    let cited = json!([{"type": "url_citation"}, {"type": "url_citation"}, {"type": "file"}]);
    let message = json!({"content": "a", "executed_tools": tools, "annotations": cited});
    let expected = ["visit_website_calls 1", "web_search_requests 2"];
    let whole = json!({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]});
    let json = Exchange { content_type: Some("application/json"), ..Exchange::chat() };
    assert_eq!(units(&measure(json, &whole.to_string())), expected);
    let delta = |delta: Value| format!("data: {}\n\n", json!({"choices": [{"delta": delta}]}));
    let stream = [
        delta(json!({"executed_tools": [{"index": 0, "type": "search", "arguments": "{}"}]})),
        delta(json!({"executed_tools": [{"index": 0, "type": "search", "output": "x"}]})),
        delta(json!({"executed_tools": [{"index": 1, "type": "visit"}]})),
        delta(json!({"content": "a", "annotations": cited})),
        delta(json!({"content": "a", "annotations": cited})),
        delta(json!({"executed_tools": [{"index": 3, "type": "search"}]})),
    ];
    assert_eq!(units(&measure(Exchange::chat(), &stream.concat())), expected);
    let only_cited = delta(json!({"content": "a", "annotations": cited}));
    assert_eq!(units(&measure(Exchange::chat(), &only_cited)), ["web_search_requests 1"]);
    let not_cited = delta(json!({"content": "a", "annotations": []}));
    assert_eq!(units(&measure(Exchange::chat(), &not_cited)), [""; 0]);
}

#[test]
fn a_cost_in_the_head_counts_where_the_body_has_none() {
    let asked = |header: &str, body: &str| {
        let json = Exchange { content_type: Some("application/json"), ..Exchange::chat() };
        let mut meter = json.meter(epoch());
        meter.on_head(200, json.content_type, None);
        meter.on_headers([("x-litellm-response-cost", header)]);
        meter.on_bytes(epoch(), Bytes::copy_from_slice(body.as_bytes()));
        meter.finish(epoch(), StreamEnd::Clean).reported_cost
    };
    assert_eq!(asked("0.0042", r#"{"choices":[]}"#).as_deref(), Some("0.0042"));
    assert_eq!(asked("0.0042", r#"{"usage":{"cost":1,"total_tokens":1}}"#).as_deref(), Some("1"));
    assert_eq!(asked("None", r#"{"choices":[]}"#), None);
    assert_eq!(asked("-1", r#"{"choices":[]}"#), None);
}

#[test]
fn a_cost_without_tokens_is_kept() {
    let body = r#"{"created":1,"data":[{"url":"u"}],"usage":{"cost_in_usd_ticks":200000000}}"#;
    let images =
        Exchange { wire: Wire::Images, content_type: Some("application/json"), ..Exchange::chat() };
    let found = measure(images, body);
    assert_eq!(found.reported_cost.as_deref(), Some("0.02"));
    assert_eq!(found.counted_units, [("images".to_owned(), 1.into())].into());
}
