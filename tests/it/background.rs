//! Answers that are generated after their request: the request is billed once, when an answer first
//! shows what it has used.

mod survival;

use rust_decimal::Decimal;
use serde_json::Value;

use crate::client::Client;
use crate::engine::Engine;
use crate::gateway::{Gateway, Setup, taximeter};
use crate::http::{answer, bare, chunk, json_answer, post, stream_answer};
use crate::patience::patiently;

const ASK: &str = r#"{"model":"gpt-4o-mini","input":"Where to?","background":true}"#;
const ASK_STREAM: &str =
    r#"{"model":"gpt-4o-mini","input":"Where to?","background":true,"stream":true}"#;
/// 1,000 × 0.15 + 100 × 0.60 USD a million.
const COST: &str = "0.00021";
const TENANTS: &str =
    "tenants: {unknown: acme, header: {name: x-tenant-id, trusted_peers: [127.0.0.0/8]}}";
const BETA: &str = "x-tenant-id: beta\r\n";

/// A response with this status. Once it has ended, with usage.
fn response(status: &str) -> String {
    let has_usage = matches!(status, "completed" | "incomplete" | "cancelled");
    let usage = if has_usage {
        r#"{"input_tokens":1000,"output_tokens":100,"total_tokens":1100}"#
    } else {
        "null"
    };
    response_with(status, usage)
}

fn response_with(status: &str, usage: &str) -> String {
    let error = if status == "failed" {
        r#"{"code":"server_error","message":"It broke."}"#
    } else {
        "null"
    };
    format!(
        r#"{{"id":"resp_1","object":"response","model":"gpt-4o-mini-2024-07-18","background":true,
        "status":"{status}","error":{error},"output":[],"usage":{usage}}}"#
    )
}

fn event(kind: &str, status: &str) -> String {
    let response = response(status).replace('\n', "");
    format!("event: {kind}\ndata: {{\"type\":\"{kind}\",\"response\":{response}}}\n\n")
}

fn setup(engine: &Engine) -> Setup {
    Setup::before(engine).upstream("dialect: openai").with(TENANTS)
}

/// Sends a request, which the engine answers with JSON. The answer as the client got it.
fn exchange(gateway: &Gateway, engine: &Engine, request: &[u8], reply: &str) {
    let mut client = Client::saying(gateway.address(), request);
    engine.answer_once(&json_answer(reply));
    let answer = client.answer();
    assert_eq!((answer.status(), answer.text()), (200, reply));
}

fn begin(gateway: &Gateway, engine: &Engine) {
    exchange(gateway, engine, &post("/v1/responses", "", ASK), &response("queued"));
}

fn look(gateway: &Gateway, engine: &Engine, headers: &str, reply: &str) {
    exchange(gateway, engine, &bare("GET", "/v1/responses/resp_1", headers), reply);
}

/// What a month's bill says of all tenants.
fn bill(gateway: &Gateway) -> Value {
    let data_dir = gateway.data_dir();
    let data_dir = data_dir.to_str().expect("UTF-8");
    let words = ["bill", "--data-dir", data_dir, "--from", "2026-01-01", "--format", "json"];
    let output = taximeter(words);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let bill: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    bill["total"].clone()
}

fn decimal(value: &Value) -> Option<Decimal> {
    value.as_str().map(|text| text.parse().expect("a decimal"))
}

fn assert_completed(gateway: &Gateway) {
    let total = bill(gateway);
    assert_eq!(decimal(&total["cost"]), COST.parse().ok(), "{total:#}");
    let tokens = [&total["input_tokens"], &total["output_tokens"], &total["requests"]];
    assert_eq!(tokens, [1000, 100, 1], "{total:#}");
    let unknown = [&total["unknown_cost_requests"], &total["unknown_usage_requests"]];
    assert_eq!(unknown, [0, 0], "{total:#}");
    assert_verified(gateway);
}

/// It is on the bill, and nobody knows what it has used.
fn assert_pending(gateway: &Gateway) {
    let total = bill(gateway);
    assert!(total["cost"].is_null(), "{total:#}");
    assert!(total["output_tokens"].is_null() && total["input_tokens"].is_null(), "{total:#}");
    let unknown = [&total["unknown_cost_requests"], &total["unknown_usage_requests"]];
    assert_eq!(unknown, [1, 1], "{total:#}");
}

fn assert_verified(gateway: &Gateway) {
    let data_dir = gateway.data_dir();
    let verified = taximeter(["verify", "--data-dir", data_dir.to_str().expect("UTF-8")]);
    assert!(verified.status.success(), "{}", String::from_utf8_lossy(&verified.stdout));
}

#[test]
fn a_response_in_the_background_is_billed_once_when_its_usage_is_first_seen() {
    let engine = Engine::start();
    let gateway = setup(&engine).start();
    begin(&gateway, &engine);
    let record = gateway.record();
    assert_eq!(record["usage"]["source"], "unknown");
    assert!(record["usage"]["input_tokens"].as_u64() > Some(0), "{record}");
    assert!(record["usage"]["output_tokens"].is_null() && record["cost"].is_null(), "{record}");
    assert!(record["usage"]["flags"].as_array().expect("flags").contains(&"pending".into()));
    assert_pending(&gateway);
    look(&gateway, &engine, "", &response("in_progress"));
    assert_pending(&gateway);
    for _ in 0..3 {
        look(&gateway, &engine, "", &response("completed"));
        assert_completed(&gateway);
    }
    assert_eq!(gateway.record(), record, "a record never changes");
    let line = gateway.await_event("request_completed");
    assert_eq!(line["id"], record["id"]);
    assert_eq!((&line["input_tokens"], &line["output_tokens"]), (&1000.into(), &100.into()));
    assert_eq!(line["cost"], COST);
    assert!(!gateway.has_said("request_completed"));
}

#[test]
fn its_tokens_and_its_cost_are_in_the_metrics_once() {
    let engine = Engine::start();
    let gateway = setup(&engine).start();
    let sum = |name: &str| {
        let metrics = gateway.metrics();
        let samples = metrics.lines().filter(|line| line.starts_with(&format!("{name}{{")));
        let sum: Decimal =
            samples.filter_map(|line| line.rsplit(' ').next()?.parse::<Decimal>().ok()).sum();
        sum.normalize().to_string()
    };
    begin(&gateway, &engine);
    gateway.await_metric("taximeter_requests_total");
    let counted = ["taximeter_tokens_total", "taximeter_cost_total", "taximeter_unpriced_total"];
    assert_eq!(counted.map(sum), ["0"; 3]);
    for _ in 0..2 {
        look(&gateway, &engine, "", &response("completed"));
        assert_eq!(sum("taximeter_tokens_total"), "1100");
        assert_eq!(sum("taximeter_cost_total"), COST);
        let once = ["taximeter_completions_total", "taximeter_requests_total"];
        assert_eq!(once.map(sum), ["1"; 2]);
        assert_eq!(sum("taximeter_unpriced_total"), "0");
    }
}

#[test]
fn the_admin_address_shows_what_it_used() {
    let engine = Engine::start();
    let gateway = setup(&engine).start();
    begin(&gateway, &engine);
    let pending = || gateway.admin("/api/v1/status").json()["ledger"]["pending_requests"].clone();
    assert_eq!(pending(), 1);
    look(&gateway, &engine, "", &response("completed"));
    assert_eq!(pending(), 0);
    let record = gateway.record();
    let path = format!("/api/v1/records/{}", record["id"].as_str().expect("an id"));
    let found = patiently(|| {
        let found = gateway.admin(&path).json();
        found["corrections"][0].is_object().then_some(found)
    });
    let found = found.expect("the correction in the store");
    assert_eq!(found["corrections"].as_array().map(Vec::len), Some(1));
    let completion = &found["corrections"][0]["completion"];
    assert_eq!(completion["response_id"], "resp_1");
    assert_eq!(completion["finish_reasons"][0], "completed");
    assert_eq!(
        (&found["usage"]["output_tokens"], &found["usage"]["source"]),
        (&100.into(), &"reported".into())
    );
    assert_eq!(decimal(&found["cost"]["amount"]), COST.parse().ok());
    assert_eq!(found["record"]["usage"], record["usage"]);
    let usage = gateway.admin("/api/v1/usage").json();
    assert!(usage.to_string().contains("\"input_tokens\":1000"), "{usage:#}");
    let page = gateway.admin(&format!("/requests/{}", record["id"].as_str().expect("an id")));
    assert!(page.text().contains("Cost after correction"), "{}", page.text());
}

#[test]
fn another_tenant_another_id_and_another_answer_change_nothing() {
    let engine = Engine::start();
    let gateway = setup(&engine).start();
    begin(&gateway, &engine);
    look(&gateway, &engine, BETA, &response("completed"));
    let other = response("completed").replace("resp_1", "resp_2");
    exchange(&gateway, &engine, &bare("GET", "/v1/responses/resp_2", ""), &other);
    for (status, body) in [
        ("404 Not Found", r#"{"error":{"message":"no such response"}}"#.to_owned()),
        ("500 Internal Server Error", response("completed")),
    ] {
        let mut client =
            Client::saying(gateway.address(), &bare("GET", "/v1/responses/resp_1", ""));
        engine.answer_once(&answer(status, "application/json", &body));
        assert_eq!(client.answer().text(), body);
    }
    exchange(
        &gateway,
        &engine,
        &bare("GET", "/v1/responses/resp_1/input_items", ""),
        &response("completed"),
    );
    exchange(
        &gateway,
        &engine,
        &bare("DELETE", "/v1/responses/resp_1", ""),
        r#"{"id":"resp_1","object":"response","deleted":true}"#,
    );
    assert_pending(&gateway);
    look(&gateway, &engine, "", &response("completed"));
    assert_completed(&gateway);
}

#[test]
fn a_response_that_was_billed_when_it_was_made_is_not_billed_again() {
    let engine = Engine::start();
    let gateway = setup(&engine).start();
    let ask = r#"{"model":"gpt-4o-mini","input":"Where to?"}"#;
    exchange(&gateway, &engine, &post("/v1/responses", "", ask), &response("completed"));
    assert_completed(&gateway);
    for _ in 0..2 {
        look(&gateway, &engine, "", &response("completed"));
        assert_completed(&gateway);
    }
}

#[test]
fn it_is_billed_however_its_generation_ended() {
    for (request, status) in [
        (bare("GET", "/v1/responses/resp_1", ""), "incomplete"),
        (bare("GET", "/v1/responses/resp_1", ""), "cancelled"),
        (post("/v1/responses/resp_1/cancel", "", "{}"), "cancelled"),
    ] {
        let engine = Engine::start();
        let gateway = setup(&engine).start();
        begin(&gateway, &engine);
        exchange(&gateway, &engine, &request, &response(status));
        assert_completed(&gateway);
    }
}

#[test]
fn one_that_failed_costs_what_it_reports_or_nothing() {
    let usage = r#"{"input_tokens":1000,"output_tokens":100,"total_tokens":1100}"#;
    for (usage, cost) in [(usage, COST), ("null", "0")] {
        let engine = Engine::start();
        let gateway = setup(&engine).start();
        begin(&gateway, &engine);
        for _ in 0..2 {
            look(&gateway, &engine, "", &response_with("failed", usage));
            let total = bill(&gateway);
            assert_eq!(decimal(&total["cost"]), cost.parse().ok(), "{total:#}");
            assert_eq!(total["unknown_cost_requests"], 0, "{total:#}");
        }
        assert_verified(&gateway);
    }
}

#[test]
fn one_that_was_cancelled_and_reports_nothing_stays_unknown() {
    let engine = Engine::start();
    let gateway = setup(&engine).start();
    begin(&gateway, &engine);
    let cancel = post("/v1/responses/resp_1/cancel", "", "{}");
    exchange(&gateway, &engine, &cancel, &response_with("cancelled", "null"));
    assert_pending(&gateway);
}

#[test]
fn a_stream_of_it_completes_it_too_from_wherever_it_goes_on() {
    for target in ["?stream=true", "?stream=true&starting_after=3"] {
        let engine = Engine::start();
        let gateway = setup(&engine).start();
        begin(&gateway, &engine);
        let look = bare("GET", &format!("/v1/responses/resp_1{target}"), "");
        let text = "event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\
                    \"output_index\":0,\"content_index\":0,\"delta\":\"To the\"}\n\n";
        // The engine breaks off first.
        for (events, is_done) in [
            (vec![event("response.in_progress", "in_progress"), text.to_owned()], false),
            (vec![text.to_owned(), event("response.completed", "completed")], true),
        ] {
            let mut client = Client::saying(gateway.address(), &look);
            engine.answer_once(&stream_answer(&events));
            assert_eq!(client.answer().text(), events.concat());
            if is_done { assert_completed(&gateway) } else { assert_pending(&gateway) }
        }
    }
}

#[test]
fn a_background_stream_that_ends_is_billed_at_once() {
    let engine = Engine::start();
    let gateway = setup(&engine).start();
    let mut client = Client::saying(gateway.address(), &post("/v1/responses", "", ASK_STREAM));
    let events = [event("response.created", "queued"), event("response.completed", "completed")];
    engine.answer_once(&stream_answer(&events));
    assert_eq!(client.answer().text(), events.concat());
    look(&gateway, &engine, "", &response("completed"));
    assert_completed(&gateway);
    assert!(gateway.record()["cost"].is_object());
}

#[test]
fn a_background_stream_whose_client_leaves_is_completed_by_the_one_that_goes_on() {
    let engine = Engine::start();
    let gateway = setup(&engine).start();
    let mut client = Client::saying(gateway.address(), &post("/v1/responses", "", ASK_STREAM));
    let mut connection = engine.begin_stream();
    let text = "event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\
                \"output_index\":0,\"content_index\":0,\"delta\":\"To the station\"}\n\n";
    client.head();
    for event in [event("response.created", "queued"), text.to_owned()] {
        connection.send(&chunk(&event));
        client.expect(&event);
    }
    drop(client);
    let records = gateway.await_records(1);
    assert!(records[0]["usage"]["output_tokens"].is_null(), "{}", records[0]);
    assert_pending(&gateway);
    drop(connection);
    let on = bare("GET", "/v1/responses/resp_1?stream=true&starting_after=1", "");
    let mut client = Client::saying(gateway.address(), &on);
    let events = [text.to_owned(), event("response.completed", "completed")];
    engine.answer_once(&stream_answer(&events));
    client.answer();
    assert_completed(&gateway);
}

#[test]
fn a_client_that_leaves_before_it_has_an_answer_leaves_an_unknown_cost() {
    let engine = Engine::start();
    let gateway = setup(&engine).start();
    let client = Client::saying(gateway.address(), &post("/v1/responses", "", ASK));
    let (_connection, _) = engine.request();
    drop(client);
    let records = gateway.await_records(1);
    let record = &records[0];
    assert!(record["usage"]["output_tokens"].is_null() && record["cost"].is_null(), "{record}");
    assert_pending(&gateway);
}

#[test]
fn a_client_that_leaves_after_the_usage_has_come_completes_it() {
    let engine = Engine::start();
    let gateway = setup(&engine).start();
    begin(&gateway, &engine);
    let look = bare("GET", "/v1/responses/resp_1?stream=true", "");
    let mut client = Client::saying(gateway.address(), &look);
    let mut connection = engine.begin_stream();
    client.head();
    let last = event("response.completed", "completed");
    connection.send(&chunk(&last));
    client.expect(&last);
    drop(client);
    assert_completed(&gateway);
}

#[test]
fn answers_that_show_its_usage_at_the_same_time_complete_it_once() {
    let engine = Engine::start();
    let gateway = setup(&engine).with("workers: 2").start();
    begin(&gateway, &engine);
    let look = bare("GET", "/v1/responses/resp_1", "");
    let mut clients: Vec<_> = (0..8).map(|_| Client::saying(gateway.address(), &look)).collect();
    let mut connections: Vec<_> = (0..8).map(|_| engine.request().0).collect();
    for connection in &mut connections {
        connection.send(&json_answer(response("completed")));
    }
    for client in &mut clients {
        assert_eq!(client.answer().text(), response("completed"));
    }
    assert_completed(&gateway);
}

#[test]
fn azures_paths_are_the_same() {
    for base in ["/openai/v1/responses", "/openai/responses"] {
        let query = if base.contains("v1") { "" } else { "?api-version=2025-04-01-preview" };
        let engine = Engine::start();
        let gateway = setup(&engine).start();
        exchange(&gateway, &engine, &post(&format!("{base}{query}"), "", ASK), &response("queued"));
        assert_pending(&gateway);
        for _ in 0..2 {
            let look = bare("GET", &format!("{base}/resp_1{query}"), "");
            exchange(&gateway, &engine, &look, &response("completed"));
            assert_completed(&gateway);
        }
    }
}

#[test]
fn prices_that_change_later_correct_what_was_completed() {
    let engine = Engine::start();
    let gateway = setup(&engine).start();
    begin(&gateway, &engine);
    let data_dir = gateway.data_dir();
    let data_dir = data_dir.to_str().expect("UTF-8");
    let discount = data_dir.to_owned() + "/../discount.yaml";
    let config = "upstreams: [{name: engine, url: \"http://127.0.0.1:1\"}]\n\
                  tenants: {unknown: acme, list: [{name: acme, discount: 50 %}]}\n";
    std::fs::write(&discount, config).expect("write it");
    let rerate = || {
        let period = ["--from", "2026-01-01", "--config", &discount, "--reason", "late"];
        let output = taximeter(["rerate", "--data-dir", data_dir].iter().chain(&period));
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    // Nothing is known of it yet.
    rerate();
    assert_pending(&gateway);
    look(&gateway, &engine, "", &response("completed"));
    assert_completed(&gateway);
    for _ in 0..2 {
        rerate();
        let total = bill(&gateway);
        assert_eq!(decimal(&total["cost"]), "0.000105".parse().ok(), "{total:#}");
        assert_eq!([&total["input_tokens"], &total["requests"]], [1000, 1], "{total:#}");
        assert_eq!(total["counted_requests"], 0, "{total:#}");
    }
    assert_verified(&gateway);
}
