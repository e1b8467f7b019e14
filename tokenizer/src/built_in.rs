//! OpenAI's vocabularies, which are part of the program.

use std::array;
use std::io::Read as _;
use std::ops::Range;
use std::sync::OnceLock;

use flate2::read::DeflateDecoder;

use crate::bpe::Bpe;
use crate::scan::Pattern;
use crate::vocabulary::Vocabulary;

/// Tokens of one byte, which are the first of each vocabulary.
const SINGLES: usize = 256;

/// One of OpenAI's vocabularies; takes memory once it is counted with.
pub(crate) struct BuiltIn {
    pattern: Pattern,
    /// How many tokens there are.
    len: usize,
    /// Written by `build.rs`, deflated: each token in the order of merging, put together from two before
    /// it.
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
            bpe: Bpe::from_ranks(Unpacked::new(self.packed, self.len).iter()),
        })
    }
}

/// Tokens one behind the other.
struct Unpacked {
    bytes: Vec<u8>,
    /// Where each ends.
    ends: Vec<usize>,
}

impl Unpacked {
    /// The first `len` tokens of what `build.rs` wrote.
    fn new(packed: &[u8], len: usize) -> Self {
        let mut planes = Vec::new();
        // It is a part of the program: there is nothing to do about what cannot be read.
        let _ = DeflateDecoder::new(packed).read_to_end(&mut planes);
        let (singles, planes) = planes.split_at_checked(SINGLES).unwrap_or_default();
        let count = planes.len() / 5;
        let mut tokens = Self { bytes: singles.to_vec(), ends: (1..=singles.len()).collect() };
        for at in 0..count.min(len.saturating_sub(SINGLES)) {
            let [l0, l1, r0, r1, high] =
                array::from_fn(|plane| planes.get(plane * count + at).copied().unwrap_or_default());
            for half in [[l0, l1, high & 3, 0], [r0, r1, high >> 2, 0]] {
                let half = u32::from_le_bytes(half) as usize;
                tokens.bytes.extend_from_within(tokens.range(half));
            }
            tokens.ends.push(tokens.bytes.len());
        }
        tokens
    }

    fn iter(&self) -> impl Iterator<Item = &[u8]> + Clone {
        let mut start = 0;
        self.ends.iter().map(move |&end| {
            let token = self.bytes.get(start..end).unwrap_or_default();
            start = end;
            token
        })
    }

    fn range(&self, number: usize) -> Range<usize> {
        let start = number.checked_sub(1).and_then(|before| self.ends.get(before));
        let start = start.copied().unwrap_or_default();
        start..self.ends.get(number).copied().unwrap_or(start)
    }
}
