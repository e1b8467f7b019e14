//! Tests lines of JSON that come under another type.

use super::*;

const TYPES: [Option<&str>; 3] = [Some("application/json"), Some("text/plain"), None];

/// Lines of a chat in Ollama's form, and what they say.
const LINES: [&str; 4] = [
    r#"{"model":"m","message":{"role":"assistant","content":"To"},"done":false}"#,
    r#"{"model":"m","message":{"role":"assistant","content":" the {"},"done":false}"#,
    r#"{"model":"m","message":{"role":"assistant","content":"\n}"},"done":false}"#,
    r#"{"model":"m","message":{"role":"assistant","content":""},"done":true,"done_reason":"stop","prompt_eval_count":9,"eval_count":4}"#,
];

fn ollama(content_type: Option<&str>) -> Exchange<'_> {
    Exchange { wire: Wire::OllamaChat, dialect: Dialect::Ollama, content_type, ..Exchange::chat() }
}

fn assert_read(exchange: Exchange<'_>, body: &str, chunks: u64) {
    for step in 1..=body.len() {
        let ride = exchange.ride(epoch(), body.as_bytes().chunks(step));
        let found = ride.measurement;
        assert!(ride.bytes == body.as_bytes(), "{body} in reads of {step} bytes");
        assert_eq!(found.ending, Ending::Complete, "{body} in reads of {step} bytes");
        assert_eq!(found.output_text, "To the {\n}", "{body} in reads of {step} bytes");
        assert_eq!(found.reported.unwrap().usage.output_tokens, Some(4));
        assert_eq!(found.timing.output_chunks, chunks, "{body} in reads of {step} bytes");
        assert_eq!(found.counts.not_json, 0);
    }
}

#[test]
fn lines_are_read_as_what_they_are_under_every_type() {
    for content_type in TYPES {
        for newline in ["\n", "\r\n", "\n\n"] {
            for (before, behind) in [("", ""), ("\u{feff}", newline), (" \n", newline)] {
                let body = format!("{before}{}{behind}", LINES.join(newline));
                assert_read(ollama(content_type), &body, 3);
            }
        }
    }
}

#[test]
fn one_document_is_one_document_however_it_is_written() {
    let whole = r#"{"model":"m","message":{"content":"To the {\n}"},"done":true,"done_reason":"stop","eval_count":4}"#;
    let value: serde_json::Value = serde_json::from_str(whole).unwrap();
    let pretty = serde_json::to_string_pretty(&value).unwrap();
    for body in [whole, &format!("{whole}\n"), &format!("\u{feff}{whole}\r\n"), &pretty] {
        assert_read(ollama(Some("application/json")), body, 0);
    }
}

#[test]
fn documents_without_a_newline_between_them_are_read_too() {
    assert_read(ollama(Some("application/json")), &LINES.concat(), 3);
}

#[test]
fn the_first_line_came_when_it_came() {
    let started_at = epoch();
    let mut meter = ollama(None).meter(started_at);
    meter.on_head(200, None, None);
    for (seconds, line) in (1..).zip(LINES) {
        let at = started_at + std::time::Duration::from_secs(seconds);
        meter.on_bytes(at, Bytes::from(format!("{line}\n")));
    }
    let timing = meter.finish(started_at, StreamEnd::Clean).timing;
    let second = std::time::Duration::from_secs(1);
    assert_eq!(timing.time_to_first_token, Some(second));
    assert_eq!(timing.longest_stall, Some(second));
}

#[test]
fn what_only_we_asked_for_is_taken_out_of_lines_of_another_type() {
    let text = r#"{"choices":[{"index":0,"delta":{"content":"To"}}]}"#;
    let usage = r#"{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":4}}"#;
    let finish = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#;
    let body = format!("{text}\n{finish}\n{usage}\n");
    let expected = format!("{text}\n{finish}\n");
    for content_type in TYPES {
        let exchange = Exchange { content_type, hidden: USAGE_EVENT, ..Exchange::chat() };
        for step in 1..=body.len() {
            let ride = exchange.ride(epoch(), body.as_bytes().chunks(step));
            assert_eq!(String::from_utf8(ride.bytes).unwrap(), expected, "reads of {step}");
            let usage = ride.measurement.reported.unwrap().usage;
            assert_eq!(usage.output_tokens, Some(4), "reads of {step}");
        }
        let ride = exchange.ride(epoch(), [text.as_bytes()]);
        assert_eq!(ride.bytes, text.as_bytes());
    }
}

proptest! {
    #[test]
    fn lines_measure_the_same_however_they_are_split(
        at in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
        is_dense in any::<bool>(),
        newline in prop::sample::select(vec!["\n", "\r\n", " \n\t\n"]),
    ) {
        let separator = if is_dense { "\n" } else { newline };
        let body = LINES.join(separator);
        let mut cuts: Vec<_> = at.iter().map(|at| at.index(body.len())).collect();
        cuts.extend([0, body.len()]);
        cuts.sort_unstable();
        let reads = cuts.windows(2).map(|pair| &body.as_bytes()[pair[0]..pair[1]]);
        let reads = reads.filter(|read| !read.is_empty());
        let found = ollama(Some("application/json")).ride(epoch(), reads).measurement;
        let declared = ollama(Some("application/x-ndjson")).ride(epoch(), [body.as_bytes()]);
        let mut expected = declared.measurement;
        expected.counts.type_mismatch = 1;
        prop_assert_eq!(found, expected);
    }
}
