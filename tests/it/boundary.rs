//! Headers that stay behind on the way to an upstream, and what the log says of requests that cannot
//! be read.

use crate::client::Client;
use crate::engine::Engine;
use crate::fixtures::{CHAT, CHAT_ANSWER};
use crate::gateway::Setup;
use crate::http::{json_answer, post};

const SENT: [(&str, &str); 8] = [
    ("Baggage", "user=7"),
    ("Forwarded", "for=192.0.2.7"),
    ("X-Forwarded-For", "192.0.2.7"),
    ("X-Forwarded-Client-Cert", "By=spiffe://a"),
    ("X-Real-Ip", "192.0.2.7"),
    ("x_real_ip", "192.0.2.7"),
    ("X-Internal-User", "anna"),
    ("X-Custom", "1"),
];
const TRACE: &str = "traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\r\n\
    tracestate: vendor=1\r\n";

/// The names of those that the engine gets, in lower case.
fn that_go_on(setup: Setup, engine: &Engine) -> Vec<String> {
    let gateway = setup.start();
    let headers: String = SENT.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let mut client = gateway.chat(&format!("{headers}{TRACE}"), CHAT);
    let got = engine.answer_once(&json_answer(CHAT_ANSWER));
    assert_eq!(client.answer().status(), 200);
    // Towards a private host the whole trace goes on.
    assert!(got.header("traceparent").is_some() && got.header("tracestate").is_some(), "{got:?}");
    let sent = SENT.map(|(name, _)| name.to_ascii_lowercase());
    let names = got.headers.iter().map(|(name, _)| name.to_ascii_lowercase());
    let mut names: Vec<_> = names.filter(|name| sent.contains(name)).collect();
    names.sort_unstable();
    names
}

#[test]
fn what_says_who_a_client_is_stays_before_an_upstream_with_our_credential() {
    let engine = Engine::start();
    let setup = |members: &str, more: &str| {
        Setup::before(&engine).upstream(&format!("dialect: openai{members}")).with(more)
    };
    let mut all = SENT.map(|(name, _)| name.to_ascii_lowercase());
    all.sort_unstable();
    let ours = ", credential: sk-ours";
    assert_eq!(that_go_on(setup("", ""), &engine), all);
    assert_eq!(that_go_on(setup(ours, ""), &engine), ["x-custom", "x-internal-user"]);
    let more = "forward: {drop: [x-internal-*]}";
    assert_eq!(that_go_on(setup(ours, more), &engine), ["x-custom"]);
    let left = that_go_on(setup("", more), &engine);
    assert_eq!(left.len(), all.len() - 1, "the client's own credential: {left:?}");
    assert_eq!(that_go_on(setup(ours, "forward: {drop: []}"), &engine), all);
    let own = format!("{ours}, forward: {{drop: [X-Custom]}}");
    assert_eq!(that_go_on(setup(&own, more), &engine), ["x-internal-user"], "the upstream's own");
}

#[test]
fn a_request_that_cannot_be_read_is_logged_without_a_byte_of_it() {
    let engine = Engine::start();
    let gateway = Setup::before(&engine)
        .upstream("dialect: openai")
        .with("limits: {log_lines_per_kind_per_second_max: 100}")
        .start();
    let secret = "sk-secret";
    let prompt = "the-cat-is-in-the-attic";
    let short = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
         Content-Length: 1\r\n\r\n{{\"messages\": \"{prompt}\"}}\r\n\r\n"
    );
    let chunked = |body: &str| {
        format!(
            "POST /v1/{secret} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
             Transfer-Encoding: chunked\r\n\r\n{body}"
        )
    };
    for (request, cause, place) in [
        (format!("Authorization: Bearer {secret}\r\n\r\n"), "request_line", "head"),
        (format!("{secret}\r\n\r\n"), "request_line", "head"),
        (format!("GET /{secret} HTTP/1.1\r\nX-Api-Key: {secret}\r\n \r\n"), "header_value", "head"),
        (format!("GET /v1/models HTTP/1.1\r\n{secret}: a\r\n{prompt}\r\n"), "header_name", "head"),
        (
            format!("GET http://me:{secret}@localhost/ HTTP/1.1\r\nHost: a\r\n\r\n"),
            "target",
            "head",
        ),
        (format!("GET /{secret} HTTP/1.1\r\n\r\n"), "host", "head"),
        (format!("POST /{secret}?key={secret} HTTP/1.1\r\nHost: a\r\n\r\n"), "no_length", "head"),
        (format!("{{\"messages\": \"{prompt}\"}}\r\n\r\n"), "request_line", "head"),
        (short, "request_line", "head"),
        (chunked(&format!("{prompt}\r\n")), "chunk", "body"),
        (chunked(&format!("3\r\n{prompt}\r\n")), "chunk", "body"),
    ] {
        // It leaves its own side open: who reads the end together with a request gives that up.
        let mut client = Client::saying(gateway.address(), request.as_bytes());
        while client.try_answer().is_ok() {}
        let line = gateway.await_event("bad_framing");
        assert_eq!((&line["cause"], &line["place"]), (&cause.into(), &place.into()), "{request}");
        let text = line.to_string();
        assert!(!text.contains(secret) && !text.contains("attic"), "{text}");
    }
    engine.assert_untouched();
    assert_eq!(gateway.ask(&post("/nowhere", "", "{}")).status(), 404, "it goes on");
}
