//! llama.cpp's server: `timings` count what an absent usage object would have.

use super::habits::{Habits, StreamUsage};

pub(super) struct LlamaCpp;

impl Habits for LlamaCpp {
    fn provider(&self) -> &'static str {
        "llama_cpp"
    }

    fn stream_usage(&self) -> StreamUsage {
        StreamUsage::WhenAsked
    }

    fn owners(&self) -> &'static [&'static str] {
        &["llamacpp"]
    }
}
