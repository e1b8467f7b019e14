//! SGLang, from 0.3 (label `name`) to 0.5. The scheduler's series have ranks, those of requests have
//! none. Behind its gateway the colon is `_`, and `worker_addr` says which worker it is.

use crate::identity::Field;
use crate::quantity as q;
use crate::row::{Mark, Op, Row, Source, derived, row};

pub(super) const SOURCE: Source = Source {
    name: "sglang",
    title: "SGLang",
    prefixes: &["sglang:", "sglang_"],
    any_case: false,
    anchors: &[],
    marks: &[
        Mark::Label("model_name"),
        Mark::Label("engine_type"),
        Mark::Label("tp_rank"),
        Mark::Metric("token_usage"),
        Mark::Metric("num_running_reqs"),
        Mark::Metric("num_queue_reqs"),
        Mark::Metric("gen_throughput"),
    ],
    foreign: &[],
    generations: &[
        (Mark::Metric("realtime_tokens"), "0.5 or later"),
        (Mark::Label("engine_type"), "0.4.8 or later"),
        (Mark::Metric("num_running_reqs"), "0.4 or later"),
        (Mark::Metric("num_requests_running"), "0.3"),
    ],
    identity: &[
        ("instance", Field::Instance),
        ("worker_addr", Field::Instance),
        ("node", Field::Node),
        ("namespace", Field::Namespace),
        ("kubernetes_namespace", Field::Namespace),
        ("pod", Field::Pod),
        ("kubernetes_pod_name", Field::Pod),
        ("container", Field::Container),
        ("model_name", Field::Model),
        ("model", Field::Model),
        ("name", Field::Model),
        ("dp_rank", Field::Engine),
        ("tp_rank", Field::Rank),
    ],
    subject: &[
        Field::Instance,
        Field::Node,
        Field::Namespace,
        Field::Pod,
        Field::Container,
        Field::Model,
        Field::Engine,
        Field::Rank,
    ],
    node_of: None,
    ignored: &["job", "endpoint", "service", "pp_rank", "moe_ep_rank"],
    versions: &[],
    version_at: &[("/server_info", "version"), ("/get_server_info", "version")],
    rows: ROWS,
    derived: &[
        derived(q::PREFIX_QUERY_TOKENS, Op::Sum, &[q::PROMPT_TOKENS], "each prompt is looked up"),
        derived(q::PREFIX_HIT_TOKENS, Op::Sum, &[q::CACHED_TOKENS], ""),
    ],
    blank: None,
    never: &[(q::REJECTED, "SGLang counts no refused requests")],
};

const STREAMING: &[&str] = &["is_streaming"];
const NO_SPECULATION: &str = "only where speculative decoding is on";

const ROWS: &[Row] = &[
    row(&["num_running_reqs", "num_requests_running"], q::REQUESTS_RUNNING),
    row(&["num_queue_reqs", "num_requests_waiting"], q::REQUESTS_WAITING),
    row(&["token_usage"], q::KV_CACHE_USAGE),
    row(&["kv_used_tokens", "num_used_tokens"], q::KV_CACHE_TOKENS),
    row(&["max_total_num_tokens"], q::KV_CACHE_LIMIT),
    // 0.3, of which the label `name` tells, printed percent.
    row(&["cache_hit_rate"], q::PREFIX_HIT_RATE).only("name", &[]).scaled("%", 0.01),
    row(&["cache_hit_rate"], q::PREFIX_HIT_RATE),
    row(&["num_retracted_requests"], q::PREEMPTIONS),
    row(&["evicted_tokens"], q::EVICTIONS),
    row(&["prompt_tokens"], q::PROMPT_TOKENS).sum_over(STREAMING),
    row(&["cached_tokens"], q::CACHED_TOKENS).sum_over(&["cache_source"]),
    row(&["realtime_tokens"], q::PREFILL_TOKENS).only("mode", &["prefill_compute"]),
    row(&["generation_tokens"], q::GENERATION_TOKENS).sum_over(STREAMING),
    row(&["num_requests"], q::REQUESTS).sum_over(STREAMING),
    row(&["num_aborted_requests"], q::REQUESTS_ABORTED),
    row(&["time_to_first_token_seconds"], q::TIME_TO_FIRST_TOKEN).sum_over(STREAMING),
    // Before 0.5 under the name of a mean, but observed token by token.
    row(&["inter_token_latency_seconds", "time_per_output_token_seconds"], q::INTER_TOKEN_LATENCY)
        .sum_over(STREAMING),
    row(&["request_time_per_output_token_seconds"], q::TIME_PER_OUTPUT_TOKEN).sum_over(STREAMING),
    row(&["e2e_request_latency_seconds"], q::REQUEST_DURATION).sum_over(STREAMING),
    row(&["queue_time_seconds", "waiting_request_latency_seconds"], q::QUEUE_TIME),
    row(&["prompt_tokens_histogram"], q::PROMPT_LENGTH),
    row(&["generation_tokens_histogram"], q::GENERATION_LENGTH),
    row(&["gen_throughput"], q::GENERATION_THROUGHPUT),
    row(&["spec_accept_rate"], q::SPEC_ACCEPT_RATE).absent(NO_SPECULATION),
    row(&["spec_accept_length"], q::SPEC_ACCEPT_LENGTH).absent(NO_SPECULATION),
];
