//! Gemini. Every chunk has running totals. On its OpenAI routes only the total may include
//! thinking.

use super::habits::{Habits, Mark, Reasoning, StreamUsage};

pub(super) struct Gemini;

impl Habits for Gemini {
    fn provider(&self) -> &'static str {
        "gcp.gemini"
    }

    fn stream_usage(&self) -> StreamUsage {
        StreamUsage::Always
    }

    fn reasoning(&self) -> Reasoning {
        Reasoning::InTotalOnly
    }

    fn hosts(&self) -> &'static [&'static str] {
        &["generativelanguage.googleapis.com"]
    }

    fn marks(&self) -> &'static [Mark] {
        &[
            Mark::Header("x-gemini-service-tier"),
            Mark::Member(&["usageMetadata", "promptTokenCount"]),
            Mark::Member(&["choices", "delta", "extra_content", "google"]),
            Mark::Member(&["choices", "message", "extra_content", "google"]),
            Mark::Member(&["choices", "delta", "tool_calls", "extra_content", "google"]),
            Mark::Member(&["choices", "message", "tool_calls", "extra_content", "google"]),
        ]
    }
}
