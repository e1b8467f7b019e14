//! NVIDIA NIM, which runs vLLM or SGLang. The gateway adds only what both accept.

use super::habits::{Habits, StreamUsage};

pub(super) struct Nim;

impl Habits for Nim {
    fn provider(&self) -> &'static str {
        "nim"
    }

    fn stream_usage(&self) -> StreamUsage {
        StreamUsage::WhenAsked
    }

    fn hosts(&self) -> &'static [&'static str] {
        &["integrate.api.nvidia.com"]
    }
}
