//! vLLM, from 0.6 (engine V0) to 0.33. Its labels `model_name` and `engine` stand on nearly every
//! series. Below Ray Serve its names get another prefix.

use crate::identity::Field;
use crate::quantity as q;
use crate::row::{Mark, Op, Refuse, Row, Source, derived, row};

pub(super) const SOURCE: Source = Source {
    name: "vllm",
    title: "vLLM",
    prefixes: &["vllm:", "vllm_", "ray_vllm:", "ray_vllm_"],
    any_case: false,
    anchors: &[],
    marks: &[
        Mark::Label("model_name"),
        Mark::Metric("cache_config_info"),
        Mark::Metric("num_requests_running"),
        Mark::Metric("e2e_request_latency_seconds_count"),
    ],
    foreign: &[("server", "the router of vLLM's production stack")],
    generations: &[
        (Mark::Metric("prompt_tokens_by_source"), "engine V1, 0.2x or later"),
        (Mark::Metric("kv_cache_usage_perc"), "engine V1, 0.10 or later"),
        (Mark::Metric("avg_generation_throughput_toks_per_s"), "engine V0"),
        (Mark::Metric("cpu_cache_usage_perc"), "engine V0"),
        (Mark::Metric("gpu_cache_usage_perc"), "before 0.11"),
    ],
    identity: &[
        ("instance", Field::Instance),
        ("node", Field::Node),
        ("NodeAddress", Field::Node),
        ("namespace", Field::Namespace),
        ("kubernetes_namespace", Field::Namespace),
        ("pod", Field::Pod),
        ("kubernetes_pod_name", Field::Pod),
        ("pod_name", Field::Pod),
        ("container", Field::Container),
        ("model_name", Field::Model),
        ("model", Field::Model),
        ("engine", Field::Engine),
    ],
    subject: &[
        Field::Instance,
        Field::Node,
        Field::Namespace,
        Field::Pod,
        Field::Container,
        Field::Model,
        Field::Engine,
    ],
    node_of: None,
    ignored: &["job", "endpoint", "service", "Version", "SessionName"],
    versions: &[],
    version_at: &[("/version", "version")],
    rows: ROWS,
    derived: &[derived(
        q::SPEC_ACCEPT_RATE,
        Op::Ratio,
        &[q::SPEC_ACCEPTED_TOKENS, q::SPEC_DRAFT_TOKENS],
        "since the engine started",
    )],
    blank: None,
    never: &[(
        q::EVICTIONS,
        "vLLM counts no evicted tokens; kv_block_* are samples of a few blocks",
    )],
};

const NO_CONNECTOR: &str = "only where a KV connector is configured";
const NO_SPECULATION: &str = "only where speculative decoding is on";

const ROWS: &[Row] = &[
    row(&["num_requests_running"], q::REQUESTS_RUNNING),
    row(&["num_requests_waiting"], q::REQUESTS_WAITING),
    row(&["num_requests_waiting_by_reason"], q::REQUESTS_WAITING_BY_REASON)
        .labels(&[("reason", "reason")]),
    row(&["num_requests_swapped"], q::REQUESTS_SWAPPED).absent("engine V1 swaps nothing"),
    // A share from 0 to 1 in spite of its name, under the old name too.
    row(&["kv_cache_usage_perc", "gpu_cache_usage_perc"], q::KV_CACHE_USAGE),
    row(&["cache_config_info"], q::KV_CACHE_LIMIT).product(&["block_size", "num_gpu_blocks"]),
    // 0.10 prints both names of a counter, so they are never added.
    row(&["prefix_cache_queries"], q::PREFIX_QUERY_TOKENS),
    row(&["gpu_prefix_cache_queries"], q::PREFIX_QUERY_TOKENS).refuse(BLOCKS),
    row(&["prefix_cache_hits"], q::PREFIX_HIT_TOKENS),
    row(&["gpu_prefix_cache_hits"], q::PREFIX_HIT_TOKENS).refuse(BLOCKS),
    row(&["external_prefix_cache_queries"], q::EXTERNAL_QUERY_TOKENS).absent(NO_CONNECTOR),
    row(&["external_prefix_cache_hits"], q::EXTERNAL_HIT_TOKENS).absent(NO_CONNECTOR),
    row(&["gpu_prefix_cache_hit_rate"], q::PREFIX_HIT_RATE)
        .refuse(&[Refuse::Negative("-1 is what vLLM prints before it has data")])
        .absent("only engine V0 tells a rate; later there are counters"),
    row(&["num_preemptions"], q::PREEMPTIONS),
    row(&["prompt_tokens"], q::PROMPT_TOKENS),
    row(&["prompt_tokens_cached"], q::CACHED_TOKENS),
    row(&["prompt_tokens_by_source"], q::PREFILL_TOKENS).only("source", &["local_compute"]),
    row(&["generation_tokens"], q::GENERATION_TOKENS),
    row(&["request_success"], q::REQUESTS).labels(&[("finished_reason", "finish_reason")]),
    row(&["admission_rejections"], q::REJECTED)
        .labels(&[("reason", "reason")])
        .absent("only where vLLM has a limit of queued requests or tokens"),
    row(&["time_to_first_token_seconds"], q::TIME_TO_FIRST_TOKEN),
    // Under the old name too it was observed token by token.
    row(&["inter_token_latency_seconds", "time_per_output_token_seconds"], q::INTER_TOKEN_LATENCY),
    row(&["request_time_per_output_token_seconds"], q::TIME_PER_OUTPUT_TOKEN),
    row(&["e2e_request_latency_seconds"], q::REQUEST_DURATION),
    row(&["request_queue_time_seconds", "time_in_queue_requests"], q::QUEUE_TIME),
    row(&["request_prefill_time_seconds"], q::PREFILL_TIME),
    row(&["request_decode_time_seconds"], q::DECODE_TIME),
    row(&["request_inference_time_seconds"], q::INFERENCE_TIME),
    row(&["request_prompt_tokens"], q::PROMPT_LENGTH),
    row(&["request_generation_tokens"], q::GENERATION_LENGTH),
    row(&["iteration_tokens"], q::BATCH_TOKENS),
    row(&["avg_prompt_throughput_toks_per_s"], q::PROMPT_THROUGHPUT)
        .absent("only engine V0 tells it; later it is the rate of prompt_tokens"),
    row(&["avg_generation_throughput_toks_per_s"], q::GENERATION_THROUGHPUT)
        .absent("only engine V0 tells it; later it is the rate of generation_tokens"),
    row(&["spec_decode_num_drafts"], q::SPEC_DRAFTS).absent(NO_SPECULATION),
    row(&["spec_decode_num_draft_tokens"], q::SPEC_DRAFT_TOKENS).absent(NO_SPECULATION),
    row(&["spec_decode_num_accepted_tokens"], q::SPEC_ACCEPTED_TOKENS).absent(NO_SPECULATION),
    row(&["spec_decode_draft_acceptance_rate"], q::SPEC_ACCEPT_RATE).absent(NO_SPECULATION),
    row(&["engine_sleep_state"], q::ENGINE_STATE).labels(&[("sleep_state", "state")]),
];

const BLOCKS: &[Refuse] =
    &[Refuse::Always("under this name 0.8 counted blocks, and later versions tokens")];
