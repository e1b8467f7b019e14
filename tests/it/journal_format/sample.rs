//! A segment with every kind of entry, and with every member that one can have.

use rust_decimal::Decimal;
use serde_json::{Value, json};
use taximeter_ledger::{
    EncodedEntry, End, Entry, Framer, LedgerId, Position, SegmentHeader, SyncMark,
};

pub(super) const LEDGER: &str = "5f3f0c3a-4c1e-4d55-9a6b-0d4a5e3c2b1a";
/// A UUID of version 7 has its time.
pub(super) const ID: &str = "0193e9a0-7b2c-7def-8123-456789abcdef";
const OTHER_ID: &str = "3c0e4f5a-1111-4222-8333-444455556666";
const NASTY: &str = "a\"b\\c\nd\u{1}é😀";

/// A segment that is written.
pub(super) struct Segment {
    header: SegmentHeader,
    frames: Vec<u8>,
    framer: Framer,
}

impl Segment {
    pub(super) fn new() -> Self {
        let ledger = LedgerId(LEDGER.parse().expect("a UUID"));
        let header = SegmentHeader {
            gateway: "gw/é".to_owned(),
            ledger,
            before: Position::START,
            lost: 0,
            has_sync_marks: true,
            follows: None,
            created: "2026-11-01T00:00:00.000001Z".parse().expect("a time"),
        };
        Self { header, frames: Vec::new(), framer: Framer::new(ledger, Position::START) }
    }

    pub(super) fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.header.encode(&mut bytes);
        bytes.extend_from_slice(&self.frames);
        bytes
    }

    pub(super) fn append(&mut self, entry: &Entry) {
        let mut payload = Vec::new();
        let entry = EncodedEntry::new(entry, &mut payload).expect("an entry");
        self.framer.append(&entry, &mut self.frames);
    }

    pub(super) fn mark(&mut self) {
        let mark = SyncMark { synced: self.framer.last().seq };
        mark.append(self.header.ledger, &mut self.frames);
    }

    /// The bytes of a segment that goes on here with `entries`.
    pub(super) fn go_on(&mut self, entries: &[Entry]) -> Vec<u8> {
        let header = SegmentHeader { before: self.framer.last(), ..self.header.clone() };
        let frames = self.framer.strings().to_frame(self.header.ledger);
        let framer = std::mem::replace(&mut self.framer, Framer::new(header.ledger, header.before));
        let mut next = Self { header, frames, framer };
        entries.iter().for_each(|entry| next.append(entry));
        next.bytes()
    }

    /// Appends an entry with strings and members that this version does not know.
    pub(super) fn append_with_more(&mut self, entry: &Entry) {
        let mut payload = Vec::new();
        let kind = EncodedEntry::new(entry, &mut payload).expect("an entry").kind() as u8;
        // A string with the key 99 and no number, behind the id.
        payload.splice(16..16, [99 << 1 & 0x7f | 0x80 | 1, 1, 0, 3, b'n', b'e', b'w']);
        // Members with the keys 300 and 301: a number, and bytes.
        payload.pop();
        payload
            .extend_from_slice(&[0xd8, 0x04, 0xff, 0xff, 0x03, 0xdb, 0x04, 3, 0, b'.', 0xff, b'.']);
        self.frame(kind, &payload);
    }

    /// Appends frames of kinds that this version does not know.
    pub(super) fn append_unknown(&mut self) {
        let entry = [[7; 16].as_slice(), &[9 << 1 | 1, 1, 3, b'o', b'l', b'd', 0, b'.']].concat();
        self.frame(9, &entry);
        self.frame(0x50, b"anything at all.");
        let seed = crc32c::crc32c(self.header.ledger.0.as_bytes());
        let head = head(0x90, 0, b"and more.", seed, seed);
        self.frames.extend_from_slice(&head);
        self.frames.extend_from_slice(b"and more.");
    }

    fn frame(&mut self, kind: u8, payload: &[u8]) {
        let (ledger, last) = (self.header.ledger, self.framer.last());
        let seq = last.seq + u64::from(kind < 0x40);
        let head = head(kind, seq, payload, crc32c::crc32c(ledger.0.as_bytes()), last.chain);
        self.frames.extend_from_slice(&head);
        self.frames.extend_from_slice(payload);
        let chain = u32::from_le_bytes(head[12..].try_into().expect("four bytes"));
        self.framer = Framer::new(ledger, Position { seq, chain });
    }
}

/// The head of a frame, made here as the page says.
fn head(kind: u8, seq: u64, payload: &[u8], seed: u32, before: u32) -> [u8; 16] {
    let mut head = [0; 16];
    head[..3].copy_from_slice(&payload.len().to_le_bytes()[..3]);
    head[3] = kind;
    head[4..8].copy_from_slice(&seq.to_le_bytes()[..4]);
    head[8..12].copy_from_slice(&crc32c::crc32c_append(seed, payload).to_le_bytes());
    let chain = crc32c::crc32c_append(before, &head[..12]);
    head[12..].copy_from_slice(&chain.to_le_bytes());
    head
}

pub(super) fn entry(json: Value) -> Entry {
    serde_json::from_value(json).expect("an entry")
}

/// Every kind of entry, with every member and awkward values.
pub(super) fn entries() -> Vec<Entry> {
    let small = json!({
        "entry": "reserve", "id": OTHER_ID, "request_id": NASTY,
        "started_at": "1969-12-31T23:59:59.999999Z", "tenant": "blue", "key_id": null,
        "identity": "header", "operation": "embeddings", "route": "/v1/embeddings", "stream": false,
        "upstream": "e", "provider": "vllm", "request_model": null, "amount": null
    });
    let pending = json!({
        "id": ID, "started_at": "2024-12-21T10:00:00.5Z", "tenant": "acme", "upstream": "engine",
        "response_id": "resp_1", "operation": "chat", "route": "/v1/responses",
        "provider": "openai", "request_model": NASTY, "response_model": "m-2",
        "service_tier": "flex", "conditions": {"speed": "fast", "region": NASTY}
    });
    let bare = json!({
        "id": OTHER_ID, "started_at": "1970-01-01T00:00:00Z", "tenant": "b", "upstream": "u",
        "response_id": "r", "operation": "o", "route": "/", "provider": "p"
    });
    let checkpoint = json!({
        "entry": "checkpoint", "at": "2026-11-01T00:00:00.000001Z", "posts": u64::MAX, "voids": 3,
        "corrections": 1, "costs": {"EUR": "-0.10", "USD": "79228162514264337593543950335"},
        "unknown_cost": 7, "oldest_open": 1u64 << 40, "pending": [pending, bare],
        "settled": {
            "at": "2026-10-31T23:59:59.5Z", "until": "1969-12-31T23:00:00Z", "request_seconds_max": 86_400
        }
    });
    let empty = json!({
        "entry": "checkpoint", "at": "1970-01-01T00:00:00Z", "posts": 0, "voids": 0,
        "corrections": 0, "unknown_cost": 0
    });
    let void = |reason: &str| json!({"entry": "void", "id": ID, "reason": reason, "ended_at": "2026-01-01T00:00:00Z"});
    let refusals = json!({
        "entry": "refusals", "id": ID, "gateway": "gw/1", "at": "2024-12-21T10:01:00Z",
        "minute": "2024-12-21T10:00:00Z", "counts": [
            {"tenant": "acme", "reason": "rate_limited", "status": 429, "count": u64::MAX},
            {"others": true, "reason": "upstream_overloaded", "admitted": true, "count": 0}
        ]
    });
    let mut all = vec![checkpoint, small, reserve()];
    all.extend([progress(), short_progress(), whole_post(), post_in_part(), short_post()]);
    all.extend(["not_sent", "upstream_refused", "upstream_auth", "client_left"].map(void));
    all.extend([correction(), completing(), refusals, empty, post_of(json!({"cost": rounded()}))]);
    all.extend(posts_of_sessions());
    all.extend(End::ALL.map(|end| post_of(json!({"end": end}))));
    all.extend([reserve_with_other_id(), other_correction(), other_completion()]);
    all.into_iter().map(entry).collect()
}

pub(super) fn reserve() -> Value {
    json!({
        "entry": "reserve", "id": ID, "request_id": ID, "started_at": "2024-12-21T09:59:59.123456Z",
        "tenant": "acme", "key_id": "key-1", "identity": "api_key",
        "labels": {"team": "search", "é": NASTY}, "operation": "chat",
        "route": "/v1/chat/completions", "stream": true, "upstream": "engine",
        "provider": "openai", "request_model": NASTY, "service_tier": "priority",
        "amount": "0.0000000000000000000000000001", "input_tokens": u64::MAX, "output_tokens": 0,
        "context": true, "background": true, "session": "01a210c8", "session_source": "header",
        "agent": "root", "client": "codex/0.169"
    })
}

fn usage() -> Value {
    let run = json!({
        "model": "m-3", "usage": {
            "input_tokens": 1, "cache_read_input_tokens": 2, "cache_write_input_tokens": 3,
            "cache_write_long_input_tokens": 4, "output_tokens": 5, "reasoning_output_tokens": 6,
            "modalities": {
                "input": {"audio": 7, "multimodal": 8}, "output": {"text": 0},
                "cache_read": {"image": 9}
            },
            "units": {"images": "2"}, "conditions": {"inference_geo": "us"}
        }
    });
    let bare = json!({
        "model": null, "usage": {
            "input_tokens": null, "cache_read_input_tokens": null, "cache_write_input_tokens": null,
            "output_tokens": null, "reasoning_output_tokens": null
        }
    });
    json!({
        "source": "counted",
        "sources": {
            "input_tokens": "reported", "cache_read_input_tokens": "counted",
            "cache_write_input_tokens": "unknown", "output_tokens": "none",
            "reasoning_output_tokens": "reported"
        },
        "input_tokens": u64::MAX, "cache_read_input_tokens": 0, "cache_write_input_tokens": 127,
        "cache_write_long_input_tokens": 128, "output_tokens": 16_383,
        "reasoning_output_tokens": 16_384,
        "modalities": {"audio_input_tokens": 7, "text_output_tokens": 0},
        "units": {"audio_seconds": "3.130", "web_search_requests": "0"},
        "conditions": {
            "inference_geo": "eu", "speed": "", "search_context_size": "high", "region": NASTY
        },
        "passes": [run, bare], "counted": {"input_tokens": null, "output_tokens": 8},
        "flagged": {"input_tokens": ["estimated", "inconsistent", "hidden"], "output_tokens": []},
        "flags": [
            "estimated", "inconsistent", "hidden", "total_mismatch", "changed", "invalid", "zero",
            "missing", "context", "token_ids", "differs", "pending", "clock", "maybe_unsent"
        ]
    })
}

/// One whose tokens were counted too.
fn usage_counting(input: u64, output: u64) -> Value {
    let mut usage = usage();
    usage["counted"] = json!({"input_tokens": input, "output_tokens": output});
    usage
}

fn bare_usage() -> Value {
    json!({
        "source": "none", "sources": {}, "input_tokens": null, "cache_read_input_tokens": null,
        "cache_write_input_tokens": null, "output_tokens": null, "reasoning_output_tokens": null,
        "modalities": {}, "passes": [], "counted": {"input_tokens": null, "output_tokens": null},
        "flagged": {}, "flags": []
    })
}

fn progress() -> Value {
    json!({
        "entry": "progress", "id": ID, "at": "2024-12-21T10:00:05Z", "response_model": "m-2",
        "response_id": "resp_1", "service_tier": "default", "usage": usage()
    })
}

fn short_progress() -> Value {
    json!({
        "entry": "progress", "id": OTHER_ID, "at": "1970-01-01T00:00:00.00001Z",
        "response_model": null, "service_tier": null, "usage": bare_usage()
    })
}

/// A cost with lines of every form. Products and sums that are exact, and others.
fn cost() -> Value {
    let line = |more: Value| {
        let mut line = json!({"meter": "input", "unit_price": "0.0000002", "amount": "0.0000084"});
        line.as_object_mut().expect("an object").extend(more.as_object().expect("more").clone());
        line
    };
    json!({
        "currency": "USD", "amount": "1.10", "list_amount": "79228162514264337593543950335",
        "price_id": "b@2026-11-01#vllm/m", "price_match": "region+date", "lines": [
            line(json!({"tokens": 42})),
            line(json!({"tokens": 42, "amount": "0.00000840"})),
            line(json!({"tokens": 0, "amount": "0"})),
            line(json!({"tokens": 0, "amount": "0.0000000"})),
            line(json!({"quantity": "3.130", "unit": "seconds", "list_unit_price": "0.0000003",
                        "amount": "0.0000006260"})),
            line(json!({"tokens": u64::MAX, "unit_price": "0.1234567890123456789012345678",
                        "amount": "2277375790844960561.4141"})),
            line(json!({"model": "m-3", "price_match": "exact", "amount": "-5.5"}))
        ]
    })
}

/// A cost whose products and sum do not fit a decimal, so that they are rounded.
fn rounded() -> Value {
    let line = |tokens: u64, price: &str| {
        let unit_price: Decimal = price.parse().expect("a decimal");
        let amount = Decimal::from(tokens) * unit_price;
        (json!({"meter": "input", "tokens": tokens, "unit_price": price, "amount": amount}), amount)
    };
    let (large, one) = line(u64::MAX, "0.1234567890123456789012345678");
    let (small, other) = line(7, "0.0000000000000000000000000001");
    let amount = one + other;
    json!({
        "currency": "USD", "amount": amount, "list_amount": amount, "price_id": "p",
        "lines": [large, small]
    })
}

fn sum() -> Value {
    json!({
        "currency": "EUR", "amount": "0.0000120", "list_amount": "0.0000120", "price_id": "p",
        "lines": [
            {"meter": "input", "tokens": 42, "unit_price": "0.0000002", "amount": "0.0000084"},
            {"meter": "output", "tokens": 6, "unit_price": "0.0000006", "amount": "0.0000036"}
        ]
    })
}

fn post_of(more: Value) -> Value {
    let mut post = json!({
        "entry": "post", "id": ID, "request_id": OTHER_ID, "attempt": 1, "gateway": "gw/1",
        "started_at": "2024-12-21T10:00:00.000001Z", "ended_at": "2024-12-21T10:00:01.500001Z",
        "tenant": "acme", "key_id": "key-1", "identity": "api_key",
        "labels": {"team": "search"}, "operation": "chat", "route": "/v1/chat/completions",
        "stream": true, "upstream": "engine", "provider": "openai", "request_model": "m",
        "response_model": "m-2", "response_id": "chatcmpl-1", "service_tier": "default",
        "status": 200, "end": "complete", "error_type": null, "finish_reasons": ["stop", NASTY],
        "usage": usage(), "timing": {
            "time_to_first_chunk": 0.041, "time_to_first_token": 0.3,
            "time_per_output_token": 0.000_001, "output_chunks": 9, "longest_stall": 12_345.678,
            "gaps": [3, 0, u32::MAX], "duration": 1.5, "gateway": 0.000_368,
            "stages": {"identify": 0.000_018, "body": 0.0, "stream": 1.25, "settle": 0.000_051}
        },
        "cost": cost(), "resource": {"k8s.pod.name": NASTY, "a": ""}
    });
    post.as_object_mut().expect("an object").extend(more.as_object().expect("more").clone());
    post
}

pub(super) fn whole_post() -> Value {
    post_of(json!({
        "reported_cost": "0.000850", "attempt": 3, "session": "01a210c8",
        "session_source": "header", "agent": "root", "client": "codex/0.169"
    }))
}

/// One of each source of a session and of each kind, with everything that a client can tell.
fn posts_of_sessions() -> impl Iterator<Item = Value> {
    let words = [("header", "prewarm"), ("body", "compaction"), ("derived", "title")];
    words.into_iter().map(|(source, kind)| {
        post_of(json!({
            "session": "s", "session_source": source, "agent": "a", "parent_agent": "root",
            "client": "claude-code/2.1", "turn": "t", "end_user": NASTY,
            "tags": {"team": NASTY, "é": ""}, "kind": kind
        }))
    })
}

/// One whose cost is known in part, with an error, and whose clock was set back.
fn post_in_part() -> Value {
    let mut known = sum();
    known["at_least"] = json!(true);
    post_of(json!({
        "end": "upstream_refused", "status": 529, "error_type": "529",
        "error": {"status": "529", "type": "overloaded_error", "code": "x"},
        "ended_at": "2024-12-21T09:00:00Z", "cost": null, "cost_known": known,
        "cost_unknown": [
            {"reason": "no_price", "of": NASTY, "price_id": "p", "day": "2026-11-01",
             "combination": "in tier priority"},
            {"reason": "too_large"}, {"reason": "ended"}, {"reason": "not_begun"},
            {"reason": "no_rate"}, {"reason": "no_tier"}, {"reason": "no_condition"},
            {"reason": "no_quantity"}
        ],
        "usage": usage_counting(u64::MAX, 16_383), "timing": {
            "time_to_first_chunk": null, "time_to_first_token": null,
            "time_per_output_token": null, "output_chunks": 1, "longest_stall": null,
            "duration": 2.0, "gateway": 0.0,
            "stages": {
                "identify": 0.1, "body": 0.2, "route": 0.3, "admit": 0.4, "connect": 0.5,
                "prefill": 0.6, "stream": 0.7, "answer": 0.8, "settle": 0.9
            }
        }
    }))
}

/// One with as little as possible.
fn short_post() -> Value {
    post_of(json!({
        "id": OTHER_ID, "request_id": "3C0E4F5A-1111-4222-8333-444455556666", "key_id": null,
        "identity": "unknown", "labels": {}, "stream": false, "request_model": null,
        "response_model": null, "response_id": null, "service_tier": null, "status": null,
        "end": "refused", "finish_reasons": [], "error": {}, "usage": bare_usage(), "timing": {
            "time_to_first_chunk": null, "time_to_first_token": null,
            "time_per_output_token": null, "output_chunks": 0, "longest_stall": null,
            "duration": 0.0, "gateway": 0.0, "stages": {}
        },
        "cost": null, "resource": {}
    }))
}

/// A reservation with another UUID of the client.
fn reserve_with_other_id() -> Value {
    let mut reserve = reserve();
    reserve["request_id"] = json!(OTHER_ID);
    reserve
}

/// A correction of a request that had no cost.
fn other_correction() -> Value {
    let mut correction = correction();
    (correction["before"], correction["after"]) = (Value::Null, cost());
    correction
}

fn other_completion() -> Value {
    let mut correction = completing();
    let completion = &mut correction["completion"];
    completion["error"] = json!({"status": "400", "type": "invalid_request_error"});
    completion["usage"] = usage_counting(7, 8);
    completion["usage"]["passes"] = json!([]);
    correction
}

fn correction() -> Value {
    json!({
        "entry": "correction", "id": OTHER_ID, "corrects": ID,
        "started_at": "2024-12-21T10:00:00Z", "tenant": "acme",
        "made_at": "2027-01-01T00:00:00.1Z", "reason": NASTY, "before": cost(), "after": sum(),
        "completed": {"response_model": "m-2", "source": "counted"}
    })
}

fn completing() -> Value {
    json!({
        "entry": "correction", "id": OTHER_ID, "corrects": ID,
        "started_at": "2024-12-21T10:00:00Z", "tenant": "acme",
        "made_at": "1960-01-01T00:00:00Z", "reason": "", "completion": {
            "response_id": "resp_1", "response_model": "m-2", "service_tier": "flex",
            "finish_reasons": ["stop"], "error": {"code": "c"}, "requests": 3,
            "models": [{"model": "a", "usage": {
                "input_tokens": 1, "cache_read_input_tokens": null,
                "cache_write_input_tokens": null, "output_tokens": 2,
                "reasoning_output_tokens": null
            }}],
            "usage": usage(), "reported_cost": "1e-3"
        }
    })
}
