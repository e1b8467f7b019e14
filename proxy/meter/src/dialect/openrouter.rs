//! OpenRouter. The last chunk has choices, the usage and its cost. Comments arrive while a request
//! waits.

use super::habits::{Habits, Mark, StreamUsage};

pub(super) struct OpenRouter;

impl Habits for OpenRouter {
    fn provider(&self) -> &'static str {
        "openrouter"
    }

    fn stream_usage(&self) -> StreamUsage {
        StreamUsage::Always
    }

    fn hosts(&self) -> &'static [&'static str] {
        &["openrouter.ai", "api.openrouter.ai"]
    }

    fn marks(&self) -> &'static [Mark] {
        &[Mark::Member(&["choices", "native_finish_reason"])]
    }
}
