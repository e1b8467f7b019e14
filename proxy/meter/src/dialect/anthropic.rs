//! Anthropic. Usage is in the first event and, cumulative, in the closing one; cache reads and
//! writes are beside the input.

use super::habits::{Habits, Mark, StreamUsage};

pub(super) struct Anthropic;

impl Habits for Anthropic {
    fn provider(&self) -> &'static str {
        "anthropic"
    }

    fn stream_usage(&self) -> StreamUsage {
        StreamUsage::Always
    }

    fn marks(&self) -> &'static [Mark] {
        &[
            Mark::Header("anthropic-organization-id"),
            Mark::Header("anthropic-ratelimit-requests-limit"),
        ]
    }
}
