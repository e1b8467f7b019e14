//! Moonshot AI. Its streams may have the usage inside a choice, with cache reads at the top.

use super::habits::{Habits, Mark};

pub(super) struct Moonshot;

impl Habits for Moonshot {
    fn provider(&self) -> &'static str {
        "moonshot_ai"
    }

    fn hosts(&self) -> &'static [&'static str] {
        &["api.moonshot.ai", "api.moonshot.cn"]
    }

    fn marks(&self) -> &'static [Mark] {
        &[Mark::Owner("moonshot")]
    }
}
