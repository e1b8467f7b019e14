//! What clients say of their requests finds them again, splits bills and exports, and is on spans: of
//! two tenants that use the same names, and to the last digit.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Output;

use rust_decimal::Decimal;
use serde_json::{Value, json};

use crate::client::Client;
use crate::collector::attributes;
use crate::engine::Engine;
use crate::fixtures::CHAT_ANSWER;
use crate::gateway::{Gateway, Setup, taximeter};
use crate::http::{json_answer, post};
use crate::traces;

const TENANTS: &str =
    "tenants: {unknown: acme, header: {name: x-tenant-id, trusted_peers: [127.0.0.0/8]}}";
const TAGS: &str = "dimensions: {tags: [{name: team, header: x-team}]}";
const CODEX: &str = "user-agent: codex_exec/0.169.0 (Debian 12; x86_64)\r\nsession-id: s-1\r\n";
const SUB: &str = "thread-id: sub-1\r\nx-codex-parent-thread-id: s-1\r\n";

/// A chat of a tenant with these headers and this further member.
fn chat(gateway: &Gateway, engine: &Engine, (tenant, headers, member): (&str, &str, &str)) {
    let body = format!(r#"{{"model":"gpt-4o-mini","messages":[]{member}}}"#);
    let headers = format!("Connection: close\r\nx-tenant-id: {tenant}\r\n{headers}");
    let mut client =
        Client::saying(gateway.address(), &post("/v1/chat/completions", &headers, &body));
    engine.answer_once(&json_answer(CHAT_ANSWER));
    assert_eq!(client.answer().status(), 200, "{}", client.all());
}

/// A gateway with the requests of two tenants, of which both have a session `s-1`.
fn ledger(engine: &Engine, sections: &[&str]) -> Gateway {
    let setup = Setup::before(engine).upstream("dialect: openai").with(TENANTS).with(TAGS);
    let gateway = sections.iter().fold(setup, |setup, section| setup.with(section)).start();
    let anna = r#","user":"anna@example.org""#;
    let requests = [
        ("acme", format!("{CODEX}thread-id: s-1\r\n"), ""),
        ("acme", format!("{CODEX}{SUB}"), ""),
        ("acme", String::new(), ""),
        ("beta", "x-session-id: s-1\r\n".to_owned(), anna),
        ("beta", "x-session-id: s-2\r\nx-team: search\r\n".to_owned(), anna),
        ("beta", "x-session-id: s-2\r\nx-team: ads\r\n".to_owned(), ""),
    ];
    for (tenant, headers, member) in &requests {
        chat(&gateway, engine, (tenant, headers, member));
    }
    gateway.await_records(requests.len());
    gateway
}

fn run(gateway: &Gateway, words: &[&str]) -> Output {
    let config = gateway.config_file();
    let place = ["--config", config.to_str().expect("a path in UTF-8")];
    taximeter(words.iter().chain(&place))
}

fn printed(gateway: &Gateway, words: &[&str]) -> String {
    let output = run(gateway, words);
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}

fn seqs<'a>(records: impl IntoIterator<Item = &'a Value>) -> BTreeSet<u64> {
    records.into_iter().filter_map(|record| record["seq"].as_u64()).collect()
}

/// The records that a filter finds, which are the same for the command and the API.
fn found(gateway: &Gateway, filters: &[(&str, &str)]) -> Vec<Value> {
    let mut words = vec!["records".to_owned()];
    let mut query = String::from("/api/v1/records?order=oldest");
    for (name, value) in filters {
        words.extend([format!("--{}", name.replace('_', "-")), (*value).to_owned()]);
        query += &format!("&{name}={}", value.replace('=', "%3D").replace('@', "%40"));
    }
    let words: Vec<_> = words.iter().map(String::as_str).collect();
    let lines = printed(gateway, &words);
    let records = lines.lines().map(|line| serde_json::from_str(line).expect("a record"));
    let records: Vec<Value> = records.collect();
    let answer = gateway.admin(&query).json();
    let told = answer["records"].as_array().unwrap_or_else(|| panic!("{query}: {answer}"));
    assert_eq!(seqs(told), seqs(&records), "{filters:?}");
    records
}

#[test]
fn records_are_found_by_what_their_clients_said() {
    let engine = Engine::start();
    let gateway = ledger(&engine, &["sessions: hash"]);
    let all = found(&gateway, &[]);
    assert!(all.iter().all(|record| record["session"] != "s-1"), "names are hashed");
    for (filters, count) in [
        (&[("session", "s-1")][..], 3),
        (&[("session", "s-1"), ("tenant", "beta")], 1),
        (&[("session", "s-3")], 0),
        (&[("agent", "root")], 1),
        (&[("agent", "sub-1"), ("session", "s-1")], 1),
        (&[("agent", "sub-1"), ("session", "s-2")], 0),
        (&[("client", "codex")], 2),
        (&[("client", "codex/0.169"), ("tenant", "beta")], 0),
        (&[("end_user", "anna@example.org")], 2),
        (&[("end_user", "anna")], 0),
        (&[("tag", "team=search")], 1),
        (&[("tag", "team=sea")], 0),
    ] {
        assert_eq!(found(&gateway, filters).len(), count, "{filters:?}");
    }
    // A hash as records show it does as well.
    let anna = &found(&gateway, &[("end_user", "anna@example.org")])[0];
    for (name, count) in [("session", 3), ("end_user", 2)] {
        let hash = anna[name].as_str().expect("a name");
        assert_eq!((hash.len(), found(&gateway, &[(name, hash)]).len()), (32, count), "{name}");
    }
    let last = printed(&gateway, &["records", "--session", "s-1", "--limit", "2"]);
    let last: Vec<Value> = last.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let whole = found(&gateway, &[("session", "s-1")]);
    assert_eq!(last, whole[1..]);
    let without = gateway.admin("/api/v1/records?without=session").json();
    assert_eq!(without["records"].as_array().map(Vec::len), Some(1), "{without}");
    let page = gateway.admin("/requests?session=s-1&tenant=beta").text().to_owned();
    assert!(page.contains(r#"name="session" value="s-1""#), "{page}");
    assert_eq!(run(&gateway, &["records", "--tag", "search"]).status.code(), Some(2));
    assert_eq!(gateway.admin("/api/v1/records?tag=search").status(), 400);
}

fn decimal(value: &Value) -> Decimal {
    value.as_str().and_then(|text| text.parse().ok()).unwrap_or_else(|| panic!("{value}"))
}

/// Number of requests and cost of each line, by the values of these columns.
fn lines(bill: &Value, columns: &[&str]) -> BTreeMap<Vec<String>, (u64, Decimal)> {
    let rows = bill["rows"].as_array().expect("rows").iter();
    let keys = |row: &Value| columns.iter().map(|column| row[column].to_string()).collect();
    rows.map(|row| (keys(row), (row["requests"].as_u64().unwrap(), decimal(&row["cost"]))))
        .collect()
}

#[test]
fn bills_are_split_by_what_clients_said_to_the_last_digit() {
    let engine = Engine::start();
    let gateway = ledger(&engine, &[]);
    let bill = |by: &str| -> Value {
        serde_json::from_str(&printed(&gateway, &["bill", "--json", "--by", by])).expect("JSON")
    };
    let (whole, split) = (bill("tenant"), bill("tenant,session"));
    assert_eq!(split["total"], whole["total"]);
    let sessions = lines(&split, &["tenant", "session"]);
    let counts: Vec<_> = sessions.iter().map(|(key, (count, _))| (key.join(" "), *count)).collect();
    let expected = [
        (r#""acme" "s-1""#, 2),
        (r#""acme" null"#, 1),
        (r#""beta" "s-1""#, 1),
        (r#""beta" "s-2""#, 2),
    ];
    assert_eq!(counts, expected.map(|(key, count)| (key.to_owned(), count)));
    for (tenant, (_, cost)) in lines(&whole, &["tenant"]) {
        let parts = sessions.iter().filter(|(key, _)| key[0] == tenant[0]);
        assert_eq!(parts.map(|(_, (_, cost))| *cost).sum::<Decimal>(), cost, "{tenant:?}");
    }
    for (by, lines_expected) in
        [("session", 3), ("agent", 3), ("client", 2), ("end_user", 2), ("tag:team", 3)]
    {
        let split = bill(by);
        assert_eq!(split["total"], whole["total"], "{by}");
        let split = lines(&split, &[by]);
        assert_eq!(split.len(), lines_expected, "{by}");
        let none = split.keys().filter(|key| key[0] == "null").count();
        assert_eq!(none, 1, "{by}");
    }
    let table = printed(&gateway, &["bill", "--by", "session"]);
    assert!(table.contains("(none)") && table.contains("s-2"), "{table}");
    let usage = gateway.admin("/api/v1/usage?by=session,tag:team").json();
    assert_eq!(usage["lines"].as_array().map(Vec::len), Some(4), "{usage}");
    assert_eq!(decimal(&usage["total"]["billed_cost"]), decimal(&whole["total"]["cost"]));
}

/// Rows of a CSV without quotes, by the names of their columns.
fn rows(csv: &str) -> Vec<BTreeMap<&str, &str>> {
    let mut lines = csv.split_terminator("\r\n").map(|line| line.split(','));
    let names: Vec<_> = lines.next().expect("a head").collect();
    lines.map(|cells| names.iter().copied().zip(cells).collect()).collect()
}

#[test]
fn exports_have_what_clients_said() {
    let engine = Engine::start();
    let gateway = ledger(&engine, &["end_user: keep"]);
    let focus = |words: &[&str]| {
        let text = printed(&gateway, &[&["bill", "--format", "focus"], words].concat());
        // The JSON of SkuPriceDetails is the one cell with commas.
        text.replace("\"\",\"\"", "")
    };
    let (whole, split) = (focus(&[]), focus(&["--by", "session,agent"]));
    let cost = |row: &BTreeMap<&str, &str>| row["BilledCost"].parse::<Decimal>().expect("a cost");
    let total: Decimal = rows(&whole).iter().map(cost).sum();
    assert!(rows(&whole).iter().all(|row| !row.contains_key("x_Session")));
    let mut sessions = BTreeMap::<_, Decimal>::new();
    for row in rows(&split) {
        let key = (row["SubAccountId"], row["x_Session"], row["x_Agent"]);
        *sessions.entry(key).or_default() += cost(&row);
    }
    let each = total / Decimal::from(6);
    let expected = [
        (("acme", "", ""), 1),
        (("acme", "s-1", "root"), 1),
        (("acme", "s-1", "sub-1"), 1),
        (("beta", "s-1", ""), 1),
        (("beta", "s-2", ""), 2),
    ];
    assert_eq!(sessions, expected.map(|(key, count)| (key, each * Decimal::from(count))).into());
    let told = gateway.admin("/api/v1/export?format=focus&by=session,agent");
    assert_eq!(told.text().replace("\"\",\"\"", ""), split);
    let tags = focus(&["--by", "end_user,tag:team"]);
    assert!(tags.contains(r#",anna@example.org,"{""team"":""search""}""#), "{tags}");
    for (format, by) in [("focus", "tenant"), ("focus", "session,day"), ("parquet", "session")] {
        let refused = run(&gateway, &["bill", "--format", format, "--by", by]);
        assert_eq!(refused.status.code(), Some(2), "{format} {by}");
        let refused = gateway.admin(&format!("/api/v1/export?format={format}&by={by}"));
        assert_eq!(refused.status(), 400, "{format} {by}");
    }
    let events = printed(&gateway, &["bill", "--format", "cloudevents"]);
    let events: Value = serde_json::from_str(&events).expect("one batch");
    let said = |event: &Value| {
        let data = event["data"].as_object().expect("data").clone();
        let names = ["session", "agent", "client", "end_user", "tag:team"];
        names.map(|name| data.get(name).cloned().unwrap_or_default())
    };
    let said: BTreeSet<_> = events
        .as_array()
        .expect("events")
        .iter()
        .map(|event| json!([event["subject"], said(event)]).to_string())
        .collect();
    for event in [
        json!(["acme", ["s-1", "sub-1", "codex/0.169", null, null]]),
        json!(["acme", [null, null, null, null, null]]),
        json!(["beta", ["s-2", null, null, "anna@example.org", "search"]]),
    ] {
        assert!(said.contains(&event.to_string()), "{event}: {said:?}");
    }
}

#[test]
fn the_session_and_the_agent_are_on_spans_and_log_lines_and_on_no_metric() {
    let (engine, collector) = (Engine::start(), Engine::start());
    let gateway = traces::gateway(&engine, &collector, "{}, access_log: all");
    chat(&gateway, &engine, ("acme", &format!("{CODEX}{SUB}"), ""));
    let spans = traces::spans(&collector);
    let call = attributes(&spans["chat gpt-4o-mini"].attributes);
    assert_eq!(call["gen_ai.conversation.id"], "s-1", "{call:?}");
    assert_eq!(call["gen_ai.agent.id"], "sub-1", "{call:?}");
    let line = gateway.await_event("request");
    assert_eq!((&line["session"], &line["agent"]), (&json!("s-1"), &json!("sub-1")));
    let metrics = gateway.metrics();
    assert!(!metrics.contains("s-1") && !metrics.contains("sub-1"), "{metrics}");
}
