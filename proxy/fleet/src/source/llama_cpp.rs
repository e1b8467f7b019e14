//! llama.cpp's server with `--metrics`. It has no labels but in its router mode, and no histograms.

use crate::identity::Field;
use crate::quantity as q;
use crate::row::{Mark, Op, Row, Source, derived, row};

pub(super) const SOURCE: Source = Source {
    name: "llama.cpp",
    title: "llama.cpp",
    prefixes: &["llamacpp:", "llamacpp_"],
    any_case: false,
    anchors: &[],
    marks: &[
        Mark::Metric("n_decode"),
        Mark::Metric("n_busy_slots_per_decode"),
        Mark::Metric("requests_deferred"),
        Mark::Metric("tokens_predicted"),
        Mark::Metric("predicted_tokens_seconds"),
    ],
    foreign: &[],
    generations: &[
        (Mark::Metric("prompt_tokens_cached"), "counts cached tokens apart (2026)"),
        (Mark::Metric("kv_cache_usage_ratio"), "tells the KV cache (before June 2025)"),
        (Mark::Metric("n_busy_slots_per_decode"), "2025 or later"),
    ],
    identity: &[
        ("instance", Field::Instance),
        ("node", Field::Node),
        ("namespace", Field::Namespace),
        ("pod", Field::Pod),
        ("container", Field::Container),
        ("model", Field::Model),
        ("model_name", Field::Model),
    ],
    subject: &[
        Field::Instance,
        Field::Node,
        Field::Namespace,
        Field::Pod,
        Field::Container,
        Field::Model,
    ],
    node_of: None,
    ignored: &["job", "endpoint", "service"],
    versions: &[],
    version_at: &[("/props", "build_info")],
    rows: ROWS,
    derived: &[
        derived(
            q::PROMPT_TOKENS,
            Op::Sum,
            &[q::PREFILL_TOKENS, q::CACHED_TOKENS],
            "llama.cpp counts cached tokens apart",
        ),
        derived(q::PREFIX_QUERY_TOKENS, Op::Sum, &[q::PROMPT_TOKENS], "each prompt is looked up"),
        derived(q::PREFIX_HIT_TOKENS, Op::Sum, &[q::CACHED_TOKENS], ""),
        derived(
            q::SPEC_ACCEPT_RATE,
            Op::Ratio,
            &[q::SPEC_ACCEPTED_TOKENS, q::SPEC_DRAFT_TOKENS],
            "since the server started",
        ),
    ],
    blank: None,
    never: &[
        (q::TIME_TO_FIRST_TOKEN, NO_HISTOGRAM),
        (q::INTER_TOKEN_LATENCY, NO_HISTOGRAM),
        (q::REQUEST_DURATION, NO_HISTOGRAM),
        (q::QUEUE_TIME, NO_HISTOGRAM),
        (q::PREEMPTIONS, "llama.cpp counts none"),
        (q::REQUESTS, "llama.cpp counts no requests"),
        (q::REJECTED, "llama.cpp counts no requests"),
    ],
};

const NO_HISTOGRAM: &str = "llama.cpp prints no times of single requests; its answers tell theirs";
const NO_SPECULATION: &str = "only where speculative decoding is on";
const NO_KV: &str = "llama.cpp has not printed it since June 2025";

const ROWS: &[Row] = &[
    row(&["requests_processing"], q::REQUESTS_RUNNING),
    row(&["requests_deferred"], q::REQUESTS_WAITING),
    row(&["kv_cache_usage_ratio"], q::KV_CACHE_USAGE).absent(NO_KV),
    row(&["kv_cache_tokens"], q::KV_CACHE_TOKENS).absent(NO_KV),
    row(&["prompt_tokens"], q::PREFILL_TOKENS),
    row(&["prompt_tokens_cached"], q::CACHED_TOKENS)
        .absent("this build does not count cached tokens, so that prompts are not known whole"),
    row(&["tokens_predicted"], q::GENERATION_TOKENS),
    row(&["prompt_seconds"], q::PREFILL_SECONDS),
    row(&["tokens_predicted_seconds"], q::DECODE_SECONDS),
    row(&["n_decode"], q::STEPS),
    row(&["n_tokens_max"], q::SEQUENCE_MAX),
    row(&["n_busy_slots_per_decode"], q::BATCH_SIZE),
    row(&["prompt_tokens_seconds"], q::PROMPT_THROUGHPUT),
    row(&["predicted_tokens_seconds"], q::GENERATION_THROUGHPUT),
    row(&["spec_decode_num_drafts"], q::SPEC_DRAFTS).absent(NO_SPECULATION),
    row(&["spec_decode_num_draft_tokens"], q::SPEC_DRAFT_TOKENS).absent(NO_SPECULATION),
    row(&["spec_decode_num_accepted_tokens"], q::SPEC_ACCEPTED_TOKENS).absent(NO_SPECULATION),
];
