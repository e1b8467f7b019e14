//! Requests that were admitted and used nothing: each has a record, which nobody pays for. What the
//! gateway refuses itself is counted.

use serde_json::{Value, json};

use crate::client::Client;
use crate::engine::Engine;
use crate::fixtures::{CHAT, CHAT_ANSWER};
use crate::gateway::{Gateway, Setup, taximeter};
use crate::http::{answer, bare, json_answer, post};
use crate::patience::patiently;

/// A record says that its request has used nothing and owes nothing, and that all of this is known.
pub(crate) fn assert_unused(record: &Value) {
    let (usage, cost) = (&record["usage"], &record["cost"]);
    assert_eq!(usage["source"], "none", "{record}");
    for member in ["input_tokens", "output_tokens", "counted", "passes"] {
        assert_eq!(usage[member], Value::Null, "{record}");
    }
    assert_eq!((&cost["amount"], &cost["list_amount"]), (&"0".into(), &"0".into()), "{record}");
    assert_eq!((&cost["currency"], &cost["lines"]), (&"USD".into(), &Value::Array(Vec::new())));
    for member in ["cost_unknown", "cost_known"] {
        assert_eq!(record.get(member), None, "{record}");
    }
    assert!(record["timing"]["stages"].is_object(), "{record}");
}

/// Waits for so many records, all of requests that used nothing and owe nothing, and ended so.
pub(crate) fn await_unused(
    gateway: &Gateway,
    count: usize,
    end: &str,
    error_type: &str,
) -> Vec<Value> {
    let records = gateway.await_records(count);
    for record in &records {
        assert_eq!((&record["end"], &record["error_type"]), (&end.into(), &error_type.into()));
        assert_unused(record);
    }
    records
}

/// What a command prints about this gateway's ledger.
fn told(gateway: &Gateway, words: &[&str]) -> String {
    let dir = gateway.data_dir();
    let place = ["--data-dir", dir.to_str().expect("a path in UTF-8")];
    let output = taximeter(words.iter().chain(&place));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// The counts of refusals, as `[reason, status, admitted, requests]`.
fn refusals(gateway: &Gateway) -> Vec<Value> {
    let document: Value =
        serde_json::from_str(&told(gateway, &["refusals", "--json"])).expect("JSON");
    let rows = document["rows"].as_array().expect("rows");
    let rows = rows.iter().map(|row| {
        json!([row["tenant"], row["reason"], row["status"], row["admitted"], row["requests"]])
    });
    rows.collect()
}

#[test]
fn a_refused_credential_of_ours_is_on_the_record_by_the_names_of_its_error() {
    let engine = Engine::start();
    let gateway = Setup::before(&engine).upstream("dialect: openai, credential: sk-ours").start();
    let mut client = gateway.chat("", CHAT);
    let error = r#"{"error":{"message":"sk-ours","type":"auth","code":"invalid_api_key"}}"#;
    engine.answer_once(&answer("401 Unauthorized", "application/json", error));
    assert_eq!(client.answer().status(), 502);
    let record = &await_unused(&gateway, 1, "upstream_refused", "401")[0];
    assert_eq!(record["error"], json!({"type": "auth", "code": "invalid_api_key"}), "{record}");
}

#[test]
fn what_used_nothing_is_in_the_records_and_in_no_bill_and_no_event() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    let mut client = gateway.chat("", CHAT);
    engine.answer_once(&json_answer(CHAT_ANSWER));
    assert_eq!(client.answer().status(), 200);
    gateway.await_records(1);
    let asked = [
        &["bill", "--by", "tenant,model", "--json"][..],
        &["bill", "--format", "focus"],
        &["bill", "--format", "cloudevents"],
        &["bill", "--format", "stripe"],
        &["bill", "--format", "lago"],
        &["bill", "--format", "orb"],
    ];
    // The end of the month so far is always another.
    let facts = |gateway: &Gateway| {
        asked.map(|words| {
            let text = told(gateway, words);
            serde_json::from_str::<Value>(&text).map_or(text, |bill| bill["rows"].to_string())
        })
    };
    let before = facts(&gateway);
    for status in ["400 Bad Request", "429 Too Many Requests", "500 Internal Server Error"] {
        let mut client = gateway.chat("", CHAT);
        engine.answer_once(&answer(status, "application/json", "{}"));
        client.answer();
    }
    let mut client = gateway.chat("", CHAT);
    let reported = r#"{"error":{"code":"late"},"usage":{"prompt_tokens":0,"completion_tokens":0}}"#;
    engine.answer_once(&json_answer(r#"{"error":{"code":"overloaded"}}"#));
    client.answer();
    // To count tokens is free.
    let count = post("/v1/messages/count_tokens", "", CHAT);
    let mut client = Client::saying(gateway.address(), &count);
    engine.answer_once(&json_answer(r#"{"input_tokens":11}"#));
    assert_eq!(client.answer().status(), 200);
    gateway.await_records(6);
    assert_eq!(facts(&gateway), before);
    assert_eq!(told(&gateway, &["bill", "--format", "ndjson"]).lines().count(), 6);
    assert!(!told(&gateway, &["verify"]).is_empty());
    // What an error reports is owed.
    let mut client = gateway.chat("", CHAT);
    let reported = reported.replace(":0", ":7");
    engine.answer_once(&answer("500 Internal Server Error", "application/json", &reported));
    client.answer();
    let last = gateway.await_records(7).pop().expect("a record");
    assert_eq!(
        (&last["usage"]["source"], &last["usage"]["input_tokens"]),
        (&"reported".into(), &7.into())
    );
    assert_eq!(last["error"], json!({"code": "late"}), "{last}");
    assert_ne!(facts(&gateway), before);
}

#[test]
fn a_flood_of_refusals_leaves_so_many_records_a_second_and_all_are_counted() {
    let address = Engine::start().address();
    let upstream = format!("name: e, url: \"http://{address}\", dialect: openai");
    let mut gateway = Setup::with_upstream(&upstream).with("limits: {attempts_max: 1}").start();
    let mut asked = 0;
    let listen = gateway.address();
    let ask = move || {
        let mut client = Client::connect(listen);
        for _ in 0..50 {
            client.send(&post("/v1/chat/completions", "", CHAT));
            assert!(client.answer().status() >= 502);
        }
    };
    // However slow the machine is, one of these is a flood.
    let is_summed = patiently(|| {
        std::thread::scope(|scope| (0..10).for_each(|_| drop(scope.spawn(ask))));
        asked += 500;
        let told = gateway.admin("/api/v1/refusals").json();
        (told["total"].as_u64() > Some(0)).then_some(())
    });
    assert!(is_summed.is_some(), "{asked} requests were no flood");
    gateway.terminate();
    assert_eq!(gateway.exit().0.code(), Some(0));
    let records = gateway.records();
    records.iter().for_each(assert_unused);
    let summed: u64 = refusals(&gateway)
        .iter()
        .inspect(|row| assert_eq!((&row[0], &row[3]), (&"default".into(), &true.into()), "{row}"))
        .filter_map(|row| row[4].as_u64())
        .sum();
    assert!(summed > 0);
    assert_eq!(records.len() as u64 + summed, asked, "{summed} are summed");
    let mut by_second = std::collections::BTreeMap::new();
    for record in &records {
        let second = record["ended_at"].as_str().expect("a time")[..19].to_owned();
        *by_second.entry((second, record["status"].to_string())).or_insert(0) += 1;
    }
    // A second of the wall clock has parts of two seconds of the guard.
    assert!(by_second.values().all(|records| *records <= 200), "{by_second:?}");
}

#[test]
fn what_the_gateway_refuses_is_counted_once_over_a_restart() {
    let engine = Engine::start();
    let setup = || {
        let sha = "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b";
        Setup::before(&engine).upstream("dialect: openai, models: [gpt-4o-mini]").with(&format!(
            "tenants: {{unknown: refuse, keys: [{{id: k, tenant: acme, sha256: {sha}}}]}}"
        ))
    };
    let refuse = |gateway: &Gateway| {
        for _ in 0..3 {
            assert_eq!(gateway.ask(&post("/v1/chat/completions", "", CHAT)).status(), 401);
        }
        assert_eq!(gateway.ask(&bare("GET", "/nowhere", "")).status(), 404);
        let key = "x-api-key: secret\r\n";
        let lost = r#"{"model":"lost","messages":[]}"#;
        assert_eq!(gateway.ask(&post("/v1/chat/completions", key, lost)).status(), 404);
        assert_eq!(gateway.ask(b"GET / HTTP/1.1\r\nHost x\r\n\r\n").status(), 400);
    };
    let mut gateway = setup().start();
    refuse(&gateway);
    let told_now = gateway.admin("/api/v1/refusals?reason=missing_api_key").json();
    assert_eq!(told_now["total"], 3, "{told_now}");
    assert_eq!(told_now["last"].as_array().map(Vec::len), Some(3), "{told_now}");
    let last = &gateway.admin("/api/v1/refusals?tenant=acme").json()["last"][0];
    assert_eq!((&last["key_id"], &last["status"]), (&"k".into(), &404.into()), "{last}");
    assert_eq!(last["route"], "/v1/chat/completions", "{last}");
    assert!(
        !last.to_string().contains("127.0.0.1") && !last.to_string().contains("lost"),
        "{last}"
    );
    let page = gateway.admin("/refusals").text().to_owned();
    assert!(page.contains("missing_api_key") && page.contains("model_not_found"), "{page}");
    gateway.terminate();
    assert_eq!(gateway.exit().0.code(), Some(0));
    let mut gateway = setup().start_in(gateway.into_folder());
    refuse(&gateway);
    gateway.terminate();
    assert_eq!(gateway.exit().0.code(), Some(0));
    let mut found = refusals(&gateway);
    found.sort_by_key(ToString::to_string);
    let row = |tenant: Option<&str>, reason: &str, status: u16, requests: u64| {
        json!([tenant, reason, status, false, requests])
    };
    let mut expected = vec![
        row(None, "missing_api_key", 401, 6),
        row(None, "unknown_route", 404, 2),
        row(Some("acme"), "model_not_found", 404, 2),
        row(None, "bad_framing", 400, 2),
    ];
    expected.sort_by_key(ToString::to_string);
    assert_eq!(found, expected);
    assert!(gateway.records().is_empty());
    // Reading the journals again changes nothing.
    told(&gateway, &["verify", "--rebuild"]);
    let mut again = refusals(&gateway);
    again.sort_by_key(ToString::to_string);
    assert_eq!(again, expected);
    let table = told(&gateway, &["refusals", "--tenant", "acme", "--by", "day"]);
    assert!(table.contains("model_not_found") && !table.contains("missing_api_key"), "{table}");
    assert!(told(&gateway, &["refusals", "--format", "csv"]).starts_with("tenant,other_tenants,"));
}
