//! Tools of agents: those of the client by name, and those that a provider runs in units. Each call
//! counts once, whether the answer is a stream or whole, and a session has the sum of its requests.

use std::collections::BTreeMap;
use std::fs;

use rust_decimal::Decimal;
use serde_json::{Value, json};

use crate::client::Client;
use crate::engine::Engine;
use crate::gateway::{Gateway, Setup, taximeter};
use crate::http::{json_answer, post, stream_answer};

/// Rates for tokens, searches and containers. Nothing else has one.
const PRICES: &str = "\
version: 2026-11-01
models:
- model: helper
  rates: {input: 1, output: 2, web_search_requests: 0.01, code_interpreter_sessions: 0.03}
";

/// An answer in both forms, and what is counted of it.
struct Told {
    route: [&'static str; 2],
    whole: Value,
    events: Vec<Value>,
    tools: Value,
    units: Value,
    /// What has no rate.
    unpriced: &'static [&'static str],
}

/// Anthropic's server tools, an MCP server, and tools of the client.
fn messages() -> Told {
    let server = |id: &str, name: &str| json!({"type": "server_tool_use", "id": id, "name": name, "input": {"q": "Rome"}});
    let result = |of: &str, kind: &str| json!({"type": kind, "tool_use_id": of, "content": []});
    let own = |id: &str, name: &str| json!({"type": "tool_use", "id": id, "name": name, "input": {"q": "Rome"}});
    let blocks = [
        server("s1", "web_search"),
        result("s1", "web_search_tool_result"),
        server("s2", "web_fetch"),
        result("s2", "web_fetch_tool_result"),
        server("s3", "code_execution"),
        result("s3", "code_execution_tool_result"),
        server("s4", "bash_code_execution"),
        result("s4", "bash_code_execution_tool_result"),
        server("s5", "text_editor_code_execution"),
        result("s5", "text_editor_code_execution_tool_result"),
        server("s6", "tool_search_tool_bm25"),
        json!({"type": "mcp_tool_use", "id": "m1", "name": "lookup", "server_name": "fares",
            "input": {"q": "Rome"}}),
        result("m1", "mcp_tool_result"),
        own("t1", "bash"),
        own("t2", "str_replace_based_edit_tool"),
        own("t3", "computer"),
        own("t4", "bash"),
    ];
    let used = json!({"input_tokens": 1000, "output_tokens": 500,
        "server_tool_use": {"web_search_requests": 1, "web_fetch_requests": 1}});
    let begun = json!({"input_tokens": 1000, "output_tokens": 1});
    let message = |content: &[Value], usage: &Value| {
        json!({"id": "msg_1", "type": "message", "role": "assistant", "model": "helper",
            "content": content, "stop_reason": "tool_use", "usage": usage})
    };
    let mut events = vec![json!({"type": "message_start", "message": message(&[], &begun)})];
    for (index, block) in blocks.iter().enumerate() {
        let mut start = block.clone();
        if start.get("input").is_some() {
            start["input"] = json!({});
        }
        events.push(json!({"type": "content_block_start", "index": index, "content_block": start}));
        if block.get("input").is_some() {
            let delta = json!({"type": "input_json_delta", "partial_json": "{\"q\":\"Rome\"}"});
            events.push(json!({"type": "content_block_delta", "index": index, "delta": delta}));
        }
        events.push(json!({"type": "content_block_stop", "index": index}));
    }
    events.push(
        json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": used}),
    );
    events.push(json!({"type": "message_stop"}));
    Told {
        route: ["/v1/messages?beta=true"; 2],
        whole: message(&blocks, &used),
        events,
        tools: json!({"bash": 2, "computer": 1, "mcp:fares/lookup": 1,
            "str_replace_based_edit_tool": 1}),
        units: json!({"code_execution_requests": "3", "mcp_calls": "1", "tool_search_calls": "1",
            "web_fetch_requests": "1", "web_search_requests": "1"}),
        unpriced: &["code_execution_requests"],
    }
}

/// Hosted tools, containers and shells of OpenAI, an MCP server, and tools of the client.
fn responses() -> Told {
    let items = [
        json!({"type": "web_search_call", "id": "w1", "action": {"type": "search", "query": "Rome"}}),
        json!({"type": "web_search_call", "id": "w2", "action": {"type": "open_page"}}),
        json!({"type": "file_search_call", "id": "f1", "queries": ["Rome"]}),
        json!({"type": "code_interpreter_call", "id": "c1", "code": "Rome", "container_id": "cntr_1"}),
        json!({"type": "code_interpreter_call", "id": "c2", "code": "Rome", "container_id": "cntr_1"}),
        json!({"type": "shell_call", "id": "s1", "action": {"commands": ["Rome"]},
            "environment": {"type": "container_reference", "container_id": "cntr_2"}}),
        json!({"type": "local_shell_call", "id": "l1", "action": {"type": "exec", "command": ["Rome"]}}),
        json!({"type": "computer_call", "id": "u1", "action": {"type": "click"}}),
        json!({"type": "mcp_list_tools", "id": "ml1", "server_label": "fares", "tools": []}),
        json!({"type": "mcp_approval_request", "id": "ma1", "server_label": "fares", "name": "lookup"}),
        json!({"type": "mcp_call", "id": "m1", "server_label": "fares", "name": "lookup",
            "arguments": "Rome", "status": "completed"}),
        json!({"type": "mcp_call", "id": "m2", "server_label": "fares", "name": "lookup",
            "arguments": "Rome", "status": "failed", "error": "Rome"}),
        json!({"type": "function_call", "id": "fc1", "call_id": "k1", "name": "exec", "arguments": "{}"}),
        json!({"type": "custom_tool_call", "id": "fc2", "call_id": "k2", "name": "apply_patch",
            "input": "Rome"}),
    ];
    let response = |output: &[Value], usage: Value| {
        json!({"id": "resp_1", "model": "helper", "status": "completed", "output": output,
            "tool_usage": {"web_search": {"num_requests": 1}}, "usage": usage})
    };
    let usage = json!({"input_tokens": 1000, "output_tokens": 500, "total_tokens": 1500});
    let whole = response(&items, usage);
    let mut events =
        vec![json!({"type": "response.created", "response": response(&[], Value::Null)})];
    for (index, item) in items.iter().enumerate() {
        for kind in ["response.output_item.added", "response.output_item.done"] {
            events.push(json!({"type": kind, "output_index": index, "item": item}));
        }
    }
    events.push(json!({"type": "response.completed", "response": whole}));
    Told {
        route: ["/v1/responses"; 2],
        whole,
        events,
        tools: json!({"apply_patch": 1, "exec": 1, "mcp:fares/lookup": 1}),
        units: json!({"code_interpreter_sessions": "2", "computer_calls": "1",
            "file_search_calls": "1", "local_shell_calls": "1", "mcp_calls": "1",
            "mcp_list_tools_calls": "1", "shell_calls": "1", "web_search_requests": "1"}),
        unpriced: &["file_search_calls"],
    }
}

/// Tools of the client, and a search that the usage tells.
fn chat() -> Told {
    let call = |index: usize, id: &str, name: &str| {
        json!({"index": index, "id": id, "type": "function",
            "function": {"name": name, "arguments": "{\"q\":\"Rome\"}"}})
    };
    let calls = [call(0, "a", "lookup"), call(1, "b", "lookup"), call(2, "c", "book")];
    let usage = json!({"prompt_tokens": 1000, "completion_tokens": 500, "total_tokens": 1500,
        "server_tool_use": {"web_search_requests": 1}});
    let head = |choice: Value, usage: &Value| json!({"id": "chatcmpl-1", "model": "helper", "choices": [choice], "usage": usage});
    let message = json!({"role": "assistant", "content": null, "tool_calls": calls});
    let whole = json!({"index": 0, "message": message, "finish_reason": "tool_calls"});
    let events = calls.iter().map(|call| {
        head(
            json!({"index": 0, "delta": {"tool_calls": [call]}, "finish_reason": null}),
            &Value::Null,
        )
    });
    let last = json!({"index": 0, "delta": {}, "finish_reason": "tool_calls"});
    Told {
        route: ["/v1/chat/completions"; 2],
        events: events.chain([head(last, &usage)]).collect(),
        whole: head(whole, &usage),
        tools: json!({"book": 1, "lookup": 2}),
        units: json!({"web_search_requests": "1"}),
        unpriced: &[],
    }
}

/// Functions of the client, and a search.
fn gemini() -> Told {
    let call = |name: &str| json!({"functionCall": {"name": name, "args": {"q": "Rome"}}});
    let candidate =
        |parts: Value| json!({"index": 0, "content": {"role": "model", "parts": parts}});
    let mut all = candidate(json!([call("lookup"), call("book")]));
    all["finishReason"] = "STOP".into();
    all["groundingMetadata"] = json!({"webSearchQueries": ["Rome"], "groundingChunks": [{"web": {"uri": "https://x.test"}}]});
    let mut last = all.clone();
    last["content"] = json!({"role": "model", "parts": [call("book")]});
    let usage = json!({"promptTokenCount": 1000, "candidatesTokenCount": 500,
        "totalTokenCount": 1500});
    let head = |candidate: Value| {
        json!({"responseId": "g1", "modelVersion": "helper", "candidates": [candidate],
            "usageMetadata": usage})
    };
    Told {
        route: [
            "/v1beta/models/helper:generateContent",
            "/v1beta/models/helper:streamGenerateContent?alt=sse",
        ],
        events: vec![head(candidate(json!([call("lookup")]))), head(last)],
        whole: head(all),
        tools: json!({"book": 1, "lookup": 1}),
        units: json!({"search_queries": "1", "web_search_requests": "1"}),
        unpriced: &[],
    }
}

fn decimal(text: &Value) -> Decimal {
    text.as_str().expect("a decimal").parse().expect("a decimal")
}

/// Adds numbers by name, which are numbers or texts.
fn add(sums: &mut BTreeMap<String, Decimal>, counts: &Value) {
    for (name, count) in counts.as_object().into_iter().flatten() {
        let count = count.as_u64().map_or_else(|| decimal(count), Decimal::from);
        *sums.entry(name.clone()).or_default() += count;
    }
}

/// What the command prints of the session.
fn opened(gateway: &Gateway, words: &[&str]) -> String {
    let place = ["--data-dir", gateway.data_dir().to_str().expect("UTF-8")].map(str::to_owned);
    let words = ["sessions", "tools"].iter().chain(words).map(|word| (*word).to_owned());
    let told = taximeter(words.chain(place));
    assert!(told.status.success(), "{}", String::from_utf8_lossy(&told.stderr));
    String::from_utf8(told.stdout).expect("UTF-8")
}

#[test]
fn each_call_of_a_tool_counts_once_in_a_stream_and_whole_and_in_the_sum_of_its_session() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let prices = folder.path().join("prices.yaml");
    fs::write(&prices, PRICES).expect("write the prices");
    let engine = Engine::start();
    let gateway = Setup::before(&engine)
        .upstream("dialect: openai, recount: off")
        .with(&format!("prices: {{overrides: [\"{}\"]}}", prices.display()))
        .start();
    let (mut tools, mut units) = (BTreeMap::new(), BTreeMap::new());
    let (mut known, mut unknown, mut count) = (Decimal::ZERO, 0, 0);
    for told in [messages(), responses(), chat(), gemini()] {
        let events: Vec<_> = told.events.iter().map(|event| format!("data: {event}\n\n")).collect();
        let answers = [json_answer(told.whole.to_string()), stream_answer(&events)];
        let mut costs = Vec::new();
        for (is_stream, (route, answer)) in
            [false, true].into_iter().zip(told.route.iter().zip(answers))
        {
            let ask = json!({"model": "helper", "max_tokens": 9, "stream": is_stream, "input": "Go",
                "messages": [{"role": "user", "content": "Go"}], "contents": []});
            let headers = "Connection: close\r\nx-session-id: tools\r\n";
            let mut client =
                Client::saying(gateway.address(), &post(route, headers, ask.to_string()));
            engine.answer_once(&answer);
            assert_eq!(client.answer().status(), 200);
            count += 1;
            let record = gateway.await_records(count).pop().expect("its record");
            let of = format!("{route} {is_stream}: {record:#}");
            assert_eq!(record["tools"], told.tools, "{of}");
            assert_eq!(record["usage"]["units"], told.units, "{of}");
            assert!(!record.to_string().contains("Rome"), "{of}");
            let reasons = record["cost_unknown"].as_array().cloned().unwrap_or_default();
            let mut unpriced: Vec<_> =
                reasons.iter().filter_map(|reason| reason["of"].as_str()).collect();
            unpriced.sort_unstable();
            assert_eq!(unpriced, told.unpriced, "{of}");
            let cost = if told.unpriced.is_empty() { "cost" } else { "cost_known" };
            assert_eq!(record[cost]["at_least"].as_bool().unwrap_or(false), cost != "cost", "{of}");
            costs.push(decimal(&record[cost]["amount"]));
            unknown += u64::from(cost != "cost");
            add(&mut tools, &record["tools"]);
            add(&mut units, &record["usage"]["units"]);
        }
        assert_eq!(costs[0], costs[1], "{:?}", told.route);
        known += costs[0] + costs[1];
    }
    let session: Value = serde_json::from_str(&opened(&gateway, &["--json"])).expect("JSON");
    let session = &session[0];
    let [mut all_tools, mut all_units] = [BTreeMap::new(), BTreeMap::new()];
    add(&mut all_tools, &session["tools"]);
    add(&mut all_units, &session["units"]);
    assert_eq!((all_tools, all_units), (tools, units));
    assert_eq!((session["requests"].as_u64(), decimal(&session["cost"])), (Some(8), known));
    assert_eq!(session["unknown_cost_requests"], unknown, "{session:#}");
    let table = opened(&gateway, &[]);
    for part in ["≥", "lookup × ", "mcp:fares/lookup × 4", "2 mcp_list_tools_calls"] {
        assert!(table.contains(part), "{part}: {table}");
    }
}
