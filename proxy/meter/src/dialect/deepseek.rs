//! DeepSeek. Cache hits stand at the top of the usage object. Comments arrive while a request
//! waits.

use super::habits::{Habits, Mark, StreamUsage};

pub(super) struct Deepseek;

impl Habits for Deepseek {
    fn provider(&self) -> &'static str {
        "deepseek"
    }

    fn stream_usage(&self) -> StreamUsage {
        StreamUsage::WhenAsked
    }

    fn hosts(&self) -> &'static [&'static str] {
        &["api.deepseek.com"]
    }

    fn marks(&self) -> &'static [Mark] {
        &[Mark::Owner("deepseek"), Mark::Header("x-ds-trace-id")]
    }
}
