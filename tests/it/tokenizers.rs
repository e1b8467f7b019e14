//! Vocabularies from files: whose tokens they count, and what becomes of a start without them.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::engine::Engine;
use crate::gateway::{Setup, taximeter};
use crate::http::json_answer;

fn tiny() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/tokenizers/tiny")
}

/// `Hello`, a blank, `the`, ` world`, `,`, and what the vocabulary does not have: a token a byte.
const ANSWER: &str = r#"{"id":"c","model":"tiny-1","choices":[{"index":0,
"message":{"role":"assistant","content":"Hello the world, zz"},"finish_reason":"stop"}]}"#;
const ANSWER_TOKENS: u64 = 8;
const CHAT_OF_TINY: &str = r#"{"model":"tiny-1","messages":[{"role":"user","content":"x"}]}"#;

#[test]
fn a_model_is_counted_with_the_vocabulary_of_its_folder() {
    let engine = Engine::start();
    let gateway = Setup::before(&engine)
        .upstream("dialect: openai")
        .with(&format!("tokenizers: [{{models: [\"tiny-*\"], path: {:?}}}]", tiny()))
        .start();
    for (model, exact) in [("tiny-1", true), ("other", false)] {
        let request =
            format!(r#"{{"model":"{model}","messages":[{{"role":"user","content":"x"}}]}}"#);
        let mut client = gateway.chat("Connection: close\r\n", request);
        engine.answer_once(&json_answer(ANSWER.replace("tiny-1", model)));
        assert_eq!(client.answer().status(), 200);
        let records = gateway.records();
        let usage = &records.last().expect("a record")["usage"];
        let flags = usage["flagged"]["output_tokens"].to_string();
        assert_eq!(usage["output_tokens"] == ANSWER_TOKENS, exact, "{usage}");
        assert_eq!(!flags.contains("estimated"), exact, "{usage}");
    }
}

#[test]
fn a_file_that_only_a_slower_tokenizer_reads_counts_exactly_and_is_told_of_with_the_reason() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = std::fs::read(tiny().join("tokenizer.json")).expect("the fixture");
    let mut file: Value = serde_json::from_slice(&file).expect("JSON");
    file["normalizer"] = json!({"type": "Lowercase"});
    let path = folder.path().join("tokenizer.json");
    std::fs::write(&path, file.to_string()).expect("write it");
    let engine = Engine::start();
    let gateway = Setup::before(&engine)
        .upstream("dialect: openai")
        .with(&format!("tokenizers: [{{models: [\"tiny-*\"], path: {path:?}}}]"))
        .start();
    let told = gateway.said_at_its_start("tokenizer_fallback");
    assert!(told["path"].as_str().is_some_and(|told| told.ends_with("tokenizer.json")), "{told}");
    assert!(told["reason"].as_str().is_some_and(|told| told.contains("Lowercase")), "{told}");
    let mut client = gateway.chat("Connection: close\r\n", CHAT_OF_TINY);
    engine.answer_once(&json_answer(ANSWER));
    assert_eq!(client.answer().status(), 200);
    let usage = gateway.record()["usage"].clone();
    // Without its capital, `Hello` is no longer one token: it is one a letter.
    assert_eq!(usage["output_tokens"], ANSWER_TOKENS - 1 + "hello".len() as u64, "{usage}");
    assert_eq!(usage["flagged"]["output_tokens"], json!(["missing"]), "{usage}");
}

#[test]
fn a_missing_or_damaged_vocabulary_fails_the_start_and_the_check_by_name() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let damaged = folder.path().join("damaged.json");
    let whole = std::fs::read(tiny().join("tokenizer.json")).expect("the fixture");
    std::fs::write(&damaged, &whole[..whole.len() / 2]).expect("write half of it");
    let missing = folder.path().join("missing");
    let empty = folder.path().join("empty");
    std::fs::create_dir(&empty).expect("a folder");
    for (path, named) in [
        (damaged.clone(), damaged),
        (missing.clone(), missing),
        (empty.clone(), empty.join("tokenizer.json")),
    ] {
        let file = folder.path().join("taximeter.yaml");
        let yaml = format!(
            "listen: 127.0.0.1:0\nadmin: 127.0.0.1:0\ndata_dir: {:?}\n\
             upstreams: [{{name: a, url: \"http://127.0.0.1:1\"}}]\ntokenizers: [{{path: {path:?}}}]\n",
            folder.path().join("data")
        );
        std::fs::write(&file, yaml).expect("write the configuration");
        let file = file.to_str().expect("UTF-8");
        for words in [vec!["check", file], vec!["serve", "--config", file]] {
            let output = taximeter(&words);
            let said = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(64), "{words:?}: {said}");
            assert!(said.contains(&*named.to_string_lossy()), "{words:?}: {said}");
        }
    }
}
