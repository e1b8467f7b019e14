//! Usage that engines report: under which names, and what becomes of numbers that are none.

use serde_json::{Value, json};

use crate::client::Client;
use crate::engine::Engine;
use crate::fixtures::{CHAT, CHAT_ANSWER, STREAM_CHAT};
use crate::gateway::Setup;
use crate::http::{json_answer, post, stream_answer};

/// The record of one exchange with an engine of this dialect.
fn record(dialect: &str, request: &[u8], reply: &[u8]) -> Value {
    let engine = Engine::start();
    let gateway = Setup::before(&engine).upstream(&format!("dialect: {dialect}")).start();
    let mut client = Client::saying(gateway.address(), request);
    engine.answer_once(reply);
    assert_eq!(client.answer().status(), 200);
    gateway.record()
}

#[test]
fn tokens_that_mistral_had_cached_are_billed_as_cached() {
    let events = include_str!("../fixtures/mistral/chat_num_cached_tokens.sse");
    let ask = STREAM_CHAT.replace("gpt-4o-mini", "mistral-large-latest");
    for dialect in ["mistral", "openai, provider: mistral_ai"] {
        let request = post("/v1/chat/completions", "Connection: close\r\n", &ask);
        let record = record(dialect, &request, &stream_answer(&[events]));
        assert_eq!(record["usage"]["input_tokens"], 130, "{dialect}");
        assert_eq!(record["usage"]["cache_read_input_tokens"], 128, "{dialect}");
        let lines = record["cost"]["lines"].as_array().unwrap_or_else(|| panic!("{record}"));
        let billed: Vec<_> = lines.iter().map(|line| (&line["meter"], &line["tokens"])).collect();
        let expected = [("input", 2), ("cache_read", 128), ("output", 3)];
        let expected = expected.map(|(meter, tokens)| (json!(meter), json!(tokens)));
        assert_eq!(billed, expected.each_ref().map(|(meter, tokens)| (meter, tokens)), "{dialect}");
    }
}

#[test]
fn reported_numbers_that_are_none_are_counted_and_flagged_as_invalid() {
    let known = r#""prompt_tokens":1000,"completion_tokens":100,"total_tokens":1100"#;
    for wrong in ["18446744073709551616", "1e308", "\"1000\"", "-1", "0.5"] {
        let usage = format!(r#""prompt_tokens":{wrong},"completion_tokens":{wrong}"#);
        let answer = CHAT_ANSWER.replace(known, &usage);
        let request = post("/v1/chat/completions", "Connection: close\r\n", CHAT);
        let usage = &record("openai", &request, &json_answer(&answer))["usage"];
        let both = json!({"input_tokens": ["invalid"], "output_tokens": ["invalid"]});
        assert_eq!((&usage["flagged"], &usage["flags"]), (&both, &json!(["invalid"])), "{wrong}");
        assert_eq!(usage["source"], "counted", "{wrong}");
        for member in ["input_tokens", "output_tokens"] {
            let counted = usage[member].as_u64().unwrap_or_else(|| panic!("{usage}"));
            assert!((1..100).contains(&counted), "{wrong}: {usage}");
        }
    }
    let answer = CHAT_ANSWER.replace(known, r#""prompt_tokens":1e3,"completion_tokens":100.0"#);
    let request = post("/v1/chat/completions", "Connection: close\r\n", CHAT);
    let usage = &record("openai", &request, &json_answer(&answer))["usage"];
    assert_eq!((&usage["input_tokens"], &usage["output_tokens"]), (&json!(1000), &json!(100)));
    assert_eq!(usage["source"], "reported");
    assert!(!usage["flags"].as_array().is_some_and(|flags| flags.contains(&json!("invalid"))));
}
