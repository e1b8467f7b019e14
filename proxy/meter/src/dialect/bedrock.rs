//! AWS Bedrock's Converse API. `inputTokens` excludes cache reads and writes. Streams are AWS event
//! streams.

use super::habits::{Habits, Mark, StreamUsage};

pub(super) struct Bedrock;

impl Habits for Bedrock {
    fn provider(&self) -> &'static str {
        "aws.bedrock"
    }

    fn stream_usage(&self) -> StreamUsage {
        StreamUsage::Always
    }

    fn hosts(&self) -> &'static [&'static str] {
        &["bedrock-runtime.*.amazonaws.com", "bedrock-runtime-fips.*.amazonaws.com"]
    }

    fn marks(&self) -> &'static [Mark] {
        &[Mark::Member(&["usage", "inputTokens"])]
    }
}
