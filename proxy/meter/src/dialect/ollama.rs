//! Ollama's OpenAI routes: completions say zero until the last chunk.

use super::habits::{Habits, StreamUsage};

pub(super) struct Ollama;

impl Habits for Ollama {
    fn provider(&self) -> &'static str {
        "ollama"
    }

    fn stream_usage(&self) -> StreamUsage {
        StreamUsage::WhenAsked
    }

    fn owners(&self) -> &'static [&'static str] {
        &["library"]
    }
}
