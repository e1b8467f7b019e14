//! SGLang: errors without an envelope, reasoning tokens at the top of the usage object.

use super::habits::{Habits, StreamUsage};

pub(super) struct Sglang;

impl Habits for Sglang {
    fn provider(&self) -> &'static str {
        "sglang"
    }

    fn stream_usage(&self) -> StreamUsage {
        StreamUsage::WhenAsked
    }

    fn takes_continuous_usage(&self) -> bool {
        true
    }

    fn owners(&self) -> &'static [&'static str] {
        &["sglang"]
    }
}
