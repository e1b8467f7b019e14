//! Whatever a period is exported as, it comes to what the bill says: with discounts, allowances,
//! corrections and GPUs.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use rust_decimal::Decimal;
use serde_json::Value;

use crate::engine::Engine;
use crate::fixtures::{CHAT, CHAT_ANSWER};
use crate::gateway::{Gateway, Setup, taximeter};
use crate::http::json_answer;

const TENANTS: &str = "unknown: refuse, header: {name: x-tenant-id, trusted_peers: [127.0.0.0/8]}";
const LIST: &str = "{name: acme, discount: 10 %, allowance: {tokens: {output: 50}}}, \
                    {name: zeta, allowance: {money: 0.0001 USD}}";
const FORMATS: [&str; 8] =
    ["focus", "focus-parquet", "parquet", "ndjson", "cloudevents", "stripe", "lago", "orb"];

/// Two tenants' requests by the token and on GPUs, one of whom got a discount late, and the time in
/// which they were.
struct Ledger {
    gateway: Gateway,
    period: [String; 2],
    month: String,
}

fn ledger() -> Ledger {
    let engine = Engine::start();
    let gpus = format!(
        "models: [gpt-*], dialect: openai}}, {{name: gpus, url: \"http://{}\", dialect: vllm, \
         gpu: {{type: H100, count: 2, hourly: 2.50 USD}}",
        engine.address()
    );
    let tenants = format!("tenants: {{{TENANTS}, list: [{LIST}]}}");
    let gateway = Setup::before(&engine).upstream(&gpus).with(&tenants).start();
    let requests = ["acme", "zeta", "acme"].map(|tenant| (tenant, "gpt-4o-mini"));
    for (tenant, model) in requests.into_iter().chain([("acme", "own"), ("zeta", "own")]) {
        let headers = format!("x-tenant-id: {tenant}\r\nConnection: close\r\n");
        let mut client = gateway.chat(&headers, CHAT.replace("gpt-4o-mini", model));
        let answer = CHAT_ANSWER.replace("gpt-4o-mini-2024-07-18", model);
        engine.answer_once(&json_answer(&answer));
        assert_eq!(client.answer().status(), 200);
    }
    // The cost of the last is known in part only.
    let tool = r#""message":{"executed_tools":[{"type":"teleport"}],"#;
    let mut client = gateway.chat("x-tenant-id: acme\r\nConnection: close\r\n", CHAT);
    engine.answer_once(&json_answer(CHAT_ANSWER.replace(r#""message":{"#, tool)));
    assert!(
        client.answer().header("x-taximeter-cost").is_some_and(|it| it.starts_with("at least"))
    );
    let records = gateway.records();
    let times = |member: &str| {
        let time = |record: &Value| record[member].as_str().expect("a time").to_owned();
        records.iter().map(time).collect::<Vec<_>>()
    };
    let first = times("started_at").into_iter().min().expect("a record");
    let last = times("ended_at").into_iter().max().expect("a record");
    let period = [format!("{}:00:00Z", &first[..13]), last];
    let ledger = Ledger { gateway, period, month: first[..7].to_owned() };
    ledger.correct();
    ledger
}

impl Ledger {
    fn path(&self, name: &str) -> String {
        let folder = self.gateway.data_dir().parent().expect("a folder").to_owned();
        folder.join(name).to_str().expect("UTF-8").to_owned()
    }

    fn command(&self, words: &[&str]) -> Output {
        let (data, config) = (self.path("data"), self.path("taximeter.yaml"));
        let fixed = ["--data-dir", &data, "--config", &config];
        let (command, words) = words.split_first().expect("a command");
        taximeter([command].into_iter().chain(&fixed).chain(words))
    }

    fn bill(&self, words: &[&str]) -> Vec<u8> {
        let [from, to] = &self.period;
        let output = self.command(&[&["bill", "--from", from, "--to", to], words].concat());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        output.stdout
    }

    /// From now on acme should have had another discount.
    fn correct(&self) {
        let text = fs::read_to_string(self.path("taximeter.yaml")).expect("the configuration");
        fs::write(self.path("later.yaml"), text.replace("10 %", "25 %")).expect("another one");
        let (data, config) = (self.path("data"), self.path("later.yaml"));
        let [from, to] = &self.period;
        let words =
            ["rerate", "--data-dir", &data, "--config", &config, "--from", from, "--to", to];
        let output = taximeter(words.iter().chain(&["--reason", "late discount"]));
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }

    /// What each tenant owes, credits taken off.
    fn owed(&self) -> BTreeMap<String, Decimal> {
        let bill = self.bill(&["--by", "tenant", "--format", "json"]);
        let bill: Value = serde_json::from_slice(&bill).expect("JSON");
        let mut owed = BTreeMap::new();
        for row in list(&bill["rows"]) {
            add(&mut owed, &row["tenant"], decimal(&row["cost"]));
        }
        for credit in list(&bill["credits"]) {
            add(&mut owed, &credit["tenant"], -decimal(&credit["amount"]));
        }
        let sum: Decimal = owed.values().sum();
        assert_eq!(sum, decimal(&bill["total"]["cost"]), "{bill:#}");
        assert!(list(&bill["credits"]).len() == 2 && sum > Decimal::ZERO, "{bill:#}");
        owed
    }

    /// An export to a file, its manifest beside it.
    fn export(&self, format: &str, folder: &Path) -> PathBuf {
        let file = folder.join(format);
        self.bill(&["--format", format, "-o", file.to_str().expect("UTF-8")]);
        file
    }
}

fn list(value: &Value) -> &Vec<Value> {
    value.as_array().expect("a list")
}

fn decimal(value: &Value) -> Decimal {
    value.as_str().and_then(|text| text.parse().ok()).unwrap_or_else(|| panic!("{value}"))
}

fn add(sums: &mut BTreeMap<String, Decimal>, tenant: &Value, amount: Decimal) {
    *sums.entry(tenant.as_str().expect("a tenant").to_owned()).or_default() += amount;
}

fn normal(sums: BTreeMap<String, Decimal>) -> BTreeMap<String, Decimal> {
    sums.into_iter().map(|(tenant, sum)| (tenant, sum.normalize())).collect()
}

/// The cost of an event, or what is known of it.
fn known(event: &Value) -> Option<Decimal> {
    ["cost", "cost_known"]
        .map(|name| &event[name])
        .into_iter()
        .find(|it| it.is_string())
        .map(decimal)
}

/// The events of all batches.
fn events(batches: &[u8]) -> Vec<Value> {
    let text = String::from_utf8(batches.to_vec()).expect("UTF-8");
    let batches = text.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    batches
        .flat_map(|batch| list(if batch.is_array() { &batch } else { &batch["events"] }).clone())
        .collect()
}

#[test]
fn every_export_comes_to_the_bill() {
    let ledger = ledger();
    let owed = normal(ledger.owed());
    let total: Decimal = owed.values().sum();
    let sum = |format: &str, tenant: &str, cost: fn(&Value) -> Option<Decimal>| {
        let mut sums = BTreeMap::new();
        for event in events(&ledger.bill(&["--format", format])) {
            add(&mut sums, &event[tenant], cost(&event).unwrap_or_default());
        }
        normal(sums)
    };
    let cost = |event: &Value| known(&event["data"]);
    assert_eq!(sum("cloudevents", "subject", cost), owed);
    let cost = |event: &Value| known(&event["properties"]);
    assert_eq!(sum("orb", "external_customer_id", cost), owed);
    let cost = |event: &Value| {
        let cents = &event["precise_total_amount_cents"];
        cents.is_string().then(|| decimal(cents) / Decimal::ONE_HUNDRED)
    };
    assert_eq!(sum("lago", "external_subscription_id", cost), owed);

    let folder = tempfile::tempdir().expect("a folder");
    for format in FORMATS {
        let file = ledger.export(format, folder.path());
        let bytes = fs::read(&file).expect("the file");
        let path = format!("{}.manifest.json", file.display());
        let told = fs::read(&path).expect("a manifest");
        let manifest: Value = serde_json::from_slice(&told).expect("JSON");
        let sum = match format {
            "parquet" | "ndjson" => &manifest["owed"]["USD"],
            _ => &manifest["sums"]["USD"]["billed_cost"],
        };
        assert_eq!(decimal(sum), total, "{format}: {manifest:#}");
        assert_eq!(manifest["requests"], 6, "{format}: {manifest:#}");
        let unknown = &manifest["unknown_cost_requests"];
        let has_gpus = !matches!(format, "parquet" | "ndjson");
        assert_eq!(*unknown, if has_gpus { 1 } else { 3 }, "{format}: {manifest:#}");
        let sequences = manifest["sequences"].as_object().expect("sequences");
        assert!(sequences.values().all(|range| range["records"] == 6), "{format}: {manifest:#}");
        assert_eq!(sequences.len(), 1, "{format}: {manifest:#}");
        let whole = ledger.command(&["verify", "--export", &path]);
        assert!(whole.status.success(), "{format}: {}", String::from_utf8_lossy(&whole.stdout));
        ledger.export(format, folder.path());
        assert!(fs::read(&file).expect("the file") == bytes, "{format} differs");
        assert!(fs::read(&path).expect("the manifest") == told, "the manifest of {format} differs");
    }
}

#[test]
fn focus_has_rows_of_credits_corrections_and_idle_gpus() {
    let ledger = ledger();
    let text = String::from_utf8(ledger.bill(&["--format", "focus"])).expect("UTF-8");
    let mut lines = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let head = lines.next().expect("a head");
    let place = |name: &str| head.iter().position(|found| *found == name).expect("a column");
    let (cost, tenant) = (place("BilledCost"), place("BillingAccountId"));
    let (category, class) = (place("ChargeCategory"), place("ChargeClass"));
    let rows: Vec<_> = lines.collect();
    let mut sums = BTreeMap::new();
    for row in &rows {
        add(&mut sums, &row[tenant].into(), row[cost].parse().expect("a decimal"));
    }
    assert_eq!(normal(sums), normal(ledger.owed()));
    assert_eq!(rows.iter().filter(|row| row[category] == "Credit").count(), 2, "{text}");
    assert!(rows.iter().any(|row| row[tenant] == "idle/gpus"), "{text}");
    assert!(rows.iter().any(|row| row[cost].starts_with('-') && row[category] == "Usage"));
    assert!(rows.iter().all(|row| row[class].is_empty()), "its month was never invoiced: {text}");
}

#[test]
fn the_admin_address_has_the_terms_too() {
    let ledger = ledger();
    let [from, to] = &ledger.period;
    for format in ["focus", "cloudevents", "lago"] {
        let answer =
            ledger.gateway.admin(&format!("/api/v1/export?format={format}&from={from}&to={to}"));
        assert_eq!(answer.status(), 200);
        assert!(answer.body == ledger.bill(&["--format", format]), "{format} differs");
    }
}

#[test]
fn a_manifest_that_lacks_an_entry_or_a_credit_is_found() {
    let ledger = ledger();
    let folder = tempfile::tempdir().expect("a folder");
    let file = ledger.export("focus", folder.path());
    let path = format!("{}.manifest.json", file.display());
    let text = fs::read_to_string(&path).expect("the manifest");
    let said = |output: &Output| String::from_utf8_lossy(&output.stdout).into_owned();
    let changed = |from: &str, to: &str| {
        fs::write(&path, text.replace(from, to)).expect("write it");
        let output = ledger.command(&["verify", "--export", &path]);
        assert_eq!(output.status.code(), Some(1), "{}", said(&output));
        said(&output)
    };
    let told = changed("\"records\": 6", "\"records\": 5");
    assert!(told.contains("has 5 records with numbers from"), "{told}");
    let told = changed("\"corrections\": 3", "\"corrections\": 2");
    assert!(told.contains("the export has 2 corrections, and the ledger has 3"), "{told}");
    fs::write(&path, &text).expect("restore it");
    let data = ledger.path("data");
    let without = taximeter(["verify", "--data-dir", &data, "--export", &path]);
    assert_eq!(without.status.code(), Some(1));
    assert!(said(&without).contains("GPUs and credits come from --config"), "{}", said(&without));
}

#[test]
fn a_statement_has_shares_of_gpus_and_what_is_free() {
    let ledger = ledger();
    let (private, public, file) =
        (ledger.path("signing.pem"), ledger.path("public.pem"), ledger.path("acme.json"));
    let made = taximeter(["keys", "signing", "-o", &private]);
    fs::write(&public, &made.stdout).expect("write the public key");
    let words = ["verify", "--statement", "acme", "--month", &ledger.month, "--signing-key"];
    let made = ledger.command(&[&words[..], &[&private, "-o", &file]].concat());
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let text = fs::read_to_string(&file).expect("the statement");
    let signed: Value = serde_json::from_str(&text).expect("JSON");
    let statement = &signed["statement"];
    let credits = list(&statement["credits"]);
    assert_eq!((credits.len(), &credits[0]["tokens"]), (1, &"50".into()), "{statement:#}");
    assert!(list(&statement["lines"]).iter().any(|line| line["meter"] == "gpu"), "{statement:#}");
    assert_eq!(statement["unknown_cost_requests"], 1, "{statement:#}");
    let checked = taximeter(["verify", "--statement", &file, "--public-key", &public]);
    let said = String::from_utf8_lossy(&checked.stdout).into_owned();
    assert!(checked.status.success() && said.contains("allowance in 20"), "{said}");
}
