//! OpenAI's vocabularies, which are part of the program.

use std::sync::OnceLock;

use tiktoken_rs::CoreBPE;

use crate::vocabulary::Vocabulary;

/// One of OpenAI's vocabularies; takes memory once it is counted with.
pub(crate) struct BuiltIn {
    /// As tiktoken calls it.
    pub(crate) name: &'static str,
    load: fn() -> &'static CoreBPE,
    loaded: OnceLock<Vocabulary>,
}

/// Differs from `o200k_base` in its special tokens only, and these are ordinary text here.
pub(crate) static O200K_HARMONY: BuiltIn =
    BuiltIn::new("o200k_harmony", tiktoken_rs::o200k_base_singleton);
pub(crate) static O200K_BASE: BuiltIn =
    BuiltIn::new("o200k_base", tiktoken_rs::o200k_base_singleton);
pub(crate) static CL100K_BASE: BuiltIn =
    BuiltIn::new("cl100k_base", tiktoken_rs::cl100k_base_singleton);
pub(crate) static P50K_BASE: BuiltIn = BuiltIn::new("p50k_base", tiktoken_rs::p50k_base_singleton);
pub(crate) static R50K_BASE: BuiltIn = BuiltIn::new("r50k_base", tiktoken_rs::r50k_base_singleton);

impl BuiltIn {
    const fn new(name: &'static str, load: fn() -> &'static CoreBPE) -> Self {
        Self { name, load, loaded: OnceLock::new() }
    }

    pub(crate) fn loaded(&self) -> Option<&Vocabulary> {
        self.loaded.get()
    }

    pub(crate) fn vocabulary(&self) -> &Vocabulary {
        self.loaded.get_or_init(|| Vocabulary { bpe: (self.load)() })
    }
}
