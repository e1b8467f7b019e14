//! Web pages of other origins: who answers what a browser asks before a request, and what a page can
//! read and spend.

use crate::client::Client;
use crate::engine::Engine;
use crate::fixtures::{CHAT, CHAT_ANSWER};
use crate::gateway::{Gateway, Setup};
use crate::http::{Message, bare, json_answer, post};
use crate::http2;
use crate::identity::ACME;

const CHAT_PATH: &str = "/v1/chat/completions";
const PAGE: &str = "https://page.example";
const ORIGIN: &str = "access-control-allow-origin";

/// The answer of an engine that lets every page in.
const ENGINE_ALLOWS: &[u8] = b"HTTP/1.1 200 OK\r\nAccess-Control-Allow-Origin: *\r\n\
    Access-Control-Allow-Headers: authorization\r\nContent-Length: 0\r\n\r\n";

fn asks(headers: &str) -> String {
    format!(
        "Origin: {PAGE}\r\nAccess-Control-Request-Method: POST\r\n\
         Access-Control-Request-Headers: authorization,content-type\r\n{headers}"
    )
}

/// What a browser is told before the request of a page.
fn preflight(gateway: &Gateway, path: &str) -> Message {
    Client::saying(gateway.address(), &bare("OPTIONS", path, &asks(""))).head()
}

fn setup(engine: &Engine, upstream: &str, more: &str) -> Setup {
    Setup::before(engine).upstream(&format!("dialect: openai{upstream}")).with(more)
}

#[test]
fn an_engine_answers_a_preflight_where_no_page_could_spend_our_credential() {
    let engine = Engine::start();
    let keys = format!("tenants: {{unknown: refuse, keys: [{ACME}]}}");
    for (upstream, more) in [
        ("", ""),
        ("", keys.as_str()),
        (", credential: sk-ours", keys.as_str()),
        (", models: [\"gpt-*\"]", ""),
    ] {
        let gateway = setup(&engine, upstream, more).start();
        for path in [CHAT_PATH, "/v1/models", "/v1/messages"] {
            let headers = asks("Cookie: a=b\r\nx-taximeter-key: tax-1\r\nConnection: close\r\n");
            let mut browser = Client::saying(gateway.address(), &bare("OPTIONS", path, &headers));
            let got = engine.answer_once(ENGINE_ALLOWS);
            let told = browser.head();
            assert_eq!((told.status(), told.header(ORIGIN)), (200, Some("*")), "{upstream}");
            assert_eq!(told.header("access-control-allow-headers"), Some("authorization"));
            assert_eq!(got.first_line, format!("OPTIONS {path} HTTP/1.1"));
            assert_eq!(got.header("origin"), Some(PAGE));
            for name in ["authorization", "cookie", "x-taximeter-key"] {
                assert_eq!(got.header(name), None, "{got:?}");
            }
        }
        assert!(gateway.records().is_empty(), "nothing is on the ledger");
        // Nobody knows the path, and a page can read that.
        let told = preflight(&gateway, "/nowhere");
        assert_eq!((told.status(), told.header(ORIGIN)), (404, Some(PAGE)));
        engine.assert_untouched();
    }
}

#[test]
fn an_engine_that_wants_a_key_even_of_a_preflight_says_so_itself() {
    let engine = Engine::start();
    let keys = format!("tenants: {{unknown: refuse, keys: [{ACME}]}}");
    let gateway = setup(&engine, ", credential: sk-ours", &keys).start();
    let mut browser = Client::saying(gateway.address(), &bare("OPTIONS", CHAT_PATH, &asks("")));
    engine.answer_once(b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n");
    assert_eq!(browser.head().status(), 401);
}

#[test]
fn no_page_can_spend_our_credential_where_callers_need_no_key() {
    let engine = Engine::start();
    let trusted = "tenants: {header: {name: x-tenant-id, trusted_peers: [127.0.0.1]}}";
    for more in ["", "passthrough: on", "tenants: {unknown: guests}", trusted] {
        let gateway = setup(&engine, ", credential: sk-ours", more).start();
        let told = preflight(&gateway, CHAT_PATH);
        assert_eq!((told.status(), told.header(ORIGIN)), (204, None), "{more}");
        assert_eq!(preflight(&gateway, "/elsewhere").header(ORIGIN), None);
        // What a form can send comes without a preflight.
        let origin = format!("Origin: {PAGE}\r\n");
        let form = |content_type: &str| {
            let head = "Host: localhost\r\nContent-Length: 2\r\n";
            format!("POST /api/chat HTTP/1.1\r\n{head}{content_type}{origin}\r\n{{}}").into_bytes()
        };
        for request in [
            form("Content-Type: text/plain\r\n"),
            form("Content-Type: multipart/form-data; boundary=a\r\n"),
            form(""),
            bare("GET", "/v1/files", &origin),
            bare("GET", "/v1/models", "Origin: null\r\n"),
        ] {
            let refused = gateway.ask(&request);
            assert_eq!(refused.status(), 403, "{more}: {}", String::from_utf8_lossy(&request));
            assert_eq!(refused.json()["error"]["code"], "origin_not_allowed");
            assert_eq!(refused.header(ORIGIN), None);
        }
        engine.assert_untouched();
    }
    // What a proxy in front has let in, and named, no form could send.
    let named = format!("X-Tenant-Id: acme\r\nOrigin: {PAGE}\r\nConnection: close\r\n");
    let gateway = setup(&engine, ", credential: sk-ours", trusted).start();
    let mut client = Client::saying(gateway.address(), &bare("GET", "/v1/models", &named));
    engine.answer_once(&json_answer("{}"));
    assert_eq!(client.answer().status(), 200);
    let gateway = setup(&engine, ", credential: sk-ours", "").start();
    // Programs, and pages that the gateway itself has passed on.
    let own = format!("Origin: http://localhost:{}\r\n", gateway.address().port());
    let host = format!("Host: localhost:{}\r\n", gateway.address().port());
    let same = format!("GET /v1/models HTTP/1.1\r\n{host}{own}Connection: close\r\n\r\n");
    for request in [same.into_bytes(), bare("GET", "/v1/models", "Connection: close\r\n")] {
        let mut client = Client::saying(gateway.address(), &request);
        let got = engine.answer_once(&json_answer("{}"));
        assert_eq!(got.header("authorization"), Some("Bearer sk-ours"));
        assert_eq!(client.answer().status(), 200);
    }
}

#[test]
fn pages_that_the_configuration_lists_may_ask_and_read() {
    let engine = Engine::start();
    let cors = format!("cors: {{origins: [\"{PAGE}\"]}}");
    for upstream in ["", ", credential: sk-ours"] {
        let gateway = setup(&engine, upstream, &cors).start();
        let told = preflight(&gateway, CHAT_PATH);
        assert_eq!((told.status(), told.header(ORIGIN)), (204, Some(PAGE)));
        assert_eq!(told.header("access-control-allow-headers"), Some("authorization,content-type"));
        assert!(told.header("access-control-allow-methods").is_some_and(|m| m.contains("POST")));
        assert_eq!(told.header("vary"), Some("origin"));
        engine.assert_untouched();
        let mut page = gateway.chat(&format!("Origin: {PAGE}\r\nConnection: close\r\n"), CHAT);
        engine.answer_once(&json_answer(CHAT_ANSWER));
        let told = page.answer();
        assert_eq!((told.status(), told.header(ORIGIN)), (200, Some(PAGE)));
        let exposed = told.header("access-control-expose-headers").expect("what it may read");
        for name in ["x-taximeter-request-id", "x-taximeter-tokens", "x-taximeter-cost"] {
            assert!(exposed.contains(name), "{exposed}");
        }
        let other = "Origin: https://other.example\r\nAccess-Control-Request-Method: POST\r\n";
        let mut browser = Client::saying(gateway.address(), &bare("OPTIONS", CHAT_PATH, other));
        let told = browser.head();
        assert_eq!((told.status(), told.header(ORIGIN)), (204, None));
        engine.assert_untouched();
    }
}

#[test]
fn a_page_can_read_our_refusals_where_it_could_have_asked() {
    let engine = Engine::start();
    let keys = format!("tenants: {{unknown: refuse, keys: [{ACME}]}}");
    let page = format!("Origin: {PAGE}\r\n");
    for (upstream, more, readable) in [
        ("", "", true),
        (", credential: sk-ours", keys.as_str(), true),
        (", credential: sk-ours", &format!("cors: {{origins: [\"{PAGE}\"]}}"), true),
        (", credential: sk-ours", "cors: {origins: [\"https://other.example\"]}", false),
        (", credential: sk-ours", "", false),
    ] {
        let gateway = setup(&engine, upstream, more).start();
        let refused = gateway.chat(&format!("{page}Authorization: Bearer sk-x\r\n"), "{").answer();
        assert!(matches!(refused.status(), 400 | 401), "{refused:?}");
        assert_eq!(refused.header(ORIGIN).is_some(), readable, "{upstream} {more}");
        let exposed = refused.header("access-control-expose-headers");
        assert_eq!(exposed.is_some_and(|names| names.contains("x-taximeter-request-id")), readable);
        assert_eq!(gateway.chat("", "{").answer().header(ORIGIN), None, "no page");
    }
    engine.assert_untouched();
}

#[test]
fn an_engines_own_word_to_a_page_passes_with_our_headers_exposed() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    let mut page = gateway.chat(&format!("Origin: {PAGE}\r\n"), CHAT);
    let length = CHAT_ANSWER.len();
    let answer = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\
         Access-Control-Allow-Origin: {PAGE}\r\n\r\n{CHAT_ANSWER}"
    );
    let asked = engine.answer_once(answer.as_bytes());
    assert_eq!(asked.header("origin"), Some(PAGE));
    let told = page.answer();
    assert_eq!((told.header(ORIGIN), told.header("vary")), (Some(PAGE), None));
    assert!(told.header("access-control-expose-headers").is_some());
    // An engine that says nothing to pages lets none read.
    let mut page = gateway.chat(&format!("Origin: {PAGE}\r\n"), CHAT);
    engine.answer_once(&json_answer(CHAT_ANSWER));
    let told = page.answer();
    assert_eq!((told.header(ORIGIN), told.header("access-control-expose-headers")), (None, None));
}

#[test]
fn on_http2_a_page_and_a_name_are_known_as_well() {
    let engine = Engine::start();
    let gateway = setup(&engine, ", credential: sk-ours", "").start();
    let runtime = http2::runtime();
    let mut sender = runtime.block_on(http2::connect(gateway.address()));
    let mut status = |method: &str, host: &str, origin: &str| {
        let mut request = http2::request("{}");
        *request.method_mut() = method.parse().expect("a method");
        *request.uri_mut() = format!("http://{host}/v1/models").parse().expect("a URI");
        let headers = request.headers_mut();
        headers.remove("content-type");
        headers.insert("origin", origin.parse().expect("an origin"));
        let answer = runtime.block_on(sender.send_request(request)).expect("an answer");
        (answer.status().as_u16(), answer.headers().contains_key(ORIGIN))
    };
    assert_eq!(status("GET", "evil.example", "http://evil.example"), (421, false));
    assert_eq!(status("GET", "localhost", PAGE), (403, false));
    assert_eq!(status("OPTIONS", "localhost", PAGE), (204, false));
    assert_eq!(status("POST", "localhost", "http://localhost"), (405, false), "its own page");
    engine.assert_untouched();
}

#[test]
fn a_name_of_somebody_elses_is_refused_where_only_this_machine_asks_and_needs_no_key() {
    let engine = Engine::start();
    let ask = |gateway: &Gateway, host: &str| {
        let request = format!("GET /nowhere HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        gateway.ask(request.as_bytes()).status()
    };
    let gateway = Gateway::before(&engine);
    for host in
        ["evil.example", "evil.example:8080", "127.0.0.1.evil.example", "LOCALHOST.evil.example."]
    {
        assert_eq!(ask(&gateway, host), 421, "{host}");
    }
    for host in ["localhost", "127.0.0.1:8080", "[::1]:8080", "a.localhost", "host.docker.internal"]
    {
        assert_eq!(ask(&gateway, host), 404, "{host}");
    }
    let request = post(CHAT_PATH, "", CHAT);
    let request = String::from_utf8(request).expect("UTF-8").replace("localhost", "evil.example");
    let refused = gateway.ask(request.as_bytes());
    assert_eq!(refused.json()["error"]["code"], "misdirected");
    assert_eq!(refused.json()["error"]["param"], "host");
    let keys = format!("tenants: {{unknown: refuse, keys: [{ACME}]}}");
    assert_eq!(ask(&setup(&engine, "", &keys).start(), "evil.example"), 404, "callers need a key");
    let keys = format!("tenants: {{unknown: guests, keys: [{ACME}]}}");
    assert_eq!(ask(&setup(&engine, "", &keys).start(), "evil.example"), 421);
    let flags = ["--listen", "0.0.0.0:0", "--upstream", "http://127.0.0.1:1"];
    assert_eq!(ask(&Gateway::by_flags(&flags), "evil.example"), 404, "other machines ask too");
    engine.assert_untouched();
}
