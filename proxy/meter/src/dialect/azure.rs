//! Azure OpenAI: the deployment's name stands in the path, the model's in the answer.

use super::habits::{Habits, StreamUsage};

pub(super) struct Azure;

impl Habits for Azure {
    fn provider(&self) -> &'static str {
        "azure.ai.openai"
    }

    fn stream_usage(&self) -> StreamUsage {
        StreamUsage::WhenAsked
    }
}
