//! Anthropic: usage is in the first event and the closing one, cache reads and writes are beside
//! the input.

use super::habits::{Habits, StreamUsage};

pub(super) struct Anthropic;

impl Habits for Anthropic {
    fn provider(&self) -> &'static str {
        "anthropic"
    }

    fn stream_usage(&self) -> StreamUsage {
        StreamUsage::Always
    }
}
