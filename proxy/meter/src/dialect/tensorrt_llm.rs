//! TensorRT-LLM: refuses any request with a field that it does not know, so none is added.

use super::habits::Habits;

pub(super) struct TensorrtLlm;

impl Habits for TensorrtLlm {
    fn provider(&self) -> &'static str {
        "tensorrt_llm"
    }

    fn owners(&self) -> &'static [&'static str] {
        &["tensorrt_llm"]
    }
}
