//! A store in PostgreSQL, fed by the real binary.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use serde_json::Value;
use taximeter_tests::postgres::{PASSWORD, Server, USER};

use crate::client::ask;
use crate::fixtures::CHAT;
use crate::gateway::{Gateway, Setup, patiently, records_of, taximeter};
use crate::http::post;
use crate::pacing::{self, PacingEngine};

/// Requests that are asked while the server is in one state.
const SOME: usize = 20;

fn gateway(engine: &PacingEngine, url: &str) -> Gateway {
    let upstream = format!("name: e, url: \"http://{}\", dialect: openai", engine.address);
    Setup::with_upstream(&upstream).with(&format!("ledger: {{store: \"{url}\"}}")).start()
}

/// Asks some requests, which are all answered.
fn ask_some(gateway: SocketAddr, name: &str) {
    for number in 0..SOME {
        let headers = format!("x-request-id: {name}-{number}\r\nConnection: close\r\n");
        let answer = ask(gateway, &post("/v1/chat/completions", &headers, CHAT));
        assert_eq!(answer.status(), 200, "{name}-{number}");
    }
}

fn await_requests(server: &Server, database: &str, count: usize) {
    let count = count.to_string();
    let found = || server.ask(database, "SELECT count(*) FROM taximeter.requests").ok();
    let there = patiently(|| found().filter(|found| found.trim() == count));
    assert!(there.is_some(), "{:?} of {count} requests are there", found());
}

#[test]
fn a_database_that_stalls_or_dies_delays_nobody_and_gets_everything_later() {
    let mut server = Server::start(&[]).expect("a PostgreSQL server");
    let database = server.database().expect("a database");
    let url = server.url(&database);
    let engine = pacing::start();
    let mut gateway = gateway(&engine, &url);
    let address = gateway.address();
    ask_some(address, "up");
    await_requests(&server, &database, SOME);

    server.freeze(true).expect("stop the server");
    ask_some(address, "stalled");
    server.freeze(false).expect("continue the server");
    await_requests(&server, &database, 2 * SOME);

    server.crash().expect("end the server");
    ask_some(address, "down");
    server.resume().expect("start the server again");
    ask_some(address, "up-again");
    await_requests(&server, &database, 4 * SOME);

    // Restarted under load, in the middle of whatever it did.
    std::thread::scope(|scope| {
        let asking = scope.spawn(|| ["a", "b", "c"].map(|name| ask_some(address, name)));
        while !asking.is_finished() {
            server.crash().expect("end the server");
            server.resume().expect("start the server again");
        }
    });
    gateway.terminate();
    assert!(gateway.exit().0.success());
    // What the last feeding could not bring, the next gateway does.
    let mut gateway = start_again(&engine, &url, gateway);
    await_requests(&server, &database, 7 * SOME);
    gateway.terminate();
    assert!(gateway.exit().0.success());

    let stored = records_of("--store", &url);
    let ids: BTreeSet<&str> = stored.iter().filter_map(|r| r["request_id"].as_str()).collect();
    assert_eq!((stored.len(), ids.len()), (7 * SOME, 7 * SOME), "{ids:?}");
}

fn start_again(engine: &PacingEngine, url: &str, ended: Gateway) -> Gateway {
    let upstream = format!("name: e, url: \"http://{}\", dialect: openai", engine.address);
    let setup = Setup::with_upstream(&upstream).with(&format!("ledger: {{store: \"{url}\"}}"));
    setup.start_in(ended.into_folder())
}

#[test]
fn a_gateway_starts_and_serves_without_its_database_and_shows_no_password() {
    let engine = pacing::start();
    let mut gateway = gateway(&engine, "postgres://me:hunter2@127.0.0.1:1/bills");
    ask_some(gateway.address(), "alone");
    gateway.terminate();
    let (status, log) = gateway.exit();
    assert!(status.success());
    let log = log.join("\n");
    assert!(log.contains("postgres://me@127.0.0.1:1/bills"), "{log}");
    assert!(!log.contains("hunter2"), "{log}");
    let bill = taximeter(["bill", "--store", "postgres://me:hunter2@127.0.0.1:1/bills"]);
    assert_eq!(bill.status.code(), Some(69));
    let bill = taximeter(["bill", "--store", "postgres://me:hunter2@host"]);
    assert_eq!(bill.status.code(), Some(2));
    let said = String::from_utf8_lossy(&bill.stderr);
    assert!(said.contains("has no database") && !said.contains("hunter2"), "{said}");
}

#[test]
fn a_server_is_trusted_by_its_certificate_and_its_name() {
    let signed = rcgen::generate_simple_self_signed(["localhost".to_owned()])
        .expect("a certificate for localhost");
    let mut server = Server::start(&[]).expect("a PostgreSQL server");
    server.secure(&signed.cert.pem(), &signed.signing_key.serialize_pem()).expect("TLS");
    let database = server.database().expect("a database");
    let trusted = server.folder().join("data/server.crt");
    let (trusted, port) = (trusted.display(), server.port());
    let password = PASSWORD.replace('@', "%40");
    let bill = |host: &str, parameters: &str| {
        let url = format!("postgres://{USER}:{password}@{host}:{port}/{database}?{parameters}");
        let output = taximeter(["bill", "--store", &url, "--format", "json"]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.code(), said, output.stdout)
    };
    for (host, parameters) in [
        ("localhost", format!("sslmode=verify-full&sslrootcert={trusted}")),
        ("127.0.0.1", "sslmode=require".to_owned()),
        ("127.0.0.1", "sslmode=prefer".to_owned()),
        ("127.0.0.1", "sslmode=disable".to_owned()),
    ] {
        let (code, said, bill) = bill(host, &parameters);
        assert_eq!(code, Some(0), "{parameters}: {said}");
        let bill: Value = serde_json::from_slice(&bill).expect("a bill in JSON");
        assert_eq!(bill["total"]["requests"], 0);
    }
    for (host, parameters) in [
        ("localhost", "sslmode=verify-full".to_owned()),
        ("127.0.0.1", format!("sslmode=verify-full&sslrootcert={trusted}")),
    ] {
        let (code, said, _) = bill(host, &parameters);
        assert_eq!(code, Some(69), "{parameters}");
        assert!(said.contains("certificate"), "{said}");
    }
}
