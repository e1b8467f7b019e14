//! Groq. The last chunk has the usage in `x_groq`.

use super::habits::{Habits, Mark, StreamUsage};

pub(super) struct Groq;

impl Habits for Groq {
    fn provider(&self) -> &'static str {
        "groq"
    }

    fn stream_usage(&self) -> StreamUsage {
        StreamUsage::Always
    }

    fn hosts(&self) -> &'static [&'static str] {
        &["api.groq.com"]
    }

    fn marks(&self) -> &'static [Mark] {
        &[Mark::Member(&["x_groq"])]
    }
}
