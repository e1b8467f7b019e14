//! mistral.rs. Its usage object has speeds beside the counts.

use super::habits::{Habits, Mark};

pub(super) struct MistralRs;

impl Habits for MistralRs {
    fn provider(&self) -> &'static str {
        "mistral_rs"
    }

    fn marks(&self) -> &'static [Mark] {
        &[Mark::Member(&["usage", "avg_compl_tok_per_sec"])]
    }
}
