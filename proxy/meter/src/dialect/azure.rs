//! Azure OpenAI. The path names a deployment, and the answer names the model. The first chunk names
//! neither.

use super::habits::{Habits, Mark, StreamUsage};

pub(super) struct Azure;

impl Habits for Azure {
    fn provider(&self) -> &'static str {
        "azure.ai.openai"
    }

    fn stream_usage(&self) -> StreamUsage {
        StreamUsage::WhenAsked
    }

    fn hosts(&self) -> &'static [&'static str] {
        &["*.openai.azure.com", "*.cognitiveservices.azure.com"]
    }

    fn marks(&self) -> &'static [Mark] {
        &[Mark::Member(&["prompt_filter_results"])]
    }
}
