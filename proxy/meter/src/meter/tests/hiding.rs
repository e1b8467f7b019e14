//! Tests what the gateway hides: the client sees the stream that it would have seen without the
//! gateway's question.

use taximeter_pricing::{Flag, Usage};

use super::*;

/// An event of a simulated vLLM stream.
#[derive(Clone, Copy)]
struct Chunk {
    choice: u64,
    delta: &'static str,
    finish: &'static str,
    /// Tokens that it brings.
    ids: &'static [u64],
}

const fn chunk(delta: &'static str, ids: &'static [u64]) -> Chunk {
    Chunk { choice: 0, delta, finish: "null", ids }
}

const CHUNKS: [Chunk; 7] = [
    chunk(r#"{"role":"assistant","content":""}"#, &[]),
    chunk(r#"{"content":"To"}"#, &[1271]),
    chunk(r#"{"content":" the"}"#, &[279]),
    chunk(r#"{"content":" \"usage\":{}, st"}"#, &[330, 18168, 788, 4, 357]),
    chunk(r#"{"content":"ation"}"#, &[367]),
    chunk(r#"{"content":" and"}"#, &[323, 11]),
    Chunk { finish: "\"stop\"", ..chunk(r#"{"content":""}"#, &[151_645]) },
];

const INPUT: u64 = 12;

/// What an engine is asked for.
#[derive(Clone, Copy, Default)]
struct AskedFor {
    running: bool,
    final_usage: bool,
    ids: bool,
}

/// The stream that `chunks` are, as vLLM writes it, cut behind its first `events` events.
fn stream(chunks: &[Chunk], asked: AskedFor, end: &str, events: usize) -> Vec<u8> {
    let mut written = Vec::new();
    let mut outputs = [0; 2];
    let head = r#"{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"q""#;
    for (at, chunk) in chunks.iter().enumerate() {
        let Chunk { choice, delta, finish, ids } = *chunk;
        let output: &mut u64 = &mut outputs[usize::try_from(choice).unwrap()];
        *output += ids.len() as u64;
        let usage = if asked.running {
            let total = INPUT + *output;
            format!(
                r#","usage":{{"prompt_tokens":{INPUT},"total_tokens":{total},"completion_tokens":{output}}}"#
            )
        } else {
            String::new()
        };
        let list = |ids: &[u64]| {
            if asked.ids { format!("{ids:?}").replace(' ', "") } else { "null".to_owned() }
        };
        let prompt = if at == 0 {
            let prompt: Vec<u64> = (0..INPUT).collect();
            format!(r#","prompt_token_ids":{}"#, list(&prompt))
        } else {
            String::new()
        };
        let ids = if at == 0 { String::new() } else { format!(r#","token_ids":{}"#, list(ids)) };
        written.push(format!(
            r#"data: {head},"choices":[{{"index":{choice},"delta":{delta},"logprobs":null,"finish_reason":{finish}{ids}}}]{usage}{prompt}}}{end}{end}"#
        ));
    }
    if asked.final_usage {
        let output: u64 = outputs.iter().sum();
        written.push(format!(
            r#"data: {head},"choices":[],"usage":{{"prompt_tokens":{INPUT},"total_tokens":{},"completion_tokens":{output}}}}}{end}{end}"#,
            INPUT + output
        ));
    }
    written.push(format!("data: [DONE]{end}{end}"));
    written.truncate(events);
    written.concat().into_bytes()
}

/// Every way to cut a stream in two, and byte by byte.
fn splits(bytes: &[u8]) -> impl Iterator<Item = Vec<&[u8]>> {
    let in_two = (0..=bytes.len()).map(|at| {
        let (head, tail) = bytes.split_at(at);
        vec![head, tail]
    });
    in_two.chain([bytes.chunks(1).collect()])
}

fn assert_hidden(chunks: &[Chunk], hidden: Hidden, asked: AskedFor, seen: AskedFor) {
    for end in ["\n", "\r\n", "\r"] {
        let sent = stream(chunks, asked, end, usize::MAX);
        let expected = String::from_utf8(stream(chunks, seen, end, usize::MAX)).unwrap();
        let exchange = Exchange { hidden, dialect: Dialect::Vllm, ..Exchange::chat() };
        let started_at = epoch();
        let whole = exchange.ride(started_at, [sent.as_slice()]).measurement;
        for reads in splits(&sent) {
            let ride = exchange.ride(started_at, reads);
            assert_eq!(String::from_utf8_lossy(&ride.bytes), expected);
            assert_eq!(ride.measurement, whole);
        }
    }
}

#[test]
fn running_usage_is_taken_out_and_nothing_else() {
    let asked = AskedFor { running: true, final_usage: true, ids: false };
    let hidden = Hidden { token_ids: false, ..ALL };
    assert_hidden(&CHUNKS, hidden, asked, AskedFor::default());
}

#[test]
fn a_client_that_asked_for_usage_keeps_that_at_the_end() {
    let asked = AskedFor { running: true, final_usage: true, ids: false };
    let hidden = Hidden { running_usage: true, ..NOTHING };
    assert_hidden(&CHUNKS, hidden, asked, AskedFor { running: false, ..asked });
    assert_hidden(&CHUNKS, NOTHING, asked, asked);
}

#[test]
fn token_ids_become_the_null_that_they_would_have_been() {
    let asked = AskedFor { running: false, final_usage: true, ids: true };
    let hidden = Hidden { running_usage: false, ..ALL };
    assert_hidden(&CHUNKS, hidden, asked, AskedFor::default());
}

#[test]
fn an_event_that_came_only_for_its_ids_is_taken_out() {
    let asked = AskedFor { running: false, final_usage: true, ids: true };
    let mut chunks = CHUNKS.to_vec();
    chunks.insert(3, chunk("{}", &[151_667]));
    let hidden = Hidden { running_usage: false, ..ALL };
    let sent = stream(&chunks, asked, "\n", usize::MAX);
    let exchange = Exchange { hidden, dialect: Dialect::Vllm, ..Exchange::chat() };
    for reads in splits(&sent) {
        let ride = exchange.ride(epoch(), reads);
        let expected = stream(&CHUNKS, AskedFor::default(), "\n", usize::MAX);
        assert_eq!(String::from_utf8_lossy(&ride.bytes), String::from_utf8_lossy(&expected));
        assert_eq!(ride.measurement.reported.unwrap().usage.output_tokens, Some(12));
    }
}

#[test]
fn an_engine_that_leaves_ids_away_has_them_taken_out() {
    let event = |ids: &str| {
        format!(
            "data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"a\"}}{ids},\
             \"finish_reason\":null}}]}}\n\n"
        )
    };
    let sent = event(r#","response_token_ids":[7,8]"#).repeat(3);
    let exchange = Exchange { hidden: ALL, dialect: Dialect::Sglang, ..Exchange::chat() };
    let ride = exchange.ride(epoch(), [sent.as_bytes()]);
    assert_eq!(String::from_utf8(ride.bytes).unwrap(), event("").repeat(3));
    assert_eq!(ride.measurement.reported.unwrap().usage.output_tokens, Some(6));
}

/// What was used, when somebody cut the stream behind so many events.
fn cut(chunks: &[Chunk], asked: AskedFor, events: usize) -> (Option<Usage>, Vec<Flag>, u64) {
    let exchange = Exchange {
        hidden: ALL,
        dialect: Dialect::Vllm,
        end: StreamEnd::ClientLeft,
        ..Exchange::chat()
    };
    let sent = stream(chunks, asked, "\n", events);
    let found = exchange.ride(epoch(), [sent.as_slice()]).measurement;
    assert_eq!(found.ending, Ending::Cut(StreamEnd::ClientLeft));
    let (usage, flags) = found
        .reported
        .map_or((None, Vec::new()), |reported| (Some(reported.usage), reported.flags));
    (usage, flags, found.timing.output_chunks)
}

#[test]
fn an_aborted_stream_is_counted_by_the_engine_up_to_its_last_event() {
    let running = AskedFor { running: true, ..AskedFor::default() };
    let ids = AskedFor { ids: true, ..AskedFor::default() };
    let mut output = 0;
    for (at, chunk) in CHUNKS.iter().enumerate() {
        output += chunk.ids.len() as u64;
        let exact =
            Usage { input_tokens: Some(INPUT), output_tokens: Some(output), ..Usage::default() };
        let (usage, flags, chunks) = cut(&CHUNKS, running, at + 1);
        assert_eq!((usage, flags), (Some(exact.clone()), vec![]), "cut behind event {at}");
        let (usage, flags, same_chunks) = cut(&CHUNKS, ids, at + 1);
        assert_eq!((usage, flags), (Some(exact), vec![Flag::TokenIds]), "cut behind event {at}");
        assert_eq!(chunks, same_chunks);
        assert_eq!(chunks, cut(&CHUNKS, AskedFor::default(), at + 1).2);
    }
}

#[test]
fn choices_are_added_up_when_each_has_its_own_running_total() {
    let other = |chunk: Chunk| Chunk { choice: 1, ..chunk };
    let chunks: Vec<Chunk> = CHUNKS.iter().flat_map(|at| [*at, other(*at)]).collect();
    let running = AskedFor { running: true, ..AskedFor::default() };
    let (usage, flags, _) = cut(&chunks, running, 7);
    let usage = usage.unwrap();
    assert_eq!((usage.input_tokens, usage.output_tokens), (Some(INPUT), Some(7 + 2)));
    assert_eq!(flags, []);
}

#[test]
fn a_running_total_is_no_end() {
    let running = AskedFor { running: true, ..AskedFor::default() };
    let sent = stream(&CHUNKS, running, "\n", 4);
    let found = Exchange::chat().ride(epoch(), [sent.as_slice()]).measurement;
    assert_eq!(found.ending, Ending::Truncated);
    assert_eq!(found.reported.unwrap().usage.output_tokens, Some(7));
}

#[test]
fn what_was_withheld_when_the_client_left_is_not_counted() {
    let running = AskedFor { running: true, ..AskedFor::default() };
    let sent = stream(&CHUNKS, running, "\n", 3);
    let mut meter = Exchange { hidden: ALL, ..Exchange::chat() }.meter(epoch());
    meter.on_head(200, Some("text/event-stream"), None);
    meter.on_bytes(epoch(), Bytes::copy_from_slice(&sent[..sent.len() - 1]));
    let found = meter.finish(epoch(), StreamEnd::ClientLeft);
    assert_eq!(found.reported.unwrap().usage.output_tokens, Some(1));
    assert_eq!(found.output_text, "To");
}

#[test]
fn only_the_usage_event_is_hidden() {
    let mut hidden = 0;
    for fixture in fixtures().iter().filter(|fixture| fixture.path.extension().unwrap() == "sse") {
        // It is never asked: its usage comes in an event with a choice that has finished.
        if fixture.exchange.dialect == Dialect::OpenRouter {
            continue;
        }
        let exchange = Exchange { hidden: USAGE_EVENT, ..fixture.exchange };
        let started_at = epoch();
        let ride = exchange.ride(started_at, [fixture.bytes.as_slice()]);
        let plain = fixture.exchange.ride(started_at, [fixture.bytes.as_slice()]);
        assert_eq!(ride.measurement, plain.measurement, "{}", fixture.path.display());
        let expected = without_usage_event(&fixture.bytes);
        hidden += usize::from(expected != fixture.bytes);
        assert_eq!(
            String::from_utf8_lossy(&ride.bytes),
            String::from_utf8_lossy(&expected),
            "{}",
            fixture.path.display()
        );
    }
    assert!(hidden > 15);
}

/// Cuts at blank lines, the slow way, and leaves out what has a usage object and no choices, and
/// usage that is null.
fn without_usage_event(stream: &[u8]) -> Vec<u8> {
    let mut kept = Vec::new();
    let mut block = Vec::new();
    let mut line = Vec::new();
    let mut is_done = false;
    let mut bytes = stream.iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        block.push(byte);
        if byte != b'\n' && byte != b'\r' {
            line.push(byte);
            continue;
        }
        if byte == b'\r' {
            block.extend(bytes.next_if_eq(&b'\n'));
        }
        if !std::mem::take(&mut line).is_empty() {
            continue;
        }
        let text = String::from_utf8_lossy(&block).into_owned();
        is_done |= text.contains("[DONE]");
        let is_usage = text.contains("\"choices\":[]") && text.contains("\"usage\":{");
        match (is_done, is_usage) {
            (true, _) => kept.append(&mut block),
            (false, true) => block.clear(),
            (false, false) => {
                let is_chat = text.contains("\"choices\":");
                let plain = if is_chat { text.replace(",\"usage\":null", "") } else { text };
                kept.extend_from_slice(plain.as_bytes());
                block.clear();
            }
        }
    }
    kept.append(&mut block);
    kept
}
