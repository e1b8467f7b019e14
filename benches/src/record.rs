//! The record of a request, of which benches make many.

use taximeter_ledger::Record;

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
            "connect": 0.000269, "prefill": 0.0406, "stream": 1.139, "settle": 0.000021
        }
    },
    "cost": {
        "currency": "USD", "amount": "0.00028600", "list_amount": "0.00028600",
        "price_id": "builtin@2026-11-20#m",
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
