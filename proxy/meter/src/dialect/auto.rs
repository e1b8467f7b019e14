//! An engine that has not shown yet what it is: nothing is asked of it that it might refuse.

use super::habits::{Habits, Reasoning};

pub(super) struct Auto;

impl Habits for Auto {
    fn provider(&self) -> &'static str {
        "openai"
    }

    // Nothing is known, Gemini's thinking included.
    fn reasoning(&self) -> Reasoning {
        Reasoning::InTotalOnly
    }
}
