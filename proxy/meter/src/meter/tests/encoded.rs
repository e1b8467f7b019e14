//! Tests answers with compressed bodies.

use std::io::Write;

use super::*;

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

impl Exchange<'_> {
    fn encoded(self, started_at: Instant, codings: &str) -> Meter {
        let mut meter = self.meter(started_at);
        meter.on_head(self.status, self.content_type, Some(codings));
        meter
    }
}

/// What passes in all, and what is measured.
fn ride(mut meter: Meter, started_at: Instant, body: &[u8], step: usize) -> (Vec<u8>, Measurement) {
    let (mut bytes, mut held) = (Vec::new(), false);
    for read in body.chunks(step) {
        let delivery = meter.on_bytes(started_at, Bytes::copy_from_slice(read));
        assert!(delivery.forward.is_empty() || !held, "forwarded past held bytes");
        held |= !delivery.hold.is_empty();
        bytes.extend_from_slice(&delivery.forward);
        bytes.extend_from_slice(&delivery.hold);
    }
    assert!(meter.take_withheld().is_empty());
    (bytes, meter.finish(started_at, StreamEnd::Clean))
}

#[test]
fn every_fixture_measures_the_same_when_it_is_encoded() {
    for fixture in fixtures() {
        let started_at = epoch();
        let plain = fixture.exchange.ride(started_at, [fixture.bytes.as_slice()]).measurement;
        let body = gzip(&fixture.bytes);
        for (hidden, step) in [(NOTHING, body.len()), (NOTHING, 1), (ALL, 13)] {
            let exchange = Exchange { hidden, ..fixture.exchange };
            let (bytes, found) =
                ride(exchange.encoded(started_at, "gzip"), started_at, &body, step);
            assert_eq!(found, plain, "{} in reads of {step}", fixture.path.display());
            assert_eq!(bytes, body, "{}", fixture.path.display());
        }
    }
}

#[test]
fn the_read_with_the_end_mark_waits_and_so_does_what_follows() {
    let started_at = epoch();
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    let text = b"data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n";
    encoder.write_all(text).unwrap();
    encoder.flush().unwrap();
    let first = encoder.get_ref().clone();
    encoder.write_all(b"data: [DONE]\n\n").unwrap();
    encoder.flush().unwrap();
    let second = encoder.get_ref()[first.len()..].to_vec();
    let trailer = encoder.finish().unwrap()[first.len() + second.len()..].to_vec();
    let mut meter = Exchange::chat().encoded(started_at, "gzip");
    for (read, waits) in [(first, false), (second, true), (trailer, true)] {
        let read = Bytes::from(read);
        let delivery = meter.on_bytes(started_at, read.clone());
        let (empty, all) = (Bytes::new(), read);
        let (forward, hold) = if waits { (empty, all) } else { (all, empty) };
        assert_eq!(delivery, Delivery { forward, hold });
    }
    assert_eq!(meter.finish(started_at, StreamEnd::ClientLeft).ending, Ending::Complete);
}

#[test]
fn times_are_those_at_which_decoded_content_came() {
    let started_at = epoch();
    let at = |seconds| started_at + std::time::Duration::from_secs(seconds);
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    let mut meter = Exchange::chat().encoded(started_at, "gzip");
    let mut sent = 0;
    for (seconds, event) in [
        (1, ": waiting\n\n"),
        (2, "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\"}}]}\n\n"),
        (4, "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n"),
        (9, "data: {\"choices\":[{\"delta\":{\"content\":\"b\"}}]}\n\n"),
    ] {
        encoder.write_all(event.as_bytes()).unwrap();
        encoder.flush().unwrap();
        let read = Bytes::copy_from_slice(&encoder.get_ref()[sent..]);
        sent += read.len();
        meter.on_bytes(at(seconds), read);
    }
    let timing = meter.finish(at(10), StreamEnd::Clean).timing;
    let seconds = |time: Option<std::time::Duration>| time.unwrap().as_secs();
    assert_eq!(seconds(timing.time_to_first_chunk), 2);
    assert_eq!(seconds(timing.time_to_first_token), 4);
    assert_eq!(seconds(timing.time_to_last_token), 9);
    assert_eq!(timing.output_chunks, 2);
}

#[test]
fn no_event_of_ours_can_be_added_to_an_encoded_stream() {
    assert_eq!(Exchange::chat().encoded(epoch(), "br").framing(), None);
    assert!(Exchange::chat().encoded(epoch(), "identity").framing().is_some());
}

#[test]
fn reading_stops_at_damage_and_the_bytes_pass() {
    let started_at = epoch();
    let event = "data: {\"choices\":[{\"delta\":{\"content\":\"To the\"}}]}\n\n";
    let mut body = gzip(event.as_bytes());
    // The checksum behind the text.
    let at = body.len() - 6;
    body[at] ^= 1;
    for step in [1, body.len()] {
        let (bytes, found) =
            ride(Exchange::chat().encoded(started_at, "gzip"), started_at, &body, step);
        assert_eq!(bytes, body);
        assert_eq!(found.counts, Counts { decode_stopped: 1, ..Counts::default() });
        assert!(found.has_unread_output);
        assert_eq!(found.ending, Ending::Complete);
    }
}

#[test]
fn an_unknown_coding_passes_unread_and_is_told() {
    let started_at = epoch();
    let body = b"data: {\"usage\":{\"prompt_tokens\":1}}\n\n";
    let meter = Exchange { hidden: ALL, ..Exchange::chat() }.encoded(started_at, "dcb");
    let (bytes, found) = ride(meter, started_at, body, 5);
    assert_eq!(bytes, body);
    assert_eq!((found.reported, found.counts.decode_stopped), (None, 1));
    assert_eq!(found.ending, Ending::Complete);
}

#[test]
fn long_documents_lines_and_events_are_read_when_they_are_encoded() {
    let started_at = epoch();
    // Digits that repeat compress too well to be believed.
    let digits = (0_u32..400_000).map(|n| n.wrapping_mul(0x9e37_79b9).to_string());
    let picture: String = digits.collect();
    let document = format!("{{\"pad\":\"{picture}\",\"usage\":{{\"prompt_tokens\":1}}}}");
    for (content_type, body) in [
        ("application/json", document.clone()),
        ("application/x-ndjson", format!("{document}\n")),
        ("text/event-stream", format!("data: {document}\n\ndata: [DONE]\n\n")),
    ] {
        let exchange = Exchange { content_type: Some(content_type), ..Exchange::chat() };
        let body = gzip(body.as_bytes());
        for step in [5_000, body.len()] {
            let meter = exchange.encoded(started_at, "gzip");
            let (bytes, found) = ride(meter, started_at, &body, step);
            assert!(bytes == body, "{content_type}");
            assert_eq!(found.reported.unwrap().usage.input_tokens, Some(1), "{content_type}");
            assert_eq!(found.counts, Counts::default(), "{content_type}");
            assert!(!found.has_unread_output, "{content_type}");
            assert_eq!(found.ending, Ending::Complete, "{content_type}");
        }
    }
}

#[test]
fn an_encoded_answer_that_swells_is_not_read_to_its_end() {
    let started_at = epoch();
    let json = Exchange { content_type: Some("application/json"), ..Exchange::chat() };
    let blanks = " ".repeat(3 << 20);
    let body = gzip(format!("{blanks}{{\"usage\":{{\"prompt_tokens\":1}}}}").as_bytes());
    for (ratio_max, reads) in [(10_000, true), (100, false)] {
        let mut meter = json.meter(started_at).decoding(ratio_max);
        meter.on_head(200, json.content_type, Some("gzip"));
        let (bytes, found) = ride(meter, started_at, &body, 7);
        assert_eq!(bytes, body);
        assert_eq!(found.reported.is_some(), reads, "{ratio_max}");
        assert_eq!(found.counts.decode_stopped, u32::from(!reads), "{ratio_max}");
        assert_eq!(found.has_unread_output, !reads, "{ratio_max}");
    }
}

#[test]
fn half_an_encoded_answer_is_truncated() {
    let started_at = epoch();
    let body = gzip(b"data: {\"choices\":[{\"delta\":{\"content\":\"To the\"}}]}\n\n");
    for length in [0, 5, body.len() - 8] {
        let meter = Exchange::chat().encoded(started_at, "gzip");
        let (_, found) = ride(meter, started_at, &body[..length], 100);
        assert_eq!(found.ending, Ending::Truncated, "{length}");
        assert_eq!(found.counts, Counts::default(), "{length}");
    }
}
