//! One vocabulary: how it splits a text, and how it merges the pieces.

use crate::bpe::{Bpe, Scratch};
use crate::scan::Pattern;

/// How a text is split, and how the pieces are merged.
pub(crate) struct Vocabulary {
    pub(crate) pattern: Pattern,
    pub(crate) bpe: Bpe,
}

impl Vocabulary {
    /// Tokens of `text`.
    pub(crate) fn count(&self, text: &str) -> u64 {
        self.count_until(text, u64::MAX).unwrap_or_default()
    }

    /// Tokens of `text`; `None` when there are more than `limit`.
    pub(crate) fn count_until(&self, text: &str, limit: u64) -> Option<u64> {
        // A piece may be as long as the text: no need to merge one that is too long anyway.
        if (text.len() / self.bpe.token_bytes_max().max(1)) as u64 > limit {
            return None;
        }
        let mut scratch = Scratch::default();
        let mut tokens = 0;
        let mut at = 0;
        while at < text.len() {
            let end = self.pattern.piece_end(text, at);
            debug_assert!(end > at, "every pattern takes at least a character");
            tokens += self.bpe.count(text, at, end, &mut scratch);
            if tokens > limit {
                return None;
            }
            at = end.max(at + 1);
        }
        Some(tokens)
    }

    /// The last place before the end of `text` where a new piece begins whatever follows.
    pub(crate) fn last_boundary(&self, text: &str) -> Option<usize> {
        self.pattern.last_boundary(text, false)
    }
}
