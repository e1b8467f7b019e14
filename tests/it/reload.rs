//! Another configuration while the gateway runs.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use serde_json::Value;

use crate::client::Client;
use crate::engine::Engine;
use crate::fixtures::{CHAT, CHAT_ANSWER, DONE, HELLO, STOP, STREAM_CHAT, USAGE};
use crate::gateway::{Gateway, Setup};
use crate::http::{LAST_CHUNK, chunk, json_answer, post};
use crate::identity::{ACME, ZETA, keyed};
use crate::patience::patiently;
use crate::simulated::Simulated;

/// A gateway whose callers are all this tenant's.
fn of(tenant: &str, engine: &Engine) -> Setup {
    Setup::before(engine)
        .upstream("dialect: openai")
        .with(&format!("tenants: {{unknown: {tenant}}}"))
}

/// One request, from its client to its engine and back.
fn exchange(gateway: &Gateway, engine: &Engine) {
    let mut client = gateway.chat("", CHAT);
    engine.answer_once(&json_answer(CHAT_ANSWER));
    assert_eq!(client.answer().status(), 200);
}

fn tenants(records: &[Value]) -> Vec<&str> {
    records.iter().map(|record| record["tenant"].as_str().expect("a tenant")).collect()
}

/// `config` of its status.
fn config(gateway: &Gateway) -> Value {
    gateway.admin("/api/v1/status").json()["config"].clone()
}

#[test]
fn a_changed_file_is_in_force_for_the_requests_that_come_and_not_for_those_that_run() {
    let engine = Engine::start();
    let gateway = of("acme", &engine).start();
    let (mut running, mut connection) = gateway.streaming(&engine, STREAM_CHAT, &[HELLO]);
    let before = config(&gateway)["since"].clone();
    gateway.rewrite(&of("blue", &engine));
    gateway.await_event("config_reloaded");
    assert_ne!(config(&gateway)["since"], before);
    exchange(&gateway, &engine);
    connection.send(&[chunk(STOP), chunk(USAGE), chunk(DONE), LAST_CHUNK.to_vec()].concat());
    for event in [STOP, DONE] {
        running.expect(event);
    }
    let mut records = gateway.await_records(2);
    records.sort_by_key(|record| record["started_at"].to_string());
    assert_eq!(tenants(&records), ["acme", "blue"]);
    assert_eq!(records[0]["end"], "complete");
    gateway.await_metric("taximeter_config_valid 1");
    gateway.await_metric("taximeter_config_reloads_total{taximeter_outcome=\"applied\"} 1");
}

#[test]
fn a_key_that_is_taken_away_ends_no_stream_and_begins_none() {
    const ACME_KEY: &str = "Authorization: Bearer sk-acme\r\n";
    let engine = Engine::start();
    let gateway = keyed(&engine, &[ACME, ZETA]).start();
    let mut running = gateway.chat(ACME_KEY, STREAM_CHAT);
    let mut connection = engine.begin_stream();
    connection.send(&chunk(HELLO));
    running.head();
    running.expect(HELLO);
    gateway.rewrite(&keyed(&engine, &[ZETA]));
    gateway.await_event("config_reloaded");
    let refused = gateway.chat(ACME_KEY, CHAT).answer();
    assert_eq!(refused.status(), 401);
    assert_eq!(refused.json()["error"]["code"], "invalid_api_key");
    let mut other = gateway.chat("Authorization: Bearer sk-zeta\r\n", CHAT);
    engine.answer_once(&json_answer(CHAT_ANSWER));
    assert_eq!(other.answer().status(), 200);
    connection.send(&[chunk(STOP), chunk(USAGE), chunk(DONE), LAST_CHUNK.to_vec()].concat());
    for event in [STOP, DONE] {
        running.expect(event);
    }
    let records = gateway.await_records(2);
    let stream = records.iter().find(|record| record["tenant"] == "acme").expect("the stream");
    assert_eq!(stream["end"], "complete");
    assert!(records.iter().any(|record| record["tenant"] == "zeta"));
}

#[test]
fn a_connection_of_a_client_lives_through_it_and_one_to_an_engine_too() {
    let engine = Engine::start();
    let of = |tenant| of(tenant, &engine).keeping_connections();
    let gateway = of("acme").start();
    let mut client = gateway.chat("", CHAT);
    let (mut connection, _) = engine.request();
    connection.send(&json_answer(CHAT_ANSWER));
    assert_eq!(client.answer().status(), 200);
    gateway.rewrite(&of("blue"));
    gateway.await_event("config_reloaded");
    client.send(&post("/v1/chat/completions", "", CHAT));
    // The engine would wait for ever for a request on a connection that was given up.
    connection.request();
    connection.send(&json_answer(CHAT_ANSWER));
    assert_eq!(client.answer().status(), 200);
    assert_eq!(tenants(&gateway.await_records(2)), ["acme", "blue"]);
}

#[test]
fn a_signal_has_the_file_read_changed_or_not() {
    let engine = Engine::start();
    let gateway = of("acme", &engine).start();
    gateway.hang_up();
    gateway.await_event("config_reloaded");
    exchange(&gateway, &engine);
    let by_flags = Gateway::by_flags(&["--upstream", &format!("http://{}", engine.address())]);
    by_flags.hang_up();
    assert!(by_flags.await_event("config_without_file")["hint"].is_string());
    assert_eq!(by_flags.admin("/healthz").status(), 200);
}

#[test]
fn a_bad_file_leaves_the_old_one_in_force_and_every_mistake_is_told() {
    let engine = Engine::start();
    let gateway = of("acme", &engine).start();
    gateway.rewrite(&of("blue", &engine).with("receipt: off\npassthrough: perhaps"));
    let told = [gateway.await_event("config_rejected"), gateway.await_event("config_rejected")];
    for (told, word) in told.iter().zip(["receipt", "passthrough"]) {
        assert_eq!((&told["problems"], &told["level"]), (&Value::from(2), &"critical".into()));
        let problem = told["problem"].as_str().expect("a problem");
        assert!(problem.contains("taximeter.yaml:") && problem.contains(word), "{problem}");
    }
    exchange(&gateway, &engine);
    let status = config(&gateway);
    let problems = status["rejected"]["problems"].as_array().expect("problems");
    assert_eq!(problems.len(), 2, "{status}");
    gateway.await_metric("taximeter_config_valid 0");
    let page = gateway.admin("/upstreams");
    assert!(page.text().contains("rejected") && page.text().contains("passthrough"));
    gateway.rewrite(&of("city", &engine));
    gateway.await_event("config_reloaded");
    exchange(&gateway, &engine);
    gateway.await_metric("taximeter_config_valid 1");
    assert_eq!(config(&gateway)["rejected"], Value::Null);
    assert_eq!(tenants(&gateway.await_records(2)), ["acme", "city"]);
}

#[test]
fn a_file_that_is_gone_leaves_the_old_one_in_force() {
    let engine = Engine::start();
    let gateway = of("acme", &engine).start();
    fs::remove_file(gateway.config_file()).expect("remove the configuration");
    let told = gateway.await_event("config_rejected");
    assert!(told["problem"].as_str().expect("a problem").contains("cannot be read"), "{told}");
    gateway.rewrite(&of("blue", &engine));
    gateway.await_event("config_reloaded");
    exchange(&gateway, &engine);
    assert_eq!(gateway.record()["tenant"], "blue");
}

#[test]
fn what_is_read_at_a_start_only_is_named_and_the_rest_taken() {
    let engine = Engine::start();
    let gateway = of("acme", &engine).start();
    gateway.rewrite(&of("blue", &engine).with("ledger: {durability: os}\nworkers: 3"));
    let told = gateway.await_event("config_waits");
    assert_eq!(told["keys"], "workers, ledger");
    assert_eq!(config(&gateway)["waiting"], serde_json::json!(["workers", "ledger"]));
    assert_eq!(gateway.admin("/api/v1/status").json()["ledger"]["durability"], "group");
    exchange(&gateway, &engine);
    assert_eq!(gateway.record()["tenant"], "blue");
}

#[test]
fn a_stream_keeps_the_limits_and_the_prices_that_it_was_admitted_with() {
    let engine = Engine::start();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let setup = |price: &str, idle: &str| {
        let book = folder.path().join(format!("{price}.yaml"));
        fs::write(&book, prices(price)).expect("write the prices");
        let setup = Setup::before(&engine).upstream("dialect: openai");
        setup
            .with(&format!("prices: {{overrides: {book:?}}}"))
            .with(&format!("limits: {{upstream_idle_timeout_seconds: {idle}}}"))
    };
    let gateway = setup("1", "3600").start();
    let (mut older, mut connection) = gateway.streaming(&engine, STREAM_CHAT, &[HELLO]);
    gateway.rewrite(&setup("2", "0.2"));
    gateway.await_event("config_reloaded");
    // Silent for shorter, and cut all the same.
    let (mut younger, _silent) = gateway.streaming(&engine, STREAM_CHAT, &[HELLO]);
    while younger.next_chunk().is_some_and(|chunk| !chunk.is_empty()) {}
    assert_eq!(gateway.await_records(1)[0]["end"], "upstream_stalled");
    connection.send(&[chunk(STOP), chunk(USAGE), chunk(DONE), LAST_CHUNK.to_vec()].concat());
    for event in [STOP, DONE] {
        older.expect(event);
    }
    for record in gateway.await_records(2) {
        let price = if record["end"] == "complete" { "0.000001" } else { "0.000002" };
        assert_eq!(record["cost"]["lines"][0]["unit_price"], price, "{record:#}");
    }
}

/// A book of one model, whose input is so many dollars a million.
fn prices(input: &str) -> String {
    format!(
        "version: 2026-11-22\ncurrency: USD\nmodels:\n- model: gpt-4o-mini\n  \
         provider: openai\n  rates: {{input: {input}, cache_read: 0, output: 0}}\n"
    )
}

/// What a ConfigMap or a Secret shows: files that are links into a folder, which is a link itself.
fn show(folder: &Path, version: &str, files: &[(&str, &str)]) {
    let hidden = folder.join(format!("..{version}"));
    fs::create_dir_all(&hidden).expect("a folder");
    for (name, text) in files {
        fs::write(hidden.join(name), text).expect("write a file");
        if !folder.join(name).is_symlink() {
            symlink(format!("..data/{name}"), folder.join(name)).expect("a link");
        }
    }
    let next = folder.join("..next");
    symlink(format!("..{version}"), &next).expect("a link");
    fs::rename(next, folder.join("..data")).expect("swap the link");
}

#[test]
fn secrets_and_prices_beside_the_file_are_read_again_too() {
    let engine = Engine::start();
    let folder = tempfile::tempdir().expect("a temporary folder");
    show(folder.path(), "one", &[("key", "sk-first\n"), ("prices.yaml", &prices("1"))]);
    let path = folder.path().display();
    let gateway = Setup::before(&engine)
        .upstream(&format!("dialect: openai, credential: \"${{file:{path}/key}}\""))
        .with(&format!("prices: {{overrides: \"{path}/prices.yaml\"}}"))
        .start();
    let credential = || {
        let mut client = gateway.chat("", CHAT);
        let request = engine.answer_once(&json_answer(CHAT_ANSWER));
        assert_eq!(client.answer().status(), 200);
        request.header("authorization").map(str::to_owned)
    };
    assert_eq!(credential().as_deref(), Some("Bearer sk-first"));
    show(folder.path(), "two", &[("key", "sk-other\n"), ("prices.yaml", &prices("2"))]);
    gateway.await_event("config_reloaded");
    assert_eq!(credential().as_deref(), Some("Bearer sk-other"));
    let costs: Vec<_> = gateway.await_records(2).iter().map(|r| r["cost"].clone()).collect();
    assert_eq!(costs[0]["lines"][0]["unit_price"], "0.000001", "{costs:#?}");
    assert_eq!(costs[1]["lines"][0]["unit_price"], "0.000002", "{costs:#?}");
}

#[test]
fn an_upstream_that_is_taken_away_ends_its_streams_and_gets_no_more() {
    let (old, new) = (Engine::start(), Engine::start());
    let gateway = of("acme", &old).start();
    let (mut running, mut connection) = gateway.streaming(&old, STREAM_CHAT, &[HELLO]);
    gateway.rewrite(
        &Setup::with_upstream(&format!("name: other, url: \"http://{}\"", new.address()))
            .upstream("dialect: openai"),
    );
    gateway.await_event("config_reloaded");
    exchange(&gateway, &new);
    assert_eq!(gateway.admin("/api/v1/status").json()["upstreams"][0]["name"], "other");
    // A request may be seen for a moment after its answer has been read.
    let alone = || Some(gateway.admin("/api/v1/live").json()).filter(|live| live["open"] == 1);
    assert_eq!(patiently(alone).expect("one")["requests"][0]["upstream"], "engine");
    connection.send(&[chunk(STOP), chunk(USAGE), chunk(DONE), LAST_CHUNK.to_vec()].concat());
    for event in [STOP, DONE] {
        running.expect(event);
    }
    let records = gateway.await_records(2);
    assert!(records.iter().any(|r| r["upstream"] == "engine" && r["end"] == "complete"));
    assert!(records.iter().any(|r| r["upstream"] == "other"));
}

/// Times that the configuration changes under load; `tests/soak` has more of them.
const RELOADS: &str = "TAXIMETER_TEST_RELOADS";

/// Threads that ask all the time, each on a connection of its own.
const CLIENTS: usize = 3;

#[test]
fn no_request_fails_while_configurations_come_and_go() {
    let reloads: u32 = std::env::var(RELOADS).map_or(10, |n| n.parse().expect("a number"));
    let engine = Simulated::start();
    let setup = |tenant: &str| {
        let url = format!("name: engine, url: \"http://{}\", dialect: openai", engine.address);
        Setup::with_upstream(&url).with(&format!("tenants: {{unknown: {tenant}}}"))
    };
    let gateway = setup("a").start();
    let memory = || {
        let text = gateway.metrics();
        let line = text.lines().find(|line| line.starts_with("process_memory_usage_bytes"));
        line.and_then(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).expect("memory")
    };
    let over = AtomicBool::new(false);
    let address = gateway.address();
    let asked = |body: &str| {
        let mut client = Client::connect(address);
        let mut asked = 0;
        while !over.load(Relaxed) {
            client.send(&post("/v1/chat/completions", "", body));
            let answer = client.answer();
            assert!(answer.status() == 200 && answer.complete, "request {asked}: {answer:?}");
            asked += 1;
        }
        asked
    };
    let mut taken = Vec::new();
    let asked: usize = std::thread::scope(|scope| {
        let bodies = [CHAT, STREAM_CHAT].into_iter().cycle().take(CLIENTS);
        let clients: Vec<_> = bodies.map(|body| scope.spawn(move || asked(body))).collect();
        for nth in 1..=reloads {
            gateway.rewrite(&setup(if nth % 2 == 0 { "a" } else { "b" }));
            gateway.hang_up();
            gateway.await_metric(&format!(
                "taximeter_config_reloads_total{{taximeter_outcome=\"applied\"}} {nth}\n"
            ));
            taken.push(memory());
        }
        over.store(true, Relaxed);
        clients.into_iter().map(|client| client.join().expect("a client")).sum()
    });
    let (begin, end) = taken.split_at(taken.len() / 2);
    let (before, last) = end.split_at(end.len() / 2);
    let most = |taken: &[f64]| taken.iter().copied().fold(0.0, f64::max);
    let (begin, before, last) = (most(begin), most(before), most(last));
    println!(
        "{reloads} reloads, {asked} requests, 0 failed; memory in bytes, at most: {begin} in the \
         first half, {before} in the third quarter, {last} in the last"
    );
    let records = gateway.await_records(asked);
    assert!(records.iter().all(|record| record["end"] == "complete"));
    // One that is kept for good would be some hundred kilobytes each time: its book of prices. What
    // an allocator keeps of the first ones is some megabytes; later it needs no more.
    assert!(last - begin < 20e6, "{begin}, {last}");
    if reloads >= 200 {
        assert!(last - before < 4e6, "{before}, {last}");
    }
}
