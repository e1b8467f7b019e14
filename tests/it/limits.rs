//! Limits at their edge: what is as much as may be passes, one more does not.

use std::collections::BTreeMap;
use std::net::TcpListener;

use serde_json::{Value, json};

use crate::client::Client;
use crate::engine::Engine;
use crate::fixtures::{CHAT, CHAT_ANSWER, DONE, HELLO, STOP, STREAM_CHAT, USAGE};
use crate::gateway::{self, Gateway, Setup};
use crate::http::{bare, json_answer, post, stream_answer};
use crate::unused::assert_unused;

fn limited(engine: &Engine, limits: &str) -> Gateway {
    Setup::before(engine).upstream("dialect: openai").with(&format!("limits: {{{limits}}}")).start()
}

/// One whole answer of the engine; the request's record.
fn answered(gateway: &Gateway, engine: &Engine, body: &str, answer: &[u8]) -> Value {
    let before = gateway.records().len();
    let mut client = gateway.chat("Connection: close\r\n", body);
    engine.answer_once(answer);
    assert_eq!(client.answer().status(), 200);
    gateway.await_records(before + 1).remove(before)
}

fn has_flag(record: &Value, flag: &str) -> bool {
    record["usage"]["flags"].as_array().expect("flags").contains(&flag.into())
}

#[test]
fn the_status_shows_every_limit_with_the_default_of_the_schema() {
    let engine = Engine::start();
    let status = Gateway::before(&engine).admin("/api/v1/status").json();
    let schema: Value =
        serde_json::from_slice(&gateway::taximeter(["schema"]).stdout).expect("a schema in JSON");
    let limits = schema["properties"]["limits"]["properties"].as_object().expect("limits");
    let shown = status["limits"].as_object().expect("limits");
    for (name, limit) in limits.iter().filter(|(_, limit)| limit.get("default").is_some()) {
        assert_eq!(shown[name], limit["default"], "{name}");
    }
    assert!(shown.keys().all(|name| limits.contains_key(name)), "{shown:?}");
    // The machine sets this one.
    assert!(shown["bodies_total_bytes_max"].is_u64());
}

#[test]
fn json_nested_deeper_than_may_be_is_refused_and_says_so() {
    let engine = Engine::start();
    let gateway = limited(&engine, "json_depth_max: 5");
    let nested = |depth: usize| {
        let (open, close) = ("[".repeat(depth - 1), "]".repeat(depth - 1));
        format!(r#"{{"model":"gpt-4o","x":{open}{close}}}"#)
    };
    answered(&gateway, &engine, &nested(5), &json_answer(CHAT_ANSWER));
    let refused = gateway.chat("", nested(6)).answer();
    let error = &refused.json()["error"];
    assert_eq!((refused.status(), &error["code"]), (400, &"invalid_json".into()));
    assert!(error["message"].as_str().expect("a message").contains("deeper than 5 levels"));
    engine.assert_untouched();
}

#[test]
fn a_prompt_longer_than_is_counted_is_estimated() {
    let engine = Engine::start();
    let gateway = limited(&engine, "count_bytes_max: 200");
    let unreported = CHAT_ANSWER.replace("usage", "unused");
    let of = |length: usize| CHAT.replace("Where to?", &"a".repeat(length + 9 - CHAT.len()));
    for (length, is_estimated) in [(200, false), (201, true)] {
        let body = of(length);
        assert_eq!(body.len(), length);
        let record = answered(&gateway, &engine, &body, &json_answer(&unreported));
        assert_eq!(record["usage"]["source"], "counted");
        assert_eq!(has_flag(&record, "estimated"), is_estimated, "{length}: {record}");
    }
}

#[test]
fn a_metric_has_no_more_series_than_it_may_and_loses_no_request() {
    let engine = Engine::start();
    let setup = Setup::before(&engine).upstream("dialect: openai");
    let by_header = "tenants: {header: {name: x-tenant, trusted_peers: [127.0.0.1]}}";
    let gateway = setup.with(by_header).with("limits: {series_per_metric_max: 10}").start();
    let requests = |metrics: &str| -> Vec<u64> {
        let lines = metrics.lines().filter(|line| line.starts_with("taximeter_requests_total{"));
        lines
            .map(|line| line.rsplit(' ').next().expect("a value").parse().expect("a count"))
            .collect()
    };
    for nth in 0..15 {
        let tenant = format!("X-Tenant: tenant-{nth}\r\nConnection: close\r\n");
        let mut client = gateway.chat(&tenant, CHAT);
        engine.answer_once(&json_answer(CHAT_ANSWER));
        assert_eq!(client.answer().status(), 200);
    }
    gateway.await_records(15);
    let metrics = gateway.metrics();
    let told = requests(&metrics);
    assert_eq!((told.len(), told.iter().sum()), (10, 15), "{metrics}");
    let mut series: BTreeMap<&str, usize> = BTreeMap::new();
    for line in metrics.lines().filter(|line| !line.starts_with('#') && !line.contains("le=")) {
        *series.entry(line.split(['{', ' ']).next().expect("a name")).or_default() += 1;
    }
    assert!(series.values().all(|series| *series <= 10), "{series:?}");
}

#[test]
fn a_text_in_the_log_is_no_longer_than_it_may_be_and_a_reload_changes_that() {
    let engine = Engine::start();
    let setup = || Setup::before(&engine).upstream("dialect: openai");
    let limits = "limits: {log_field_bytes_max: 64, log_lines_per_kind_per_second_max: 1000}";
    let gateway = setup().with(limits).start();
    let told = |bytes: usize| {
        // Such as `no route /aaa; this gateway …`, which is longer than the limit in any case.
        gateway.ask(&bare("GET", &format!("/{}", "a".repeat(bytes)), "Connection: close\r\n"));
        gateway.await_event("request_refused")["message"].as_str().expect("a text").len()
    };
    assert_eq!(told(200), 64);
    gateway.rewrite(&setup().with("limits: {log_field_bytes_max: 100}"));
    gateway.await_event("config_reloaded");
    assert_eq!(told(200), 100);
}

#[test]
fn an_answer_that_fits_into_the_buffer_has_its_receipt_in_front_and_a_longer_one_has_none() {
    let engine = Engine::start();
    for (room, is_gathered) in [(CHAT_ANSWER.len(), true), (CHAT_ANSWER.len() - 1, false)] {
        let gateway = limited(&engine, &format!("relay_buffer_bytes: {room}"));
        let mut client = gateway.chat("", CHAT);
        engine.answer_once(&json_answer(CHAT_ANSWER));
        let answer = client.answer();
        assert_eq!((answer.status(), answer.text()), (200, CHAT_ANSWER));
        assert_eq!(answer.header("x-taximeter-tokens").is_some(), is_gathered, "{room}");
        assert_eq!(gateway.record()["usage"]["output_tokens"], 100);
    }
}

#[test]
fn a_stream_passes_whole_through_the_smallest_buffer() {
    let engine = Engine::start();
    let gateway = limited(&engine, "relay_buffer_bytes: 1");
    let events = [HELLO, STOP, USAGE, DONE];
    let mut client = gateway.chat("", STREAM_CHAT);
    engine.answer_once(&stream_answer(&events));
    assert_eq!(client.answer().text(), [HELLO, STOP, DONE].concat());
    assert_eq!(gateway.record()["usage"]["output_tokens"], 100);
}

/// Where nobody listens.
fn nowhere() -> std::net::SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("bind");
    listener.local_addr().expect("its address")
}

fn before(address: std::net::SocketAddr, limits: &str) -> Gateway {
    let upstream = format!("name: engine, url: \"http://{address}\", dialect: openai");
    Setup::with_upstream(&upstream).with(&format!("limits: {{{limits}}}")).start()
}

#[test]
fn an_engine_that_cannot_be_reached_is_tried_as_often_as_may_be() {
    for attempts in [1, 3] {
        let gateway = before(nowhere(), &format!("attempts_max: {attempts}"));
        let answer = gateway.chat("", CHAT).answer();
        assert_eq!(answer.status(), 502);
        assert_eq!(answer.json()["error"]["code"], "upstream_connect");
        let labels = r#"{taximeter_cause="connect",taximeter_upstream="engine"}"#;
        gateway
            .await_metric(&format!("taximeter_upstream_connect_failures_total{labels} {attempts}"));
        let again = format!("taximeter_upstream_retries_total{labels} {}", attempts - 1);
        assert_eq!(gateway.metrics().contains(&again), attempts > 1, "{}", gateway.metrics());
        assert_unused(&gateway.record());
    }
}

#[test]
fn an_engine_that_comes_back_meanwhile_answers_and_the_record_says_which_attempt() {
    let engine = TcpListener::bind("127.0.0.1:0").expect("bind");
    let address = engine.local_addr().expect("its address");
    drop(engine);
    let gateway = before(address, "attempts_max: 10");
    let mut client = gateway.chat("", CHAT);
    gateway.await_event("upstream_unreachable");
    let engine = Engine::at(address);
    engine.answer_once(&json_answer(CHAT_ANSWER));
    let answer = client.answer();
    assert_eq!((answer.status(), answer.text()), (200, CHAT_ANSWER));
    let record = gateway.record();
    assert!(record["attempt"].as_u64() > Some(1), "{record}");
    assert_eq!(record["end"], "complete");
}

#[test]
fn what_an_engine_may_have_begun_is_not_tried_again() {
    let engine = Engine::start();
    let gateway = limited(&engine, "attempts_max: 10");
    let mut client = gateway.chat("", CHAT);
    let (connection, _) = engine.request();
    connection.reset();
    let answer = client.answer();
    assert_eq!((answer.status(), &answer.json()["error"]["code"]), (502, &json!("upstream_reset")));
    engine.assert_untouched();
}

#[test]
fn an_idle_connection_to_an_engine_is_kept_as_long_as_may_be_and_then_closed() {
    let engine = Engine::start();
    for (seconds, is_kept) in [("60", true), ("0.2", false)] {
        let gateway = limited(&engine, &format!("upstream_keep_alive_seconds: {seconds}"));
        let mut client = gateway.chat("", CHAT);
        let (mut connection, _) = engine.request();
        connection.send(&json_answer(CHAT_ANSWER));
        assert_eq!(client.answer().status(), 200);
        if is_kept {
            client.send(&post("/v1/chat/completions", "", CHAT));
            connection.request();
            connection.send(&json_answer(CHAT_ANSWER));
            assert_eq!(client.answer().status(), 200);
        } else {
            connection.assert_closed_by_gateway();
        }
        engine.assert_untouched();
    }
}

#[test]
fn a_head_a_target_and_a_body_as_large_as_may_be_pass_and_one_more_is_refused() {
    let engine = Engine::start();
    let limits = "header_bytes_max: 8192, headers_max: 10, uri_bytes_max: 100, body_bytes_max: 500";
    let gateway = limited(&engine, limits);
    let path = "/v1/chat/completions";
    let target = |bytes: usize| format!("{path}?{}", "x".repeat(bytes - path.len() - 1));
    let fields = |count: usize| "X: 1\r\n".repeat(count - 4) + "Connection: close\r\n";
    let body = |bytes: usize| CHAT.replace("Where to?", &"a".repeat(bytes + 9 - CHAT.len()));
    let head = |bytes: usize| {
        let own = post(path, "Connection: close\r\nX: \r\n", CHAT).len() - CHAT.len();
        format!("Connection: close\r\nX: {}\r\n", "x".repeat(bytes - own))
    };
    let requests = |more: usize| {
        [
            (414, post(&target(100 + more), "Connection: close\r\n", CHAT)),
            // Host, content-type and content-length are there already.
            (431, post(path, &fields(10 + more), CHAT)),
            (413, post(path, "Connection: close\r\n", body(500 + more))),
            (431, post(path, &head(8_192 + more), CHAT)),
        ]
    };
    for (status, request) in requests(0) {
        let mut client = Client::saying(gateway.address(), &request);
        if let Some(mut connection) = engine.taken(&client) {
            connection.send(&json_answer(CHAT_ANSWER));
        }
        assert_eq!(client.answer().status(), 200, "not {status}");
    }
    for (status, request) in requests(1) {
        assert_eq!(gateway.ask(&request).status(), status);
    }
    engine.assert_untouched();
}
