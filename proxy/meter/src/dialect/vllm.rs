//! vLLM. Streams report usage only when asked. Reasoning text has two names.

use super::habits::{Habits, Mark, StreamUsage};

pub(super) struct Vllm;

impl Habits for Vllm {
    fn provider(&self) -> &'static str {
        "vllm"
    }

    fn stream_usage(&self) -> StreamUsage {
        StreamUsage::WhenAsked
    }

    fn takes_continuous_usage(&self) -> bool {
        true
    }

    fn takes_token_ids(&self) -> bool {
        true
    }

    fn nulls_token_ids(&self) -> bool {
        true
    }

    fn marks(&self) -> &'static [Mark] {
        &[Mark::Engine("vllm"), Mark::Member(&["kv_transfer_params"])]
    }
}
