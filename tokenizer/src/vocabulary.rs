//! One vocabulary: how it splits a text and how it merges the pieces.

use crate::Count;
use crate::bpe::{Bpe, Scratch};
use crate::file::File;
use crate::scan::Pattern;

/// From a text to its tokens.
pub(crate) enum Vocabulary {
    /// Split by a pattern, merged piece by piece.
    Plain {
        /// How a text is split.
        pattern: Pattern,
        /// How the pieces are merged.
        bpe: Bpe,
    },
    /// Whatever a file says.
    File(File),
}

impl Vocabulary {
    /// Tokens of `text`; estimated only where a library fails that is not ours.
    pub(crate) fn count(&self, text: &str) -> Count {
        let tokens = match self {
            Self::Plain { pattern, bpe } => Some(count(*pattern, bpe, text, u64::MAX)),
            Self::File(file) => file.count(text, false, u64::MAX),
        };
        or_by_bytes(tokens, text)
    }

    /// Tokens of a prompt that a chat template rendered: marks of special tokens are these.
    pub(crate) fn count_rendered(&self, text: &str) -> Count {
        match self {
            Self::Plain { .. } => self.count(text),
            Self::File(file) => or_by_bytes(file.count(text, true, u64::MAX), text),
        }
    }

    /// Tokens of `text`; `None` when there are more than `limit`.
    pub(crate) fn count_until(&self, text: &str, limit: u64) -> Option<u64> {
        let tokens = match self {
            // A piece may be as long as the text: no need to merge one that is too long anyway.
            Self::Plain { bpe, .. }
                if (text.len() / bpe.token_bytes_max().max(1)) as u64 > limit =>
            {
                return None;
            }
            Self::Plain { pattern, bpe } => count(*pattern, bpe, text, limit),
            Self::File(file) => or_by_bytes(file.count(text, false, limit), text).tokens,
        };
        (tokens <= limit).then_some(tokens)
    }

    /// The last place before the end of `text` where a new piece begins whatever follows.
    pub(crate) fn last_boundary(&self, text: &str) -> Option<usize> {
        match self {
            Self::Plain { pattern, .. } => pattern.last_boundary(text),
            Self::File(file) => file.last_boundary(text),
        }
    }

    /// Tokens that engines put around a prompt that has no template, such as `<s>`.
    pub(crate) const fn framing_tokens(&self) -> u64 {
        match self {
            Self::Plain { .. } => 0,
            Self::File(file) => file.framing_tokens,
        }
    }
}

/// Tokens of `text`, or some number above `limit` when there are more.
fn count(pattern: Pattern, bpe: &Bpe, text: &str, limit: u64) -> u64 {
    let mut scratch = Scratch::default();
    let mut tokens = 0;
    let mut at = 0;
    while at < text.len() && tokens <= limit {
        let end = pattern.piece_end(text, at);
        debug_assert!(end > at, "every pattern takes at least a character");
        tokens += bpe.count(text, at, end, &mut scratch);
        at = end.max(at + 1);
    }
    tokens
}

fn or_by_bytes(tokens: Option<u64>, text: &str) -> Count {
    tokens.map_or(Count::by_bytes(text.len() as u64), |tokens| Count { tokens, estimated: false })
}
