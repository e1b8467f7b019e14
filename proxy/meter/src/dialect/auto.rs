//! An engine that the gateway has not recognised yet. The gateway adds nothing to its requests.

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
