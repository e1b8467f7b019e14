//! What tenants agreed on: contracted prices on records, what is free and shares of GPUs on bills.

use std::path::{Path, PathBuf};

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
    bill_by(&gateway.config_file(), words)
}

fn bill_by(config: &Path, words: &[&str]) -> String {
    let fixed = ["bill", "--config", config.to_str().expect("UTF-8")];
    let output = taximeter(fixed.iter().chain(words));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// The gateway's configuration with other terms, in a file beside it.
fn changed(gateway: &Gateway, from: &str, to: &str) -> PathBuf {
    let config = gateway.config_file();
    let text = std::fs::read_to_string(&config).expect("read it");
    assert!(text.contains(from), "{from} in {text}");
    let file = config.with_file_name("changed.yaml");
    std::fs::write(&file, text.replace(from, to)).expect("write it");
    file
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

#[test]
fn a_month_that_is_over_is_billed_the_same_whatever_gpus_are_added_later() {
    let engine = Engine::start();
    let one = "{type: H100, count: 2, hourly: 2.50 USD}";
    let upstream = format!("dialect: vllm, gpu: {one}");
    let gateway = Setup::before(&engine).upstream(&upstream).with(&tenants("{name: acme}")).start();
    let january = |format: &'static str| ["--month", "2026-01", "--format", format];
    let formats = ["table", "csv", "json", "focus"];
    let before = formats.map(|format| bill(&gateway, &january(format)));
    let four = "{type: H100, count: 4, hourly: 2.50 USD, since: 2026-02-01}";
    let config = changed(&gateway, one, &format!("[{one}, {four}]"));
    assert_eq!(formats.map(|format| bill_by(&config, &january(format))), before);
    let total = |config: &Path, month: &str| {
        let words = ["--month", month, "--by", "tenant", "--format", "json"];
        let bill: Value = serde_json::from_str(&bill_by(config, &words)).expect("JSON");
        decimal(&bill["total"]["cost"])
    };
    // 28 days of 4 GPUs, and of 2.
    assert_eq!(total(&config, "2026-02"), money("6720"));
    assert_eq!(total(&gateway.config_file(), "2026-02"), money("3360"));
    // 15 days of 2 GPUs and 16 of 4; then none.
    let four = four.replace("02-01", "01-16");
    let none = "{type: H100, count: 0, hourly: 2.50 USD, since: 2026-02-01}";
    let config = changed(&gateway, one, &format!("[{one}, {four}, {none}]"));
    assert_eq!(total(&config, "2026-01"), money("5640"));
    assert_eq!(total(&config, "2026-02"), Decimal::ZERO);
}

#[test]
fn what_is_free_and_what_a_tenant_pays_changes_from_a_day_on() {
    let engine = Engine::start();
    let always = "discount: 10 %, allowance: {money: 0.0001 USD}";
    let list = format!("{{name: acme, {always}}}");
    let gateway = Setup::before(&engine).upstream("dialect: openai").with(&tenants(&list)).start();
    assert_eq!(chat(&gateway, &engine, "acme").as_deref(), Some("0.000162 USD"));
    let words = ["--by", "tenant", "--format", "csv"];
    let before = bill(&gateway, &words);
    assert!(before.contains(",0.0001,") || before.contains(",-0.0001,"), "{before}");
    let later = "discount: [10 %, {rate: 20 %, since: 2999-01-01}], allowance: [{money: 0.0001 USD}, \
                 {money: 7 USD, since: 2999-01-01}]";
    assert_eq!(bill_by(&changed(&gateway, always, later), &words), before);
    let begun = later.replace("2999", "2026");
    assert_ne!(bill_by(&changed(&gateway, always, &begun), &words), before);

    // Two gateways of other terms, one of them not yet in force.
    for (list, cost) in [(later.to_owned(), "0.000162 USD"), (begun, "0.000144 USD")] {
        let list = tenants(&format!("{{name: acme, {list}}}"));
        let gateway = Setup::before(&engine).upstream("dialect: openai").with(&list).start();
        assert_eq!(chat(&gateway, &engine, "acme").as_deref(), Some(cost));
    }
}
