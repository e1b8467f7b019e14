//! What a request costs: on the answer, on the record, on the bill.

use rust_decimal::Decimal;
use serde_json::{Value, json};

use crate::client::Client;
use crate::engine::Engine;
use crate::fixtures::{
    CHAT, CHAT_ANSWER, DONE, EMBEDDINGS, EMBEDDINGS_ANSWER, HELLO, MESSAGE, MESSAGE_ANSWER, STOP,
    STREAM_CHAT, USAGE,
};
use crate::gateway::{Gateway, Setup, taximeter};
use crate::http::{json_answer, post, stream_answer};

/// gpt-4o-mini: 600 × 0.15 + 400 cached × 0.075 + 100 × 0.60 USD a million.
const CHAT_COST: &str = "0.00018";
/// claude-sonnet-4-5: 600 × 3 + 400 cached × 0.30 + 100 × 15 USD a million.
const MESSAGE_COST: &str = "0.00342";
/// text-embedding-3-small: 8 × 0.02 USD a million.
const EMBEDDINGS_COST: &str = "0.00000016";

fn decimal(value: &Value) -> Decimal {
    let text = value.as_str().unwrap_or_else(|| panic!("money is a string, not {value}"));
    text.parse().expect("a decimal")
}

fn bill(gateway: &Gateway, words: &[&str]) -> String {
    let data_dir = gateway.data_dir();
    let data_dir = data_dir.to_str().expect("a path in UTF-8");
    let output = taximeter(["bill", "--data-dir", data_dir].iter().chain(words));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("a bill in UTF-8")
}

#[test]
fn an_answer_carries_its_receipt() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    let mut client = gateway.chat("", CHAT);
    engine.answer_once(&json_answer(CHAT_ANSWER));
    let answer = client.answer();
    assert_eq!(answer.text(), CHAT_ANSWER);
    let tokens = answer.header("x-taximeter-tokens").expect("tokens");
    assert_eq!(tokens, "input=1000;output=100;cache_read=400");
    let cost = answer.header("x-taximeter-cost").expect("cost");
    let (amount, currency) = cost.split_once(' ').expect("amount and currency");
    assert_eq!(amount.parse(), CHAT_COST.parse::<Decimal>());
    assert_eq!(currency, "USD");
    assert!(answer.header("x-taximeter-request-id").is_some());
}

#[test]
fn receipts_can_be_switched_off() {
    let engine = Engine::start();
    let gateway = Setup::before(&engine).upstream("dialect: openai").with("receipts: off").start();
    let mut client = gateway.chat("", CHAT);
    engine.answer_once(&json_answer(CHAT_ANSWER));
    let answer = client.answer();
    assert_eq!(answer.header("x-taximeter-tokens"), None);
    assert_eq!(answer.header("x-taximeter-cost"), None);
    assert!(answer.header("x-taximeter-request-id").is_some());
}

#[test]
fn a_record_says_everything_about_its_request() {
    let engine = Engine::start();
    let gateway = Setup::before(&engine)
        .upstream("dialect: openai")
        .with("resource: {k8s.pod.name: pod-7f9c}")
        .start();
    let mut client = gateway.chat("x-request-id: mine\r\n", CHAT);
    engine.answer_once(&json_answer(CHAT_ANSWER));
    let answer = client.answer();

    let record = gateway.record();
    let expected = json!({
        "id": answer.header("x-taximeter-request-id"),
        "request_id": "mine",
        "attempt": 1,
        "tenant": "default",
        "key_id": null,
        "identity": "unknown",
        "labels": {},
        "operation": "chat",
        "route": "/v1/chat/completions",
        "stream": false,
        "upstream": "engine",
        "provider": "openai",
        "request_model": "gpt-4o-mini",
        "response_model": "gpt-4o-mini-2024-07-18",
        "response_id": "chatcmpl-1",
        "service_tier": null,
        "status": 200,
        "end": "complete",
        "error_type": null,
        "finish_reasons": ["stop"],
        "resource": {"k8s.pod.name": "pod-7f9c"},
    });
    for (name, value) in expected.as_object().expect("an object") {
        assert_eq!(&record[name], value, "{name} in {record:#}");
    }
    let usage = &record["usage"];
    assert_eq!(usage["source"], "reported");
    assert_eq!(usage["input_tokens"], 1000);
    assert_eq!(usage["cache_read_input_tokens"], 400);
    assert_eq!(usage["output_tokens"], 100);
    assert_eq!(usage["reasoning_output_tokens"], 0);
    let cost = &record["cost"];
    assert_eq!(decimal(&cost["amount"]), CHAT_COST.parse().expect("a decimal"));
    assert_eq!(cost["currency"], "USD");
    let lines = cost["lines"].as_array().expect("lines");
    let sum: Decimal = lines.iter().map(|line| decimal(&line["amount"])).sum();
    assert_eq!(sum, decimal(&cost["amount"]));
    assert!(record["started_at"].as_str() <= record["ended_at"].as_str(), "{record:#}");
}

#[test]
fn a_model_without_a_price_costs_unknown_and_not_zero() {
    let engine = Engine::start();
    let gateway = Setup::before(&engine).upstream("dialect: vllm").start();
    let body = r#"{"model":"home-grown","messages":[]}"#;
    let mut client = gateway.chat("", body);
    engine.answer_once(&json_answer(CHAT_ANSWER.replace("gpt-4o-mini-2024-07-18", "home-grown")));
    let answer = client.answer();
    assert_eq!(answer.header("x-taximeter-cost"), None);
    assert_eq!(answer.header("x-taximeter-tokens"), Some("input=1000;output=100;cache_read=400"));
    let record = gateway.record();
    assert_eq!(record["cost"], Value::Null);
    assert_eq!(record["usage"]["output_tokens"], 100);
    let table = bill(&gateway, &["--format", "table"]);
    assert!(table.contains("unknown"), "{table}");
}

#[test]
fn the_record_says_when_the_price_of_its_model_ended() {
    let rows = "version: 2026-01-01\nmodels:\n\
                - {model: old, until: 2026-02-01, rates: {input: 2, output: 10}}\n\
                - {model: new, from: 9000-01-01, rates: {input: 2, output: 10}}\n";
    let folder = tempfile::tempdir().expect("a temporary folder");
    let prices = folder.path().join("prices.yaml");
    std::fs::write(&prices, rows).expect("write the prices");
    let overrides = format!("prices: {{overrides: \"{}\"}}", prices.display());
    for (model, reason) in [
        (
            "old",
            json!({"reason": "ended", "of": "old", "day": "2026-02-01",
                       "price_id": "overrides@2026-01-01#old"}),
        ),
        (
            "new",
            json!({"reason": "not_begun", "of": "new", "day": "9000-01-01",
                       "price_id": "overrides@2026-01-01#new@9000-01-01"}),
        ),
    ] {
        let engine = Engine::start();
        let gateway = Setup::before(&engine).upstream("dialect: openai").with(&overrides).start();
        let named = |text: &str| {
            text.replace("gpt-4o-mini-2024-07-18", model).replace("gpt-4o-mini", model)
        };
        let ask = post("/v1/chat/completions", "", named(CHAT));
        let mut client = Client::saying(gateway.address(), &ask);
        engine.answer_once(&json_answer(named(CHAT_ANSWER)));
        assert_eq!(client.answer().status(), 200);
        let record = gateway.record();
        assert_eq!((&record["cost"], &record["cost_unknown"]), (&Value::Null, &json!([reason])));
    }
}

#[test]
fn the_record_says_what_found_the_price_or_its_cost_is_unknown() {
    let rows = "version: 2026-11-20\nprovider: aws.bedrock\nmodels:\n\
                - model: anthropic.claude-sonnet-5\n  rates: {input: 2, output: 10}\n  \
                when: {region: {us: {times: 1.1}}}\n";
    let folder = tempfile::tempdir().expect("a temporary folder");
    let prices = folder.path().join("prices.yaml");
    std::fs::write(&prices, rows).expect("write the prices");
    let overrides = format!("prices: {{overrides: \"{}\"}}", prices.display());
    let engine = Engine::start();
    let gateway = Setup::before(&engine).upstream("dialect: bedrock").with(&overrides).start();
    let answer = r#"{"output":{"message":{"role":"assistant","content":[{"text":"Hi"}]}},
"stopReason":"end_turn","usage":{"inputTokens":100,"outputTokens":10,"totalTokens":110},
"metrics":{"latencyMs":3}}"#;
    let priced = [
        ("anthropic.claude-sonnet-5", Some(("exact", "0.0003"))),
        ("global.anthropic.claude-sonnet-5", Some(("region", "0.0003"))),
        ("us.anthropic.claude-sonnet-5-20260801-v1:0", Some(("region+version+date", "0.00033"))),
        (
            "arn:aws:bedrock:us-east-1:1:inference-profile/us.anthropic.claude-sonnet-5",
            Some(("path+region", "0.00033")),
        ),
        ("jp.anthropic.claude-sonnet-5", None),
        ("arn:aws:bedrock:us-east-1:1:application-inference-profile/a1b2", None),
    ];
    for (number, (model, found)) in priced.into_iter().enumerate() {
        let segment = model.replace(':', "%3A").replace('/', "%2F");
        let body = r#"{"messages":[{"role":"user","content":[{"text":"Hello"}]}]}"#;
        let ask = post(&format!("/model/{segment}/converse"), "", body);
        let mut client = Client::saying(gateway.address(), &ask);
        engine.answer_once(&json_answer(answer));
        assert_eq!(client.answer().status(), 200, "{model}");
        let records = gateway.await_records(number + 1);
        let is_of_model = |record: &&Value| record["request_model"] == model;
        let record = records.iter().find(is_of_model).expect("a record");
        let cost = &record["cost"];
        match found {
            Some((words, amount)) => {
                assert_eq!(cost["price_match"], words, "{record:#}");
                assert_eq!(decimal(&cost["amount"]), amount.parse().expect("a decimal"));
            }
            None => assert_eq!(*cost, Value::Null, "{record:#}"),
        }
    }
}

#[test]
fn bills_may_be_in_another_currency_at_the_exchange_rate_of_the_operator() {
    let engine = Engine::start();
    let exchange = "exchange: [{from: USD, rate: 0.5, since: 2020-01-01}]";
    let prices = format!("prices: {{currency: EUR, {exchange}}}");
    let gateway = Setup::before(&engine).upstream("dialect: openai").with(&prices).start();
    let mut client = gateway.chat("", CHAT);
    engine.answer_once(&json_answer(CHAT_ANSWER));
    assert_eq!(client.answer().header("x-taximeter-cost"), Some("0.00009 EUR"));
    let cost = &gateway.record()["cost"];
    assert_eq!(decimal(&cost["amount"]) * Decimal::TWO, CHAT_COST.parse().expect("a decimal"));
    assert_eq!(cost["currency"], "EUR");
    assert_eq!(cost["price_id"], "builtin@2026-11-25#openai/gpt-4o-mini;USD*0.5");
    let table = bill(&gateway, &["--format", "csv"]);
    assert!(table.contains("EUR") && !table.contains("USD"), "{table}");
}

#[test]
fn usage_that_an_engine_reports_as_null_or_zero_is_counted() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    let start = r#"{"id":"c","model":"gpt-4o-mini","choices":[{"index":0,
"message":{"role":"assistant","content":"To the station"},"finish_reason":"stop"}],"usage":"#;
    for usage in ["null", "{}", r#"{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0}"#] {
        let mut client = gateway.chat("Connection: close\r\n", CHAT);
        engine.answer_once(&json_answer(format!("{start}{usage}}}")));
        assert_eq!(client.answer().status(), 200);
    }
    let records = gateway.records();
    let usage: Vec<_> = records.iter().map(|record| &record["usage"]).collect();
    for counted in &usage {
        assert_eq!(counted["source"], "counted", "{counted}");
        assert_eq!(counted["output_tokens"], 3, "{counted}");
    }
    assert_eq!(usage[2]["flags"], json!(["zero"]), "{}", usage[2]);
}

#[test]
fn messages_of_anthropic_are_priced_with_their_cache_inside_the_input() {
    let engine = Engine::start();
    let gateway = Setup::before(&engine).upstream("dialect: anthropic").start();
    let mut client = Client::saying(gateway.address(), &post("/v1/messages", "", MESSAGE));
    engine.answer_once(&json_answer(MESSAGE_ANSWER));
    let answer = client.answer();
    assert_eq!(answer.text(), MESSAGE_ANSWER);
    assert!(answer.header("x-taximeter-cost").is_some_and(|cost| cost.starts_with(MESSAGE_COST)));
    let record = gateway.record();
    assert_eq!(record["usage"]["input_tokens"], 1000);
    assert_eq!(record["usage"]["cache_read_input_tokens"], 400);
    assert_eq!(decimal(&record["cost"]["amount"]), MESSAGE_COST.parse().expect("a decimal"));
}

#[test]
fn embeddings_have_input_and_no_output() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    let mut client = Client::saying(gateway.address(), &post("/v1/embeddings", "", EMBEDDINGS));
    engine.answer_once(&json_answer(EMBEDDINGS_ANSWER));
    assert_eq!(client.answer().text(), EMBEDDINGS_ANSWER);
    let record = gateway.record();
    assert_eq!(record["operation"], "embeddings");
    assert_eq!(record["usage"]["input_tokens"], 8);
    assert_eq!(decimal(&record["cost"]["amount"]), EMBEDDINGS_COST.parse().expect("a decimal"));
}

#[test]
fn bills_are_the_sum_of_the_records() {
    let engine = Engine::start();
    let tenants =
        "tenants: {unknown: refuse, header: {name: x-tenant-id, trusted_peers: [127.0.0.0/8]}}";
    let gateway = Setup::before(&engine).upstream("dialect: openai").with(tenants).start();
    let chats = [("acme", 3), ("zeta", 2)];
    for (tenant, count) in chats {
        for _ in 0..count {
            let mut client =
                gateway.chat(&format!("x-tenant-id: {tenant}\r\nConnection: close\r\n"), CHAT);
            engine.answer_once(&json_answer(CHAT_ANSWER));
            client.answer();
            let mut client = gateway
                .chat(&format!("x-tenant-id: {tenant}\r\nConnection: close\r\n"), STREAM_CHAT);
            engine.answer_once(&stream_answer(&[HELLO, STOP, USAGE, DONE]));
            client.answer();
        }
    }
    let request = post("/v1/embeddings", "x-tenant-id: zeta\r\n", EMBEDDINGS);
    let mut client = Client::saying(gateway.address(), &request);
    engine.answer_once(&json_answer(EMBEDDINGS_ANSWER));
    client.answer();

    let chat: Decimal = CHAT_COST.parse().expect("a decimal");
    let embeddings: Decimal = EMBEDDINGS_COST.parse().expect("a decimal");
    let expected =
        [("acme", chat * Decimal::from(6)), ("zeta", chat * Decimal::from(4) + embeddings)];
    let records = gateway.records();
    assert_eq!(records.len(), 11);
    let bill: Value =
        serde_json::from_str(&bill(&gateway, &["--by", "tenant", "--format", "json"]))
            .expect("JSON");
    let lines = bill["rows"].as_array().expect("lines");
    assert_eq!(lines.len(), 2, "{bill:#}");
    for (tenant, owed) in expected {
        let records = records.iter().filter(|record| record["tenant"] == tenant);
        let sum: Decimal = records.map(|record| decimal(&record["cost"]["amount"])).sum();
        assert_eq!(sum, owed, "{tenant}");
        let line = lines.iter().find(|line| line["tenant"] == tenant).expect("a line");
        assert_eq!(decimal(&line["cost"]), owed, "{line}");
    }
}

#[test]
fn a_bill_is_a_table_or_csv_or_json() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    let mut client = gateway.chat("", CHAT);
    engine.answer_once(&json_answer(CHAT_ANSWER));
    client.answer();
    for format in ["table", "csv", "json"] {
        let text = bill(&gateway, &["--by", "tenant,model", "--format", format]);
        assert!(
            text.contains("default") && text.contains("gpt-4o-mini") && text.contains("0.00018"),
            "{text}"
        );
    }
}
