//! What an engine serves goes through, however its path is written, and what it meters is metered.

use serde_json::{Value, json};

use crate::client::Client;
use crate::engine::Engine;
use crate::fixtures::{CHAT, CHAT_ANSWER, EMBEDDINGS, EMBEDDINGS_ANSWER};
use crate::frames::{DATA, END_HEADERS, END_STREAM, Framer, HEADERS, frame, header};
use crate::gateway::{Gateway, Setup};
use crate::http::{bare, json_answer, post, stream_answer};
use crate::unused::assert_unused;

/// What the engine got, as it came, and the record.
fn exchange(engine: &Engine, gateway: &Gateway, request: &[u8], reply: &[u8]) -> (String, Value) {
    let before = gateway.records().len();
    let mut client = Client::saying(gateway.address(), request);
    let got = engine.answer_once(reply);
    assert_eq!(client.answer().status(), 200, "{got:?}");
    let record = gateway.await_records(before + 1).pop().expect("its record");
    (got.first_line, record)
}

fn gateways(engine: &Engine) -> [Gateway; 2] {
    ["passthrough: off", "passthrough: on"]
        .map(|section| Setup::before(engine).upstream("dialect: openai").with(section).start())
}

#[test]
fn a_route_is_metered_and_forwarded_as_it_is_written() {
    let engine = Engine::start();
    for gateway in gateways(&engine) {
        for (target, route) in [
            ("//v1//chat/completions", "/v1/chat/completions"),
            ("/v1/chat/completions/", "/v1/chat/completions"),
            ("/v1/./chat/completions?a=%2F..", "/v1/chat/completions"),
            ("/v1/x/../chat/completions", "/v1/chat/completions"),
            ("/v1/x/%2e%2E/chat/completions", "/v1/chat/completions"),
            ("/v1/chat%2Fcompletions", "/v1/chat/completions"),
            ("/v1/%63hat/completions", "/v1/chat/completions"),
            ("/v1/models/../chat/completions", "/v1/chat/completions"),
            ("/v1\\chat\\completions", "/v1/chat/completions"),
            ("/chat/completions", "/chat/completions"),
            ("//chat/completions/", "/chat/completions"),
            (
                "/openai/deployments/m//chat/completions",
                "/openai/deployments/{model}/chat/completions",
            ),
        ] {
            let request = post(target, "Connection: close\r\n", CHAT);
            let (got, record) = exchange(&engine, &gateway, &request, &json_answer(CHAT_ANSWER));
            assert_eq!(got, format!("POST {target} HTTP/1.1"));
            assert_eq!((&record["route"], &record["operation"]), (&json!(route), &json!("chat")));
            assert_eq!(record["usage"]["source"], "reported", "{target}: {record}");
        }
    }
}

#[test]
fn a_path_is_read_in_the_same_way_on_http_2() {
    let engine = Engine::start();
    let gateway = Setup::before(&engine).upstream("dialect: openai").start();
    let mut client = Framer::connect(&gateway, &[]);
    let head: Vec<u8> = [
        (":method", "POST"),
        (":scheme", "http"),
        (":path", "//v1/chat%2Fcompletions/"),
        (":authority", "a"),
        ("content-type", "application/json"),
    ]
    .iter()
    .flat_map(|(name, value)| header(name, value))
    .collect();
    client.send(&frame(HEADERS, END_HEADERS, 1, &head));
    client.send(&frame(DATA, END_STREAM, 1, CHAT.as_bytes()));
    let got = engine.answer_once(&json_answer(CHAT_ANSWER));
    assert_eq!(got.first_line, "POST //v1/chat%2Fcompletions/ HTTP/1.1");
    assert_eq!(gateway.await_records(1)[0]["route"], "/v1/chat/completions");
}

#[test]
fn paths_without_v1_are_metered_as_those_with_it() {
    let engine = Engine::start();
    let gateway = Setup::before(&engine).upstream("dialect: llama_cpp").start();
    let native = r#"{"index":0,"content":" To the","stop":true,"model":"tiny.gguf",
        "tokens_predicted":3,"tokens_evaluated":6,"stop_type":"limit"}"#;
    let openai = r#"{"id":"c","object":"text_completion","model":"m","choices":[{"index":0,
        "text":" To","finish_reason":"stop"}],"usage":{"prompt_tokens":6,"completion_tokens":3}}"#;
    let prompt = r#"{"prompt":"Where?"}"#;
    for (route, body, reply, tokens) in [
        ("/chat/completions", CHAT, CHAT_ANSWER, None),
        ("/completions", prompt, native, Some((6, 3))),
        ("/completions", prompt, openai, Some((6, 3))),
        ("/completion", prompt, native, Some((6, 3))),
        ("/infill", prompt, native, Some((6, 3))),
        ("/embeddings", EMBEDDINGS, EMBEDDINGS_ANSWER, None),
        ("/api/v0/completions", prompt, openai, Some((6, 3))),
    ] {
        let request = post(route, "Connection: close\r\n", body);
        let (_, record) = exchange(&engine, &gateway, &request, &json_answer(reply));
        assert_eq!(record["route"], route);
        let usage = &record["usage"];
        assert_eq!(usage["source"], "reported", "{route}: {record}");
        if let Some((input, output)) = tokens {
            assert_eq!(
                (&usage["input_tokens"], &usage["output_tokens"]),
                (&json!(input), &json!(output))
            );
        }
    }
    let events = [
        "data: {\"index\":0,\"content\":\" To\",\"stop\":false,\"tokens_predicted\":1,\"tokens_evaluated\":6}\n\n",
        "data: {\"index\":0,\"content\":\"\",\"stop\":true,\"stop_type\":\"eos\",\"tokens_predicted\":3,\
         \"tokens_evaluated\":6,\"timings\":{\"cache_n\":2,\"prompt_n\":4,\"predicted_n\":3}}\n\n",
    ];
    let body = r#"{"prompt":"Where?","stream":true}"#;
    let request = post("/completions", "Connection: close\r\n", body);
    let (_, record) = exchange(&engine, &gateway, &request, &stream_answer(&events));
    assert_eq!(
        (&record["end"], &record["usage"]["output_tokens"]),
        (&json!("complete"), &json!(3))
    );
    // What is embedded is counted where nothing tells it.
    let request = post("/api/embeddings", "Connection: close\r\n", prompt);
    let (_, record) = exchange(&engine, &gateway, &request, &json_answer(r#"{"embedding":[0.5]}"#));
    assert_eq!(record["usage"]["source"], "counted", "{record}");
    assert!(record["usage"]["input_tokens"].as_u64() > Some(0), "{record}");
}

#[test]
fn what_counts_tokens_beside_responses_is_free_and_what_compacts_is_not() {
    let engine = Engine::start();
    let gateway = Setup::before(&engine).upstream("dialect: openai").start();
    let body = r#"{"model":"gpt-4o-mini","input":"Where?"}"#;
    let request = post("/v1/responses/input_tokens", "", body);
    let mut client = Client::saying(gateway.address(), &request);
    let counted = r#"{"object":"response.input_tokens","input_tokens":11}"#;
    assert_eq!(engine.answer_once(&json_answer(counted)).text(), body);
    assert_eq!(client.answer().text(), counted);
    assert_unused(&gateway.await_records(1)[0]);
    let compacted = r#"{"id":"resp_1","object":"response.compaction","output":[{"type":"compaction",
        "encrypted_content":"x"}],"usage":{"input_tokens":1000,"output_tokens":100}}"#;
    let request = post("/v1/responses/compact", "Connection: close\r\n", body);
    let (_, record) = exchange(&engine, &gateway, &request, &json_answer(compacted));
    assert_eq!(record["usage"]["input_tokens"], 1000, "{record}");
    assert_eq!(
        (&record["usage"]["output_tokens"], &record["end"]),
        (&json!(100), &json!("complete"))
    );
}

#[test]
fn other_methods_pass_where_unknown_paths_do_and_are_on_the_ledger_as_unknown() {
    let engine = Engine::start();
    let [strict, lenient] = gateways(&engine);
    for (method, target) in [
        ("DELETE", "/v1/models/ft:gpt-4o-mini:acme"),
        ("GET", "/"),
        ("GET", "/v1/chat/completions?limit=1"),
        ("PATCH", "/v1/batches"),
        ("PUT", "/v1/files/f"),
        ("POST", "/ping"),
        ("GET", "/index.html"),
    ] {
        let request = bare(method, target, "Connection: close\r\nContent-Length: 0\r\n");
        let reply = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
        let before = lenient.records().len();
        let mut client = Client::saying(lenient.address(), &request);
        let got = engine.answer_once(reply);
        assert_eq!(got.first_line, format!("{method} {target} HTTP/1.1"));
        assert_eq!(client.head().status(), 200);
        let record = lenient.await_records(before + 1).pop().expect("its record");
        assert_eq!(
            (&record["route"], &record["usage"]["source"]),
            (&json!("other"), &json!("unknown"))
        );
        let refused = Client::saying(strict.address(), &request).head();
        assert!([404, 405].contains(&refused.status()), "{method} {target}: {refused:?}");
    }
    let options = Client::saying(lenient.address(), &bare("OPTIONS", "/v1/models", "")).head();
    assert!(options.header("allow").is_some_and(|allow| allow.contains("DELETE")), "{options:?}");
    for gateway in [&strict, &lenient] {
        assert_eq!(gateway.ask(&bare("TRACE", "/v1/models", "")).status(), 405);
    }
    engine.assert_untouched();
}
