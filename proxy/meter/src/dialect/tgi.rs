//! Hugging Face text-generation-inference: three usage members, no details.

use super::habits::{Habits, StreamUsage};

pub(super) struct Tgi;

impl Habits for Tgi {
    fn provider(&self) -> &'static str {
        "tgi"
    }

    fn stream_usage(&self) -> StreamUsage {
        StreamUsage::WhenAsked
    }
}
