//! What the meter costs per chunk of a chat stream.
//!
//! `meter_chunks COUNT SHAPE` feeds COUNT chunks of about 250 bytes, one a read, and says what was
//! measured. Instructions per chunk are the difference of two counts, so that start and end cancel
//! out:
//!
//! ```sh
//! cargo build --release -p taximeter-benches --bin meter_chunks
//! for n in 10000 110000; do
//!   valgrind --tool=callgrind --callgrind-out-file=/dev/null \
//!     target/release/meter_chunks $n plain 2>&1 | grep Collected
//! done
//! ```

use std::io::Write as _;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use bytes::Bytes;
use taximeter_meter::{Dialect, Hidden, Meter, Setup, StreamEnd, Wire};

/// Chunks are made ahead and used in turn, so that making them is not measured.
const CHUNKS_MADE: usize = 64;

fn main() -> anyhow::Result<()> {
    let usage = "usage: meter_chunks COUNT \
                 plain|choices|obfuscated|responses|messages|hidden|continuous|token_ids";
    let mut arguments = std::env::args().skip(1);
    let count: usize = arguments.next().context(usage)?.parse().context(usage)?;
    let shape = arguments.next().unwrap_or_else(|| "plain".to_owned());
    let (wire, chunk): (Wire, fn(usize) -> String) = match shape.as_str() {
        "plain" | "hidden" => (Wire::ChatCompletions, plain),
        "continuous" => (Wire::ChatCompletions, continuous),
        "token_ids" => (Wire::ChatCompletions, token_ids),
        "choices" => (Wire::ChatCompletions, choices),
        "obfuscated" => (Wire::ChatCompletions, obfuscated),
        "responses" => (Wire::Responses, responses),
        "messages" => (Wire::Messages, messages),
        _ => bail!(usage),
    };
    let chunks: Vec<Bytes> = (0..CHUNKS_MADE).map(|at| chunk(at).into()).collect();
    let started_at = now();
    let mut meter = Meter::new(Setup {
        wire,
        dialect: Dialect::Vllm,
        started_at,
        hidden: hidden(&shape),
        has_one_prompt: false,
    });
    meter.on_head(200, Some("text/event-stream"), None);
    let mut at = started_at;
    let mut forwarded = 0;
    for chunk in chunks.iter().cycle().take(count) {
        at += Duration::from_millis(20);
        forwarded += meter.on_bytes(at, chunk.clone()).forward.len();
    }
    let found = meter.finish(at, StreamEnd::Clean);
    writeln!(
        std::io::stdout(),
        "{count} chunks, {} bytes each, {} bytes forwarded, {} with content, {} bytes of text",
        chunks.iter().map(Bytes::len).sum::<usize>() / CHUNKS_MADE,
        forwarded,
        found.timing.output_chunks,
        found.output_text_bytes
    )?;
    Ok(())
}

/// What is taken out of what the client sees.
fn hidden(shape: &str) -> Hidden {
    Hidden {
        usage_event: matches!(shape, "hidden" | "continuous" | "token_ids"),
        running_usage: shape == "continuous",
        token_ids: shape == "token_ids",
    }
}

#[expect(clippy::disallowed_methods, reason = "the one start that the measured times count from")]
fn now() -> Instant {
    Instant::now()
}

const WORDS: [&str; 4] = [" the", " fare", " is", " twelve"];

fn word(at: usize) -> &'static str {
    WORDS.iter().cycle().nth(at).unwrap_or(&"")
}

fn plain(at: usize) -> String {
    let word = word(at);
    format!(
        "data: {{\"id\":\"chatcmpl-6f1b0c5e9d2a4f7c8b3e1a0d9c8b7a6f\",\
         \"object\":\"chat.completion.chunk\",\"created\":1763650000,\"model\":\"Qwen/Qwen3-32B\",\
         \"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{word}\"}},\"logprobs\":null,\
         \"finish_reason\":null,\"token_ids\":null}}]}}\n\n"
    )
}

/// Running totals, as vLLM has them in every chunk when it is asked.
fn continuous(at: usize) -> String {
    let (output, total) = (at + 1, at + 13);
    let usage = format!(
        "}}],\"usage\":{{\"prompt_tokens\":12,\"total_tokens\":{total},\
         \"completion_tokens\":{output}}}}}"
    );
    plain(at).replace("}]}", &usage)
}

/// Ids of the tokens, as vLLM has them in every chunk when it is asked.
fn token_ids(at: usize) -> String {
    plain(at).replace("\"token_ids\":null", &format!("\"token_ids\":[{}]", 279 + at * 7))
}

/// Two choices in turn: no chunk is like the one before, so that each is read in full.
fn choices(at: usize) -> String {
    plain(at).replace("\"index\":0", &format!("\"index\":{}", at % 2))
}

fn obfuscated(at: usize) -> String {
    let word = word(at);
    let padding = "x9Kq2mZt7Lw4";
    let padding = padding.get(at % padding.len()..).unwrap_or_default();
    format!(
        "data: {{\"id\":\"chatcmpl-CxYz0123456789abcdefgh\",\"object\":\"chat.completion.chunk\",\
         \"created\":1763650000,\"model\":\"gpt-5.1-2026-10-01\",\"service_tier\":\"default\",\
         \"system_fingerprint\":\"fp_1a2b\",\"choices\":[{{\"index\":0,\"delta\":\
         {{\"content\":\"{word}\"}},\"finish_reason\":null}}],\"usage\":null,\
         \"obfuscation\":\"{padding}\"}}\n\n"
    )
}

fn responses(at: usize) -> String {
    let word = word(at);
    format!(
        "event: response.output_text.delta\ndata: {{\"type\":\"response.output_text.delta\",\
         \"sequence_number\":{at},\"item_id\":\"msg_0123456789abcdef0123456789abcdef\",\
         \"output_index\":0,\"content_index\":0,\"delta\":\"{word}\",\"logprobs\":[],\
         \"obfuscation\":\"x9Kq2mZt7\"}}\n\n"
    )
}

fn messages(at: usize) -> String {
    let word = word(at);
    format!(
        "event: content_block_delta\ndata: {{\"type\":\"content_block_delta\",\"index\":0,\
         \"delta\":{{\"type\":\"text_delta\",\"text\":\"{word}\"}}   }}\n\n"
    )
}
