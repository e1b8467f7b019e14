//! What a receiver of CloudEvents gets: everything that ends, in order, at least once.

use std::fs;

use serde_json::Value;

use crate::engine::{Connection, Engine};
use crate::fixtures::{CHAT, CHAT_ANSWER};
use crate::gateway::{Gateway, Setup, taximeter};
use crate::http::{Message, json_answer};

pub(crate) const TAKEN: &[u8] = b"HTTP/1.1 204 No Content\r\n\r\n";
const FAILED: &[u8] = b"HTTP/1.1 500 Oops\r\nContent-Length: 4\r\n\r\noops";
const WAIT: &[u8] =
    b"HTTP/1.1 503 Busy\r\nRetry-After: 0\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";

fn setup(engine: &Engine, receiver: &Engine) -> Setup {
    let url = format!("http://{}/api/v1/events", receiver.address());
    let push = format!("export: {{push: {{url: \"{url}\", token: sk-meter}}}}");
    Setup::before(engine).upstream("dialect: openai").with(&push)
}

/// One request from head to end; its id.
pub(crate) fn exchange(gateway: &Gateway, engine: &Engine) -> String {
    let mut client = gateway.chat("Connection: close\r\n", CHAT);
    engine.answer_once(&json_answer(CHAT_ANSWER));
    client.answer().header("x-taximeter-request-id").expect("an id").to_owned()
}

/// The next batch, and who waits for an answer.
pub(crate) fn batch(receiver: &Engine) -> (Connection, Message, Vec<String>) {
    let (connection, request) = receiver.request();
    let events: Value = serde_json::from_slice(&request.body).expect("JSON");
    let ids = events.as_array().expect("a batch").iter();
    let ids = ids.map(|event| event["id"].as_str().expect("an id").to_owned()).collect();
    (connection, request, ids)
}

/// Takes batches until these ids came, in this order, each once.
fn await_ids(receiver: &Engine, ids: &[String]) {
    let mut came = Vec::new();
    while came.len() < ids.len() {
        let (mut connection, _, batch) = batch(receiver);
        came.extend(batch);
        connection.send(TAKEN);
    }
    assert_eq!(came, ids);
}

#[test]
fn a_receiver_gets_what_ends_in_order_and_with_the_token() {
    let (engine, receiver) = (Engine::start(), Engine::start());
    let gateway = setup(&engine, &receiver).start();
    let first = exchange(&gateway, &engine);
    let (mut connection, request, ids) = batch(&receiver);
    assert_eq!(request.first_line, "POST /api/v1/events HTTP/1.1");
    assert_eq!(request.header("authorization"), Some("Bearer sk-meter"));
    assert_eq!(request.header("content-type"), Some("application/cloudevents-batch+json"));
    assert_eq!(ids, [first]);
    let event = &serde_json::from_slice::<Value>(&request.body).expect("JSON")[0];
    assert_eq!((&event["specversion"], &event["subject"]), (&"1.0".into(), &"default".into()));
    assert_eq!(event["data"]["input_tokens"], 1000);
    connection.send(TAKEN);
    let more: Vec<_> = (0..3).map(|_| exchange(&gateway, &engine)).collect();
    await_ids(&receiver, &more);
    gateway.await_metric("taximeter_push_events_total{taximeter_outcome=\"stored\"} 4");
}

#[test]
fn a_request_that_used_nothing_is_no_event() {
    let (engine, receiver) = (Engine::start(), Engine::start());
    let gateway = setup(&engine, &receiver).start();
    let mut client = gateway.chat("Connection: close\r\n", CHAT);
    engine.answer_once(b"HTTP/1.1 429 Slow Down\r\nContent-Length: 2\r\n\r\n{}");
    assert_eq!(client.answer().status(), 429);
    let first = exchange(&gateway, &engine);
    await_ids(&receiver, &[first]);
    assert_eq!(gateway.await_records(2).len(), 2);
}

#[test]
fn a_receiver_that_fails_gets_the_same_ids_again_and_nothing_is_lost_meanwhile() {
    let (engine, receiver) = (Engine::start(), Engine::start());
    let gateway = setup(&engine, &receiver).start();
    let first = exchange(&gateway, &engine);
    let (mut connection, _, ids) = batch(&receiver);
    assert_eq!(ids, [first.as_str()]);
    // It may have stored them before it failed.
    connection.send(FAILED);
    let second = exchange(&gateway, &engine);
    let (mut connection, _, ids) = batch(&receiver);
    assert_eq!(ids[0], first);
    connection.send(WAIT);
    drop(connection);
    // A connection that breaks is no answer either.
    drop(batch(&receiver));
    await_ids(&receiver, &[first, second]);
}

#[test]
fn an_event_that_is_refused_is_set_aside_and_the_others_go_on() {
    let (engine, receiver) = (Engine::start(), Engine::start());
    let gateway = setup(&engine, &receiver).start();
    let first = exchange(&gateway, &engine);
    // While this one waits for its answer, the others gather.
    let (mut connection, _, ids) = batch(&receiver);
    assert_eq!(ids, [first]);
    let requests: Vec<_> = (0..5).map(|_| exchange(&gateway, &engine)).collect();
    connection.send(TAKEN);
    let bad = &requests[2];
    let mut taken = Vec::new();
    while taken.len() < requests.len() - 1 {
        let (mut connection, _, ids) = batch(&receiver);
        if ids.contains(bad) {
            connection.send(b"HTTP/1.1 400 Bad\r\nContent-Length: 12\r\n\r\nno such unit");
        } else {
            connection.send(TAKEN);
            taken.extend(ids);
        }
    }
    let good: Vec<_> = requests.iter().filter(|id| *id != bad).cloned().collect();
    assert_eq!(taken, good);
    gateway.await_metric("taximeter_push_events_total{taximeter_outcome=\"rejected\"} 1");
    let aside =
        fs::read_to_string(gateway.data_dir().join("push-rejected.ndjson")).expect("a file");
    let aside: Value = serde_json::from_str(&aside).expect("one line");
    assert_eq!(aside["event"]["id"], bad.as_str());
    assert_eq!(aside["reason"], "400 Bad Request: no such unit");
}

#[test]
fn a_gateway_that_was_killed_goes_on_where_the_receiver_is() {
    let (engine, receiver) = (Engine::start(), Engine::start());
    let gateway = setup(&engine, &receiver).start();
    let first = exchange(&gateway, &engine);
    await_ids(&receiver, &[first]);
    gateway.await_metric("taximeter_push_events_total{taximeter_outcome=\"stored\"} 1");
    let second = exchange(&gateway, &engine);
    let (_unanswered, _, ids) = batch(&receiver);
    assert_eq!(ids, [second.as_str()]);
    let folder = gateway.kill();
    let gateway = setup(&engine, &receiver).start_in(folder);
    let third = exchange(&gateway, &engine);
    await_ids(&receiver, &[second, third]);
}

#[test]
fn a_receiver_that_never_answers_holds_nobody_up() {
    let (engine, receiver) = (Engine::start(), Engine::start());
    let mut gateway = setup(&engine, &receiver).start();
    let first = exchange(&gateway, &engine);
    let (_silent, _, ids) = batch(&receiver);
    assert_eq!(ids, [first]);
    for _ in 0..3 {
        exchange(&gateway, &engine);
    }
    assert_eq!(gateway.records().len(), 4);
    gateway.terminate();
    let (status, _) = gateway.exit();
    assert!(status.success());
}

#[test]
fn what_was_there_before_a_receiver_was_named_is_not_sent() {
    let (engine, receiver) = (Engine::start(), Engine::start());
    let gateway = Gateway::before(&engine);
    exchange(&gateway, &engine);
    let folder = gateway.kill();
    let gateway = setup(&engine, &receiver).start_in(folder);
    let new = exchange(&gateway, &engine);
    await_ids(&receiver, &[new]);
}

/// From now on all should have had half of the price; which request that corrects, and how.
fn correct(gateway: &Gateway) {
    let folder = gateway.data_dir().parent().expect("a folder").to_owned();
    let text = fs::read_to_string(folder.join("taximeter.yaml")).expect("the configuration");
    let later = folder.join("later.yaml");
    let list = "tenants: {list: [{name: default, discount: 50 %}]}\n";
    fs::write(&later, text + list).expect("another one");
    let [data, config] = [gateway.data_dir(), later].map(|path| path.display().to_string());
    let words = ["rerate", "--data-dir", &data, "--config", &config, "--from", "2026-01-01"];
    let output = taximeter(words.iter().chain(&["--reason", "late discount"]));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn a_correction_follows_its_request_with_an_id_that_stays() {
    let (engine, receiver) = (Engine::start(), Engine::start());
    let gateway = setup(&engine, &receiver).start();
    let first = exchange(&gateway, &engine);
    await_ids(&receiver, std::slice::from_ref(&first));
    correct(&gateway);
    let (mut connection, request, ids) = batch(&receiver);
    let event = &serde_json::from_slice::<Value>(&request.body).expect("JSON")[0];
    assert_eq!(
        (&event["type"], &event["subject"]),
        (&"taximeter.correction".into(), &"default".into())
    );
    assert_eq!(
        (&event["data"]["corrects"], &event["data"]["cost"]),
        (&first.into(), &"-0.00009".into())
    );
    // It may have stored it before it failed.
    connection.send(FAILED);
    let (mut connection, _, again) = batch(&receiver);
    assert_eq!(again, ids);
    connection.send(TAKEN);
    // Once it is taken, what comes next is something else.
    let second = exchange(&gateway, &engine);
    await_ids(&receiver, &[second]);
    gateway.await_metric("taximeter_push_events_total{taximeter_outcome=\"stored\"} 3");
}
