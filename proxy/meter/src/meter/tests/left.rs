//! Tests answers whose client has left.

use super::*;

fn content(text: &str) -> String {
    format!("data: {{\"choices\":[{{\"delta\":{{\"content\":\"{text}\"}}}}]}}\n\n")
}

const USAGE: &str =
    "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":9}}\n\n";
const DONE: &str = "data: [DONE]\n\n";

/// Reads `before`, then the client leaves, then `after` comes.
fn left(exchange: Exchange<'_>, before: &str, after: &str) -> Measurement {
    let started_at = epoch();
    let mut meter = exchange.meter(started_at);
    meter.on_head(exchange.status, exchange.content_type, None);
    meter.on_bytes(started_at, Bytes::copy_from_slice(before.as_bytes()));
    meter.client_left();
    for byte in after.as_bytes() {
        meter.on_bytes(started_at, Bytes::copy_from_slice(&[*byte]));
    }
    meter.finish(started_at, StreamEnd::ClientLeft)
}

#[test]
fn behind_a_client_that_left_only_usage_is_read() {
    let after = [&content("b"), &content("c"), USAGE, DONE].concat();
    let found = left(Exchange::chat(), &[content("a"), content("b")].concat(), &after);
    assert_eq!(found.reported.unwrap().usage.output_tokens, Some(9));
    assert_eq!((found.output_text.as_str(), found.output_text_bytes), ("ab", 2));
    assert_eq!(found.timing.output_chunks, 2);
    assert_eq!(found.ending, Ending::Cut(StreamEnd::ClientLeft));
    assert!(!found.has_unread_output);
}

#[test]
fn an_end_or_an_error_behind_a_client_that_left_does_not_change_who_ended_it() {
    for after in [DONE, "event: error\ndata: gone\n\n", ""] {
        let found = left(Exchange::chat(), &content("a"), after);
        assert_eq!(found.ending, Ending::Cut(StreamEnd::ClientLeft), "{after}");
        assert_eq!((found.output_text.as_str(), found.reported), ("a", None), "{after}");
    }
}

#[test]
fn what_was_used_so_far_is_what_would_be_owed_if_the_client_left_now() {
    let started_at = epoch();
    let events = [&content("To"), &content(" the"), USAGE, &content(" station"), DONE];
    let mut meter = Exchange::chat().meter(started_at);
    for (end, event) in (1..).zip(events) {
        meter.on_bytes(started_at, Bytes::copy_from_slice(event.as_bytes()));
        let mut left = Exchange::chat().meter(started_at);
        left.on_bytes(started_at, Bytes::from(events[..end].concat()));
        let left = left.finish(started_at, StreamEnd::ClientLeft);
        // Its end mark would outrank the client.
        let ending = Ending::Cut(StreamEnd::ClientLeft);
        assert_eq!(meter.so_far(started_at), Measurement { ending, ..left }, "event {end}");
    }
}

#[test]
fn a_document_has_used_what_is_not_known_before_its_end() {
    let json = Exchange { content_type: Some("application/json"), ..Exchange::chat() };
    let mut meter = json.meter(epoch());
    meter.on_head(200, json.content_type, None);
    meter.on_bytes(epoch(), Bytes::from_static(b"{\"choices\":[{\"message\":"));
    assert!(meter.so_far(epoch()).has_unread_output);
}

#[test]
fn what_a_client_was_sent_of_a_document_is_unknown() {
    let json = Exchange { content_type: Some("application/json"), ..Exchange::chat() };
    let document = "{\"choices\":[{\"message\":{\"content\":\"all of it\"}}]}";
    let (before, after) = document.split_at(20);
    for found in [left(json, before, after), left(json, before, "")] {
        assert_eq!(found.ending, Ending::Cut(StreamEnd::ClientLeft));
        assert!(found.has_unread_output);
    }
}
