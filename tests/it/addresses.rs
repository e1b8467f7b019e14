//! Several addresses for clients and for the admin address.

use std::net::{SocketAddr, TcpListener};

use crate::client::ask;
use crate::engine::Engine;
use crate::fixtures::{CHAT, CHAT_ANSWER};
use crate::gateway::{Gateway, bounded};
use crate::http::{bare, post};

/// Where a gateway says that it listens.
fn said(gateway: &Gateway, name: &str) -> Vec<SocketAddr> {
    let said = gateway.said_at_its_start("listening")[name].as_str().expect("addresses");
    said.split(", ").map(|address| address.parse().expect("an address")).collect()
}

/// A port that was free a moment ago on every address.
fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("its address").port()
}

#[test]
fn every_address_serves() {
    let engine = Engine::start();
    let upstream = format!("http://{}", engine.address());
    let gateway = Gateway::by_flags(&[
        "--upstream",
        &upstream,
        "--listen",
        "127.0.0.2:0,[::1]:0",
        "--admin",
        "[::1]:0",
    ]);
    let (listen, admin) = (said(&gateway, "listen"), said(&gateway, "admin"));
    assert_eq!((listen.len(), admin.len()), (3, 2));
    assert!(listen.iter().chain(&admin).all(|address| address.port() != 0), "{listen:?} {admin:?}");
    for (done, address) in listen.iter().enumerate() {
        let address = *address;
        let client = std::thread::spawn(move || {
            ask(address, &post("/v1/chat/completions", "Connection: close\r\n", CHAT))
        });
        engine.serve_until_answered(CHAT_ANSWER);
        assert_eq!(client.join().expect("an answer").status(), 200, "{address}");
        assert_eq!(gateway.await_records(done + 1).len(), done + 1);
    }
    for address in admin {
        assert_eq!(ask(address, &bare("GET", "/readyz", "Connection: close\r\n")).status(), 200);
    }
}

#[test]
fn all_addresses_of_ipv4_and_of_ipv6_may_have_one_port() {
    let engine = Engine::start();
    let upstream = format!("http://{}", engine.address());
    let port = free_port();
    let listen = format!("[::]:{port},0.0.0.0:{port}");
    let gateway = Gateway::by_flags(&["--upstream", &upstream, "--listen", &listen]);
    assert_eq!(said(&gateway, "listen").len(), 3, "with the one that every test has");
    for address in [format!("127.0.0.1:{port}"), format!("[::1]:{port}")] {
        let address = address.parse().expect("an address");
        let refused = ask(address, &bare("GET", "/nowhere", "Connection: close\r\n"));
        assert_eq!(refused.status(), 404, "{address}");
    }
}

#[test]
fn an_address_that_is_taken_is_named() {
    for (flag, other) in [("--listen", "--admin"), ("--admin", "--listen")] {
        let folder = tempfile::tempdir().expect("a folder");
        let holder = TcpListener::bind("127.0.0.1:0").expect("a port");
        let taken = holder.local_addr().expect("its address");
        let mut serve = bounded();
        serve.args(["serve", "--upstream", "http://127.0.0.1:9", other, "127.0.0.1:0", flag]);
        serve.arg(format!("127.0.0.1:0,{taken}")).arg("--data-dir").arg(folder.path());
        let output = serve.output().expect("run the gateway");
        assert_eq!(output.status.code(), Some(1));
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains(&format!("cannot listen on {taken}")), "{said}");
        assert!(said.contains("in use"), "{said}");
    }
}
