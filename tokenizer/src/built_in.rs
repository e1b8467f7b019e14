//! OpenAI's vocabularies, which are part of the program.

use std::sync::OnceLock;

use crate::bpe::Bpe;
use crate::scan::Pattern;
use crate::vocabulary::Vocabulary;

/// One of OpenAI's vocabularies; takes memory once it is counted with.
pub(crate) struct BuiltIn {
    pattern: Pattern,
    /// How many tokens there are.
    len: usize,
    /// Written by `build.rs`: of each token in the order of merging, length and bytes.
    packed: &'static [u8],
    loaded: OnceLock<Vocabulary>,
}

macro_rules! packed {
    ($name:literal) => {
        include_bytes!(concat!(env!("OUT_DIR"), "/", $name))
    };
}

pub(crate) static O200K_BASE: BuiltIn =
    BuiltIn::new(Pattern::O200K, 199_998, packed!("o200k_base"));
pub(crate) static CL100K_BASE: BuiltIn =
    BuiltIn::new(Pattern::CL100K, 100_256, packed!("cl100k_base"));
pub(crate) static P50K_BASE: BuiltIn = BuiltIn::new(Pattern::Gpt2, 50_280, packed!("p50k_base"));
/// `p50k_base` without its runs of blanks.
pub(crate) static R50K_BASE: BuiltIn = BuiltIn::r50k_base();

impl BuiltIn {
    const fn new(pattern: Pattern, len: usize, packed: &'static [u8]) -> Self {
        Self { pattern, len, packed, loaded: OnceLock::new() }
    }

    pub(crate) const fn r50k_base() -> Self {
        Self::new(Pattern::Gpt2, 50_256, packed!("p50k_base"))
    }

    pub(crate) fn loaded(&self) -> Option<&Vocabulary> {
        self.loaded.get()
    }

    pub(crate) fn vocabulary(&self) -> &Vocabulary {
        self.loaded.get_or_init(|| Vocabulary::Plain {
            pattern: self.pattern,
            bpe: Bpe::from_ranks(unpacked(self.packed).take(self.len)),
        })
    }
}

fn unpacked(packed: &'static [u8]) -> impl Iterator<Item = &'static [u8]> + Clone {
    let mut rest = packed;
    std::iter::from_fn(move || {
        let (&len, behind) = rest.split_first()?;
        let (token, behind) = behind.split_at_checked(usize::from(len))?;
        rest = behind;
        Some(token)
    })
}
