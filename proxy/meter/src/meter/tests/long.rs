//! Tests that lines, events, messages, elements and documents of any length are read.

use proptest::collection::vec;
use proptest::sample::{Index, select};

use super::*;
use crate::content::Transcript;

/// How a JSON text is sent.
#[derive(Debug, Clone, Copy)]
enum Sent {
    Event,
    /// As an event of several lines, with CRLF.
    EventLines,
    /// Behind a byte order mark and a comment.
    MarkedEvent,
    Line,
    Frame,
    Element,
    Document,
}

const ALL_WAYS: [Sent; 7] = [
    Sent::Event,
    Sent::EventLines,
    Sent::MarkedEvent,
    Sent::Line,
    Sent::Frame,
    Sent::Element,
    Sent::Document,
];

impl Sent {
    const fn content_type(self) -> &'static str {
        match self {
            Self::Event | Self::EventLines | Self::MarkedEvent => "text/event-stream",
            Self::Line => "application/x-ndjson",
            Self::Frame => "application/vnd.amazon.eventstream",
            Self::Element | Self::Document => "application/json",
        }
    }

    fn body(self, documents: &[String]) -> Vec<u8> {
        let each = |document: &String| match self {
            Self::Event => format!("data: {document}\n\n").into_bytes(),
            Self::EventLines => {
                // A comma between members may be followed by a line end, and one in a text may not:
                // the texts here have none.
                let lines = document.replace(',', ",\r\ndata:");
                format!("event: x\r\ndata:{lines}\r\n\r\n").into_bytes()
            }
            Self::MarkedEvent => format!("\u{feff}: hi\ndata:{document}\n\n").into_bytes(),
            Self::Line => format!("{document}\r\n").into_bytes(),
            Self::Frame => taximeter_framing::exception("chunk", document),
            Self::Element | Self::Document => document.clone().into_bytes(),
        };
        match self {
            Self::Element => format!("[{}]", documents.join(",\n")).into_bytes(),
            Self::MarkedEvent => {
                let marked = documents.first().map(each).unwrap_or_default();
                let rest =
                    documents.iter().skip(1).flat_map(|it| format!("data:{it}\n\n").into_bytes());
                marked.into_iter().chain(rest).collect()
            }
            _ => documents.iter().flat_map(each).collect(),
        }
    }

    fn exchange(self, wire: Wire) -> Exchange<'static> {
        Exchange { wire, content_type: Some(self.content_type()), ..Exchange::chat() }
    }
}

/// What is measured of a body in reads of `step` bytes, and that all of it passes.
fn measured(exchange: Exchange<'_>, body: &[u8], step: usize) -> Measurement {
    let ride = exchange.ride(epoch(), body.chunks(step));
    assert!(ride.bytes == body, "reads of {step} bytes");
    let mut measurement = ride.measurement;
    measurement.timing = Default::default();
    measurement
}

fn output_tokens(measurement: &Measurement) -> Option<u64> {
    measurement.reported.as_ref()?.usage.output_tokens
}

/// The same for reads of some sizes.
fn measure_any_split(exchange: Exchange<'_>, body: &[u8]) -> Measurement {
    let whole = measured(exchange, body, body.len());
    for step in [1_000, 65_536, 1_000_003] {
        assert!(measured(exchange, body, step) == whole, "reads of {step} bytes");
    }
    whole
}

#[test]
fn usage_is_read_before_and_behind_a_long_picture_in_every_framing() {
    let picture = "iVBORw0KGgo".repeat(300_000);
    let usage = r#""usageMetadata":{"promptTokenCount":7,"candidatesTokenCount":1290}"#;
    let content = format!(
        r#""candidates":[{{"content":{{"parts":[{{"inlineData":{{"data":"{picture}"}}}},{{"text":"Here"}}]}},"finishReason":"STOP"}}]"#
    );
    for document in [format!("{{{content},{usage}}}"), format!("{{{usage},{content}}}")] {
        for sent in ALL_WAYS {
            let exchange = sent.exchange(Wire::GenerateContent);
            let found = measure_any_split(exchange, &sent.body(std::slice::from_ref(&document)));
            assert_eq!(output_tokens(&found), Some(1290), "{sent:?}");
            assert_eq!(found.counts.lines_too_long, 0, "{sent:?}");
            if !matches!(sent, Sent::Frame) {
                assert_eq!(found.ending, Ending::Complete, "{sent:?}");
                assert_eq!((found.output_text.as_str(), found.output_text_bytes), ("Here", 4));
                assert_eq!(found.finish_reasons, ["STOP"], "{sent:?}");
                assert!(!found.has_unread_output, "{sent:?}");
            }
        }
    }
}

#[test]
fn a_long_event_that_repeats_the_answer_ends_it() {
    let deltas = 100;
    let said = "To the station. ".repeat(1_000);
    let text = said.repeat(deltas);
    let delta = format!(r#"{{"type":"response.output_text.delta","delta":"{said}"}}"#);
    let completed = format!(
        r#"{{"type":"response.completed","response":{{"id":"r1","model":"m","output":[{{"type":"message","content":[{{"type":"output_text","text":"{text}"}}]}}],"status":"completed","usage":{{"input_tokens":7,"output_tokens":9}}}}}}"#
    );
    let exchange = Sent::Event.exchange(Wire::Responses);
    let mut events = vec![delta; deltas];
    events.push(completed);
    let found = measure_any_split(exchange, &Sent::Event.body(&events));
    assert_eq!((output_tokens(&found), found.ending), (Some(9), Ending::Complete));
    assert_eq!(found.output_text_bytes, text.len() as u64);
    assert_eq!(found.response_model.as_deref(), Some("m"));
    assert_eq!(found.counts, Counts::default());
}

#[test]
fn of_a_long_text_the_beginning_is_kept_and_all_of_it_is_added_up() {
    for (text, kept) in [
        ("To the station. ".repeat(40_000), 640_000),
        ("To the station. ".repeat(400_000), 1 << 20),
        ("𝄞𝄢 é".repeat(300_000), 1 << 20),
    ] {
        let content = format!(r#"{{"choices":[{{"delta":{{"content":"{text}"}}}}]}}"#);
        let found = measure_any_split(Exchange::chat(), &Sent::Event.body(&[content]));
        assert_eq!(found.output_text_bytes, text.len() as u64);
        assert!(text.starts_with(&found.output_text));
        assert!(found.output_text.len() + 100 > kept, "{}", found.output_text.len());
        assert!(!found.has_unread_output);
    }
}

#[test]
fn token_ids_are_counted_however_many_they_are() {
    let ids = vec!["151643"; 400_000].join(",");
    let document = format!(r#"{{"choices":[{{"token_ids":[{ids}]}}],"prompt_token_ids":[{ids}]}}"#);
    let json = Sent::Document.exchange(Wire::TokenIds);
    let found = measure_any_split(json, document.as_bytes());
    let usage = found.reported.unwrap().usage;
    assert_eq!((usage.input_tokens, usage.output_tokens), (Some(400_000), Some(400_000)));
}

#[test]
fn usage_is_read_behind_lists_of_any_length() {
    let floats = "-0.01234,".repeat(1_500) + "0";
    let embedding = format!(r#"{{"embedding":[{floats}],"index":0}},"#);
    let document = format!(
        r#"{{"data":[{}{{}}],"model":"m","usage":{{"prompt_tokens":7,"total_tokens":7}}}}"#,
        embedding.repeat(300)
    );
    let found = measure_any_split(Sent::Document.exchange(Wire::Embeddings), document.as_bytes());
    assert_eq!(found.reported.unwrap().usage.input_tokens, Some(7));

    let token = r#"{"token":"a","logprob":-0.5,"top_logprobs":[{"token":"a"},{"token":"b"}]},"#;
    let choice = format!(
        r#"{{"delta":{{"content":"To"}},"logprobs":{{"content":[{}{{}}]}},"finish_reason":"stop"}}"#,
        token.repeat(50_000)
    );
    let event = format!(
        r#"{{"choices":[{choice},{choice}],"usage":{{"prompt_tokens":7,"completion_tokens":9}}}}"#
    );
    let found = measure_any_split(Exchange::chat(), &Sent::Event.body(&[event]));
    assert_eq!((output_tokens(&found), found.output_text.as_str()), (Some(9), "ToTo"));
    assert_eq!(found.ending, Ending::Complete);
}

#[test]
fn where_more_may_have_been_said_the_output_is_unknown_and_told() {
    let part = r#"{"text":"To the station."},"#;
    let document =
        format!(r#"{{"candidates":[{{"content":{{"parts":[{}{{}}]}}}}]}}"#, part.repeat(100_000));
    let found = measure_any_split(
        Sent::Document.exchange(Wire::GenerateContent),
        format!(" {document}").as_bytes(),
    );
    assert_eq!((found.reported, found.counts.lines_too_long), (None, 1));
    assert!(found.has_unread_output);
}

#[test]
fn a_sum_of_parts_of_which_some_are_missing_is_not_reported() {
    let part = |pad: &str| {
        format!(r#"{{"embedding":[{{"pad":"{pad}"}}],"meta_info":{{"prompt_tokens":5}}}}"#)
    };
    let list = |parts: usize, pad| format!("[{}]", vec![part(pad); parts].join(","));
    let json = Sent::Document.exchange(Wire::Embeddings);
    let few = measured(json, list(8_000, "").as_bytes(), 65_536);
    assert_eq!(few.reported.unwrap().usage.input_tokens, Some(40_000));
    let many = measured(json, list(30_000, "a b").as_bytes(), 65_536);
    assert_eq!((many.reported, many.counts.lines_too_long), (None, 1));
}

#[test]
fn what_comes_long_behind_a_client_that_left_is_read_for_its_usage_alone() {
    let part = r#"{"text":"To the station."},"#;
    let long = format!(
        r#"{{"candidates":[{{"content":{{"parts":[{}{{}}]}}}}],"usageMetadata":{{"candidatesTokenCount":9}}}}"#,
        part.repeat(100_000)
    );
    let gemini = Sent::Event.exchange(Wire::GenerateContent);
    let mut meter = gemini.meter(epoch());
    meter.on_head(200, gemini.content_type, None);
    meter.client_left();
    meter.on_bytes(epoch(), Sent::Event.body(&[long]).into());
    let found = meter.finish(epoch(), StreamEnd::ClientLeft);
    assert_eq!((output_tokens(&found), found.output_text_bytes), (Some(9), 0));
    assert!(!found.has_unread_output);
}

#[test]
fn a_transcript_of_a_long_text_says_that_it_is_cut_and_has_no_half_word() {
    let said = |text: &str| {
        let content =
            format!(r#"{{"choices":[{{"delta":{{"content":"{text}"}},"finish_reason":"stop"}}]}}"#);
        let transcript = Transcript::new(Wire::ChatCompletions, 4 << 20);
        let mut meter = Exchange::chat().meter(epoch()).keeping(Some(transcript));
        meter.on_head(200, Some("text/event-stream"), None);
        meter.on_bytes(epoch(), Sent::Event.body(&[content]).into());
        let transcript = *meter.finish(epoch(), StreamEnd::Clean).transcript.unwrap();
        (transcript.is_cut(), transcript.messages().remove(0))
    };
    let (is_cut, message) = said(&"To the station. ".repeat(60_000));
    assert!(!is_cut);
    assert_eq!(message["parts"][0]["content"].as_str().unwrap().len(), 960_000);
    let (is_cut, message) = said(&"To the station. ".repeat(100_000));
    let content = message["parts"][0]["content"].as_str().unwrap();
    assert!(is_cut && content.ends_with(" …"), "{}", &content[content.len() - 50..]);
    assert_eq!(message["finish_reason"], "stop");
}

/// A member of an answer, and how it is written with a string of so many bytes.
const MEMBERS: [fn(usize) -> String; 6] = [
    |_| r#""usage":{"prompt_tokens":7,"completion_tokens":9}"#.to_owned(),
    |length| {
        format!(
            r#""choices":[{{"index":0,"delta":{{"content":"{}"}},"finish_reason":"stop"}}]"#,
            "a é\\u00e9\\n𝄞\\ud834\\udd1e".repeat(length / 20)
        )
    },
    |length| format!(r#""pad":"{}""#, "x".repeat(length)),
    |length| format!(r#""list":[[{}7]]"#, "7,".repeat(length / 2)),
    |length| format!(r#""objects":[{}{{}}]"#, "{\"a\":[{\"b\":\"c\"}]},".repeat(length / 20)),
    |_| r#""model":"m""#.to_owned(),
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]
    #[test]
    fn long_events_say_the_same_for_any_order_and_any_split(
        order in Just(MEMBERS.to_vec()).prop_shuffle(),
        length in select(&[10_usize, 3_000, 60_000, 70_000, 500_000, 1_200_000][..]),
        sent in select(ALL_WAYS.into_iter().filter(|sent| !matches!(sent, Sent::Element)).collect::<Vec<_>>()),
        reads in vec((any::<Index>(), 1_usize..4), 0..8),
    ) {
        let members: Vec<_> = order.iter().map(|member| member(length)).collect();
        let body = sent.body(&[format!("{{{}}}", members.join(","))]);
        let exchange = sent.exchange(Wire::ChatCompletions);
        let whole = measured(exchange, &body, body.len());
        prop_assert_eq!(output_tokens(&whole), Some(9));
        prop_assert_eq!(whole.response_model.as_deref(), Some("m"));
        if !matches!(sent, Sent::Frame) {
            prop_assert_eq!(whole.ending, Ending::Complete);
            let text_bytes = 15 * (length as u64 / 20);
            // A list may stand behind so many others that nothing of it is kept.
            prop_assert!(whole.output_text_bytes == text_bytes || whole.has_unread_output);
        }
        prop_assert!(!whole.has_unread_output || length >= 500_000);
        // Some reads are as small as can be, around places of any kind.
        let mut ends: Vec<usize> = reads
            .iter()
            .flat_map(|(at, more)| [at.index(body.len()), at.index(body.len()) + more])
            .chain([body.len()])
            .map(|end| end.min(body.len()))
            .collect();
        ends.sort_unstable();
        let mut from = 0;
        let pieces: Vec<&[u8]> =
            ends.iter().map(|&end| &body[std::mem::replace(&mut from, end)..end]).collect();
        let mut found = exchange.ride(epoch(), pieces).measurement;
        found.timing = Default::default();
        prop_assert!(found == whole);
    }
}
