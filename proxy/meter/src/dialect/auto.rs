//! An engine that the configuration does not name. Nothing is known of it.

use super::habits::{Habits, Reasoning};

pub(super) struct Auto;

impl Habits for Auto {
    fn provider(&self) -> &'static str {
        "unknown"
    }

    fn reasoning(&self) -> Reasoning {
        Reasoning::Unknown
    }
}
