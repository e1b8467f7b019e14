//! Where each number comes from: reported by the engine, counted by us, or both.

use serde_json::{Value, json};

use crate::engine::{Connection, Engine};
use crate::fixtures::{CHAT, DONE, HELLO, ROLE, STOP, STREAM_CHAT, USAGE};
use crate::gateway::{Gateway, Setup};
use crate::http::{chunk, json_answer, post, stream_answer};

/// Tokens of the prompt in `CHAT`, with OpenAI's form around its message.
const CHAT_TOKENS: u64 = 10;

/// An answer of three tokens, and what is reported of it.
fn answer(usage: &str) -> Vec<u8> {
    answer_of("gpt-4o-mini", usage)
}

fn answer_of(model: &str, usage: &str) -> Vec<u8> {
    json_answer(format!(
        r#"{{"id":"c","model":"{model}","choices":[{{"index":0,"finish_reason":"stop",
        "message":{{"role":"assistant","content":"To the station"}}}}],"usage":{usage}}}"#
    ))
}

/// The usage on the record of one chat.
fn usage_of(gateway: &Gateway, engine: &Engine, body: &str, answer: &[u8]) -> Value {
    let mut client = gateway.chat("Connection: close\r\n", body);
    engine.answer_once(answer);
    assert_eq!(client.answer().status(), 200);
    gateway.records().pop().expect("a record")["usage"].clone()
}

/// The value of the one series of this name that has both labels.
fn metric(gateway: &Gateway, name: &str, labels: [(&str, &str); 2]) -> Option<u64> {
    let metrics = gateway.admin("/metrics");
    let labels = labels.map(|(key, value)| format!("{key}=\"{value}\""));
    let mut found = metrics.text().lines().filter(|line| {
        line.starts_with(name) && labels.iter().all(|label| line.contains(label.as_str()))
    });
    let value = found.next()?.rsplit(' ').next()?.parse().ok();
    assert_eq!(found.next(), None, "one series");
    value
}

fn recounts(gateway: &Gateway, kind: &str, agrees: &str) -> Option<u64> {
    let labels = [("gen_ai_token_type", kind), ("taximeter_usage_agrees", agrees)];
    metric(gateway, "taximeter_usage_recounts_total", labels)
}

#[test]
fn what_is_reported_is_billed_and_our_own_count_is_kept_beside_it() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    let reports = answer(r#"{"prompt_tokens":10,"completion_tokens":4,"total_tokens":14}"#);
    let usage = usage_of(&gateway, &engine, CHAT, &reports);
    assert_eq!(usage["source"], "reported");
    assert_eq!(usage["sources"], json!({"input_tokens": "reported", "output_tokens": "reported"}));
    assert_eq!((&usage["input_tokens"], &usage["output_tokens"]), (&json!(10), &json!(4)));
    assert_eq!(usage["counted"], json!({"input_tokens": CHAT_TOKENS, "output_tokens": 3}));
    assert_eq!((&usage["flagged"], &usage["flags"]), (&json!({}), &json!([])));
    assert_eq!(recounts(&gateway, "input", "true"), Some(1));
    assert_eq!(recounts(&gateway, "output", "true"), Some(1));
    assert_eq!(recounts(&gateway, "output", "false"), None);
}

#[test]
fn a_difference_of_more_than_a_tenth_is_flagged_and_counted() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    let reports = answer(r#"{"prompt_tokens":10,"completion_tokens":40,"total_tokens":50}"#);
    let usage = usage_of(&gateway, &engine, CHAT, &reports);
    assert_eq!((&usage["source"], &usage["output_tokens"]), (&json!("reported"), &json!(40)));
    assert_eq!(usage["counted"]["output_tokens"], 3);
    assert_eq!(usage["flagged"], json!({"output_tokens": ["differs"]}));
    assert_eq!(usage["flags"], json!(["differs"]));
    assert_eq!(recounts(&gateway, "output", "false"), Some(1));
    assert_eq!(recounts(&gateway, "input", "true"), Some(1));
}

#[test]
fn a_number_that_is_none_is_counted_while_the_other_stays_reported() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    let reports = answer(r#"{"prompt_tokens":"7","completion_tokens":4}"#);
    let usage = usage_of(&gateway, &engine, CHAT, &reports);
    assert_eq!(usage["source"], "counted");
    assert_eq!(usage["sources"], json!({"input_tokens": "counted", "output_tokens": "reported"}));
    assert_eq!(usage["input_tokens"], CHAT_TOKENS);
    assert_eq!(usage["output_tokens"], 4);
    assert_eq!(usage["flagged"], json!({"input_tokens": ["invalid"]}));
    for (kind, source, tokens) in [("input", "counted", CHAT_TOKENS), ("output", "reported", 4)] {
        let labels = [("gen_ai_token_type", kind), ("taximeter_usage_source", source)];
        assert_eq!(metric(&gateway, "taximeter_tokens_total", labels), Some(tokens), "{kind}");
    }
}

#[test]
fn where_our_count_is_not_exact_it_is_not_held_against_the_engines() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    // The vocabulary is nobody's that we know.
    let mine = answer_of("mine", r#"{"prompt_tokens":900,"completion_tokens":90}"#);
    let usage = usage_of(&gateway, &engine, &CHAT.replace("gpt-4o-mini", "mine"), &mine);
    assert_eq!((&usage["counted"], &usage["flags"]), (&Value::Null, &json!([])));
    // Tools take a form of the model's own.
    let reports = answer(r#"{"prompt_tokens":900,"completion_tokens":90}"#);
    let body = CHAT.replace(
        "\"messages\"",
        r#""tools":[{"type":"function","function":{"name":"f"}}],"messages""#,
    );
    let usage = usage_of(&gateway, &engine, &body, &reports);
    assert_eq!(usage["counted"], json!({"input_tokens": null, "output_tokens": 3}));
    assert_eq!(usage["flagged"], json!({"output_tokens": ["differs"]}));
}

#[test]
fn an_upstream_that_is_not_to_be_recounted_is_not() {
    let engine = Engine::start();
    let gateway = Setup::before(&engine).upstream("dialect: openai, recount: off").start();
    let reports = answer(r#"{"prompt_tokens":10,"completion_tokens":40}"#);
    let usage = usage_of(&gateway, &engine, CHAT, &reports);
    assert_eq!((&usage["counted"], &usage["flags"]), (&Value::Null, &json!([])));
    // What is not reported is counted all the same.
    let usage = usage_of(&gateway, &engine, CHAT, &answer("null"));
    assert_eq!(usage["counted"], json!({"input_tokens": CHAT_TOKENS, "output_tokens": 3}));
}

#[test]
fn a_long_stream_that_is_cut_is_counted_to_the_token() {
    const WORDS: usize = 1_500;
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    // Counted once before, the vocabulary is there.
    usage_of(&gateway, &engine, CHAT, &answer("null"));
    let (mut client, mut connection) = gateway.streaming(&engine, STREAM_CHAT, &[]);
    let word = chunk(HELLO.replace("To the", " station"));
    let mut came = 0;
    for _ in 0..WORDS {
        connection.send(&word);
    }
    while came < WORDS {
        let read = client.next_chunk().expect("a chunk");
        came += String::from_utf8_lossy(&read).matches(" station").count();
    }
    drop(client);
    connection.assert_closed_by_gateway();
    let usage = gateway.await_records(2).pop().expect("a record")["usage"].clone();
    assert_eq!(usage["source"], "counted");
    assert_eq!(usage["output_tokens"], WORDS);
    assert_eq!(usage["input_tokens"], CHAT_TOKENS);
    let missing = json!(["missing"]);
    assert_eq!(usage["flagged"], json!({"input_tokens": missing, "output_tokens": missing}));
}

#[test]
fn a_long_prompt_is_counted_while_the_engine_works() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    // The second is longer than what is kept until the end.
    for tokens in [2_000, 33_000] {
        let body = STREAM_CHAT.replace("Where to?", &" station".repeat(tokens));
        let mut client = gateway.chat("Connection: close\r\n", &body);
        let input = tokens + 7;
        let usage = USAGE.replace("1000", &input.to_string());
        engine.answer_once(&stream_answer(&[ROLE, HELLO, STOP, &usage, DONE]));
        client.answer();
        let usage = &gateway.records().pop().expect("a record")["usage"];
        assert_eq!(usage["input_tokens"], input);
        assert_eq!(usage["counted"]["input_tokens"], input);
        assert_eq!(usage["flagged"]["input_tokens"], Value::Null, "{usage}");
    }
}

#[test]
fn a_long_prompt_whose_client_leaves_before_the_answer_is_owed() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    let body = CHAT.replace("Where to?", &" station".repeat(2_000));
    let client = gateway.chat("", &body);
    let (connection, _) = engine.request();
    drop(client);
    connection.assert_closed_by_gateway();
    let record = &gateway.await_records(1)[0];
    assert_eq!(record["end"], "client_left");
    let usage = &record["usage"];
    assert_eq!((&usage["input_tokens"], &usage["output_tokens"]), (&json!(2007), &json!(0)));
    assert!(!usage["flags"].as_array().expect("flags").contains(&json!("estimated")), "{usage}");
}

#[test]
fn reasoning_and_calls_of_a_stream_that_is_cut_are_counted() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    let (mut client, mut connection) = gateway.streaming(&engine, STREAM_CHAT, &[]);
    let delta = |delta: &str| chunk(HELLO.replace(r#""content":"To the""#, delta));
    for part in [
        delta(r#""reasoning_content":"To the""#),
        delta(r#""content":" station""#),
        delta(r#""tool_calls":[{"index":0,"function":{"name":"f","arguments":" station"}}]"#),
    ] {
        connection.send(&part);
        client.next_chunk();
    }
    drop(client);
    connection.assert_closed_by_gateway();
    let usage = &gateway.await_records(1)[0]["usage"];
    assert_eq!((&usage["source"], &usage["output_tokens"]), (&json!("counted"), &json!(5)));
}

#[test]
fn the_texts_of_embeddings_are_recounted() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    let body = r#"{"model":"text-embedding-3-small","input":["To the station","To the station"]}"#;
    let request = post("/v1/embeddings", "Connection: close\r\n", body);
    let mut client = crate::client::Client::saying(gateway.address(), &request);
    engine.answer_once(&json_answer(
        r#"{"object":"list","model":"text-embedding-3-small","data":[],
            "usage":{"prompt_tokens":6,"total_tokens":6}}"#,
    ));
    client.answer();
    let usage = &gateway.record()["usage"];
    assert_eq!(
        (&usage["source"], &usage["counted"]["input_tokens"]),
        (&json!("reported"), &json!(6))
    );
    assert_eq!(usage["flags"], json!([]));
}

#[test]
fn of_more_streams_that_are_cut_at_once_than_can_be_counted_the_rest_is_estimated() {
    // More than twice what may wait, each with a prompt that is not counted before the end: nobody
    // knows the model that it is for.
    const STREAMS: usize = 300;
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    let body =
        STREAM_CHAT.replace("gpt-4o-mini", "tiny").replace("Where to?", &" station".repeat(2_000));
    let streams: Vec<_> =
        (0..STREAMS).map(|_| gateway.streaming(&engine, &body, &[HELLO])).collect();
    let (clients, connections): (Vec<_>, Vec<_>) = streams.into_iter().unzip();
    connections.into_iter().for_each(Connection::reset);
    let records = gateway.await_records(STREAMS);
    for record in &records {
        let usage = &record["usage"];
        assert_eq!(usage["source"], "counted", "{usage}");
        let input = usage["input_tokens"].as_u64().expect("a number");
        assert!((2_000..8_000).contains(&input), "{usage}");
        assert!(usage["output_tokens"].as_u64() > Some(0), "{usage}");
    }
    let flags = json!(["estimated", "missing"]);
    let estimated = |record: &&Value| record["usage"]["flagged"]["input_tokens"] == flags;
    assert_ne!(records.iter().filter(estimated).count(), 0);
    let cause = ("taximeter_cause", "queue_full");
    let skipped = metric(&gateway, "taximeter_meter_counts_skipped_total", [cause, cause]);
    assert!(skipped > Some(0), "{skipped:?}");
    drop(clients);
}
