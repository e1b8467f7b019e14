//! Tests of redaction and of the limits of captured content.

use proptest::prelude::*;
use serde_json::json;
use taximeter_config::Config;

use super::*;

/// What is captured where the file says so.
fn terms(more: &str) -> Arc<Content> {
    let yaml = format!(
        "upstreams: [{{name: e, url: 'http://127.0.0.1:1'}}]\n\
         telemetry: {{content: {{capture: spans{more}}}}}\n"
    );
    let none = |_: &std::path::Path| Err(std::io::ErrorKind::NotFound.into());
    Config::from_yaml(&yaml, "t.yaml", &|_| None, &none).unwrap().telemetry.content
}

fn chat(text: &str) -> Option<Vec<Bytes>> {
    let body = json!({"messages": [{"role": "user", "content": text}]}).to_string();
    // As it came: in two reads.
    let (head, tail) = body.as_bytes().split_at(7);
    Some(vec![Bytes::copy_from_slice(head), Bytes::copy_from_slice(tail)])
}

/// The attributes as JSON, and whether something was left out.
fn told(said: Captured) -> (serde_json::Map<String, Value>, bool) {
    let (mut told, mut is_cut) = (serde_json::Map::new(), false);
    for attribute in said.attributes().0 {
        match attribute.value.unwrap().value.unwrap() {
            Attribute::StringValue(text) => {
                told.insert(attribute.key, serde_json::from_str(&text).unwrap());
            }
            Attribute::BoolValue(it) if attribute.key == key::CONTENT_CUT => is_cut = it,
            other => panic!("{}: {other:?}", attribute.key),
        }
    }
    (told, is_cut)
}

/// The text of a chat's first message, as it is told.
fn text_of(text: &str, more: &str) -> String {
    let said = Captured::new(Wire::ChatCompletions, chat(text), terms(more));
    let (told, _) = told(said);
    told[key::GEN_AI_INPUT_MESSAGES][0]["parts"][0]["content"].as_str().unwrap().to_owned()
}

#[test]
fn what_everyone_knows_for_a_secret_is_taken_out() {
    let long = "A1b2C3d4".repeat(8);
    for secret in [
        format!("sk-{long}"),
        format!("sk-ant-api03-{long}"),
        format!("tax-{}", "0af9".repeat(16)),
        format!("ghp_{long}"),
        format!("xoxb-1234567890-{long}"),
        "AKIAIOSFODNN7EXAMPLE".to_owned(),
        format!("AIza{long}"),
        format!("hf_{long}"),
        format!("eyJhbGciOiJIUzI1NiJ9.{long}.{long}"),
        format!("Bearer {long}"),
        "ada.lovelace+x@mail.example.org".to_owned(),
        format!("-----BEGIN RSA PRIVATE KEY-----\n{long}\n-----END RSA PRIVATE KEY-----"),
    ] {
        assert_eq!(text_of(&format!("a {secret} b"), ""), "a [redacted] b", "{secret}");
        let as_it_was = format!("a {secret} b");
        assert_eq!(text_of(&as_it_was, ", redact_known: off"), as_it_was);
    }
    // One that is cut is one all the same.
    assert_eq!(text_of("-----BEGIN PRIVATE KEY-----\nMIIE", ""), "[redacted]");
    assert_eq!(text_of("postgres://u:hunter2@db/x", ""), "postgres[redacted]db/x");
    for harmless in ["skating at 5, task-list", "a@b", "the bearer of news", "3:4 / 5 @ noon"] {
        assert_eq!(text_of(harmless, ""), harmless);
    }
}

#[test]
fn what_the_file_names_is_taken_out_of_keys_and_calls_too() {
    let body = json!({"messages": [{"role": "assistant", "tool_calls": [{"id": "c",
        "function": {"name": "pay", "arguments": "{\"to\": \"DE12345678\", \"DE12345678\": [1, 87654321]}"}}]}]});
    let body = Some(vec![Bytes::from(body.to_string())]);
    let terms = terms(", redact: ['(DE)?[0-9]{8}']");
    let (told, is_cut) = told(Captured::new(Wire::ChatCompletions, body, terms));
    assert_eq!(
        told[key::GEN_AI_INPUT_MESSAGES][0]["parts"][0]["arguments"],
        json!({"to": "[redacted]", "[redacted]": [1, "[redacted]"]})
    );
    assert!(!is_cut);
}

#[test]
fn a_long_chat_loses_its_oldest_messages_first() {
    let messages: Vec<_> = (0..100)
        .map(|number| json!({"role": "user", "content": format!("{number} {}", "é".repeat(20))}))
        .collect();
    let body = Some(vec![Bytes::from(json!({"messages": messages}).to_string())]);
    let said = Captured::new(Wire::ChatCompletions, body, terms(", bytes_max: 1000"));
    let (told, is_cut) = told(said);
    let kept = told[key::GEN_AI_INPUT_MESSAGES].as_array().unwrap();
    assert!(is_cut && kept.len() > 3, "{kept:?}");
    let last = kept.last().unwrap()["parts"][0]["content"].as_str().unwrap();
    assert!(last.starts_with("99 "), "{last}");
}

#[test]
fn a_request_that_is_too_long_to_be_read_is_said_to_be_left_out() {
    let said = Captured::new(Wire::ChatCompletions, None, terms(""));
    assert_eq!(said.bytes(), 0);
    assert_eq!(told(said), (serde_json::Map::new(), true));
}

proptest! {
    #[test]
    fn whatever_is_said_an_attribute_is_json_within_its_limit(
        texts in proptest::collection::vec("(\\PC|[\\x00-\\x1f\"\\\\é\u{2028}]){0,600}", 1..6),
        bytes_max in 256_usize..2_000,
    ) {
        let messages: Vec<_> =
            texts.iter().map(|text| json!({"role": "user", "content": text})).collect();
        let body = Some(vec![Bytes::from(json!({"messages": messages}).to_string())]);
        let terms = terms(&format!(", bytes_max: {bytes_max}"));
        let (attributes, bytes) = Captured::new(Wire::ChatCompletions, body, terms).attributes();
        prop_assert!(bytes <= bytes_max);
        for attribute in attributes {
            if let Some(Attribute::StringValue(text)) = attribute.value.unwrap().value {
                prop_assert!(text.len() <= bytes_max, "{}", text.len());
                prop_assert!(serde_json::from_str::<Value>(&text).unwrap()[0]["parts"].is_array());
            }
        }
    }
}
