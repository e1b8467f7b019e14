//! How a gateway ends that is told to: no longer ready, then no longer open, then gone.

use std::net::TcpListener;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;
use taximeter_tests::postgres::Server;
use tempfile::TempDir;

use crate::client::Client;
use crate::engine::Engine;
use crate::fixtures::{CHAT, CHAT_ANSWER, DONE, HELLO, STOP, STREAM_CHAT, USAGE};
use crate::gateway::{Gateway, Setup, records, taximeter};
use crate::http::{LAST_CHUNK, chunks, json_answer, post};
use crate::patience::{Limit, PATIENCE};

/// Longer than any test waits: what ends a drain of so long is something else.
const FOR_EVER: &str = "limits: {drain_seconds: 3600}";
const GRACE_FOR_EVER: &str = "limits: {drain_grace_seconds: 3600, drain_seconds: 3600}";

#[test]
fn sigterm_lets_a_running_stream_finish() {
    let engine = Engine::start();
    let mut gateway = Gateway::before(&engine);
    let (mut client, mut connection) = gateway.streaming(&engine, STREAM_CHAT, &[HELLO]);
    gateway.terminate();
    gateway.await_refusal();
    assert_eq!(gateway.admin("/readyz").status(), 503);
    assert_eq!(gateway.admin("/healthz").status(), 200);
    connection.send(&chunks(&[STOP, USAGE, DONE]));
    connection.send(LAST_CHUNK);
    let mut rest = Vec::new();
    while let Some(more) = client.next_chunk().filter(|more| !more.is_empty()) {
        rest.extend(more);
    }
    assert_eq!(String::from_utf8_lossy(&rest), [STOP, DONE].concat());
    let (status, log) = gateway.exit();
    assert_eq!(status.code(), Some(0), "{log:#?}");
    let records = records(&gateway.data_dir());
    assert_eq!(records.len(), 1);
    assert_eq!(records[0]["end"], "complete");
}

/// The gateway ends well, and its only stream was cut and settled; its record.
fn assert_cut(gateway: &mut Gateway, client: &mut Client) -> Value {
    let (status, log) = gateway.exit();
    assert_eq!(status.code(), Some(0), "{log:#?}");
    let mut rest = Vec::new();
    while let Some(more) = client.next_chunk().filter(|more| !more.is_empty()) {
        rest.extend(more);
    }
    assert!(!String::from_utf8_lossy(&rest).contains("[DONE]"));
    let mut records = records(&gateway.data_dir());
    assert_eq!(records.len(), 1, "{log:#?}");
    assert_eq!(records[0]["end"], "shutdown");
    records.remove(0)
}

#[test]
fn a_stream_that_outlasts_the_drain_is_cut_and_settled() {
    let engine = Engine::start();
    let mut gateway = Setup::before(&engine)
        .upstream("dialect: openai")
        .with("limits: {drain_seconds: 0.2}")
        .start();
    let (mut client, _connection) = gateway.streaming(&engine, STREAM_CHAT, &[HELLO]);
    gateway.terminate();
    assert_cut(&mut gateway, &mut client);
}

#[test]
fn a_second_signal_ends_a_drain_at_once_and_settles_what_it_cuts() {
    let engine = Engine::start();
    let mut gateway = Setup::before(&engine).upstream("dialect: openai").with(FOR_EVER).start();
    let (mut client, _connection) = gateway.streaming(&engine, STREAM_CHAT, &[HELLO]);
    gateway.terminate();
    gateway.await_refusal();
    gateway.terminate();
    let record = assert_cut(&mut gateway, &mut client);
    assert!(record["usage"]["output_tokens"].as_u64() > Some(0), "{record:#}");
}

#[test]
fn ctrl_c_is_heard_as_sigterm_is_and_the_second_ends_at_once() {
    let engine = Engine::start();
    let mut gateway = Setup::before(&engine).upstream("dialect: openai").with(FOR_EVER).start();
    let (mut client, _connection) = gateway.streaming(&engine, STREAM_CHAT, &[HELLO]);
    gateway.interrupt();
    gateway.await_refusal();
    gateway.interrupt();
    assert_cut(&mut gateway, &mut client);
}

#[test]
fn within_the_grace_it_is_not_ready_and_serves_everybody() {
    let engine = Engine::start();
    let mut gateway =
        Setup::before(&engine).upstream("dialect: openai").with(GRACE_FOR_EVER).start();
    let (mut running, mut connection) = gateway.streaming(&engine, STREAM_CHAT, &[HELLO]);
    let mut known = gateway.chat("", CHAT);
    engine.answer_once(&json_answer(CHAT_ANSWER));
    assert_eq!(known.answer().header("connection"), None);
    gateway.terminate();
    gateway.await_ready(503);
    assert_eq!(gateway.admin("/healthz").status(), 200);
    assert_eq!(gateway.admin("/api/v1/status").json()["draining"], true);
    // On a connection that is there, and on a new one: the answer says that it is the last.
    let new = Client::connect(gateway.address());
    for mut client in [known, new] {
        client.send(&post("/v1/chat/completions", "", CHAT));
        engine.answer_once(&json_answer(CHAT_ANSWER));
        let answer = client.answer();
        assert_eq!((answer.status(), answer.header("connection")), (200, Some("close")));
        client.assert_closed();
    }
    connection.send(&chunks(&[STOP, USAGE, DONE]));
    connection.send(LAST_CHUNK);
    for event in [STOP, DONE] {
        running.expect(event);
    }
    gateway.terminate();
    let (status, log) = gateway.exit();
    assert_eq!(status.code(), Some(0), "{log:#?}");
    let records = records(&gateway.data_dir());
    assert_eq!(records.len(), 4);
    assert!(records.iter().all(|record| record["end"] == "complete"), "{records:#?}");
}

#[test]
fn behind_the_grace_nobody_new_is_let_in_and_streams_go_on() {
    let engine = Engine::start();
    let mut gateway = Setup::before(&engine)
        .upstream("dialect: openai")
        .with("limits: {drain_grace_seconds: 0.1, drain_seconds: 3600}")
        .start();
    let (mut client, mut connection) = gateway.streaming(&engine, STREAM_CHAT, &[HELLO]);
    gateway.terminate();
    gateway.await_event("leaving");
    gateway.await_event("draining");
    gateway.await_refusal();
    connection.send(&chunks(&[STOP, USAGE, DONE]));
    connection.send(LAST_CHUNK);
    for event in [STOP, DONE] {
        client.expect(event);
    }
    assert_eq!(gateway.exit().0.code(), Some(0));
    assert_eq!(records(&gateway.data_dir())[0]["end"], "complete");
}

/// Takes connections and says nothing.
fn silent() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("its address");
    (listener, format!("http://{address}"))
}

/// What a gateway leaves that is told to `end` and can tell nobody what it has: its database stands
/// still, collector and receiver never answer. And how long its end took.
fn with_nobody_to_tell(end: impl FnOnce(&Gateway)) -> (TempDir, Duration) {
    let server = Server::start(&[]).expect("a PostgreSQL server");
    let database = server.database().expect("a database");
    let store = server.url(&database);
    let ((_collector, otlp), (_receiver, push)) = (silent(), silent());
    let engine = Engine::start();
    let mut gateway = Setup::before(&engine)
        .upstream("dialect: openai")
        .with(&format!("ledger: {{store: \"{store}\"}}"))
        .with(&format!("telemetry: {{otlp: {{endpoint: \"{otlp}\", logs: on}}, traces: {{}}}}"))
        .with(&format!("export: {{push: {{url: \"{push}\"}}}}"))
        .start();
    let (mut client, mut connection) = gateway.streaming(&engine, STREAM_CHAT, &[HELLO]);
    server.freeze(true).expect("stop the server");
    connection.send(&chunks(&[STOP, USAGE, DONE]));
    connection.send(LAST_CHUNK);
    for event in [STOP, DONE] {
        client.expect(event);
    }
    let limit = Limit::begin();
    end(&gateway);
    let (status, log) = gateway.exit();
    assert_eq!(status.code(), Some(0), "{log:#?}");
    (gateway.into_folder(), PATIENCE - limit.left())
}

#[test]
fn a_second_signal_ends_it_soon_whoever_hangs_and_the_ledger_is_whole() {
    let (folder, took) = with_nobody_to_tell(|gateway| {
        gateway.terminate();
        gateway.await_refusal();
        gateway.terminate();
    });
    assert!(took < Duration::from_secs(5), "{took:?}");
    assert_whole(&folder);
}

#[test]
fn an_end_takes_no_longer_than_supervisors_are_told_whoever_hangs_and_the_ledger_is_whole() {
    let (folder, took) = with_nobody_to_tell(Gateway::terminate);
    // What is promised, and as much again as a busy machine may need.
    assert!(took < Duration::from_secs(15 + 5), "{took:?}");
    assert_whole(&folder);
}

/// One request that ended well, and a journal that was closed.
fn assert_whole(folder: &TempDir) {
    let data = folder.path().join("data");
    let data = data.to_str().expect("a path in UTF-8");
    let verified = taximeter(["verify", "--store", "sqlite", "--data-dir", data]);
    assert!(verified.status.success(), "{}", String::from_utf8_lossy(&verified.stdout));
    let records = records(Path::new(data));
    assert_eq!(records.len(), 1);
    assert_eq!(records[0]["end"], "complete");
}
