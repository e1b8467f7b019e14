//! Requests that name no model: the upstream chooses one, and the answer says which.

use serde_json::{Value, json};

use crate::client::Client;
use crate::engine::Engine;
use crate::fixtures::{CHAT_ANSWER, MESSAGE_ANSWER};
use crate::gateway::{Gateway, Setup};
use crate::http::{Message, answer, json_answer, post, stream_answer};

const RESPONSE: &str = r#"{"id":"resp_1","object":"response","status":"completed",
"model":"gpt-4o-mini-2024-07-18","output":[],"usage":{"input_tokens":1000,
"input_tokens_details":{"cached_tokens":400},"output_tokens":100,"total_tokens":1100}}"#;

const STORED_PROMPT: &str = r#"{"prompt":{"id":"pmpt_1","variables":{"to":"station"}}}"#;

/// Two upstreams: one for some models, where nobody listens, and behind it one for all.
fn setup(engine: &Engine, dialect: &str) -> Setup {
    Setup::with_upstream(&format!(
        "name: some, url: 'http://127.0.0.1:9', dialect: openai, models: ['gpt-*', 'claude-*']}}, \
         {{name: every, url: 'http://{}', dialect: {dialect}",
        engine.address()
    ))
}

/// What the engine got, and the record.
fn exchange(engine: &Engine, gateway: &Gateway, request: &[u8], reply: &[u8]) -> (Message, Value) {
    let mut client = Client::saying(gateway.address(), request);
    let got = engine.answer_once(reply);
    assert_eq!(client.answer().status(), 200);
    let record = gateway.records().pop().expect("its record");
    assert_eq!(record["upstream"], "every", "{record}");
    assert!(record["request_model"].is_null(), "{record}");
    (got, record)
}

#[test]
fn a_stored_prompt_chooses_the_model_and_the_answer_s_is_priced() {
    let engine = Engine::start();
    let gateway = setup(&engine, "openai").start();
    let close = "Connection: close\r\n";
    for body in [
        STORED_PROMPT,
        r#"{"model":null,"prompt":{"id":"pmpt_1"}}"#,
        r#"{"previous_response_id":"resp_0","input":"And then?"}"#,
        r#"{"conversation":"conv_1","input":"And then?"}"#,
    ] {
        for route in ["/v1/responses", "/openai/v1/responses"] {
            let request = post(route, close, body);
            let (got, record) = exchange(&engine, &gateway, &request, &json_answer(RESPONSE));
            assert_eq!(got.text(), body);
            assert_eq!(record["response_model"], "gpt-4o-mini-2024-07-18");
            assert_eq!(record["usage"]["source"], "reported");
            // 600 uncached, 400 cached, 100 of output.
            assert_eq!(record["cost"]["amount"], "0.00018", "{record}");
        }
    }
    let events = format!(
        "event: response.completed\ndata: {{\"type\":\"response.completed\",\"response\":{}}}\n\n",
        RESPONSE.replace('\n', "")
    );
    let body = STORED_PROMPT.replacen('{', r#"{"stream":true,"#, 1);
    let request = post("/v1/responses", close, &body);
    let (_, record) = exchange(&engine, &gateway, &request, &stream_answer(&[&events]));
    assert_eq!((&record["stream"], &record["cost"]["amount"]), (&json!(true), &json!("0.00018")));
}

#[test]
fn every_route_leaves_the_model_to_the_upstream_that_serves_all() {
    let engine = Engine::start();
    let gateway = setup(&engine, "llama_cpp").start();
    let embedding = r#"{"data":[],"model":"text-embedding-3-small","usage":{"prompt_tokens":8}}"#;
    let image = r#"{"created":1,"data":[{"b64_json":"iVBORw0KGgo="}]}"#;
    for (route, body, reply) in [
        (
            "/v1/chat/completions",
            r#"{"messages":[{"role":"user","content":"Where?"}]}"#,
            CHAT_ANSWER,
        ),
        ("/openai/v1/chat/completions", r#"{"messages":[]}"#, CHAT_ANSWER),
        ("/v1/chat/completions/batch", r#"{"messages":[[]]}"#, CHAT_ANSWER),
        ("/v1/completions", r#"{"prompt":"Where?"}"#, CHAT_ANSWER),
        ("/v1/messages", r#"{"max_tokens":8,"messages":[]}"#, MESSAGE_ANSWER),
        ("/v1/embeddings", r#"{"input":"Where?"}"#, embedding),
        ("/v1/moderations", r#"{"input":"Where?"}"#, r#"{"model":"omni-moderation-latest"}"#),
        ("/v1/rerank", r#"{"query":"Where?","documents":["There"]}"#, embedding),
        ("/score", r#"{"text_1":"Where?","text_2":"There"}"#, embedding),
        ("/v1/images/generations", r#"{"prompt":"A taxi"}"#, image),
        ("/v1/images/edits", r#"{"prompt":"A taxi"}"#, image),
        ("/v1/audio/speech", r#"{"input":"Where?"}"#, "{}"),
        ("/v1/videos", r#"{"prompt":"A taxi"}"#, r#"{"id":"v","model":"sora-2","seconds":"4"}"#),
        ("/v1/ocr", r#"{"document":{}}"#, r#"{"usage_info":{"pages_processed":1}}"#),
        ("/completion", r#"{"prompt":"Where?"}"#, r#"{"content":"There","stop":true}"#),
        ("/generate", r#"{"text":"Where?"}"#, r#"{"text":"There"}"#),
        ("/api/chat", r#"{"messages":[],"stream":false}"#, r#"{"model":"m","done":true}"#),
        ("/v2/chat", r#"{"messages":[]}"#, r#"{"id":"c","finish_reason":"COMPLETE"}"#),
    ] {
        let request = post(route, "Connection: close\r\n", body);
        let (got, record) = exchange(&engine, &gateway, &request, &json_answer(reply));
        assert_eq!((got.text(), &record["status"]), (body, &json!(200)), "{route}");
        let answered: Value = serde_json::from_str(reply).expect("JSON");
        if record["operation"] != "speech" && record["operation"] != "image_generation" {
            assert_eq!(record["response_model"], answered["model"], "{route}");
        }
    }
    let form = "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.wav\"\r\n\
                \r\nRIFF\r\n--b--";
    let request = format!(
        "POST /v1/audio/transcriptions HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
         Content-Type: multipart/form-data; boundary=b\r\nContent-Length: {}\r\n\r\n{form}",
        form.len()
    );
    let reply = answer("200 OK", "application/json", r#"{"text":"Where?"}"#);
    exchange(&engine, &gateway, request.as_bytes(), &reply);
}

#[test]
fn without_an_upstream_that_serves_all_the_first_one_chooses() {
    let engine = Engine::start();
    let members = format!(
        "name: first, url: 'http://{}', dialect: openai, models: ['gpt-*', 'text-*']}}, \
         {{name: second, url: 'http://127.0.0.1:9', dialect: openai, models: ['claude-*']",
        engine.address()
    );
    let gateway = Setup::with_upstream(&members).start();
    for (route, body, reply) in [
        ("/v1/responses", STORED_PROMPT, RESPONSE),
        ("/v1/chat/completions", r#"{"messages":[]}"#, CHAT_ANSWER),
        ("/v1/messages", r#"{"messages":[]}"#, MESSAGE_ANSWER),
        ("/v1/moderations", r#"{"input":"Where?"}"#, r#"{"model":"omni-moderation-latest"}"#),
    ] {
        let request = post(route, "Connection: close\r\n", body);
        let mut client = Client::saying(gateway.address(), &request);
        assert_eq!(engine.answer_once(&json_answer(reply)).text(), body);
        assert_eq!(client.answer().status(), 200);
        let record = gateway.records().pop().expect("its record");
        assert_eq!(record["upstream"], "first", "{record}");
        assert!(record["response_model"].is_string(), "priced by what answers: {record}");
    }
    // What is named must be served.
    let named = gateway.ask(&post("/v1/chat/completions", "", r#"{"model":"llama-3"}"#));
    assert_eq!(named.status(), 404);
    engine.assert_untouched();
}

#[test]
fn a_model_is_required_where_its_price_must_be_known() {
    let engine = Engine::start();
    let gateway = Setup::before(&engine)
        .upstream("dialect: openai")
        .with("prices: {unknown: refuse}")
        .start();
    let refused = gateway.ask(&post("/v1/responses", "Connection: close\r\n", STORED_PROMPT));
    assert_eq!(
        (refused.status(), &refused.json()["error"]["code"]),
        (400, &json!("model_required"))
    );
    engine.assert_untouched();
}
