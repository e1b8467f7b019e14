//! Mistral. The last chunk with content has the usage.

use super::habits::{Habits, Mark, StreamUsage};

pub(super) struct Mistral;

impl Habits for Mistral {
    fn provider(&self) -> &'static str {
        "mistral_ai"
    }

    fn stream_usage(&self) -> StreamUsage {
        StreamUsage::Always
    }

    fn hosts(&self) -> &'static [&'static str] {
        &["api.mistral.ai", "codestral.mistral.ai"]
    }

    fn marks(&self) -> &'static [Mark] {
        &[Mark::Header("mistral-correlation-id")]
    }
}
