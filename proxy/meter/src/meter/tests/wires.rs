//! Tests the wire formats other than chat.

use std::time::Duration;

use super::*;

#[test]
fn an_answer_that_brings_nothing_is_whole_only_where_its_status_says_so() {
    let empty = |status, content_type| {
        measure(Exchange { status, content_type, ..Exchange::chat() }, "").ending
    };
    assert_eq!(empty(204, Some("application/json")), Ending::Complete);
    assert_eq!(empty(205, None), Ending::Complete);
    for announced in
        ["", "text/plain", "application/json", "text/event-stream", "application/x-ndjson"]
    {
        let content_type = Some(announced).filter(|announced| !announced.is_empty());
        assert_eq!(empty(200, content_type), Ending::Truncated, "{announced}");
    }
}

#[test]
fn lines_end_with_their_own_mark_and_all_behind_it_is_held() {
    let lines = Exchange {
        wire: Wire::OllamaGenerate,
        content_type: Some("application/x-ndjson"),
        ..Exchange::chat()
    };
    let last = "{\"response\":\"\",\"done\":true,\"done_reason\":\"stop\"}\n";
    let ride = lines.ride(epoch(), [format!("{{\"response\":\"To\"}}\n{last}").as_bytes()]);
    assert_eq!((ride.held, ride.measurement.ending), (last.len(), Ending::Complete));
    let cut = measure(lines, "{\"response\":\"To\"}\n{\"respon");
    assert_eq!((cut.ending, cut.output_text.as_str()), (Ending::Truncated, "To"));
    let odd = measure(lines, "{\"response\":\"To\"}\nnot JSON\n");
    assert_eq!(odd.counts.not_json, 1);
}

#[test]
fn each_element_of_a_list_is_heard_when_it_comes_where_lists_are_streams() {
    let gemini = Exchange {
        wire: Wire::GenerateContent,
        content_type: Some("application/json"),
        ..Exchange::chat()
    };
    let started_at = epoch();
    let mut meter = gemini.meter(started_at);
    meter.on_head(200, gemini.content_type, None);
    let part = |text: &str| {
        format!(r#"{{"candidates":[{{"content":{{"parts":[{{"text":"{text}"}}]}}}}]}}"#)
    };
    let [first, second] = ["To the", " station"].map(part);
    for (millis, read) in
        [(40, format!("[{first}")), (70, format!("\n,\r\n{second}")), (90, "\n]".to_owned())]
    {
        let delivery =
            meter.on_bytes(started_at + Duration::from_millis(millis), read.clone().into());
        assert_eq!((delivery.forward, delivery.hold), (Bytes::from(read), Bytes::new()));
    }
    assert_eq!((meter.output_chunks(), meter.framing()), (2, None));
    let found = meter.finish(started_at + Duration::from_millis(90), StreamEnd::ClientLeft);
    assert_eq!(found.timing.time_to_first_token, Some(Duration::from_millis(40)));
    assert_eq!(found.timing.longest_stall, Some(Duration::from_millis(30)));
    assert_eq!((found.output_text.as_str(), found.has_unread_output), ("To the station", false));
}

#[test]
fn text_that_is_repeated_whole_is_content_only_where_it_grows() {
    let generate = Exchange { wire: Wire::Generate, ..Exchange::chat() };
    let event = |text: &str| format!("data: {{\"text\":\"{text}\",\"meta_info\":{{}}}}\n\n");
    let found = measure(generate, &["", "To", "To", "To the"].map(event).concat());
    assert_eq!((found.output_text.as_str(), found.timing.output_chunks), ("To the", 2));
}

#[test]
fn a_response_in_the_background_is_pending_until_it_says_how_it_ended() {
    let json = Some("application/json");
    let responses = Exchange { wire: Wire::Responses, content_type: json, ..Exchange::chat() };
    let is_pending = |body: &str| measure(responses, body).is_pending;
    assert!(is_pending(r#"{"id":"r","status":"in_progress","usage":null}"#));
    assert!(!is_pending(r#"{"id":"r","status":"completed","background":true}"#));
    assert!(!is_pending(r#"{"id":"r"}"#));
    let events = Exchange { wire: Wire::Responses, ..Exchange::chat() };
    let begun = "data: {\"type\":\"response.created\",\"response\":{\"background\":true}}\n\n";
    let done = "data: {\"type\":\"response.completed\",\"response\":{}}\n\n";
    assert!(measure(events, begun).is_pending);
    assert!(!measure(events, &[begun, done].concat()).is_pending);
}

#[test]
fn web_searches_of_a_response_are_counted_once_and_opened_pages_are_not() {
    let output = r#"[{"type":"web_search_call","id":"ws_1","action":{"type":"search","query":"taxi"}},
        {"type":"web_search_call","id":"ws_2","action":{"type":"open_page","url":"https://x"}},
        {"type":"web_search_call","id":"ws_3","status":"completed"},
        {"type":"message","content":[{"type":"output_text","text":"Found."}]}]"#;
    let response = format!(
        r#"{{"id":"r","status":"completed","model":"m","output":{output},"usage":{{"input_tokens":3,"output_tokens":2}}}}"#
    )
    .replace('\n', "");
    let streamed = format!(
        "data: {{\"type\":\"response.created\",\"response\":{{\"id\":\"r\",\"output\":[],\"usage\":null}}}}\n\n\
         data: {{\"type\":\"response.completed\",\"response\":{response}}}\n\n"
    );
    for (content_type, answer) in [("text/event-stream", streamed), ("application/json", response)]
    {
        let content_type = Some(content_type);
        let exchange = Exchange { wire: Wire::Responses, content_type, ..Exchange::chat() };
        let calls = measure(exchange, &answer).calls;
        assert_eq!(calls, [("web_search_requests".to_owned(), 2.into())].into());
    }
}

#[test]
fn calls_of_a_stream_that_is_cut_are_those_that_had_ended() {
    let fixture = include_str!("../../../../../tests/fixtures/openai/responses_tools.sse");
    let exchange = Exchange { wire: Wire::Responses, ..Exchange::chat() };
    let calls = |events: usize| {
        let events: Vec<_> = fixture.split_inclusive("\n\n").take(events).collect();
        let calls = measure(exchange, &events.concat()).calls;
        calls.into_iter().map(|(name, count)| format!("{name} {count}")).collect::<Vec<_>>()
    };
    // A search begins; it ends; code runs twice in one container, and once in another.
    assert_eq!(calls(2), [""; 0]);
    assert_eq!(calls(3), ["file_search_calls 1"]);
    assert_eq!(calls(5), ["code_interpreter_sessions 1", "file_search_calls 1"]);
    let all = ["code_interpreter_sessions 2", "file_search_calls 1"];
    assert_eq!(calls(6), all);
    // The whole output at the end repeats them.
    assert_eq!(calls(usize::MAX), all);
}

#[test]
fn the_chat_of_ollama_s_api_may_have_the_form_of_openai_s() {
    let mut found = 0;
    for fixture in fixtures() {
        let is_llama = fixture.path.parent().is_some_and(|folder| folder.ends_with("llama_cpp"));
        if fixture.exchange.wire != Wire::ChatCompletions || !is_llama {
            continue;
        }
        found += 1;
        let as_ollama = Exchange { wire: Wire::OllamaChat, ..fixture.exchange };
        let ride = |exchange: Exchange<'_>| exchange.ride(epoch(), [fixture.bytes.as_slice()]);
        let (theirs, own) = (ride(as_ollama).measurement, ride(fixture.exchange).measurement);
        let place = fixture.path.display();
        assert_eq!((&theirs.reported, theirs.ending), (&own.reported, own.ending), "{place}");
        assert_eq!(theirs.output_text.as_str(), own.output_text.as_str(), "{place}");
    }
    assert!(found > 1);
}

#[test]
fn a_batch_says_what_it_used_when_it_has_ended() {
    let batches = Exchange {
        wire: Wire::Batches,
        content_type: Some("application/json"),
        ..Exchange::chat()
    };
    let measured = |status: &str, usage: &str| {
        let body = format!(
            r#"{{"id":"b","model":"m","status":"{status}","errors":null,"usage":{usage}}}"#
        );
        measure(batches, &body)
    };
    let usage = r#"{"input_tokens":10,"output_tokens":2,"total_tokens":12}"#;
    for (status, is_pending, ending) in [
        ("validating", true, Ending::Complete),
        ("cancelling", true, Ending::Complete),
        ("completed", false, Ending::Complete),
        ("expired", false, Ending::Complete),
        ("failed", false, Ending::UpstreamError),
    ] {
        let it = measured(status, usage);
        assert_eq!((it.is_pending, it.ending), (is_pending, ending), "{status}");
        assert!(it.reports_usage());
        let it = measured(status, "null");
        assert_eq!((it.is_pending, it.ending), (is_pending, ending), "{status}");
        assert!(!it.reports_usage() && !it.has_unread_output, "{it:?}");
        assert_eq!(it.finish_reasons.is_empty(), is_pending);
    }
}

#[test]
fn a_batch_ends_in_the_words_of_each_provider() {
    let batches = Exchange {
        wire: Wire::Batches,
        content_type: Some("application/json"),
        ..Exchange::chat()
    };
    let gemini = |state: &str| {
        format!(r#"{{"name":"batches/b","metadata":{{"model":"models/m","state":"{state}"}}}}"#)
    };
    let status = |status: &str| format!(r#"{{"id":"b","status":"{status}"}}"#);
    for (body, id, ended) in [
        (r#"{"id":"b","processing_status":"ended"}"#.to_owned(), Some("b"), true),
        (r#"{"id":"b","processing_status":"canceling"}"#.to_owned(), Some("b"), false),
        (status("COMPLETED"), Some("b"), true),
        (status("SUCCESS"), Some("b"), true),
        (status("TIMEOUT_EXCEEDED"), Some("b"), true),
        (status("CANCELLATION_REQUESTED"), Some("b"), false),
        (gemini("BATCH_STATE_SUCCEEDED"), Some("batches/b"), true),
        (gemini("JOB_STATE_EXPIRED"), Some("batches/b"), true),
        (gemini("BATCH_STATE_RUNNING"), Some("batches/b"), false),
        (r#"{"job":{"id":"b","status":"VALIDATING"},"warning":""}"#.to_owned(), Some("b"), false),
        (
            r#"{"batch_id":"b","name":"mine","state":{"num_pending":1}}"#.to_owned(),
            Some("b"),
            false,
        ),
        // The client's own words.
        (r#"{"id":"b","metadata":{"state":"ended"}}"#.to_owned(), Some("b"), false),
        (r#"{"name":"mine"}"#.to_owned(), None, false),
    ] {
        let it = measure(batches, &body);
        assert_eq!(it.response_id.as_deref(), id, "{body}");
        assert_eq!(
            (it.finish_reasons.len(), it.is_pending),
            (usize::from(ended), !ended && id.is_some()),
            "{body}"
        );
    }
}

#[test]
fn an_answer_that_is_only_a_ticket_comes_later() {
    let id = |body: &str| {
        let it =
            measure(Exchange { content_type: Some("application/json"), ..Exchange::chat() }, body);
        (it.is_pending, it.response_id)
    };
    assert_eq!(id(r#"{"request_id":"f"}"#), (true, Some("f".to_owned())));
    assert_eq!(id(r#"{"request_id":"f","status":"done"}"#), (false, None));
    assert!(!id(r#"{"request_id":"f","error":{"message":"no"}}"#).0);
}

#[test]
fn completions_without_v1_may_have_the_form_of_llama_cpp() {
    let mut found = 0;
    for fixture in fixtures() {
        if fixture.exchange.wire != Wire::LlamaCompletion {
            continue;
        }
        found += 1;
        let as_completions = Exchange { wire: Wire::Completions, ..fixture.exchange };
        let ride = |exchange: Exchange<'_>| exchange.ride(epoch(), [fixture.bytes.as_slice()]);
        let (theirs, own) = (ride(as_completions), ride(fixture.exchange));
        assert_eq!(theirs.measurement, own.measurement, "{}", fixture.path.display());
        assert_eq!(theirs.bytes, fixture.bytes, "{}", fixture.path.display());
    }
    assert!(found > 1);
}
