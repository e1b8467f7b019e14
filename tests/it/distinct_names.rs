//! Clients that give every request a name that no other one has: what a gateway keeps of them does
//! not grow, and what it shows stays short.

use std::env;
use std::net::SocketAddr;
use std::thread;

use serde_json::Value;

use crate::client::Client;
use crate::fixtures::CHAT;
use crate::gateway::{Gateway, Setup, taximeter};
use crate::http::post;
use crate::identity::ACME;
use crate::pacing;
use crate::patience::patiently;

/// Set to how many requests there are to be.
const REQUESTS_VARIABLE: &str = "TAXIMETER_TEST_NAMES";
const REQUESTS: usize = 12_000;
/// After so many all is warm: the feeder has kept as many names as it may.
const WARM: usize = 6_000;
const CLIENTS: usize = 8;
/// One in so many requests names no tenant.
const UNKNOWN: usize = 8;

/// What more requests may add to the memory of the gateway, in bytes.
const GROWTH_MAX: u64 = 8 << 20;
/// The longest page or document that it shows.
const SHOWN_BYTES_MAX: usize = 2 << 20;

/// Asks for as many models as there are numbers, over one connection.
fn ask(gateway: SocketAddr, numbers: impl Iterator<Item = usize>) {
    let mut client = Client::connect(gateway);
    for number in numbers {
        let is_unknown = number % UNKNOWN == 0;
        let key = if is_unknown { format!("sk-{number}") } else { "sk-acme".to_owned() };
        let headers = format!("x-request-id: request-{number}\r\nAuthorization: Bearer {key}\r\n");
        let mut body: Value = serde_json::from_str(CHAT).expect("JSON");
        for member in ["model", "user", "service_tier", "prompt_cache_key"] {
            body[member] = format!("{member}/of-{number}").into();
        }
        client.send(&post("/v1/chat/completions", &headers, body.to_string()));
        let answer = client.answer();
        assert_eq!(answer.status(), if is_unknown { 401 } else { 200 }, "{}", answer.text());
    }
}

fn ask_all(gateway: &Gateway, numbers: std::ops::Range<usize>) {
    let (address, (first, last)) = (gateway.address(), (numbers.start, numbers.end));
    thread::scope(|scope| {
        for client in 0..CLIENTS {
            scope.spawn(move || ask(address, (first + client..last).step_by(CLIENTS)));
        }
    });
    let stored = || {
        let status = gateway.admin("/api/v1/status").json();
        (status["store"]["pending_entries"] == 0).then_some(())
    };
    assert!(patiently(stored).is_some(), "{}", gateway.admin("/api/v1/status").text());
}

#[test]
fn names_that_no_other_request_has_leave_nothing_in_the_memory_of_a_gateway() {
    let requests = env::var(REQUESTS_VARIABLE).ok().and_then(|it| it.parse().ok());
    let requests: usize = requests.unwrap_or(REQUESTS);
    let engine = pacing::start();
    let upstream = format!("name: e, url: \"http://{}\", dialect: openai", engine.address);
    let tenants = format!("tenants: {{unknown: refuse, keys: [{ACME}]}}");
    let limits = "limits: {series_per_metric_max: 50}";
    let mut gateway = Setup::with_upstream(&upstream).with(&tenants).with(limits).start();
    ask_all(&gateway, 0..WARM);
    let warm = gateway.memory();
    ask_all(&gateway, WARM..requests);
    let after = gateway.memory();
    println!("{requests} requests: {} KiB, then {} KiB", warm >> 10, after >> 10);
    assert!(after < warm + GROWTH_MAX, "{warm} bytes when warm, {after} at last");

    let shown = [
        "/metrics",
        "/",
        "/live",
        "/requests",
        "/refusals",
        "/usage",
        "/bill",
        "/upstreams",
        "/fleet",
        "/api/v1/status",
        "/api/v1/records",
        "/api/v1/refusals",
        "/api/v1/live",
        "/api/v1/usage",
    ];
    let lengths = shown.map(|page| (page, gateway.admin(page).body.len()));
    println!("{lengths:?}");
    for (page, length) in lengths {
        assert!(length < SHOWN_BYTES_MAX, "{page}: {length} bytes");
    }
    gateway.terminate();
    assert!(gateway.exit().0.success());
    let folder = gateway.into_folder();
    let data = folder.path().join("data");
    let verified = taximeter(["verify", "--data-dir", data.to_str().expect("UTF-8")]);
    let said = String::from_utf8_lossy(&verified.stdout);
    let served = requests - requests.div_ceil(UNKNOWN);
    assert!(verified.status.success() && said.contains(&format!("{served} posts")), "{said}");
}
