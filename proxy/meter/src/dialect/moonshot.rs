//! Moonshot AI. Streams may have their usage inside a choice, cache reads at the top of it.

use super::habits::{Habits, Mark};

pub(super) struct Moonshot;

impl Habits for Moonshot {
    fn provider(&self) -> &'static str {
        "moonshot_ai"
    }

    fn marks(&self) -> &'static [Mark] {
        &[Mark::Owner("moonshot")]
    }
}
