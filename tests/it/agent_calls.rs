//! What coding agents call beside their turns: what they ask at their start, conversations, counts
//! of tokens, responses that they go on reading, compactions.

use std::fs;
use std::path::Path;

use rust_decimal::Decimal;
use serde_json::{Value, json};

use crate::client::Client;
use crate::engine::Engine;
use crate::gateway::{Gateway, Setup, taximeter};
use crate::http::{Message, answer, bare, json_answer, post, stream_answer};
use crate::unused::assert_unused;

const KEY: &str = "Authorization: Bearer sk-client\r\n";

fn gateway(engine: &Engine) -> Gateway {
    Setup::before(engine).upstream("dialect: openai").start()
}

/// What the engine got of a request and what the client got of the answer, which is passed as it is.
fn passed(gateway: &Gateway, engine: &Engine, request: &[u8], reply: &str) -> Message {
    let mut client = Client::saying(gateway.address(), request);
    let got = engine.answer_once(&json_answer(reply));
    let answer = client.answer();
    assert_eq!((answer.status(), answer.text()), (200, reply), "{got:?}");
    got
}

/// The record of a request with this answer.
fn recorded(
    gateway: &Gateway,
    engine: &Engine,
    (target, body): (&str, &str),
    reply: &[u8],
) -> Value {
    let before = gateway.records().len();
    let mut client =
        Client::saying(gateway.address(), &post(target, "Connection: close\r\n", body));
    let got = engine.answer_once(reply);
    assert_eq!(got.first_line, format!("POST {target} HTTP/1.1"));
    // Where a stream of a chat does not ask for usage, the gateway does.
    assert!(got.text() == body || got.text().contains("include_usage"), "{got:?}");
    assert_eq!(client.answer().status(), 200);
    gateway.await_records(before + 1).pop().expect("its record")
}

fn money(record: &Value) -> Decimal {
    record["cost"]["amount"].as_str().expect("a cost").parse().expect("a decimal")
}

#[test]
fn what_a_client_asks_at_its_start_gets_the_engine_s_answer() {
    let engine = Engine::start();
    for passthrough in ["passthrough: off", "passthrough: on"] {
        let gateway = Setup::before(&engine)
            .upstream("dialect: anthropic, credential: sk-operator")
            .with("tenants: {unknown: refuse}")
            .with(passthrough)
            .start();
        for target in ["/", "/api/hello"] {
            let mut client = Client::saying(gateway.address(), &bare("HEAD", target, KEY));
            let got = engine.answer_once(
                b"HTTP/1.1 204 No Content\r\nx-engine: here\r\nConnection: close\r\n\r\n",
            );
            assert_eq!(got.first_line, format!("HEAD {target} HTTP/1.1"));
            assert_eq!(got.header("authorization"), None, "{got:?}");
            let head = client.head();
            assert_eq!((head.status(), head.header("x-engine")), (204, Some("here")), "{target}");
        }
        assert_eq!(gateway.records().len(), 0);
    }
    let gateway = gateway(&engine);
    for target in [
        "/v1/models?limit=1000",
        "/v1/models?client_version=0.169.0",
        "/inference-profiles?type=SYSTEM_DEFINED",
    ] {
        let list = r#"{"object":"list","data":[{"id":"m"}]}"#;
        let got = passed(&gateway, &engine, &bare("GET", target, KEY), list);
        assert_eq!(got.first_line, format!("GET {target} HTTP/1.1"));
    }
    assert_eq!(gateway.records().len(), 0);
    engine.assert_untouched();
}

#[test]
fn conversations_pass_and_leave_no_record() {
    let engine = Engine::start();
    let gateway = gateway(&engine);
    let item = r#"{"items":[{"type":"message","role":"user","content":"Hi"}]}"#;
    for prefix in ["/v1", "", "/openai/v1"] {
        for (method, path, body) in [
            ("POST", "/conversations", item),
            ("GET", "/conversations/conv_1", ""),
            ("POST", "/conversations/conv_1", r#"{"metadata":{}}"#),
            ("GET", "/conversations/conv_1/items?limit=2&order=asc", ""),
            ("POST", "/conversations/conv_1/items?include[]=x", item),
            ("GET", "/conversations/conv_1/items/msg_1", ""),
            ("DELETE", "/conversations/conv_1/items/msg_1", ""),
            ("DELETE", "/conversations/conv_1", ""),
        ] {
            let target = format!("{prefix}{path}");
            let request =
                if method == "POST" { post(&target, "", body) } else { bare(method, &target, "") };
            let got = passed(&gateway, &engine, &request, r#"{"id":"conv_1"}"#);
            assert_eq!(
                (got.first_line.as_str(), got.text()),
                (&*format!("{method} {target} HTTP/1.1"), body)
            );
        }
    }
    assert_eq!(gateway.ask(&bare("GET", "/v1/conversations", "")).status(), 405);
    assert_eq!(gateway.ask(&bare("GET", "/v1/conversations/c/items/m/n", "")).status(), 404);
    assert_eq!(gateway.records().len(), 0);
}

#[test]
fn every_way_to_count_tokens_passes_and_is_recorded_as_free() {
    let engine = Engine::start();
    let gateway = gateway(&engine);
    for target in [
        "/v1/messages/count_tokens?beta=true",
        "/v1/responses/input_tokens?beta=true",
        "/v1/chat/completions/input_tokens",
        "/v1/tokenize",
        "/v1/tokenizers/estimate-token-count",
        "/v1beta/models/gemini-2.5-flash:countTokens?alt=json",
        "/model/anthropic.claude-haiku-4-5/count-tokens",
    ] {
        let body = r#"{"model":"gpt-4o-mini","input":"Where?"}"#;
        let session = "x-session-id: s-1\r\n";
        let reply = r#"{"input_tokens":11}"#;
        let before = gateway.records().len();
        let got = passed(&gateway, &engine, &post(target, session, body), reply);
        assert_eq!(
            (got.first_line.as_str(), got.text()),
            (&*format!("POST {target} HTTP/1.1"), body)
        );
        let record = gateway.await_records(before + 1).pop().expect("its record");
        assert_unused(&record);
        let said = ["operation", "end", "session"].map(|name| &record[name]);
        assert_eq!(said, ["count_tokens", "complete", "s-1"], "{record}");
    }
    let dir = gateway.data_dir();
    let dir = dir.to_str().expect("a path in UTF-8");
    let sessions = taximeter(["sessions", "--json", "--data-dir", dir]).stdout;
    let sessions: Value = serde_json::from_slice(&sessions).expect("JSON");
    let total = &sessions["total"];
    assert_eq!((&total["requests"], &total["failed_requests"]), (&json!(7), &json!(0)), "{total}");
    assert_eq!((&total["cost"], &total["unknown_cost_requests"]), (&json!("0"), &json!(0)));
}

#[test]
fn a_query_changes_nothing_of_how_a_turn_is_measured() {
    let engine = Engine::start();
    let gateway = gateway(&engine);
    let asks = [
        (
            "/v1/messages?beta=true",
            r#"{"model":"claude-haiku-4-5","max_tokens":9,"messages":[{"role":"user","content":"a"}]}"#,
            r#"{"id":"msg_1","model":"claude-haiku-4-5","content":[{"type":"text","text":"a"}],
                "stop_reason":"end_turn","usage":{"input_tokens":7,"output_tokens":3}}"#,
        ),
        (
            "/v1/responses?beta=true&x=%2F..",
            r#"{"model":"gpt-4o-mini","input":"a"}"#,
            r#"{"id":"resp_1","model":"gpt-4o-mini","status":"completed","output":[],
                "usage":{"input_tokens":7,"output_tokens":3}}"#,
        ),
    ];
    for (target, body, reply) in asks {
        let record = recorded(&gateway, &engine, (target, body), &json_answer(reply));
        let route = target.split('?').next();
        assert_eq!(record["route"].as_str(), route);
        let usage = &record["usage"];
        assert_eq!((&usage["input_tokens"], &usage["output_tokens"]), (&json!(7), &json!(3)));
    }
}

#[test]
fn a_stream_that_is_gone_on_with_is_not_charged_again() {
    let engine = Engine::start();
    let gateway = gateway(&engine);
    let response = json!({"id": "resp_1", "status": "completed", "model": "gpt-4o-mini",
        "output": [], "usage": {"input_tokens": 1000, "output_tokens": 100}});
    let event = |kind: &str| {
        format!("event: {kind}\ndata: {}\n\n", json!({"type": kind, "response": response}))
    };
    let done = event("response.completed");
    let body = r#"{"model":"gpt-4o-mini","input":"a","stream":true}"#;
    let record = recorded(&gateway, &engine, ("/v1/responses", body), &stream_answer(&[&done]));
    assert_eq!(record["usage"]["input_tokens"], 1000);
    gateway.await_metric("taximeter_cost_total");
    let cost = || {
        let metrics = gateway.metrics();
        let line = metrics.lines().find(|line| line.starts_with("taximeter_cost_total{"));
        line.map(str::to_owned)
    };
    let once = cost();
    assert!(once.is_some());
    for target in [
        "/v1/responses/resp_1?stream=true",
        "/v1/responses/resp_1?stream=true&starting_after=7",
        "/v1/responses/resp_1",
    ] {
        let mut client =
            Client::saying(gateway.address(), &bare("GET", target, "Connection: close\r\n"));
        let reply = if target.contains("stream") {
            stream_answer(&[&done])
        } else {
            json_answer(response.to_string())
        };
        let got = engine.answer_once(&reply);
        assert_eq!(got.first_line, format!("GET {target} HTTP/1.1"));
        let shown = client.answer();
        assert!(shown.text().contains("resp_1"), "{shown:?}");
    }
    assert_eq!(gateway.records(), [record]);
    assert_eq!(cost(), once);
}

#[test]
fn a_compaction_is_charged_where_it_is_asked_for_and_in_a_stream() {
    let engine = Engine::start();
    let gateway = gateway(&engine);
    let usage = json!({"input_tokens": 100_000, "output_tokens": 1_000, "total_tokens": 101_000});
    let item = json!({"id": "cmp_1", "type": "compaction", "encrypted_content": "x"});
    let response = json!({"id": "resp_1", "status": "completed", "model": "gpt-4o-mini",
        "output": [item], "usage": usage});
    let events = [
        json!({"type": "response.output_item.done", "output_index": 0, "item": item}),
        json!({"type": "response.completed", "response": response}),
    ];
    let events: Vec<_> = events.iter().map(|event| format!("data: {event}\n\n")).collect();
    let events: Vec<_> = events.iter().map(String::as_str).collect();
    let trigger = r#"{"model":"gpt-4o-mini","stream":true,"input":[
        {"type":"message","role":"user","content":"a"},{"type":"compaction_trigger"}]}"#;
    let whole = json!({"id": "resp_1", "object": "response.compaction", "output": [item],
        "usage": usage});
    for (target, body, reply) in [
        ("/v1/responses", trigger, stream_answer(&events)),
        (
            "/v1/responses/compact",
            r#"{"model":"gpt-4o-mini","input":"a"}"#,
            json_answer(whole.to_string()),
        ),
        (
            "/responses/compact?beta=true",
            r#"{"model":"gpt-4o-mini","input":"a"}"#,
            json_answer(whole.to_string()),
        ),
    ] {
        let record = recorded(&gateway, &engine, (target, body), &reply);
        assert_eq!((&record["end"], &record["status"]), (&json!("complete"), &json!(200)));
        assert_eq!(record["kind"], "compaction", "{record:#}");
        let counts = &record["usage"];
        assert_eq!(
            (&counts["source"], &counts["input_tokens"], &counts["output_tokens"]),
            (&json!("reported"), &json!(100_000), &json!(1_000))
        );
        assert!(!counts["flags"].as_array().expect("flags").contains(&json!("differs")));
        // 100,000 × 0.15 + 1,000 × 0.60 USD a million.
        assert_eq!(money(&record), "0.0156".parse().expect("a decimal"), "{record:#}");
    }
    // Where nothing is reported, what it has become is not nothing.
    let silent = json!({"id": "resp_1", "object": "response.compaction", "output": [item]});
    let ask = ("/v1/responses/compact", r#"{"model":"gpt-4o-mini","input":"a"}"#);
    let record = recorded(&gateway, &engine, ask, &json_answer(silent.to_string()));
    assert_eq!((&record["usage"]["output_tokens"], &record["cost"]), (&Value::Null, &Value::Null));
    // An engine that has no such route says so, and nothing is owed.
    let mut client = Client::saying(gateway.address(), &post(ask.0, "", ask.1));
    engine.answer_once(&answer("404 Not Found", "application/json", r#"{"error":{}}"#));
    assert_eq!(client.answer().status(), 404);
    let record = gateway.await_records(5).pop().expect("its record");
    assert_eq!(money(&record), Decimal::ZERO);
    assert_eq!(record["kind"], "compaction", "{record:#}");
    // A turn in which the provider has compacted besides is a turn.
    let text = json!({"type": "message", "content": [{"type": "output_text", "text": "Hi"}]});
    let besides = json!({"id": "resp_1", "status": "completed", "model": "gpt-4o-mini",
        "output": [item, text], "usage": usage});
    let ask = ("/v1/responses", r#"{"model":"gpt-4o-mini","input":"a"}"#);
    let record = recorded(&gateway, &engine, ask, &json_answer(besides.to_string()));
    assert_eq!(record["kind"], Value::Null, "{record:#}");
}

fn fixture(name: &str) -> String {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures"));
    fs::read_to_string(folder.join(name)).expect("a fixture")
}

/// What these dialects call, by their fixtures.
fn called() -> [(&'static str, &'static str, &'static str, Value, Value); 6] {
    let agent = json!({"apply_patch": 1, "exec": 2, "mcp:fares/lookup": 1, "spawn_agent": 1});
    let units = json!({"apply_patch_calls": "1", "code_interpreter_sessions": "1",
        "computer_calls": "1", "mcp_calls": "1", "mcp_list_tools_calls": "1", "shell_calls": "2"});
    [
        (
            "openai",
            "/v1/responses",
            "openai/responses_agent_tools.sse",
            agent.clone(),
            units.clone(),
        ),
        ("openai", "/v1/responses", "openai/responses_agent_tools_whole.json", agent, units),
        (
            "anthropic",
            "/v1/messages?beta=true",
            "anthropic/messages_agent_tools.sse",
            json!({"Agent": 1, "Bash": 2, "mcp:fares/lookup": 1}),
            json!({"code_execution_requests": "1", "mcp_calls": "1", "web_fetch_requests": "1",
                "web_search_requests": "0"}),
        ),
        (
            "sglang",
            "/v1/chat/completions",
            "sglang/chat_tool_calls_n2.sse",
            json!({"book": 1, "find": 3}),
            Value::Null,
        ),
        (
            "gemini",
            "/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse",
            "gemini/content_thinking_tools.sse",
            json!({"call_taxi": 1}),
            json!({"search_queries": "2", "web_search_requests": "1"}),
        ),
        ("cohere", "/v2/chat", "cohere/chat_tool_use.sse", json!({"ask_rank": 1}), Value::Null),
    ]
}

#[test]
fn tools_are_on_records_by_name_whatever_the_dialect_and_survive_a_kill() {
    for (dialect, route, name, tools, units) in called() {
        let engine = Engine::start();
        let setup =
            || Setup::before(&engine).upstream(&format!("dialect: {dialect}, recount: off"));
        let gateway = setup().start();
        let (answer, body) = (
            fixture(name),
            json!({"model": "gpt-4o-mini", "max_tokens": 9,
            "stream": name.ends_with("sse"), "input": "Go", "contents": [],
            "messages": [{"role": "user", "content": "Go"}]}),
        );
        let events: Vec<_> = answer.split_inclusive("\n\n").collect();
        let reply =
            if name.ends_with("sse") { stream_answer(&events) } else { json_answer(&answer) };
        let record = recorded(&gateway, &engine, (route, &body.to_string()), &reply);
        assert_eq!(record["tools"], tools, "{name}: {record:#}");
        assert_eq!(record["usage"]["units"], units, "{name}: {record:#}");
        // Nothing of what was said to a tool.
        let text = record.to_string();
        assert!(
            !text.contains("Rome") && !text.contains("cmd") && !text.contains("Patch"),
            "{text}"
        );
        let gateway = setup().start_in(gateway.kill());
        assert_eq!(gateway.await_records(1), [record]);
    }
}

#[test]
fn calls_that_cost_only_their_tokens_have_a_price_and_a_run_of_code_is_at_least_the_rest() {
    let engine = Engine::start();
    let gateway = gateway(&engine);
    let answer = fixture("openai/responses_agent_tools_whole.json");
    let body = r#"{"model":"gpt-5.4-mini","input":"Go"}"#;
    let record = recorded(&gateway, &engine, ("/v1/responses", body), &json_answer(answer));
    let lines = record["cost"]["lines"].as_array().expect("lines");
    let meters: Vec<_> = lines.iter().filter_map(|line| line["meter"].as_str()).collect();
    assert_eq!(meters, ["input", "cache_read", "output", "code_interpreter_sessions"]);
    let gateway = Setup::before(&engine).upstream("dialect: anthropic").start();
    let answer = fixture("anthropic/messages_agent_tools.sse");
    let events: Vec<_> = answer.split_inclusive("\n\n").collect();
    let body = r#"{"model":"claude-sonnet-4-6","max_tokens":9,"stream":true,"messages":[]}"#;
    let record = recorded(&gateway, &engine, ("/v1/messages", body), &stream_answer(&events));
    assert_eq!(record["cost"], Value::Null, "{record:#}");
    assert_eq!(record["cost_known"]["at_least"], true, "{record:#}");
    assert_eq!(record["cost_unknown"][0]["of"], "code_execution_requests", "{record:#}");
}
