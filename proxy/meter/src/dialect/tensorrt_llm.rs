//! TensorRT-LLM. It refuses a request with an unknown field, so the gateway adds none.

use super::habits::{Habits, Mark};

pub(super) struct TensorrtLlm;

impl Habits for TensorrtLlm {
    fn provider(&self) -> &'static str {
        "tensorrt_llm"
    }

    fn marks(&self) -> &'static [Mark] {
        &[
            Mark::Owner("tensorrt_llm"),
            Mark::Member(&["choices", "disaggregated_params"]),
            Mark::Member(&["choices", "avg_decoded_tokens_per_iter"]),
        ]
    }
}
