//! Cohere. The tokens that it bills can differ from those that it read. The billed ones count.

use super::habits::{Habits, Mark, StreamUsage};

pub(super) struct Cohere;

impl Habits for Cohere {
    fn provider(&self) -> &'static str {
        "cohere"
    }

    fn stream_usage(&self) -> StreamUsage {
        StreamUsage::Always
    }

    fn hosts(&self) -> &'static [&'static str] {
        &["api.cohere.com", "api.cohere.ai"]
    }

    // vLLM says much of this on its routes of the same names.
    fn marks(&self) -> &'static [Mark] {
        &[
            Mark::Member(&["usage", "billed_units"]),
            Mark::Member(&["delta", "usage", "billed_units"]),
            Mark::Member(&["meta", "billed_units", "search_units"]),
        ]
    }
}
