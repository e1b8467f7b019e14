//! OpenAI, and servers that copy its API faithfully.

use super::habits::{Habits, Mark, Reasoning, StreamUsage};

pub(super) struct OpenAi;

impl Habits for OpenAi {
    fn provider(&self) -> &'static str {
        "openai"
    }

    fn stream_usage(&self) -> StreamUsage {
        StreamUsage::WhenAsked
    }

    // The real one's total always fits; Gemini behind its OpenAI routes is often configured so.
    fn reasoning(&self) -> Reasoning {
        Reasoning::InTotalOnly
    }

    fn hosts(&self) -> &'static [&'static str] {
        &["api.openai.com", "*.api.openai.com"]
    }

    fn marks(&self) -> &'static [Mark] {
        &[
            Mark::Owner("openai"),
            Mark::Owner("openai-internal"),
            Mark::Header("openai-organization"),
            Mark::Header("openai-project"),
            Mark::Header("openai-version"),
        ]
    }
}
