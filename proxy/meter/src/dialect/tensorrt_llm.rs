//! TensorRT-LLM. It refuses a request with any field that it does not know, so none is added.

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
