//! Cohere. What is billed may differ from what was read, and is what counts.

use super::habits::{Habits, Mark};

pub(super) struct Cohere;

impl Habits for Cohere {
    fn provider(&self) -> &'static str {
        "cohere"
    }

    fn marks(&self) -> &'static [Mark] {
        &[Mark::Member(&["meta", "api_version"])]
    }
}
