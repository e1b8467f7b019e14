//! An engine that has not shown yet what it is: nothing is asked of it that it might refuse.

use super::habits::Habits;

pub(super) struct Auto;

impl Habits for Auto {
    fn provider(&self) -> &'static str {
        "openai"
    }

    fn hides_thinking(&self) -> bool {
        true
    }
}
