//! One vocabulary: how it splits a text, and how it merges the pieces.

use tiktoken_rs::CoreBPE;

use crate::pieces::{is_boundary, pieces};

/// Most bytes that the vocabulary's splitter sees at once: it panics at about a million characters
/// that it cannot split.
const PIECE_BYTES_MAX: usize = 32 << 10;

/// How a text is split, and how the pieces are merged.
pub(crate) struct Vocabulary {
    pub(crate) bpe: &'static CoreBPE,
}

impl Vocabulary {
    /// Tokens of `text`.
    pub(crate) fn count(&self, text: &str) -> u64 {
        pieces(text, PIECE_BYTES_MAX).map(|piece| self.bpe.count_ordinary(piece) as u64).sum()
    }

    /// Tokens of `text`; `None` when there are more than `limit`.
    pub(crate) fn count_until(&self, text: &str, limit: u64) -> Option<u64> {
        let mut tokens = 0;
        for piece in pieces(text, PIECE_BYTES_MAX) {
            tokens += self.bpe.count_ordinary(piece) as u64;
            if tokens > limit {
                return None;
            }
        }
        Some(tokens)
    }

    /// The last place before the end of `text` where a new piece begins whatever follows.
    pub(crate) fn last_boundary(&self, text: &str) -> Option<usize> {
        let mut after = None;
        text.char_indices().rev().find_map(|(at, before)| {
            let cut = after.is_some_and(|after| is_boundary(before, after));
            after = Some(before);
            cut.then_some(at + before.len_utf8())
        })
    }
}
