//! xAI. `completion_tokens` excludes reasoning.

use super::habits::{Habits, Mark, Reasoning, StreamUsage};

pub(super) struct Xai;

impl Habits for Xai {
    fn provider(&self) -> &'static str {
        "x_ai"
    }

    fn stream_usage(&self) -> StreamUsage {
        StreamUsage::WhenAsked
    }

    fn reasoning(&self) -> Reasoning {
        Reasoning::BesideOutput
    }

    fn hosts(&self) -> &'static [&'static str] {
        &["api.x.ai", "*.api.x.ai"]
    }

    fn marks(&self) -> &'static [Mark] {
        &[
            Mark::Owner("xai"),
            Mark::Member(&["usage", "num_sources_used"]),
            Mark::Member(&["response", "usage", "num_sources_used"]),
        ]
    }
}
