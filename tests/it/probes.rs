//! Probes of the engine: answered to everybody, asked once a second, and never recorded.

use crate::client::Client;
use crate::engine::Engine;
use crate::gateway::{Gateway, Setup};
use crate::http::{answer, bare};
use crate::patience::patiently;

const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";

/// A gateway with a credential of its own, which serves nobody without a key.
fn guarded(engine: &Engine) -> Gateway {
    Setup::before(engine)
        .upstream("dialect: openai, credential: sk-operator")
        .with("tenants: {unknown: refuse}")
        .start()
}

#[test]
fn a_probe_needs_no_key_and_shows_the_engine_none() {
    let engine = Engine::start();
    let gateway = guarded(&engine);
    for target in
        ["/health", "/ping", "/version", "/v1/health", "/health_generate", "/v2/health/ready"]
    {
        let headers = "Authorization: Bearer sk-client\r\nx-api-key: sk-client\r\nCookie: a=b\r\n";
        let mut client = Client::saying(gateway.address(), &bare("GET", target, headers));
        let said = answer("503 Service Unavailable", "text/x-state", "loading\n");
        let got = engine.answer_once(&said);
        assert_eq!(got.first_line, format!("GET {target} HTTP/1.1"));
        for name in ["authorization", "x-api-key", "cookie"] {
            assert_eq!(got.header(name), None, "{got:?}");
        }
        let shown = client.answer();
        assert_eq!((shown.status(), shown.text()), (503, "loading\n"));
        assert_eq!(shown.header("content-type"), Some("text/x-state"));
        assert!(shown.header("x-taximeter-request-id").is_some());
    }
    assert_eq!(gateway.records().len(), 0);
    assert_eq!(gateway.ask(&bare("GET", "/v1/models", "")).status(), 401);
    assert_eq!(gateway.ask(&bare("POST", "/health", "Content-Length: 0\r\n")).status(), 405);
    engine.assert_untouched();
}

#[test]
fn many_who_probe_at_once_are_one_question() {
    let engine = Engine::start();
    let gateway = guarded(&engine);
    let ask = |method| Client::saying(gateway.address(), &bare(method, "/health", ""));
    let mut waiting: Vec<_> = (0..50).map(|_| ask("GET")).collect();
    let (mut connection, _) = engine.request();
    connection.send(&answer("200 OK", "text/plain", "well"));
    for client in &mut waiting {
        assert_eq!(client.answer().text(), "well");
    }
    // HEAD is another question, since engines may answer it in another way.
    let mut head = ask("HEAD");
    assert_eq!(engine.answer_once(OK).first_line, "HEAD /health HTTP/1.1");
    assert_eq!(head.head().status(), 200);
    engine.assert_untouched();
}

#[test]
fn a_probe_with_a_body_is_answered_and_the_next_request_after_it() {
    let engine = Engine::start();
    let gateway = guarded(&engine);
    let probe = [&bare("GET", "//health/", "Content-Length: 5\r\n")[..], b"hello"].concat();
    let both = [probe, bare("GET", "/nowhere", "")].concat();
    let mut client = Client::saying(gateway.address(), &both);
    let got = engine.answer_once(&answer("200 OK", "text/plain", "well"));
    assert_eq!((got.first_line.as_str(), got.text()), ("GET //health/ HTTP/1.1", ""));
    assert_eq!(client.answer().text(), "well");
    assert_eq!(client.answer().status(), 404);
}

#[test]
fn a_probe_is_asked_again_after_a_second() {
    let engine = Engine::start();
    let gateway = guarded(&engine);
    for said in ["one", "two"] {
        // The gateway asks once what it remembers is old.
        let asked = patiently(|| {
            let client = Client::saying(gateway.address(), &bare("GET", "/health", ""));
            engine.taken(&client).map(|connection| (client, connection))
        });
        let (mut client, mut connection) = asked.expect("a question to the engine");
        connection.send(&answer("200 OK", "text/plain", said));
        assert_eq!(client.answer().text(), said);
    }
}

#[test]
fn a_probe_of_an_engine_that_is_away_says_so() {
    let gateway = Setup::with_upstream("name: gone, url: 'http://127.0.0.1:9'").start();
    for _ in 0..3 {
        let refused = gateway.ask(&bare("GET", "/health", ""));
        assert_eq!(refused.status(), 502);
        assert_eq!(refused.json()["error"]["code"], "upstream_connect");
    }
    let head = Client::saying(gateway.address(), &bare("HEAD", "/ping", "")).head();
    assert_eq!(head.status(), 502);
}

#[test]
fn different_probes_of_one_second_have_a_maximum() {
    let engine = Engine::start();
    let gateway = guarded(&engine);
    // Each waits for the engine, which does not answer.
    let waiting: Vec<_> = (0..32)
        .map(|number| {
            let target = format!("/health?number={number}");
            let client = Client::saying(gateway.address(), &bare("GET", &target, ""));
            (engine.request().0, client)
        })
        .collect();
    let refused = gateway.ask(&bare("GET", "/health", ""));
    assert_eq!((refused.status(), refused.header("retry-after")), (503, Some("1")));
    engine.assert_untouched();
    for (mut connection, mut client) in waiting {
        connection.send(OK);
        assert_eq!(client.answer().status(), 200);
    }
}
