//! What the log says of requests that cannot be read.

use crate::client::Client;
use crate::engine::Engine;
use crate::gateway::Setup;
use crate::http::post;

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
        let mut client = Client::saying(gateway.address(), request.as_bytes());
        client.close_half();
        while client.try_answer().is_ok() {}
        let line = gateway.await_event("bad_framing");
        assert_eq!((&line["cause"], &line["place"]), (&cause.into(), &place.into()), "{request}");
        let text = line.to_string();
        assert!(!text.contains(secret) && !text.contains("attic"), "{text}");
    }
    engine.assert_untouched();
    assert_eq!(gateway.ask(&post("/nowhere", "", "{}")).status(), 404, "it goes on");
}
