//! From where it is known what requests have used, why it is not from the engine, and that a price
//! is missing only where one is.

use crate::engine::Engine;
use crate::fixtures::{DONE, HELLO, STOP, STREAM_CHAT, USAGE, WORLD, of_too_many_parts};
use crate::gateway::{Gateway, Setup};
use crate::http::{answer, stream_answer};
use crate::unserved::{by, expected};

/// Asks for a stream of `model`, which the engine answers with these events.
fn streamed(gateway: &Gateway, engine: &Engine, model: &str, events: &[&str]) {
    let mut client =
        gateway.chat("Connection: close\r\n", STREAM_CHAT.replace("gpt-4o-mini", model));
    engine.answer_once(&stream_answer(events));
    client.answer();
}

#[test]
fn usage_is_told_by_source_and_reason_and_a_missing_price_is_told_apart() {
    let engine = Engine::start();
    let gpus = format!(
        "dialect: openai, models: [gpt-*, own]}}, {{name: gpus, url: \"http://{}\", dialect: openai, \
         gpu: {{type: H100, count: 2, hourly: 2.50 USD}}",
        engine.address()
    );
    let gateway = Setup::before(&engine).upstream(&gpus).start();
    let long = of_too_many_parts(HELLO);
    streamed(&gateway, &engine, "gpt-4o-mini", &[HELLO, WORLD, STOP, USAGE, DONE]);
    streamed(&gateway, &engine, "gpt-4o-mini", &[HELLO, WORLD, STOP, DONE]);
    streamed(&gateway, &engine, "gpt-4o-mini", &[&long, STOP, DONE]);
    // A model of one's own, without a price and without a vocabulary.
    let of_own = [HELLO, WORLD, STOP].map(|event| event.replace("gpt-4o-mini", "own"));
    let of_own: Vec<&str> = of_own.iter().map(String::as_str).chain([DONE]).collect();
    streamed(&gateway, &engine, "own", &of_own);
    // One that owes a share of GPUs.
    streamed(&gateway, &engine, "gpus", &[HELLO, WORLD, STOP, USAGE, DONE]);
    let (client, _connection) = gateway.streaming(&engine, STREAM_CHAT, &[HELLO]);
    drop(client);
    gateway.await_records(6);
    // It owes nothing.
    let mut client = gateway.chat("Connection: close\r\n", STREAM_CHAT);
    engine.answer_once(&answer("429 Too Many Requests", "application/json", "{}"));
    client.answer();
    gateway.await_records(7);
    let metrics = gateway.metrics();
    let keys = ["taximeter_usage_source", "taximeter_usage_reason"];
    let told = [
        (["counted", "client_left"], 1.0),
        (["counted", "not_reported"], 1.0),
        (["estimated", "not_reported"], 1.0),
        (["reported", ""], 2.0),
        (["unknown", "unread"], 1.0),
    ];
    assert_eq!(by(&metrics, "taximeter_usage_total", keys), expected(&told), "{metrics}");
    let causes = by(&metrics, "taximeter_unpriced_total", ["taximeter_cause"]);
    assert_eq!(causes, expected(&[(["no_price"], 1.0), (["no_quantity"], 1.0)]), "{metrics}");
    // As the records have it.
    let records = gateway.records();
    let unknown = records.iter().filter(|record| record["usage"]["source"] == "unknown");
    assert_eq!(unknown.count(), 1, "{records:#?}");
    let reasons = records.iter().filter_map(|record| record["cost_unknown"][0]["reason"].as_str());
    let mut reasons: Vec<_> = reasons.collect();
    reasons.sort_unstable();
    assert_eq!(reasons, ["no_price", "no_quantity"], "{records:#?}");
}
