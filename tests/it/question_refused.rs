//! An engine that refuses the gateway's own question for usage: the client does not notice.

use serde_json::{Value, json};

use crate::client::Client;
use crate::engine::Engine;
use crate::fixtures::{DONE, HELLO, ROLE, STOP, STREAM_CHAT, USAGE};
use crate::gateway::{Gateway, Setup};
use crate::http::{Message, answer, json_answer, post, stream_answer};
use crate::patience::patiently;
use crate::unused::await_unused;

const STREAM: [&str; 4] = [ROLE, HELLO, STOP, DONE];

/// What strict engines say, with the status that they say it with.
const REFUSALS: [(&str, &str); 4] = [
    (
        "400 Bad Request",
        r#"{"error":{"message":"Unrecognized request argument supplied: stream_options",
        "type":"invalid_request_error","param":null,"code":null}}"#,
    ),
    (
        "422 Unprocessable Entity",
        r#"{"detail":[{"type":"extra_forbidden","loc":["body","stream_options"],"msg":"Extra"}]}"#,
    ),
    ("400 Bad Request", r#"{"object":"error","message":"stream_options.include_usage: no"}"#),
    ("422 Unprocessable Entity", "unknown field `include_usage`"),
];

fn refusal((status, body): (&str, &str)) -> Vec<u8> {
    answer(status, "application/json", body)
}

fn asks(request: &Message) -> bool {
    request.json()["stream_options"]["include_usage"] == true
}

/// One stream, which the engine answers with these bytes, request by request: what it was sent, and
/// what the client got.
fn stream(
    engine: &Engine,
    gateway: &Gateway,
    body: &str,
    answers: &[Vec<u8>],
) -> (Vec<Message>, Message) {
    let mut client = gateway.chat("Connection: close\r\n", body);
    let requests = answers.iter().map(|answer| engine.answer_once(answer)).collect();
    (requests, client.answer())
}

fn status_of(gateway: &Gateway) -> Value {
    gateway.admin("/api/v1/status").json()["upstreams"][0].clone()
}

#[test]
fn a_refused_question_is_taken_back_once_and_remembered() {
    for refused in REFUSALS {
        let engine = Engine::start();
        let gateway = Gateway::before(&engine);
        let answers = [refusal(refused), stream_answer(&STREAM)];
        let (requests, answer) = stream(&engine, &gateway, STREAM_CHAT, &answers);
        assert!(asks(&requests[0]), "{refused:?}");
        assert_eq!(requests[1].text(), STREAM_CHAT, "{refused:?}");
        assert_eq!((answer.status(), answer.text()), (200, STREAM.concat().as_str()));
        let told = gateway.await_event("question_refused");
        assert_eq!(told["path"], "/v1/chat/completions", "{told}");
        assert_eq!(told["model"], "gpt-4o-mini", "{told}");
        let known = &status_of(&gateway)["refused_questions"];
        assert_eq!(known[0]["member"], told["member"], "{known}");
        assert_eq!(known[0]["model"], "gpt-4o-mini", "{known}");

        // It is not asked again, but for another model.
        let (requests, answer) = stream(&engine, &gateway, STREAM_CHAT, &[stream_answer(&STREAM)]);
        assert_eq!(requests[0].text(), STREAM_CHAT);
        assert_eq!(answer.text(), STREAM.concat());
        let other = STREAM_CHAT.replace("gpt-4o-mini", "gpt-4o");
        let (requests, _) = stream(&engine, &gateway, &other, &[stream_answer(&STREAM)]);
        assert!(asks(&requests[0]));

        let records = gateway.await_records(3);
        assert_eq!(records.len(), 3, "one request, one record: {records:#?}");
        assert_eq!((&records[0]["attempt"], &records[0]["end"]), (&json!(2), &json!("complete")));
        assert_eq!(records[0]["usage"]["source"], "counted", "{}", records[0]);
    }
}

#[test]
fn usage_that_comes_unasked_is_the_clients_after_a_refusal() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    let events = [ROLE, HELLO, STOP, USAGE, DONE];
    let answers = [refusal(REFUSALS[0]), stream_answer(&events)];
    let (_, answer) = stream(&engine, &gateway, STREAM_CHAT, &answers);
    assert_eq!(answer.text(), events.concat());
    assert_eq!(gateway.record()["usage"]["output_tokens"], 100);
}

#[test]
fn a_request_that_is_refused_without_the_question_too_gets_that_answer() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    let second = ("400 Bad Request", r#"{"error":{"message":"no such model"}}"#);
    for _ in 0..2 {
        let answers = [refusal(REFUSALS[0]), refusal(second)];
        let (requests, answer) = stream(&engine, &gateway, STREAM_CHAT, &answers);
        assert!(asks(&requests[0]) && !asks(&requests[1]), "nothing is remembered");
        assert_eq!((answer.status(), answer.text()), (400, second.1));
    }
    gateway.await_voids("upstream_refused", 2);
    assert_eq!(status_of(&gateway)["refused_questions"], json!([]));
}

#[test]
fn a_refusal_of_anything_else_passes_unchanged() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    let own = STREAM_CHAT.replace(r#""stream":true"#, r#""stream":true,"stream_options":{}"#);
    let asked = own.replace("{}", r#"{"include_usage":true}"#);
    let long = "x".repeat(100_000);
    let of = |status, body| refusal((status, body));
    let options = r#"{"error":{"message":"Unknown parameter: 'stream_options'"}}"#;
    for (body, sent) in [
        (STREAM_CHAT, of("400 Bad Request", r#"{"error":{"message":"no such model"}}"#)),
        (STREAM_CHAT, of("400 Bad Request", "")),
        (STREAM_CHAT, of("422 Unprocessable Entity", &long)),
        (STREAM_CHAT, of("400 Bad Request", "my_stream_options")),
        (STREAM_CHAT, of("404 Not Found", options)),
        (STREAM_CHAT, of("500 Internal Server Error", options)),
        // What the client has put in is its own.
        (own.as_str(), of("400 Bad Request", options)),
        (asked.as_str(), of("400 Bad Request", options)),
    ] {
        let (_, answer) = stream(&engine, &gateway, body, std::slice::from_ref(&sent));
        let text = String::from_utf8(sent).expect("text");
        assert!(text.starts_with(&format!("HTTP/1.1 {} ", answer.status())), "{text}");
        assert_eq!(text.split_once("\r\n\r\n").expect("a head").1, answer.text());
        engine.assert_untouched();
    }
}

#[test]
fn a_request_without_a_question_is_sent_once() {
    let engine = Engine::start();
    let gateway = Setup::before(&engine).upstream("dialect: mistral").start();
    let (_, answer) = stream(&engine, &gateway, STREAM_CHAT, &[refusal(REFUSALS[0])]);
    assert_eq!(answer.status(), 400);
    engine.assert_untouched();
}

#[test]
fn a_client_that_leaves_while_its_request_is_refused_owes_nothing() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    let client = gateway.chat("", STREAM_CHAT);
    let (mut connection, _) = engine.request();
    connection.send(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 100\r\n\r\n{\"error\":");
    let stage = || gateway.admin("/api/v1/live").json()["requests"][0]["stage"].clone();
    let answered = patiently(|| (stage() == "answered").then_some(()));
    assert!(answered.is_some(), "the gateway has the head of the refusal");
    drop(client);
    connection.assert_closed_by_gateway();
    gateway.await_voids("upstream_refused", 1);
    await_unused(&gateway, 1, "upstream_refused", "400");
}

#[test]
fn every_member_that_only_the_gateway_adds_can_be_refused() {
    let engine = Engine::start();
    for (usage, member) in
        [("continuous", "continuous_usage_stats"), ("token_ids", "return_token_ids")]
    {
        let setup = format!("dialect: vllm, usage: {usage}");
        let gateway = Setup::before(&engine).upstream(&setup).start();
        let own = STREAM_CHAT.replace(
            r#""stream":true"#,
            r#""stream":true,"stream_options":{"include_usage":true}"#,
        );
        let refused = refusal(("400 Bad Request", &format!("extra inputs: {member}")));
        let answers = [refused, stream_answer(&[ROLE, HELLO, STOP, USAGE, DONE])];
        let mut client = Client::saying(gateway.address(), &post("/v1/chat/completions", "", &own));
        let requests: Vec<_> = answers.iter().map(|answer| engine.answer_once(answer)).collect();
        assert_eq!(requests[1].text(), own, "{usage}");
        assert_eq!(client.answer().text(), [ROLE, HELLO, STOP, USAGE, DONE].concat());
        assert_eq!(gateway.await_event("question_refused")["member"], member);
        drop(gateway);
    }
}

#[test]
fn an_engine_that_is_guessed_is_asked_with_care_too() {
    let engine = Engine::start();
    let gateway = Setup::before(&engine).start();
    engine.answer_once(&json_answer(r#"{"data":[]}"#));
    let marked = STOP.replacen('{', r#"{"system_fingerprint":"fp_ollama","#, 1);
    stream(&engine, &gateway, STREAM_CHAT, &[stream_answer(&[ROLE, HELLO, &marked, DONE])]);
    gateway.await_event("dialect_guessed");
    let answers = [refusal(REFUSALS[1]), stream_answer(&STREAM)];
    let (requests, answer) = stream(&engine, &gateway, STREAM_CHAT, &answers);
    assert!(asks(&requests[0]) && !asks(&requests[1]));
    assert_eq!((answer.status(), answer.text()), (200, STREAM.concat().as_str()));
}
