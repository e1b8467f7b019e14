//! What one client may take: connections from one address, requests on one connection.

use crate::client::Client;
use crate::engine::Engine;
use crate::fixtures::{CHAT, CHAT_ANSWER};
use crate::gateway::{Gateway, Setup, patiently};
use crate::http::{bare, json_answer, post};

fn limited(engine: &Engine, limits: &str) -> Gateway {
    Setup::before(engine).upstream("dialect: openai").with(&format!("limits: {{{limits}}}")).start()
}

/// Asks what needs no engine; `None` when the connection is closed instead of answered.
fn ask(client: &mut Client) -> Option<u16> {
    client.try_send(&bare("GET", "/nowhere", "")).ok()?;
    client.try_answer().ok().map(|answer| answer.status())
}

#[test]
fn connections_of_one_address_have_a_maximum_of_their_own() {
    let engine = Engine::start();
    let gateway = limited(&engine, "connections_per_peer_max: 2");
    let mut open = [(); 2].map(|()| Client::connect(gateway.address()));
    for client in &mut open {
        assert_eq!(ask(client), Some(404));
    }
    assert_eq!(ask(&mut Client::connect(gateway.address())), None, "the third");
    gateway.await_metric("taximeter_connections_refused_total 1");
    let event = gateway.await_event("connection_refused");
    assert_eq!(
        (&event["reason"], &event["peer"]),
        (&"connections_per_peer_max".into(), &"127.0.0.1".into())
    );
    let mut other = Client::from("127.0.0.2:0", gateway.address());
    assert_eq!(ask(&mut other), Some(404), "another address");
    for client in &mut open {
        assert_eq!(ask(client), Some(404), "those that are open");
    }
    drop(open);
    let next = patiently(|| ask(&mut Client::connect(gateway.address())));
    assert_eq!(next, Some(404), "whoever comes after they have left");
}

#[test]
fn all_connections_together_have_a_maximum() {
    let engine = Engine::start();
    let gateway = limited(&engine, "connections_max: 2");
    let mut open = ["127.0.0.1:0", "127.0.0.2:0"].map(|from| Client::from(from, gateway.address()));
    for client in &mut open {
        assert_eq!(ask(client), Some(404));
    }
    assert_eq!(ask(&mut Client::from("127.0.0.3:0", gateway.address())), None);
    assert_eq!(gateway.await_event("connection_refused")["reason"], "connections_max");
}

#[test]
fn the_last_answer_of_a_connection_says_so() {
    let engine = Engine::start();
    let gateway = limited(&engine, "requests_per_connection_max: 2");
    let mut client = gateway.chat("", CHAT);
    engine.answer_once(&json_answer(CHAT_ANSWER));
    assert_eq!(client.answer().header("connection"), None);
    client.send(&post("/v1/chat/completions", "", CHAT));
    // One more, which comes too late.
    client.send(&post("/v1/chat/completions", "", CHAT));
    engine.answer_once(&json_answer(CHAT_ANSWER));
    let last = client.answer();
    assert_eq!((last.status(), last.text()), (200, CHAT_ANSWER));
    assert_eq!(last.header("connection"), Some("close"));
    assert!(client.try_answer().is_err(), "nothing is answered behind it");
    engine.assert_untouched();
    assert_eq!(gateway.records().len(), 2);
}

#[test]
fn a_connection_that_idles_is_closed() {
    let engine = Engine::start();
    let gateway = limited(&engine, "idle_timeout_seconds: 0.3");
    let mut silent = Client::connect(gateway.address());
    let mut asking = Client::connect(gateway.address());
    for _ in 0..2 {
        assert_eq!(ask(&mut asking), Some(404));
    }
    silent.assert_closed();
    asking.assert_closed();
}

#[test]
fn clients_wait_while_descriptors_are_used_up_and_are_served_then() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    gateway.spare_descriptors(4);
    let mut clients: Vec<_> = (0..32).map(|_| Client::connect(gateway.address())).collect();
    let event = gateway.await_event("connection_refused");
    assert_eq!((&event["reason"], event["peer"].is_null()), (&"file_descriptors".into(), true));
    gateway.spare_descriptors(1_000);
    for client in &mut clients {
        assert_eq!(ask(client), Some(404));
    }
    gateway.await_metric("taximeter_connections_refused_total 1");
}
