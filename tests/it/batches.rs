//! Batches and deferred answers: billed once, by their object or by their results.

mod providers;
mod results;

use rust_decimal::Decimal;
use serde_json::{Value, json};

use crate::client::Client;
use crate::engine::Engine;
use crate::gateway::{Gateway, Setup, taximeter};
use crate::http::{answer, bare, json_answer, post};

const TENANTS: &str =
    "tenants: {unknown: acme, header: {name: x-tenant-id, trusted_peers: [127.0.0.0/8]}}";
const BETA: &str = "x-tenant-id: beta\r\n";
const ASK: &str =
    r#"{"input_file_id":"file-1","endpoint":"/v1/chat/completions","completion_window":"24h"}"#;
const USAGE: &str = r#"{"input_tokens":1000,"input_tokens_details":{"cached_tokens":0},"output_tokens":100,
    "output_tokens_details":{"reasoning_tokens":40},"total_tokens":1100}"#;
/// 1,000 × 0.075 + 100 × 0.30 USD a million: the prices of the batch tier.
const COST: &str = "0.000105";

/// OpenAI's object of a batch.
fn batch(status: &str, usage: &str) -> String {
    batch_of("gpt-4o-mini-2024-07-18", status, usage)
}

fn batch_of(model: &str, status: &str, usage: &str) -> String {
    let file = if status == "completed" { r#""file-2""# } else { "null" };
    format!(
        r#"{{"id":"batch_1","object":"batch","endpoint":"/v1/chat/completions","model":"{model}",
        "errors":null,"input_file_id":"file-1","status":"{status}","output_file_id":{file},
        "request_counts":{{"total":3,"completed":2,"failed":1}},"usage":{usage}}}"#
    )
}

/// A line of the results.
fn chat(model: &str, input: u64, output: u64) -> String {
    let line = json!({
        "id": "batch_req_1", "custom_id": "a", "error": null,
        "response": {"status_code": 200, "request_id": "r", "body": {
            "id": "chatcmpl-1", "object": "chat.completion", "model": model,
            "choices": [{"index": 0, "message": {"role": "assistant", "content": "To the station"},
                         "finish_reason": "stop"}],
            "usage": {"prompt_tokens": input, "completion_tokens": output,
                      "total_tokens": input + output}}}
    });
    format!("{line}\n")
}

const FAILED: &str =
    "{\"custom_id\":\"b\",\"response\":{\"status_code\":400,\"body\":{}},\"error\":null}\n";

fn setup(engine: &Engine, dialect: &str) -> Setup {
    Setup::before(engine).upstream(&format!("dialect: {dialect}")).with(TENANTS)
}

/// Sends a request and has it answered, with bytes that reach the client as they are.
fn exchange(gateway: &Gateway, engine: &Engine, request: &[u8], reply: &[u8]) {
    let mut client = Client::saying(gateway.address(), request);
    engine.answer_once(reply);
    let heard = client.answer();
    assert!(reply.ends_with(&heard.body), "{}", heard.text());
}

fn begin(gateway: &Gateway, engine: &Engine) {
    let created = batch("validating", "null");
    exchange(gateway, engine, &post("/v1/batches", "", ASK), &json_answer(created));
}

fn look(gateway: &Gateway, engine: &Engine, headers: &str, batch: &str) {
    exchange(gateway, engine, &bare("GET", "/v1/batches/batch_1", headers), &json_answer(batch));
}

fn results(gateway: &Gateway, engine: &Engine, target: &str, lines: &str) {
    let reply = answer("200 OK", "application/octet-stream", lines);
    exchange(gateway, engine, &bare("GET", target, ""), &reply);
}

fn words(gateway: &Gateway, words: &[&str]) -> Vec<u8> {
    let data_dir = gateway.data_dir();
    let place = ["--data-dir", data_dir.to_str().expect("UTF-8")];
    let output = taximeter(words.iter().chain(&place));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

/// Cost, tokens and requests of unknown cost on all bills.
fn billed(gateway: &Gateway) -> (Option<Decimal>, Option<u64>, Option<u64>, Value) {
    words(gateway, &["verify"]);
    let bill = words(gateway, &["bill", "--from", "2026-01-01", "--format", "json"]);
    let bill: Value = serde_json::from_slice(&bill).expect("JSON");
    let total = &bill["total"];
    let cost = total["cost"].as_str().map(|text| text.parse().expect("a decimal"));
    let (input, output) = (total["input_tokens"].as_u64(), total["output_tokens"].as_u64());
    (cost, input, output, total["unknown_cost_requests"].clone())
}

fn costs(
    cost: &str,
    input: u64,
    output: u64,
) -> (Option<Decimal>, Option<u64>, Option<u64>, Value) {
    (cost.parse().ok(), Some(input), Some(output), 0.into())
}

fn unknown() -> (Option<Decimal>, Option<u64>, Option<u64>, Value) {
    (None, None, None, 1.into())
}

#[test]
fn the_object_of_a_batch_completes_it_once_at_the_prices_of_batches() {
    let engine = Engine::start();
    let gateway = setup(&engine, "openai").start();
    begin(&gateway, &engine);
    let record = gateway.record();
    assert_eq!((&record["operation"], &record["service_tier"]), (&"batch".into(), &"batch".into()));
    assert_eq!(record["usage"]["flags"], json!(["pending"]));
    assert_eq!(billed(&gateway), unknown());
    look(&gateway, &engine, "", &batch("in_progress", USAGE));
    look(&gateway, &engine, BETA, &batch("completed", USAGE));
    look(&gateway, &engine, "", &batch("completed", USAGE).replace("batch_1", "batch_2"));
    assert_eq!(billed(&gateway), unknown());
    for _ in 0..2 {
        look(&gateway, &engine, "", &batch("completed", USAGE));
        assert_eq!(billed(&gateway), costs(COST, 1000, 100));
        let lines = [chat("gpt-4o-mini-2024-07-18", 1000, 100), FAILED.to_owned()].concat();
        results(&gateway, &engine, "/v1/files/file-2/content", &lines);
        assert_eq!(billed(&gateway), costs(COST, 1000, 100));
    }
    let line = gateway.await_event("request_completed");
    assert_eq!((&line["id"], &line["cost"]), (&record["id"], &COST.into()));
}

#[test]
fn a_batch_that_ended_early_costs_what_it_reports() {
    for (status, target, usage, expected) in [
        ("expired", "", USAGE, costs(COST, 1000, 100)),
        ("cancelled", "/cancel", USAGE, costs(COST, 1000, 100)),
        ("cancelled", "/cancel", "null", unknown()),
        ("completed", "", "null", unknown()),
        // Two of its requests have been answered.
        ("completed", "", r#"{"input_tokens":0,"output_tokens":0,"total_tokens":0}"#, unknown()),
        ("cancelling", "/cancel", USAGE, unknown()),
    ] {
        let engine = Engine::start();
        let gateway = setup(&engine, "openai").start();
        begin(&gateway, &engine);
        let target = format!("/v1/batches/batch_1{target}");
        let request = if target.ends_with("cancel") {
            post(&target, "", "")
        } else {
            bare("GET", &target, "")
        };
        exchange(&gateway, &engine, &request, &json_answer(batch(status, usage)));
        assert_eq!(billed(&gateway), expected, "{status} {usage}");
    }
}

#[test]
fn a_batch_that_failed_costs_nothing() {
    let engine = Engine::start();
    let gateway = setup(&engine, "openai").start();
    begin(&gateway, &engine);
    look(&gateway, &engine, "", &batch("failed", "null"));
    assert_eq!(billed(&gateway), unknown(), "two requests have been answered");
    let nothing = r#""total":0,"completed":0,"failed":0"#;
    let counts = r#""total":3,"completed":2,"failed":1"#;
    look(&gateway, &engine, "", &batch("failed", "null").replace(counts, nothing));
    let (cost, _, _, unknown) = billed(&gateway);
    assert_eq!((cost, unknown), (Some(Decimal::ZERO), 0.into()));
}
