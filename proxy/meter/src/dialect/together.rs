//! Together AI.

use super::habits::Habits;

pub(super) struct Together;

impl Habits for Together {
    fn provider(&self) -> &'static str {
        "together_ai"
    }

    fn hosts(&self) -> &'static [&'static str] {
        &["api.together.xyz", "api.together.ai"]
    }
}
