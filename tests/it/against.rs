//! `taximeter count --against`: what an engine's own tokenizer says, beside what we say.

use std::path::Path;
use std::process::Output;

use serde_json::{Value, json};

use crate::engine::Engine;
use crate::fixtures::CHAT;
use crate::gateway::{binary, taximeter};
use crate::http::{Message, json_answer};

const TEXT: &str = "To the station";
/// Tokens of that in the tiny vocabulary.
const TEXT_TOKENS: u64 = 12;

fn models_of(owner: &str) -> Vec<u8> {
    let list =
        json!({"object": "list", "data": [{"id": "m", "object": "model", "owned_by": owner}]});
    json_answer(list.to_string())
}

/// Counts `text` against an engine that gives these answers, one after another: how it ended, and
/// what the engine was asked.
fn count(text: &str, answers: &[Vec<u8>]) -> (Output, Vec<Message>) {
    // Built before the engine waits for it.
    binary();
    let engine = Engine::start();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("text");
    std::fs::write(&file, text).expect("write the text");
    let (file, url) = (file.to_str().expect("UTF-8"), format!("http://{}", engine.address()));
    let tiny = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/tokenizers/tiny");
    let tiny = tiny.to_str().expect("UTF-8");
    let words = ["count", "--tokenizer", tiny, "--against", &url, file];
    std::thread::scope(|scope| {
        let run = scope.spawn(|| taximeter(words));
        let asked = answers.iter().map(|answer| engine.answer_once(answer)).collect();
        (run.join().expect("it ran"), asked)
    })
}

fn said(output: &Output) -> String {
    let [out, err] = [&output.stdout, &output.stderr].map(|said| String::from_utf8_lossy(said));
    format!("{out}{err}")
}

fn tokenised(tokens: u64) -> Vec<u8> {
    let ids: Vec<_> = (0..tokens).collect();
    json_answer(json!({"tokens": ids, "count": tokens, "max_model_len": 4096}).to_string())
}

#[test]
fn vllm_and_sglang_are_known_by_the_owner_of_their_models_and_asked_to_tokenise() {
    for (owner, name) in [("vllm", "vLLM"), ("sglang", "SGLang")] {
        let (output, asked) = count(TEXT, &[models_of(owner), tokenised(TEXT_TOKENS)]);
        let said = said(&output);
        assert!(output.status.success(), "{said}");
        assert!(said.contains(&format!("12 tokens  ({name} at ")), "{said}");
        assert!(said.contains("+0 difference"), "{said}");
        let lines: Vec<_> = asked.iter().map(|request| request.first_line.as_str()).collect();
        assert_eq!(lines, ["GET /v1/models HTTP/1.1", "POST /tokenize HTTP/1.1"]);
        assert_eq!(asked[1].json(), json!({"prompt": TEXT, "add_special_tokens": false}));
    }
}

#[test]
fn a_count_that_differs_ends_with_1_and_says_by_how_much() {
    for owner in ["vllm", "sglang"] {
        for (tokens, difference) in [(TEXT_TOKENS + 2, "-2"), (TEXT_TOKENS - 1, "+1")] {
            let (output, _) = count(TEXT, &[models_of(owner), tokenised(tokens)]);
            assert_eq!(output.status.code(), Some(1), "{}", said(&output));
            assert!(said(&output).contains(&format!("{difference} difference")), "{output:?}");
        }
    }
}

#[test]
fn vllm_renders_a_chat_itself_and_sglang_needs_our_template() {
    let (output, asked) = count(CHAT, &[models_of("vllm"), tokenised(10)]);
    assert!(said(&output).contains("10 tokens  (vLLM at "), "{}", said(&output));
    let sent: Value = serde_json::from_str(CHAT).expect("JSON");
    assert_eq!(asked[1].json(), json!({"messages": sent["messages"]}));
    let (output, _) = count(CHAT, &[models_of("sglang")]);
    assert_eq!(output.status.code(), Some(69), "{}", said(&output));
    assert!(said(&output).contains("--tokenizer FOLDER"), "{}", said(&output));
}

#[test]
fn each_chat_of_a_batch_is_asked_for_by_itself() {
    let chat = |text: &str| json!([{"role": "user", "content": text}]);
    let batch = json!({"model": "m", "messages": [chat("Where to?"), chat("And then?")]});
    let answers = [models_of("vllm"), tokenised(10), tokenised(7)];
    let (output, asked) = count(&batch.to_string(), &answers);
    assert!(said(&output).contains("17 tokens  (vLLM at "), "{}", said(&output));
    let asked: Vec<_> = asked[1..].iter().map(Message::json).collect();
    assert_eq!(
        asked,
        [json!({"messages": chat("Where to?")}), json!({"messages": chat("And then?")})]
    );
}

#[test]
fn an_engine_that_nobody_knows_or_that_refuses_is_said_to_be_so() {
    let (output, _) = count(TEXT, &[models_of("me")]);
    assert_eq!(output.status.code(), Some(69), "{}", said(&output));
    assert!(
        said(&output).contains("only vLLM, SGLang and llama.cpp can count"),
        "{}",
        said(&output)
    );
    let answer = json_answer(r#"{"error":"no"}"#);
    let refused = String::from_utf8_lossy(&answer).replacen("200 OK", "404 Not Found", 1);
    let (output, _) = count(TEXT, &[models_of("sglang"), refused.into_bytes()]);
    assert_eq!(output.status.code(), Some(69), "{}", said(&output));
    assert!(said(&output).contains("SGLang does not count this input"), "{}", said(&output));
}
