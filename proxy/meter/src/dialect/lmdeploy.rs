//! LMDeploy. Its error objects have no envelope.

use super::habits::{Habits, Mark, StreamUsage};

pub(super) struct Lmdeploy;

impl Habits for Lmdeploy {
    fn provider(&self) -> &'static str {
        "lmdeploy"
    }

    fn stream_usage(&self) -> StreamUsage {
        StreamUsage::WhenAsked
    }

    fn marks(&self) -> &'static [Mark] {
        &[Mark::Owner("lmdeploy")]
    }
}
