//! NVIDIA NIM: vLLM or SGLang behind one face. What only one of them takes is not asked for.

use super::habits::{Habits, StreamUsage};

pub(super) struct Nim;

impl Habits for Nim {
    fn provider(&self) -> &'static str {
        "nim"
    }

    fn stream_usage(&self) -> StreamUsage {
        StreamUsage::WhenAsked
    }
}
