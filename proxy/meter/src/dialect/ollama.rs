//! Ollama's OpenAI routes. Chunks of completions report zero tokens up to the last one.

use super::habits::{Habits, Mark, StreamUsage};

pub(super) struct Ollama;

impl Habits for Ollama {
    fn provider(&self) -> &'static str {
        "ollama"
    }

    fn stream_usage(&self) -> StreamUsage {
        StreamUsage::WhenAsked
    }

    fn marks(&self) -> &'static [Mark] {
        &[Mark::Owner("library"), Mark::Fingerprint(|fingerprint| fingerprint == "fp_ollama")]
    }
}
