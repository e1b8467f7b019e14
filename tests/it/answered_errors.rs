//! Errors that engines answer with a status of success: how they are told, and what they cost.

use serde_json::{Value, json};

use crate::engine::Engine;
use crate::fixtures::{CHAT, CHAT_ANSWER, DONE, HELLO, STREAM_CHAT};
use crate::gateway::{Gateway, Setup};
use crate::http::{answer, json_answer, stream_answer};

const SECRET: &str = "secret-prompt";

/// The record of one exchange, whose answer passes as it came.
fn record(body: &str, reply: &[u8], passes: &str) -> Value {
    let engine = Engine::start();
    let gateway = Setup::before(&engine).upstream("dialect: openai").start();
    let mut client = gateway.chat("Connection: close\r\n", body);
    engine.answer_once(reply);
    assert_eq!(client.answer().text(), passes);
    let record = gateway.await_records(1).remove(0);
    assert!(!record.to_string().contains(SECRET), "{record}");
    record
}

fn assert_owes_nothing(record: &Value) {
    assert_eq!(record["end"], "upstream_error", "{record}");
    assert_eq!(record["status"], 200, "{record}");
    assert_eq!(record["usage"]["source"], "none", "{record}");
    assert_eq!(record["usage"]["input_tokens"], Value::Null, "{record}");
    assert_eq!(record["cost"]["amount"], "0", "{record}");
}

#[test]
fn an_error_in_place_of_an_answer_is_on_the_record_and_costs_nothing() {
    let error =
        format!(r#"{{"choices":null,"base_resp":{{"status_code":1008,"status_msg":"{SECRET}"}}}}"#);
    for (body, content_type) in
        [(CHAT, "application/json"), (STREAM_CHAT, "application/json"), (STREAM_CHAT, "text/plain")]
    {
        let record = record(body, &answer("200 OK", content_type, &error), &error);
        assert_owes_nothing(&record);
        assert_eq!(record["error"], json!({"code": "1008"}), "{record}");
        assert_eq!(record["error_type"], "1008", "{record}");
    }
}

#[test]
fn an_error_as_the_first_event_of_a_stream_costs_nothing() {
    let error = format!(
        "data: {{\"error\":{{\"message\":\"{SECRET}\",\"type\":\"overloaded_error\",\"code\":529}}}}\n\n"
    );
    let events = [error.as_str(), DONE];
    let record = record(STREAM_CHAT, &stream_answer(&events), &events.concat());
    assert_owes_nothing(&record);
    assert_eq!(record["error"], json!({"type": "overloaded_error", "code": "529"}), "{record}");
}

#[test]
fn tokens_that_an_error_reports_are_owed() {
    let error =
        r#"{"error":{"code":"overloaded"},"usage":{"prompt_tokens":7,"completion_tokens":3}}"#;
    let record = record(CHAT, &json_answer(error), error);
    assert_eq!(record["end"], "upstream_error", "{record}");
    assert_eq!(record["usage"]["source"], "reported", "{record}");
    assert_eq!(record["usage"]["output_tokens"], 3, "{record}");
}

#[test]
fn what_was_sent_before_an_error_counts() {
    let error = "data: {\"detail\":\"broken\"}\n\n";
    let events = [HELLO, error];
    let record = record(STREAM_CHAT, &stream_answer(&events), &events.concat());
    assert_eq!(record["end"], "upstream_error", "{record}");
    assert_eq!(record["usage"]["source"], "counted", "{record}");
    assert_eq!(record["usage"]["output_tokens"], 2, "{record}");
}

#[test]
fn an_answer_with_neither_content_nor_usage_is_not_complete() {
    for (content_type, body) in
        [("application/json", "{}"), ("text/html", "<html>busy</html>"), ("application/json", "")]
    {
        let record = record(CHAT, &answer("200 OK", content_type, body), body);
        assert_eq!(record["end"], "truncated", "{record}");
    }
    let record = record(STREAM_CHAT, &stream_answer(&[DONE]), DONE);
    assert_eq!(record["end"], "truncated", "{record}");
}

#[test]
fn the_vocabulary_of_a_model_that_did_not_answer_is_not_exact() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    let tiny = CHAT_ANSWER.replace("\"model\":\"gpt-4o-mini", "\"model\":\"tiny");
    assert_ne!(tiny, CHAT_ANSWER);
    let mut client = gateway.chat("Connection: close\r\n", CHAT);
    engine.answer_once(&json_answer(&tiny));
    assert_eq!(client.answer().status(), 200);
    let usage = &gateway.record()["usage"];
    assert_eq!((&usage["counted"], &usage["flags"]), (&Value::Null, &json!([])), "{usage}");
}
