//! `/api/v1/status`: the state of upstreams, ledger, store and pushes.

use serde_json::Value;

use super::await_store;
use super::description::Description;
use crate::engine::Engine;
use crate::fixtures::{CHAT, CHAT_ANSWER};
use crate::gateway::{Gateway, Setup};
use crate::http::json_answer;
use crate::patience::patiently;

#[test]
fn the_status_tells_how_upstreams_ledger_and_store_do() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    let description = Description::of(&gateway);
    let status = || description.checked("/api/v1/status", &gateway.admin("/api/v1/status"));
    let before = status();
    assert_eq!(before["upstreams"][0]["health"], "unknown");
    assert_eq!(before["limits"]["body_bytes_max"], 32 << 20);
    assert_eq!(before["limits"]["drain_seconds"], 30);
    assert_eq!(before["limits"]["drain_grace_seconds"], 0);

    let mut client = gateway.chat("", CHAT);
    engine.answer_once(&json_answer(CHAT_ANSWER));
    client.answer();
    await_store(&gateway);
    let after = status();
    assert_eq!(after["upstreams"][0]["health"], "answering");
    assert_eq!(after["ledger"]["entries"], 2, "a reservation and a post");
    assert_eq!(
        (&after["ledger"]["segments"], &after["ledger"]["lost_entries"]),
        (&1.into(), &0.into())
    );
    assert_eq!(after["store"]["fault"], Value::Null);
    let synced = patiently(|| (status()["ledger"]["synced_entries"] == 2).then_some(()));
    assert!(synced.is_some(), "with `group` the disk has it soon");

    let mut client = gateway.chat("", CHAT);
    engine.request().0.reset();
    assert_eq!(client.answer().status(), 502);
    let failed = status();
    let upstream = &failed["upstreams"][0];
    assert_eq!((&upstream["health"], &upstream["failures"]), (&"failing".into(), &1.into()));
    assert_eq!(upstream["last_failure"]["cause"], "upstream_reset");
}

#[test]
fn the_status_tells_how_the_pushing_of_each_signal_does() {
    let (engine, collector) = (Engine::start(), Engine::start());
    let otlp = format!(
        "otlp: {{endpoint: 'http://{}', headers: {{x-key: sesame}}, interval_seconds: 3600}}",
        collector.address()
    );
    let telemetry = format!("telemetry: {{{otlp}, traces: {{}}}}");
    let gateway = Setup::before(&engine).upstream("dialect: openai").with(&telemetry).start();
    let description = Description::of(&gateway);
    let traces = || {
        let told = description.checked("/api/v1/status", &gateway.admin("/api/v1/status"));
        assert!(!told.to_string().contains("sesame"), "{told}");
        let signals = [&told["collectors"][0]["signal"], &told["collectors"][1]["signal"]];
        assert_eq!(signals, ["metrics", "traces"]);
        told["collectors"][1].clone()
    };
    let before = traces();
    assert_eq!(before["url"], format!("http://{}/v1/traces", collector.address()));
    assert_eq!((&before["protocol"], &before["sent_at"]), (&"http/protobuf".into(), &Value::Null));

    let mut client = gateway.chat("", CHAT);
    engine.answer_once(&json_answer(CHAT_ANSWER));
    client.answer();
    let (mut connection, _) = collector.request();
    connection.send(b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    let failing = patiently(|| Some(traces()).filter(|it| it["failures"] == 1)).expect("failing");
    assert!(failing["last_failure"]["reason"].as_str().is_some_and(|why| why.contains("503")));
    let page = gateway.admin("/upstreams");
    assert!(page.text().contains("Sends traces to"), "{}", page.text());

    let (mut connection, _) = collector.request();
    connection.send(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    let sent = patiently(|| Some(traces()).filter(|it| it["failures"] == 0)).expect("sent");
    assert!(sent["sent_items"].as_u64() > Some(5) && sent["sent_at"].is_string(), "{sent}");
    assert_eq!((&sent["waiting"], &sent["dropped_items"]), (&0.into(), &0.into()));
}
