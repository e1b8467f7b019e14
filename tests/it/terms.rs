//! What tenants agreed on: contracted prices on records, what is free and shares of GPUs on bills.

use rust_decimal::Decimal;
use serde_json::Value;

use crate::engine::Engine;
use crate::fixtures::{CHAT, CHAT_ANSWER};
use crate::gateway::{Gateway, Setup, taximeter};
use crate::http::json_answer;

/// What tenants are called by a header, and a section of the file that says what is agreed.
fn tenants(list: &str) -> String {
    format!(
        "tenants: {{unknown: refuse, header: {{name: x-tenant-id, trusted_peers: [127.0.0.0/8]}}, \
         list: [{list}]}}"
    )
}

/// One chat of 600 input, 400 cached and 100 output tokens: 0.00018 USD at list prices.
fn chat(gateway: &Gateway, engine: &Engine, tenant: &str) -> Option<String> {
    let mut client = gateway.chat(&format!("x-tenant-id: {tenant}\r\nConnection: close\r\n"), CHAT);
    engine.answer_once(&json_answer(CHAT_ANSWER));
    client.answer().header("x-taximeter-cost").map(str::to_owned)
}

fn decimal(value: &Value) -> Decimal {
    let text = value.as_str().unwrap_or_else(|| panic!("money is a string, not {value}"));
    text.parse().expect("a decimal")
}

fn money(text: &str) -> Decimal {
    text.parse().expect("a decimal")
}

/// The bill of this month by the gateway's configuration.
fn bill(gateway: &Gateway, words: &[&str]) -> String {
    let config = gateway.config_file();
    let fixed = ["bill", "--config", config.to_str().expect("UTF-8")];
    let output = taximeter(fixed.iter().chain(words));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}

fn json_bill(gateway: &Gateway, words: &[&str]) -> Value {
    let words: Vec<_> = words.iter().copied().chain(["--format", "json"]).collect();
    serde_json::from_str(&bill(gateway, &words)).expect("JSON")
}

#[test]
fn a_discount_is_on_the_record_and_the_receipt_and_the_list_price_beside_it() {
    let engine = Engine::start();
    let list = "{name: acme, discount: 10 %}, {name: zeta, markup: 50 %}";
    let gateway = Setup::before(&engine).upstream("dialect: openai").with(&tenants(list)).start();
    assert_eq!(chat(&gateway, &engine, "acme").as_deref(), Some("0.000162 USD"));
    assert_eq!(chat(&gateway, &engine, "zeta").as_deref(), Some("0.00027 USD"));
    assert_eq!(chat(&gateway, &engine, "omni").as_deref(), Some("0.00018 USD"));
    let records = gateway.records();
    let of = |tenant: &str| records.iter().find(|record| record["tenant"] == tenant).expect(tenant);
    for (tenant, amount, mark) in [
        ("acme", "0.000162", ";acme*0.9"),
        ("zeta", "0.00027", ";zeta*1.5"),
        ("omni", "0.00018", ""),
    ] {
        let cost = &of(tenant)["cost"];
        assert_eq!(decimal(&cost["amount"]), money(amount), "{cost}");
        assert_eq!(decimal(&cost["list_amount"]), money("0.00018"), "{cost}");
        let price_id = cost["price_id"].as_str().expect("an id");
        assert!(price_id.ends_with(&format!("gpt-4o-mini{mark}")), "{price_id}");
        for line in cost["lines"].as_array().expect("lines") {
            assert_eq!(line["list_unit_price"].is_string(), tenant != "omni", "{line}");
        }
    }
    let bill = json_bill(&gateway, &["--by", "tenant"]);
    assert_eq!(decimal(&bill["total"]["cost"]), money("0.000612"));
    assert_eq!(decimal(&bill["total"]["list_cost"]), money("0.00054"));
}

#[test]
fn fixed_prices_come_before_the_book_and_no_other_tenant_has_them() {
    let engine = Engine::start();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let prices = folder.path().join("acme.yaml");
    let rows = "version: 2026-11-01\nmodels:\n- model: gpt-4o-mini\n  rates: {input: 1, \
                cache_read: 0.50, output: 2}\n";
    std::fs::write(&prices, rows).expect("write the prices");
    let list = format!("{{name: acme, prices: \"{}\"}}", prices.display());
    let gateway = Setup::before(&engine).upstream("dialect: openai").with(&tenants(&list)).start();
    // 600 × 1 + 400 × 0.50 + 100 × 2 USD a million.
    assert_eq!(chat(&gateway, &engine, "acme").as_deref(), Some("0.001 USD"));
    assert_eq!(chat(&gateway, &engine, "zeta").as_deref(), Some("0.00018 USD"));
    let records = gateway.records();
    let acme = records.iter().find(|record| record["tenant"] == "acme").expect("a record");
    assert_eq!(acme["cost"]["price_id"], "acme@2026-11-01#gpt-4o-mini");
    assert_eq!(decimal(&acme["cost"]["list_amount"]), money("0.00018"));
}

#[test]
fn what_is_free_is_a_line_of_the_bill_and_never_more_than_is_owed() {
    let engine = Engine::start();
    let list = "{name: acme, allowance: {money: 0.0001 USD, tokens: {output: 50}}}, \
                {name: zeta, allowance: {money: 5 USD}}";
    let gateway = Setup::before(&engine).upstream("dialect: openai").with(&tenants(list)).start();
    for tenant in ["acme", "zeta"] {
        chat(&gateway, &engine, tenant);
    }
    let bill_of = json_bill(&gateway, &["--by", "tenant"]);
    let credits = bill_of["credits"].as_array().expect("credits");
    let told: Vec<_> = credits
        .iter()
        .map(|credit| (credit["tenant"].as_str().expect("a tenant"), decimal(&credit["amount"])))
        .collect();
    // 50 output tokens at 0.60 USD a million come before money.
    let expected =
        [("acme", money("0.00003")), ("acme", money("0.0001")), ("zeta", money("0.00018"))];
    assert_eq!(told, expected, "{bill_of:#}");
    assert_eq!(decimal(&bill_of["total"]["cost"]), money("0.00005"));
    let csv = bill(&gateway, &["--by", "tenant", "--format", "csv"]);
    assert_eq!(csv.lines().filter(|line| line.ends_with(",Credit,UTC")).count(), 3, "{csv}");
    let table = bill(&gateway, &["--by", "tenant"]);
    assert!(table.contains("acme, free in ") && table.contains(": 50 output tokens"), "{table}");
}

#[test]
fn gpus_are_shared_out_and_their_idle_rest_is_shown() {
    let engine = Engine::start();
    let gpu = "dialect: vllm, gpu: {type: H100, count: 2, hourly: 2.50 USD}";
    let gateway = Setup::before(&engine).upstream(gpu).with(&tenants("{name: acme}")).start();
    assert_eq!(chat(&gateway, &engine, "acme"), None);
    let record = gateway.record();
    assert_eq!(record["cost"], Value::Null, "{record:#}");
    let period = |member: &str| record[member].as_str().expect("a time").to_owned();
    let (from, to) = (period("started_at"), period("ended_at"));
    // As long as the request ran, nothing was idle.
    let busy = json_bill(&gateway, &["--from", &from, "--to", &to, "--by", "tenant"]);
    let rows = busy["rows"].as_array().expect("rows");
    assert_eq!(rows.len(), 2, "{busy:#}");
    assert_eq!((&rows[0]["tenant"], &rows[1]["tenant"]), (&"acme".into(), &"idle/engine".into()));
    assert!(decimal(&rows[0]["cost"]) > Decimal::ZERO, "{busy:#}");
    assert_eq!(decimal(&rows[1]["cost"]), Decimal::ZERO, "{busy:#}");
    assert_eq!(busy["total"]["unknown_cost_requests"], 0, "{busy:#}");
    // A whole day before is idle, to the last digit: 24 hours of 2 GPUs at 2.50 USD.
    let day = ["--from", "2026-01-01", "--to", "2026-01-02", "--by", "tenant,day"];
    let idle = json_bill(&gateway, &day);
    assert_eq!(decimal(&idle["total"]["cost"]), money("120"), "{idle:#}");
    let table = bill(&gateway, &day);
    assert!(table.contains("idle/engine") && table.contains("120.00"), "{table}");
    // Without the configuration nobody knows what its requests cost.
    let data_dir = gateway.data_dir();
    let plain = taximeter(["bill", "--data-dir", data_dir.to_str().expect("UTF-8")]);
    assert!(String::from_utf8_lossy(&plain.stdout).contains("unknown"));
}
