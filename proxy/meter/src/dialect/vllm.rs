//! vLLM.

use super::habits::{Habits, StreamUsage};

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

    fn owners(&self) -> &'static [&'static str] {
        &["vllm"]
    }
}
