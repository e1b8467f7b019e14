//! SGLang. Its error objects have no envelope. Reasoning tokens stand at the top of the usage
//! object.

use super::habits::{Habits, Mark, StreamUsage};

pub(super) struct Sglang;

impl Habits for Sglang {
    fn provider(&self) -> &'static str {
        "sglang"
    }

    fn stream_usage(&self) -> StreamUsage {
        StreamUsage::WhenAsked
    }

    fn takes_continuous_usage(&self) -> bool {
        true
    }

    fn takes_token_ids(&self) -> bool {
        true
    }

    fn marks(&self) -> &'static [Mark] {
        &[
            Mark::Engine("sglang"),
            Mark::Member(&["sglext"]),
            Mark::Member(&["choices", "matched_stop"]),
        ]
    }
}
