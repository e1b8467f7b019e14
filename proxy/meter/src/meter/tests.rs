use std::path::{Path, PathBuf};

use proptest::prelude::*;
use serde::Deserialize as _;
use serde::de::value::Error as WordError;

use super::*;
use crate::asking::Hidden;
use crate::dialect::Dialect;
use crate::measurement::Counts;
use crate::provider_error::ProviderError;
use crate::wire::Wire;

mod calls;
mod choices;
mod dialects;
mod empty;
mod encoded;
mod hiding;
mod hosted_tools;
mod invalid;
mod left;
mod lines;
mod long;
mod placeholders;
mod recorded;
mod told_twice;
mod tools;
mod unasked;
mod usage;
mod wires;

/// Every read of a test comes at this one moment, so that times cannot tell how it was cut.
#[expect(clippy::disallowed_methods, reason = "tests count from one epoch")]
fn epoch() -> Instant {
    Instant::now()
}

/// What came of one exchange.
#[derive(Debug, PartialEq)]
struct Ride {
    measurement: Measurement,
    /// All that was forwarded, held and withheld, in order.
    bytes: Vec<u8>,
    /// What of it was held.
    held: usize,
}

const NOTHING: Hidden = Hidden { usage_event: false, running_usage: false, token_ids: false };

/// The usage event was spliced for.
const USAGE_EVENT: Hidden = Hidden { usage_event: true, running_usage: false, token_ids: false };

/// All that can be spliced for was.
const ALL: Hidden = Hidden { usage_event: true, running_usage: true, token_ids: true };

/// An exchange to be repeated in different reads.
#[derive(Debug, Clone, Copy)]
struct Exchange<'a> {
    wire: Wire,
    dialect: Dialect,
    status: u16,
    content_type: Option<&'a str>,
    hidden: Hidden,
    end: StreamEnd,
    has_one_prompt: bool,
}

impl Exchange<'_> {
    const fn chat() -> Self {
        Self {
            wire: Wire::ChatCompletions,
            dialect: Dialect::OpenAi,
            status: 200,
            content_type: Some("text/event-stream"),
            hidden: NOTHING,
            end: StreamEnd::Clean,
            has_one_prompt: false,
        }
    }

    fn meter(self, started_at: Instant) -> Meter {
        let Self { wire, dialect, hidden, has_one_prompt, .. } = self;
        Meter::new(Setup { wire, dialect, started_at, hidden, has_one_prompt })
    }

    fn ride<'r>(self, started_at: Instant, reads: impl IntoIterator<Item = &'r [u8]>) -> Ride {
        let mut meter = self.meter(started_at);
        meter.on_head(self.status, self.content_type, None);
        let (mut bytes, mut hold) = (Vec::new(), Vec::new());
        for read in reads {
            let delivery = meter.on_bytes(started_at, Bytes::copy_from_slice(read));
            assert!(delivery.forward.is_empty() || hold.is_empty(), "forwarded past held bytes");
            bytes.extend_from_slice(&delivery.forward);
            hold.extend_from_slice(&delivery.hold);
        }
        let held = hold.len();
        bytes.append(&mut hold);
        bytes.extend_from_slice(&meter.take_withheld());
        Ride { measurement: meter.finish(started_at, self.end), bytes, held }
    }
}

struct Fixture {
    path: PathBuf,
    bytes: Vec<u8>,
    exchange: Exchange<'static>,
}

fn fixtures() -> Vec<Fixture> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures");
    let mut fixtures = Vec::new();
    for provider in folder.read_dir().unwrap() {
        let provider = provider.unwrap().path();
        if !provider.is_dir() {
            continue;
        }
        for case in provider.read_dir().unwrap() {
            let path = case.unwrap().path();
            // Vocabularies are in folders of their own.
            if path.is_dir() || path.extension().is_some_and(|extension| extension == "snap") {
                continue;
            }
            let exchange = exchange(&path);
            fixtures.push(Fixture { bytes: std::fs::read(&path).unwrap(), path, exchange });
        }
    }
    assert!(fixtures.len() > 40, "the fixtures are at {}", folder.display());
    fixtures.sort_by(|a, b| a.path.cmp(&b.path));
    fixtures
}

/// The exchange that a fixture is the answer of, by its name.
fn exchange(path: &Path) -> Exchange<'static> {
    let case = path.file_stem().unwrap().to_str().unwrap();
    let folder = path.parent().unwrap().file_name().unwrap().to_str().unwrap();
    let wire = match case.split('_').next().unwrap() {
        "chat" if folder == "cohere" => Wire::CohereChat,
        "batch" => Wire::ChatBatch,
        "completions" => Wire::Completions,
        "responses" => Wire::Responses,
        "messages" => Wire::Messages,
        "embeddings" | "rerank" | "classify" | "moderations" => Wire::Embeddings,
        "generate" => Wire::Generate,
        "vertex" => Wire::VertexGenerate,
        "tokens" => Wire::TokenIds,
        "invocations" => Wire::Invocations,
        "content" => Wire::GenerateContent,
        "converse" => Wire::Converse,
        "completion" => Wire::LlamaCompletion,
        "api" => Wire::OllamaChat,
        "transcriptions" => Wire::Transcriptions,
        "speech" => Wire::Speech,
        "images" => Wire::Images,
        "videos" => Wire::Videos,
        "ocr" => Wire::Ocr,
        "batches" => Wire::Batches,
        _ => Wire::ChatCompletions,
    };
    let dialect = Dialect::deserialize(serde::de::value::StrDeserializer::<WordError>::new(folder))
        .unwrap_or(Dialect::OpenAi);
    Exchange {
        wire,
        dialect,
        status: if path.extension().unwrap() == "json" && case.contains("error") {
            429
        } else {
            200
        },
        content_type: Some(match path.extension().unwrap().to_str().unwrap() {
            "sse" => "text/event-stream",
            "ndjson" => "application/x-ndjson",
            "eventstream" => "application/vnd.amazon.eventstream",
            _ => "application/json",
        }),
        ..Exchange::chat()
    }
}

#[test]
fn reads_may_split_anywhere() {
    for fixture in fixtures() {
        let started_at = epoch();
        let hides = matches!(fixture.exchange.wire, Wire::ChatCompletions | Wire::Completions);
        for hidden in [NOTHING, ALL].into_iter().take(1 + usize::from(hides)) {
            let exchange = Exchange { hidden, ..fixture.exchange };
            let whole = exchange.ride(started_at, [fixture.bytes.as_slice()]);
            for at in 0..=fixture.bytes.len() {
                let (head, tail) = fixture.bytes.split_at(at);
                let ride = exchange.ride(started_at, [head, tail]);
                let place = format!("{} split at {at}", fixture.path.display());
                assert_eq!(ride.measurement, whole.measurement, "{place}");
                assert_eq!(ride.bytes, whole.bytes, "{place}");
            }
            let ride = exchange.ride(started_at, fixture.bytes.chunks(1));
            assert_eq!((ride.measurement, ride.bytes), (whole.measurement, whole.bytes));
        }
    }
}

fn fragments() -> impl Strategy<Value = Vec<u8>> {
    let usage = "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":1}}";
    let text = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"hi\"}}]}";
    let ends = "event: error\ndata: {\"message\":\"x\"}";
    let fragment = prop_oneof![
        4 => prop::sample::select(vec!["\n\n", "\r\n\r\n", "\r\r", "\n", "\r", "\r\n"]),
        3 => Just(usage),
        3 => Just(text),
        1 => prop::sample::select(vec![
            "data: [DONE]", ends, ": c", "\u{feff}", "data:", "data", "{", "}", "\"", "\\", "[",
            "data: {\"type\":\"message_stop\"}", " ", "\u{fffd}", "id: 1",
        ]),
    ];
    prop::collection::vec(fragment, 0..24).prop_map(|parts| parts.concat().into_bytes())
}

/// `bytes` in reads of the lengths given, over and over.
fn reads<'b>(bytes: &'b [u8], lengths: &[usize]) -> Vec<&'b [u8]> {
    let mut rest = bytes;
    let mut reads = Vec::new();
    for length in lengths.iter().cycle() {
        if rest.is_empty() {
            break;
        }
        let (read, tail) = rest.split_at((*length).min(rest.len()));
        reads.push(read);
        rest = tail;
    }
    reads
}

const TYPES: [Option<&str>; 6] = [
    None,
    Some("application/vnd.amazon.eventstream"),
    Some("text/event-stream"),
    Some("application/json"),
    Some("application/x-ndjson"),
    Some("text/html"),
];

proptest! {
    #[test]
    fn random_chunking_changes_nothing(
        stream in fragments(),
        lengths in prop::collection::vec(1_usize..40, 1..8),
        wire in prop::sample::select(Wire::ALL),
        content_type in prop::sample::select(TYPES.to_vec()),
        hides: bool,
    ) {
        let hidden = if hides { ALL } else { NOTHING };
        let exchange = Exchange { wire, content_type, hidden, ..Exchange::chat() };
        let started_at = epoch();
        let whole = exchange.ride(started_at, [stream.as_slice()]);
        let ride = exchange.ride(started_at, reads(&stream, &lengths));
        prop_assert_eq!(ride.measurement, whole.measurement);
        prop_assert_eq!(&ride.bytes, &whole.bytes);
        if !hides {
            prop_assert_eq!(ride.bytes, stream);
        }
    }

    #[test]
    fn any_bytes_pass_unchanged(
        body in prop::collection::vec(any::<u8>(), 0..400),
        begin in prop::sample::select(vec!["", "data: ", "{\"usage\":", "[", "event: error\n"]),
        lengths in prop::collection::vec(1_usize..40, 1..8),
        wire in prop::sample::select(Wire::ALL),
        content_type in prop::sample::select(TYPES.to_vec()),
    ) {
        let body = [begin.as_bytes(), body.as_slice()].concat();
        let exchange = Exchange { wire, content_type, ..Exchange::chat() };
        let ride = exchange.ride(epoch(), reads(&body, &lengths));
        prop_assert_eq!(ride.bytes, body);
    }
}

fn measure(exchange: Exchange<'_>, body: &str) -> Measurement {
    exchange.ride(epoch(), [body.as_bytes()]).measurement
}

#[test]
fn the_end_mark_outranks_who_left() {
    let text = "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n";
    let done = &format!("{text}data: [DONE]\n\n");
    let left = Exchange { end: StreamEnd::ClientLeft, ..Exchange::chat() };
    assert_eq!(measure(left, done).ending, Ending::Complete);
    assert_eq!(measure(left, "data: {}\n\n").ending, Ending::Cut(StreamEnd::ClientLeft));
    assert_eq!(measure(Exchange::chat(), "data: {}\n\n").ending, Ending::Truncated);
    assert_eq!(measure(Exchange::chat(), "").ending, Ending::Truncated);
}

#[test]
fn a_clean_end_behind_a_finish_reason_or_usage_is_complete() {
    let finished = "data: {\"choices\":[{\"finish_reason\":\"stop\"}]}\n\n";
    let counted = "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":1}}\n\n";
    assert_eq!(measure(Exchange::chat(), finished).ending, Ending::Complete);
    assert_eq!(measure(Exchange::chat(), counted).ending, Ending::Complete);
    let messages = Exchange { wire: Wire::Messages, ..Exchange::chat() };
    let begun =
        "data: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":1}}}\n\n";
    assert_eq!(measure(messages, begun).ending, Ending::Truncated);
}

#[test]
fn the_bytes_decide_what_the_body_is() {
    let json = Exchange { content_type: Some("application/json"), ..Exchange::chat() };
    let stream = measure(json, "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":1}}\n\n");
    assert_eq!(stream.reported.unwrap().usage.input_tokens, Some(1));
    assert_eq!(stream.counts.type_mismatch, 1);
    let document = measure(Exchange::chat(), "{\"choices\":[],\"usage\":{\"prompt_tokens\":1}}");
    assert_eq!(document.reported.unwrap().usage.input_tokens, Some(1));
    assert_eq!(document.counts.type_mismatch, 1);
    assert_eq!(document.timing.time_to_first_chunk, None);
}

#[test]
fn half_a_document_is_truncated_and_half_a_cut_one_is_no_fault() {
    let json = Exchange { content_type: Some("application/json"), ..Exchange::chat() };
    let half = "{\"usage\":{\"prompt_tokens\":1},";
    assert_eq!(measure(json, half).ending, Ending::Truncated);
    assert_eq!(measure(json, half).counts.not_json, 1);
    let reset = Exchange { end: StreamEnd::UpstreamReset, ..json };
    assert_eq!(measure(reset, half).ending, Ending::Cut(StreamEnd::UpstreamReset));
    assert_eq!(measure(reset, half).counts.not_json, 0);
}

#[test]
fn an_answer_that_is_not_a_success_is_complete_and_read() {
    let refused = Exchange { status: 503, content_type: None, ..Exchange::chat() };
    let found =
        measure(refused, "{\"error\":{\"code\":\"overloaded\"},\"usage\":{\"prompt_tokens\":5}}");
    assert_eq!(found.ending, Ending::Complete);
    assert_eq!(found.error.as_ref().map(ProviderError::word), Some("overloaded"));
    assert_eq!(found.reported.unwrap().usage.input_tokens, Some(5));
    assert_eq!(measure(refused, "<html>busy").ending, Ending::Complete);
}

#[test]
fn an_error_event_need_not_be_json() {
    let found = measure(Exchange::chat(), "event: error\ndata: the engine is gone\n\n");
    assert_eq!(found.ending, Ending::UpstreamError);
    assert_eq!(found.error.as_ref().map(ProviderError::word), Some("_OTHER"));
}

#[test]
fn an_event_named_error_is_one_on_every_wire_that_is_read() {
    for &wire in Wire::ALL {
        let exchange = Exchange { wire, ..Exchange::chat() };
        let found = measure(exchange, "event: error\ndata: {\"id\":\"1\"}\n\n");
        let expected = (wire != Wire::Opaque).then_some("_OTHER");
        assert_eq!(found.error.as_ref().map(ProviderError::word), expected, "{wire:?}");
    }
}

#[test]
fn times_are_those_of_events_and_of_content() {
    let started_at = epoch();
    let mut meter = Exchange::chat().meter(started_at);
    let at = |seconds| started_at + std::time::Duration::from_secs(seconds);
    for (seconds, read) in [
        (1, ": waiting\n\n"),
        (2, "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n"),
        (3, "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n"),
        (5, "\n"),
        (9, "data: {\"choices\":[{\"delta\":{\"content\":\"b\"}}]}\n\ndata: [DONE]\n\n"),
    ] {
        meter.on_bytes(at(seconds), Bytes::from_static(read.as_bytes()));
    }
    let timing = meter.finish(at(10), StreamEnd::Clean).timing;
    let seconds = |time: Option<std::time::Duration>| time.unwrap().as_secs();
    assert_eq!(seconds(timing.time_to_first_chunk), 2);
    assert_eq!(seconds(timing.time_to_first_token), 5);
    assert_eq!(seconds(timing.time_to_last_token), 9);
    assert_eq!(seconds(timing.longest_stall), 4);
    assert_eq!((timing.output_chunks, timing.duration.as_secs()), (2, 10));
}

#[test]
fn output_of_any_kind_is_the_first_token_and_is_counted() {
    let chat = Exchange::chat();
    let responses = Exchange { wire: Wire::Responses, ..chat };
    let messages = Exchange { wire: Wire::Messages, ..chat };
    let delta = |delta: &str| format!("{{\"choices\":[{{\"index\":0,\"delta\":{delta}}}]}}");
    let of = |kind: &str| format!("{{\"type\":\"response.{kind}.delta\",\"delta\":\"a b\"}}");
    for (exchange, event) in [
        (chat, delta(r#"{"content":"a b"}"#)),
        (chat, delta(r#"{"reasoning_content":"a b"}"#)),
        (chat, delta(r#"{"refusal":"a b"}"#)),
        (chat, delta(r#"{"audio":{"id":"s","transcript":"a b"}}"#)),
        (chat, delta(r#"{"tool_calls":[{"index":0,"function":{"arguments":"a b"}}]}"#)),
        (responses, of("output_text")),
        (responses, of("reasoning_text")),
        (responses, of("refusal")),
        (responses, of("function_call_arguments")),
        (messages, r#"{"type":"content_block_delta","delta":{"thinking":"a b"}}"#.to_owned()),
        (messages, r#"{"type":"content_block_delta","delta":{"partial_json":"a b"}}"#.to_owned()),
    ] {
        let found = measure(exchange, &format!("data: {event}\n\n"));
        assert_eq!(found.output_text, "a b", "{event}");
        assert!(found.timing.time_to_first_token.is_some(), "{event}");
    }
    for nothing in [r#"{"role":"assistant"}"#, r#"{"role":"assistant","content":""}"#, "{}"] {
        let found = measure(chat, &format!("data: {}\n\n", delta(nothing)));
        assert_eq!(found.timing.time_to_first_token, None, "{nothing}");
        assert!(found.timing.time_to_first_chunk.is_some(), "{nothing}");
    }
}

#[test]
fn the_end_mark_and_all_behind_it_is_held() {
    let started_at = epoch();
    let mut meter = Exchange::chat().meter(started_at);
    let mut feed = |read: &'static str| {
        let delivery = meter.on_bytes(started_at, Bytes::from_static(read.as_bytes()));
        (delivery.forward, delivery.hold)
    };
    assert_eq!(feed("data: {}\n\nda"), ("data: {}\n\nda".into(), "".into()));
    assert_eq!(
        feed("ta: {}\n\ndata: [DONE]\n\n: x"),
        ("ta: {}\n\n".into(), "data: [DONE]\n\n: x".into())
    );
    assert_eq!(feed(": y\n\n"), ("".into(), ": y\n\n".into()));
}

#[test]
fn an_event_too_long_to_withhold_passes_as_it_comes() {
    let long = format!(
        "data: {{\"choices\":[],\"pad\":\"{}\",\"usage\":{{\"prompt_tokens\":1}}}}\n\n",
        "x".repeat(70_000)
    );
    let exchange = Exchange { hidden: USAGE_EVENT, ..Exchange::chat() };
    for length in [1_000, 65_536, 100_000] {
        let ride = exchange.ride(epoch(), long.as_bytes().chunks(length));
        assert_eq!(ride.bytes, long.as_bytes());
        assert_eq!(ride.measurement.reported.unwrap().usage.input_tokens, Some(1));
    }
}

#[test]
fn a_million_comments_and_a_million_tiny_reads_are_read_in_linear_time() {
    let comments = ":\n\n".repeat(1_000_000);
    let ride = Exchange::chat().ride(epoch(), [comments.as_bytes()]);
    assert_eq!(ride.measurement.timing.time_to_first_chunk, None);
    let ride = Exchange::chat().ride(epoch(), comments.as_bytes()[..1_000_000].chunks(1));
    assert_eq!(ride.bytes.len(), 1_000_000);
}

#[test]
fn text_is_kept_up_to_its_limit_and_counted_beyond() {
    let event = format!(
        "data: {{\"choices\":[{{\"delta\":{{\"content\":\"{}\"}}}}]}}\n\n",
        "é".repeat(100_000)
    );
    let found = measure(Exchange::chat(), &event.repeat(6));
    assert_eq!(found.output_text_bytes, 1_200_000);
    assert_eq!(found.output_text.len(), 1 << 20);
}
