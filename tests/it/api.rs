//! The usage API on the admin address: what it answers is as it describes it, adds up to the bill,
//! and refuses with the name of what is wrong.

use std::collections::BTreeSet;

use rust_decimal::Decimal;
use serde_json::Value;

use crate::client::ask;
use crate::engine::Engine;
use crate::fixtures::{CHAT, CHAT_ANSWER};
use crate::gateway::{Gateway, Setup, taximeter};
use crate::http::{Message, bare, json_answer};
use crate::patience::patiently;

mod compressed;
mod console;
mod description;
mod docs;
mod exports;
mod fleet;
mod live;
mod status;
mod zones;

use description::Description;

/// Tenants are named by a header.
const BY_HEADER: &str = "unknown: refuse, header: {name: x-tenant-id, \
                         trusted_peers: [127.0.0.0/8]}";
/// A ledger with terms: what acme pays is less, and some of it is free.
const TERMS: &str = "list: [{name: acme, discount: 10 %, \
                     allowance: {money: 0.0001 USD}}]";

/// Three chats of acme, one of them at an unknown cost, and one of zeta.
fn metered() -> (Engine, Gateway) {
    metered_with("")
}

/// The same by a configuration that has `more`.
fn metered_with(more: &str) -> (Engine, Gateway) {
    let engine = Engine::start();
    let tenants = format!("tenants: {{{BY_HEADER}, {TERMS}}}\n{more}");
    let gateway = Setup::before(&engine).upstream("dialect: openai").with(&tenants).start();
    let unpriced = CHAT_ANSWER.replace("gpt-4o-mini-2024-07-18", "home-grown");
    for (tenant, request, answer) in [
        ("acme", "gpt-4o-mini", CHAT_ANSWER),
        ("zeta", "gpt-4o-mini", CHAT_ANSWER),
        ("acme", "gpt-4o-mini", CHAT_ANSWER),
        ("acme", "home-grown", &unpriced),
    ] {
        let headers = format!("x-tenant-id: {tenant}\r\nx-request-id: of-{tenant}\r\n");
        let mut client = gateway.chat(&headers, CHAT.replace("gpt-4o-mini", request));
        engine.answer_once(&json_answer(answer));
        assert_eq!(client.answer().status(), 200);
    }
    await_store(&gateway);
    (engine, gateway)
}

/// Waits until the store has all that the ledger has.
fn await_store(gateway: &Gateway) {
    let pending = || gateway.admin("/api/v1/status").json()["store"]["pending_entries"].as_u64();
    assert!(patiently(|| (pending() == Some(0)).then_some(())).is_some(), "it is not fed");
}

fn bill(gateway: &Gateway, words: &[&str]) -> Value {
    let words: Vec<_> = ["--format", "json"].iter().chain(words).copied().collect();
    serde_json::from_slice(&written(gateway, &words)).expect("JSON")
}

/// What `taximeter bill` writes on the terms of the gateway's configuration.
fn written(gateway: &Gateway, words: &[&str]) -> Vec<u8> {
    let data_dir = gateway.data_dir();
    let config = data_dir.parent().expect("a folder").join("taximeter.yaml");
    let (data_dir, config) = (data_dir.to_str().expect("UTF-8"), config.to_str().expect("UTF-8"));
    let fixed = ["bill", "--data-dir", data_dir, "--config", config];
    let output = taximeter(fixed.iter().chain(words));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

fn decimal(value: &Value) -> Decimal {
    let text = value.as_str().unwrap_or_else(|| panic!("money is a string, not {value}"));
    text.parse().expect("a decimal")
}

fn list(value: &Value) -> &Vec<Value> {
    value.as_array().unwrap_or_else(|| panic!("a list, not {value}"))
}

#[test]
fn usage_adds_up_to_the_bill_of_the_same_period() {
    let (_engine, gateway) = metered();
    let description = Description::of(&gateway);
    for by in ["tenant", "tenant,model", "upstream,operation,route,key", "month", "day,tenant"] {
        let usage = gateway.admin(&format!("/api/v1/usage?by={by}"));
        let usage = description.checked("/api/v1/usage", &usage);
        let bill = bill(&gateway, &["--by", by]);
        assert_eq!(usage["currency"], bill["currency"]);
        assert_eq!(usage["period"]["from"], bill["period"]["from"]);
        assert_eq!(usage["period"]["to"], bill["period"]["to"]);
        assert_eq!(usage["period"]["provisional"], true);
        assert_eq!(usage["pending_entries"], 0);
        let total = &usage["total"];
        assert_eq!(total["billed_cost"], bill["total"]["cost"], "less what is free");
        assert_eq!(total["list_cost"], bill["total"]["list_cost"]);
        assert_eq!(total["requests"]["count"], bill["total"]["requests"]);
        assert_eq!(total["requests"]["unknown_cost"], bill["total"]["unknown_cost_requests"]);
        assert_eq!(total["requests"]["input_tokens"], bill["total"]["input_tokens"]);
        let (lines, rows) = (list(&usage["lines"]), list(&bill["rows"]));
        assert_eq!(lines.len(), rows.len());
        for (line, row) in lines.iter().zip(rows) {
            for name in by.split(',') {
                assert_eq!(line["keys"][name], row[name], "{line}");
            }
            assert_eq!(line["contracted_cost"], row["cost"]);
            assert_eq!(line["requests"]["output_tokens"], row["output_tokens"]);
        }
        let credit = &usage["credits"][0];
        assert_eq!(credit["amount"], bill["credits"][0]["amount"]);
        let contracted = decimal(&total["contracted_cost"]);
        assert_eq!(contracted - decimal(&credit["amount"]), decimal(&total["billed_cost"]));
    }
}

#[test]
fn what_is_split_by_meter_and_source_adds_up_too() {
    let (_engine, gateway) = metered();
    let description = Description::of(&gateway);
    for by in ["meter", "source", "tenant,meter", "hour,meter,source,model"] {
        let usage = gateway.admin(&format!("/api/v1/usage?by={by}"));
        let usage = description.checked("/api/v1/usage", &usage);
        let sum = |member: &str| -> Decimal {
            list(&usage["lines"]).iter().map(|line| decimal(&line[member])).sum()
        };
        assert_eq!(sum("contracted_cost"), decimal(&usage["total"]["contracted_cost"]), "{by}");
        assert_eq!(sum("list_cost"), decimal(&usage["total"]["list_cost"]), "{by}");
        for line in list(&usage["lines"]) {
            assert_eq!((&line["requests"], &line["unit"]), (&Value::Null, &"tokens".into()));
            let names: BTreeSet<_> = line["keys"].as_object().expect("keys").keys().collect();
            assert_eq!(names.len(), by.split(',').count(), "{line}");
        }
    }
    // 400 of 1000 input tokens of each of three chats were read from a cache.
    let usage = gateway.admin("/api/v1/usage?by=meter").json();
    let cached = list(&usage["lines"]).iter().find(|line| line["keys"]["meter"] == "cache_read");
    assert_eq!(cached.expect("a line")["quantity"], "1200");
}

#[test]
fn a_period_that_is_over_is_not_provisional_and_nothing_in_it_is_zero() {
    let (_engine, gateway) = metered();
    let description = Description::of(&gateway);
    let usage = gateway.admin("/api/v1/usage?from=2024-02-01&to=2024-02-02T12:30:00%2B01:00");
    let usage = description.checked("/api/v1/usage", &usage);
    assert_eq!(usage["period"]["to"], "2024-02-02T11:30:00Z");
    assert_eq!(usage["period"]["provisional"], false);
    assert_eq!(usage["total"]["requests"]["count"], 0);
    assert_eq!(usage["total"]["billed_cost"], "0", "nothing was asked for, which is known");
    assert_eq!(usage["lines"], serde_json::json!([]));
    let acme = gateway.admin("/api/v1/usage?tenant=zeta&by=tenant").json();
    assert_eq!(acme["total"]["requests"]["count"], 1);
}

#[test]
fn records_come_page_by_page_in_both_orders() {
    let (_engine, gateway) = metered();
    let description = Description::of(&gateway);
    let all = gateway.records();
    let ids = |records: &[Value]| records.iter().map(|r| r["id"].clone()).collect::<Vec<_>>();
    for (order, limit) in
        [("oldest", 1), ("oldest", 3), ("newest", 1), ("newest", 2), ("newest", 9)]
    {
        let (mut pages, mut cursor) = (Vec::new(), String::new());
        loop {
            let page =
                gateway.admin(&format!("/api/v1/records?order={order}&limit={limit}{cursor}"));
            let page = description.checked("/api/v1/records", &page);
            assert!(!list(&page["records"]).is_empty(), "no page is empty here");
            pages.extend(list(&page["records"]).clone());
            let Some(next) = page["next"].as_str() else { break };
            cursor = format!("&cursor={next}");
        }
        let mut expected = ids(&all);
        if order == "newest" {
            expected.reverse();
        }
        assert_eq!(ids(&pages), expected, "{order} {limit}");
        assert!(all.contains(&pages[0]), "a record is what the command prints");
    }
}

#[test]
fn records_are_found_by_what_they_have() {
    let (_engine, gateway) = metered();
    let description = Description::of(&gateway);
    let month = gateway.records()[0]["started_at"].as_str().expect("a time")[..7].to_owned();
    for (query, count) in [
        ("tenant=acme", 3),
        ("model=home-grown", 1),
        ("model=gpt-4o-mini&tenant=acme", 2),
        ("model=gpt-4o-mini-2024-07-18", 3),
        ("end=complete", 4),
        ("end=client_left", 0),
        ("request_id=of-zeta", 1),
        ("upstream=engine", 4),
        ("upstream=other", 0),
        ("key=prod", 0),
        ("label=team%3Dsearch", 0),
        ("without=key,label:team", 4),
        ("without=model", 0),
        ("to=2024-02-01", 0),
        ("from=2024-02-01", 4),
        (&format!("month={month}"), 4),
        ("month=2024-02", 0),
    ] {
        let page = gateway.admin(&format!("/api/v1/records?{query}"));
        let page = description.checked("/api/v1/records", &page);
        assert_eq!(list(&page["records"]).len(), count, "{query}");
        assert_eq!(page["next"], Value::Null);
    }
    let record = &gateway.records()[0];
    let id = record["id"].as_str().expect("an id");
    let found = gateway.admin(&format!("/api/v1/records/{id}"));
    let found = description.checked("/api/v1/records/{id}", &found);
    assert_eq!((&found["record"], &found["corrections"]), (record, &serde_json::json!([])));
    let other = "0193e9a0-0000-7000-8000-000000000001";
    for id in [other, "nothing", "%00", "6fa459ea-ee8a-3ca4-894e-db77e160355e"] {
        let missing = gateway.admin(&format!("/api/v1/records/{id}"));
        assert_eq!(missing.status(), 404, "{id}");
        description.checked("/api/v1/records/{id}", &missing);
    }
}

#[test]
fn prices_are_told_by_model_provider_and_date() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    let description = Description::of(&gateway);
    let asked = |query: &str| {
        description.checked("/api/v1/prices", &gateway.admin(&format!("/api/v1/prices{query}")))
    };
    let book = asked("");
    assert!(book["version"].as_str().is_some_and(|v| v.starts_with("builtin@")), "{book}");
    assert_eq!(list(&book["models"]).len() as u64, book["models_count"].as_u64().expect("a count"));
    let mini = asked("?model=gpt-4o-mini-2024-07-18&provider=openai");
    let price = &mini["prices"][0];
    assert_eq!(
        price["rates"]["input"],
        serde_json::json!({"price": "0.00000015", "unit": "tokens"})
    );
    assert!(price["price_id"].as_str().is_some_and(|id| id.ends_with("gpt-4o-mini")), "{price}");
    let listed = asked("?contains=4o-mini&provider=openai");
    assert!(list(&listed["models"]).iter().any(|row| row["model"] == "gpt-4o-mini"), "{listed}");
    assert!(!list(&asked("?model=gpt-4o-mini")["prices"]).is_empty());
    for row in list(&book["models"]) {
        let (model, provider) = (row["model"].as_str(), row["provider"].as_str());
        let (model, provider) = (model.expect("a name"), provider.expect("a provider"));
        let priced = asked(&format!("?model={model}&provider={provider}"));
        assert_eq!(list(&priced["prices"]).len(), 1, "{row}");
    }
    for (name, words) in [
        ("gpt-4o-mini", "exact"),
        ("gpt-4o-mini-2024-07-18", "date"),
        ("OpenAI/GPT-4o-mini", "provider+case"),
    ] {
        assert_eq!(asked(&format!("?model={name}"))["prices"][0]["price_match"], words);
    }
    let unknown = gateway.admin("/api/v1/prices?model=ft:gpt-4o-mini:acme::9x&provider=openai");
    assert!(unknown.text().contains("is a fine-tuned model"), "{}", unknown.text());
    let unknown = gateway.admin("/api/v1/prices?model=gpt4o-mini");
    assert!(unknown.text().contains("names like it: openai/gpt-4o-mini"), "{}", unknown.text());
    let unknown = gateway.admin("/api/v1/prices?model=home-grown");
    assert_eq!(unknown.status(), 404);
    description.checked("/api/v1/prices", &unknown);
}

/// Every question that makes no sense, and which parameter is to blame.
const SENSELESS: [(&str, &str, &str); 37] = [
    ("/api/v1/usage", "zone=Berlin", "zone"),
    ("/api/v1/records", "zone=%2B01:00", "zone"),
    ("/api/v1/export", "format=focus&zone=Europe/Berlin", "zone"),
    ("/api/v1/usage", "month=2026-13", "month"),
    ("/api/v1/usage", "from=yesterday", "from"),
    ("/api/v1/usage", "from=2026-11-01&to=2026-11-01T00:00", "to"),
    ("/api/v1/usage", "by=", "by"),
    ("/api/v1/usage", "by=tennant", "by"),
    ("/api/v1/usage", "by=tenant,tenant", "by"),
    ("/api/v1/usage", "by=meter,meter", "by"),
    ("/api/v1/usage", "tennant=acme", "tennant"),
    ("/api/v1/usage", "tenant=acme&tenant=zeta", "tenant"),
    ("/api/v1/usage", "=", ""),
    ("/api/v1/usage", "%ff=%ff", "\u{fffd}"),
    ("/api/v1/records", "limit=0", "limit"),
    ("/api/v1/records", "limit=1001", "limit"),
    ("/api/v1/records", "limit=-1", "limit"),
    ("/api/v1/records", "limit=99999999999999999999", "limit"),
    ("/api/v1/records", "order=random", "order"),
    ("/api/v1/records", "end=finished", "end"),
    ("/api/v1/records", "cursor=next", "cursor"),
    ("/api/v1/records", "from=", "from"),
    ("/api/v1/records", "label=team", "label"),
    ("/api/v1/records", "without=tenant", "without"),
    ("/api/v1/records", "without=", "without"),
    ("/api/v1/records", "without=key,key", "without"),
    ("/api/v1/records/1", "limit=1", "limit"),
    ("/api/v1/prices", "at=now", "at"),
    ("/api/v1/live", "limit=x", "limit"),
    ("/api/v1/live/events", "every=1", "every"),
    ("/api/v1/status", "verbose=1", "verbose"),
    ("/api/v1/export", "", "format"),
    ("/api/v1/export", "format=xml", "format"),
    ("/api/v1/export", "format=Table", "format"),
    ("/api/v1/export", "format=csv&zone=Berlin", "zone"),
    ("/api/v1/export", "format=csv&by=meter", "by"),
    ("/openapi.json", "pretty", "pretty"),
];

#[test]
fn a_question_that_makes_no_sense_names_the_parameter_and_what_is_allowed() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    let description = Description::of(&gateway);
    for (path, query, parameter) in SENSELESS {
        let answer = gateway.admin(&format!("{path}?{query}"));
        assert_eq!(answer.status(), 400, "{path}?{query}");
        assert_eq!(answer.header("content-type"), Some("application/problem+json"));
        let described = if path.ends_with("/1") { "/api/v1/records/{id}" } else { path };
        let problem = description.checked(described, &answer);
        assert_eq!(problem["parameter"], parameter, "{problem}");
        assert_eq!(problem["type"], "urn:taximeter:problem:invalid_parameter");
        assert_eq!(problem["status"], 400);
    }
    for ends in ["month=2026-11&from=2026-11-01", "to=2026-11-01", "from=2026-11-02&to=2026-11-01"]
    {
        let answer = gateway.admin(&format!("/api/v1/usage?{ends}"));
        assert_eq!(answer.status(), 400, "{ends}");
        description.checked("/api/v1/usage", &answer);
    }
}

#[test]
fn a_cursor_goes_on_as_its_walk_began() {
    let (_engine, gateway) = metered();
    let page = gateway.admin("/api/v1/records?order=oldest&limit=1").json();
    let next = page["next"].as_str().expect("more");
    let answer = gateway.admin(&format!("/api/v1/records?order=newest&cursor={next}"));
    assert_eq!((answer.status(), &answer.json()["parameter"]), (400, &"order".into()));
    let on = gateway.admin(&format!("/api/v1/records?cursor={next}"));
    assert_eq!(list(&on.json()["records"]).len(), 3);
}

#[test]
fn what_is_not_there_and_what_cannot_be_changed_is_said() {
    let engine = Engine::start();
    let gateway = Setup::before(&engine).upstream("dialect: openai").with(CHANGE_TOKEN).start();
    let description = Description::of(&gateway);
    let said = |method: &str, path: &str| {
        let headers = "Authorization: Bearer one\r\nConnection: close\r\n";
        ask(gateway.admin_address(), &bare(method, path, headers))
    };
    let missing = said("GET", "/api/v1/nothing");
    assert_eq!((missing.status(), &missing.json()["status"]), (404, &404.into()));
    for method in ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"] {
        let refused = said(method, "/api/v1/usage");
        assert_eq!(refused.status(), 405, "{method}");
        let allow: BTreeSet<_> =
            refused.header("allow").expect("allow").split(',').map(str::trim).collect();
        assert_eq!(allow, BTreeSet::from(["GET", "HEAD"]));
        assert_eq!(refused.header("content-type"), Some("application/problem+json"));
    }
    for path in ["/healthz", "/readyz", "/metrics", "/openapi.json"] {
        let refused = said("POST", path);
        assert_eq!(refused.status(), 405, "{path}");
        description.checked(path, &refused);
    }
    assert_eq!(said("HEAD", "/api/v1/status").status(), 200);
}

/// A token that may change things, `one`, and one that may not, `two`.
const CHANGE_TOKEN: &str = "admin_tokens:
  - id: one
    sha256: 7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed
    may: [change]
  - id: two
    sha256: 3fc4ccfe745870e2c0d99f71f30ff0656c8dedd41cc1d7d3d376b0dbe685e2f3
    may: [ingest]";

#[test]
fn nothing_is_changed_without_a_token_that_may_or_for_a_page_of_another_origin() {
    let engine = Engine::start();
    let gateway = Setup::before(&engine).upstream("dialect: openai").with(CHANGE_TOKEN).start();
    let bare_one = Gateway::before(&engine);
    let said = |gateway: &Gateway, method: &str, headers: &str| {
        let headers = format!("{headers}Connection: close\r\n");
        ask(gateway.admin_address(), &bare(method, "/api/v1/status", &headers))
    };
    let may = "Authorization: Bearer one\r\n";
    for method in ["POST", "PUT", "PATCH", "DELETE"] {
        for (headers, status, word) in [
            ("", 401, "unauthorized"),
            ("Authorization: Bearer wrong\r\n", 401, "unauthorized"),
            ("Authorization: Bearer two\r\n", 403, "no_right"),
            (may, 405, "method_not_allowed"),
            (&format!("{may}Origin: http://evil.example\r\n"), 403, "foreign_origin"),
            (&format!("{may}Sec-Fetch-Site: cross-site\r\n"), 403, "foreign_origin"),
        ] {
            let answer = said(&gateway, method, headers);
            let kind = format!("urn:taximeter:problem:{word}");
            assert_eq!(
                (answer.status(), &answer.json()["type"]),
                (status, &kind.into()),
                "{method}"
            );
        }
        assert_eq!(said(&bare_one, method, "").status(), 401, "{method}");
    }
    // No token may read, so reading needs none.
    assert_eq!(said(&gateway, "GET", "").status(), 200);
}

/// The same question with these headers.
fn with(gateway: &Gateway, path: &str, headers: &str) -> Message {
    let request = bare("GET", path, &format!("{headers}Connection: close\r\n"));
    ask(gateway.admin_address(), &request)
}

#[test]
fn where_there_is_a_token_nothing_but_probes_is_answered_without_it() {
    let engine = Engine::start();
    let token = "admin_token: correct-horse-battery";
    let gateway = Setup::before(&engine).upstream("dialect: openai").with(token).start();
    let document =
        with(&gateway, "/openapi.json", "Authorization: Bearer correct-horse-battery\r\n");
    let paths: Vec<_> =
        document.json()["paths"].as_object().expect("paths").keys().cloned().collect();
    assert!(paths.len() > 10, "{paths:?}");
    for path in paths.iter().map(|path| path.replace("{id}", "1")) {
        let probe = matches!(path.as_str(), "/healthz" | "/readyz");
        for headers in ["", "Authorization: Bearer wrong\r\n", "Authorization: Basic x\r\n"] {
            let refused = with(&gateway, &path, headers);
            assert_eq!(refused.status() == 401, !probe, "{path}");
            let challenges = refused.headers.iter().filter(|(name, _)| name == "www-authenticate");
            assert_eq!(challenges.count(), if probe { 0 } else { 2 });
        }
    }
    // user:correct-horse-battery, as a browser sends it.
    let basic = "Authorization: Basic dXNlcjpjb3JyZWN0LWhvcnNlLWJhdHRlcnk=\r\n";
    assert_eq!(with(&gateway, "/api/v1/status", basic).status(), 200);
}

#[test]
fn without_a_token_a_page_of_another_host_reads_nothing() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    let description = Description::of(&gateway);
    let as_host = |host: &str| {
        let request =
            format!("GET /api/v1/status HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        ask(gateway.admin_address(), request.as_bytes())
    };
    for host in ["127.0.0.1:9464", "localhost", "[::1]:9464"] {
        assert_eq!(as_host(host).status(), 200, "{host}");
    }
    let refused = as_host("rebound.example:9464");
    assert_eq!(refused.status(), 421);
    description.checked("/api/v1/status", &refused);
}

#[test]
fn a_store_that_cannot_answer_is_said_and_harms_nothing_else() {
    let (engine, gateway) = metered();
    let description = Description::of(&gateway);
    for file in ["store.sqlite", "store.sqlite-wal", "store.sqlite-shm"] {
        std::fs::remove_file(gateway.data_dir().join(file)).expect("remove the store");
    }
    let store = gateway.data_dir().join("store.sqlite");
    std::fs::write(&store, vec![b'x'; 64 << 10]).expect("put something else in its place");
    let answer = gateway.admin("/api/v1/usage");
    assert_eq!(answer.status(), 503);
    let problem = description.checked("/api/v1/usage", &answer);
    assert!(problem["detail"].as_str().is_some_and(|said| said.contains("damaged")), "{problem}");
    assert_eq!(gateway.admin("/api/v1/status").status(), 200);
    let mut client = gateway.chat("x-tenant-id: acme\r\n", CHAT);
    engine.answer_once(&json_answer(CHAT_ANSWER));
    assert_eq!(client.answer().status(), 200);
}
