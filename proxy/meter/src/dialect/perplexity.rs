//! Perplexity. `completion_tokens` and the total exclude reasoning and citations.

use super::habits::{Habits, Mark, Reasoning, StreamUsage};

pub(super) struct Perplexity;

impl Habits for Perplexity {
    fn provider(&self) -> &'static str {
        "perplexity"
    }

    fn stream_usage(&self) -> StreamUsage {
        StreamUsage::Always
    }

    fn reasoning(&self) -> Reasoning {
        Reasoning::BesideTotal
    }

    fn hosts(&self) -> &'static [&'static str] {
        &["api.perplexity.ai"]
    }

    fn marks(&self) -> &'static [Mark] {
        &[Mark::Member(&["usage", "search_context_size"])]
    }
}
