//! What the client sent reaches the engine, and what the engine sent reaches the client.

use crate::client::Client;
use crate::engine::Engine;
use crate::fixtures::{CHAT, CHAT_ANSWER, MESSAGE, MESSAGE_ANSWER, STREAM_CHAT_WITH_USAGE};
use crate::gateway::{Gateway, Setup};
use crate::http::{answer, bare, json_answer, post};

/// Bytes that a reader who writes JSON again would not keep: order, blanks, numbers, escapes,
/// repeats.
const ODD_BODY: &str = "{ \"zeta\":1.0,\t\"model\" : \"gpt-4o-mini\" ,\r\n\
    \"seed\":123456789012345678901234567890,\
    \"temperature\":1e0,\"x\":\"\\ud83d\\ude00 \\/ \u{e9}\",\"x\":2,\"messages\":[ ] }  ";

#[test]
fn the_body_of_a_request_reaches_the_engine_byte_for_byte() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    let mut client = gateway.chat("", ODD_BODY);
    let request = engine.answer_once(&json_answer(CHAT_ANSWER));
    assert_eq!(request.text(), ODD_BODY);
    assert_eq!(request.first_line, "POST /v1/chat/completions HTTP/1.1");
    assert_eq!(client.answer().status(), 200);
}

#[test]
fn a_body_sent_in_chunks_reaches_the_engine_byte_for_byte() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    let mut client = Client::saying(
        gateway.address(),
        b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\n\
          Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n",
    );
    for byte in CHAT.as_bytes() {
        client.send(&crate::http::chunk([*byte]));
    }
    client.send(crate::http::LAST_CHUNK);
    let request = engine.answer_once(&json_answer(CHAT_ANSWER));
    assert_eq!(request.text(), CHAT);
    assert_eq!(client.answer().status(), 200);
}

#[test]
fn the_body_of_an_answer_reaches_the_client_byte_for_byte() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    let odd = format!("  {CHAT_ANSWER}\n\n ");
    let mut client = gateway.chat("", CHAT);
    engine.answer_once(&json_answer(&odd));
    assert_eq!(client.answer().text(), odd);
}

#[test]
fn an_answer_whose_body_is_no_json_reaches_the_client_byte_for_byte() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    let bytes: Vec<u8> = (0..=255).cycle().take(100_000).collect();
    let mut client = gateway.chat("", CHAT);
    engine.answer_once(&answer("200 OK", "application/json", &bytes));
    assert_eq!(client.answer().body, bytes);
    assert_eq!(gateway.record()["usage"]["output_tokens"], serde_json::Value::Null);
}

#[test]
fn header_names_keep_their_case_in_both_directions() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    let mut client = gateway.chat("X-CuStOm-Header: Kept As It Is\r\nUSER-agent: Taxi/1\r\n", CHAT);
    let request = engine.answer_once(
        b"HTTP/1.1 200 OK\r\nX-EnGiNe-Header: Also Kept\r\n\
          content-TYPE: application/json\r\nContent-Length: 2\r\n\r\n{}",
    );
    let has = |headers: &[(String, String)], name: &str, value: &str| {
        headers.contains(&(name.to_owned(), value.to_owned()))
    };
    assert!(has(&request.headers, "X-CuStOm-Header", "Kept As It Is"), "{request:?}");
    assert!(has(&request.headers, "USER-agent", "Taxi/1"), "{request:?}");
    let answer = client.answer();
    assert!(has(&answer.headers, "X-EnGiNe-Header", "Also Kept"), "{answer:?}");
    assert!(has(&answer.headers, "content-TYPE", "application/json"), "{answer:?}");
}

#[test]
fn only_headers_of_the_one_connection_and_of_identity_are_taken_from_a_request() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    let mut client = gateway.chat(
        "Accept: application/json\r\nOpenAI-Organization: org\r\nX-Request-Id: mine\r\n\
         X-Stainless-Lang: rust\r\n\
         traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\r\n\
         Connection: keep-alive, X-Hop\r\nX-Hop: 1\r\nKeep-Alive: timeout=5\r\n\
         Proxy-Authorization: Basic x\r\nUpgrade: h2c\r\nTE: trailers\r\n\
         Authorization: Bearer sk-client\r\nCookie: a=b\r\nX-Taximeter-Receipt: 1\r\n",
        CHAT,
    );
    let request = engine.answer_once(&json_answer(CHAT_ANSWER));
    assert_eq!(client.answer().status(), 200);

    for (name, value) in [
        ("accept", "application/json"),
        ("content-type", "application/json"),
        ("openai-organization", "org"),
        ("x-request-id", "mine"),
        ("x-stainless-lang", "rust"),
        ("authorization", "Bearer sk-client"),
    ] {
        assert_eq!(request.header(name), Some(value), "{request:?}");
    }
    assert_eq!(request.header("host"), Some(engine.address().to_string().as_str()));
    let trace = request.header("traceparent").expect("the trace goes on");
    assert!(trace.starts_with("00-0af7651916cd43dd8448eb211c80319c-"), "{trace}");
    for name in [
        "x-hop",
        "keep-alive",
        "proxy-authorization",
        "upgrade",
        "te",
        "x-taximeter-receipt",
        "cookie",
    ] {
        assert_eq!(request.header(name), None, "{request:?}");
    }
}

#[test]
fn headers_of_an_answer_reach_the_client() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    let mut client = gateway.chat("", CHAT);
    engine.answer_once(
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json; charset=utf-8\r\n\
          openai-processing-ms: 12\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\n\
          x-ratelimit-remaining-requests: 3\r\nContent-Length: 2\r\n\r\n{}",
    );
    let answer = client.answer();
    assert_eq!(answer.header("content-type"), Some("application/json; charset=utf-8"));
    assert_eq!(answer.header("openai-processing-ms"), Some("12"));
    assert_eq!(answer.header("x-ratelimit-remaining-requests"), Some("3"));
    assert_eq!(answer.header("content-length"), Some("2"));
    let cookies = answer.headers.iter().filter(|(name, _)| name == "Set-Cookie").count();
    assert_eq!(cookies, 2);
}

#[test]
fn a_request_id_is_passed_on_or_made_and_always_answered_with_ours() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    let mut client = gateway.chat("", CHAT);
    let request = engine.answer_once(&json_answer(CHAT_ANSWER));
    let made = request.header("x-request-id").expect("one is made");
    let answer = client.answer();
    let record = gateway.record();
    assert_eq!(record["request_id"], made);
    assert_eq!(record["id"].as_str(), answer.header("x-taximeter-request-id"));
}

#[test]
fn the_prefix_of_the_upstream_and_the_query_of_the_request_are_kept() {
    let engine = Engine::start();
    let setup = format!("name: e, url: \"http://{}/engine/v1\", dialect: openai", engine.address());
    let gateway = Setup::with_upstream(&setup).start();
    let mut client = Client::saying(
        gateway.address(),
        &post("/v1/chat/completions?api-version=1&x=%20", "", CHAT),
    );
    let request = engine.answer_once(&json_answer(CHAT_ANSWER));
    assert_eq!(request.first_line, "POST /engine/v1/chat/completions?api-version=1&x=%20 HTTP/1.1");
    assert_eq!(client.answer().status(), 200);
}

#[test]
fn a_large_prompt_passes() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    let prompt = "0123456789abcdef".repeat(4 << 16);
    let body =
        format!(r#"{{"messages":[{{"role":"user","content":"{prompt}"}}],"model":"gpt-4o-mini"}}"#);
    let address = gateway.address();
    let to_send = post("/v1/chat/completions", "", &body);
    let client = std::thread::spawn(move || crate::client::ask(address, &to_send));
    let request = engine.answer_once(&json_answer(CHAT_ANSWER));
    assert!(request.body == body.as_bytes(), "4 MiB differ");
    assert_eq!(client.join().expect("the client").status(), 200);
}

#[test]
fn the_models_of_the_engine_are_listed_as_it_lists_them() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    let list =
        r#"{"object":"list","data":[{"id":"gpt-4o-mini","object":"model","owned_by":"system"}]}"#;
    let mut client = Client::saying(gateway.address(), &bare("GET", "/v1/models", ""));
    let request = engine.answer_once(&json_answer(list));
    assert_eq!(request.first_line, "GET /v1/models HTTP/1.1");
    assert_eq!(client.answer().text(), list);
}

#[test]
fn requests_on_one_connection_are_answered_in_order() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    let pipelined =
        [post("/v1/chat/completions", "", CHAT), post("/v1/messages", "", MESSAGE)].concat();
    let mut client = Client::saying(gateway.address(), &pipelined);
    engine.answer_once(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}");
    engine.answer_once(&json_answer(MESSAGE_ANSWER));
    assert_eq!(client.answer().text(), "{}");
    assert_eq!(client.answer().text(), MESSAGE_ANSWER);
}

#[test]
fn a_client_that_expects_100_is_told_to_continue() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    let whole = post("/v1/chat/completions", "Expect: 100-continue\r\n", STREAM_CHAT_WITH_USAGE);
    let (head, body) = whole.split_at(whole.len() - STREAM_CHAT_WITH_USAGE.len());
    let mut client = Client::saying(gateway.address(), head);
    assert_eq!(client.head().status(), 100);
    client.send(body);
    engine.answer_once(&json_answer(CHAT_ANSWER));
    assert_eq!(client.answer().status(), 200);
}
