//! Tools that a provider runs itself: counted once, priced where they have a rate, and never taken
//! for free where they have none.

use std::fs;
use std::path::{Path, PathBuf};

use rust_decimal::Decimal;
use serde_json::{Value, json};

use crate::client::Client;
use crate::engine::Engine;
use crate::gateway::{Gateway, Setup, taximeter};
use crate::http::{chunk, json_answer, post, stream_answer};

/// Rates for tokens and web searches; the tool `teleport` has none.
const PRICES: &str = "\
version: 2026-11-01
models:
- model: helper
  rates: {input: 1, output: 2, web_search_requests: 0.01, code_interpreter_sessions: 0.03}
- model: painter
  rates: {input: 5, output_image: 30}
";

fn fixture(name: &str) -> String {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures"));
    fs::read_to_string(folder.join(name)).expect("a fixture")
}

fn money(text: &str) -> Decimal {
    text.parse().expect("a decimal")
}

fn decimal(value: &Value) -> Decimal {
    money(value.as_str().unwrap_or_else(|| panic!("money is a string, not {value}")))
}

/// A gateway before an engine of this dialect, with these prices.
fn gateway(engine: &Engine, dialect: &str, prices: &Path) -> Gateway {
    let setup = Setup::before(engine).upstream(&format!("dialect: {dialect}, recount: off"));
    setup.with(&format!("prices: {{overrides: [\"{}\"]}}", prices.display())).start()
}

fn prices(folder: &Path, text: &str) -> PathBuf {
    let file = folder.join("prices.yaml");
    fs::write(&file, text).expect("write the prices");
    file
}

/// The record of a request to this route that is answered so.
fn served(gateway: &Gateway, engine: &Engine, route: &str, answer: &str) -> Value {
    let before = gateway.records().len();
    let is_stream = !answer.trim_start().starts_with('{');
    let ask = json!({"model": "helper", "max_tokens": 9, "stream": is_stream, "input": "Go",
        "messages": [{"role": "user", "content": "Go"}], "contents": []});
    let request = post(route, "Connection: close\r\n", ask.to_string());
    let mut client = Client::saying(gateway.address(), &request);
    if is_stream {
        let events: Vec<_> = answer.split_inclusive("\n\n").collect();
        engine.answer_once(&stream_answer(&events));
    } else {
        engine.answer_once(&json_answer(answer));
    }
    client.answer();
    gateway.await_records(before + 1).pop().expect("a record")
}

fn meters(cost: &Value) -> Vec<String> {
    let line = |line: &Value| {
        let (meter, amount) = (line["meter"].as_str().expect("a meter"), decimal(&line["amount"]));
        format!("{meter} {}", amount.normalize())
    };
    cost["lines"].as_array().unwrap_or_else(|| panic!("{cost}")).iter().map(line).collect()
}

/// A response of `helper` with these items, not streamed.
fn response(items: &Value, tool_usage: &Value) -> String {
    json!({"id": "resp_1", "status": "completed", "model": "helper", "output": items,
        "tools": [{"type": "image_generation", "model": "painter"}], "tool_usage": tool_usage,
        "usage": {"input_tokens": 1000, "output_tokens": 500, "total_tokens": 1500}})
    .to_string()
}

#[test]
fn each_dialect_tells_its_tools_and_its_cost_in_a_way_of_its_own() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let prices = prices(folder.path(), PRICES);
    let hosted = json!({"mcp_calls": "1", "web_search_requests": "1"});
    for (dialect, route, name, units, cost) in [
        ("openai", "/v1/responses", "openai/responses_hosted_tools.sse", hosted.clone(), None),
        ("openai", "/v1/responses", "openai/responses_hosted_tools_whole.json", hosted, None),
        (
            "anthropic",
            "/v1/messages",
            "anthropic/messages_code_execution.sse",
            json!({"code_execution_requests": "1", "web_search_requests": "1",
                "web_fetch_requests": "0"}),
            None,
        ),
        (
            "xai",
            "/v1/responses",
            "xai/responses_search.json",
            json!({"web_search_requests": "1", "x_search_calls": "3"}),
            Some("0.0318319"),
        ),
        (
            "groq",
            "/v1/chat/completions",
            "groq/chat_compound.json",
            json!({"code_interpreter_calls": "1", "visit_website_calls": "1",
                "web_search_requests": "1"}),
            None,
        ),
        (
            "gemini",
            "/v1beta/models/gemini-3.5-flash:generateContent",
            "gemini/content_grounding.json",
            json!({"maps_grounding_requests": "1", "search_queries": "2",
                "web_search_requests": "1"}),
            None,
        ),
        (
            "perplexity",
            "/v1/responses",
            "perplexity/responses_agent.json",
            json!({"fetch_url_calls": "1", "web_search_requests": "2"}),
            Some("0.0119"),
        ),
        (
            "openrouter",
            "/v1/chat/completions",
            "openrouter/chat_own_key.json",
            json!({"web_search_requests": "1"}),
            Some("0.0116"),
        ),
        (
            "mistral",
            "/v1/chat/completions",
            "mistral/chat_connectors.json",
            json!({"document_library_calls": "1", "web_search_requests": "2"}),
            None,
        ),
    ] {
        let engine = Engine::start();
        let gateway = gateway(&engine, dialect, &prices);
        let record = served(&gateway, &engine, route, &fixture(name));
        assert_eq!(record["usage"]["units"], units, "{name}: {record:#}");
        assert_eq!(record["reported_cost"].as_str(), cost, "{name}");
        assert_eq!(record["cost"].is_null(), record["cost_unknown"].is_array(), "{name}");
    }
}

#[test]
fn what_has_a_rate_is_charged_and_what_has_none_is_at_least_the_rest() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let prices = prices(folder.path(), PRICES);
    let engine = Engine::start();
    let gateway = gateway(&engine, "openai", &prices);
    let search = json!({"type": "web_search_call", "id": "ws_1", "action": {"type": "search"}});
    let code = |id: &str| json!({"type": "code_interpreter_call", "id": id, "code": "7", "container_id": "cntr_1"});
    let own = json!({"type": "function_call", "id": "fc_1", "name": "web_search",
        "arguments": "{}"});
    let drawn = json!({"type": "image_generation_call", "id": "ig_1", "result": "QUJD"});
    let serve = |items: Value, tool_usage: Value| {
        served(&gateway, &engine, "/v1/responses", &response(&items, &tool_usage))
    };
    let record = serve(json!([own]), Value::Null);
    assert_eq!(meters(&record["cost"]), ["input 0.001", "output 0.001"]);
    let record = serve(json!([search, code("a"), code("b"), own]), Value::Null);
    assert_eq!(
        meters(&record["cost"]),
        [
            "input 0.001",
            "output 0.001",
            "web_search_requests 0.01",
            "code_interpreter_sessions 0.03"
        ]
    );
    let used = json!({"image_gen": {"input_tokens": 10, "output_tokens": 1000}});
    let record = serve(json!([drawn]), used);
    assert_eq!(
        meters(&record["cost"]),
        ["input 0.001", "output 0.001", "input 0.00005", "output_image 0.03"]
    );
    assert_eq!(record["cost"]["lines"][2]["model"], "painter");
    assert_eq!(record["usage"]["passes"][0]["usage"]["units"], json!({"images": "1"}));
    // Nobody says what drawing used.
    let record = serve(json!([drawn]), Value::Null);
    assert_eq!(record["cost"], Value::Null);
    assert_eq!(meters(&record["cost_known"]), ["input 0.001", "output 0.001"]);
    let reasons = &record["cost_unknown"];
    assert_eq!((&reasons[0]["reason"], &reasons[0]["of"]), (&json!("no_rate"), &json!("images")));
    // A tool of which nobody has heard.
    let record = serve(json!([{"type": "teleport_call", "id": "t"}, search]), Value::Null);
    assert_eq!(record["usage"]["units"]["teleport_calls"], "1");
    assert_eq!(record["cost"], Value::Null);
    assert_eq!(decimal(&record["cost_known"]["amount"]), money("0.012"));
    assert_eq!(record["cost_known"]["at_least"], true);
    assert_eq!(record["cost_unknown"][0]["of"], "teleport_calls");
}

#[test]
fn a_client_that_leaves_pays_for_the_tools_that_it_saw() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let prices = prices(folder.path(), PRICES);
    let engine = Engine::start();
    let gateway = gateway(&engine, "openai", &prices);
    let ask = r#"{"model":"helper","stream":true,"input":"Go"}"#;
    let mut client =
        Client::saying(gateway.address(), &post("/v1/responses", "Connection: close\r\n", ask));
    let mut connection = engine.begin_stream();
    client.head();
    let item = json!({"type": "web_search_call", "id": "ws_1", "action": {"type": "search"}});
    for (kind, item) in [
        ("added", item.clone()),
        ("done", item.clone()),
        ("done", item),
        ("added", json!({"type": "image_generation_call", "id": "ig_1", "status": "in_progress"})),
    ] {
        let event = json!({"type": format!("response.output_item.{kind}"), "item": item});
        connection.send(&chunk(format!("data: {event}\n\n")));
        client.next_chunk();
    }
    drop(client);
    connection.assert_closed_by_gateway();
    let record = gateway.await_records(1).remove(0);
    assert_eq!(record["end"], "client_left");
    assert_eq!(record["usage"]["units"], json!({"web_search_requests": "1"}));
    assert_eq!(record["cost"], Value::Null, "{record:#}");
    assert!(meters(&record["cost_known"]).contains(&"web_search_requests 0.01".to_owned()));
}

/// A gateway of which each request costs at least 0.002 USD, and its folder.
struct Unpriced {
    gateway: Gateway,
    prices: tempfile::TempDir,
}

impl Unpriced {
    /// Serves one request without a tool, and one with a tool that has no rate.
    fn serve() -> (Self, Engine) {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let engine = Engine::start();
        let gateway = gateway(&engine, "openai", &prices(folder.path(), PRICES));
        served(&gateway, &engine, "/v1/responses", &response(&json!([]), &Value::Null));
        let tool = json!([{"type": "x_search_call", "id": "x"}]);
        served(&gateway, &engine, "/v1/responses", &response(&tool, &Value::Null));
        (Self { gateway, prices: folder }, engine)
    }

    fn run(&self, command: &str, words: &[&str]) -> String {
        let config = self.gateway.config_file();
        let fixed = [command, "--config", config.to_str().expect("UTF-8")];
        let output = taximeter(fixed.iter().chain(words));
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
        said
    }

    fn json(&self, words: &[&str]) -> Value {
        serde_json::from_str(&self.run("bill", &[words, &["--format", "json"]].concat()))
            .expect("JSON")
    }
}

#[test]
fn a_bill_says_at_least_until_a_later_price_makes_it_whole() {
    let (unpriced, _engine) = Unpriced::serve();
    let text = unpriced.run("bill", &[]);
    assert!(text.contains("at least 0.004 USD"), "{text}");
    assert!(text.contains("The cost of 1 of them is unknown"), "{text}");
    let text = unpriced.run("bill", &["--by", "tenant"]);
    assert!(text.contains("≥0.004") && text.contains("≥ means at least"), "{text}");
    let bill = unpriced.json(&["--by", "tenant"]);
    assert_eq!(decimal(&bill["total"]["cost"]), money("0.004"), "{bill:#}");
    assert_eq!(bill["total"]["unknown_cost_requests"], 1);
    let csv = unpriced.run("bill", &["--by", "tenant", "--format", "csv"]);
    assert!(csv.contains("0.004"), "{csv}");
    let focus = unpriced.run("bill", &["--format", "focus"]);
    assert_eq!(focus.lines().count(), 3, "a line for input and output: {focus}");
    let events = unpriced.run("bill", &["--format", "cloudevents"]);
    let events: Value = serde_json::from_str(events.trim()).expect("a batch");
    let known: Vec<_> = events.as_array().expect("events").iter().collect();
    assert_eq!(known.iter().filter(|event| event["data"]["cost"] == "0.002").count(), 1);
    assert_eq!(known.iter().filter(|event| event["data"]["cost_known"] == "0.002").count(), 1);
    let metrics = unpriced.gateway.metrics();
    let metric = |name: &str| {
        let line = metrics.lines().find(|line| line.starts_with(name)).expect(name);
        line.rsplit(' ').next().expect("a value").to_owned()
    };
    assert_eq!(metric("taximeter_unpriced_total{"), "1");
    assert_eq!(metric("taximeter_cost_total{"), "0.004");
    let usage = unpriced.gateway.admin("/api/v1/usage?by=tenant").json();
    assert_eq!(decimal(&usage["total"]["billed_cost"]), money("0.004"), "{usage:#}");
    assert_eq!(usage["total"]["requests"]["unknown_cost"], 1);
    let page = unpriced.gateway.admin("/requests").text().to_owned();
    assert!(page.contains("≥ "), "{page}");
    unpriced.run("verify", &[]);

    // 0.005 USD for each search of posts.
    let rates = PRICES.replace("web_search_requests", "x_search_calls: 0.005, web_search_requests");
    prices(unpriced.prices.path(), &rates);
    let said = unpriced.run("rerate", &["--from", "2026-01-01", "--reason", "a price came"]);
    assert!(said.contains("1 request is corrected") || said.contains("of 1 request"), "{said}");
    let bill = unpriced.json(&["--by", "tenant"]);
    assert_eq!(decimal(&bill["total"]["cost"]), money("0.009"), "{bill:#}");
    assert_eq!(bill["total"]["unknown_cost_requests"], 0);
    let text = unpriced.run("bill", &[]);
    assert!(!text.contains("at least 0"), "{text}");
    let again = unpriced.run("rerate", &["--from", "2026-01-01", "--reason", "again"]);
    assert!(again.contains("No cost changes."), "{again}");
    unpriced.run("verify", &[]);
}

#[test]
fn a_receipt_says_at_least() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let engine = Engine::start();
    let gateway = gateway(&engine, "openai", &prices(folder.path(), PRICES));
    let ask = |items: Value| {
        let body = r#"{"model":"helper","input":"Go"}"#;
        let request = post("/v1/responses", "Connection: close\r\n", body);
        let mut client = Client::saying(gateway.address(), &request);
        engine.answer_once(&json_answer(response(&items, &Value::Null)));
        client.answer().header("x-taximeter-cost").map(str::to_owned)
    };
    assert_eq!(ask(json!([])).as_deref(), Some("0.002 USD"));
    let tool = json!([{"type": "teleport_call", "id": "t"}]);
    assert_eq!(ask(tool).as_deref(), Some("at least 0.002 USD"));
}
