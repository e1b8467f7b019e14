//! Each call that coding agents make over HTTP, as their requests were read: which record it leaves, and
//! what that says of usage, status and session. What each of them is measured by is in `agent_calls`.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::client::Client;
use crate::engine::Engine;
use crate::gateway::{Gateway, Setup, taximeter};
use crate::http::{answer, bare, json_answer, post, stream_answer};

const CODEX: &str = "user-agent: codex_exec/0.169.0 (Debian 12; x86_64)\r\nsession-id: root\r\n\
    thread-id: root\r\n";
const CLAUDE: &str = "user-agent: claude-cli/2.1.331 (external, sdk-cli)\r\nanthropic-version: 2023-06-01\r\n\
    x-claude-code-session-id: root\r\n";

/// A request, the answer of the engine, and what members of its record are. `None` if it leaves none.
struct Call {
    request: Vec<u8>,
    reply: Vec<u8>,
    record: Option<Value>,
}

fn call(method: &str, target: &str, headers: &str, reply: &Value) -> Call {
    let headers = format!("Connection: close\r\n{headers}");
    let request = if method == "POST" {
        post(target, &headers, "{}")
    } else {
        bare(method, target, &headers)
    };
    Call { request, reply: json_answer(reply.to_string()), record: None }
}

fn asked(target: &str, headers: &str, body: &Value, reply: Vec<u8>, record: Value) -> Call {
    let headers = format!("Connection: close\r\n{headers}");
    Call { request: post(target, &headers, body.to_string()), reply, record: Some(record) }
}

/// A response of OpenAI's API with 100 tokens in and 7 out, as a stream or whole.
fn response(item: &Value, is_stream: bool) -> Vec<u8> {
    let response = json!({"id": "resp_1", "model": "gpt-4o-mini", "status": "completed",
        "output": [item], "usage": {"input_tokens": 100, "output_tokens": 7, "total_tokens": 107}});
    if !is_stream {
        return json_answer(response.to_string());
    }
    let done = json!({"type": "response.output_item.done", "output_index": 0, "item": item});
    let events = [done, json!({"type": "response.completed", "response": response})];
    stream_answer(&events.map(|event| format!("data: {event}\n\n")))
}

fn text() -> Value {
    json!({"type": "message", "id": "m1", "content": [{"type": "output_text", "text": "Hi"}]})
}

/// A message of Anthropic's API with the same counts, as a stream or whole.
fn message(is_stream: bool) -> Vec<u8> {
    let of = |content: Value, usage: Value| {
        json!({"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-haiku-4-5",
            "content": content, "stop_reason": "end_turn", "usage": usage})
    };
    let usage = json!({"input_tokens": 100, "output_tokens": 7});
    let block = json!({"type": "text", "text": "Hi"});
    if !is_stream {
        return json_answer(of(json!([block]), usage).to_string());
    }
    let begun = of(json!([]), json!({"input_tokens": 100, "output_tokens": 1}));
    let events = [
        json!({"type": "message_start", "message": begun}),
        json!({"type": "content_block_start", "index": 0, "content_block": block}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": usage}),
        json!({"type": "message_stop"}),
    ];
    stream_answer(&events.map(|event| format!("data: {event}\n\n")))
}

/// What a record says of a request that was served and used 100 tokens and 7.
fn used(operation: &str, more: &Value) -> Value {
    let mut record = json!({"operation": operation, "status": 200, "end": "complete",
        "usage": {"source": "reported", "input_tokens": 100, "output_tokens": 7}});
    for (name, value) in more.as_object().into_iter().flatten() {
        record[name] = value.clone();
    }
    record
}

fn free(operation: &str, status: u16) -> Value {
    json!({"operation": operation, "status": status, "usage": {"source": "none", "input_tokens": null,
        "output_tokens": null}, "cost": {"amount": "0", "currency": "USD"}})
}

/// Codex and what is like it.
fn of_codex() -> Vec<Call> {
    let turn = |kind: &str| {
        format!(
            "{CODEX}x-codex-turn-metadata: {{\"turn_id\":\"t1\",\"request_kind\":\"{kind}\"}}\r\n"
        )
    };
    let body = json!({"model": "gpt-4o-mini", "input": "a", "stream": true});
    let mut trigger = body.clone();
    trigger["input"] = json!([{"type": "message", "role": "user", "content": "a"},
        {"type": "compaction_trigger"}]);
    let compacted = json!({"type": "compaction", "id": "cmp_1", "encrypted_content": "x"});
    let of_root =
        json!({"session": "root", "agent": "root", "client": "codex/0.169", "kind": null});
    let mut compaction = of_root.clone();
    compaction["kind"] = "compaction".into();
    let whole = json!({"model": "gpt-4o-mini", "input": "a"});
    let gone = answer("404 Not Found", "application/json", r#"{"error":{"code":"unknown_url"}}"#);
    let mut lost = free("chat", 404);
    lost["kind"] = "compaction".into();
    lost["session"] = "root".into();
    let mut calls = vec![
        asked(
            "/v1/responses",
            &turn("turn"),
            &body,
            response(&text(), true),
            used("chat", &of_root),
        ),
        asked(
            "/v1/responses",
            &turn("turn"),
            &trigger,
            response(&compacted, true),
            used("chat", &compaction),
        ),
        // With a prompt that asks for a summary.
        asked(
            "/v1/responses",
            &turn("compaction"),
            &body,
            response(&text(), true),
            used("chat", &compaction),
        ),
        asked(
            "/v1/responses/compact",
            CODEX,
            &whole,
            response(&compacted, false),
            used("chat", &compaction),
        ),
        asked("/v1/responses/compact", CODEX, &whole, gone, lost),
        asked(
            "/v1/responses/input_tokens",
            CODEX,
            &whole,
            json_answer(r#"{"object":"response.input_tokens","input_tokens":100}"#),
            free("count_tokens", 200),
        ),
    ];
    for (method, target) in [
        ("GET", "/v1/responses/resp_1"),
        ("GET", "/v1/responses/resp_1?stream=true&starting_after=3"),
        ("GET", "/v1/responses/resp_1/input_items?limit=9"),
        ("DELETE", "/v1/responses/resp_1"),
        ("POST", "/v1/responses/resp_1/cancel"),
        ("POST", "/v1/conversations"),
        ("GET", "/v1/conversations/conv_1/items"),
        ("GET", "/v1/models?client_version=0.169.0"),
    ] {
        calls.push(call(method, target, CODEX, &json!({"id": "resp_1", "data": [], "models": []})));
    }
    calls
}

/// Claude Code, of two versions, and SDKs.
fn of_claude_code() -> Vec<Call> {
    let body = |model: &str, is_stream: bool, asks: &str| {
        json!({"model": model, "max_tokens": 9, "stream": is_stream,
            "messages": [{"role": "user", "content": asks}]})
    };
    let of_root = json!({"session": "root", "client": "claude-code/2.1", "agent": null});
    let older = "user-agent: claude-cli/2.0.30 (external, cli)\r\n";
    let mut warm_up = body("claude-haiku-4-5", true, "Warmup");
    warm_up["metadata"] = json!({"user_id": "user_0f_account__session_5f3f0c3a-4c1e"});
    let of_older = json!({"session": "5f3f0c3a-4c1e", "client": "claude-code/2.0", "agent": null});
    // The key as newer SDKs send it, and no query.
    let sdk = "user-agent: Anthropic/Python 2.13.0\r\nanthropic-version: 2026-10-21\r\n\
        Authorization: Bearer sk-client\r\n";
    let of_sdk = json!({"session": null, "client": "anthropic-python/2.13"});
    let [stream, whole] = [true, false].map(|is_stream| body("claude-haiku-4-5", is_stream, "a"));
    let mut calls = vec![
        asked("/v1/messages?beta=true", CLAUDE, &stream, message(true), used("chat", &of_root)),
        asked("/v1/messages?beta=true", CLAUDE, &whole, message(false), used("chat", &of_root)),
        asked("/v1/messages?beta=true", older, &warm_up, message(true), used("chat", &of_older)),
        asked("/v1/messages?beta=true", older, &warm_up, message(true), used("chat", &of_older)),
        asked("/v1/messages", sdk, &stream, message(true), used("chat", &of_sdk)),
        asked(
            "/v1/messages/count_tokens?beta=true",
            CLAUDE,
            &whole,
            json_answer(r#"{"input_tokens":100}"#),
            free("count_tokens", 200),
        ),
    ];
    for (method, target, headers) in [
        ("GET", "/inference-profiles?type=SYSTEM_DEFINED", CLAUDE),
        ("GET", "/v1/models?limit=1000", "user-agent: claude-code/2.1.331\r\n"),
    ] {
        calls.push(call(method, target, headers, &json!({"data": []})));
    }
    for target in ["/", "/api/hello"] {
        let reply = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n".to_vec();
        calls.push(Call { reply, ..call("HEAD", target, CLAUDE, &Value::Null) });
    }
    calls
}

/// Others: what they send that has no turn, and calls that name no session.
fn of_others() -> Vec<Call> {
    let event = json!({"candidates": [{"content": {"role": "model", "parts": [{"text": "Hi"}]},
        "finishReason": "STOP"}], "modelVersion": "gemini-2.5-flash", "usageMetadata":
        {"promptTokenCount": 100, "candidatesTokenCount": 7, "totalTokenCount": 107}});
    let chat = |model: &str| {
        json!({"id": "chatcmpl-1", "model": model, "choices": [{"index": 0, "message":
            {"role": "assistant", "content": "Hi"}, "finish_reason": "stop"}], "usage":
            {"prompt_tokens": 100, "completion_tokens": 7, "total_tokens": 107}})
    };
    let body = |model: &str, asks: &str| json!({"model": model, "messages": [{"role": "user", "content": asks}]});
    let opencode = "user-agent: opencode/1.18.33 ai-sdk/provider-utils/4.0\r\nx-session-id: oc\r\n";
    let of_opencode = |model: &str| {
        used(
            "chat",
            &json!({"session": "oc", "agent": "root", "client": "opencode/1.18", "request_model": model}),
        )
    };
    let of = |client: &str| used("chat", &json!({"session": null, "client": client}));
    let turn = |model: &str| {
        let reply = json_answer(chat(model).to_string());
        asked("/v1/chat/completions", opencode, &body(model, "a"), reply, of_opencode(model))
    };
    vec![
        asked(
            "/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse",
            "user-agent: GeminiCLI-tui/0.61.0/gemini-2.5-flash (linux; x64)\r\nx-goog-api-key: k\r\n",
            &json!({"contents": [{"role": "user", "parts": [{"text": "a"}]}]}),
            stream_answer(&[format!("data: {event}\n\n")]),
            used("generate_content", &json!({"session": null, "client": "gemini-cli/0.61"})),
        ),
        // What it keeps of a run: large, and of no session.
        asked(
            "/v1/chat/completions",
            "user-agent: QwenCode/0.24.4 (linux; x64)\r\n",
            &body("qwen3-coder", &"remember ".repeat(5_000)),
            json_answer(chat("qwen3-coder").to_string()),
            of("qwen-code/0.24"),
        ),
        // A title of another model, and a turn.
        turn("gpt-4.1-nano"),
        turn("gpt-4o-mini"),
    ]
}

/// Sends a call. Whether the engine got it as it was sent.
fn send(gateway: &Gateway, engine: &Engine, call: &Call) {
    let first_line = String::from_utf8_lossy(&call.request);
    let first_line = first_line.lines().next().expect("a line");
    let mut client = Client::saying(gateway.address(), &call.request);
    let got = engine.answer_once(&call.reply);
    assert_eq!(got.first_line, first_line);
    // A look whether somebody is there has few headers.
    let lines = if first_line.starts_with("HEAD") { 0 } else { usize::MAX };
    for line in String::from_utf8_lossy(&call.request).lines().skip(1).take(lines) {
        let Some((name, value)) = line.split_once(": ") else { break };
        if name.starts_with("anthropic-") || name.starts_with("x-codex-") {
            assert_eq!(got.header(name), Some(value), "{first_line}");
        }
    }
    let status = String::from_utf8_lossy(&call.reply).split(' ').nth(1).map(str::to_owned);
    let head = client.head();
    assert_eq!(Some(head.status().to_string()), status, "{first_line}");
    client.all();
}

/// Fails where `expected` has a member that `found` has not, or has otherwise.
fn assert_has(found: &Value, expected: &Value, of: &str) {
    for (name, value) in expected.as_object().into_iter().flatten() {
        match value {
            Value::Object(_) => assert_has(&found[name], value, &format!("{of} {name}")),
            _ => assert_eq!(found[name], *value, "{name} of {of}: {found:#}"),
        }
    }
}

#[test]
fn each_call_of_a_coding_agent_has_the_record_that_is_due_and_no_other() {
    let engine = Engine::start();
    let gateway = Setup::before(&engine).upstream("dialect: openai, recount: off").start();
    let mut records = 0;
    for call in of_codex().into_iter().chain(of_claude_code()).chain(of_others()) {
        send(&gateway, &engine, &call);
        let of =
            String::from_utf8_lossy(&call.request).lines().next().unwrap_or_default().to_owned();
        records += usize::from(call.record.is_some());
        let found = gateway.await_records(records);
        assert_eq!(found.len(), records, "{of}");
        if let Some(expected) = &call.record {
            assert_has(found.last().expect("its record"), expected, &of);
        }
    }
    engine.assert_untouched();
    // Those that leave none are not on their way either: a further one comes behind them.
    assert_eq!(gateway.records().len(), records);
}

#[test]
fn what_a_message_did_besides_is_beside_its_usage_and_its_compaction_is_paid() {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/anthropic"));
    let answer = fs::read_to_string(folder.join("messages_iterations.sse")).expect("a fixture");
    let engine = Engine::start();
    let gateway = Setup::before(&engine).upstream("dialect: anthropic").start();
    let body = json!({"model": "claude-sonnet-4-6", "max_tokens": 9, "stream": true,
        "messages": [{"role": "user", "content": "a"}]});
    let events: Vec<_> = answer.split_inclusive("\n\n").collect();
    let call = asked("/v1/messages?beta=true", CLAUDE, &body, stream_answer(&events), Value::Null);
    send(&gateway, &engine, &call);
    let record = gateway.await_records(1).pop().expect("its record");
    let expected = json!({"input_tokens": 23_000, "output_tokens": 1_000});
    assert_has(&record["usage"], &expected, "the turn");
    let passes = record["usage"]["passes"].as_array().expect("passes");
    let told = passes.iter().map(|pass| {
        let usage = &pass["usage"];
        json!([pass["model"], usage["input_tokens"], usage["output_tokens"]])
    });
    let expected = [json!([null, 180_500, 3_500]), json!(["claude-opus-4-8", 900, 80])];
    assert_eq!(told.collect::<Vec<_>>(), expected, "{record:#}");
    assert_eq!(record["session"], "root");
}

#[test]
fn what_is_tried_again_behind_errors_has_a_record_each_in_one_session() {
    let engine = Engine::start();
    let gateway = Setup::before(&engine)
        .upstream("dialect: anthropic")
        .with("limits: {attempts_max: 1}")
        .start();
    let body = json!({"model": "claude-haiku-4-5", "max_tokens": 9, "stream": true,
        "messages": [{"role": "user", "content": "a"}]});
    let headers = format!("{CLAUDE}x-stainless-retry-count: 0\r\n");
    let busy = r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#;
    let busy = answer("529 Overloaded", "application/json", busy);
    for (number, reply) in [busy.clone(), busy.clone(), busy, message(true)].into_iter().enumerate()
    {
        let call = asked("/v1/messages?beta=true", &headers, &body, reply, Value::Null);
        send(&gateway, &engine, &call);
        let record = gateway.await_records(number + 1).pop().expect("its record");
        let status = if number == 3 { 200 } else { 529 };
        assert_eq!((&record["status"], &record["session"]), (&json!(status), &json!("root")));
    }
    let place = ["--data-dir", gateway.data_dir().to_str().expect("UTF-8")].map(str::to_owned);
    let words = ["sessions", "root", "--json"].map(str::to_owned).into_iter();
    let told = taximeter(words.chain(place)).stdout;
    let told: Value = serde_json::from_slice(&told).expect("JSON");
    let session = &told[0];
    assert_eq!((&session["requests"], &session["failed_requests"]), (&json!(4), &json!(3)));
    assert_eq!((&session["input_tokens"], &session["output_tokens"]), (&json!(100), &json!(7)));
}
