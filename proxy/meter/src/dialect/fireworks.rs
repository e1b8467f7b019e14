//! Fireworks AI.

use super::habits::{Habits, Mark};

pub(super) struct Fireworks;

impl Habits for Fireworks {
    fn provider(&self) -> &'static str {
        "fireworks_ai"
    }

    fn hosts(&self) -> &'static [&'static str] {
        &["api.fireworks.ai"]
    }

    fn marks(&self) -> &'static [Mark] {
        &[Mark::Header("fireworks-server-time-to-first-token")]
    }
}
