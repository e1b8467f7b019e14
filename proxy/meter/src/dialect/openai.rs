//! OpenAI itself, and what copies it faithfully.

use super::habits::{Habits, StreamUsage};

pub(super) struct OpenAi;

impl Habits for OpenAi {
    fn provider(&self) -> &'static str {
        "openai"
    }

    fn stream_usage(&self) -> StreamUsage {
        StreamUsage::WhenAsked
    }

    // Gemini behind its OpenAI routes is often configured as OpenAI; the real one's total always
    // fits its parts.
    fn hides_thinking(&self) -> bool {
        true
    }

    fn owners(&self) -> &'static [&'static str] {
        &["openai", "openai-internal", "system"]
    }
}
