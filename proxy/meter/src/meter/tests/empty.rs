//! Tests answers of success that are errors, or have neither content nor usage.

use super::*;

const JSON: Exchange<'_> = Exchange { content_type: Some("application/json"), ..Exchange::chat() };
const DONE: &str = "data: [DONE]\n\n";

#[test]
fn an_answer_without_content_and_usage_is_never_complete() {
    let role = "data: {\"id\":\"1\",\"choices\":[{\"delta\":{\"role\":\"assistant\"}}]}\n\n";
    for body in ["", DONE, ": ping\n\n", role, &format!("{role}{DONE}")] {
        assert_eq!(measure(Exchange::chat(), body).ending, Ending::Truncated, "{body}");
    }
    for body in ["", "\n", "{}", "[]", "null", "<html>busy</html>", "{\"choices\":[]}"] {
        for &wire in Wire::ALL.iter().filter(|wire| wire.format().is_some()) {
            let exchange = Exchange { wire, ..JSON };
            let is_spoken = wire.may_lack_text() && body.contains("choices");
            if !is_spoken {
                assert_eq!(measure(exchange, body).ending, Ending::Truncated, "{wire:?}: {body}");
            }
        }
    }
    assert_eq!(measure(Exchange { wire: Wire::Opaque, ..JSON }, "").ending, Ending::Complete);
}

#[test]
fn an_answer_that_tells_why_it_is_empty_or_is_no_text_is_complete() {
    let choice = r#"{"choices":[{"message":{"content":""},"finish_reason":"content_filter"}]}"#;
    let usage = r#"{"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":0}}"#;
    for (wire, body) in [
        (Wire::ChatCompletions, choice),
        (Wire::ChatCompletions, usage),
        (Wire::GenerateContent, r#"{"promptFeedback":{"blockReason":"SAFETY"}}"#),
        (Wire::Responses, r#"{"status":"queued"}"#),
        (Wire::Responses, r#"{"status":"completed","output":[]}"#),
        (Wire::Embeddings, r#"{"data":[{"embedding":[0.5]}]}"#),
        (Wire::Embeddings, r#"{"results":[{"flagged":false}]}"#),
        (Wire::Images, r#"{"data":[{"url":"u"}]}"#),
        (Wire::Videos, r#"{"id":"video_1","status":"queued","error":null}"#),
        (Wire::Transcriptions, r#"{"text":""}"#),
        (Wire::Ocr, r#"{"pages":[{"markdown":""}]}"#),
        (Wire::Invocations, r#"{"data":[{"embedding":[0.5]}]}"#),
    ] {
        assert_eq!(measure(Exchange { wire, ..JSON }, body).ending, Ending::Complete, "{body}");
    }
    for (wire, content_type) in [(Wire::Speech, "audio/mpeg"), (Wire::Transcriptions, "text/plain")]
    {
        let exchange = Exchange { wire, content_type: Some(content_type), ..JSON };
        assert_eq!(measure(exchange, "ID3").ending, Ending::Complete, "{content_type}");
    }
    for &wire in Wire::ALL.iter().filter(|wire| wire.format().is_some()) {
        let page = Exchange { wire, content_type: Some("text/html; charset=utf-8"), ..JSON };
        assert_eq!(measure(page, "<html>busy</html>").ending, Ending::Truncated, "{wire:?}");
    }
}

#[test]
fn an_error_of_a_framework_ends_an_answer_whatever_was_announced() {
    let error = r#"{"code":1113,"msg":"secret","success":false}"#;
    let event = format!("data: {error}\n\n{DONE}");
    let list = r#"[{"error":{"code":1113,"message":"secret"}}]"#;
    for (content_type, body) in [
        ("application/json", error),
        ("application/json", list),
        ("text/event-stream", error),
        ("text/event-stream", &event),
        ("application/x-ndjson", error),
        ("text/plain", error),
    ] {
        let exchange = Exchange { content_type: Some(content_type), ..Exchange::chat() };
        let found = measure(exchange, body);
        assert_eq!(found.ending, Ending::UpstreamError, "{content_type}: {body}");
        assert_eq!(found.error.unwrap().code.as_deref(), Some("1113"), "{body}");
    }
}

#[test]
fn an_answer_that_sglang_aborts_is_an_error_with_its_names() {
    let end = |reason: &str| {
        let meta =
            format!(r#"{{"prompt_tokens":2,"completion_tokens":0,"finish_reason":{reason}}}"#);
        format!(r#"{{"text":"","meta_info":{meta}}}"#)
    };
    let refused =
        r#"{"type":"abort","message":"secret","status_code":400,"err_type":"BadRequest"}"#;
    for (reason, status, error_type) in [
        (refused, Some("400"), Some("BadRequest")),
        (r#"{"message":null,"status_code":null,"err_type":null,"type":"abort"}"#, None, None),
    ] {
        let document = end(reason);
        for body in
            [document.clone(), format!("[{document}]"), format!("data: {document}\n\n{DONE}")]
        {
            let found = measure(Exchange { wire: Wire::Generate, ..JSON }, &body);
            assert_eq!(found.ending, Ending::UpstreamError, "{body}");
            let error = found.error.unwrap();
            assert_eq!(error.status.as_deref(), status, "{body}");
            assert_eq!(error.error_type.as_deref(), error_type, "{body}");
        }
    }
    let stopped = end(r#"{"type":"stop","matched":2}"#);
    let found = measure(Exchange { wire: Wire::Generate, ..JSON }, &stopped);
    assert_eq!((found.ending, found.error), (Ending::Complete, None));
}

#[test]
fn what_came_before_an_error_is_kept() {
    let text = "data: {\"choices\":[{\"delta\":{\"content\":\"To\"}}]}\n\n";
    let error = "data: {\"detail\":\"broken\"}\n\n";
    let found = measure(Exchange::chat(), &format!("{text}{error}"));
    assert_eq!((found.ending, found.output_text.as_str()), (Ending::UpstreamError, "To"));
}

#[test]
fn an_exception_of_bedrock_goes_by_the_name_in_its_header() {
    let bytes =
        include_bytes!("../../../../../tests/fixtures/bedrock/converse_throttled.eventstream");
    let exchange = Exchange {
        wire: Wire::Converse,
        content_type: Some("application/vnd.amazon.eventstream"),
        ..Exchange::chat()
    };
    for length in 1..=bytes.len() {
        let found = exchange.ride(epoch(), bytes.chunks(length)).measurement;
        assert_eq!(found.error.unwrap().word(), "throttlingException", "reads of {length}");
    }
}
