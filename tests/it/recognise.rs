//! `dialect: auto`: the list of models may name an engine. Answers only show how to ask for usage.

use serde_json::{Value, json};

use crate::engine::Engine;
use crate::fixtures::{CHAT, DONE, HELLO, ROLE, STOP, STREAM_CHAT, USAGE};
use crate::gateway::{Gateway, Setup};
use crate::http::{Message, answer, json_answer, stream_answer};

/// Two prices of the same model: of any provider, and of Perplexity's.
const PRICES: &str = "models:\n\
    - {model: m, rates: {input: 1, output: 2}}\n\
    - {model: m, provider: perplexity, rates: {input: 100, output: 200}}\n";

/// A gateway that does not know its engine, and has been told nothing by its list of models.
fn unknowing(engine: &Engine) -> Gateway {
    told_nothing(engine, Setup::before(engine))
}

fn told_nothing(engine: &Engine, setup: Setup) -> Gateway {
    let gateway = setup.start();
    let question = engine.answer_once(&json_answer(r#"{"data":[{"id":"m","owned_by":"me"}]}"#));
    assert_eq!(question.first_line, "GET /v1/models HTTP/1.1");
    gateway
}

/// One stream: what the engine was sent, and what the client got.
fn stream(engine: &Engine, gateway: &Gateway, events: &[&str]) -> (Message, Message) {
    let mut client = gateway.chat("Connection: close\r\n", STREAM_CHAT);
    let request = engine.answer_once(&stream_answer(events));
    (request, client.answer())
}

fn status_of(gateway: &Gateway) -> Value {
    gateway.admin("/api/v1/status").json()["upstreams"][0].clone()
}

#[test]
fn an_engine_whose_answers_have_a_mark_is_asked_for_usage_from_then_on() {
    let engine = Engine::start();
    let gateway = unknowing(&engine);
    let shown = STOP.replacen('{', r#"{"system_fingerprint":"fp_ollama","#, 1);
    let (request, _) = stream(&engine, &gateway, &[ROLE, HELLO, &shown, DONE]);
    assert_eq!(request.text(), STREAM_CHAT);
    assert_eq!(gateway.record()["provider"], "unknown");
    assert_eq!(gateway.await_event("dialect_guessed")["dialect"], "ollama");
    let (request, answer) = stream(&engine, &gateway, &[ROLE, HELLO, STOP, USAGE, DONE]);
    assert_eq!(request.json()["stream_options"]["include_usage"], true);
    assert_eq!(answer.text(), [ROLE, HELLO, STOP, DONE].concat());
    assert_eq!(gateway.await_records(2)[1]["provider"], "unknown");
    let status = status_of(&gateway);
    assert_eq!((&status["dialect"], &status["guessed"]), (&json!("auto"), &json!("ollama")));
    assert_eq!((&status["recognised"], &status["provider"]), (&Value::Null, &json!("unknown")));

    // A later answer may show another one.
    let other = STOP.replacen('{', r#"{"x_groq":{},"#, 1);
    stream(&engine, &gateway, &[ROLE, HELLO, &other, DONE]);
    assert_eq!(gateway.await_event("dialect_guessed")["dialect"], "groq");
    assert_eq!(status_of(&gateway)["guessed"], "groq");
}

#[test]
fn an_engine_that_shows_nothing_certain_is_asked_for_nothing() {
    let engine = Engine::start();
    let gateway = unknowing(&engine);
    let weak = STOP.replacen('{', r#"{"system_fingerprint":"fp_44709d6fcb","#, 1);
    for _ in 0..2 {
        let (request, _) = stream(&engine, &gateway, &[ROLE, HELLO, &weak, DONE]);
        assert_eq!(request.text(), STREAM_CHAT);
    }
}

#[test]
fn an_engine_is_named_where_it_owns_every_model() {
    for (models, provider) in [
        (r#"[{"owned_by":"vllm"},{"owned_by":"vllm"}]"#, "vllm"),
        (r#"[{"owned_by":"sglang"}]"#, "sglang"),
        (r#"[{"owned_by":"llamacpp"}]"#, "llama_cpp"),
        (r#"[{"owned_by":"vllm"},{"owned_by":"openai"}]"#, "unknown"),
        (r#"[{"owned_by":"openai"}]"#, "unknown"),
        ("[]", "unknown"),
    ] {
        let engine = Engine::start();
        let gateway = Setup::before(&engine).start();
        engine.answer_once(&json_answer(format!(r#"{{"data":{models}}}"#)));
        if provider != "unknown" {
            gateway.await_event("upstream_recognised");
        }
        stream(&engine, &gateway, &[ROLE, HELLO, STOP, USAGE, DONE]);
        assert_eq!(gateway.record()["provider"], provider, "{models}");
    }
}

/// With an aggregator the next answer is another provider's: what one shows changes no other.
#[test]
fn a_mark_in_one_answer_changes_nothing_in_how_others_are_read_or_priced() {
    let usage = |mark: &str| {
        format!(
            r#"{{"prompt_tokens":100,"completion_tokens":96,"total_tokens":196{mark},
            "completion_tokens_details":{{"reasoning_tokens":64}}}}"#
        )
    };
    let answer = |usage: &str, rest: &str| {
        json_answer(format!(
            r#"{{"id":"c","model":"m","choices":[{{"index":0,"message":{{"content":"a"}},
            "finish_reason":"stop"}}],"usage":{usage}{rest}}}"#
        ))
    };
    let answers = [
        answer(&usage(r#","search_context_size":"low""#), ""),
        answer(&usage(r#","num_sources_used":0"#), ""),
        answer(&usage(r#","citation_tokens":5000"#), ""),
        answer(&usage(""), r#","x_groq":{}"#),
        answer(&usage(""), r#","kv_transfer_params":null"#),
        answer(&usage(""), ""),
    ];
    let folder = tempfile::tempdir().expect("a temporary folder");
    let prices = folder.path().join("prices.yaml");
    std::fs::write(&prices, PRICES).expect("write the prices");
    for order in [[0, 1, 2, 3, 4, 5], [5, 4, 3, 2, 1, 0], [3, 0, 5, 1, 5, 2]] {
        let engine = Engine::start();
        let prices = format!("prices: {{overrides: [\"{}\"]}}", prices.display());
        let gateway = told_nothing(&engine, Setup::before(&engine).with(&prices));
        for at in order {
            let mut client = gateway.chat("Connection: close\r\n", CHAT);
            engine.answer_once(&answers[at]);
            client.answer();
        }
        for record in gateway.await_records(order.len()) {
            assert_eq!(record["usage"]["output_tokens"], 96, "{record}");
            assert_eq!(record["provider"], "unknown", "{record}");
            // The row has no price for a source that was searched. It says nothing of the others.
            let amount = match &record["usage"]["units"]["search_sources"] {
                Value::Null => "0.000292".into(),
                _ => Value::Null,
            };
            assert_eq!(record["cost"]["amount"], amount, "{record}");
        }
    }
}

#[test]
fn reasoning_beside_the_output_is_added_where_the_usage_object_says_so_and_no_total_contradicts() {
    let engine = Engine::start();
    let gateway = unknowing(&engine);
    let usage = USAGE
        .replace(r#""total_tokens":1100,"#, "")
        .replace(r#""usage":{"#, r#""usage":{"num_sources_used":0,"reasoning_tokens":7,"#);
    stream(&engine, &gateway, &[ROLE, HELLO, STOP, &usage, DONE]);
    let record = gateway.record();
    assert_eq!(record["usage"]["output_tokens"], 107, "{record}");
    assert_eq!(record["provider"], "unknown");
}

#[test]
fn any_answer_ends_the_question_for_models() {
    for status in ["404 Not Found", "401 Unauthorized", "503 Service Unavailable"] {
        let engine = Engine::start();
        let gateway = Setup::before(&engine).upstream("credential: sk-ours").start();
        let question = engine.answer_once(&answer(status, "application/json", "{}"));
        assert_eq!(question.header("authorization"), Some("Bearer sk-ours"));
        stream(&engine, &gateway, &[ROLE, HELLO, STOP, USAGE, DONE]);
        engine.assert_untouched();
    }
}

#[test]
fn what_a_provider_asks_for_stands_beside_our_price() {
    let engine = Engine::start();
    let gateway = unknowing(&engine);
    let usage = USAGE.replace(r#""usage":{"#, r#""usage":{"cost":0.000850,"is_byok":false,"#);
    stream(&engine, &gateway, &[ROLE, HELLO, STOP, &usage, DONE]);
    let record = gateway.record();
    assert_eq!(record["reported_cost"], "0.000850", "{record}");
}
