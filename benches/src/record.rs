//! The record of a request, of which benches make many.

use std::time::Duration;

use jiff::SignedDuration;
use rust_decimal::Decimal;
use taximeter_ledger::{Counted, Gaps, Record, RequestId, Reserve, Stages};
use uuid::Builder;

/// As the gateway writes it; what differs from one to the next is put in.
const RECORD: &str = r#"{
    "id": "0193e9a0-0000-7000-8000-000000000000", "request_id": "", "attempt": 1,
    "gateway": "bench/0", "started_at": "2026-11-01T00:00:00Z", "ended_at": "2026-11-01T00:00:00Z",
    "tenant": "", "key_id": "production", "identity": "api_key", "labels": {"team": "search"},
    "operation": "chat", "route": "/v1/chat/completions", "stream": true, "upstream": "local",
    "provider": "vllm", "request_model": "", "response_model": null,
    "response_id": "chatcmpl-8f14e45fceea167a5a36dedd4bea2543", "service_tier": null, "status": 200,
    "end": "complete", "error_type": null, "finish_reasons": ["stop"],
    "usage": {
        "source": "reported", "sources": {"input_tokens": "reported", "output_tokens": "reported"},
        "input_tokens": 812, "cache_read_input_tokens": 768, "cache_write_input_tokens": 0,
        "output_tokens": 96, "reasoning_output_tokens": 0, "modalities": null, "passes": null,
        "counted": {"input_tokens": 812, "output_tokens": 96}
    },
    "timing": {
        "time_to_first_chunk": 0.041, "time_to_first_token": 0.043,
        "time_per_output_token": 0.0119, "output_chunks": 96, "longest_stall": 0.031,
        "gaps": [74, 20, 1], "duration": 1.18, "gateway": 0.0004,
        "stages": {
            "identify": 0.000009, "body": 0.000031, "route": 0.000004, "admit": 0.000087,
            "connect": 0.000269, "prefill": 0.0426, "stream": 1.137, "settle": 0.000021
        }
    },
    "cost": {
        "currency": "USD", "amount": "0.00028600", "list_amount": "0.00028600",
        "price_id": "builtin@2026-11-20#m", "price_match": "exact",
        "lines": [
            {"meter": "input", "tokens": 44, "unit_price": "0.0000005", "amount": "0.0000220"},
            {"meter": "cache_read", "tokens": 768, "unit_price": "0.00000005",
                "amount": "0.00003840"},
            {"meter": "output", "tokens": 96, "unit_price": "0.00000235", "amount": "0.00022560"}
        ]
    }
}"#;

/// The first of many: who asks, and for which model, is left empty.
///
/// Errors: the ledger reads records differently.
pub fn pattern() -> serde_json::Result<Record> {
    serde_json::from_str(RECORD)
}

/// The reservation that the gateway makes before it sends the request.
#[must_use]
pub fn reserve(record: &Record) -> Reserve {
    Reserve {
        id: record.id,
        request_id: record.request_id.clone(),
        started_at: record.started_at,
        tenant: record.tenant.clone(),
        key_id: record.key_id.clone(),
        identity: record.identity,
        labels: record.labels.clone(),
        dimensions: record.dimensions.clone(),
        operation: record.operation.clone(),
        route: record.route.clone(),
        stream: record.stream,
        upstream: record.upstream.clone(),
        provider: record.provider.clone(),
        request_model: record.request_model.clone(),
        service_tier: None,
        amount: None,
        input_tokens: Some(72),
        output_tokens: Some(0),
        context: false,
        background: false,
    }
}

/// Makes it the request with that number, which differs from others as requests do: in its ids, in
/// what it used and cost, and in its times; and one of eight is no stream. The same number is the
/// same request.
pub fn vary(record: &mut Record, number: u32) {
    let random = |salt: u32, below: u32| mixed(number, salt) % below;
    let (input, output) = (100 + random(1, 4_000), 1 + random(2, 800));
    let cached = input / 64 * 48;
    let (input_tokens, output_tokens) = (Some(input.into()), Some(output.into()));
    let usage = &mut record.usage;
    (usage.input_tokens, usage.output_tokens) = (input_tokens, output_tokens);
    usage.cache_read_input_tokens = Some(cached.into());
    usage.counted = Some(Counted { input_tokens, output_tokens });
    record.stream = random(0, 8) > 0;
    time(record, number, output);

    let random_bits = [7, 8, 9].map(|salt| u128::from(mixed(number, salt)));
    let [high, middle, low] = random_bits;
    let millis = u64::try_from(record.started_at.as_millisecond()).unwrap_or(0);
    let random_bytes = (high << 48 | middle << 24 | low).to_be_bytes();
    let [_, _, _, _, _, _, random_bytes @ ..] = random_bytes;
    let id = Builder::from_unix_timestamp_millis(millis, &random_bytes).into_uuid();
    record.id = RequestId(id);
    record.request_id = id.to_string();
    record.response_id = Some(format!("chatcmpl-{middle:08x}{high:08x}"));

    let Some(cost) = &mut record.cost else { return };
    for (line, tokens) in cost.lines.iter_mut().zip([input - cached, cached, output]) {
        line.tokens = Some(tokens.into());
        line.amount = Decimal::from(tokens) * line.unit_price;
    }
    cost.amount = cost.lines.iter().map(|line| line.amount).sum();
    cost.list_amount = cost.amount;
}

/// Its times, by whether it is a stream.
fn time(record: &mut Record, number: u32, output: u32) {
    let random = |salt: u32, below: u32| mixed(number, salt) % below;
    let micros = |micros: u32| Duration::from_micros(micros.into());
    let stream = record.stream;
    let seconds = |of: u32| Some(micros(of).as_secs_f64()).filter(|_| stream);
    let (first_chunk, gap) = (20_000 + random(3, 200_000), 5_000 + random(4, 20_000));
    // The first chunk of a chat has a role and no token.
    let first_token = first_chunk + 1_700;
    let whole = first_token + gap * (output - 1);
    // Identified, read, routed, reserved, sent.
    let ours = [(11, 9), (12, 40), (13, 5), (5, 300), (6, 200)];
    let mut ended = 0;
    let ours = ours.map(|(salt, most)| {
        ended += 1 + random(salt, most);
        ended
    });

    let timing = &mut record.timing;
    timing.time_to_first_chunk = seconds(first_chunk);
    timing.time_to_first_token = seconds(first_token);
    timing.time_per_output_token = seconds(gap);
    timing.longest_stall = seconds(gap + random(14, 40_000));
    timing.output_chunks = if stream { output.into() } else { 0 };
    let late = random(15, output);
    let gaps = Gaps::from(vec![output - late, late / 2, late - late / 2]);
    timing.gaps = Some(gaps).filter(|_| stream);
    timing.duration = micros(whole).as_secs_f64();
    timing.gateway = micros(ended).as_secs_f64();
    let [identify, body, route, admit, connect] = ours.map(|end| Some(micros(end)));
    let whole_end = Some(micros(whole));
    let [prefill, streamed, answer] =
        if stream { [Some(micros(first_token)), whole_end, None] } else { [None, None, whole_end] };
    let settle = Some(micros(whole + 10 + random(16, 30)));
    timing.stages = Some(Stages::ending([
        identify, body, route, admit, connect, prefill, streamed, answer, settle,
    ]));
    record.ended_at = record.started_at + SignedDuration::from_micros(whole.into());
}

/// Looks random, and is the same each time.
pub(crate) const fn mixed(number: u32, salt: u32) -> u32 {
    let mixed = (number ^ salt.wrapping_mul(0x9e37_79b9)).wrapping_mul(0x85eb_ca6b);
    (mixed ^ (mixed >> 15)).wrapping_mul(0xc2b2_ae35).rotate_left(13)
}
