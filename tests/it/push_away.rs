//! A receiver of events that is away keeps nothing: it gets what it lacks from the store.

use std::fs;
use std::path::PathBuf;

use jiff::SignedDuration;
use serde_json::Value;

use crate::engine::Engine;
use crate::fixtures::{CHAT, CHAT_ANSWER};
use crate::gateway::{Gateway, Setup};
use crate::http::json_answer;
use crate::patience::patiently;
use crate::push::{TAKEN, batch, exchange};
use crate::segments::{age, plain_path, segments};

/// How much earlier the requests of the journal are made.
const EARLIER: SignedDuration = SignedDuration::from_hours(3 * 24);
/// Waits for a sealing: a minute after a request was stored it may leave.
const WAITS: usize = 16;
/// Requests that a receiver lacks.
const LACKED: usize = 40;
const SMALL_FILES: &str = "limits: {ledger_segment_bytes: 4096}";
/// Nobody listens there.
const NOWHERE: &str = "http://127.0.0.1:1/";

fn setup(engine: &Engine, url: &str) -> Setup {
    let push = format!("export: {{push: {{url: \"{url}\", batch_max: 7}}}}");
    let keep = "ledger: {records_keep_days: 6}";
    Setup::before(engine).upstream("dialect: openai").with(SMALL_FILES).with(keep).with(&push)
}

fn names(gateway: &Gateway) -> Vec<PathBuf> {
    segments(&gateway.data_dir()).iter().map(|path| plain_path(path)).collect()
}

fn status(gateway: &Gateway, pointer: &str) -> Value {
    gateway.admin("/api/v1/status").json().pointer(pointer).cloned().unwrap_or_default()
}

/// Takes so many events of the receiver. Their ids.
fn take(receiver: &Engine, count: usize) -> Vec<String> {
    let mut ids = Vec::new();
    while ids.len() < count {
        let (mut connection, _, batch) = batch(receiver);
        ids.extend(batch);
        connection.send(TAKEN);
    }
    ids
}

#[test]
fn a_receiver_that_was_away_while_days_were_sealed_gets_everything_also_after_a_restart() {
    let (engine, receiver) = (Engine::start(), Engine::start());
    let gateway = setup(&engine, NOWHERE).start();
    let mut ids: Vec<_> = (0..LACKED).map(|_| exchange(&gateway, &engine)).collect();
    gateway.await_records(LACKED);
    let folder = gateway.into_folder();
    age(&folder.path().join("data"), EARLIER);
    let gateway = setup(&engine, NOWHERE).start_in(folder);
    let old = names(&gateway);
    assert!(old.len() > 2, "{old:?}");
    // Of six days three are over.
    let told = gateway.await_event("push_at_risk");
    assert_eq!(told["receiver"], NOWHERE, "{told}");
    gateway.await_metric("taximeter_push_at_risk 1");
    let backlog =
        patiently(|| Some(status(&gateway, "/exporters/0/backlog")).filter(|it| !it.is_null()));
    let backlog = backlog.expect("a backlog");
    assert_eq!(
        (&backlog["at_risk"], backlog["requests"].as_u64()),
        (&true.into(), Some(LACKED as u64))
    );
    let is_sealed = |_| patiently(|| gateway.has_said("ledger_sealed").then_some(())).is_some();
    assert!((0..WAITS).any(is_sealed), "nothing is sealed");
    let gone = || {
        let left = names(&gateway);
        old.iter().rev().skip(1).all(|old| !left.contains(old)).then_some(())
    };
    assert!(patiently(gone).is_some(), "the receiver keeps segments of the journal");
    ids.push(exchange(&gateway, &engine));

    let url = format!("http://{}/", receiver.address());
    let gateway = setup(&engine, &url).start_in(gateway.kill());
    let mut came = take(&receiver, 20);
    let stored = came.len();
    gateway.await_metric(&format!(
        "taximeter_push_events_total{{taximeter_outcome=\"stored\"}} {stored}"
    ));
    let (unanswered, _, _) = batch(&receiver);
    let gateway = setup(&engine, &url).start_in(gateway.kill());
    drop(unanswered);
    came.extend(take(&receiver, ids.len() - stored));
    assert_eq!(came, ids);
    gateway.await_metric("taximeter_push_at_risk 0");
    gateway.await_metric("taximeter_push_pending 0");
    assert!(status(&gateway, "/exporters/0/backlog").is_null());
    let next = exchange(&gateway, &engine);
    assert_eq!(take(&receiver, 1), [next]);
}

#[test]
fn an_open_request_and_a_receiver_that_is_away_keep_no_segments_when_room_ends() {
    let engine = Engine::start();
    let push = format!("export: {{push: {{url: \"{NOWHERE}\"}}}}");
    let room = "ledger: {dir_bytes_max: 8388608}";
    let setup = Setup::before(&engine).upstream("dialect: openai").with(SMALL_FILES);
    let gateway = setup.with(room).with(&push).start();
    let mut open = gateway.chat("Connection: close\r\n", CHAT);
    let (mut unanswered, _) = engine.request();
    let serve = |count: usize| (0..count).for_each(|_| drop(exchange(&gateway, &engine)));
    serve(150);
    let is_fed = || (status(&gateway, "/store/pending_entries") == 0).then_some(());
    assert!(patiently(is_fed).is_some(), "the store lacks requests");
    let all = names(&gateway);
    let filler = gateway.data_dir().join("something else");
    fs::write(&filler, vec![1; 8 << 20]).expect("fill it");
    gateway.await_event("ledger_full");
    let are_gone = || {
        let left = names(&gateway);
        (all.iter().filter(|name| left.contains(name)).count() <= 2).then_some(())
    };
    assert!(patiently(are_gone).is_some(), "{:?} of {all:?}", names(&gateway));
    fs::remove_file(&filler).expect("make room");
    gateway.await_ready(200);
    serve(20);
    unanswered.send(&json_answer(CHAT_ANSWER));
    assert_eq!(open.answer().status(), 200);
    // The gateway would use the connection again, and nobody reads it.
    drop(unanswered);
    serve(1);
    assert_eq!(gateway.await_records(172).len(), 172);
}
