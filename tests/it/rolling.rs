//! An upgrade: two gateways behind a balancer are started anew, one after the other, under load.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use serde_json::Value;

use crate::balancer::Balancer;
use crate::client::Client;
use crate::fixtures::{CHAT, STREAM_CHAT_WITH_USAGE};
use crate::gateway::{Gateway, Setup, records};
use crate::http::{Message, post};
use crate::simulated::Simulated;

/// Times that each gateway is started anew; `tests/soak` has more of them.
const RESTARTS: &str = "TAXIMETER_TEST_RESTARTS";

/// What clients ask, each all the time: short answers, short streams, and streams that outlast the
/// grace.
const CLIENTS: [(&str, &str); 5] = [
    (CHAT, ""),
    (CHAT, "Connection: close\r\n"),
    (STREAM_CHAT_WITH_USAGE, ""),
    (STREAM_CHAT_WITH_USAGE, "Connection: close\r\n"),
    (STREAM_CHAT_WITH_USAGE, "x-simulate: output_tokens=2500\r\n"),
];

/// Tokens in and out.
type Tokens = (u64, u64);

/// What an answer says that it used, in its last word about it.
fn told(answer: &Message) -> Tokens {
    let text = answer.text();
    let documents = text.lines().map(|line| line.strip_prefix("data: ").unwrap_or(line));
    let usage = documents
        .filter_map(|line| serde_json::from_str::<Value>(line).ok()?.get("usage").cloned())
        .rfind(Value::is_object)
        .expect("an answer with usage");
    let count = |name: &str| usage[name].as_u64().expect("a number");
    (count("prompt_tokens"), count("completion_tokens"))
}

/// Asks until it is over; what was told of each request.
fn ask(
    balancer: SocketAddr,
    name: usize,
    (body, headers): (&str, &str),
    over: &AtomicBool,
) -> BTreeMap<String, Tokens> {
    let mut connection: Option<Client> = None;
    let mut answers = BTreeMap::new();
    while !over.load(Relaxed) {
        let id = format!("{name}-{}", answers.len());
        let headers = format!("x-request-id: {id}\r\n{headers}");
        let request = post("/v1/chat/completions", &headers, body);
        let asked = |mut client: Client| {
            client.try_send(&request).and_then(|()| Ok((client.try_answer()?, client)))
        };
        // A connection may be closed behind a stream that outlasted the grace, while the next
        // request is on its way: whoever finds one closed without a word asks again on another, as
        // all clients do. A request that was begun all the same would be in the ledger twice.
        let kept = connection.take().and_then(|kept| asked(kept).ok());
        let (answer, client) = kept.unwrap_or_else(|| {
            asked(Client::connect(balancer)).unwrap_or_else(|fault| panic!("{id}: {fault}"))
        });
        assert!(answer.status() == 200 && answer.complete, "{id}: {}", answer.first_line);
        if answer.header("connection") != Some("close") {
            connection = Some(client);
        }
        answers.insert(id, told(&answer));
    }
    answers
}

#[test]
fn a_rolling_restart_fails_cuts_and_loses_no_request() {
    let restarts: usize = std::env::var(RESTARTS).map_or(2, |n| n.parse().expect("a number"));
    let engine = Simulated::start();
    let setup = || {
        let url = format!("name: engine, url: \"http://{}\", dialect: openai", engine.address);
        Setup::with_upstream(&url).with("limits: {drain_grace_seconds: 2, drain_seconds: 60}")
    };
    let mut gateways = [0, 1].map(|_| Some(setup().start()));
    let balancer = Balancer::start(gateways.len());
    for (place, gateway) in gateways.iter().flatten().enumerate() {
        balancer.place(place, gateway);
    }
    let over = AtomicBool::new(false);
    let told: Vec<_> = std::thread::scope(|scope| {
        let (over, address) = (&over, balancer.address);
        let clients = CLIENTS.iter().enumerate();
        let clients: Vec<_> = clients
            .map(|(name, asks)| scope.spawn(move || ask(address, name, *asks, over)))
            .collect();
        for nth in 0..restarts * gateways.len() {
            let place = nth % gateways.len();
            let old = gateways[place].take().expect("a gateway");
            let new = setup().start_in(ended(old));
            balancer.place(place, &new);
            gateways[place] = Some(new);
        }
        over.store(true, Relaxed);
        clients.into_iter().map(|client| client.join().expect("a client")).collect()
    });
    let told: BTreeMap<_, _> = told.into_iter().flatten().collect();
    let mut recorded = BTreeMap::new();
    for gateway in gateways.into_iter().flatten() {
        for record in records(&ended(gateway).path().join("data")) {
            assert_eq!(record["end"], "complete", "{record:#}");
            let count = |name: &str| record["usage"][name].as_u64().expect("a number");
            let id = record["request_id"].as_str().expect("an id").to_owned();
            let tokens = (count("input_tokens"), count("output_tokens"));
            assert_eq!(recorded.insert(id, tokens), None, "twice: {record:#}");
        }
    }
    println!("{} restarts, {} requests, 0 failed, 0 cut, 0 unmetered", restarts * 2, told.len());
    assert_eq!(recorded, told);
}

/// Asks it to end and waits until it has, as it should: what is left on disk.
fn ended(mut gateway: Gateway) -> tempfile::TempDir {
    gateway.terminate();
    let (status, log) = gateway.exit();
    assert_eq!(status.code(), Some(0), "{log:#?}");
    gateway.into_folder()
}
