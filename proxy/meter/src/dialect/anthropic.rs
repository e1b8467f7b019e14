//! Anthropic. The first event has the usage of the input, the last one has running totals.
//! `input_tokens` excludes cache reads and writes.

use super::habits::{Habits, Mark, StreamUsage};

pub(super) struct Anthropic;

impl Habits for Anthropic {
    fn provider(&self) -> &'static str {
        "anthropic"
    }

    fn stream_usage(&self) -> StreamUsage {
        StreamUsage::Always
    }

    fn hosts(&self) -> &'static [&'static str] {
        &["api.anthropic.com"]
    }

    fn marks(&self) -> &'static [Mark] {
        &[
            Mark::Header("anthropic-organization-id"),
            Mark::Header("anthropic-ratelimit-requests-limit"),
        ]
    }
}
