//! AWS Bedrock's Converse. Cache reads and writes are beside the input; streams are AWS's own.

use super::habits::{Habits, Mark, StreamUsage};

pub(super) struct Bedrock;

impl Habits for Bedrock {
    fn provider(&self) -> &'static str {
        "aws.bedrock"
    }

    fn stream_usage(&self) -> StreamUsage {
        StreamUsage::Always
    }

    fn marks(&self) -> &'static [Mark] {
        &[Mark::Member(&["usage", "inputTokens"])]
    }
}
