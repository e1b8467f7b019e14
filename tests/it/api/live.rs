//! The requests that are running, once and every second.

use serde_json::Value;

use super::description::Description;
use crate::client::Client;
use crate::engine::Engine;
use crate::fixtures::{DONE, HELLO, STREAM_CHAT, WORLD};
use crate::gateway::Gateway;
use crate::http::{bare, chunk};
use crate::patience::patiently;

#[test]
fn running_requests_are_seen_while_they_run() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    let description = Description::of(&gateway);
    let live = |query: &str| {
        description.checked("/api/v1/live", &gateway.admin(&format!("/api/v1/live{query}")))
    };
    assert_eq!((&live("")["open"], &live("")["requests"]), (&0.into(), &serde_json::json!([])));

    let mut client = gateway.chat("x-request-id: seen\r\n", STREAM_CHAT);
    let mut connection = engine.begin_stream();
    client.head();
    let row = live("")["requests"][0].clone();
    assert_eq!((&row["request_id"], &row["stage"]), (&"seen".into(), &"answered".into()));
    assert_eq!((&row["time_to_first_token"], &row["stream"]), (&Value::Null, &true.into()));
    connection.send(&chunk(HELLO));
    client.expect(HELLO);
    connection.send(&chunk(WORLD));
    client.expect(WORLD);
    let answer = live("?tenant=default");
    let row = &answer["requests"][0];
    assert_eq!((&answer["open"], &row["stage"]), (&1.into(), &"generating".into()));
    assert_eq!((&row["output_chunks"], &row["upstream"]), (&2.into(), &"engine".into()));
    let seconds = |member: &str| row[member].as_f64().expect("seconds");
    assert!(seconds("time_to_first_token") <= seconds("time_to_latest_token"));
    assert!(seconds("time_to_latest_token") <= seconds("duration"));
    let others = live("?tenant=other");
    assert_eq!(
        (&others["open"], others["requests"].as_array().map(Vec::len)),
        (&1.into(), Some(0))
    );

    connection.send(&chunk(DONE));
    connection.send(b"0\r\n\r\n");
    while client.next_chunk().is_some_and(|chunk| !chunk.is_empty()) {}
    let gone = patiently(|| (live("")["open"] == 0).then_some(()));
    assert!(gone.is_some(), "what has ended is not running");
}

#[test]
fn listeners_get_a_snapshot_a_second() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    let mut chat = gateway.chat("", STREAM_CHAT);
    let _connection = engine.begin_stream();
    chat.head();
    let request = bare("GET", "/api/v1/live/events?limit=1", "");
    let mut listener = Client::saying(gateway.admin_address(), &request);
    let head = listener.head();
    assert_eq!((head.status(), head.header("content-type")), (200, Some("text/event-stream")));
    for _ in 0..2 {
        let event = String::from_utf8(listener.next_chunk().expect("an event")).expect("UTF-8");
        let data = event.strip_prefix("event: live\ndata: ").expect(&event);
        let snapshot: Value = serde_json::from_str(data.trim_end()).expect("JSON");
        assert_eq!(snapshot["open"], 1, "{snapshot}");
    }
}

#[test]
fn no_more_listeners_are_served_than_there_is_room_for() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    let request = bare("GET", "/api/v1/live/events", "");
    let listen = || {
        let mut client = Client::saying(gateway.admin_address(), &request);
        (client.head().status(), client)
    };
    let listeners: Vec<_> = (0..16).map(|_| listen()).collect();
    assert!(listeners.iter().all(|(status, _)| *status == 200));
    assert_eq!(listen().0, 503);
    drop(listeners);
    let again = patiently(|| (listen().0 == 200).then_some(()));
    assert!(again.is_some(), "who has left makes room");
}
