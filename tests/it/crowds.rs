//! What one client may take: connections from one address, requests on one connection, requests of
//! one tenant at once, and all of them of the descriptors.

use serde_json::Value;

use crate::client::Client;
use crate::engine::{Connection, Engine};
use crate::fixtures::{CHAT, CHAT_ANSWER, DONE, HELLO, STOP, STREAM_CHAT};
use crate::frames::{DATA, END_HEADERS, END_STREAM, Framer, HEADERS, chat_head, frame, header};
use crate::gateway::{Gateway, Setup};
use crate::http::{LAST_CHUNK, bare, chunk, json_answer, post, stream_answer};
use crate::patience::patiently;

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

/// Lets this process open as many connections as the test needs.
fn open_many(most: u64) {
    let limits = std::fs::read_to_string("/proc/self/limits").expect("the limits of this process");
    let files = limits.lines().find(|line| line.starts_with("Max open files")).expect("a limit");
    let soft = files.split_whitespace().nth(3).expect("a soft limit");
    if soft.parse().is_ok_and(|soft: u64| soft < most) {
        let mut raise = std::process::Command::new("prlimit");
        raise.args(["--pid", &std::process::id().to_string(), &format!("--nofile={most}:")]);
        assert!(raise.status().expect("run prlimit").success());
    }
}

#[test]
fn one_address_may_open_as_many_connections_as_all_together_unless_a_limit_is_set() {
    open_many(8_192);
    let engine = Engine::start();
    let gateway = limited(&engine, "idle_timeout_seconds: 3600");
    gateway.limit_descriptors(8_192);
    let limits = gateway.admin("/api/v1/status").json()["limits"].clone();
    assert_eq!(limits["connections_per_peer_max"], Value::Null, "{limits}");
    assert_eq!(limits["connections_max"], 10_000);
    let mut open = Vec::new();
    for _ in 0..1_200 {
        let mut client = Client::connect(gateway.address());
        assert_eq!(ask(&mut client), Some(404));
        open.push(client);
    }
    gateway.await_metric("taximeter_connections_refused_total 0");
}

#[test]
fn a_limit_for_one_address_that_a_reload_sets_counts_the_connections_that_are_open() {
    let engine = Engine::start();
    let gateway = limited(&engine, "");
    let mut open = [(); 2].map(|()| Client::connect(gateway.address()));
    for client in &mut open {
        assert_eq!(ask(client), Some(404));
    }
    let setup = Setup::before(&engine).upstream("dialect: openai");
    gateway.rewrite(&setup.with("limits: {connections_per_peer_max: 2}"));
    gateway.hang_up();
    gateway.await_event("config_reloaded");
    let limits = gateway.admin("/api/v1/status").json()["limits"].clone();
    assert_eq!(limits["connections_per_peer_max"], 2, "{limits}");
    assert_eq!(ask(&mut Client::connect(gateway.address())), None, "the third");
    for client in &mut open {
        assert_eq!(ask(client), Some(404), "those that are open");
    }
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

/// A stream of a tenant, of which the client has read the first event.
fn stream(gateway: &Gateway, engine: &Engine, tenant: &str) -> (Client, Connection) {
    let mut client = gateway.chat(&format!("X-Tenant: {tenant}\r\n"), STREAM_CHAT);
    let mut connection = engine.begin_stream();
    client.head();
    connection.send(&chunk(HELLO));
    client.expect(HELLO);
    (client, connection)
}

fn status_of(gateway: &Gateway, tenant: &str) -> u16 {
    gateway.chat(&format!("X-Tenant: {tenant}\r\nConnection: close\r\n"), CHAT).answer().status()
}

#[test]
fn a_tenant_that_has_as_many_requests_as_it_may_is_refused_and_others_are_served() {
    let engine = Engine::start();
    let setup = Setup::before(&engine).upstream("dialect: openai").with(
        "tenants: {header: {name: x-tenant, trusted_peers: [127.0.0.1]}, list: [{name: large, concurrency: 3}]}",
    );
    let gateway = setup.with("limits: {requests_per_tenant_max: 2}").start();
    let hogs = [(); 2].map(|()| stream(&gateway, &engine, "hog"));
    let refused = gateway.chat("X-Tenant: hog\r\n", CHAT).answer();
    let error = &refused.json()["error"];
    assert_eq!((refused.status(), refused.header("retry-after")), (429, Some("1")));
    assert_eq!(refused.header("x-should-retry"), None, "it passes by itself");
    assert_eq!(
        (&error["type"], &error["code"]),
        (&"rate_limit_error".into(), &"concurrency_limited".into())
    );
    assert!(error["message"].as_str().expect("a message").starts_with("2 of your requests run"));
    assert_eq!(gateway.await_event("tenant_limited")["tenant"], "hog");
    let count =
        r#"taximeter_limits_refusals_total{taximeter_kind="concurrency",taximeter_tenant="hog"} 1"#;
    gateway.await_metric(count);
    let others = ["other", "large", "large", "large"].map(|of| stream(&gateway, &engine, of));
    assert_eq!(status_of(&gateway, "large"), 429, "the fourth of one with whom three are agreed");
    engine.assert_untouched();
    for (mut client, mut connection) in hogs.into_iter().chain(others) {
        connection.send(&[chunk(STOP), chunk(DONE), LAST_CHUNK.to_vec()].concat());
        client.expect(STOP);
        client.expect(DONE);
        assert_eq!(client.next_chunk().as_deref(), Some(&b""[..]));
    }
    // Who has all of its answer has its place again.
    let _next = [(); 2].map(|()| stream(&gateway, &engine, "hog"));
    assert_eq!(gateway.records().len(), 6);
}

#[test]
fn a_tenant_that_opens_everything_leaves_connections_and_places_to_others() {
    /// `:status: 200`, by HPACK's static table.
    const STATUS_200: u8 = 0x88;
    let engine = Engine::start();
    let setup = Setup::before(&engine)
        .upstream("dialect: openai")
        .with("tenants: {header: {name: x-tenant, trusted_peers: [127.0.0.0/8]}}");
    let limits = "limits: {connections_per_peer_max: 2, requests_per_tenant_max: 4}";
    let gateway = setup.with(limits).start();
    // From one address: a connection with many streams, one with a stream, and no third.
    let mut many = Framer::connect(&gateway, &[]);
    let head = [chat_head(""), header("x-tenant", "hog")].concat();
    let ask = |many: &mut Framer, nth: u32| {
        many.send(&frame(HEADERS, END_HEADERS, 2 * nth + 1, &head));
        many.send(&frame(DATA, END_STREAM, 2 * nth + 1, STREAM_CHAT.as_bytes()));
    };
    let _streams = [0, 1].map(|nth| {
        ask(&mut many, nth);
        engine.begin_stream()
    });
    let _one = stream(&gateway, &engine, "hog");
    assert_eq!(self::ask(&mut Client::connect(gateway.address())), None, "a third connection");
    // From another address the tenant is the same.
    let post =
        |tenant: &str| post("/v1/chat/completions", &format!("X-Tenant: {tenant}\r\n"), CHAT);
    let mut elsewhere = Client::from("127.0.0.2:0", gateway.address());
    elsewhere.send(&post("hog"));
    let (_last, _) = engine.request();
    let mut beyond = Client::from("127.0.0.2:0", gateway.address());
    beyond.send(&post("hog"));
    assert_eq!(beyond.answer().status(), 429);
    for _ in 0..2 {
        assert_eq!(many.await_kind(HEADERS).map(|head| head.payload[0]), Some(STATUS_200));
    }
    ask(&mut many, 2);
    let refused = many.await_kind(HEADERS).expect("an answer");
    assert_ne!(refused.payload[0], STATUS_200);
    engine.assert_untouched();
    // Others are served, and on the address of the second connection too.
    beyond.send(&post("other"));
    engine.answer_once(&json_answer(CHAT_ANSWER));
    assert_eq!(beyond.answer().status(), 200);
    let mut other = Client::from("127.0.0.3:0", gateway.address());
    other.send(&post("other"));
    engine.answer_once(&json_answer(CHAT_ANSWER));
    assert_eq!(other.answer().status(), 200);
}

#[test]
fn a_place_comes_free_however_a_request_ends() {
    let engine = Engine::start();
    let setup = Setup::before(&engine).upstream("dialect: openai");
    let gateway = setup.with("limits: {requests_per_tenant_max: 1}").start();
    let ask = |request: &[u8]| Client::saying(gateway.address(), request);
    // Refused behind admission, left by its client, broken off by the engine, passed on for free.
    assert_eq!(ask(&post("/v1/chat/completions", "", "{")).answer().status(), 400);
    let (client, connection) = gateway.streaming(&engine, STREAM_CHAT, &[HELLO]);
    drop(client);
    connection.assert_closed_by_gateway();
    // Its record is written behind that.
    gateway.await_records(1);
    let mut client = gateway.chat("", CHAT);
    let connection = engine.taken(&client).expect("its place is free again");
    connection.reset();
    assert_eq!(client.answer().status(), 502);
    let mut models = ask(&bare("GET", "/v1/models", ""));
    engine.answer_once(&json_answer("{}"));
    assert_eq!(models.answer().status(), 200);
    let mut last = gateway.chat("", CHAT);
    engine.answer_once(&json_answer(CHAT_ANSWER));
    assert_eq!(last.answer().status(), 200);
}

#[test]
fn clients_leave_descriptors_to_engines_and_those_to_ledger_and_admin_address() {
    let engine = Engine::start();
    let setup = Setup::before(&engine).upstream("dialect: openai");
    // Each request wants a connection of its own to the engine.
    let gateway = setup.with("limits: {ledger_segment_bytes: 4096}").start();
    gateway.limit_descriptors(160);
    let mut clients: Vec<_> = (0..160).map(|_| Client::connect(gateway.address())).collect();
    assert_eq!(gateway.await_event("connection_refused")["reason"], "file_descriptors");
    // Those that were let in are served, and the journal goes on in new files.
    for client in &mut clients[..20] {
        client.send(&post("/v1/chat/completions", "", CHAT));
        engine.answer_once(&json_answer(CHAT_ANSWER));
        assert_eq!(client.answer().status(), 200);
    }
    assert_eq!(gateway.admin("/readyz").status(), 200);
    assert_eq!(gateway.records().len(), 20);
    drop(clients);
    let next = patiently(|| ask(&mut Client::connect(gateway.address())));
    assert_eq!(next, Some(404), "whoever comes after they have left");
}

#[test]
fn requests_beyond_the_descriptors_of_engines_are_refused_before_the_ledger_has_none() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    gateway.limit_descriptors(128);
    let mut clients: Vec<_> = (0..128).map(|_| Client::connect(gateway.address())).collect();
    gateway.await_event("connection_refused");
    // Each wants one more, to the engine.
    let mut connections = Vec::new();
    let refused = clients.iter_mut().find_map(|client| {
        client.send(&post("/v1/chat/completions", "", STREAM_CHAT));
        match engine.taken(client) {
            Some(connection) => {
                connections.push(connection);
                None
            }
            None => Some(client.answer()),
        }
    });
    let refused = refused.expect("it never was full");
    assert_eq!(refused.status(), 503, "{}", refused.text());
    assert_eq!(refused.json()["error"]["code"], "overloaded");
    assert_eq!(gateway.await_event("upstream_unreachable")["cause"], "file_descriptors");
    assert_eq!(gateway.admin("/readyz").status(), 200);
    assert!(!connections.is_empty());
    for (connection, client) in connections.iter_mut().zip(&mut clients) {
        connection.send(&stream_answer(&[HELLO, STOP, DONE]));
        assert_eq!(client.answer().text(), [HELLO, STOP, DONE].concat());
    }
    // The refused one has a record too.
    gateway.await_records(connections.len() + 1);
}
