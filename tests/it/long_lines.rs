//! Lines, events and documents of an answer may have any length.

use serde_json::{Value, json};

use crate::client::Client;
use crate::engine::Engine;
use crate::fixtures::{
    DONE, HELLO, STOP, STREAM_CHAT, STREAM_CHAT_WITH_USAGE, USAGE, of_too_many_parts,
};
use crate::gateway::Gateway;
use crate::http::{Unframed, answer, json_answer, post, read_message, stream_answer};

/// The record of a request that the engine answers so; the client gets every byte.
fn record(gateway: &Gateway, engine: &Engine, (path, body): (&str, &str), answer: &[u8]) -> Value {
    let before = gateway.records().len();
    let request = post(path, "Connection: close\r\n", body);
    let mut client = Client::saying(gateway.address(), &request);
    // An answer that no buffer holds is sent while the client reads it.
    let came = std::thread::scope(|scope| {
        scope.spawn(|| engine.answer_once(answer));
        client.answer()
    });
    let sent = read_message(&mut &*answer, &mut Vec::new(), Unframed::UntilClose).expect("whole");
    assert!(came.complete && came.body == sent.body);
    gateway.await_records(before + 1).remove(before)
}

#[test]
fn usage_behind_a_picture_in_one_event_is_read() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    let picture = format!("data:image/png;base64,{}", "iVBORw0KGgo".repeat(150_000));
    let event = format!(
        "data: {}\n\n",
        json!({
            "choices": [{"index": 0, "delta": {"images": [{"image_url": {"url": picture}}]}}],
            "usage": {"prompt_tokens": 7, "completion_tokens": 1290, "total_tokens": 1297},
        })
    );
    let mut client = gateway.chat("", STREAM_CHAT_WITH_USAGE);
    engine.answer_once(&stream_answer(&[&event, STOP, DONE]));
    assert!(client.answer().text() == [&event, STOP, DONE].concat());
    let record = gateway.record();
    assert_eq!(record["end"], "complete", "{record}");
    assert_eq!(record["usage"]["source"], "reported", "{record}");
    assert_eq!(record["usage"]["output_tokens"], 1290, "{record}");
}

#[test]
fn a_completed_response_that_repeats_a_long_answer_is_read() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    let text = "To the station. ".repeat(200_000);
    let completed = format!(
        "event: response.completed\ndata: {}\n\n",
        json!({"type": "response.completed", "response": {
            "id": "resp_1",
            "model": "gpt-4o-mini",
            "output": [{"type": "message", "content": [{"type": "output_text", "text": text}]}],
            "status": "completed",
            "usage": {"input_tokens": 7, "output_tokens": 9, "total_tokens": 16},
        }})
    );
    let asked = ("/v1/responses", r#"{"model":"gpt-4o-mini","stream":true,"input":"Where to?"}"#);
    let record = record(&gateway, &engine, asked, &stream_answer(&[&completed]));
    assert_eq!(record["end"], "complete", "{record}");
    assert_eq!(record["usage"]["source"], "reported", "{record}");
    assert_eq!(record["usage"]["output_tokens"], 9, "{record}");
    assert_eq!(record["response_model"], "gpt-4o-mini", "{record}");
}

#[test]
fn usage_behind_a_document_of_pictures_is_read_in_little_memory() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    let asked = ("/v1/images/generations", r#"{"model":"gpt-image-1","prompt":"a station"}"#);
    let document = |length: usize| {
        let picture = json!({"b64_json": "A".repeat(length)});
        let usage = json!({"input_tokens": 10, "output_tokens": 4160, "total_tokens": 4170});
        json!({"data": [picture, picture], "usage": usage}).to_string()
    };
    record(&gateway, &engine, asked, &json_answer(document(100)));
    let before = gateway.peak_memory();
    let record = record(&gateway, &engine, asked, &json_answer(document(25 << 20)));
    assert_eq!(record["end"], "complete", "{record}");
    assert_eq!(record["usage"]["output_tokens"], 4160, "{record}");
    let more = gateway.peak_memory() - before;
    assert!(more < 16 << 20, "{more} bytes more");
}

#[test]
fn a_long_line_of_json_is_read() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    let last = json!({
        "model": "tiny",
        "response": "",
        "context": vec![7; 500_000],
        "done": true,
        "done_reason": "stop",
        "prompt_eval_count": 7,
        "eval_count": 9,
    });
    let lines = format!("{{\"model\":\"tiny\",\"response\":\"To\"}}\n{last}\n");
    let asked = ("/api/generate", r#"{"model":"tiny","prompt":"Where to?"}"#);
    let record = record(&gateway, &engine, asked, &answer("200 OK", "application/x-ndjson", lines));
    assert_eq!(record["end"], "complete", "{record}");
    assert_eq!(record["usage"]["output_tokens"], 9, "{record}");
}

#[test]
fn a_text_longer_than_is_kept_is_estimated_by_its_length() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    let long = HELLO.replace("To the", &"To the station. ".repeat(100_000));
    let mut client = gateway.chat("", STREAM_CHAT);
    engine.answer_once(&stream_answer(&[&long, STOP, DONE]));
    assert!(client.answer().text() == [&long, STOP, DONE].concat());
    let usage = &gateway.record()["usage"];
    assert_eq!(usage["source"], "counted", "{usage}");
    let flags = usage["flagged"]["output_tokens"].as_array().expect("flags");
    assert!(flags.contains(&"estimated".into()), "{usage}");
    let tokens = usage["output_tokens"].as_u64().expect("a number");
    assert!((380_000..=420_000).contains(&tokens), "{usage}");
}

#[test]
fn where_more_may_have_been_said_the_output_is_unknown_unless_it_is_reported() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    let long = of_too_many_parts(HELLO);
    for (events, source) in
        [(vec![HELLO, &long, STOP, DONE], "unknown"), (vec![&long, STOP, USAGE, DONE], "reported")]
    {
        let records = gateway.records().len();
        let mut client = gateway.chat("Connection: close\r\n", STREAM_CHAT_WITH_USAGE);
        engine.answer_once(&stream_answer(&events));
        assert!(client.answer().text() == events.concat());
        assert_eq!(gateway.await_records(records + 1)[records]["usage"]["source"], source);
    }
    gateway.await_metric("taximeter_meter_oddities_total{taximeter_kind=\"line_too_long\"} 2");
}
